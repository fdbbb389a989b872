//! Operators in place where nobody sees the difference: `torch.fx.passes.reinplace`.

use crate::PassResult;
use crate::effects::op_shares;
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, GraphModule, Node, NodeId, Opcode, TensorMeta, Val};
use tracefx_ops::{Infer, Op, Registry, Tags};

/// Makes operators write into their first argument where that argument is not needed afterwards: `aten.add.Tensor` becomes
/// `aten.add_.Tensor`. The values of nodes must be known (`meta.val`), and the graph be functional but for what it does to
/// its own tensors.
///
/// A call is changed where the operator has a form in place, its result has the dtype of the argument and lies in memory as
/// the argument does, the argument is neither an input nor an attribute nor looks at one, and nothing that shares its
/// storage is used later or returned. Scatters of views, which PyTorch's pass turns into writes to the view,
/// stay. Takes time linear in the graph, but for the inverse of Ackermann's function.
///
/// # Errors
/// `NodeForeign` where the graph is broken.
pub fn reinplace(module: &mut GraphModule, registry: &Registry) -> Result<PassResult> {
    let graph = &mut module.graph;
    let mut storages = Storages::new(graph);
    let nodes: Vec<NodeId> = graph.nodes().collect();
    let mut modified = false;
    for (place, &id) in nodes.iter().enumerate() {
        let node = graph.node(id);
        let op = if node.op() == Opcode::CallFunction { registry.get(node.target()) } else { None };
        if let Some((this, in_place)) = candidate(graph, node, op, registry)
            && storages.is_free(this, place)
            && !shares_with_others(node, this, op, &mut storages)
        {
            let val = node.meta.val.clone();
            graph.set_target(id, &format!("torch.ops.{}", in_place.name))?;
            graph.meta_mut(id).val = val;
            storages.join(this, id);
            modified = true;
            continue;
        }
        match (node.op(), op) {
            (Opcode::Placeholder | Opcode::GetAttr, _) => storages.hold(id),
            (Opcode::CallFunction, Some(op)) if !op_shares(op) => {}
            // What is not known may give a view of any argument.
            _ => node.for_each_input(&mut |it| storages.join(it, id)),
        }
    }
    Ok(PassResult::new(modified))
}

/// The first argument and the operator in place, where types and sizes allow it.
fn candidate<'r>(graph: &Graph, node: &Node, op: Option<&Op>, registry: &'r Registry) -> Option<(NodeId, &'r Op)> {
    let op = op?;
    let this = node.args().first()?.as_node()?;
    let schema = &op.schema;
    let in_place = registry.get(&format!("{}.{}_.{}", schema.namespace, schema.name, schema.overload))?;
    let is_its_form = matches!(in_place.def.infer, Infer::InPlaceOf(it) if it == op.name);
    let (Some(Val::Tensor(before)), Some(Val::Tensor(after))) = (&graph.node(this).meta.val, &node.meta.val) else {
        return None;
    };
    let is_same = before.dtype == after.dtype && before.device == after.device && lie_alike(before, after);
    (is_its_form && is_same).then_some((this, in_place))
}

/// Whether elements lie at the same places in their storages. No two of a fresh result's share a place, so those of an
/// argument that lies alike share none either; and a later view of the result is the same view.
fn lie_alike(before: &TensorMeta, after: &TensorMeta) -> bool {
    let strides = before.strides.iter().zip(&after.strides).zip(&before.sizes);
    before.sizes == after.sizes
        && before.storage_offset == after.storage_offset
        && strides.into_iter().all(|((a, b), size)| a == b || *size == 1)
}

/// Whether another argument shares the storage of the first, so that writing could change what is still to be read. The
/// very same tensor may stand twice where each element depends on those at its place alone.
fn shares_with_others(node: &Node, this: NodeId, op: Option<&Op>, storages: &mut Storages) -> bool {
    let is_pointwise = op.is_some_and(|it| it.def.tags.has(Tags::POINTWISE));
    let mut is_first = true;
    let mut shares = false;
    let mut visit = |it: NodeId| {
        let is_this = std::mem::replace(&mut is_first, false) || (it == this && is_pointwise);
        shares |= !is_this && storages.find(it) == storages.find(this);
    };
    node.args().iter().for_each(|it: &Arg| it.for_each_node(&mut visit));
    node.kwargs().iter().for_each(|(_, it)| it.for_each_node(&mut visit));
    shares
}

/// Which nodes may share a storage, and where each storage is used last.
struct Storages {
    parent: Vec<usize>,
    /// The place of the last user; beyond all places for what outlives the graph.
    last_use: Vec<usize>,
}

impl Storages {
    fn new(graph: &Graph) -> Self {
        let mut last_use = vec![0; graph.id_bound()];
        for (place, id) in graph.nodes().enumerate() {
            let node = graph.node(id);
            let place = if node.op() == Opcode::Output { usize::MAX } else { place };
            node.for_each_input(&mut |it| last_use[it.index()] = place);
        }
        Storages { parent: (0..graph.id_bound()).collect(), last_use }
    }

