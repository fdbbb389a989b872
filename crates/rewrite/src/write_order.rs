//! Which writes come between two places of a graph. A pass leaves out what a write could change, and not what one comes
//! before or after.

use crate::effects::AliasAnalysis;
use crate::switches::is_switch;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use tracefx_ir::{Graph, GraphModule, NodeId};
use tracefx_ops::Registry;

/// The writes and switches of a graph by their places. Nodes that are put in later use nothing that is written to.
pub(crate) struct WriteOrder {
    writes: Option<AliasAnalysis>,
    /// The place of each node, by its index.
    places: Vec<usize>,
    /// The writers of each written alias set, in order.
    writers: FxHashMap<usize, Vec<Placed>>,
    switches: Vec<Placed>,
}

/// A node and its place.
type Placed = (usize, NodeId);

impl WriteOrder {
    /// That of a module's graph.
    pub(crate) fn of(module: &GraphModule, registry: &Registry) -> WriteOrder {
        let graph = &module.graph;
        let writes = AliasAnalysis::of(module, registry);
        let mut places = vec![0; graph.id_bound()];
        let mut writers: FxHashMap<usize, Vec<Placed>> = FxHashMap::default();
        let mut switches = Vec::new();
        for (place, id) in graph.nodes().enumerate() {
            places[id.index()] = place;
            if is_switch(graph.node(id)) {
                switches.push((place, id));
            }
            for set in writes.iter().filter(|it| it.is_writer(id)).flat_map(|it| it.used(graph, id)) {
                writers.entry(set).or_default().push((place, id));
            }
        }
        WriteOrder { writes, places, writers, switches }
    }

    /// Whether a node writes to something.
    pub(crate) fn is_writer(&self, node: NodeId) -> bool {
        self.writes.as_ref().is_some_and(|it| it.is_writer(node))
    }

    /// Whether something writes to the memory of this value at any time.
    pub(crate) fn is_written(&self, node: NodeId) -> bool {
        self.writers_of(node).next().is_some()
    }

    /// What writes to the memory of this value, in order.
    pub(crate) fn writers_of(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.alias_set_of(node).and_then(|it| self.writers.get(&it)).into_iter().flatten().map(|&(_, it)| it)
    }

    /// Whether what this node takes is written to before it.
    pub(crate) fn is_written_before(&self, graph: &Graph, node: NodeId) -> bool {
        self.last_write(graph, node).is_some()
    }

    /// The last write before a node to what it takes.
    pub(crate) fn last_write(&self, graph: &Graph, node: NodeId) -> Option<NodeId> {
        let mut res: Option<Placed> = None;
        self.for_each_read(graph, node, &mut |all| {
            let n_before = all.partition_point(|it| it.0 < self.places[node.index()]);
            res = res.max(n_before.checked_sub(1).map(|it| all[it]));
        });
        res.map(|it| it.1)
    }

    /// Whether something writes to the memory of this value once it is there.
    pub(crate) fn is_written_after(&self, node: NodeId) -> bool {
        let Some(all) = self.alias_set_of(node).and_then(|it| self.writers.get(&it)) else { return false };
        all.last().is_some_and(|it| it.0 >= self.places[node.index()])
    }

    /// The first node between these two that keeps the first from standing where the second does: it writes to what that
    /// takes, or switches how it computes.
    pub(crate) fn between(&self, graph: &Graph, node: NodeId, until: NodeId) -> Option<NodeId> {
        let places = self.place_of(node)? + 1..self.place_of(until)?;
        let first_of = |all: &[Placed], places: &Range<usize>| {
            let first = all.get(all.partition_point(|it| it.0 < places.start)).copied();
            first.filter(|it| it.0 < places.end)
        };
        let mut res = first_of(&self.switches, &places);
        self.for_each_read(graph, node, &mut |all| res = [res, first_of(all, &places)].into_iter().flatten().min());
        res.map(|it| it.1)
    }

    /// As [`AliasAnalysis::sources`].
    pub(crate) fn sources(&self, graph: &Graph, registry: &Registry) -> FxHashSet<NodeId> {
        self.writes.as_ref().map(|it| it.sources(graph, registry)).unwrap_or_default()
    }

    /// A node stands where another does, from now on.
    pub(crate) fn moved(&mut self, node: NodeId, to: NodeId) {
        if self.places.len() <= node.index() {
            self.places.resize(node.index() + 1, usize::MAX);
        }
        self.places[node.index()] = self.places[to.index()];
    }

    fn place_of(&self, node: NodeId) -> Option<usize> {
        self.places.get(node.index()).copied().filter(|it| *it != usize::MAX)
    }

    fn alias_set_of(&self, node: NodeId) -> Option<usize> {
        self.writes.as_ref()?.alias_set_of(node)
    }

    /// The writers of each alias set that a node takes something of.
    fn for_each_read(&self, graph: &Graph, node: NodeId, visit: &mut dyn FnMut(&[Placed])) {
        graph.node(node).for_each_input(&mut |it| {
            if let Some(all) = self.alias_set_of(it).and_then(|it| self.writers.get(&it)) {
                visit(all);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ir::Arg;
    use tracefx_ops::registry;

    #[test]
    fn what_comes_between_is_told_from_what_comes_before_and_after() {
        let mut graph = Graph::new();
        let [x, y] = ["x", "y"].map(|it| graph.placeholder(it));
        let call = |graph: &mut Graph, name: &str, arg: NodeId| {
            graph.call_function(&format!("torch.ops.aten.{name}.default"), vec![Arg::Node(arg)], vec![])
        };
        let first = call(&mut graph, "relu_", x);
        let view = call(&mut graph, "t", x);
        let sin = call(&mut graph, "sin", view);
        let other = call(&mut graph, "relu_", y);
        let cos = call(&mut graph, "cos", y);
        let second = call(&mut graph, "relu_", x);
        let neg = call(&mut graph, "neg", sin);
        let module = GraphModule::new(graph);
        let (order, graph) = (WriteOrder::of(&module, registry()), &module.graph);
        assert_eq!(order.between(graph, sin, cos), None);
        assert_eq!(order.between(graph, sin, neg), Some(second));
        assert_eq!(order.between(graph, view, neg), Some(second));
        assert_eq!([sin, cos, neg].map(|it| order.last_write(graph, it)), [Some(first), Some(other), None]);
        assert_eq!([x, view, y, sin].map(|it| order.is_written_after(it)), [true, true, true, false]);
        assert!(!order.is_written(sin) && order.is_written(view));
    }

    #[test]
    fn a_switch_comes_between() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let sin = graph.call_function("torch.ops.aten.sin.default", vec![x.into()], vec![]);
        let switch = graph.call_function("torch._C._set_grad_enabled", vec![Arg::Bool(false)], vec![]);
        let cos = graph.call_function("torch.ops.aten.cos.default", vec![sin.into()], vec![]);
        let module = GraphModule::new(graph);
        let order = WriteOrder::of(&module, registry());
        assert_eq!(order.between(&module.graph, sin, cos), Some(switch));
        assert_eq!(order.between(&module.graph, cos, cos), None);
    }
}
