//! Folding constants, layers fused, and checks of sizes.

use super::{Declare, HostPass, NoOptions, PassCall, answer, declared, declared_with_names};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tracefx_core::Result;
use tracefx_ir::Attribute;
use tracefx_rewrite::{
    ConstantFoldOptions, DeferredAsserts, InsertedAsserts, fuse_batch_norm, get_unique_attr_name_in_module,
    insert_deferred_runtime_asserts, linear_permute_fusion, take_constants,
};
use tracefx_sym::{Parser, Symbol, ValueRange};
use ts_rs::TS;

pub(super) const PASSES: &[HostPass] = &[
    HostPass { name: "constant_fold", run: constant_fold },
    HostPass {
        name: "fuse_batch_norm",
        run: |call| {
            let NoOptions {} = call.options()?;
            answer(&fuse_batch_norm(call.module, call.library.registry())?)
        },
    },
    HostPass {
        name: "linear_permute_fusion",
        run: |call| {
            let NoOptions {} = call.options()?;
            answer(&linear_permute_fusion(call.module, call.library.registry())?)
        },
    },
    HostPass { name: "insert_deferred_runtime_asserts", run: insert_asserts },
];

pub(super) const TYPES: &[Declare] = &[
    declared::<ConstantFoldCall>,
    declared::<ConstantsAnswer>,
    declared_with_names::<RuntimeAssertCall>,
    declared::<InsertedAsserts>,
];

/// The options of `constant_fold`.
#[derive(Default, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct ConstantFoldCall {
    /// For each node whether it may be folded; all may where the list is empty.
    may_fold: Vec<bool>,
    /// The most bytes of one tensor that is made.
    #[ts(type = "number | null")]
    max_bytes: Option<u64>,
}

/// What `constant_fold` leaves to its host, whose tensors it does not have. The answer is null where nothing is folded.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct ConstantsAnswer {
    /// The attribute with the module that computes the constants, which is to go afterwards; null where they are there.
    module: Option<String>,
    /// The attributes in which the module's results are to be kept.
    names: Vec<String>,
}

fn constant_fold(call: &mut PassCall<'_>) -> Result<Value> {
    let ConstantFoldCall { may_fold, max_bytes } = call.options()?;
    let mut places = vec![usize::MAX; call.module.graph.id_bound()];
    call.nodes().iter().enumerate().for_each(|(place, id)| places[id.index()] = place);
    let constraint =
        |id: tracefx_ir::NodeId, _: &tracefx_ir::Node| may_fold.get(places[id.index()]).copied().unwrap_or(true);
    let options = ConstantFoldOptions { constraint: Some(&constraint), max_bytes };
    let Some(constants) = take_constants(call.module, call.library.registry(), options)? else {
        return Ok(Value::Null);
    };
    let is_here = !constants
        .module
        .modules()
        .iter()
        .any(|(_, it)| it.attributes.values().any(|it| matches!(it, Attribute::Fake { .. })));
    if is_here {
        constants.compute(call.module, call.library.executor())?;
        return answer(&ConstantsAnswer { module: None, names: constants.names });
    }
    let name = get_unique_attr_name_in_module(call.module, "_constants");
    call.module.set_attribute(&name, Attribute::Module(Box::new(constants.module)));
    answer(&ConstantsAnswer { module: Some(name), names: constants.names })
}

/// The options of `insert_deferred_runtime_asserts`.
#[derive(Default, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct RuntimeAssertCall {
    /// The least and the greatest value of symbols, by their names; null is no bound.
    #[ts(type = "Record<string, readonly [min: number | null, max: number | null]>")]
    ranges: BTreeMap<String, (Option<i64>, Option<i64>)>,
    /// What else holds, such as `u0 <= s0`, as PyTorch writes it.
    asserts: Vec<String>,
}

fn insert_asserts(call: &mut PassCall<'_>) -> Result<Value> {
    let RuntimeAssertCall { ranges, asserts } = call.options()?;
    let mut parser = Parser::default();
    let asserts = asserts.iter().map(|it| parser.parse_bool(it)).collect::<Result<_>>()?;
    let range = |(name, (min, max)): (String, _)| (Symbol::from_name(name), ValueRange { min, max });
    let known = DeferredAsserts { ranges: ranges.into_iter().map(range).collect(), asserts };
    answer(&insert_deferred_runtime_asserts(call.module, &known)?)
}
