//! Which nodes of an accelerator must stay together.

use super::{calls, is_call};
use crate::order::Order;
use rustc_hash::FxHashSet;
use tracefx_ir::{Graph, GraphModule, NodeId};
use tracefx_ops::Registry;

/// The groups of nodes for the accelerator that must stay together, since they pass each other values that are no tensors:
/// `torch.fx.passes.tools_common.FxNetAccFusionsFinder`. A group that has a node for the CPU goes there as a whole.
///
/// A value that is no tensor ties its node to all its users, and what lies on a path between nodes of a group belongs to it.
/// With each tied set as one node, such a path is a circle, so the groups are the strongly connected components; torch.fx
/// searches for the paths again for each node that a group gets.
pub fn find_acc_fusions(
    module: &GraphModule,
    registry: &Registry,
    acc_nodes: &mut FxHashSet<NodeId>,
    is_tensor: &dyn Fn(NodeId) -> bool,
) -> Vec<Vec<NodeId>> {
    find(&module.graph, &Order::of(module, registry), acc_nodes, is_tensor)
}

/// As [`find_acc_fusions`], where the order is known.
pub(super) fn find(
    graph: &Graph,
    order: &Order,
    acc_nodes: &mut FxHashSet<NodeId>,
    is_tensor: &dyn Fn(NodeId) -> bool,
) -> Vec<Vec<NodeId>> {
    let units = tied_units(graph, acc_nodes, is_tensor);
    let mut res = Vec::new();
    for component in strong_components(graph, order, &units) {
        if component.len() < 2 {
            continue;
        }
        if component.iter().all(|it| acc_nodes.contains(it)) {
            res.push(component);
        } else {
            for it in &component {
                acc_nodes.remove(it);
            }
        }
    }
    res
}

/// For each node, by its index, a node that stands for all that are tied to it.
fn tied_units(graph: &Graph, acc_nodes: &FxHashSet<NodeId>, is_tensor: &dyn Fn(NodeId) -> bool) -> Vec<usize> {
    let mut parents: Vec<usize> = (0..graph.id_bound()).collect();
    for node in calls(graph).filter(|&it| !is_tensor(it)) {
        for user in graph.users(node).iter().filter(|&it| is_call(graph.node(it))) {
            let (a, b) = (unit_of(&mut parents, node.index()), unit_of(&mut parents, user.index()));
            parents[a] = b;
        }
    }
    // Nodes for the CPU alone are not tied: they may be apart.
    let mut has_acc = vec![false; parents.len()];
    for node in calls(graph).filter(|it| acc_nodes.contains(it) && !is_tensor(*it)) {
        has_acc[unit_of(&mut parents, node.index())] = true;
    }
    (0..parents.len())
        .map(|it| {
            let unit = unit_of(&mut parents, it);
            if has_acc[unit] { unit } else { it }
        })
        .collect()
}

fn unit_of(parents: &mut [usize], mut node: usize) -> usize {
    while parents[node] != node {
        parents[node] = parents[parents[node]];
        node = parents[node];
    }
    node
}

/// The strongly connected components of the graph in which each unit is one node, by their nodes in order (Tarjan, "Depth-first
/// search and linear graph algorithms", 1972, with a stack of its own, since graphs are deep).
fn strong_components(graph: &Graph, edges: &Order, units: &[usize]) -> Vec<Vec<NodeId>> {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
    let mut members: Vec<Vec<NodeId>> = vec![Vec::new(); units.len()];
    for node in calls(graph) {
        let unit = units[node.index()];
        members[unit].push(node);
        let others = edges.successors(graph, node).filter(|&it| is_call(graph.node(it))).map(|it| units[it.index()]);
        users[unit].extend(others.filter(|&it| it != unit));
    }
    const UNSEEN: usize = usize::MAX;
    let mut order = vec![UNSEEN; units.len()];
    let mut low = vec![UNSEEN; units.len()];
    let mut is_open = vec![false; units.len()];
    let mut next = 0;
    let mut open: Vec<usize> = Vec::new();
    let mut res = Vec::new();
    let roots: Vec<usize> = (0..units.len()).filter(|&it| !members[it].is_empty()).collect();
    for root in roots {
        // Units on the path of the search, each with the number of its users that were followed.
        let mut path: Vec<(usize, usize)> = Vec::new();
        if order[root] == UNSEEN {
            path.push((root, 0));
        }
        while let Some((unit, followed)) = path.last_mut() {
            let unit = *unit;
            if *followed == 0 && order[unit] == UNSEEN {
                (order[unit], low[unit], is_open[unit]) = (next, next, true);
                next += 1;
                open.push(unit);
            }
            if let Some(&user) = users[unit].get(*followed) {
                *followed += 1;
                if order[user] == UNSEEN {
                    path.push((user, 0));
                } else if is_open[user] {
                    low[unit] = low[unit].min(order[user]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[unit]);
            }
            if low[unit] == order[unit] {
                let at = open.iter().rposition(|&it| it == unit).expect("open units are on the stack");
                let mut component: Vec<NodeId> = Vec::new();
                for it in open.drain(at..) {
                    is_open[it] = false;
                    component.append(&mut members[it]);
                }
                component.sort_by(|&a, &b| graph.compare(a, b));
                res.push(component);
            }
        }
    }
    res
}
