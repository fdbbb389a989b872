//! Partitions for several devices, as PyTorch makes them: `tests/fixtures/devices`.

use serde_json::Value;
use std::collections::BTreeMap;
use tracefx_core::DType;
use tracefx_ir::{Arg, Attribute, FakeTensor, Graph, GraphModule, NodeId, Opcode, TensorKind, TensorMeta, Val};
use tracefx_rewrite::devices::{
    Links, PartitionerConfig, SizedGraph, get_comm_latency_between, get_latency_of_partitioned_graph, partition_graph,
};
use tracefx_rewrite::get_size_of_all_nodes;

struct Case {
    text: Value,
    module: GraphModule,
    config: PartitionerConfig,
}

fn cases() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/devices/devices.jsonl");
    let text = std::fs::read_to_string(path).expect("the fixture");
    text.lines().map(|it| Case::new(serde_json::from_str(it).expect("JSON"))).collect()
}

impl Case {
    fn new(text: Value) -> Self {
        let mut graph = Graph::new();
        let mut by_name: BTreeMap<&str, NodeId> = BTreeMap::new();
        for node in list(&text["nodes"]) {
            let args = list(&node["args"]).iter().map(|it| arg(it, &by_name)).collect();
            let op = Opcode::from_name(string(&node["op"])).expect("an op");
            let id = graph.create_node(op, string(&node["target"]), args, vec![], Some(string(&node["name"]))).unwrap();
            by_name.insert(string(&node["name"]), id);
            if let Value::Array(shape) = &node["shape"] {
                graph.meta_mut(id).val = Some(Val::Tensor(meta(shape)));
            }
        }
        let mut module = GraphModule::new(graph);
        let mut id = 0;
        for (path, it) in text["modules"].as_object().expect("modules") {
            let mut leaf = GraphModule::new(Graph::new());
            leaf.class_name = string(&it["class"]).into();
            for shape in list(&it["parameters"]) {
                id += 1;
                let tensor = FakeTensor { meta: meta(list(shape)), id };
                leaf.set_attribute(&format!("p{id}"), Attribute::Fake { tensor, kind: TensorKind::Parameter });
            }
            module.set_attribute(path, Attribute::Module(Box::new(leaf)));
        }
        let mut config = text["config"].clone();
        for key in ["nodeToLatencyMapping", "nodeToPartitionMapping"] {
            let of = |node: &Value| config[key].get(string(&node["name"])).cloned().unwrap_or(Value::Null);
            config[key] = list(&text["nodes"]).iter().map(of).collect();
        }
        let config = serde_json::from_value(config).expect("a configuration");
        Case { text, module, config }
    }

    fn name(&self) -> &str {
        string(&self.text["name"])
    }
}

fn meta(shape: &[Value]) -> TensorMeta {
    TensorMeta::contiguous(DType::Float32, shape.iter().map(|it| it.as_i64().expect("a size").into()).collect())
}

fn arg(text: &Value, by_name: &BTreeMap<&str, NodeId>) -> Arg {
    match text {
        Value::Array(items) => Arg::Tuple(items.iter().map(|it| arg(it, by_name)).collect()),
        node => by_name[string(&node["node"])].into(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn string(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn names(graph: &Graph, nodes: &[NodeId]) -> Value {
    nodes.iter().map(|&it| Value::from(&**graph.node(it).name())).collect()
}

#[test]
fn sizes_of_nodes_are_pytorchs() {
    for case in cases() {
        let sizes = get_size_of_all_nodes(&case.module).unwrap();
        for (node, expected) in case.module.graph.nodes().zip(list(&case.text["nodes"])) {
            let got = sizes[node.index()].map(|it| (it.output_size, it.total_size));
            assert_eq!(got, expected["output_size"].as_u64().zip(expected["total_size"].as_u64()), "{}", case.name());
        }
    }
}

#[test]
fn partitions_are_pytorchs() {
    for case in cases() {
        let sizes = get_size_of_all_nodes(&case.module).unwrap();
        let result = partition_graph(&case.module, tracefx_ops::registry(), &sizes, &case.config);
        if let Value::String(error) = &case.text["error"] {
            assert_eq!(result.unwrap_err().message(), error, "{}", case.name());
            continue;
        }
        let result = result.unwrap_or_else(|it| panic!("{}: {it}", case.name()));
        let nodes: Vec<NodeId> = case.module.graph.nodes().collect();
        for (got, expected) in result.partitions.iter().zip(list(&case.text["partitions"])) {
            let members: Vec<NodeId> = got.nodes.iter().map(|&it| nodes[it]).collect();
            let got = serde_json::json!({
                "id": got.id, "nodes": names(&case.module.graph, &members),
                "used_mem_bytes": got.used_mem_bytes, "logical_device_ids": got.logical_device_ids,
            });
            assert_eq!(&got, expected, "{}", case.name());
        }
        assert_eq!(result.partitions.len(), list(&case.text["partitions"]).len(), "{}", case.name());
        let module = &result.module_with_submodules;
        let dag = result.dag.iter().map(|it| {
            serde_json::json!({
                "node": &**module.graph.node(it.submodule_node).name(),
                "inputs": names(&module.graph, &it.input_nodes), "outputs": names(&module.graph, &it.output_nodes),
                "logical_device_ids": it.logical_device_ids, "size_bytes": it.size_bytes,
            })
        });
        assert_eq!(dag.collect::<Value>(), case.text["dag"], "{}", case.name());
        assert_eq!(module.graph.to_string(), string(&case.text["graph"]), "{}", case.name());
        assert!(module.graph.lint(Some(module)).is_empty(), "{}", case.name());
    }
}

#[test]
fn latencies_are_pytorchs() {
    for case in cases().into_iter().filter(|it| it.text["error"].is_null()) {
        let sizes = get_size_of_all_nodes(&case.module).unwrap();
        let partitions =
            partition_graph(&case.module, tracefx_ops::registry(), &sizes, &case.config).unwrap().partitions;
        let graph = SizedGraph::new(&case.module, tracefx_ops::registry(), &sizes).unwrap();
        let got = get_latency_of_partitioned_graph(&graph, &partitions, &case.config).unwrap();
        let expected = &case.text["latency"];
        let parts = got.partitions.iter();
        let parts = parts.map(|it| [it.mem_latency_sec, it.computer_latency_sec, it.overall_latency_sec]);
        assert_eq!(serde_json::json!(parts.collect::<Vec<_>>()), expected["partitions"], "{}", case.name());
        assert_eq!(Some(got.latency_sec), expected["graph"].as_f64(), "{}", case.name());
        let rate = case.config.transfer_rate_bytes_per_sec;
        for (parent, child, seconds) in got.links {
            let alone = get_comm_latency_between(&graph, &partitions[parent], &partitions[child], rate);
            assert_eq!(alone, seconds, "{}", case.name());
        }
        let links = Links::of(&graph, &partitions.iter().collect::<Vec<_>>());
        assert!(links.bfs_levels().is_some(), "{}", case.name());
    }
}
