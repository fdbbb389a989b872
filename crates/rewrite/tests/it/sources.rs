//! Where nodes come from, as PyTorch finds it: `tests/oracle/gen_sources.py` recorded the cases.

use serde_json::Value;
use std::path::PathBuf;
use tracefx_ir::{Arg, Graph, NodeId, Opcode};
use tracefx_rewrite::{SourcePartition, check_subgraphs_connected, get_source_partitions};

fn cases() -> Vec<Value> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../tests/fixtures/sources/cases.jsonl"].iter().collect();
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
}

/// The graph of a case: what stands in lists and behind keywords is in a list behind the other arguments.
fn graph_of(case: &Value) -> Graph {
    let mut graph = Graph::new();
    for it in case["nodes"].as_array().unwrap() {
        let op: Opcode = Opcode::ALL.iter().copied().find(|op| op.to_string() == it["op"]).unwrap();
        let node = |name: &&str| Arg::Node(graph.find(name).unwrap());
        let direct = texts(&it["args"]);
        let others: Vec<Arg> = texts(&it["uses"]).iter().filter(|name| !direct.contains(name)).map(node).collect();
        let mut args: Vec<Arg> = direct.iter().map(node).collect();
        if !others.is_empty() {
            args.push(Arg::List(others));
        }
        let name = it["name"].as_str().unwrap();
        let made = graph.create_node(op, name, args, vec![], Some(name)).unwrap();
        let entries = it["meta"].as_object().unwrap().iter();
        let entries = entries.map(|(key, text)| (key.as_str().into(), text.as_str().unwrap().into()));
        graph.meta_mut(made).entries.extend(entries);
    }
    graph
}

#[test]
fn partitions_are_those_that_pytorch_finds() {
    let cases = cases();
    assert_eq!(cases.len(), 12);
    for case in &cases {
        let graph = graph_of(case);
        let wanted = texts(&case["wanted"]);
        let found = get_source_partitions(&graph, &wanted, None);
        let names =
            |nodes: &[NodeId]| nodes.iter().map(|&it| graph.node(it).name().to_string()).collect::<Vec<String>>();
        let told = |it: &SourcePartition| {
            serde_json::json!({
                "nodes": names(&it.nodes), "input_nodes": names(&it.input_nodes),
                "output_nodes": names(&it.output_nodes), "params": names(&it.params),
            })
        };
        let all = found.iter().map(|(source, them)| (source, them.iter().map(told).collect::<Vec<Value>>()));
        assert_eq!(serde_json::json!(all.collect::<Vec<_>>()), case["partitions"], "{}", case["name"]);
        let flat: Vec<&SourcePartition> = found.values().flatten().collect();
        let pairs = (0..flat.len()).flat_map(|a| (0..flat.len()).map(move |b| (a, b)));
        let connected = pairs.filter(|&(a, b)| check_subgraphs_connected(&graph, flat[a], flat[b]));
        assert_eq!(serde_json::json!(connected.collect::<Vec<_>>()), case["connected"], "{}", case["name"]);
    }
}

#[test]
fn a_partition_with_a_node_that_is_refused_is_left_out() {
    let case = &cases()[0];
    let graph = graph_of(case);
    let refused = graph.find("linear_1").unwrap();
    let found = get_source_partitions(&graph, &["Linear", "torch.nn.functional.relu"], Some(&|it| it != refused));
    let counts: Vec<(&str, usize)> = found.iter().map(|(source, them)| (&**source, them.len())).collect();
    assert_eq!(counts, [("Linear", 2), ("torch.nn.functional.relu", 1)]);
}

#[test]
fn malformed_entries_are_of_no_source() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let texts = [("source_fn_stack", ""), ("torch_fn", ";"), ("nn_module_stack", "a,b"), ("nn_module_stack", ";;")];
    for (key, text) in texts {
        let node = graph.call_function("torch.relu", vec![x.into()], vec![]);
        graph.meta_mut(node).entries.insert(key.into(), text.into());
    }
    assert!(get_source_partitions(&graph, &["", "b"], None).is_empty());
}
