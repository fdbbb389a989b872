//! Values of a session as JSON.

use crate::session::invalid;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use tracefx_core::{Code, DType, Diagnostic, Layout, MemoryFormat, Result, Scalar, Tensor};
use tracefx_ops::Value;

/// Reads a value; its tensors are among these.
pub(crate) fn parse_value(json: &Json, data: &HashMap<String, Tensor>) -> Result<Value<Tensor>> {
    let odd = || invalid(format!("{json} is no value"));
    let object = match json {
        Json::Null => return Ok(Value::None),
        Json::Bool(it) => return Ok(Value::Bool(*it)),
        Json::String(it) => return Ok(Value::Str(it.as_str().into())),
        Json::Array(items) => {
            return items.iter().map(|it| parse_value(it, data)).collect::<Result<_>>().map(Value::List);
        }
        Json::Number(_) => return Err(odd()),
        Json::Object(it) => it,
    };
    if object.contains_key("tensor") {
        return parse_tensor(json, data).map(Value::Tensor);
    }
    let (kind, it) = object.iter().next().ok_or_else(odd)?;
    let name = || it.as_str().ok_or_else(odd);
    Ok(match kind.as_str() {
        "int" => Value::int(it.as_i64().or_else(|| it.as_str()?.parse().ok()).ok_or_else(odd)?),
        "float" => Value::Float(match it.as_str() {
            Some(text) => text.parse().map_err(|_| odd())?,
            None => it.as_f64().ok_or_else(odd)?,
        }),
        "dtype" => Value::DType(DType::from_name(name()?).ok_or_else(odd)?),
        "layout" => Value::Layout(Layout::from_name(name()?).ok_or_else(odd)?),
        "device" => Value::Device(name()?.parse().map_err(|()| odd())?),
        "memory_format" => Value::MemoryFormat(MemoryFormat::from_name(name()?).ok_or_else(odd)?),
        _ => return Err(odd()),
    })
}

fn parse_tensor(json: &Json, data: &HashMap<String, Tensor>) -> Result<Tensor> {
    let key = &json["tensor"];
    let base =
        key.as_str().and_then(|it| data.get(it)).ok_or_else(|| invalid(format!("the data has no tensor {key}")))?;
    let Some(strides) = json.get("stride") else { return Ok(base.clone()) };
    let dims = |it: &Json| {
        let dims = it.as_array().map(|it| it.iter().map(|it| it.as_u64().map(|it| it as usize)).collect());
        dims.flatten().ok_or_else(|| invalid(format!("{it} is no list of sizes")))
    };
    let (sizes, strides): (Vec<usize>, Vec<usize>) = (dims(&json["size"])?, dims(strides)?);
    Tensor::view_of(
        base.storage().clone(),
        base.dtype(),
        &sizes,
        &strides,
        json["offset"].as_u64().unwrap_or(0) as usize,
    )
}

/// The value as JSON; tensors go into `tensors`, under this name.
pub(crate) fn print_value(value: &Value<Tensor>, name: &str, tensors: &mut Vec<(String, Tensor)>) -> Result<Json> {
    Ok(match (value, value.as_scalar()) {
        (Value::Tensor(tensor), _) => {
            tensors.push((name.to_string(), tensor.clone()));
            json!({ "tensor": name, "dtype": tensor.dtype().name(), "size": tensor.sizes(), "stride": tensor.strides() })
        }
        (Value::List(items), _) => {
            let print = |(at, it)| print_value(it, &format!("{name}.{at}"), tensors);
            Json::Array(items.iter().enumerate().map(print).collect::<Result<_>>()?)
        }
        (Value::None, _) => Json::Null,
        (Value::Str(it), _) => json!(&**it),
        (Value::DType(it), _) => json!({ "dtype": it.name() }),
        (_, Some(Scalar::Int(it))) => json!({ "int": print_int(it) }),
        (_, Some(Scalar::Bool(it))) => json!(it),
        // JSON has no infinities and no NaN.
        (_, Some(Scalar::Float(it))) => json!({ "float": tracefx_core::python_float(it) }),
        (other, _) => {
            let what = format!("the result {name} is a {}, which JSON cannot hold", other.kind_name());
            return Err(Diagnostic::new(Code::NotImplemented, what));
        }
    })
}

/// JavaScript reads larger numbers as floats.
pub(crate) fn print_int(value: i64) -> Json {
    if value.unsigned_abs() < 1 << 53 { json!(value) } else { json!(value.to_string()) }
}
