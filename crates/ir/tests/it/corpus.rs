//! Reads the graphs that PyTorch recorded, and writes ours in the same encoding.

use serde_json::{Map, Value, json};
use std::path::Path;
use tracefx_core::{Complex64, DType, Layout, MemoryFormat};
use tracefx_ir::{Arg, Graph, NodeId, Opcode, Str};

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

/// The graph of a case. Nodes may use later ones, so that ill-formed graphs can be made too.
pub(crate) fn build(encoded: &Value) -> Graph {
    let mut graph = Graph::new();
    for it in list(encoded, "nodes") {
        let op = Opcode::from_name(text(it, "op")).expect("an opcode");
        let node =
            graph.create_named_node(op, text(it, "target"), vec![], vec![], text(it, "name")).expect("names are free");
        graph.set_type(node, it.get("type").and_then(Value::as_str).map(Str::from)).expect("the node is there");
    }
    for it in list(encoded, "nodes") {
        let node = graph.find(text(it, "name")).expect("the node is there");
        let args = list(it, "args").iter().map(|arg| decode(&graph, arg)).collect();
        let kwargs = decode_kwargs(&graph, &it["kwargs"]);
        graph.set_args(node, args).expect("the arguments are of this graph");
        graph.set_kwargs(node, kwargs).expect("the arguments are of this graph");
    }
    graph
}

/// Recorded keyword arguments.
pub(crate) fn decode_kwargs(graph: &Graph, kwargs: &Value) -> Vec<(Str, Arg)> {
    let items = kwargs.as_object().expect("kwargs are an object");
    items.iter().map(|(key, it)| (key.as_str().into(), decode(graph, it))).collect()
}

/// A recorded value as an argument.
pub(crate) fn decode(graph: &Graph, value: &Value) -> Arg {
    let all =
        |items: &Value| -> Vec<Arg> { items.as_array().expect("a list").iter().map(|it| decode(graph, it)).collect() };
    match value {
        Value::Null => Arg::None,
        Value::Bool(it) => Arg::Bool(*it),
        Value::Number(it) => it.as_i64().map_or_else(|| Arg::Float(it.as_f64().expect("a float")), Arg::Int),
        Value::String(it) => Arg::str(it),
        Value::Array(_) => Arg::List(all(value)),
        Value::Object(tagged) => {
            let (tag, body) = tagged.iter().next().expect("one tag");
            let name = body.as_str();
            match tag.as_str() {
                "$n" => Arg::Node(graph.find(name.expect("a name")).expect("the node is there")),
                "$t" => Arg::Tuple(all(body)),
                "$d" => {
                    Arg::Dict(body.as_array().expect("pairs").iter().map(|pair| decode_pair(graph, pair)).collect())
                }
                "$s" => Arg::Slice(Box::new(all(body).try_into().expect("three parts"))),
                "$e" => Arg::Ellipsis,
                "$f" => Arg::Float(name.expect("digits").parse().expect("a float")),
                "$c" => Arg::Complex(Complex64 {
                    re: body[0].as_f64().expect("a float"),
                    im: body[1].as_f64().expect("a float"),
                }),
                "$dtype" => Arg::DType(DType::from_name(name.expect("a name")).expect("a dtype")),
                "$dev" => Arg::Device(name.expect("a name").parse().expect("a device")),
                "$layout" => Arg::Layout(Layout::from_name(name.expect("a name")).expect("a layout")),
                "$mf" => Arg::MemoryFormat(MemoryFormat::from_name(name.expect("a name")).expect("a memory format")),
                "$fn" => Arg::Op(name.expect("a name").into()),
                other => panic!("the corpus has a value of kind {other}"),
            }
        }
    }
}

fn decode_pair(graph: &Graph, pair: &Value) -> (Str, Arg) {
    (pair[0].as_str().expect("a key").into(), decode(graph, &pair[1]))
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
