//! Finding the parts of a graph that a backend can run.

mod levels;
mod vertical;

use crate::fuse_by_partitions;
use crate::order::Order;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use tracefx_core::Result;
use tracefx_ir::{Graph, GraphModule, Node, NodeId, Opcode};
use tracefx_ops::Registry;

/// How [`CapabilityBasedPartitioner`] makes partitions.
#[derive(Clone, Debug, Default, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct PartitionerOptions {
    /// Whether partitions with at most one node that computes something stay.
    pub allows_single_node_partition: bool,
    /// The functions that compute nothing, with `torch.ops.aten.view` and `operator.getitem`.
    pub non_compute_ops: Vec<String>,
    /// The functions of which one makes a partition worth it.
    pub allowed_single_node_partition_ops: Vec<String>,
    /// Whether only nodes of which one uses the other come together, and not independent ones.
    pub skip_horizontal_fusion: bool,
}

/// Nodes that are to be one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The number.
    pub id: usize,
    /// The nodes, in the order of the graph, but for items that were taken of results elsewhere and come last.
    pub nodes: Vec<NodeId>,
}

/// Groups the nodes that a backend supports: `torch.fx.passes.infra.partitioner.CapabilityBasedPartitioner`. The partitions
/// are those of torch.fx, where finding them takes time that grows with the cube of their number. Here it is a constant time
/// for each node and use, or with [`PartitionerOptions::skip_horizontal_fusion`] a search between the two nodes at each use.
///
/// ```
/// use tracefx_ir::{Graph, GraphModule};
/// use tracefx_ops::registry;
/// use tracefx_rewrite::{CapabilityBasedPartitioner, PartitionerOptions};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let sin = graph.call_function("torch.sin", vec![x.into()], vec![]);
/// let cos = graph.call_function("torch.cos", vec![sin.into()], vec![]);
/// let neg = graph.call_function("torch.neg", vec![cos.into()], vec![]);
/// graph.output(neg.into());
/// let partitioner = CapabilityBasedPartitioner::new(registry(), PartitionerOptions::default());
/// let partitions = partitioner.propose_partitions(&GraphModule::new(graph), &mut |it| it == sin || it == cos);
/// assert_eq!(partitions[0].nodes, [sin, cos]);
/// ```
#[derive(Clone, Debug)]
pub struct CapabilityBasedPartitioner<'a> {
    registry: &'a Registry,
    options: PartitionerOptions,
}

/// What goes into a partition while they are made: its nodes, the last of the graph first, and its number.
struct Group {
    id: usize,
    nodes: Vec<NodeId>,
}

impl<'r> CapabilityBasedPartitioner<'r> {
    /// A partitioner of calls of these operators.
    pub fn new(registry: &'r Registry, options: PartitionerOptions) -> Self {
        CapabilityBasedPartitioner { registry, options }
    }

    /// The partitions. Inputs and the output of the graph are in none, whatever the backend says of them.
    pub fn propose_partitions(
        &self,
        module: &GraphModule,
        is_supported: &mut dyn FnMut(NodeId) -> bool,
    ) -> Vec<Partition> {
        let (graph, order) = (&module.graph, Order::of(module, self.registry));
        let mut is_supported =
            |it| !matches!(graph.node(it).op(), Opcode::Placeholder | Opcode::Output) && is_supported(it);
        let mut groups = match self.options.skip_horizontal_fusion {
            false => levels::groups(graph, &order, &mut is_supported),
            true => vertical::groups(graph, &order, &mut is_supported),
        };
        groups.sort_by_key(|it| it.id);
        let partitions = groups.into_iter().map(|Group { id, mut nodes }| {
            nodes.reverse();
            Partition { id, nodes }
        });
        let mut partitions: Vec<Partition> = partitions.collect();
        reassign_items(graph, &mut partitions);
        if !self.options.allows_single_node_partition {
            let non_compute = self.non_compute_ops(&["torch.ops.aten.view", "operator.getitem"]);
            partitions.retain(|it| self.is_worth_it(graph, it, &non_compute));
        }
        partitions.retain(|it| !it.nodes.is_empty());
        partitions
    }

    /// Makes a call of a module of each partition.
    ///
    /// # Errors
    /// Those of [`fuse_by_partitions`].
    pub fn fuse_partitions(
        &self,
        module: &mut GraphModule,
        partitions: &[Partition],
        prefix: &str,
    ) -> Result<Vec<String>> {
        let nodes: Vec<Vec<NodeId>> = partitions.iter().map(|it| it.nodes.clone()).collect();
        fuse_by_partitions(module, self.registry, &nodes, prefix, false)
    }

