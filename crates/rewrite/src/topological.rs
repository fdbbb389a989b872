//! Topological sorts: every node after the nodes that it uses.
//!
//! Graphs are sorted in place, so that their nodes keep their ids; the users of each node then stand in the order of the
//! graph, as in the new graph that FX would make.

use crate::effects::AliasAnalysis;
use crate::order::{Order, is_sorted};
use crate::switches::is_switch;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Graph, GraphModule, NodeId, Opcode};
use tracefx_ops::Registry;

/// What runs as soon as it can, so that assertions about sizes come before the operators that need them. Sorted.
pub const PRIORITIZED: &[&str] = &[
    "operator.add",
    "operator.eq",
    "operator.floordiv",
    "operator.ge",
    "operator.gt",
    "operator.le",
    "operator.lt",
    "operator.mod",
    "operator.mul",
    "operator.ne",
    "operator.sub",
    "operator.truediv",
    "torch.ops.aten._assert_async.msg",
    "torch.ops.aten._assert_scalar.default",
    "torch.ops.aten.scalar_tensor.default",
    "torch.ops.aten.sym_constrain_range.default",
    "torch.ops.aten.sym_constrain_range_for_size.default",
];

/// Sorts the graph as `torch.fx.passes.tools_common.legalize_graph` does: breadth first from the nodes that use nothing,
/// with arithmetic of sizes ahead. The order of a graph that is sorted already may change; [`stable_topological_sort`]
/// keeps it. Beyond torch.fx, what writes to what it takes, and what switches autocast or gradients, stays where it is
/// between the others.
///
/// # Errors
/// `GraphInvalid` where nodes use each other in a circle.
pub fn legalize_graph(module: &mut GraphModule, registry: &Registry) -> Result<()> {
    let writes = AliasAnalysis::of(module, registry);
    let stays = |graph: &Graph, it: NodeId| {
        writes.as_ref().is_some_and(|writes| writes.is_writer(it)) || is_switch(graph.node(it))
    };
    let has_fixed = module.graph.nodes().any(|it| stays(&module.graph, it));
    if has_fixed && !is_sorted(&module.graph) {
        stable_topological_sort(&mut module.graph)?;
    }
    let graph = &mut module.graph;
    let all: Vec<NodeId> = graph.nodes().collect();
    let mut sorted = Vec::with_capacity(all.len());
    let mut waiting = vec![OUTSIDE; graph.id_bound()];
    for between in all.chunk_by(|first, second| !has_fixed || (!stays(graph, *first) && !stays(graph, *second))) {
        sort_breadth_first(graph, between, &mut waiting, &mut sorted);
    }
    check_sorted(graph, &sorted, &all)?;
    graph.reorder(&sorted)
}

/// Instead of a number of inputs that are not there yet, for a node that is not among those that are sorted.
const OUTSIDE: usize = usize::MAX;

/// Sorts some nodes, which need nothing but each other and what is sorted. Those that come later wait for nothing yet.
fn sort_breadth_first(graph: &Graph, nodes: &[NodeId], waiting: &mut [usize], sorted: &mut Vec<NodeId>) {
    nodes.iter().for_each(|it| waiting[it.index()] = 0);
    for user in nodes.iter().flat_map(|it| graph.users(*it).iter()) {
        if waiting[user.index()] != OUTSIDE {
            waiting[user.index()] += 1;
        }
    }
    let mut queue: VecDeque<NodeId> = nodes.iter().copied().filter(|it| waiting[it.index()] == 0).collect();
    while let Some(node) = queue.pop_front() {
        sorted.push(node);
        for user in graph.users(node).iter() {
            let left = &mut waiting[user.index()];
            if *left == OUTSIDE {
                continue;
            }
            *left -= 1;
            if *left == 0 {
                let it = graph.node(user);
                if it.op() == Opcode::CallFunction && PRIORITIZED.binary_search(&&**it.target()).is_ok() {
                    queue.push_front(user);
                } else {
                    queue.push_back(user);
                }
            }
        }
    }
}

/// Sorts the graph and keeps its order where that is sorted: `torch.fx.passes.tools_common.stable_topological_sort`. Of
/// the nodes whose inputs are there, the one that stood first comes next.
///
/// # Errors
/// `GraphInvalid` where nodes use each other in a circle.
pub fn stable_topological_sort(graph: &mut Graph) -> Result<()> {
    let nodes: Vec<NodeId> = graph.nodes().collect();
    let sorted = topo_sort(graph, &nodes)?;
    graph.reorder(&sorted)
}

/// Some nodes of a graph, each after those that it uses and else in the order in which they are given:
/// `torch.fx.passes.utils.fuser_utils.topo_sort`.
///
/// # Errors
/// `GraphInvalid` where they use each other in a circle.
pub fn topo_sort(graph: &Graph, nodes: &[NodeId]) -> Result<Vec<NodeId>> {
    sort_within(graph, nodes, &Order::default())
}

