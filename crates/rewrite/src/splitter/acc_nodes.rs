//! Which nodes an accelerator runs.

use super::{calls, is_call};
use rustc_hash::FxHashSet;
use tracefx_ir::{Graph, NodeId};

/// Why a node is, or is not, for the accelerator: `torch.fx.passes.splitter_base.NodeEvent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// The node.
    pub node: NodeId,
    /// What happened, in torch.fx's words: `init_acc|callable_and_operator_supported`…
    pub desc: &'static str,
    /// The node because of which it did.
    pub dep: Option<NodeId>,
}

/// The nodes for the accelerator, and why: what `FxNetAccNodesFinder` and its `NodeEventTracker` say.
#[derive(Clone, Debug)]
pub struct AccNodes {
    /// The nodes.
    pub nodes: FxHashSet<NodeId>,
    /// What happened to each node, in order.
    pub events: Vec<NodeEvent>,
}

/// The calls that an accelerator supports, without those that would take a value that is no tensor from the CPU or give one to
/// it: `torch.fx.passes.splitter_base.FxNetAccNodesFinder`. Each node leaves at most once.
pub fn find_acc_nodes(
    graph: &Graph,
    is_supported: &mut dyn FnMut(NodeId) -> bool,
    is_tensor: &dyn Fn(NodeId) -> bool,
    allow_non_tensor: bool,
) -> AccNodes {
    let mut res = AccNodes { nodes: FxHashSet::default(), events: Vec::new() };
    for node in graph.nodes() {
        let desc = if !is_call(graph.node(node)) {
            "init_cpu|not_callable"
        } else if !is_supported(node) {
            "init_cpu|operator_support"
        } else {
            res.nodes.insert(node);
            "init_acc|callable_and_operator_supported"
        };
        res.add(node, desc, None);
    }
    if allow_non_tensor {
        return res;
    }
    // Nodes that run on the CPU and whose neighbours may have to as well.
    let mut waiting: Vec<NodeId> = Vec::new();
    for node in calls(graph).filter(|&it| !is_tensor(it)) {
        if !res.nodes.contains(&node) {
            res.add(node, "new_cpu_node|callable_non_tensor_input", None);
            waiting.push(node);
        } else if let Some(user) = graph.users(node).iter().find(|it| !res.nodes.contains(it)) {
            res.nodes.remove(&node);
            res.add(node, "acc_del|non_tensor_output_with_cpu_user", Some(user));
            waiting.push(node);
        }
    }
    while let Some(node) = waiting.pop() {
        if !is_tensor(node) {
            for user in graph.users(node).iter() {
                if res.nodes.remove(&user) {
                    res.add(user, "acc_del|user_of_new_cpu_node", Some(node));
                    waiting.push(user);
                }
            }
        }
        for input in graph.node(node).all_input_nodes() {
            if !is_tensor(input) && res.nodes.remove(&input) {
                res.add(input, "acc_del|non_tensor_output_with_cpu_user", Some(node));
                waiting.push(input);
            }
        }
    }
    res
}

impl AccNodes {
    fn add(&mut self, node: NodeId, desc: &'static str, dep: Option<NodeId>) {
        self.events.push(NodeEvent { node, desc, dep });
    }
}
