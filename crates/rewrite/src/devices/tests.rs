//! Properties of the partitioners that the recorded graphs do not reach.

use super::*;
use tracefx_core::DType;
use tracefx_ir::{Graph, NodeId, TensorMeta, Val};

/// A chain of functions, each of 16 bytes, whose value and whose input the last one takes too.
fn chain(length: usize) -> GraphModule {
    let mut graph = Graph::new();
    let give = |graph: &mut Graph, node: NodeId| {
        graph.meta_mut(node).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, vec![4.into()])));
    };
    let x = graph.placeholder("x");
    give(&mut graph, x);
    let mut last = x;
    for _ in 0..length {
        last = graph.call_function("torch.sin", vec![last.into()], vec![]);
        give(&mut graph, last);
    }
    let sum = graph.call_function("torch.add", vec![last.into(), x.into()], vec![]);
    give(&mut graph, sum);
    graph.output(sum.into());
    GraphModule::new(graph)
}

fn devices(bytes: &[u64]) -> Vec<Device> {
    let device =
        |(id, &available_mem_bytes)| Device { name: String::new(), available_mem_bytes, logical_id: id as i64 };
    bytes.iter().enumerate().map(device).collect()
}

fn config(length: usize, mode: PartitionMode, bytes: &[u64]) -> PartitionerConfig {
    let second = NodeLatency { mem_latency_sec: 1.0, computer_latency_sec: 2.0 };
    PartitionerConfig {
        devices: devices(bytes),
        mode,
        transfer_rate_bytes_per_sec: 16.0,
        node_to_latency_mapping: vec![Some(second); length + 2],
        ..PartitionerConfig::default()
    }
}

fn run(module: &GraphModule, config: &PartitionerConfig) -> Result<PartitionResult> {
    partition_graph(module, tracefx_ops::registry(), &crate::get_size_of_all_nodes(module)?, config)
}

#[test]
fn bytes_are_right_after_any_additions_and_removals() {
    let module = chain(6);
    let sizes = crate::get_size_of_all_nodes(&module).unwrap();
    let graph = SizedGraph::new(&module, tracefx_ops::registry(), &sizes).unwrap();
    let mut partition = Partition::default();
    for (node, is_added) in [(1, true), (3, true), (2, true), (7, true), (1, false), (3, false), (7, false)] {
        match is_added {
            true => partition.add_node(&graph, node),
            false => partition.remove_node(&graph, node),
        }
        let contains = |it: usize| partition.nodes.contains(&it);
        let bytes: u64 = partition.nodes.iter().map(|&it| graph.get_extra_size_of(it, contains)).sum();
        assert_eq!(partition.used_mem_bytes, bytes, "{partition:?}");
    }
    assert_eq!(partition.nodes.into_iter().collect::<Vec<_>>(), [2]);
}

#[test]
fn ids_ahead_of_time_need_not_be_those_of_their_order() {
    let module = chain(1);
    let mut config = config(1, PartitionMode::AotBased, &[64, 64]);
    config.node_to_partition_mapping = vec![None, Some(7), Some(-2)];
    config.partition_to_logical_device_mapping = vec![(7, vec![1]), (-2, vec![0])];
    let result = run(&module, &config).unwrap();
    let devices: Vec<_> = result.dag.iter().map(|it| it.logical_device_ids[0]).collect();
    assert_eq!(devices, [1, 0]);
    assert!(result.module_with_submodules.submodule("submod_-2").is_ok());
}

