//! A part: its nodes, and the bytes that it needs as nodes come and go.

use super::SizedGraph;
use std::collections::BTreeSet;

/// A part: `torch.fx.experimental.partitioner_utils.Partition`. [`Links`](super::Links) know its parents and children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// Its number.
    pub id: i64,
    /// The places of its nodes.
    pub nodes: BTreeSet<usize>,
    /// The bytes that it needs, its inputs from other parts included.
    pub used_mem_bytes: u64,
    /// The devices that run it.
    pub logical_device_ids: Vec<i64>,
}

impl Partition {
    /// A part of one call.
    pub(super) fn of(graph: &SizedGraph<'_>, node: usize) -> Self {
        let mut res = Partition::default();
        res.add_node(graph, node);
        res
    }

    /// Adds a node, with the inputs of the graph and attributes that it uses: `add_node`.
    pub fn add_node(&mut self, graph: &SizedGraph<'_>, node: usize) {
        for &input in graph.inputs(node) {
            if !graph.is_call(input) {
                self.insert(graph, input);
            }
        }
        self.insert(graph, node);
    }

    /// Removes a node, with the inputs of the graph and attributes that no other node of the part uses: `remove_node`.
    pub fn remove_node(&mut self, graph: &SizedGraph<'_>, node: usize) {
        if !self.take(graph, node) {
            return;
        }
        for &input in graph.inputs(node) {
            if !graph.is_call(input) && self.users_inside(graph, input) == 0 {
                self.take(graph, input);
            }
        }
    }

    /// The calls of the part.
    pub fn calls<'a>(&'a self, graph: &'a SizedGraph<'_>) -> impl Iterator<Item = usize> + 'a {
        self.nodes.iter().copied().filter(|&it| graph.is_call(it))
    }

    /// A part with the nodes of two, on no device.
    pub(super) fn union(graph: &SizedGraph<'_>, first: &Self, second: &Self) -> Self {
        let (mut res, fewer) = match first.nodes.len() < second.nodes.len() {
            true => (second.clone(), first),
            false => (first.clone(), second),
        };
        fewer.nodes.iter().for_each(|&it| res.insert(graph, it));
        res.logical_device_ids.clear();
        res
    }

    fn insert(&mut self, graph: &SizedGraph<'_>, node: usize) {
        if !self.nodes.contains(&node) {
            // What users counted as an input from elsewhere is here now.
            let counted = graph.output_size(node) * self.users_inside(graph, node);
            self.used_mem_bytes += graph.get_extra_size_of(node, |it| self.nodes.contains(&it));
            self.used_mem_bytes -= counted;
            self.nodes.insert(node);
        }
    }

    fn take(&mut self, graph: &SizedGraph<'_>, node: usize) -> bool {
        let is_there = self.nodes.remove(&node);
        if is_there {
            self.used_mem_bytes += graph.output_size(node) * self.users_inside(graph, node);
            self.used_mem_bytes -= graph.get_extra_size_of(node, |it| self.nodes.contains(&it));
        }
        is_there
    }

    /// How many nodes of the part use a node. Either may be many, a part's nodes or a node's users.
    fn users_inside(&self, graph: &SizedGraph<'_>, node: usize) -> u64 {
        let users = graph.users(node);
        let count = match self.nodes.len() < users.len() {
            true => self.nodes.iter().filter(|&&it| graph.inputs(it).contains(&node)).count(),
            false => users.iter().filter(|it| self.nodes.contains(it)).count(),
        };
        count as u64
    }
}
