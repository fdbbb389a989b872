//! Random modules partitioned for random devices: the parts compute the same, each call is in one of them, and no device
//! holds more than it can.

use super::layers::layered;
use super::random::{Writes, modules};
use super::{check, computed, known, lint, run};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value as Json, json};
use std::collections::{BTreeSet, HashSet};
use tracefx_core::Code;
use tracefx_ir::{Attribute, GraphModule, NodeId, Opcode, Val};

/// What is taken for the bytes of what is no single tensor.
const OTHER_BYTES: u64 = 24;

const MODES: [&str; 4] = ["size_based", "sparse_nn", "cost_aware", "kl_based"];

fn is_call(module: &GraphModule) -> Vec<bool> {
    let calls = [Opcode::CallFunction, Opcode::CallMethod, Opcode::CallModule];
    module.graph.nodes().map(|it| calls.contains(&module.graph.node(it).op())).collect()
}

/// The options of a mode for devices of these sizes, where each node takes as many seconds as its place says.
fn options(module: &GraphModule, mode: &str, bytes: &[u64]) -> Json {
    let device = |(id, bytes): (usize, &u64)| json!({ "name": "", "availableMemBytes": bytes, "logicalId": id });
    let latency = |at: usize| json!({ "memLatencySec": at % 3, "computerLatencySec": at % 5 });
    // Sizes are those of single tensors, so that all else needs a note.
    let note = |it: NodeId| match module.graph.node(it).meta.val {
        Some(Val::Tensor(_)) => Json::Null,
        _ => json!({ "dtype": "float32", "shape": [OTHER_BYTES / 4] }),
    };
    json!({ "tensors": module.graph.nodes().map(note).collect::<Vec<_>>(), "config": {
        "devices": bytes.iter().enumerate().map(device).collect::<Vec<_>>(),
        "mode": mode,
        "transferRateBytesPerSec": 16.0,
        "nodeToLatencyMapping": (0..module.graph.len()).map(latency).collect::<Vec<_>>(),
    } })
}

/// How many parts there are; none where the devices do not hold the module.
fn check_parts(module: &GraphModule, mode: &str, bytes: &[u64]) -> Result<Option<usize>, TestCaseError> {
    let mut changed = module.clone();
    let answer = match run(&mut changed, "partition_graph", options(module, mode, bytes)) {
        Ok(answer) => answer,
        Err(problem) => {
            prop_assert_eq!(problem.code(), Code::PassFailed, "{}: {}\n{}", mode, problem, module.graph);
            return Ok(None);
        }
    };
    lint(&changed);
    prop_assert_eq!(computed(&changed), computed(module), "{} made\n{}\nof\n{}", mode, changed.graph, module.graph);
    let parts = answer["partitions"].as_array().unwrap();
    let mut n_parts_of = vec![0; module.graph.len()];
    let mut on_device = vec![BTreeSet::new(); bytes.len()];
    for part in parts {
        let nodes: Vec<usize> = part["nodes"].as_array().unwrap().iter().map(place_of).collect();
        nodes.iter().for_each(|it| n_parts_of[*it] += 1);
        for device in part["logicalDeviceIds"].as_array().unwrap() {
            on_device[place_of(device)].extend(&nodes);
        }
    }
    for (at, is_call) in is_call(module).into_iter().enumerate() {
        prop_assert!(
            !is_call || n_parts_of[at] == 1,
            "node {} is in {} parts, of\n{}",
            at,
            n_parts_of[at],
            module.graph
        );
    }
    for (nodes, bytes) in on_device.iter().zip(bytes) {
        let needed = needed(module, nodes);
        prop_assert!(needed <= *bytes, "{}: {} needs {} of {}, of\n{}", mode, answer, needed, bytes, module.graph);
    }
    Ok(Some(parts.len()))
}

fn place_of(json: &Json) -> usize {
    json.as_u64().unwrap() as usize
}

/// The bytes of nodes and of what they take from others.
fn needed(module: &GraphModule, places: &BTreeSet<usize>) -> u64 {
    let graph = &module.graph;
    let nodes: Vec<NodeId> = graph.nodes().collect();
    let here: HashSet<NodeId> = places.iter().map(|it| nodes[*it]).collect();
    let bytes = |it: &NodeId| match &graph.node(*it).meta.val {
        Some(Val::Tensor(meta)) => 4 * meta.sizes.iter().map(|it| it.as_int().unwrap() as u64).product::<u64>(),
        _ => OTHER_BYTES,
    };
    let inputs = here.iter().flat_map(|it| graph.node(*it).all_input_nodes());
    here.iter().map(bytes).sum::<u64>() + inputs.filter(|it| !here.contains(it)).map(|it| bytes(&it)).sum::<u64>()
}

/// Modules that a pass can take apart, some of which call an embedding, and the bytes of devices.
fn cases() -> impl Strategy<Value = (GraphModule, Vec<u64>)> {
    let with_embedding = layered(Writes::Allowed).prop_map(|mut module| {
        let Some(Attribute::Module(layer)) = module.attributes.get_mut("layer") else { panic!("there is a layer") };
        layer.class_name = "torch.nn.modules.sparse.EmbeddingBag".into();
        module
    });
    let module = prop_oneof![modules(Writes::Allowed), with_embedding];
    let module = module.prop_filter("nothing is called", |it| is_call(it).contains(&true));
    let bytes = prop_oneof![
        prop::collection::vec(80..600u64, 1..5),
        (80..600u64, 1..5usize).prop_map(|(bytes, n_devices)| vec![bytes; n_devices]),
    ];
    (module.prop_map(|it| known(&it)), bytes)
}

#[test]
fn many_of_these_modules_have_several_parts() {
    let mut runner = TestRunner::deterministic();
    let mut n_split = [0; 4];
    for _ in 0..200 {
        let (module, bytes) = cases().new_tree(&mut runner).unwrap().current();
        for (at, mode) in MODES.into_iter().enumerate() {
            n_split[at] += usize::from(check_parts(&module, mode, &bytes).unwrap().is_some_and(|it| it > 1));
        }
    }
    assert!(n_split.iter().all(|it| *it >= 15), "{n_split:?} of 200");
}

proptest! {
    #![proptest_config(super::config())]

    #[test]
    fn parts_for_devices((module, bytes) in cases(), mode in prop::sample::select(&MODES[..])) {
        check_parts(&module, mode, &bytes)?;
    }

    #[test]
    fn parts_that_are_told((module, _) in cases(), n_parts in 1usize..5) {
        let n_nodes = module.graph.len();
        let part_of: Vec<usize> = (0..n_nodes).map(|at| at * n_parts / n_nodes).collect();
        let devices: Vec<Json> = (0..n_parts).map(|it| json!([it, [it]])).collect();
        let mut options = options(&module, "aot_based", &vec![600; n_parts]);
        options["config"]["nodeToPartitionMapping"] = json!(part_of);
        options["config"]["partitionToLogicalDeviceMapping"] = json!(devices);
        check(&module, "partition_graph", options);
    }
}
