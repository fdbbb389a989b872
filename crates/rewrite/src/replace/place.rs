//! Where a replacement goes.
//!
//! Putting in a replacement moves all nodes of the match to one place. As in FX that is before the first node that uses what
//! the match returns, unless there are writes: then it is as near to that as the nodes can be moved without one of them
//! passing a node that writes to what it uses, or uses what it writes to. Where there is no such place, the match stays.

use crate::InternalMatch;
use crate::effects::AliasAnalysis;
use crate::matcher::is_compute;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, InsertPoint, NodeId};

/// How far behind a match it is looked for writes, so that many matches with late users take no quadratic time. One whose
/// users come later is replaced so far behind its last node.
const MAX_NODES_BEHIND: usize = 256;

/// Where the replacement of a match goes.
#[derive(Debug)]
pub(crate) struct Place {
    /// It stands before this node, or at the end.
    before: Option<NodeId>,
    /// The last input, where nodes that use what the match returns come before it.
    last_input: Option<NodeId>,
    /// Those nodes, in order. They are moved behind the input, and behind the replacement.
    moved: Vec<NodeId>,
}

/// Why a match cannot be replaced: this node of it, or one that uses it, would have to pass that other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub(crate) node: NodeId,
    pub(crate) by: NodeId,
}

impl Place {
    /// The place for the replacement of a match.
    pub(crate) fn find(
        graph: &Graph,
        pattern: &Graph,
        found: &InternalMatch,
        matched: &FxHashSet<NodeId>,
        writes: Option<&AliasAnalysis>,
    ) -> std::result::Result<Place, Blocked> {
        let mut place = Place::in_fx(graph, found, matched);
        let Some(writes) = writes else { return Ok(place) };
        let mut uses_written = matched.iter().chain(&place.moved).map(|&it| writes.uses_written(graph, it));
        if !uses_written.any(|it| it) {
            return Ok(place);
        }
        let mut nodes: Vec<NodeId> = matched.iter().copied().collect();
        nodes.sort_unstable_by(|&a, &b| graph.compare(a, b));
        check_inside(graph, pattern, found, &nodes, writes)?;
        let search = Search { graph, writes, matched, nodes };
        match place.last_input {
            Some(last_input) => search.check_moved(&place, last_input)?,
            None => place.before = search.nearest(&place, found)?,
        }
        Ok(place)
    }

    /// Before the first node that uses what the match returns, or after what it returns where nothing does.
    ///
    /// Such a node may come before one of the inputs of a match that returns several values. It is then moved behind that
    /// input, with what depends on it, in their order.
    fn in_fx(graph: &Graph, found: &InternalMatch, matched: &FxHashSet<NodeId>) -> Place {
        let returned: Vec<NodeId> = found.returning_nodes.iter().filter_map(Arg::as_node).collect();
        let users = returned.iter().flat_map(|&it| graph.users(it).iter());
        let Some(first) = users.min_by(|&a, &b| graph.compare(a, b)) else {
            let last = returned.into_iter().max_by(|&a, &b| graph.compare(a, b)).expect("a match returns a node");
            return Place { before: graph.next(last), last_input: None, moved: Vec::new() };
        };
        let last_input = last_input(graph, found).filter(|&it| graph.compare(it, first) != Ordering::Less);
        let Some(last_input) = last_input else {
            return Place { before: Some(first), last_input: None, moved: Vec::new() };
        };
        let mut late: FxHashSet<NodeId> = returned.iter().copied().filter(|it| matched.contains(it)).collect();
        let mut moved = Vec::new();
        let mut at = Some(first);
        while let Some(node) = at.filter(|&it| graph.compare(it, last_input) != Ordering::Greater) {
            at = graph.next(node);
            let mut is_late = false;
            graph.node(node).for_each_input(&mut |it| is_late |= late.contains(&it));
            if is_late {
                late.insert(node);
                moved.push(node);
            }
        }
        let before = moved.first().copied().or(graph.next(last_input));
        Place { before, last_input: Some(last_input), moved }
    }

    /// Moves what has to be moved, and sets where nodes are inserted.
    pub(super) fn make(&self, graph: &mut Graph) -> Result<()> {
        if let Some(mut anchor) = self.last_input {
            for &node in &self.moved {
                graph.move_after(node, anchor)?;
                anchor = node;
            }
        }
        graph.set_insert_point(self.before.map_or(InsertPoint::End, InsertPoint::Before)).map(drop)
    }
}

fn last_input(graph: &Graph, found: &InternalMatch) -> Option<NodeId> {
    let mut inputs = Vec::new();
    found.placeholder_nodes.iter().for_each(|it| it.for_each_node(&mut |node| inputs.push(node)));
    inputs.into_iter().max_by(|&a, &b| graph.compare(a, b))
}

/// What is moved, and what is looked at on the way.
struct Search<'a> {
    graph: &'a Graph,
    writes: &'a AliasAnalysis,
    matched: &'a FxHashSet<NodeId>,
    /// The matched nodes, in order.
    nodes: Vec<NodeId>,
}

