//! Products with one matrix at once: `torch.fx.experimental.merge_matmul`.

use crate::fuser::replace_uses;
use crate::tensor_meta::{rank_of, tensor_meta_of};
use crate::write_order::WriteOrder;
use crate::{Impurity, LeftOut, PassResult, stable_topological_sort};
use rustc_hash::FxHashMap;
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, GraphModule, InsertPoint, Node, NodeId, Opcode, Str, TensorMeta, Val};
use tracefx_ops::Registry;
use tracefx_sym::SymInt;

/// The product that takes nothing but matrices.
const MM: &str = "torch.ops.aten.mm.default";

/// Products that take vectors and batches too.
const MATMULS: &[&str] = &["torch.matmul", "torch.ops.aten.matmul.default"];

/// Merges products of matrices that have the same right-hand side: the left-hand sides are put below each other, multiplied
/// once, and the product is split. A product that also takes vectors and batches is merged where its arguments are known to
/// be matrices, from `meta.val` or from the attribute that they read: propagate shapes first. PyTorch merges whatever it
/// finds, and splits vectors wrongly.
///
/// Products are merged where as many mergeable ones lie before each of them on the longest way from the inputs, which makes
/// them independent; a write, or what else must keep its place, between two keeps them apart. What is merged does not count in
/// a second run, which may find more; each run that changes anything leaves fewer products. Of each product that stays, the
/// result says why. What the new nodes give is noted where it is known of the products. Takes time `O(n log n)`.
///
/// # Errors
/// `GraphInvalid` where nodes use each other in a circle.
///
/// # Example
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_ops::registry;
/// use tracefx_rewrite::merge_matmul;
///
/// let mut graph = Graph::new();
/// let [a, b, w] = ["a", "b", "w"].map(|it| graph.placeholder(it));
/// let mm = "torch.ops.aten.mm.default";
/// let products = [a, b].map(|it| graph.call_function(mm, vec![it.into(), w.into()], vec![]));
/// graph.output(Arg::Tuple(products.map(Arg::Node).to_vec()));
/// let mut module = GraphModule::new(graph);
/// assert!(merge_matmul(&mut module, registry()).unwrap().modified);
/// assert_eq!(module.graph.find_nodes(tracefx_ir::Opcode::CallFunction, mm).count(), 1);
/// ```
pub fn merge_matmul(module: &mut GraphModule, registry: &Registry) -> Result<PassResult> {
    let (batches, left_out) = batches(module, registry);
    for batch in &batches {
        let vals = vals(module, batch);
        merge(&mut module.graph, batch, vals)?;
    }
    if !batches.is_empty() {
        stable_topological_sort(&mut module.graph)?;
    }
    Ok(PassResult { modified: !batches.is_empty(), left_out })
}

/// The right-hand side of a product: an attribute is the same wherever it is read.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Right {
    Attribute(Str),
    Node(NodeId),
}

/// The products that become one, in the order of the graph, and those that stay.
fn batches(module: &GraphModule, registry: &Registry) -> (Vec<Vec<NodeId>>, Vec<LeftOut>) {
    let graph = &module.graph;
    let order = WriteOrder::of(module, registry);
    let mut left_out = Vec::new();
    let mut leave =
        |id: NodeId, reason: String| left_out.push(LeftOut { node: graph.node(id).name().to_string(), reason });
    let mut shared = FxHashMap::<(&str, Right), usize>::default();
    let mut rights = vec![None; graph.id_bound()];
    for id in graph.nodes() {
        match right_of(module, graph.node(id)) {
            None => {}
            Some(Err(reason)) => leave(id, reason.to_owned()),
            Some(Ok(right)) => match order.writers_of(id).find(|it| !keeps_size(graph.node(*it), registry)) {
                // What is merged is a view of the whole, which must stay what it is.
                Some(it) => leave(id, format!("`{}` may change its sizes or its memory", graph.node(it).name())),
                None => {
                    *shared.entry((graph.node(id).target(), right.clone())).or_default() += 1;
                    rights[id.index()] = Some(right);
                }
            },
        }
    }
    let stays = Impurity { random: true, strict: true };
    let mut depths = vec![0usize; graph.id_bound()];
    let mut epoch = 0usize;
    let mut places = FxHashMap::<(&str, Right, usize, usize), usize>::default();
    let mut res: Vec<Vec<NodeId>> = Vec::new();
    for id in graph.nodes() {
        let node = graph.node(id);
        let mut depth = 0;
        node.for_each_input(&mut |it| depth = depth.max(depths[it.index()]));
        if let Some(right) = rights[id.index()].take().map(|it| (&**node.target(), it)) {
            if shared[&right] > 1 {
                depth += 1;
                let place = *places.entry((right.0, right.1, depth, epoch)).or_insert(res.len());
                if place == res.len() {
                    res.push(Vec::new());
                }
                res[place].push(id);
            } else {
                leave(id, "nothing else has its right-hand side".to_owned());
            }
        }
        depths[id.index()] = depth;
        epoch += usize::from(order.is_writer(id) || stays.is_impure(node, graph, module, registry));
    }
    for alone in res.iter().filter(|it| it.len() == 1) {
        leave(alone[0], "the others with its right-hand side depend on it, or a write stands between".to_owned());
    }
    res.retain(|it| it.len() > 1);
    (res, left_out)
}

