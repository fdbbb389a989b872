//! Calls in one form, as torch.fx brings them: `tests/oracle/gen_normalization.py` recorded the cases and explains them.

use serde_json::{Map, Value};
use std::path::PathBuf;
use tracefx_core::{Code, Complex64, Device, Diagnostic};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Opcode, Str};
use tracefx_ops::registry;
use tracefx_rewrite::{
    ArgumentType, ArgumentTypes, CallArguments, NormalizeArgs, NormalizeArgsOptions, NormalizeOptions, Normalized,
    Normalizer, Pass,
};

/// A call of a function, and the answers: of `normalize_function` without and with types, and of the pass without and with
/// types.
struct Case {
    function: String,
    args: Vec<Value>,
    kwargs: Map<String, Value>,
    answers: Vec<Option<String>>,
}

fn cases() -> Vec<Case> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../tests/fixtures/normalize/calls.jsonl"].iter().collect();
    let mut res = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        for (place, names) in line["functions"].as_object().unwrap() {
            for (name, call) in names.as_array().unwrap().iter().flat_map(|name| {
                line["calls"].as_array().unwrap().iter().map(move |call| (name.as_str().unwrap(), call))
            }) {
                let answers = call[2].as_array().unwrap().iter();
                let mut answers: Vec<_> = answers.map(|it| it.as_str().map(canonical)).collect();
                if let [only] = answers.as_slice() {
                    answers = vec![only.clone(); 4];
                }
                res.push(Case {
                    function: format!("{place}.{name}"),
                    args: call[0].as_array().unwrap().clone(),
                    kwargs: call[1].as_object().unwrap().clone(),
                    answers,
                });
            }
        }
    }
    assert!(res.len() > 8000);
    res
}

/// An answer with its defaults as `serde_json` writes them.
fn canonical(answer: &str) -> String {
    let part = |it: &str| match it.split_once('=') {
        Some((name, value)) => format!("{name}={}", serde_json::from_str::<Value>(value).unwrap()),
        None => it.to_owned(),
    };
    answer.split(';').map(part).collect::<Vec<_>>().join(";")
}

fn decode(value: &Value, graph: &Graph) -> Arg {
    match value {
        Value::Null => Arg::None,
        Value::Bool(it) => Arg::Bool(*it),
        Value::Number(it) => Arg::Int(it.as_i64().unwrap()),
        Value::String(it) => match it.strip_prefix('$') {
            Some(name) => Arg::Node(graph.find(name).unwrap()),
            None => Arg::str(it),
        },
        Value::Array(items) => Arg::List(items.iter().map(|it| decode(it, graph)).collect()),
        Value::Object(it) => match it.iter().next().unwrap() {
            (key, it) if key == "float" => Arg::Float(it.as_f64().unwrap()),
            (key, it) if key == "complex" => {
                Arg::Complex(Complex64 { re: it[0].as_f64().unwrap(), im: it[1].as_f64().unwrap() })
            }
            (key, it) if key == "device" => Arg::Device(it.as_str().unwrap().parse::<Device>().unwrap()),
            (key, _) => panic!("{key} is not understood"),
        },
    }
}

fn encode(value: &Arg) -> Value {
    match value {
        Arg::None => Value::Null,
        Arg::Bool(it) => (*it).into(),
        Arg::Int(it) => (*it).into(),
        Arg::Float(it) => serde_json::json!({ "float": it }),
        Arg::Str(it) => (&**it).into(),
        Arg::DType(it) => serde_json::json!({ "dtype": it.to_string().trim_start_matches("torch.") }),
        Arg::List(items) => items.iter().map(encode).collect(),
        Arg::Tuple(items) => serde_json::json!({ "tuple": items.iter().map(encode).collect::<Value>() }),
        it => panic!("{it:?} is no default"),
    }
}

/// What a call became, as the cases write it; and the same with positional arguments where they stood.
fn answer(call: CallArguments<'_>, by_name: &Normalized, kept: &Normalized) -> String {
    assert!(by_name.args.is_empty(), "{by_name:?}");
    let values: Vec<&Arg> = by_name.kwargs.iter().map(|(_, it)| it).collect();
    let (by_position, rest) = by_name.kwargs.split_at(call.args.len());
    assert_eq!(kept.args.iter().collect::<Vec<_>>(), values[..by_position.len()]);
    assert_eq!(kept.kwargs, rest);
    let part = |(at, (name, value)): (usize, &(Str, Arg))| {
        let given = call.args.get(at).or_else(|| call.kwargs.iter().find(|(key, _)| key == name).map(|(_, it)| it));
        if given == Some(value) { name.to_string() } else { format!("{name}={}", encode(value)) }
    };
    by_name.kwargs.iter().enumerate().map(part).collect::<Vec<_>>().join(";")
}

