//! Partitioning a module for several devices: `torch.fx.experimental.accelerator_partitioner` and `partitioner_utils`.
//!
//! Nodes are known by their places in the graph here, so that sets of them are in its order: where PyTorch takes any of a set,
//! the first in the graph is taken. Inputs and attributes belong to every part that uses them, and each call to one.
//!
//! Let n be the nodes and arguments of a graph, d the devices and p the parts. By size takes O(n·d), sparse-nn O(p·n),
//! ahead of time O(n). The two that try changes take O(n·d) for each try: cost-aware tries O(n³) pairs of parts, and
//! Kernighan-Lin O(n²) pairs of nodes. PyTorch's tries are exponential, since they walk all paths. [`PartitionerConfig::limit`]
//! bounds what they look at.

mod cost_aware;
mod dag;
mod kernighan_lin;
mod latency;
mod links;
mod partition;
mod placement;
mod size_based;
mod sized_graph;
mod sparse_nn;
#[cfg(test)]
mod tests;

pub use dag::DagNode;
pub use latency::{
    GraphLatency, NodeLatency, PartitionLatency, get_comm_latency_between, get_latency_of_one_partition,
    get_latency_of_partitioned_graph,
};
pub use links::Links;
pub use partition::Partition;
pub use sized_graph::SizedGraph;

use crate::{SizeBytes, SplitOptions, split_module};
use latency::Costs;
use placement::check_devices;
use serde::Deserialize;
use std::collections::BTreeMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::GraphModule;
use tracefx_ops::Registry;

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Device {
    /// Its name.
    pub name: String,
    /// How many bytes it can hold.
    #[ts(type = "number")]
    pub available_mem_bytes: u64,
    /// Its number, which no other has.
    #[ts(type = "number")]
    pub logical_id: i64,
}

/// How parts are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum PartitionMode {
    /// Calls in their order, as many as a device holds.
    #[default]
    SizeBased,
    /// As by size, with embeddings apart: each device has some of them and all the rest.
    SparseNn,
    /// Each call by itself first; then the two parts that together take the least time are joined, as long as it gets no worse.
    CostAware,
    /// By size first; then calls of different parts are swapped as long as that takes less time.
    KlBased,
    /// As it is told.
    AotBased,
}

/// How [`partition_graph`] partitions a module.
#[derive(Clone, Debug, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
#[ts(rename = "PartitionerConfigOptions")]
pub struct PartitionerConfig {
    /// The devices.
    pub devices: Vec<Device>,
    /// How parts are found.
    pub mode: PartitionMode,
    /// How fast values go from device to device, for the modes that count time.
    pub transfer_rate_bytes_per_sec: f64,
    /// For each node by its place how long it takes, for the modes that count time.
    pub node_to_latency_mapping: Vec<Option<NodeLatency>>,
    /// For each node by its place its part, ahead of time.
    #[ts(type = "(number | null)[]")]
    pub node_to_partition_mapping: Vec<Option<i64>>,
    /// The logical ids of the devices of each part, ahead of time.
    #[ts(type = "[number, number[]][]")]
    pub partition_to_logical_device_mapping: Vec<(i64, Vec<i64>)>,
    /// Whether devices that are left run copies of the parts.
    pub saturate_host: bool,
    /// How many nodes and arguments the modes that try changes look at, all tries together.
    #[ts(type = "number")]
    pub limit: u64,
}

impl Default for PartitionerConfig {
    fn default() -> Self {
        PartitionerConfig {
            devices: vec![],
            mode: PartitionMode::default(),
            transfer_rate_bytes_per_sec: 0.0,
            node_to_latency_mapping: vec![],
            node_to_partition_mapping: vec![],
            partition_to_logical_device_mapping: vec![],
            saturate_host: false,
            limit: 100_000_000,
        }
    }
}

/// What [`partition_graph`] makes.
#[derive(Clone, Debug)]
pub struct PartitionResult {
    /// The parts. Their nodes are places in the graph that was partitioned.
    pub partitions: Vec<Partition>,
    /// The calls of the parts, in the order in which the module makes them.
    pub dag: Vec<DagNode>,
    /// The module that calls the parts, `submod_0` and so on by their ids.
    pub module_with_submodules: GraphModule,
}

