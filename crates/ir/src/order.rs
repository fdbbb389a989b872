//! Where nodes stand. Which order is right is the lint's and the passes' matter.

use crate::NodeId;
use std::cmp::Ordering;

/// The order of the nodes: a doubly linked list with position labels, so that insertion and "is `a` before `b`" take
/// constant time. Labels are spread again locally when there is no room between two of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    links: Vec<Link>,
    first: Option<NodeId>,
    last: Option<NodeId>,
    len: usize,
}

#[derive(Clone, Debug, Default)]
struct Link {
    prev: Option<NodeId>,
    next: Option<NodeId>,
    label: u64,
    is_live: bool,
}

const SPACING: u64 = 1 << 32;

impl Order {
    pub(crate) fn reserve(&mut self, additional: usize) {
        self.links.reserve(additional);
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn first(&self) -> Option<NodeId> {
        self.first
    }

    pub(crate) fn last(&self) -> Option<NodeId> {
        self.last
    }

    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.links.get(node.index()).is_some_and(|link| link.is_live)
    }

    /// The live node after this one; of an erased node, the one that followed when it was erased.
    pub(crate) fn next(&self, node: NodeId) -> Option<NodeId> {
        let mut next = self.links[node.index()].next;
        while let Some(it) = next {
            if self.contains(it) {
                return next;
            }
            next = self.links[it.index()].next;
        }
        None
    }

    /// The live node before this one; of an erased node, the one that preceded when it was erased.
    pub(crate) fn prev(&self, node: NodeId) -> Option<NodeId> {
        let mut prev = self.links[node.index()].prev;
        while let Some(it) = prev {
            if self.contains(it) {
                return prev;
            }
            prev = self.links[it.index()].prev;
        }
        None
    }

    /// The order of two live nodes.
    pub(crate) fn compare(&self, a: NodeId, b: NodeId) -> Ordering {
        self.links[a.index()].label.cmp(&self.links[b.index()].label)
    }

    /// Inserts a node that is not in the list before `before`, or at the end.
    pub(crate) fn insert(&mut self, node: NodeId, before: Option<NodeId>) {
        if self.links.len() <= node.index() {
            self.links.resize_with(node.index() + 1, Link::default);
        }
        let next = before;
        let prev = match before {
            Some(next) => self.links[next.index()].prev,
            None => self.last,
        };
        self.links[node.index()] = Link { prev, next, label: 0, is_live: true };
        match prev {
            Some(prev) => self.links[prev.index()].next = Some(node),
            None => self.first = Some(node),
        }
        match next {
            Some(next) => self.links[next.index()].prev = Some(node),
            None => self.last = Some(node),
        }
        self.len += 1;
        self.label(node);
    }

    /// Takes a node out of the list; its own links stay, so that an iteration that stands on it can go on.
    pub(crate) fn remove(&mut self, node: NodeId) {
        let Link { prev, next, .. } = self.links[node.index()];
        match prev {
            Some(prev) => self.links[prev.index()].next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => self.links[next.index()].prev = prev,
            None => self.last = prev,
        }
        self.links[node.index()].is_live = false;
        self.len -= 1;
    }

    fn label(&mut self, node: NodeId) {
        let link = &self.links[node.index()];
        let low = link.prev.map(|it| self.links[it.index()].label);
        let high = link.next.map(|it| self.links[it.index()].label);
        let label = match (low, high) {
            (None, None) => Some(u64::MAX / 2),
            (Some(low), None) => low.checked_add(SPACING).or_else(|| midpoint(low, u64::MAX)),
            (None, Some(high)) => high.checked_sub(SPACING).or_else(|| midpoint(0, high)),
            (Some(low), Some(high)) => midpoint(low, high),
        };
        match label {
            Some(label) => self.links[node.index()].label = label,
            None => self.spread(node),
        }
    }

    /// Spreads the labels of the smallest enclosing window around `node` that is sparse enough. Windows double, and the
    /// density that is allowed falls as they grow (Bender et al., "Two simplified algorithms for maintaining order in
    /// a list", 2002), so an insertion costs O(log n) on average.
    fn spread(&mut self, node: NodeId) {
        let anchor = match self.links[node.index()].prev.or(self.links[node.index()].next) {
            Some(neighbour) => self.links[neighbour.index()].label,
            None => u64::MAX / 2,
        };
        let (mut first, mut last, mut count) = (node, node, 1u64);
        for bits in 1..64u32 {
            let low = anchor & !((1u64 << bits) - 1);
            let high = low | ((1u64 << bits) - 1);
            while let Some(prev) = self.links[first.index()].prev.filter(|it| self.links[it.index()].label >= low) {
                first = prev;
                count += 1;
            }
            while let Some(next) = self.links[last.index()].next.filter(|it| self.links[it.index()].label <= high) {
                last = next;
                count += 1;
            }
            let allowed = ((1u64 << bits) as f64 * 0.7f64.powi(bits as i32)) as u64;
            if bits >= 8 && count < allowed.max(2) {
                self.relabel(first, count, low, high);
                return;
            }
        }
        let first = self.first.expect("the list holds at least the new node");
        self.relabel(first, self.len as u64, 0, u64::MAX);
    }

    fn relabel(&mut self, first: NodeId, count: u64, low: u64, high: u64) {
        let step = (high - low) / (count + 1);
        let mut at = Some(first);
        for i in 1..=count {
            let node = at.expect("the window holds as many nodes as were counted");
            self.links[node.index()].label = low + i * step;
            at = self.links[node.index()].next;
        }
    }
}

fn midpoint(low: u64, high: u64) -> Option<u64> {
    let mid = low + (high - low) / 2;
    (mid != low && mid != high).then_some(mid)
}