    fn find(&mut self, node: NodeId) -> usize {
        let mut at = node.index();
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.find(a), self.find(b));
        self.last_use[a] = self.last_use[a].max(self.last_use[b]);
        self.parent[b] = a;
    }

    fn hold(&mut self, node: NodeId) {
        let at = self.find(node);
        self.last_use[at] = usize::MAX;
    }

    /// Whether nothing uses the storage after this place.
    fn is_free(&mut self, node: NodeId, place: usize) -> bool {
        let at = self.find(node);
        self.last_use[at] <= place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_core::DType;
    use tracefx_ops::registry;

    struct Build(Graph);

    impl Build {
        fn call(&mut self, op: &str, args: Vec<Arg>, sizes: &[i64]) -> Arg {
            let id = self.0.call_function(&format!("torch.ops.aten.{op}"), args, vec![]);
            self.know(id, sizes)
        }

        fn know(&mut self, id: NodeId, sizes: &[i64]) -> Arg {
            let sizes = sizes.iter().map(|&it| it.into()).collect();
            self.0.meta_mut(id).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, sizes)));
            Arg::Node(id)
        }
    }

    /// The operators after the pass.
    fn reinplaced(build: impl FnOnce(&mut Build, Arg) -> Arg) -> Vec<String> {
        let mut graph = Build(Graph::new());
        let x = graph.0.placeholder("x");
        let x = graph.know(x, &[2, 3]);
        let result = build(&mut graph, x);
        graph.0.output(result);
        let mut module = GraphModule::new(graph.0);
        let first = reinplace(&mut module, registry()).unwrap();
        assert!(!reinplace(&mut module, registry()).unwrap().modified, "the second run changes something");
        let graph = &module.graph;
        let ops: Vec<String> = graph
            .nodes()
            .filter_map(|it| graph.node(it).target().strip_prefix("torch.ops.aten.").map(str::to_owned))
            .collect();
        assert_eq!(first.modified, ops.iter().any(|it| it.contains("_.")));
        ops
    }

    #[test]
    fn a_chain_writes_into_its_own_tensor_and_never_into_an_input() {
        let ops = reinplaced(|graph, x| {
            let a = graph.call("add.Tensor", vec![x.clone(), Arg::Int(1)], &[2, 3]);
            let b = graph.call("mul.Tensor", vec![a, x], &[2, 3]);
            graph.call("relu.default", vec![b], &[2, 3])
        });
        assert_eq!(ops, ["add.Tensor", "mul_.Tensor", "relu_.default"]);
    }

    #[test]
    fn what_may_give_back_an_input_is_that_input() {
        let train = Arg::Bool(false);
        let ops = reinplaced(|graph, x| {
            let a = graph.call("dropout.default", vec![x.clone(), Arg::Float(0.5), train], &[2, 3]);
            let b = graph.call("type_as.default", vec![x.clone(), x], &[2, 3]);
            let c = graph.call("add.Tensor", vec![a, Arg::Int(1)], &[2, 3]);
            let d = graph.call("mul.Tensor", vec![b, Arg::Int(2)], &[2, 3]);
            Arg::Tuple(vec![c, d])
        });
        assert_eq!(ops, ["dropout.default", "type_as.default", "add.Tensor", "mul.Tensor"]);
    }

    #[test]
    fn a_result_that_lies_otherwise_in_memory_stays() {
        let ops = |strides: [i64; 2], offset: i64| {
            reinplaced(|graph, x| {
                let a = graph.call("add.Tensor", vec![x, Arg::Int(1)], &[2, 3]);
                let sizes = [2, 2].map(|it| Arg::List(vec![Arg::Int(it), Arg::Int(2)])).to_vec();
                let part = graph.call("as_strided.default", [vec![a], sizes].concat(), &[2, 2]);
                let Some(Val::Tensor(meta)) = &mut graph.0.meta_mut(part.as_node().unwrap()).val else {
                    unreachable!()
                };
                meta.strides = strides.map(Into::into).to_vec();
                meta.storage_offset = offset.into();
                graph.call("relu.default", vec![part], &[2, 2])
            })
        };
        let stays = ["add.Tensor", "as_strided.default", "relu.default"];
        // A part of each row, whose result is contiguous, so that a view of it may be taken; windows that overlap; a tensor
        // behind the beginning of its storage, from which `as_strided` counts.
        assert_eq!(ops([3, 1], 0), stays);
        assert_eq!(ops([1, 1], 0), stays);
        assert_eq!(ops([2, 1], 2), stays);
        assert_eq!(ops([2, 1], 0), ["add.Tensor", "as_strided.default", "relu_.default"]);
    }

    #[test]
    fn what_is_used_later_stays_through_views_too() {
        let ops = reinplaced(|graph, x| {
            let a = graph.call("add.Tensor", vec![x, Arg::Int(1)], &[2, 3]);
            let view = graph.call("view.default", vec![a.clone(), Arg::List(vec![Arg::Int(6)])], &[6]);
            let b = graph.call("mul.Tensor", vec![a, Arg::Int(2)], &[2, 3]);
            let c = graph.call("relu.default", vec![view], &[6]);
            Arg::Tuple(vec![b, c])
        });
        assert_eq!(ops, ["add.Tensor", "view.default", "mul.Tensor", "relu_.default"]);
    }

    #[test]
    fn results_of_another_size_and_returned_tensors_stay() {
        let ops = reinplaced(|graph, x| {
            let a = graph.call("add.Tensor", vec![x.clone(), Arg::Int(1)], &[2, 3]);
            let b = graph.call("mul.Tensor", vec![a.clone(), x], &[4, 2, 3]);
            let c = graph.call("relu.default", vec![b.clone()], &[4, 2, 3]);
            Arg::Tuple(vec![b, c])
        });
        assert_eq!(ops, ["add.Tensor", "mul.Tensor", "relu.default"]);
    }

    #[test]
    fn another_view_of_the_same_storage_among_the_arguments_keeps_the_call() {
        let ops = reinplaced(|graph, x| {
            let a = graph.call("add.Tensor", vec![x, Arg::Int(1)], &[2, 3]);
            let view = graph.call("alias.default", vec![a.clone()], &[2, 3]);
            let b = graph.call("mul.Tensor", vec![a, view], &[2, 3]);
            graph.call("add.Tensor", vec![b.clone(), b], &[2, 3])
        });
        assert_eq!(ops, ["add.Tensor", "alias.default", "mul.Tensor", "add_.Tensor"]);
    }
}