#[test]
fn what_is_not_said_is_asked_for() {
    let module = chain(4);
    let problem = |change: &dyn Fn(&mut PartitionerConfig)| {
        let mut config = config(4, PartitionMode::KlBased, &[64, 80]);
        change(&mut config);
        run(&module, &config).unwrap_err()
    };
    type Change<'a> = &'a dyn Fn(&mut PartitionerConfig);
    let cases: [(Change<'_>, &str); 6] = [
        (&|it| it.transfer_rate_bytes_per_sec = 0.0, "transferRateBytesPerSec is 0, and no positive number"),
        (&|it| it.node_to_latency_mapping.clear(), "nodeToLatencyMapping has no latency for sin"),
        (&|it| it.mode = PartitionMode::AotBased, "nodeToPartitionMapping has no partition for sin"),
        (&|it| it.devices[1].logical_id = 0, "two devices have the logical id 0"),
        (&|it| it.devices.clear(), "No devices"),
        (&|it| it.limit = 40, "the search for partitions looked at more than 40 nodes and arguments"),
    ];
    for (change, message) in cases {
        assert_eq!(problem(change).message(), message);
    }
    assert_eq!(problem(&|it| it.limit = 40).code(), Code::LimitExceeded);
}

#[test]
fn without_embeddings_the_parts_go_where_they_fit() {
    let module = chain(4);
    let result = run(&module, &config(4, PartitionMode::SparseNn, &[80, 80])).unwrap();
    let mut on: Vec<i64> = result.partitions.iter().flat_map(|it| it.logical_device_ids.clone()).collect();
    on.sort_unstable();
    assert_eq!(on, [0, 1]);
}

#[test]
fn a_long_chain_is_no_matter() {
    let length = 100_000;
    let module = chain(length);
    let total = 16 * (length as u64 + 2);
    for mode in [PartitionMode::SizeBased, PartitionMode::SparseNn] {
        let result = run(&module, &config(length, mode, &[total * 2 / 3, total * 2 / 3])).unwrap();
        assert_eq!(result.partitions.len(), 2);
        let sizes = crate::get_size_of_all_nodes(&module).unwrap();
        let graph = SizedGraph::new(&module, tracefx_ops::registry(), &sizes).unwrap();
        let config = config(length, mode, &[]);
        let latency = get_latency_of_partitioned_graph(&graph, &result.partitions, &config).unwrap();
        // The cut passes a value of the chain and the input.
        assert_eq!(latency.latency_sec, 2.0 * (length as f64 + 1.0) + 2.0);
    }
}

#[test]
fn a_swap_makes_it_no_slower() {
    let module = chain(7);
    let sizes = crate::get_size_of_all_nodes(&module).unwrap();
    let graph = SizedGraph::new(&module, tracefx_ops::registry(), &sizes).unwrap();
    let cost = |mode| {
        let config = config(7, mode, &[96, 96, 64]);
        let result = run(&module, &config).unwrap();
        let mut calls: Vec<usize> =
            result.partitions.iter().flat_map(|it| it.calls(&graph).collect::<Vec<_>>()).collect();
        calls.sort_unstable();
        assert_eq!(calls, (1..9).collect::<Vec<_>>(), "each call is in one part");
        get_latency_of_partitioned_graph(&graph, &result.partitions, &config).unwrap().latency_sec
    };
    let by_size = cost(PartitionMode::SizeBased);
    assert!(cost(PartitionMode::KlBased) <= by_size);
    assert!(cost(PartitionMode::CostAware) <= by_size);
}

#[test]
fn no_device_is_given_a_part_without_calls() {
    // By size the third call has a device of its own, where it is a transfer away from the first.
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let first = graph.call_function("torch.sin", vec![x.into()], vec![]);
    let second = graph.call_function("torch.cat", vec![x.into()], vec![]);
    let third = graph.call_function("torch.cos", vec![first.into()], vec![]);
    graph.output(tracefx_ir::Arg::Tuple(vec![second.into(), third.into()]));
    for (node, n_elements) in [(x, 4), (first, 4), (second, 19), (third, 4)] {
        let meta = TensorMeta::contiguous(DType::Float32, vec![n_elements.into()]);
        graph.meta_mut(node).val = Some(Val::Tensor(meta));
    }
    let module = GraphModule::new(graph);
    let devices_of = |mode| {
        let result = run(&module, &config(2, mode, &[100, 100, 40])).unwrap();
        assert!(result.partitions.iter().enumerate().all(|(number, it)| it.id == number as i64));
        assert_eq!(result.dag.len(), result.partitions.len());
        result.partitions.len()
    };
    assert_eq!((devices_of(PartitionMode::SizeBased), devices_of(PartitionMode::KlBased)), (3, 2));
}