impl Search<'_> {
    /// The last place up to that of FX to which all nodes of the match can be moved.
    fn nearest(&self, place: &Place, found: &InternalMatch) -> std::result::Result<Option<NodeId>, Blocked> {
        let Search { graph, nodes, .. } = self;
        let (first, last) = (nodes[0], *nodes.last().expect("a match has a node"));
        let is_before = |a: NodeId, b: Option<NodeId>| b.is_none_or(|b| graph.compare(a, b) == Ordering::Less);
        // Forward from the first node, up to what the nodes before cannot pass.
        let (mut res, mut blocked) = (place.before, None);
        let mut passing = Passing::default();
        let (mut at, mut n_behind) = (Some(first), 0);
        while let Some(node) = at.filter(|&it| is_before(it, place.before)) {
            if self.matched.contains(&node) {
                passing.add(self, node);
            } else if let Some(by) = passing.conflict(self, node) {
                (res, blocked) = (Some(node), Some(by));
                break;
            } else if is_before(last, Some(node)) {
                n_behind += 1;
                if n_behind == MAX_NODES_BEHIND {
                    res = Some(node);
                    break;
                }
            }
            at = graph.next(node);
        }
        if let Some(by) = blocked.filter(|_| last_input(graph, found).is_some_and(|it| !is_before(it, res))) {
            return Err(by);
        }
        // Backward from the last node, since what comes behind the place has to be moved up to it.
        let mut passing = Passing::default();
        let mut at = Some(last);
        while let Some(node) = at.filter(|&it| !is_before(it, res)) {
            if self.matched.contains(&node) {
                passing.add(self, node);
            } else if let Some(by) = passing.conflict(self, node) {
                return Err(blocked.unwrap_or(by));
            }
            at = graph.prev(node);
        }
        Ok(res)
    }

    /// Refuses that the match goes right behind its last input, and that what uses it is moved there, too.
    fn check_moved(&self, place: &Place, last_input: NodeId) -> std::result::Result<(), Blocked> {
        let Search { graph, nodes, .. } = self;
        let is_moved: FxHashSet<NodeId> = place.moved.iter().copied().collect();
        let first = place.moved.first().copied().into_iter().chain([nodes[0]]);
        let first = first.min_by(|&a, &b| graph.compare(a, b)).expect("a match has a node");
        let is_behind = |it: NodeId| graph.compare(it, last_input) == Ordering::Greater;
        let mut passing = Passing::default();
        let mut at = Some(first);
        while let Some(node) = at.filter(|&it| !is_behind(it)) {
            if self.matched.contains(&node) || is_moved.contains(&node) {
                passing.add(self, node);
            } else if let Some(by) = passing.conflict(self, node) {
                return Err(by);
            }
            at = graph.next(node);
        }
        let mut passing = Passing::default();
        let mut at = nodes.last().copied();
        while let Some(node) = at.filter(|&it| graph.compare(it, first) != Ordering::Less) {
            if self.matched.contains(&node) {
                passing.add(self, node);
            } else if (is_behind(node) || is_moved.contains(&node))
                && let Some(by) = passing.conflict(self, node)
            {
                return Err(by);
            }
            at = graph.prev(node);
        }
        Ok(())
    }
}

/// What nodes that move use of written memory: for each class the last of them, and the last that writes.
#[derive(Default)]
struct Passing(FxHashMap<usize, (NodeId, Option<NodeId>)>);

impl Passing {
    fn add(&mut self, search: &Search<'_>, node: NodeId) {
        let is_writer = search.writes.is_writer(node);
        for class in search.writes.used(search.graph, node) {
            let entry = self.0.entry(class).or_insert((node, None));
            entry.0 = node;
            if is_writer {
                entry.1 = Some(node);
            }
        }
    }

    /// What of this cannot pass the node.
    fn conflict(&self, search: &Search<'_>, by: NodeId) -> Option<Blocked> {
        let is_writer = search.writes.is_writer(by);
        let used = search.writes.used(search.graph, by);
        let found = used.iter().filter_map(|it| self.0.get(it));
        let node = found.filter_map(|&(any, writer)| if is_writer { Some(any) } else { writer }).next()?;
        Some(Blocked { node, by })
    }
}

/// Refuses a match in which a write stands otherwise than in the pattern.
fn check_inside(
    graph: &Graph,
    pattern: &Graph,
    found: &InternalMatch,
    nodes: &[NodeId],
    writes: &AliasAnalysis,
) -> std::result::Result<(), Blocked> {
    let place_of: FxHashMap<NodeId, NodeId> = found
        .nodes_map
        .iter()
        .filter(|(node, _)| is_compute(pattern, **node))
        .filter_map(|(node, it)| Some((it.as_node()?, *node)))
        .collect();
    // For each class what comes last in the pattern of what uses it so far, and of what writes to it.
    let mut last = FxHashMap::<usize, (NodeId, Option<NodeId>)>::default();
    let later = |a: NodeId, b: NodeId| match pattern.compare(place_of[&a], place_of[&b]) {
        Ordering::Less => b,
        Ordering::Equal | Ordering::Greater => a,
    };
    for &node in nodes {
        let is_writer = writes.is_writer(node);
        for class in writes.used(graph, node) {
            let Some((any, writer)) = last.get_mut(&class) else {
                last.insert(class, (node, is_writer.then_some(node)));
                continue;
            };
            if let Some(by) = if is_writer { Some(*any) } else { *writer }
                && later(by, node) == by
            {
                return Err(Blocked { node, by });
            }
            *any = later(*any, node);
            if is_writer {
                *writer = Some(writer.map_or(node, |it| later(it, node)));
            }
        }
    }
    Ok(())
}