#[test]
fn functions_are_normalized_as_pytorch_normalizes_them() {
    let mut graph = Graph::new();
    for name in ["x", "y", "z", "u", "v", "w"] {
        let node = graph.placeholder(name);
        graph.set_type(node, Some("torch.Tensor".into())).unwrap();
    }
    let mut normalizer = Normalizer::new(registry());
    let mut differences = Vec::new();
    for case in cases() {
        let args: Vec<Arg> = case.args.iter().map(|it| decode(it, &graph)).collect();
        let kwargs: Vec<(Str, Arg)> =
            case.kwargs.iter().map(|(key, it)| ((&**key).into(), decode(it, &graph))).collect();
        let call = CallArguments { args: &args, kwargs: &kwargs };
        let types = ArgumentTypes {
            args: args.iter().map(|it| ArgumentType::of(it, &graph)).collect(),
            kwargs: kwargs.iter().map(|(key, it)| (key.clone(), ArgumentType::of(it, &graph))).collect(),
        };
        for (types, wanted) in [None, Some(types)].into_iter().zip(&case.answers) {
            let mut normalize = |only_kwargs| {
                normalizer.function(&case.function, call, &NormalizeOptions { only_kwargs, types: types.clone() })
            };
            let found = match (normalize(true), normalize(false)) {
                (Ok(Some(by_name)), Ok(Some(kept))) => Some(answer(call, &by_name, &kept)),
                (Ok(None), Ok(None)) => None,
                (Err(problem), Err(_)) if problem.message().contains("ambiguous") => Some("ambiguous".to_owned()),
                (Err(problem), Err(_)) => {
                    assert_eq!(problem.code(), Code::SchemaMismatch);
                    Some("TypeError".to_owned())
                }
                (by_name, kept) => panic!("{by_name:?} and {kept:?}"),
            };
            if found != *wanted {
                let written = format!("{} {:?} {:?}", case.function, case.args, case.kwargs);
                differences.push(format!("{written}, {types:?}: {found:?}, wanted {wanted:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

/// The graph of a call with the arguments as placeholders, which have a type or none.
fn module_of(case: &Case, ty: Option<&str>) -> (GraphModule, NodeId) {
    let mut graph = Graph::new();
    for name in ["x", "y", "z", "u", "v", "w"] {
        let node = graph.placeholder(name);
        graph.set_type(node, ty.map(Into::into)).unwrap();
    }
    let args = case.args.iter().map(|it| decode(it, &graph)).collect();
    let kwargs = case.kwargs.iter().map(|(key, it)| (schema_name(case, key).into(), decode(it, &graph))).collect();
    let node = graph.create_node(Opcode::CallFunction, &case.function, args, kwargs, None).unwrap();
    (GraphModule::new(graph), node)
}

/// The name of a parameter after the pass, which leaves operators the names of their schemas.
fn schema_name<'k>(case: &Case, key: &'k str) -> &'k str {
    if is_of_self(case) && key == "input" { "self" } else { key }
}

/// Whether the pass calls the parameter `self` which PyTorch calls `input`.
fn is_of_self(case: &Case) -> bool {
    let Some(name) = case.function.strip_prefix("torch.ops.") else { return false };
    let overloads = registry().overloads(name.split('.').take(2).collect::<Vec<_>>().join(".").as_str()).unwrap();
    overloads.iter().any(|op| op.schema.args.iter().any(|it| it.name == "self"))
}

/// What the pass makes of a call, with PyTorch's names.
fn passed(case: &Case, ty: Option<&str>) -> Option<String> {
    let (before, node) = module_of(case, ty);
    let run = |normalize_to_only_use_kwargs| {
        let mut module = before.clone();
        let options = NormalizeArgsOptions { normalize_to_only_use_kwargs };
        let result = NormalizeArgs { registry: registry(), options }.call(&mut module)?;
        let it = module.graph.node(node);
        Ok::<_, Diagnostic>((result.modified, Normalized { args: it.args().to_vec(), kwargs: it.kwargs().to_vec() }))
    };
    let of_before = before.graph.node(node);
    let call = CallArguments { args: of_before.args(), kwargs: of_before.kwargs() };
    match (run(true), run(false)) {
        (Ok((true, by_name)), Ok((_, kept))) => {
            let answer = answer(call, &by_name, &kept);
            let of_pytorch =
                |it: &str| if is_of_self(case) && it == "self" { "input".to_owned() } else { it.to_owned() };
            Some(answer.split(';').map(of_pytorch).collect::<Vec<_>>().join(";"))
        }
        (Ok((false, _)), Ok((modified, kept))) => {
            assert!(!modified, "{kept:?} is not normalized by name");
            None
        }
        (Err(problem), Err(_)) => {
            assert_eq!(problem.code(), Code::SchemaMismatch);
            Some("TypeError".to_owned())
        }
        (by_name, kept) => panic!("{by_name:?} and {kept:?}"),
    }
}

#[test]
fn the_pass_leaves_what_pytorch_leaves() {
    let mut differences = Vec::new();
    for case in cases() {
        let is_node = |it: &Value| it.as_str().is_some_and(|it| it.starts_with('$'));
        let has_tensor = case.args.iter().chain(case.kwargs.values()).any(is_node);
        for (ty, wanted) in [None, Some("torch.Tensor")].into_iter().zip(&case.answers[2..]) {
            let found = passed(&case, ty);
            // PyTorch names the arguments of TorchScript's overloads on Python's values, under which no function takes them.
            let is_uncallable = found.is_none() && wanted.is_some() && !has_tensor;
            // Of what is given by keyword PyTorch's pass knows no type.
            let is_better_known = wanted.is_none() && !case.kwargs.is_empty() && found == case.answers[1];
            if found != *wanted && !is_uncallable && !is_better_known {
                let written = format!("{} {:?} {:?}", case.function, case.args, case.kwargs);
                differences.push(format!("{written}, {ty:?}: {found:?}, wanted {wanted:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
