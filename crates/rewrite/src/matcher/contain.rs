//! What makes a match fit to be fused or replaced: nothing leaks out of it, and nothing that it needs depends on it.

use super::InternalMatch;
use super::pattern::Pattern;
use rustc_hash::FxHashSet;
use std::cmp::Ordering;
use tracefx_core::Result;
use tracefx_ir::{Graph, NodeId};

/// A use of an inner node of the match by a node outside of it: what makes the match unfit. Gives the node of the pattern,
/// what it stands for, and the user.
pub(super) fn leak(pattern: &Pattern, graph: &Graph, it: &InternalMatch) -> Option<(NodeId, NodeId, NodeId)> {
    let bound = || it.nodes_map.iter().filter(|(node, _)| !pattern.is_placeholder(**node));
    let inside: FxHashSet<NodeId> = bound().filter_map(|(_, found)| found.as_node()).collect();
    // What only stands for one of several alternatives leaks where that one does.
    let inner = bound().filter(|(node, _)| !pattern.is_returned[node.index()] && !pattern.is_virtual(**node));
    inner.filter_map(|(node, found)| Some((*node, found.as_node()?))).find_map(|(node, found)| {
        let user = graph.users(found).iter().find(|user| !inside.contains(user));
        user.map(|user| (node, found, user))
    })
}

/// A node outside of these from which a path leads back into them, though it uses one of them: fused into one node they
/// would need their own result. `spend` is called for each node that is looked at.
///
/// A path leads forward in the order of the graph, so that nothing behind the last of the nodes has to be looked at.
pub(super) fn cycle(
    graph: &Graph,
    nodes: &FxHashSet<NodeId>,
    spend: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<NodeId>> {
    let Some(last) = nodes.iter().copied().max_by(|&a, &b| graph.compare(a, b)) else { return Ok(None) };
    if nodes.len() < 2 {
        return Ok(None);
    }
    let mut visited = FxHashSet::default();
    // Each node with the first node outside on the way to it; nothing for the nodes themselves.
    let mut stack: Vec<(NodeId, Option<NodeId>)> = nodes.iter().map(|&it| (it, None)).collect();
    while let Some((node, outside)) = stack.pop() {
        for user in graph.users(node).iter() {
            spend()?;
            if nodes.contains(&user) {
                if outside.is_some() {
                    return Ok(outside);
                }
            } else if graph.compare(user, last) == Ordering::Less && visited.insert(user) {
                stack.push((user, outside.or(Some(user))));
            }
        }
    }
    Ok(None)
}
