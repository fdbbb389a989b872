//! What must come after what. Most calls only come after what they use; where something writes, what it writes to is read
//! before or after it, as in the graph.

use crate::effects::AliasAnalysis;
use crate::switches::is_switch;
use rustc_hash::{FxHashMap, FxHashSet};
use tracefx_ir::{Graph, GraphModule, NodeId, Opcode};
use tracefx_ops::Registry;

/// The order that the calls of a graph must keep beside that of their values. PyTorch's passes do not keep it.
#[derive(Debug, Default)]
pub(crate) struct Order {
    followers: FxHashMap<NodeId, Vec<NodeId>>,
    leaders: FxHashMap<NodeId, Vec<NodeId>>,
}

impl Order {
    /// That of a module's graph, which is empty where nothing writes and nothing is switched. A graph that is not sorted does
    /// not say what comes before a write.
    pub(crate) fn of(module: &GraphModule, registry: &Registry) -> Self {
        let graph = &module.graph;
        let mut pairs = AliasAnalysis::of(module, registry).map(|it| it.orders(graph, registry)).unwrap_or_default();
        pairs.extend(around_switches(graph));
        if pairs.is_empty() || !is_sorted(graph) {
            return Order::default();
        }
        Order::from_pairs(pairs.into_iter())
    }

    fn from_pairs(pairs: impl Iterator<Item = (NodeId, NodeId)>) -> Self {
        let mut res = Order::default();
        for (first, second) in pairs {
            res.followers.entry(first).or_default().push(second);
            res.leaders.entry(second).or_default().push(first);
        }
        res
    }

    /// The same of calls that stand for some of these.
    pub(crate) fn renamed(&self, now: &dyn Fn(NodeId) -> NodeId) -> Self {
        let pairs = self.pairs().map(|(first, second)| (now(first), now(second)));
        Order::from_pairs(pairs.filter(|(first, second)| first != second))
    }

    /// What must come after a node: its users, and those that need not use it. Some are given twice.
    pub(crate) fn successors<'a>(&'a self, graph: &'a Graph, node: NodeId) -> impl Iterator<Item = NodeId> + 'a {
        graph.users(node).iter().chain(self.followers(node).iter().copied())
    }

    /// What must come after a node although it need not use it.
    pub(crate) fn followers(&self, node: NodeId) -> &[NodeId] {
        self.followers.get(&node).map_or(&[], Vec::as_slice)
    }

    /// What must come before a node although the node need not use it.
    pub(crate) fn leaders(&self, node: NodeId) -> &[NodeId] {
        self.leaders.get(&node).map_or(&[], Vec::as_slice)
    }

    /// All pairs of calls of which the first must come before the second.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        self.followers.iter().flat_map(|(&first, all)| all.iter().map(move |&second| (first, second)))
    }
}

/// Whether every node stands after those that it uses.
pub(crate) fn is_sorted(graph: &Graph) -> bool {
    let mut seen = FxHashSet::default();
    graph.nodes().all(|it| {
        seen.insert(it);
        let mut is_after = true;
        graph.node(it).for_each_input(&mut |input| is_after &= seen.contains(&input));
        is_after
    })
}

/// A switch comes after all calls since the one before it, and before all calls until the next.
fn around_switches(graph: &Graph) -> Vec<(NodeId, NodeId)> {
    let mut res = Vec::new();
    let mut last = None;
    let mut since: Vec<NodeId> = Vec::new();
    if !graph.nodes().any(|it| is_switch(graph.node(it))) {
        return res;
    }
    for id in graph.nodes() {
        let node = graph.node(id);
        if !matches!(node.op(), Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule) {
            continue;
        }
        res.extend(last.map(|it| (it, id)));
        if is_switch(node) {
            res.extend(since.drain(..).map(|it| (it, id)));
            last = Some(id);
        } else {
            since.push(id);
        }
    }
    res
}
