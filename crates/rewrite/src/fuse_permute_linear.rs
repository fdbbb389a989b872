//! Transposed results of linear layers: inductor's `linear_permute_fusion`, on operators.

use crate::fuser::replace_uses;
use crate::tensor_meta::rank_of;
use crate::write_order::WriteOrder;
use crate::{LeftOut, PassResult};
use rustc_hash::FxHashMap;
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, GraphModule, InsertPoint, NodeId, Opcode, TensorMeta, Val};
use tracefx_ops::Registry;

const LINEAR: &str = "torch.ops.aten.linear.default";

/// What swaps dimensions.
const SWAPS: &[&str] = &["torch.ops.aten.permute.default", "torch.ops.aten.transpose.int", "torch.ops.aten.t.default"];

/// Makes linear layers whose result is only used with its last two dimensions swapped give it that way, as
/// `weight @ input.transpose(-1, -2) + bias.unsqueeze(-1)`: the product has the order of memory that is asked for. A linear
/// layer of a swapped input is left alone, since operators take one as it is, and so is one whose input something writes to
/// before the swap. Where the input is the result of a linear layer that nothing else uses, that one is next. Of each swap of
/// a linear layer that stays, the result says why. A second run changes nothing.
///
/// # Errors
/// None of a graph that is well formed.
pub fn linear_permute_fusion(module: &mut GraphModule, registry: &Registry) -> Result<PassResult> {
    let mut order = WriteOrder::of(module, registry);
    let sources = order.sources(&module.graph, registry);
    let nodes: Vec<NodeId> = module.graph.nodes().collect();
    let mut res = PassResult::default();
    for id in nodes {
        let mut swap = id;
        while let Some(linear) = swapped_linear(&module.graph, swap) {
            let name = |it: NodeId| module.graph.node(it).name();
            let reason = match (check(module, linear, swap), order.between(&module.graph, linear, swap)) {
                (Err(reason), _) => reason,
                (Ok(()), Some(it)) => {
                    format!(
                        "`{}` writes to what `{}` takes, or switches how it computes, between them",
                        name(it),
                        name(linear)
                    )
                }
                (Ok(()), None) if sources.contains(&swap) => {
                    "what is computed from it is a view or a copy by the order of memory, and written to".to_owned()
                }
                (Ok(()), None) => {
                    let before = swap;
                    swap = fuse(&mut module.graph, linear, swap)?;
                    order.moved(swap, before);
                    res.modified = true;
                    continue;
                }
            };
            // What a fusion has made is looked at once more by the next run, and is no swap of the module's own.
            if swap == id {
                res.left_out.push(LeftOut { node: name(id).to_string(), reason });
            }
            break;
        }
    }
    Ok(res)
}

/// The linear layer of whose result a node is a swap of dimensions.
fn swapped_linear(graph: &Graph, swap: NodeId) -> Option<NodeId> {
    let is_call = |it: NodeId, targets: &[&str]| {
        let node = graph.node(it);
        node.op() == Opcode::CallFunction && targets.contains(&&**node.target())
    };
    let linear = graph.node(swap).args().first()?.as_node()?;
    (is_call(swap, SWAPS) && is_call(linear, &[LINEAR])).then_some(linear)
}

/// Refuses a swap of other dimensions than the last two, and a layer whose result is used otherwise.
fn check(module: &GraphModule, linear: NodeId, swap: NodeId) -> std::result::Result<(), String> {
    let graph = &module.graph;
    let (node, source) = (graph.node(swap), graph.node(linear));
    let name = source.name();
    if !node.kwargs().is_empty() || !source.kwargs().is_empty() {
        return Err(format!("it or `{name}` has arguments by name: run NormalizeArgs first"));
    }
    let Some(Val::Tensor(meta)) = &source.meta.val else {
        return Err(format!("the sizes of `{name}` are not known: propagate shapes first"));
    };
    let rank = meta.sizes.len();
    // A weight that is a vector takes a dimension away.
    let rank_of = |at: usize| source.args().get(at).and_then(Arg::as_node).and_then(|it| rank_of(module, it));
    if rank_of(1) != Some(2) && rank_of(0) != Some(rank) {
        return Err(format!("the weight of `{name}` is not known to be a matrix"));
    }
    let from_front = |dim: &Arg| match dim {
        Arg::Int(it) if *it < 0 => usize::try_from(*it + rank as i64).ok(),
        Arg::Int(it) => usize::try_from(*it).ok(),
        _ => None,
    };
    let are_swapped = rank >= 2
        && match &node.args()[1..] {
            [Arg::List(order) | Arg::Tuple(order)] => {
                let mut expected: Vec<usize> = (0..rank).collect();
                expected.swap(rank - 1, rank - 2);
                order.iter().map(from_front).eq(expected.into_iter().map(Some))
            }
            [a, b] => {
                let (a, b) = (from_front(a), from_front(b));
                let last = [Some(rank - 1), Some(rank - 2)];
                [a, b] == last || [b, a] == last
            }
            [] => rank == 2,
            [_] | [_, _, ..] => false,
        };
    if !are_swapped {
        return Err("it is no swap of the last two dimensions".to_owned());
    }
    if graph.users(linear).len() != 1 {
        return Err(format!("something else uses `{name}`, too"));
    }
    Ok(())
}

/// Puts the product in the place of both, and gives the swap of the layer's input.
fn fuse(graph: &mut Graph, linear: NodeId, swap: NodeId) -> Result<NodeId> {
    let args = graph.node(linear).args().to_vec();
    let before = graph.set_insert_point(InsertPoint::Before(swap))?;
    let mut call = |name: &str, args: Vec<Arg>| graph.call_function(&format!("torch.ops.aten.{name}"), args, vec![]);
    let input = call("transpose.int", vec![args[0].clone(), Arg::Int(-1), Arg::Int(-2)]);
    let mut res = call("matmul.default", vec![args[1].clone(), input.into()]);
    if let Some(bias) = args.get(2).filter(|it| **it != Arg::None) {
        let bias = call("unsqueeze.default", vec![bias.clone(), Arg::Int(-1)]);
        res = call("add.Tensor", vec![res.into(), bias.into()]);
    }
    *graph.meta_mut(res) = graph.node(swap).meta.clone();
    // The sizes stay, and the order of memory does not.
    if let Some(Val::Tensor(meta)) = &mut graph.meta_mut(res).val {
        meta.strides = TensorMeta::contiguous(meta.dtype, meta.sizes.clone()).strides;
        meta.storage_offset = 0.into();
    }
    graph.set_insert_point(before)?;
    replace_uses(graph, &FxHashMap::from_iter([(swap, res)]), &|_| true)?;
    graph.erase_node(swap)?;
    graph.erase_node(linear)?;
    Ok(input)
}