/// As [`topo_sort`], within an order that the nodes must keep.
pub(crate) fn sort_within(graph: &Graph, nodes: &[NodeId], order: &Order) -> Result<Vec<NodeId>> {
    let ranks: FxHashMap<NodeId, usize> = nodes.iter().enumerate().map(|(rank, &node)| (node, rank)).collect();
    let mut waiting = vec![0usize; nodes.len()];
    for node in nodes {
        for user in order.successors(graph, *node) {
            if let Some(&rank) = ranks.get(&user) {
                waiting[rank] += 1;
            }
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..nodes.len()).filter(|&rank| waiting[rank] == 0).map(Reverse).collect();
    let mut sorted = Vec::with_capacity(nodes.len());
    while let Some(Reverse(rank)) = ready.pop() {
        sorted.push(nodes[rank]);
        for user in order.successors(graph, nodes[rank]) {
            if let Some(&rank) = ranks.get(&user) {
                waiting[rank] -= 1;
                if waiting[rank] == 0 {
                    ready.push(Reverse(rank));
                }
            }
        }
    }
    check_sorted(graph, &sorted, nodes)?;
    Ok(sorted)
}

/// Refuses a sort that left nodes out: they wait for each other.
fn check_sorted(graph: &Graph, sorted: &[NodeId], all: &[NodeId]) -> Result<()> {
    if sorted.len() == all.len() {
        return Ok(());
    }
    let is_sorted: FxHashSet<NodeId> = sorted.iter().copied().collect();
    let stuck: Vec<&str> =
        all.iter().filter(|it| !is_sorted.contains(it)).map(|&it| &**graph.node(it).name()).collect();
    let what = format!("Input graph has cycles, unable to add [{}]", stuck.join(", "));
    Err(Diagnostic::new(Code::GraphInvalid, what)
        .node(stuck[0])
        .help("these nodes use each other: give one of them other args"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ir::Arg;

    fn names(module: &GraphModule) -> Vec<&str> {
        module.graph.nodes().map(|it| &**module.graph.node(it).name()).collect()
    }

    /// `x`, `neg`, `add` of an int, `relu`, all of `x`, and an output of the last.
    fn fan() -> GraphModule {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        graph.call_function("torch.neg", vec![x.into()], vec![]);
        let add = graph.call_function("operator.add", vec![x.into(), Arg::Int(1)], vec![]);
        let relu = graph.call_function("torch.relu", vec![add.into()], vec![]);
        graph.output(relu.into());
        GraphModule::new(graph)
    }

    #[test]
    fn a_stable_sort_of_a_sorted_graph_changes_nothing() {
        let mut module = fan();
        stable_topological_sort(&mut module.graph).unwrap();
        assert_eq!(names(&module), ["x", "neg", "add", "relu", "output"]);
    }

    #[test]
    fn legalizing_puts_arithmetic_of_sizes_ahead() {
        let mut module = fan();
        legalize_graph(&mut module, tracefx_ops::registry()).unwrap();
        assert_eq!(names(&module), ["x", "add", "neg", "relu", "output"]);
    }

    /// Without the write and the switch, `sin` would come last.
    #[test]
    fn legalizing_leaves_writes_and_switches_in_their_places() {
        let sorted = |is_written: bool| {
            let mut graph = Graph::new();
            let x = graph.placeholder("x");
            let neg = graph.call_function("torch.neg", vec![x.into()], vec![]);
            graph.call_function("torch.sin", vec![neg.into()], vec![]);
            if is_written {
                graph.call_function("torch.relu_", vec![x.into()], vec![]);
                graph.call_function("torch._C._set_grad_enabled", vec![Arg::Bool(false)], vec![]);
            }
            let cos = graph.call_function("torch.cos", vec![x.into()], vec![]);
            graph.output(cos.into());
            let mut module = GraphModule::new(graph);
            legalize_graph(&mut module, tracefx_ops::registry()).unwrap();
            names(&module).join(" ")
        };
        assert_eq!(sorted(false), "x neg cos sin output");
        assert_eq!(sorted(true), "x neg sin relu_ _set_grad_enabled cos output");
    }

    #[test]
    fn nodes_are_sorted_in_the_order_in_which_they_are_given() {
        let GraphModule { graph, .. } = fan();
        let [x, neg, add, relu, _] = <[NodeId; 5]>::try_from(graph.nodes().collect::<Vec<_>>()).unwrap();
        assert_eq!(topo_sort(&graph, &[relu, neg, add, x]).unwrap(), [x, neg, add, relu]);
        assert_eq!(topo_sort(&graph, &[relu, neg]).unwrap(), [relu, neg]);
    }

    #[test]
    fn a_circle_is_refused_and_named() {
        let mut module = fan();
        let [_, _, add, relu, _] = <[NodeId; 5]>::try_from(module.graph.nodes().collect::<Vec<_>>()).unwrap();
        module.graph.set_args(add, vec![relu.into()]).unwrap();
        for sorted in [legalize_graph(&mut module, tracefx_ops::registry()), stable_topological_sort(&mut module.graph)]
        {
            let problem = sorted.unwrap_err();
            assert_eq!(problem.message(), "Input graph has cycles, unable to add [add, relu, output]");
        }
    }
}
