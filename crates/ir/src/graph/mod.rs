//! The graph: its nodes in order, their names and users, and where the next node goes.

mod copy;
mod create;
mod edit;

pub use create::name_of_target;

use crate::order::Order;
use crate::track::Tracked;
use crate::{Meta, Namespace, Node, NodeId, Opcode, Str, UserSet};
use std::cmp::Ordering;
use tracefx_core::{Code, Diagnostic, Result};

/// Where new nodes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertPoint {
    /// At the end of the list, even after `output`, as in FX.
    End,
    /// Before this node.
    Before(NodeId),
    /// After this node, and after the nodes that were made at this point before.
    After(NodeId),
}

/// An ordered list of nodes: `torch.fx.Graph`. See the crate's documentation for an example.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) users: Vec<UserSet>,
    order: Order,
    pub(crate) names: Namespace,
    insert_point: InsertPoint,
    pub(crate) tracked: Option<Tracked>,
}

impl Default for Graph {
    fn default() -> Self {
        Self::new()
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Graph {
            nodes: Vec::new(),
            users: Vec::new(),
            order: Order::default(),
            names: Namespace::default(),
            insert_point: InsertPoint::End,
            tracked: None,
        }
    }

    /// Makes room for this many more nodes.
    pub fn reserve(&mut self, additional: usize) {
        self.nodes.reserve(additional);
        self.users.reserve(additional);
        self.order.reserve(additional);
        self.names.reserve_room(additional);
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.order.len() == 0
    }

    /// One more than the largest index of an id: the length of a table with an entry per node, erased ones included.
    pub fn id_bound(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes in order. To edit while walking, step with [`Graph::next`].
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        Nodes { graph: self, front: self.order.first(), back: self.order.last() }
    }

    /// The first node.
    pub fn first(&self) -> Option<NodeId> {
        self.order.first()
    }

    /// The last node.
    pub fn last(&self) -> Option<NodeId> {
        self.order.last()
    }

    /// The node after this one. After an erasure it still answers: with the node that followed.
    pub fn next(&self, node: NodeId) -> Option<NodeId> {
        self.order.next(node)
    }

    /// The node before this one. After an erasure it still answers: with the node that preceded.
    pub fn prev(&self, node: NodeId) -> Option<NodeId> {
        self.order.prev(node)
    }

    /// Whether the node is in this graph and was not erased.
    pub fn contains(&self, node: NodeId) -> bool {
        self.order.contains(node)
    }

    /// The order of two nodes of this graph.
    pub fn compare(&self, a: NodeId, b: NodeId) -> Ordering {
        self.order.compare(a, b)
    }

    /// A node.
    ///
    /// # Panics
    /// When the id is of another graph. An erased node is still readable; it has no arguments any more.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.index()]
    }

    /// What passes have noted about a node, to change it.
    pub fn meta_mut(&mut self, node: NodeId) -> &mut Meta {
        let node = &mut self.nodes[node.index()];
        node.changes.noted = true;
        &mut node.meta
    }

    /// The nodes that use this one, in the order in which they began to.
    pub fn users(&self, node: NodeId) -> &UserSet {
        &self.users[node.index()]
    }

    /// The node of this name; takes time linear in the number of nodes.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes().find(|&it| &*self.node(it).name == name)
    }

    /// The nodes with this opcode and target, in order.
    pub fn find_nodes<'a>(&'a self, op: Opcode, target: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        self.nodes().filter(move |&it| self.node(it).op == op && &*self.node(it).target == target)
    }

    /// The last output node.
    pub fn output_node(&self) -> Option<NodeId> {
        self.nodes().rev().find(|&it| self.node(it).op == Opcode::Output)
    }

    /// The names that were given.
    pub fn names(&self) -> &Namespace {
        &self.names
    }

    /// Takes names besides those of the nodes, and notes for each base the suffix that was given last.
    pub fn take_names(
        &mut self,
        used: impl IntoIterator<Item = Str>,
        suffixes: impl IntoIterator<Item = (Box<str>, u128)>,
    ) {
        self.names.take(used, suffixes);
    }

    /// Where new nodes go.
    pub fn insert_point(&self) -> InsertPoint {
        self.insert_point
    }

    /// Sets where new nodes go; gives back where they went before, to restore it.
    ///
    /// # Errors
    /// `NodeForeign` where the point is a node that is not in this graph.
    pub fn set_insert_point(&mut self, point: InsertPoint) -> Result<InsertPoint> {
        match point {
            InsertPoint::Before(node) | InsertPoint::After(node) => self.check_own(node)?,
            InsertPoint::End => {}
        }
        Ok(std::mem::replace(&mut self.insert_point, point))
    }

    pub(crate) fn check_own(&self, node: NodeId) -> Result<()> {
        if self.contains(node) {
            return Ok(());
        }
        let what = match self.nodes.get(node.index()) {
            Some(erased) => format!("node {} was erased from the graph", erased.name),
            None => "the node is not in this graph".to_string(),
        };
        Err(Diagnostic::new(Code::NodeForeign, what).help("use a node of this graph"))
    }
}

struct Nodes<'a> {
    graph: &'a Graph,
    front: Option<NodeId>,
    back: Option<NodeId>,
}

impl Nodes<'_> {
    fn close_when_met(&mut self) {
        if self.front == self.back {
            (self.front, self.back) = (None, None);
        }
    }
}

impl Iterator for Nodes<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let res = self.front?;
        let is_last = self.front == self.back;
        self.close_when_met();
        if !is_last {
            self.front = self.graph.order.next(res);
        }
        Some(res)
    }
}

impl DoubleEndedIterator for Nodes<'_> {
    fn next_back(&mut self) -> Option<NodeId> {
        let res = self.back?;
        let is_last = self.front == self.back;
        self.close_when_met();
        if !is_last {
            self.back = self.graph.order.prev(res);
        }
        Some(res)
    }
}