/// Whether what a node writes to stays as it is, but for its elements.
fn keeps_size(node: &Node, registry: &Registry) -> bool {
    node.op() == Opcode::CallFunction
        && registry.get(node.target()).is_some_and(|it| it.returns_self() && !it.reshapes_self())
}

/// The right-hand side, where the node is a product, or why it is none of two matrices.
fn right_of(module: &GraphModule, node: &Node) -> Option<std::result::Result<Right, &'static str>> {
    let target = &**node.target();
    if node.op() != Opcode::CallFunction || (target != MM && !MATMULS.contains(&target)) {
        return None;
    }
    let ([Arg::Node(left), Arg::Node(right)], []) = (node.args(), node.kwargs()) else {
        return Some(Err("it has arguments by name: run NormalizeArgs first"));
    };
    if target != MM && [left, right].iter().any(|it| rank_of(module, **it) != Some(2)) {
        return Some(Err("its arguments are not known to be matrices: propagate shapes first"));
    }
    let source = module.graph.node(*right);
    Some(Ok(match source.op() {
        Opcode::GetAttr => Right::Attribute(source.target().clone()),
        Opcode::Placeholder | Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule | Opcode::Output => {
            Right::Node(*right)
        }
    }))
}

/// What the nodes give of which a merged product is made.
struct Vals {
    sizes: Vec<Val>,
    cat: Val,
    merged: Val,
    parts: Vec<Val>,
}

/// These, where it is known what the products take and give.
fn vals(module: &GraphModule, products: &[NodeId]) -> Option<Vals> {
    let graph = &module.graph;
    let known = |id: NodeId| tensor_meta_of(module, id).filter(|it| it.sizes.len() == 2);
    let mut rows = SymInt::from(0);
    let (mut sizes, mut parts) = (Vec::new(), Vec::new());
    let mut last = None;
    for &product in products {
        let (left, meta) = (known(graph.node(product).args()[0].as_node()?)?, known(product)?);
        let mut part = TensorMeta { requires_grad: meta.requires_grad, ..of_sizes(&meta, meta.sizes.clone()) };
        part.storage_offset = &rows * &meta.sizes[1];
        rows = &rows + &left.sizes[0];
        sizes.push(Val::Int(left.sizes[0].clone()));
        parts.push(Val::Tensor(part));
        last = Some((left, meta));
    }
    let (left, meta) = last?;
    let whole = |meta: &TensorMeta| Val::Tensor(of_sizes(meta, vec![rows.clone(), meta.sizes[1].clone()]));
    Some(Vals { sizes, cat: whole(&left), merged: whole(&meta), parts })
}

/// A tensor of these sizes, and else like this one, whose elements lie in order.
fn of_sizes(meta: &TensorMeta, sizes: Vec<SymInt>) -> TensorMeta {
    TensorMeta { device: meta.device.clone(), ..TensorMeta::contiguous(meta.dtype, sizes) }
}

