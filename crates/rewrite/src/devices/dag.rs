//! The calls of parts as `partition_graph` tells them.

use super::Partition;
use rustc_hash::FxHashMap;
use tracefx_ir::{GraphModule, NodeId, Opcode};

/// A call of a part: `torch.fx.experimental.accelerator_partitioner.DAGNode`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DagNode {
    /// The call.
    pub submodule_node: NodeId,
    /// What it takes.
    pub input_nodes: Vec<NodeId>,
    /// What it gives: the items that are taken of its result, or else itself.
    pub output_nodes: Vec<NodeId>,
    /// The devices that run it.
    pub logical_device_ids: Vec<i64>,
    /// The bytes that it needs.
    pub size_bytes: u64,
}

/// The calls of parts in the order of the module: `dump_dag`.
pub(super) fn dump_dag(module: &GraphModule, partitions: &[Partition]) -> Vec<DagNode> {
    let graph = &module.graph;
    let by_name: FxHashMap<String, &Partition> =
        partitions.iter().map(|it| (format!("submod_{}", it.id), it)).collect();
    let calls = graph.nodes().filter(|&it| graph.node(it).op() == Opcode::CallModule);
    let dag_node = |node: NodeId| {
        let partition = by_name.get(&**graph.node(node).target())?;
        let is_item = |it: &NodeId| &**graph.node(*it).target() == "operator.getitem";
        let mut output_nodes: Vec<NodeId> = graph.users(node).iter().filter(is_item).collect();
        if output_nodes.is_empty() {
            output_nodes.push(node);
        }
        Some(DagNode {
            submodule_node: node,
            input_nodes: graph.node(node).all_input_nodes(),
            output_nodes,
            logical_device_ids: partition.logical_device_ids.clone(),
            size_bytes: partition.used_mem_bytes,
        })
    };
    calls.filter_map(dag_node).collect()
}