    /// Finds the partitions and makes a call of a module of each.
    ///
    /// # Errors
    /// Those of [`fuse_by_partitions`].
    pub fn partition_and_fuse(
        &self,
        module: &mut GraphModule,
        is_supported: &mut dyn FnMut(NodeId) -> bool,
        prefix: &str,
    ) -> Result<Vec<String>> {
        let partitions = self.propose_partitions(module, is_supported);
        self.fuse_partitions(module, &partitions, prefix)
    }

    /// Takes nodes that compute nothing out of the ends of partitions: those of [`PartitionerOptions::non_compute_ops`] whose
    /// inputs, or whose users, are all such nodes or outside.
    pub fn remove_bookend_non_compute_ops(&self, module: &GraphModule, partitions: &mut [Partition]) {
        let (graph, order) = (&module.graph, Order::of(module, self.registry));
        let non_compute = self.non_compute_ops(&[]);
        for partition in partitions {
            // True of the nodes that are at the end so far.
            let mut is_end: FxHashMap<NodeId, bool> = partition.nodes.iter().map(|&it| (it, false)).collect();
            let mut sorted = partition.nodes.clone();
            sorted.sort_by(|&a, &b| graph.compare(a, b));
            let mut removed: FxHashSet<NodeId> = FxHashSet::default();
            for &id in &sorted {
                let node = graph.node(id);
                let inputs = node.all_input_nodes();
                let mut before = inputs.iter().chain(order.leaders(id));
                if is_one_of(node, &non_compute) && before.all(|it| is_end.get(it).copied().unwrap_or(true)) {
                    is_end.insert(id, true);
                    removed.insert(id);
                }
            }
            is_end.values_mut().for_each(|it| *it = false);
            for &id in sorted.iter().rev() {
                let is_last = order.successors(graph, id).all(|it| is_end.get(&it).copied().unwrap_or(true));
                if is_one_of(graph.node(id), &non_compute) && is_last {
                    is_end.insert(id, true);
                    removed.insert(id);
                }
            }
            partition.nodes.retain(|it| !removed.contains(it));
        }
    }

