//! Sizes of nodes, and targets in the place of others.

use super::{Declare, HostPass, PassCall, answer, declared};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::{NodeId, Opcode, TensorMeta};
use tracefx_rewrite::SizeBytes;
use ts_rs::TS;

pub(super) const PASSES: &[HostPass] = &[
    HostPass { name: "get_size_of_all_nodes", run: get_size_of_all_nodes },
    HostPass { name: "replace_target_nodes_with", run: replace_target_nodes_with },
];

pub(super) const TYPES: &[Declare] =
    &[declared::<TensorNote>, declared::<SizeCall>, declared::<SizeAnswer>, declared::<ReplaceTargetCall>];

/// What a shape propagation noted about the value of a node.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TensorNote {
    /// The dtype.
    dtype: String,
    /// The sizes.
    #[ts(type = "number[]")]
    shape: Vec<i64>,
}

/// The options of `get_size_of_all_nodes`.
#[derive(Default, Deserialize, TS)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct SizeCall {
    /// For each node what is noted about its tensor, null where its `val` says it; empty where that holds for all.
    tensors: Vec<Option<TensorNote>>,
}

/// How many bytes a node needs: FX's `size_bytes`. The answer of `get_size_of_all_nodes` has one for each node, null from the
/// output on.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct SizeAnswer {
    /// The bytes of the result.
    #[ts(type = "number")]
    output_size: u64,
    /// The bytes of the result and of the parameters of the module that is called, all in the dtype of the result.
    #[ts(type = "number")]
    total_size: u64,
}

fn get_size_of_all_nodes(call: &mut PassCall<'_>) -> Result<Value> {
    let SizeCall { tensors } = call.options()?;
    let sizes = sizes_with(call, tensors)?;
    let size =
        |it: NodeId| sizes[it.index()].map(|it| SizeAnswer { output_size: it.output_size, total_size: it.total_size });
    answer(&call.nodes().into_iter().map(size).collect::<Vec<_>>())
}

/// The sizes of nodes by the indices of their ids, where notes of the host go before what the graph knows.
pub(super) fn sizes_with(call: &PassCall<'_>, tensors: Vec<Option<TensorNote>>) -> Result<Vec<Option<SizeBytes>>> {
    let mut metas = vec![None; call.module.graph.id_bound()];
    for (node, note) in call.nodes().into_iter().zip(tensors) {
        let Some(TensorNote { dtype, shape }) = note else { continue };
        let dtype = DType::from_name(&dtype)
            .ok_or_else(|| Diagnostic::new(Code::InvalidOption, format!("`{dtype}` is not the name of a dtype")))?;
        metas[node.index()] = Some(TensorMeta::contiguous(dtype, shape.into_iter().map(Into::into).collect()));
    }
    tracefx_rewrite::get_size_of_all_nodes_with(call.module, &|it| metas[it.index()].as_ref())
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
