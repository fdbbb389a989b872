//! What all ways to find parts read: nodes by their places, their sizes, and the order that writes keep.

use super::failed;
use crate::SizeBytes;
use crate::order::Order;
use tracefx_core::Result;
use tracefx_ir::{GraphModule, NodeId, Opcode};
use tracefx_ops::Registry;

/// The nodes of a graph but for the output by their places, with their sizes.
#[derive(Debug)]
pub struct SizedGraph<'a> {
    module: &'a GraphModule,
    nodes: Vec<NodeId>,
    sizes: Vec<SizeBytes>,
    inputs: Vec<Vec<usize>>,
    users: Vec<Vec<usize>>,
    /// For each node those that must run after it without using it, because one of both writes to what the other uses.
    followers: Vec<Vec<usize>>,
    n_edges: usize,
}

impl<'a> SizedGraph<'a> {
    /// The graph of a module, with the sizes of its nodes by the indices of their ids.
    ///
    /// # Errors
    /// `PassFailed` where a node has no size, or the sum of the sizes is too large for a number.
    pub fn new(module: &'a GraphModule, registry: &Registry, sizes: &[Option<SizeBytes>]) -> Result<Self> {
        let graph = &module.graph;
        let nodes: Vec<NodeId> = graph.nodes().filter(|&it| graph.node(it).op() != Opcode::Output).collect();
        let mut places = vec![0; graph.id_bound()];
        nodes.iter().enumerate().for_each(|(place, it)| places[it.index()] = place);
        let size = |it: &NodeId| {
            sizes.get(it.index()).copied().flatten().ok_or_else(|| {
                failed("node has no size_bytes attr")
                    .node(&**graph.node(*it).name())
                    .help("sizes are known after shape propagation and getSizeOfAllNodes")
            })
        };
        let sizes = nodes.iter().map(size).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<Vec<usize>> = nodes
            .iter()
            .map(|&it| graph.node(it).all_input_nodes().iter().map(|input| places[input.index()]).collect())
            .collect();
        let mut users = vec![Vec::new(); nodes.len()];
        for (user, inputs) in inputs.iter().enumerate() {
            inputs.iter().for_each(|&it| users[it].push(user));
        }
        let mut followers = vec![Vec::new(); nodes.len()];
        for (first, second) in Order::of(module, registry).pairs() {
            followers[places[first.index()]].push(places[second.index()]);
        }
        let n_edges = inputs.iter().chain(&followers).map(Vec::len).sum();
        let res = SizedGraph { module, nodes, sizes, inputs, users, followers, n_edges };
        // No sum of sizes is larger than this one, so that none of them overflows.
        let all = (0..res.len()).try_fold(0_u64, |all, place| {
            let inputs = res.inputs[place].iter().try_fold(0_u64, |all, &it| all.checked_add(res.output_size(it)));
            all.checked_add(res.sizes[place].total_size)?.checked_add(inputs?)
        });
        match all {
            Some(_) => Ok(res),
            None => Err(failed("the bytes of the module are more than a number holds")),
        }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many nodes and arguments there are.
    pub(super) fn work(&self) -> u64 {
        (self.nodes.len() + self.n_edges) as u64
    }

    pub(super) fn module(&self) -> &'a GraphModule {
        self.module
    }

    /// The node at a place.
    pub fn node(&self, place: usize) -> NodeId {
        self.nodes[place]
    }

    /// The name of the node at a place.
    pub fn name(&self, place: usize) -> &'a str {
        self.module.graph.node(self.nodes[place]).name()
    }

    /// Whether the node at a place is neither an input nor an attribute.
    pub fn is_call(&self, place: usize) -> bool {
        !matches!(self.module.graph.node(self.nodes[place]).op(), Opcode::Placeholder | Opcode::GetAttr)
    }

    /// The places of the nodes that are neither inputs nor attributes.
    pub fn calls(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter(|&it| self.is_call(it))
    }

    pub(super) fn inputs(&self, place: usize) -> &[usize] {
        &self.inputs[place]
    }

    pub(super) fn users(&self, place: usize) -> &[usize] {
        &self.users[place]
    }

    pub(super) fn followers(&self, place: usize) -> &[usize] {
        &self.followers[place]
    }

    pub(super) fn output_size(&self, place: usize) -> u64 {
        self.sizes[place].output_size
    }

    pub(super) fn own_size(&self, place: usize) -> u64 {
        self.sizes[place].total_size
    }

    /// The bytes of all nodes.
    pub fn total_size(&self) -> u64 {
        self.sizes.iter().map(|it| it.total_size).sum()
    }

    /// The bytes that a node needs beside a set of nodes, itself and its inputs: `get_extra_size_of`.
    pub fn get_extra_size_of(&self, place: usize, contains: impl Fn(usize) -> bool) -> u64 {
        let inputs = self.inputs[place].iter().filter(|&&it| !contains(it));
        self.own_size(place) + inputs.map(|&it| self.output_size(it)).sum::<u64>()
    }
}
