//! Transposed results of linear layers: inductor's `linear_permute_fusion`, on operators.

use crate::PassResult;
use crate::effects::Writes;
use crate::fuser::replace_uses;
use crate::tensor_meta::rank_of;
use rustc_hash::FxHashMap;
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, GraphModule, InsertPoint, Node, NodeId, Opcode, TensorMeta, Val};
use tracefx_ops::Registry;

const LINEAR: &str = "torch.ops.aten.linear.default";

/// Makes linear layers whose result is only used with its last two dimensions swapped give it that way, as
/// `weight @ input.transpose(-1, -2) + bias.unsqueeze(-1)`: the product has the order of memory that is asked for. A linear
/// layer of a swapped input is left alone, since operators take one as it is, and so is one that writes may reach. Where the
/// input is the result of a linear layer that nothing else uses, that one is next. A second run changes nothing.
///
/// # Errors
/// None of a graph that is well formed.
pub fn linear_permute_fusion(module: &mut GraphModule, registry: &Registry) -> Result<PassResult> {
    let writes = Writes::of(module, registry);
    let disturbed = writes.as_ref().map(|it| it.disturbed(&module.graph)).unwrap_or_default();
    let sources = writes.map(|it| it.sources(&module.graph)).unwrap_or_default();
    let nodes: Vec<NodeId> = module.graph.nodes().collect();
    let mut modified = false;
    for id in nodes {
        let mut swap = id;
        while let Some(linear) = swapped(module, module.graph.node(swap)) {
            if sources.contains(&swap) || disturbed.contains(&linear) {
                break;
            }
            swap = fuse(&mut module.graph, linear, swap)?;
            modified = true;
        }
    }
    Ok(PassResult { modified })
}

/// The linear layer whose result a node swaps the last two dimensions of, where nothing else uses that.
fn swapped(module: &GraphModule, node: &Node) -> Option<NodeId> {
    let graph = &module.graph;
    let (Opcode::CallFunction, [Arg::Node(linear), dims @ ..]) = (node.op(), node.args()) else { return None };
    let source = graph.node(*linear);
    let is_linear = &**source.target() == LINEAR && source.op() == Opcode::CallFunction && source.kwargs().is_empty();
    let Some(Val::Tensor(meta)) = source.meta.val.as_ref().filter(|_| is_linear) else { return None };
    let rank = meta.sizes.len();
    // A weight that is a vector takes a dimension away.
    let rank_of = |at: usize| source.args().get(at).and_then(Arg::as_node).and_then(|it| rank_of(module, it));
    if rank_of(1) != Some(2) && rank_of(0) != Some(rank) {
        return None;
    }
    let from_front = |dim: &Arg| match dim {
        Arg::Int(it) if *it < 0 => usize::try_from(*it + rank as i64).ok(),
        Arg::Int(it) => usize::try_from(*it).ok(),
        _ => None,
    };
    let are_swapped = rank >= 2
        && match (&**node.target(), dims) {
            ("torch.ops.aten.permute.default", [Arg::List(order) | Arg::Tuple(order)]) => {
                let mut expected: Vec<usize> = (0..rank).collect();
                expected.swap(rank - 1, rank - 2);
                order.iter().map(from_front).eq(expected.into_iter().map(Some))
            }
            ("torch.ops.aten.transpose.int", [a, b]) => {
                let (a, b) = (from_front(a), from_front(b));
                let last = [Some(rank - 1), Some(rank - 2)];
                [a, b] == last || [b, a] == last
            }
            ("torch.ops.aten.t.default", []) => rank == 2,
            (_, _) => false,
        };
    (are_swapped && node.kwargs().is_empty() && graph.users(*linear).len() == 1).then_some(*linear)
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