    /// The functions that compute nothing, under our names: Python's module of operators calls itself `_operator`.
    fn non_compute_ops<'a>(&'a self, defaults: &[&'a str]) -> FxHashSet<&'a str> {
        names(&self.options.non_compute_ops).chain(defaults.iter().copied()).collect()
    }

    fn is_worth_it(&self, graph: &Graph, partition: &Partition, non_compute: &FxHashSet<&str>) -> bool {
        let allowed: FxHashSet<&str> = names(&self.options.allowed_single_node_partition_ops).collect();
        let functions = partition.nodes.iter().map(|&it| graph.node(it)).filter(|it| it.op() == Opcode::CallFunction);
        let weight = |it: &Node| {
            usize::from(!non_compute.contains(&**it.target())) + usize::from(allowed.contains(&**it.target()))
        };
        functions.map(weight).sum::<usize>() > 1
    }
}

/// Names of functions as PyTorch qualifies them, as they are here: Python's `operator` calls itself `_operator`.
fn names(qualified: &[String]) -> impl Iterator<Item = &str> {
    qualified.iter().map(|it| if it.starts_with("_operator.") { &it[1..] } else { it.as_str() })
}

fn is_one_of(node: &Node, functions: &FxHashSet<&str>) -> bool {
    node.op() == Opcode::CallFunction && functions.contains(&**node.target())
}

fn is_getitem(node: &Node) -> bool {
    node.op() == Opcode::CallFunction && &**node.target() == "operator.getitem"
}

/// Moves the nodes that take items of a value to where the value is made, so that a tuple never leaves a partition.
fn reassign_items(graph: &Graph, partitions: &mut [Partition]) {
    let mut part: Vec<Option<usize>> = vec![None; graph.id_bound()];
    for (index, partition) in partitions.iter().enumerate() {
        partition.nodes.iter().for_each(|it| part[it.index()] = Some(index));
    }
    let mut moved = Vec::new();
    for id in graph.nodes() {
        if !graph.users(id).iter().all(|it| is_getitem(graph.node(it))) {
            continue;
        }
        for user in graph.users(id).iter().filter(|it| part[it.index()] != part[id.index()]).collect::<Vec<_>>() {
            part[user.index()] = part[id.index()];
            moved.push(user);
        }
    }
    if moved.is_empty() {
        return;
    }
    let is_moved: FxHashSet<NodeId> = moved.iter().copied().collect();
    partitions.iter_mut().for_each(|it| it.nodes.retain(|node| !is_moved.contains(node)));
    for node in moved {
        if let Some(index) = part[node.index()] {
            partitions[index].nodes.push(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ir::Arg;
    use tracefx_ops::registry;

    /// Functions whose names say what they use: `("b", "xa")` uses the nodes `x` and `a`. Those in capitals are supported.
    #[track_caller]
    fn check(functions: &[(&str, &str)], options: PartitionerOptions, expected: &[&str]) {
        let mut graph = Graph::new();
        let mut nodes = vec![("x", graph.placeholder("x"))];
        for (name, inputs) in functions {
            let input = |it: char| nodes.iter().find(|(name, _)| name.starts_with(it)).expect("a node").1;
            let args = inputs.chars().map(|it| Arg::Node(input(it))).collect();
            nodes.push((name, graph.call_function(&format!("torch.{name}"), args, vec![])));
        }
        let name = |it: &NodeId| nodes.iter().find(|(_, id)| id == it).expect("a node").0;
        let partitioner = CapabilityBasedPartitioner::new(registry(), options);
        let module = GraphModule::new(graph);
        let partitions = partitioner.propose_partitions(&module, &mut |it| name(&it).starts_with(char::is_uppercase));
        let got: Vec<String> = partitions.iter().map(|it| it.nodes.iter().map(name).collect()).collect();
        assert_eq!(got, expected);
    }

    fn single() -> PartitionerOptions {
        PartitionerOptions { allows_single_node_partition: true, ..PartitionerOptions::default() }
    }

    #[test]
    fn what_is_supported_comes_together_unless_a_path_leads_out_and_back() {
        check(&[("A", "x"), ("B", "A"), ("c", "B"), ("D", "cA")], single(), &["D", "AB"]);
        check(&[("A", "x"), ("B", "x"), ("C", "AB")], single(), &["ABC"]);
    }

    #[test]
    fn independent_nodes_come_together_unless_that_is_turned_off() {
        let graph = [("A", "x"), ("b", "x"), ("C", "b")];
        check(&graph, single(), &["AC"]);
        check(&graph, PartitionerOptions { skip_horizontal_fusion: true, ..single() }, &["C", "A"]);
    }

    #[test]
    fn only_what_uses_each_other_comes_together_where_independent_nodes_do_not() {
        let options = PartitionerOptions { skip_horizontal_fusion: true, ..single() };
        check(&[("A", "x"), ("B", "A"), ("c", "A"), ("D", "Bc")], options, &["BD", "A"]);
    }

    #[test]
    fn single_nodes_are_left_out_unless_they_are_worth_it() {
        let graph = [("A", "x"), ("b", "A"), ("C", "b"), ("D", "C")];
        check(&graph, PartitionerOptions::default(), &["CD"]);
        let options = PartitionerOptions {
            allowed_single_node_partition_ops: vec!["torch.A".into()],
            ..PartitionerOptions::default()
        };
        check(&graph, options, &["CD", "A"]);
        let options = PartitionerOptions { non_compute_ops: vec!["torch.D".into()], ..PartitionerOptions::default() };
        check(&graph, options, &[]);
    }

    #[test]
    fn nodes_that_compute_nothing_leave_the_ends_of_partitions() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let mut call = |target: &str, input: NodeId| graph.call_function(target, vec![input.into()], vec![]);
        let a = call("view", x);
        let b = call("view", a);
        let c = call("sin", b);
        let d = call("view", c);
        let e = call("cos", d);
        let f = call("view", e);
        let options = PartitionerOptions { non_compute_ops: vec!["view".into()], ..PartitionerOptions::default() };
        let mut partitions = [Partition { id: 0, nodes: vec![a, b, c, d, e, f] }];
        CapabilityBasedPartitioner::new(registry(), options)
            .remove_bookend_non_compute_ops(&GraphModule::new(graph), &mut partitions);
        assert_eq!(partitions[0].nodes, [c, d, e]);
    }

    #[test]
    fn a_long_chain_takes_no_longer_per_node_than_a_short_one() {
        let mut graph = Graph::new();
        let mut last = graph.placeholder("x");
        for _ in 0..100_000 {
            last = graph.call_function("torch.neg", vec![last.into()], vec![]);
        }
        graph.output(last.into());
        let module = GraphModule::new(graph);
        for skip_horizontal_fusion in [false, true] {
            let partitioner =
                CapabilityBasedPartitioner::new(registry(), PartitionerOptions { skip_horizontal_fusion, ..single() });
            let n = partitioner.propose_partitions(&module, &mut |it| it.index() % 5 != 0).len();
            assert_eq!(n, 20_000);
        }
    }
}
