use crate::NodeId;
use rustc_hash::FxHashMap;

/// The nodes that use a node, each once, in the order in which they began to.
///
/// Insertion, removal and look-up take constant time even for a node with very many users.
#[derive(Clone, Debug, Default)]
pub struct UserSet {
    entries: Vec<Option<NodeId>>,
    positions: FxHashMap<NodeId, usize>,
    /// Whether anything changed since tracking began.
    pub(crate) is_changed: bool,
}

impl UserSet {
    /// The number of users.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether nothing uses the node.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Whether this node is a user.
    pub fn contains(&self, node: NodeId) -> bool {
        self.positions.contains_key(&node)
    }

    /// The users, in order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.entries.iter().copied().flatten()
    }

    pub(crate) fn insert(&mut self, node: NodeId) {
        if !self.positions.contains_key(&node) {
            self.is_changed = true;
            self.positions.insert(node, self.entries.len());
            self.entries.push(Some(node));
        }
    }

    pub(crate) fn remove(&mut self, node: NodeId) {
        let Some(position) = self.positions.remove(&node) else { return };
        self.is_changed = true;
        self.entries[position] = None;
        // Gaps are closed once they outnumber the users, so a removal is constant on average.
        if self.entries.len() > 2 * self.positions.len() + 8 {
            self.entries.retain(Option::is_some);
            self.positions = self.iter().enumerate().map(|(position, node)| (node, position)).collect();
        }
    }
}