/// Partitions a module for several devices: `Partitioner.partition_graph`. A module that one device holds is one part, unless
/// it is told ahead of time. `sizes` are those of [`get_size_of_all_nodes`](crate::get_size_of_all_nodes).
///
/// ```
/// use tracefx_core::DType;
/// use tracefx_ir::{Graph, GraphModule, TensorMeta, Val};
/// use tracefx_ops::registry;
/// use tracefx_rewrite::devices::{Device, PartitionerConfig, partition_graph};
/// use tracefx_rewrite::get_size_of_all_nodes;
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let relu = graph.call_function("torch.relu", vec![x.into()], vec![]);
/// let neg = graph.call_function("torch.neg", vec![relu.into()], vec![]);
/// graph.output(neg.into());
/// for node in [x, relu, neg] {
///     let meta = TensorMeta::contiguous(DType::Float32, vec![4.into()]);
///     graph.meta_mut(node).val = Some(Val::Tensor(meta));
/// }
/// let module = GraphModule::new(graph);
/// let device = |logical_id| Device { name: format!("dev_{logical_id}"), available_mem_bytes: 32, logical_id };
/// let config = PartitionerConfig { devices: vec![device(0), device(1)], ..PartitionerConfig::default() };
/// let result = partition_graph(&module, registry(), &get_size_of_all_nodes(&module).unwrap(), &config).unwrap();
/// let devices: Vec<_> = result.partitions.iter().map(|it| &it.logical_device_ids[..]).collect();
/// assert_eq!(devices, [[0], [1]]);
/// assert!(result.module_with_submodules.submodule("submod_1").is_ok());
/// ```
///
/// # Errors
/// `PassFailed` where the devices do not hold the module, in PyTorch's words where it has any; `InvalidOption` where the
/// configuration is not complete; `LimitExceeded` where the search looks at more than it may; those of
/// [`split_module`].
pub fn partition_graph(
    module: &GraphModule,
    registry: &Registry,
    sizes: &[Option<SizeBytes>],
    config: &PartitionerConfig,
) -> Result<PartitionResult> {
    if config.devices.is_empty() {
        return Err(failed("No devices").help("give the devices that the parts are for"));
    }
    check_devices(&config.devices)?;
    let graph = SizedGraph::new(module, registry, sizes)?;
    if graph.calls().next().is_none() {
        return Err(failed("No Partition since no operations in the module"));
    }
    let mut partitions = find_partitions(&graph, config)?;
    if config.saturate_host {
        placement::saturate_host(&mut partitions, &config.devices)?;
    }
    // Each call is in one part; the rest is passed in by the caller.
    let mut part_of = vec![0; module.graph.id_bound()];
    for partition in &partitions {
        partition.nodes.iter().for_each(|&it| part_of[graph.node(it).index()] = partition.id);
    }
    let split = split_module(module, registry, &mut |it| part_of[it.index()], &SplitOptions::default())?;
    let dag = dag::dump_dag(&split.module, &partitions);
    Ok(PartitionResult { partitions, dag, module_with_submodules: split.module })
}

fn find_partitions(graph: &SizedGraph<'_>, config: &PartitionerConfig) -> Result<Vec<Partition>> {
    let devices = &config.devices;
    if config.mode == PartitionMode::AotBased {
        return aot_based(graph, config);
    }
    let total = graph.total_size();
    // The first of those that hold most.
    let most = devices.iter().rev().max_by_key(|it| it.available_mem_bytes);
    if let Some(device) = most.filter(|it| total <= it.available_mem_bytes) {
        let nodes = (0..graph.len()).collect();
        let logical_device_ids = vec![device.logical_id];
        return Ok(vec![Partition { id: 0, nodes, used_mem_bytes: total, logical_device_ids }]);
    }
    let available = devices.iter().fold(0, |all: u64, it| all.saturating_add(it.available_mem_bytes));
    if total > available {
        return Err(failed("Devices do not have enough memory for the module")
            .help(format!("the module needs {total} bytes, the devices have {available}")));
    }
    match config.mode {
        PartitionMode::SizeBased => size_based::partition(graph, devices),
        PartitionMode::SparseNn => sparse_nn::partition(graph, devices),
        PartitionMode::CostAware => cost_aware::partition(&mut Costs::new(graph, config)?, devices),
        PartitionMode::KlBased => kernighan_lin::partition(&mut Costs::new(graph, config)?, devices),
        PartitionMode::AotBased => aot_based(graph, config),
    }
}

/// The parts that are told, in the order in which the graph has them.
fn aot_based(graph: &SizedGraph<'_>, config: &PartitionerConfig) -> Result<Vec<Partition>> {
    let devices: BTreeMap<i64, &Vec<i64>> =
        config.partition_to_logical_device_mapping.iter().map(|(id, devices)| (*id, devices)).collect();
    let mut places: BTreeMap<i64, usize> = BTreeMap::new();
    let mut partitions: Vec<Partition> = Vec::new();
    for place in 0..graph.len() {
        let Some(id) = config.node_to_partition_mapping.get(place).copied().flatten() else {
            if graph.is_call(place) {
                let what = format!("nodeToPartitionMapping has no partition for {}", graph.name(place));
                return Err(Diagnostic::new(Code::InvalidOption, what)
                    .node(graph.name(place))
                    .help("ahead of time each node that calls something needs a partition"));
            }
            continue;
        };
        let at = match places.get(&id) {
            Some(&at) => at,
            None => {
                let logical_device_ids = devices.get(&id).copied().cloned().ok_or_else(|| {
                    let what = format!("partitionToLogicalDeviceMapping has no devices for partition {id}");
                    Diagnostic::new(Code::InvalidOption, what)
                })?;
                partitions.push(Partition { id, logical_device_ids, ..Partition::default() });
                places.insert(id, partitions.len() - 1);
                partitions.len() - 1
            }
        };
        partitions[at].add_node(graph, place);
    }
    Ok(partitions)
}

fn failed(what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::PassFailed, what)
}

/// Gives each part its place for an id.
fn number(partitions: &mut [Partition]) {
    partitions.iter_mut().enumerate().for_each(|(id, it)| it.id = id as i64);
}
