//! Sizes of nodes, and targets in the place of others.

use super::{Declare, HostPass, PassCall, answer, declared};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{NodeId, Opcode};
use ts_rs::TS;

pub(super) const PASSES: &[HostPass] = &[
    HostPass { name: "get_size_of_all_nodes", run: get_size_of_all_nodes },
    HostPass { name: "replace_target_nodes_with", run: replace_target_nodes_with },
];

pub(super) const TYPES: &[Declare] = &[declared::<SizeAnswer>, declared::<ReplaceTargetCall>];

/// The bytes of a node. The answer of `get_size_of_all_nodes` has one for each node, null from the output on.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct SizeAnswer {
    /// The bytes of the result.
    #[ts(type = "number")]
    output_size: u64,
    /// The bytes of the result and of the parameters.
    #[ts(type = "number")]
    total_size: u64,
}

fn get_size_of_all_nodes(call: &mut PassCall<'_>) -> Result<Value> {
    let sizes = tracefx_rewrite::get_size_of_all_nodes(call.module)?;
    let size =
        |it: NodeId| sizes[it.index()].map(|it| SizeAnswer { output_size: it.output_size, total_size: it.total_size });
    answer(&call.nodes().into_iter().map(size).collect::<Vec<_>>())
}

/// The options of `replace_target_nodes_with`, which answers nothing.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ReplaceTargetCall {
    /// The op of the nodes that change, as in `call_function`.
    old_op: String,
    /// Their target.
    old_target: String,
    /// The op that they get.
    new_op: String,
    /// The target that they get.
    new_target: String,
}

fn replace_target_nodes_with(call: &mut PassCall<'_>) -> Result<Value> {
    let ReplaceTargetCall { old_op, old_target, new_op, new_target } = call.options()?;
    let op = |name: &str| {
        let what = || Diagnostic::new(Code::InvalidOption, format!("`{name}` is not the op of a node"));
        Opcode::from_name(name).ok_or_else(what)
    };
    let (old, new) = ((op(&old_op)?, &*old_target), (op(&new_op)?, &*new_target));
    tracefx_rewrite::replace_target_nodes_with(call.module, old, new)?;
    Ok(Value::Null)
}