/// Puts one product in the place of the last of these; the graph is out of order afterwards.
fn merge(graph: &mut Graph, products: &[NodeId], vals: Option<Vals>) -> Result<()> {
    let last = products[products.len() - 1];
    let target = graph.node(last).target().clone();
    let is_aten = target.starts_with("torch.ops.");
    let lefts: Vec<Arg> = products.iter().map(|&it| graph.node(it).args()[0].clone()).collect();
    let right = graph.node(products[0]).args()[1].clone();
    let before = graph.set_insert_point(InsertPoint::Before(last))?;
    let mut sizes = Vec::with_capacity(lefts.len());
    for left in &lefts {
        let args = vec![left.clone(), Arg::Int(0)];
        sizes.push(Arg::Node(if is_aten {
            graph.call_function("torch.ops.aten.sym_size.int", args, vec![])
        } else {
            graph.create_node(Opcode::CallMethod, "size", args, vec![], None)?
        }));
    }
    let [cat, split] = if is_aten {
        ["torch.ops.aten.cat.default", "torch.ops.aten.split_with_sizes.default"]
    } else {
        ["torch.cat", "torch.functional.split"]
    };
    let cat = graph.call_function(cat, vec![Arg::List(lefts)], vec![]);
    let merged = graph.call_function(&target, vec![cat.into(), right], vec![]);
    let size_nodes: Vec<NodeId> = sizes.iter().filter_map(Arg::as_node).collect();
    let parts = graph.call_function(split, vec![merged.into(), Arg::List(sizes)], vec![]);
    if let Some(vals) = &vals {
        let of_sizes = size_nodes.into_iter().zip(vals.sizes.iter().cloned());
        let split = Val::Seq { items: vals.parts.clone(), is_tuple: false };
        let of_calls = [(cat, vals.cat.clone()), (merged, vals.merged.clone()), (parts, split)];
        of_sizes.chain(of_calls).for_each(|(id, val)| graph.meta_mut(id).val = Some(val));
    }
    let mut replaced = FxHashMap::default();
    for (index, &product) in products.iter().enumerate() {
        let part = graph.call_function("operator.getitem", vec![parts.into(), Arg::Int(index as i64)], vec![]);
        let mut meta = graph.node(product).meta.clone();
        // A part after the first is a view of what stands further on.
        match &vals {
            Some(vals) => meta.val = Some(vals.parts[index].clone()),
            None if index > 0 => meta.val = None,
            None => {}
        }
        *graph.meta_mut(part) = meta;
        replaced.insert(product, part);
    }
    replace_uses(graph, &replaced, &|_| true)?;
    graph.set_insert_point(before)?;
    products.iter().try_for_each(|&it| graph.erase_node(it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_core::DType;
    use tracefx_ops::registry;

    fn mm(graph: &mut Graph, left: NodeId, right: NodeId) -> NodeId {
        graph.call_function("torch.ops.aten.mm.default", vec![left.into(), right.into()], vec![])
    }

    /// How many products are left, in a graph that is well formed and in which a second run finds nothing.
    fn left(build: impl FnOnce(&mut Graph, [NodeId; 3]) -> Vec<NodeId>) -> usize {
        let mut graph = Graph::new();
        let inputs = ["a", "b", "w"].map(|it| graph.placeholder(it));
        let results = build(&mut graph, inputs);
        graph.output(Arg::Tuple(results.into_iter().map(Arg::Node).collect()));
        let mut module = GraphModule::new(graph);
        merge_matmul(&mut module, registry()).unwrap();
        assert_eq!(module.graph.lint(None).len(), 0, "{}", module.graph);
        assert!(!merge_matmul(&mut module, registry()).unwrap().modified);
        module.graph.find_nodes(Opcode::CallFunction, "torch.ops.aten.mm.default").count()
    }

    #[test]
    fn independent_products_become_one_and_their_users_move_behind_it() {
        let merged = left(|graph, [a, b, w]| {
            let first = mm(graph, a, w);
            let relu = graph.call_function("torch.ops.aten.relu.default", vec![first.into()], vec![]);
            vec![relu, mm(graph, b, w)]
        });
        assert_eq!(merged, 1);
    }

    #[test]
    fn a_product_of_a_product_stays() {
        let merged = left(|graph, [a, _, w]| {
            let first = mm(graph, a, w);
            vec![mm(graph, first, w)]
        });
        assert_eq!(merged, 2);
    }

    #[test]
    fn groups_that_would_wait_for_each_other_are_not_both_merged() {
        let merged = left(|graph, [a, b, w]| {
            let [first, second] = [mm(graph, a, w), mm(graph, b, a)];
            vec![mm(graph, first, a), mm(graph, second, w)]
        });
        assert_eq!(merged, 4);
    }

    #[test]
    fn a_write_between_two_products_keeps_them_apart() {
        let merged = left(|graph, [a, b, w]| {
            let first = mm(graph, a, w);
            graph.call_function("torch.ops.aten.add_.Scalar", vec![b.into(), Arg::Int(1)], vec![]);
            let clone = graph.call_function("torch.ops.aten.clone.default", vec![b.into()], vec![]);
            vec![first, mm(graph, clone, w)]
        });
        assert_eq!(merged, 2);
    }

    #[test]
    fn a_product_is_merged_where_its_arguments_are_known_to_be_matrices() {
        for (sizes, n_products) in [(None, 2), (Some(vec![3]), 2), (Some(vec![2, 3, 3]), 2), (Some(vec![3, 3]), 1)] {
            let mut graph = Graph::new();
            let [a, b, w] = ["a", "b", "w"].map(|it| graph.placeholder(it));
            let known = |sizes: &[i64]| {
                let sizes = sizes.iter().map(|&it| it.into()).collect();
                Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, sizes)))
            };
            graph.meta_mut(a).val = sizes.as_deref().and_then(known);
            [b, w].into_iter().for_each(|it| graph.meta_mut(it).val = known(&[3, 3]));
            let products = [a, b].map(|it| graph.call_function("torch.matmul", vec![it.into(), w.into()], vec![]));
            graph.output(Arg::Tuple(products.map(Arg::Node).to_vec()));
            let mut module = GraphModule::new(graph);
            merge_matmul(&mut module, registry()).unwrap();
            assert_eq!(module.graph.find_nodes(Opcode::CallFunction, "torch.matmul").count(), n_products, "{sizes:?}");
        }
    }
}
