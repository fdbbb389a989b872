//! Partitions of nodes that use each other.
//!
//! From the end of the graph to its beginning, each supported node is merged with the partitions of its users, where that makes
//! no circle: where no path leads from one to the other through a third. To search for paths only between the two, the
//! partitions and the nodes in none are kept in an order of their uses, which a merge changes between the two only (Pearce and
//! Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2007).

use super::Group;
use crate::order::Order;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashSet};
use tracefx_ir::{Graph, NodeId};

pub(super) fn groups(graph: &Graph, order: &Order, is_supported: &mut dyn FnMut(NodeId) -> bool) -> Vec<Group> {
    let mut units = Units::new(graph.id_bound());
    let mut ids = 0..;
    for node in graph.nodes().rev() {
        let this = node.index();
        units.add(this, order.successors(graph, node).map(NodeId::index));
        if !is_supported(node) {
            continue;
        }
        units.groups[this] = Some(Group { id: ids.next().expect("there are enough numbers"), nodes: vec![node] });
        let users: IndexSet<usize, FxBuildHasher> = graph.users(node).iter().map(|it| units.find(it.index())).collect();
        let mut merged = this;
        for user in users {
            // An earlier user may have taken this one in.
            let user = units.find(user);
            if user != merged && units.groups[user].is_some() {
                merged = units.merge(merged, user).unwrap_or(merged);
            }
        }
    }
    let mut groups: Vec<Group> = units.groups.into_iter().flatten().collect();
    groups.iter_mut().for_each(|it| it.nodes.sort_by(|&a, &b| graph.compare(b, a)));
    groups
}

/// The nodes so far, each a unit until they are merged. A unit is named by the index of one of its nodes.
struct Units {
    /// For each node another one of its unit, nearer to the one that names it.
    parents: Vec<usize>,
    /// What uses a unit, and what it uses, by nodes; those of the unit itself are dropped when they are met.
    successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
    /// The place of each unit: every unit stands before its users.
    places: Vec<usize>,
    /// The place of the next node.
    next: usize,
    groups: Vec<Option<Group>>,
}

impl Units {
    fn new(n: usize) -> Self {
        let lists = || std::iter::repeat_with(Vec::new).take(n).collect::<Vec<Vec<usize>>>();
        let groups = std::iter::repeat_with(|| None).take(n).collect();
        Units {
            parents: (0..n).collect(),
            successors: lists(),
            predecessors: lists(),
            places: vec![0; n],
            next: n,
            groups,
        }
    }

    /// Adds a node before all others.
    fn add(&mut self, node: usize, users: impl Iterator<Item = usize>) {
        self.next -= 1;
        self.places[node] = self.next;
        self.successors[node] = users.collect();
        for at in 0..self.successors[node].len() {
            let user = self.find(self.successors[node][at]);
            self.predecessors[user].push(node);
        }
    }

    fn find(&mut self, node: usize) -> usize {
        let mut root = node;
        while self.parents[root] != root {
            self.parents[root] = self.parents[self.parents[root]];
            root = self.parents[root];
        }
        root
    }

    /// Merges two units and gives the result, or nothing where that would make a circle.
    fn merge(&mut self, this: usize, other: usize) -> Option<usize> {
        let (first, last) = if self.places[this] < self.places[other] { (this, other) } else { (other, this) };
        let after = self.between(first, last, true)?;
        let before = self.between(last, first, false).expect("a path the other way would have been found as well");
        // What leads to the last comes before the merged unit, and what the first leads to after it.
        let mut moved: Vec<usize> = before;
        moved.push(first);
        moved.extend(after);
        let mut places: Vec<usize> = moved.iter().map(|&it| self.places[it]).chain([self.places[last]]).collect();
        places.sort_unstable();
        for (unit, place) in moved.into_iter().zip(places) {
            self.places[unit] = place;
        }
        let group =
            self.groups[this].take().zip(self.groups[other].take()).map(|(this, other)| unite_groups(this, other));
        let merged = self.unite(first, last);
        self.groups[merged] = group;
        Some(merged)
    }

    /// The units strictly between two, in order, that `from` leads to, or with `forward` false that lead to it; nothing where
    /// `to` is reached through one of them.
    fn between(&mut self, from: usize, to: usize, forward: bool) -> Option<Vec<usize>> {
        let mut seen: FxHashSet<usize> = FxHashSet::default();
        let mut stack = vec![from];
        while let Some(unit) = stack.pop() {
            for next in self.neighbours(unit, forward) {
                if next == to {
                    if unit != from {
                        return None;
                    }
                    continue;
                }
                let is_within =
                    if forward { self.places[next] < self.places[to] } else { self.places[next] > self.places[to] };
                if is_within && seen.insert(next) {
                    stack.push(next);
                }
            }
        }
        let mut res: Vec<usize> = seen.into_iter().collect();
        res.sort_unstable_by_key(|&it| self.places[it]);
        Some(res)
    }

    /// The other units that use this one, or that it uses.
    fn neighbours(&mut self, unit: usize, forward: bool) -> Vec<usize> {
        let list = if forward { &mut self.successors[unit] } else { &mut self.predecessors[unit] };
        let nodes = std::mem::take(list);
        let units: IndexSet<usize, FxBuildHasher> =
            nodes.into_iter().map(|it| self.find(it)).filter(|&it| it != unit).collect();
        let units: Vec<usize> = units.into_iter().collect();
        let list = if forward { &mut self.successors[unit] } else { &mut self.predecessors[unit] };
        list.clone_from(&units);
        units
    }

    fn unite(&mut self, first: usize, last: usize) -> usize {
        // The shorter lists go into the longer ones.
        let size = |it: usize| self.successors[it].len() + self.predecessors[it].len();
        let (kept, gone) = if size(first) < size(last) { (last, first) } else { (first, last) };
        let place = self.places[first];
        let (successors, predecessors) =
            (std::mem::take(&mut self.successors[gone]), std::mem::take(&mut self.predecessors[gone]));
        self.successors[kept].extend(successors);
        self.predecessors[kept].extend(predecessors);
        self.parents[gone] = kept;
        self.places[kept] = place;
        kept
    }
}

/// The larger group takes the other one in; of two that are as large it is this one.
fn unite_groups(this: Group, other: Group) -> Group {
    let (mut kept, gone) = if this.nodes.len() < other.nodes.len() { (other, this) } else { (this, other) };
    kept.nodes.extend(gone.nodes);
    kept
}
