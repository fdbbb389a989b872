//! Parts for several devices.

use super::manipulation::{TensorNote, sizes_with};
use super::{Declare, HostPass, PassCall, answer, declared, declared_with_names};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::NodeId;
use tracefx_rewrite::devices::{
    Device, Links, NodeLatency, Partition, PartitionLatency, PartitionMode, PartitionerConfig, SizedGraph,
    get_latency_of_partitioned_graph, partition_graph,
};
use ts_rs::TS;

pub(super) const PASSES: &[HostPass] = &[
    HostPass { name: "partition_graph", run: partition },
    HostPass { name: "get_latency_of_partitioned_graph", run: latency },
];

pub(super) const TYPES: &[Declare] = &[
    declared::<Device>,
    declared::<PartitionMode>,
    declared::<NodeLatency>,
    declared::<PartitionLatency>,
    declared_with_names::<PartitionerConfig>,
    declared::<DevicesCall>,
    declared::<DevicesAnswer>,
    declared::<DevicePartitionAnswer>,
    declared::<DagNodeAnswer>,
    declared::<LatencyCall>,
    declared::<PlacedNodes>,
    declared::<LatencyAnswer>,
    declared::<LinkLatency>,
];

/// The options of `partition_graph`.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DevicesCall {
    /// How parts are found.
    config: PartitionerConfig,
    /// For each node what is noted about its tensor, null where its `val` says it; empty where that holds for all.
    #[serde(default)]
    tensors: Vec<Option<TensorNote>>,
}

/// The answer of `partition_graph`.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct DevicesAnswer {
    /// The parts.
    partitions: Vec<DevicePartitionAnswer>,
    /// The calls of the parts.
    dag: Vec<DagNodeAnswer>,
}

/// A part.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct DevicePartitionAnswer {
    /// Its number.
    #[ts(type = "number")]
    id: i64,
    /// The places of its nodes.
    nodes: Vec<usize>,
    /// The bytes that it needs.
    #[ts(type = "number")]
    used_mem_bytes: u64,
    /// The devices that run it.
    #[ts(type = "number[]")]
    logical_device_ids: Vec<i64>,
    /// The places of the parts whose values it uses.
    parents: Vec<usize>,
    /// The places of the parts that use its values.
    children: Vec<usize>,
    /// The longest way from a part without parents, as the number of steps.
    bfs_level: usize,
}

/// A call of a part. Nodes are named by their names in the new module.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct DagNodeAnswer {
    /// The call.
    submodule_node: String,
    /// What it takes.
    input_nodes: Vec<String>,
    /// What it gives.
    output_nodes: Vec<String>,
    /// The devices that run it.
    #[ts(type = "number[]")]
    logical_device_ids: Vec<i64>,
    /// The bytes that it needs.
    #[ts(type = "number")]
    size_bytes: u64,
}

fn partition(call: &mut PassCall<'_>) -> Result<Value> {
    let DevicesCall { config, tensors } = call.options()?;
    let sizes = sizes_with(call, tensors)?;
    let result = partition_graph(call.module, call.library.registry(), &sizes, &config)?;
    let graph = SizedGraph::new(call.module, call.library.registry(), &sizes)?;
    let links = Links::of(&graph, &result.partitions.iter().collect::<Vec<_>>());
    let levels = links.bfs_levels().unwrap_or_else(|| vec![0; result.partitions.len()]);
    let parts = result.partitions.into_iter().zip(links.parents).zip(links.children).zip(levels);
    let partitions = parts.map(|(((it, parents), children), bfs_level)| DevicePartitionAnswer {
        id: it.id,
        nodes: it.nodes.into_iter().collect(),
        used_mem_bytes: it.used_mem_bytes,
        logical_device_ids: it.logical_device_ids,
        parents,
        children,
        bfs_level,
    });
    let partitions = partitions.collect();
    let graph = &result.module_with_submodules.graph;
    let name = |it: NodeId| graph.node(it).name().to_string();
    let dag = result.dag.into_iter().map(|it| DagNodeAnswer {
        submodule_node: name(it.submodule_node),
        input_nodes: it.input_nodes.into_iter().map(name).collect(),
        output_nodes: it.output_nodes.into_iter().map(name).collect(),
        logical_device_ids: it.logical_device_ids,
        size_bytes: it.size_bytes,
    });
    let dag = dag.collect();
    *call.module = result.module_with_submodules;
    answer(&DevicesAnswer { partitions, dag })
}

/// The options of `get_latency_of_partitioned_graph`.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LatencyCall {
    /// The parts.
    partitions: Vec<PlacedNodes>,
    /// How long nodes and transfers take.
    config: PartitionerConfig,
    /// For each node what is noted about its tensor, null where its `val` says it; empty where that holds for all.
    #[serde(default)]
    tensors: Vec<Option<TensorNote>>,
}

/// The nodes of a part, and where it runs.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PlacedNodes {
    /// The places of its nodes.
    nodes: Vec<usize>,
    /// The devices that run it.
    #[ts(type = "number[]")]
    logical_device_ids: Vec<i64>,
}

/// The answer of `get_latency_of_partitioned_graph`.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct LatencyAnswer {
    /// How long each part takes.
    partitions: Vec<PartitionLatency>,
    /// How long parts need to pass values.
    links: Vec<LinkLatency>,
    /// How long all takes.
    latency_sec: f64,
}

/// How long two parts need to pass values.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct LinkLatency {
    /// The place of the part that gives them.
    parent: usize,
    /// The place of the part that uses them.
    child: usize,
    /// How long that takes.
    latency_sec: f64,
}

fn latency(call: &mut PassCall<'_>) -> Result<Value> {
    let LatencyCall { partitions, config, tensors } = call.options()?;
    let sizes = sizes_with(call, tensors)?;
    let graph = SizedGraph::new(call.module, call.library.registry(), &sizes)?;
    let partition = |it: PlacedNodes| {
        let mut res = Partition { logical_device_ids: it.logical_device_ids, ..Partition::default() };
        for node in it.nodes {
            if node >= graph.len() {
                let what = format!("there is no node {node} of {} before the output", graph.len());
                return Err(Diagnostic::new(Code::InvalidOption, what));
            }
            res.add_node(&graph, node);
        }
        Ok(res)
    };
    let partitions = partitions.into_iter().map(partition).collect::<Result<Vec<_>>>()?;
    let found = get_latency_of_partitioned_graph(&graph, &partitions, &config)?;
    let links = found.links.into_iter().map(|(parent, child, latency_sec)| LinkLatency { parent, child, latency_sec });
    answer(&LatencyAnswer { partitions: found.partitions, links: links.collect(), latency_sec: found.latency_sec })
}
