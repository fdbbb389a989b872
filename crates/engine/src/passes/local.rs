//! Passes that change a graph where it stands.

use super::{Declare, HostPass, NoOptions, PassCall, answer, declared, declared_with_names};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::{known_values, propagate};
use tracefx_export::{Remove, functionalize, merge_getitems};
use tracefx_ops::{Propagation, Symbols};
use tracefx_rewrite::{
    AnnotateOptions, AnnotateTypesWithSchema, CseOptions, CsePass, DeadCodeElimination, DeadCodeOptions, LeftOut,
    NormalizeArgs, NormalizeArgsOptions, NormalizeOperators, Pass, PassResult, annotate_getitem_nodes, merge_matmul,
    reinplace, replace_autocast_with_hop, replace_set_grad_with_hop,
};
use tracefx_sym::{Symbol, ValueRange};
use ts_rs::TS;

pub(super) const PASSES: &[HostPass] = &[
    HostPass {
        name: "eliminate_dead_code",
        run: |call| {
            let options = call.options()?;
            run(&DeadCodeElimination { registry: call.library.registry(), options }, call)
        },
    },
    HostPass {
        name: "CSEPass",
        run: |call| {
            let options = call.options()?;
            run(&CsePass { registry: call.library.registry(), options }, call)
        },
    },
    HostPass {
        name: "NormalizeArgs",
        run: |call| {
            let options = call.options()?;
            run(&NormalizeArgs { registry: call.library.registry(), options }, call)
        },
    },
    HostPass { name: "NormalizeOperators", run: |call| run(&NormalizeOperators { annotate: call.options()? }, call) },
    HostPass { name: "AnnotateTypesWithSchema", run: |call| run(&AnnotateTypesWithSchema(call.options()?), call) },
    HostPass {
        name: "annotate_getitem_nodes",
        run: |call| {
            let NoOptions {} = call.options()?;
            answer(&annotate_getitem_nodes(&mut call.module.graph)?)
        },
    },
    HostPass {
        name: "merge_matmul",
        run: |call| {
            let NoOptions {} = call.options()?;
            answer(&merge_matmul(call.module, call.library.registry())?)
        },
    },
    HostPass {
        name: "merge_getitems",
        run: |call| {
            let NoOptions {} = call.options()?;
            answer(&merge_getitems(call.module)?)
        },
    },
    HostPass { name: "functionalize", run: functionalize_module },
    HostPass {
        name: "reinplace",
        run: |call| {
            let NoOptions {} = call.options()?;
            answer(&reinplace(call.module, call.library.registry())?)
        },
    },
    HostPass { name: "FakeTensorProp", run: fake_tensor_prop },
    HostPass { name: "note_values", run: note_values },
    HostPass {
        name: "replace_set_grad_with_hop",
        run: |call| {
            let NoOptions {} = call.options()?;
            answer(&replace_set_grad_with_hop(call.module, call.library.registry())?)
        },
    },
    HostPass {
        name: "replace_autocast_with_hop",
        run: |call| {
            let NoOptions {} = call.options()?;
            answer(&replace_autocast_with_hop(call.module, call.library.registry())?)
        },
    },
];

pub(super) const TYPES: &[Declare] = &[
    declared::<PassResult>,
    declared::<LeftOut>,
    declared::<DeadCodeOptions>,
    declared_with_names::<CseOptions>,
    declared_with_names::<NormalizeArgsOptions>,
    declared_with_names::<AnnotateOptions>,
    declared_with_names::<FunctionalizeOptions>,
    declared::<NoteValuesCall>,
    declared::<UnknownValues>,
];

/// What is taken out of a graph.
#[derive(Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct FunctionalizeOptions {
    /// Writes alone, or views as well, which become copies such as `view_copy`.
    #[ts(type = "\"mutations\" | \"mutations_and_views\"")]
    remove: String,
}

impl Default for FunctionalizeOptions {
    fn default() -> Self {
        FunctionalizeOptions { remove: "mutations".to_owned() }
    }
}

fn run(pass: &dyn Pass, call: &mut PassCall<'_>) -> Result<Value> {
    answer(&pass.run(call.module)?)
}

fn functionalize_module(call: &mut PassCall<'_>) -> Result<Value> {
    let options: FunctionalizeOptions = call.options()?;
    let remove = match options.remove.as_str() {
        "mutations" => Remove::Mutations,
        "mutations_and_views" => Remove::MutationsAndViews,
        other => {
            let what = format!("remove is `{other}`, and should be `mutations` or `mutations_and_views`");
            return Err(Diagnostic::new(Code::InvalidOption, what));
        }
    };
    let registry = call.library.registry();
    *call.module = functionalize(call.module, registry, remove)?;
    Ok(json!({ "modified": true }))
}

/// The options of `note_values`.
#[derive(Default, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct NoteValuesCall {
    /// The least and the greatest value of symbols, by their names; null is no bound.
    #[ts(type = "Record<string, readonly [min: number | null, max: number | null]>")]
    ranges: BTreeMap<String, (Option<i64>, Option<i64>)>,
}

/// What `note_values` could not tell.
#[derive(Serialize, TS)]
struct UnknownValues {
    /// What nodes refused.
    problems: Vec<String>,
}

/// Notes what nodes give of which nothing is noted.
fn note_values(call: &mut PassCall<'_>) -> Result<Value> {
    let NoteValuesCall { ranges } = call.options()?;
    let range = |(name, (min, max)): (String, _)| (Symbol::from_name(name), ValueRange { min, max });
    let problems = tracefx_exec::note_values(call.module, call.library.registry(), ranges.into_iter().map(range));
    answer(&UnknownValues { problems: problems.iter().map(|it| it.message().to_string()).collect() })
}

/// Notes about each node what it gives, from what the inputs say of themselves (`meta.val`).
fn fake_tensor_prop(call: &mut PassCall<'_>) -> Result<Value> {
    let NoOptions {} = call.options()?;
    let inputs = known_values(&call.module.graph);
    let symbols = Symbols::default();
    propagate(call.module, &inputs, Propagation::new(call.library.registry(), &symbols))?;
    Ok(Value::Null)
}
