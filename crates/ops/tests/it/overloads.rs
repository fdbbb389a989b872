//! Which overload a call is for, and what is said when it fits none: PyTorch's own choices, recorded by
//! `tests/oracle/gen_overloads.py`.

use serde_json::Value as Json;
use std::path::Path;
use tracefx_core::{DType, Scalar};
use tracefx_ir::Str;
use tracefx_ops::{Args, Value, registry};

/// A tensor as overloads see it: only the number that one without dimensions holds counts.
#[derive(Clone, Debug)]
struct Known(Option<Scalar>);

fn value(json: &Json) -> Value<Known> {
    match json {
        Json::Null => Value::None,
        Json::Bool(it) => Value::Bool(*it),
        Json::String(it) => Value::Str(it.as_str().into()),
        Json::Number(it) => Value::int(it.as_i64().expect("floats are marked")),
        Json::Array(items) => Value::List(items.iter().map(value).collect()),
        Json::Object(map) => match map.iter().next().expect("an object holds something") {
            (key, it) if key == "float" => Value::Float(it.as_f64().expect("a float")),
            (key, it) if key == "dtype" => {
                Value::DType(DType::from_name(it.as_str().expect("a name")).expect("a dtype"))
            }
            (_, tensor) => Value::Tensor(Known(tensor.get("item").and_then(|it| value(it).as_scalar()))),
        },
    }
}

fn resolve(case: &Json) -> Result<Args<'static, Known>, String> {
    let args: Vec<_> = case["args"].as_array().expect("a list").iter().map(value).collect();
    let kwargs = case["kwargs"].as_object().expect("a map").iter();
    let kwargs: Vec<(Str, _)> = kwargs.map(|(key, it)| (key.as_str().into(), value(it))).collect();
    let name = case["name"].as_str().expect("a name");
    registry().resolve(name, &args, &kwargs, &|it| it.0).map_err(|problem| problem.message().to_string())
}

#[test]
fn overloads_are_chosen_as_pytorch_chooses_them() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/overloads/calls.jsonl");
    let text = std::fs::read_to_string(path).expect("the fixture is there");
    let (mut n_chosen, mut n_refused, mut failures) = (0, 0, Vec::new());
    for line in text.lines() {
        let case: Json = serde_json::from_str(line).expect("a line is JSON");
        let wanted = case["overload"].as_str().or(case["error"].as_str()).expect("an overload or an error");
        let got = resolve(&case);
        let is_refused = got.is_err();
        let got = got.map_or_else(|it| it, |it| it.op.name.clone());
        let got = got.split(", but expected").next().unwrap_or_default();
        if wanted == got && is_refused == case["overload"].is_null() {
            *if is_refused { &mut n_refused } else { &mut n_chosen } += 1;
        } else {
            failures.push(format!("{line}\n  {got}"));
        }
    }
    assert!(failures.is_empty(), "{} calls differ:\n{}", failures.len(), failures.join("\n"));
    assert!(n_chosen >= 207 && n_refused >= 27, "{n_chosen} are chosen and {n_refused} refused");
}
