//! Values that are no tensors between the parts of a splitter, where torch.fx moves them: `tests/fixtures/splitter`.

use serde::Deserialize;
use tracefx_ir::{Graph, GraphModule, NodeId};
use tracefx_rewrite::{Subgraph, move_non_tensor_nodes_on_boundary};

#[derive(Deserialize)]
struct Case {
    nodes: Vec<Call>,
    parts: Vec<Part>,
    moved: Vec<Vec<usize>>,
}

#[derive(Deserialize)]
struct Call {
    inputs: Vec<usize>,
    tensor: bool,
}

#[derive(Deserialize)]
struct Part {
    is_acc: bool,
    nodes: Vec<usize>,
}

#[test]
fn non_tensors_move_as_in_pytorch() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/splitter/boundary.jsonl");
    let text = std::fs::read_to_string(path).expect("the fixture");
    assert!(text.lines().count() > 0, "there are cases");
    for (number, line) in text.lines().enumerate() {
        let case: Case = serde_json::from_str(line).expect("a case");
        let mut graph = Graph::new();
        let mut values = vec![graph.placeholder("x")];
        for call in &case.nodes {
            let args = call.inputs.iter().map(|&it| values[it].into()).collect();
            values.push(graph.call_function("torch.relu", args, vec![]));
        }
        graph.output(values[values.len() - 1].into());
        let module = GraphModule::new(graph);
        let at = |it: NodeId| values.iter().position(|&value| value == it).expect("a node");
        let part = |it: &Part| Subgraph { is_acc: it.is_acc, nodes: it.nodes.iter().map(|&at| values[at]).collect() };
        let mut parts: Vec<Subgraph> = case.parts.iter().map(part).collect();
        move_non_tensor_nodes_on_boundary(&module, tracefx_ops::registry(), &mut parts, &|it| {
            case.nodes[at(it) - 1].tensor
        });
        let moved = parts.iter().map(|part| {
            let mut nodes: Vec<usize> = part.nodes.iter().map(|&it| at(it)).collect();
            nodes.sort_unstable();
            nodes
        });
        assert_eq!(moved.collect::<Vec<_>>(), case.moved, "case {number}");
    }
}
