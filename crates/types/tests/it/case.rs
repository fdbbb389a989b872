//! The recorded graphs, built.

use serde_json::Value;
use std::path::Path;
use tracefx_core::DType;
use tracefx_ir::{Arg, Attribute, FakeTensor, Graph, GraphModule, NodeId, Opcode, Str, TensorKind, TensorMeta};
use tracefx_sym::SymInt;
use tracefx_types::Modules;

/// The cases of a file of tests/fixtures/types.
pub(crate) fn cases(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/types").join(file);
    let text = std::fs::read_to_string(path).expect("the fixtures are there");
    text.lines().map(|it| serde_json::from_str(it).expect("a case is JSON")).collect()
}

/// The cases of a kind, those of windows with them: `NAME.jsonl` and `NAME_windows.jsonl`.
pub(crate) fn with_windows(name: &str) -> Vec<Value> {
    ["", "_windows"].iter().flat_map(|it| cases(&format!("{name}{it}.jsonl"))).collect()
}

/// The graph and modules of a case.
pub(crate) fn build(case: &Value) -> (GraphModule, Modules) {
    let mut graph = Graph::new();
    let mut nodes: Vec<(String, NodeId)> = Vec::new();
    for it in case["nodes"].as_array().unwrap() {
        let args = it["args"].as_array().unwrap().iter().map(|it| arg(it, &nodes)).collect();
        let kwargs = it["kwargs"].as_object().into_iter().flatten();
        let kwargs = kwargs.map(|(key, it)| (Str::from(key.as_str()), arg(it, &nodes))).collect();
        let [name, op, target] = ["name", "op", "target"].map(|key| it[key].as_str().unwrap());
        let op = Opcode::from_name(op).unwrap();
        let id = graph.create_named_node(op, target, args, kwargs, name).unwrap();
        graph.set_type(id, it["type"].as_str().map(Str::from)).unwrap();
        nodes.push((name.to_string(), id));
    }
    let mut gm = GraphModule::new(graph);
    for (at, (name, sizes)) in case["params"].as_object().unwrap().iter().enumerate() {
        let sizes = sizes.as_array().unwrap().iter().map(|it| SymInt::from(it.as_i64().unwrap())).collect();
        let tensor = FakeTensor { meta: TensorMeta::contiguous(DType::Float32, sizes), id: at as u32 };
        gm.attributes.insert(name.as_str().into(), Attribute::Fake { tensor, kind: TensorKind::Parameter });
    }
    (gm, serde_json::from_value(case["modules"].clone()).unwrap())
}

fn arg(value: &Value, nodes: &[(String, NodeId)]) -> Arg {
    let list = |it: &Value| it.as_array().unwrap().iter().map(|it| arg(it, nodes)).collect::<Vec<_>>();
    match value {
        Value::Null => Arg::None,
        Value::Bool(it) => Arg::Bool(*it),
        Value::Number(it) => Arg::Int(it.as_i64().unwrap()),
        Value::String(it) => Arg::str(it),
        Value::Array(_) => Arg::List(list(value)),
        Value::Object(it) => match it.iter().next().unwrap() {
            (key, it) if key == "$n" => Arg::Node(nodes.iter().find(|(name, _)| name == it).unwrap().1),
            (key, it) if key == "$t" => Arg::Tuple(list(it)),
            (key, it) if key == "$s" => Arg::Slice(Box::new(list(it).try_into().unwrap())),
            (key, it) if key == "$f" => Arg::Float(it.as_str().unwrap().parse().unwrap()),
            other => panic!("{other:?}"),
        },
    }
}
