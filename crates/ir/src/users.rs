//! The users of a node; the graph keeps them in agreement with the arguments.

use crate::NodeId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The nodes that use a node, each once, in the order in which they began to.
///
/// Insertion, removal and look-up take constant time even for a node with very many users.
#[derive(Clone, Debug, Default)]
pub struct UserSet {
    /// Users in order. Among many, those that were removed leave a gap.
    entries: SmallVec<[Option<NodeId>; 2]>,
    /// Where each user stands, once there are so many that looking for one would take long.
    positions: Option<Box<FxHashMap<NodeId, usize>>>,
    /// Whether anything changed since tracking began.
    pub(crate) is_changed: bool,
}

/// Most nodes have a user or two; up to this many are searched one after the other.
const FEW: usize = 16;

impl UserSet {
    /// The number of users.
    pub fn len(&self) -> usize {
        self.positions.as_ref().map_or(self.entries.len(), |it| it.len())
    }

    /// Whether nothing uses the node.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this node is a user.
    pub fn contains(&self, node: NodeId) -> bool {
        match &self.positions {
            Some(positions) => positions.contains_key(&node),
            None => self.entries.contains(&Some(node)),
        }
    }

    /// The users, in order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.entries.iter().copied().flatten()
    }

    pub(crate) fn insert(&mut self, node: NodeId) {
        if self.contains(node) {
            return;
        }
        self.is_changed = true;
        if self.positions.is_none() && self.entries.len() >= FEW {
            self.positions = Some(Box::new(self.places()));
        }
        if let Some(positions) = &mut self.positions {
            positions.insert(node, self.entries.len());
        }
        self.entries.push(Some(node));
    }

    pub(crate) fn remove(&mut self, node: NodeId) {
        let Some(positions) = &mut self.positions else {
            if let Some(at) = self.entries.iter().position(|&it| it == Some(node)) {
                self.entries.remove(at);
                self.is_changed = true;
            }
            return;
        };
        let Some(position) = positions.remove(&node) else { return };
        self.is_changed = true;
        self.entries[position] = None;
        // Gaps are closed once they outnumber the users, so a removal is constant on average.
        if self.entries.len() > 2 * positions.len() + 8 {
            self.entries.retain(|it| it.is_some());
            self.positions = (self.entries.len() > FEW).then(|| Box::new(self.places()));
        }
    }

    fn places(&self) -> FxHashMap<NodeId, usize> {
        self.iter().enumerate().map(|(position, node)| (node, position)).collect()
    }
}
