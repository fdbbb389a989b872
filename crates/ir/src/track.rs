//! Telling what was edited since a graph came from a host, which is to do the same to its own graph.

use crate::{Graph, NodeId};

/// Which graph of the host's a graph was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// The number of the graph among those that the host gave.
    pub number: u32,
    /// How many nodes it had: their ids are their places, and all ids from here on are of new nodes.
    pub len: usize,
}

/// What happened to a node since tracking began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Its target, name or type changed.
    pub(crate) called: bool,
    /// Its arguments changed.
    pub(crate) args: bool,
    /// What it gives is not known any more.
    pub(crate) forgotten: bool,
    /// Somebody was given its notes to change them.
    pub(crate) noted: bool,
}

impl Graph {
    /// Begins to note which nodes are edited. `first_origin` is the number of the first node among all nodes that the host
    /// gave; [`Meta::origin`](crate::Meta::origin) of each node is set to its own.
    ///
    /// # Panics
    /// When nodes were moved or erased before: places would not be ids.
    pub fn track(&mut self, number: u32, first_origin: u32) {
        let len = self.len();
        assert!(self.nodes().map(NodeId::index).eq(0..self.id_bound()), "a graph is tracked before it is edited");
        for (at, node) in self.nodes.iter_mut().enumerate() {
            node.meta.origin = Some(first_origin + at as u32);
            node.changes = Changes::default();
        }
        self.users.iter_mut().for_each(|it| it.is_changed = false);
        self.names.begin_log();
        self.tracked = Some(Tracked { number, len });
    }

    /// Which graph of the host's this is, unless it is a new one.
    pub fn tracked(&self) -> Option<Tracked> {
        self.tracked
    }

    /// Whether the target, the name or the type of the node changed; what a new node was made with is no change.
    pub fn has_new_call(&self, node: NodeId) -> bool {
        self.node(node).changes.called
    }

    /// Whether the arguments of the node changed.
    pub fn has_new_args(&self, node: NodeId) -> bool {
        self.node(node).changes.args
    }

    /// Whether the node was edited in a way after which nobody knows what it gives.
    pub fn is_forgotten(&self, node: NodeId) -> bool {
        self.node(node).changes.forgotten
    }

    /// Whether somebody was given the notes of the node to change them.
    pub fn is_noted(&self, node: NodeId) -> bool {
        self.node(node).changes.noted
    }

    /// Whether the users of the node, or their order, changed.
    pub fn has_new_users(&self, node: NodeId) -> bool {
        self.users(node).is_changed
    }
}
