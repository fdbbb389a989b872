//! Recorded graphs for tests: reads the encoding in which `tests/oracle` writes them.
//!
//! It is for tests alone, and panics where something is not as it is recorded. What a test compares, and where its fixtures are,
//! is the test's.
#![forbid(unsafe_code)]

use serde_json::Value;
use tracefx_core::{Complex64, DType, Layout, MemoryFormat};
use tracefx_ir::{Arg, Graph, NodeId, Opcode, Str};

/// The graph of a case. Nodes may use later ones, so that ill-formed graphs can be made too.
///
/// ```
/// let encoded = serde_json::json!({ "nodes": [
///     { "name": "x", "op": "placeholder", "target": "x", "args": [], "kwargs": {} },
///     { "name": "add", "op": "call_function", "target": "torch.add", "args": [{ "$n": "x" }, 1], "kwargs": {} },
/// ] });
/// assert_eq!(tracefx_testing::build(&encoded).nodes().count(), 2);
/// ```
pub fn build(encoded: &Value) -> Graph {
    let mut graph = Graph::new();
    let nodes = encoded["nodes"].as_array().expect("a graph has nodes");
    let text = |node: &Value, key: &str| node[key].as_str().unwrap_or_else(|| panic!("no {key}: {node}")).to_owned();
    for it in nodes {
        let op = Opcode::from_name(&text(it, "op")).expect("an opcode");
        let id =
            graph.create_named_node(op, &text(it, "target"), vec![], vec![], &text(it, "name")).expect("a free name");
        graph.set_type(id, it["type"].as_str().map(Str::from)).expect("the node is there");
    }
    for it in nodes {
        let id = graph.find(&text(it, "name")).expect("the node is there");
        let (args, kwargs) = {
            let find = by_name(&graph);
            (decode_args(&find, &it["args"]), decode_kwargs(&find, &it["kwargs"]))
        };
        graph.set_args(id, args).expect("the arguments are of this graph");
        graph.set_kwargs(id, kwargs).expect("the arguments are of this graph");
    }
    graph
}

/// The nodes of a graph by their names.
pub fn by_name(graph: &Graph) -> impl Fn(&str) -> NodeId {
    |name| graph.find(name).unwrap_or_else(|| panic!("no node {name}"))
}

/// Recorded arguments; nodes are those that are found by their names.
pub fn decode_args(find: &dyn Fn(&str) -> NodeId, items: &Value) -> Vec<Arg> {
    items.as_array().expect("a list").iter().map(|it| decode(find, it)).collect()
}

/// Recorded keyword arguments; none where there is nothing.
pub fn decode_kwargs(find: &dyn Fn(&str) -> NodeId, kwargs: &Value) -> Vec<(Str, Arg)> {
    let items = kwargs.as_object().into_iter().flatten();
    items.map(|(key, it)| (key.as_str().into(), decode(find, it))).collect()
}

/// A recorded value as an argument: JSON, and objects with one tag for what JSON does not have.
pub fn decode(find: &dyn Fn(&str) -> NodeId, value: &Value) -> Arg {
    let tagged = match value {
        Value::Null => return Arg::None,
        Value::Bool(it) => return Arg::Bool(*it),
        Value::Number(it) => return it.as_i64().map_or_else(|| Arg::Float(it.as_f64().expect("a float")), Arg::Int),
        Value::String(it) => return Arg::str(it),
        Value::Array(_) => return Arg::List(decode_args(find, value).into_iter().collect()),
        Value::Object(it) => it,
    };
    let (tag, body) = tagged.iter().next().expect("a tag");
    let text = || body.as_str().unwrap_or_else(|| panic!("no text: {value}"));
    let pair = |it: &Value| (Str::from(it[0].as_str().expect("a key")), decode(find, &it[1]));
    let float = |it: &Value| it.as_f64().expect("a float");
    match tag.as_str() {
        "$n" => Arg::Node(find(text())),
        "$t" => Arg::Tuple(decode_args(find, body).into_iter().collect()),
        "$d" => Arg::Dict(body.as_array().expect("pairs").iter().map(pair).collect()),
        "$s" => Arg::Slice(Box::new(decode_args(find, body).try_into().expect("three parts"))),
        "$e" => Arg::Ellipsis,
        "$f" => Arg::Float(text().parse().expect("a float")),
        "$c" => Arg::Complex(Complex64 { re: float(&body[0]), im: float(&body[1]) }),
        "$dtype" => Arg::DType(DType::from_name(text()).expect("a dtype")),
        "$dev" => Arg::Device(text().parse().expect("a device")),
        "$layout" => Arg::Layout(Layout::from_name(text()).expect("a layout")),
        "$mf" => Arg::MemoryFormat(MemoryFormat::from_name(text()).expect("a memory format")),
        "$fn" => Arg::Op(text().into()),
        other => panic!("a value of kind {other} is recorded"),
    }
}
