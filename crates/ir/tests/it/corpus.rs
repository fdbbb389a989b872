//! Finds the graphs that PyTorch recorded, and writes ours in the same encoding.

use serde_json::{Map, Value, json};
use std::path::Path;
use tracefx_ir::{Arg, Graph, NodeId};

/// The text of a fixture.
pub(crate) fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/graphs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The cases of one kind.
pub(crate) fn cases(kind: &str) -> Vec<Value> {
    let text = fixture(&format!("{kind}.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// The text at a key.
#[track_caller]
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no text at {key}: {value}"))
}

/// The list at a key.
#[track_caller]
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no list at {key}: {value}"))
}

/// A graph in the encoding of the corpus, with users.
pub(crate) fn encode(graph: &Graph) -> Value {
    let nodes: Vec<Value> = graph.nodes().map(|id| encode_node(graph, id)).collect();
    let users: Map<String, Value> = graph
        .nodes()
        .map(|id| (graph.node(id).name().to_string(), json!(names(graph, graph.users(id).iter()))))
        .collect();
    json!({ "nodes": nodes, "users": users })
}

/// The names of nodes.
pub(crate) fn names(graph: &Graph, nodes: impl IntoIterator<Item = NodeId>) -> Vec<String> {
    nodes.into_iter().map(|it| graph.node(it).name().to_string()).collect()
}

fn encode_node(graph: &Graph, id: NodeId) -> Value {
    let node = graph.node(id);
    let args: Vec<Value> = node.args().iter().map(|it| encode_arg(graph, it)).collect();
    let kwargs: Map<String, Value> =
        node.kwargs().iter().map(|(key, it)| (key.to_string(), encode_arg(graph, it))).collect();
    let mut res = json!({
        "name": &**node.name(), "op": node.op().name(), "target": &**node.target(), "args": args, "kwargs": kwargs,
    });
    if let Some(ty) = node.ty() {
        res["type"] = json!(&**ty);
    }
    res
}

fn encode_arg(graph: &Graph, arg: &Arg) -> Value {
    let all = |items: &[Arg]| -> Vec<Value> { items.iter().map(|it| encode_arg(graph, it)).collect() };
    match arg {
        Arg::None => Value::Null,
        Arg::Ellipsis => json!({ "$e": 1 }),
        Arg::Bool(it) => json!(it),
        Arg::Int(it) => json!(it),
        Arg::Float(it) if it.is_finite() && it.fract() != 0.0 => json!(it),
        Arg::Float(it) => json!({ "$f": tracefx_core::python_float(*it) }),
        Arg::Complex(it) => json!({ "$c": [it.re, it.im] }),
        Arg::Str(it) => json!(&**it),
        Arg::DType(it) => json!({ "$dtype": it.name() }),
        Arg::Device(it) => json!({ "$dev": it.to_string() }),
        Arg::Layout(it) => json!({ "$layout": it.name() }),
        Arg::MemoryFormat(it) => json!({ "$mf": it.name() }),
        Arg::Node(it) => json!({ "$n": &**graph.node(*it).name() }),
        Arg::Op(it) => json!({ "$fn": &**it }),
        Arg::List(items) => json!(all(items)),
        Arg::Tuple(items) => json!({ "$t": all(items) }),
        Arg::Dict(items) => {
            let pairs: Vec<Value> = items.iter().map(|(key, it)| json!([&**key, encode_arg(graph, it)])).collect();
            json!({ "$d": pairs })
        }
        Arg::Slice(parts) => json!({ "$s": all(&parts[..]) }),
    }
}
