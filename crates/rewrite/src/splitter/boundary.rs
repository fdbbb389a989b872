//! Which values that are no tensors are made in the part that uses them.

use super::Subgraph;
use crate::order::Order;
use std::collections::VecDeque;
use tracefx_ir::{Graph, GraphModule, NodeId};
use tracefx_ops::Registry;

/// To which other parts a node leads on paths inside its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Nowhere,
    One(usize),
    Many,
}

impl Reach {
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Reach::Nowhere, it) | (it, Reach::Nowhere) => it,
            (Reach::One(first), Reach::One(second)) if first == second => self,
            (Reach::One(_) | Reach::Many, Reach::One(_) | Reach::Many) => Reach::Many,
        }
    }
}

/// Moves values that are no tensors out of parts for the accelerator, into the part that uses them, with all that depends on
/// them: `torch.fx.passes.split_utils.move_non_tensor_nodes_on_boundary`. What leads to several other parts stays. What moves
/// comes last in its new part, in the order of the graph. Beyond torch.fx, what a write or a switch of autocast or gradients
/// keeps in its place stays, too.
///
/// torch.fx walks from each node again; here each node knows where it leads, which changes at most twice while a part is
/// looked at, so that each part takes time linear in its nodes and uses.
pub fn move_non_tensor_nodes_on_boundary(
    module: &GraphModule,
    registry: &Registry,
    subgraphs: &mut [Subgraph],
    is_tensor: &dyn Fn(NodeId) -> bool,
) {
    move_nodes(&module.graph, &Order::of(module, registry), subgraphs, is_tensor);
}

/// As [`move_non_tensor_nodes_on_boundary`], where the order is known.
pub(super) fn move_nodes(graph: &Graph, order: &Order, subgraphs: &mut [Subgraph], is_tensor: &dyn Fn(NodeId) -> bool) {
    let mut rank = vec![0_usize; graph.id_bound()];
    graph.nodes().enumerate().for_each(|(at, it)| rank[it.index()] = at);
    let mut part_of: Vec<Option<usize>> = vec![None; graph.id_bound()];
    for (part, subgraph) in subgraphs.iter().enumerate() {
        subgraph.nodes.iter().for_each(|it| part_of[it.index()] = Some(part));
    }
    let mut reach = vec![Reach::Nowhere; graph.id_bound()];
    let mut is_done = vec![false; graph.id_bound()];
    for here in (0..subgraphs.len()).filter(|&it| subgraphs[it].is_acc).collect::<Vec<_>>() {
        let mut nodes = subgraphs[here].nodes.clone();
        nodes.sort_unstable_by_key(|it| rank[it.index()]);
        for &node in nodes.iter().rev() {
            is_done[node.index()] = false;
            let leads = graph.users(node).iter().filter_map(|user| match part_of[user.index()]? {
                part if part == here => Some(reach[user.index()]),
                part => Some(Reach::One(part)),
            });
            let is_free = order.followers(node).is_empty() && order.leaders(node).is_empty();
            reach[node.index()] = if is_free { leads.fold(Reach::Nowhere, Reach::with) } else { Reach::Many };
        }
        let is_on_boundary = |it: NodeId, part_of: &[Option<usize>]| {
            graph.users(it).iter().any(|user| part_of[user.index()].is_some_and(|part| part != here))
        };
        let listed = subgraphs[here].nodes.iter().copied();
        let mut waiting: VecDeque<NodeId> =
            listed.filter(|&it| !is_tensor(it) && is_on_boundary(it, &part_of)).collect();
        while let Some(node) = waiting.pop_front() {
            if part_of[node.index()] != Some(here) || std::mem::replace(&mut is_done[node.index()], true) {
                continue;
            }
            let Reach::One(there) = reach[node.index()] else { continue };
            let mut moved = vec![node];
            part_of[node.index()] = Some(there);
            let mut next = 0;
            while let Some(&it) = moved.get(next) {
                next += 1;
                for user in graph.users(it).iter().filter(|it| part_of[it.index()] == Some(here)).collect::<Vec<_>>() {
                    part_of[user.index()] = Some(there);
                    moved.push(user);
                }
            }
            moved.sort_unstable_by_key(|it| rank[it.index()]);
            spread(graph, &moved, (here, there), &part_of, &mut reach);
            subgraphs[there].nodes.extend(moved);
            let inputs = graph.node(node).all_input_nodes();
            waiting.extend(inputs.into_iter().filter(|&it| part_of[it.index()] == Some(here) && !is_tensor(it)));
        }
        subgraphs[here].nodes.retain(|it| part_of[it.index()] == Some(here));
    }
}

/// Tells what leads to nodes that have moved that it leads to their new part.
fn spread(
    graph: &Graph,
    moved: &[NodeId],
    (here, there): (usize, usize),
    part_of: &[Option<usize>],
    reach: &mut [Reach],
) {
    let mut changed = moved.to_vec();
    while let Some(node) = changed.pop() {
        let leads = if part_of[node.index()] == Some(here) { reach[node.index()] } else { Reach::One(there) };
        for input in graph.node(node).all_input_nodes() {
            let more = reach[input.index()].with(leads);
            if part_of[input.index()] == Some(here) && more != reach[input.index()] {
                reach[input.index()] = more;
                changed.push(input);
            }
        }
    }
}
