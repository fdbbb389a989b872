//! Partitions of all that can come together.
//!
//! torch.fx goes from the end of the graph to its beginning, gives each supported node a partition of its own and then tries
//! to merge it with every partition there is, the first made first, keeping what makes no circle. It follows that
//!
//! - two partitions that stay apart are on one path, since nothing else would have kept them from merging; so the partitions
//!   form a chain, and a new one stands at its beginning;
//! - between neighbours in the chain the path goes through a node that is in no partition, for the same reason.
//!
//! So let partitions be numbered as they are made, and let the *level* of a node be the number of the last partition in the
//! chain's direction that a path from the node leads into: the largest number. A supported node fits into
//!
//! - the partition of its level, if no path leads there through a node in no partition;
//! - any partition with a larger number, which it does not lead to;
//! - none with a smaller one, since a path leads there through that of its level.
//!
//! It goes to the first of these that was made, the one with the least number; nothing else merges. One pass over the nodes and
//! their users finds the same partitions.

use super::Group;
use crate::order::Order;
use tracefx_ir::{Graph, NodeId};

/// A node whose level is that of a partition that it is in, or that it leads to.
#[derive(Clone, Copy)]
enum Level {
    Inside(usize),
    LeadsTo(usize),
}

pub(super) fn groups(graph: &Graph, order: &Order, is_supported: &mut dyn FnMut(NodeId) -> bool) -> Vec<Group> {
    let mut levels = vec![Level::LeadsTo(0); graph.id_bound()];
    let mut groups: Vec<Group> = Vec::new();
    let mut ids = 0..;
    for node in graph.nodes().rev() {
        let users = order.successors(graph, node).map(|it| levels[it.index()]);
        if !is_supported(node) {
            let level = users.map(|it| match it {
                Level::Inside(level) | Level::LeadsTo(level) => level,
            });
            levels[node.index()] = Level::LeadsTo(level.max().unwrap_or(0));
            continue;
        }
        let least = users.map(|it| match it {
            Level::Inside(level) => level,
            Level::LeadsTo(level) => level + 1,
        });
        let level = least.max().unwrap_or(0).max(1);
        levels[node.index()] = Level::Inside(level);
        let id = ids.next().expect("there are enough numbers");
        match groups.get_mut(level - 1) {
            Some(group) => {
                // Of two partitions of one node, FX keeps the number of the later one.
                if group.nodes.len() == 1 {
                    group.id = id;
                }
                group.nodes.push(node);
            }
            None => groups.push(Group { id, nodes: vec![node] }),
        }
    }
    groups
}
