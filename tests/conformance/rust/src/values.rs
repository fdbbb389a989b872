//! The encoding of recorded arguments.

use serde_json::Value;
use tracefx_core::{DType, Device};
use tracefx_ir::{Arg, NodeId, Str};

/// A recorded value as an argument.
pub(crate) fn decode(value: &Value, find: &dyn Fn(&str) -> NodeId) -> Arg {
    let each = |items: &Value| items.as_array().expect("items").iter().map(|it| decode(it, find)).collect::<Vec<Arg>>();
    match value {
        Value::Null => Arg::None,
        Value::Bool(it) => Arg::Bool(*it),
        Value::Number(it) => it.as_i64().map_or_else(|| Arg::Float(it.as_f64().expect("a float")), Arg::Int),
        Value::String(it) => Arg::str(it),
        Value::Array(_) => Arg::List(each(value)),
        Value::Object(fields) => {
            let (tag, body) = fields.iter().next().expect("a tagged value");
            let text = body.as_str().unwrap_or_default();
            match tag.as_str() {
                "$n" => Arg::Node(find(text)),
                "$t" => Arg::Tuple(each(body)),
                "$d" => Arg::Dict(entries(body).map(|(key, it)| (key.into(), decode(it, find))).collect()),
                "$s" => {
                    let [start, stop, step] = <[Arg; 3]>::try_from(each(body)).expect("three parts");
                    Arg::Slice(Box::new([start, stop, step]))
                }
                "$e" => Arg::Ellipsis,
                "$f" => Arg::Float(text.parse().expect("a float")),
                "$dtype" => Arg::DType(DType::from_name(text).expect("a dtype")),
                "$dev" => Arg::Device(Device { kind: text.to_owned().into(), index: None }),
                "$fn" => Arg::Op(text.into()),
                _ => panic!("the corpus has a value of kind {tag}"),
            }
        }
    }
}

/// Recorded keyword arguments.
pub(crate) fn decode_kwargs(value: &Value, find: &dyn Fn(&str) -> NodeId) -> Vec<(Str, Arg)> {
    let fields = value.as_object().expect("keyword arguments");
    fields.iter().map(|(key, it)| (key.as_str().into(), decode(it, find))).collect()
}

fn entries(pairs: &Value) -> impl Iterator<Item = (&str, &Value)> {
    pairs.as_array().expect("entries").iter().map(|it| (it[0].as_str().expect("a key"), &it[1]))
}
