use crate::corpus::{cases, fixture, list, names, text};
use serde_json::{Value, json};
use std::collections::HashMap;
use tracefx_ir::{Arg, Graph, Namespace, Opcode};
use tracefx_testing::build;

/// Where PyTorch is wrong: it takes `None` for a free name, because the object that it keeps for the name `None` is what
/// stands for "no object". Code generated from such a graph does not parse.
fn corrected(case: &Value) -> Value {
    let mut after = case["after"].clone();
    if case["name"] == "keywords" {
        let slot = after.as_array_mut().and_then(|it| it.iter_mut().find(|it| **it == "None"));
        *slot.expect("the case has the name") = json!("None_1");
    }
    after
}

#[test]
fn names_are_those_that_pytorch_gives() {
    for case in cases("namespace") {
        assert_eq!(answer(&case), corrected(&case), "{}", case["name"]);
    }
}

#[test]
fn the_names_that_pytorch_avoids_are_avoided() {
    let recorded: Vec<String> = serde_json::from_str(&fixture("illegal_names.json")).expect("a list of names");
    assert_eq!(Namespace::ILLEGAL_NAMES, recorded);
}

/// The names that a case gives.
fn answer(case: &Value) -> Value {
    let before = &case["before"];
    match text(case, "pass") {
        "_Namespace.create_name" => json!(create_names(list(case, "before"))),
        "Graph.create_node names" => {
            let mut graph = Graph::new();
            let create = |it: &Value| {
                let op = Opcode::from_name(it[0].as_str().expect("an opcode")).expect("an opcode");
                let target = it[1].as_str().expect("a target");
                let node = graph.create_node(op, target, vec![], vec![], it[2].as_str()).expect("no arguments");
                graph.node(node).name().to_string()
            };
            json!(list(case, "before").iter().map(create).collect::<Vec<_>>())
        }
        "Graph" => {
            let mut graph = Graph::new();
            let x = graph.placeholder("x");
            let make_and_erase = |_| {
                let node = graph.call_function("torch.neg", vec![Arg::Node(x)], vec![]);
                graph.erase_node(node).expect("it has no users");
                graph.node(node).name().to_string()
            };
            json!((0..3).map(make_and_erase).collect::<Vec<_>>())
        }
        "graph_copy" => {
            let mut graph = Graph::new();
            for name in list(&case["options"], "existing") {
                graph.placeholder(name.as_str().expect("a name"));
            }
            graph.graph_copy(&build(before), &mut Vec::new()).expect("the graph is well formed");
            json!(names(&graph, graph.nodes()))
        }
        "deepcopy" => {
            let graph = build(before).clone();
            json!(names(&graph, graph.nodes()))
        }
        "deepcopy+create_node" => {
            // As PyTorch made it: through the namespace, which then knows the suffixes.
            let mut graph = Graph::new();
            graph.graph_copy(&build(before), &mut Vec::new()).expect("the graph is well formed");
            let mut copy = graph.clone();
            let x = copy.first().expect("it has nodes");
            let node = copy.call_function("torch.neg", vec![Arg::Node(x)], vec![]);
            json!(&**copy.node(node).name())
        }
        other => panic!("unknown pass {other}"),
    }
}

/// Candidates come alone, or with an object that keeps the name it was given first, as FX's `obj` argument does.
fn create_names(candidates: &[Value]) -> Vec<String> {
    let mut names = Namespace::default();
    let mut given: HashMap<i64, String> = HashMap::new();
    let mut create = |it: &Value| match it {
        Value::String(candidate) => names.create_name(candidate).to_string(),
        other => {
            let candidate = other[0].as_str().expect("a candidate");
            let object = other[1].as_i64().expect("an object");
            given.entry(object).or_insert_with(|| names.create_name(candidate).to_string()).clone()
        }
    };
    candidates.iter().map(&mut create).collect()
}
