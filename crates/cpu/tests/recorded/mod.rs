//! Reads the calls that PyTorch recorded, and compares numbers.

use safetensors::SafeTensors;
use serde_json::Value as Json;
use tracefx_core::{DType, Diagnostic, Element, Layout, MemoryFormat, Scalar, Storage, Tensor};
use tracefx_ir::{Arg, Str};
use tracefx_ops::Value;

/// A recorded value as an argument in a graph, where tensors are what `tensor` makes of them.
pub(crate) fn arg(value: &Value<Tensor>, tensor: &mut dyn FnMut(&Tensor) -> Arg) -> Arg {
    match value {
        Value::None => Arg::None,
        Value::Bool(it) => Arg::Bool(*it),
        Value::Int(it) => Arg::Int(it.as_int().expect("a recorded number is known")),
        Value::Float(it) => Arg::Float(*it),
        Value::Complex(it) => Arg::Complex(*it),
        Value::Str(it) => Arg::Str(Str::clone(it)),
        Value::DType(it) => Arg::DType(*it),
        Value::Device(it) => Arg::Device(it.clone()),
        Value::Layout(it) => Arg::Layout(*it),
        Value::MemoryFormat(it) => Arg::MemoryFormat(*it),
        Value::List(items) => Arg::List(items.iter().map(|it| arg(it, tensor)).collect()),
        Value::SymBool(_) | Value::SymFloat(_) => unreachable!("a recorded number is known"),
        Value::Tensor(it) => tensor(it),
    }
}

/// An argument or a result; `None` where it is of an unknown kind.
pub(crate) fn parse_value(json: &Json, tensors: Option<&SafeTensors<'_>>, restride: bool) -> Option<Value<Tensor>> {
    Some(match json {
        Json::Null => Value::None,
        Json::Bool(it) => Value::Bool(*it),
        Json::String(it) => Value::Str(it.as_str().into()),
        Json::Array(items) => {
            Value::List(items.iter().map(|it| parse_value(it, tensors, restride)).collect::<Option<_>>()?)
        }
        Json::Number(_) => return None,
        Json::Object(map) => {
            if map.contains_key("tensor") {
                let tensor = parse_tensor(json, tensors?)?;
                return Some(Value::Tensor(if restride { restrided(&tensor)? } else { tensor }));
            }
            let (key, it) = map.iter().next()?;
            match key.as_str() {
                "int" => Value::int(it.as_i64().or_else(|| it.as_str()?.parse().ok())?),
                "float" => Value::Float(parse_float(it)?),
                "dtype" => Value::DType(DType::from_name(it.as_str()?)?),
                "layout" => Value::Layout(Layout::from_name(it.as_str()?)?),
                "device" => Value::Device(it.as_str()?.parse().ok()?),
                "memory_format" => Value::MemoryFormat(MemoryFormat::from_name(it.as_str()?)?),
                _ => return None,
            }
        }
    })
}

fn parse_float(json: &Json) -> Option<f64> {
    json.as_f64().or_else(|| match json.as_str()? {
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        "nan" => Some(f64::NAN),
        other => other.parse().ok(),
    })
}

/// A tensor whose elements are in the file of tensors.
pub(crate) fn parse_tensor(json: &Json, tensors: &SafeTensors<'_>) -> Option<Tensor> {
    let dims =
        |it: &Json| it.as_array()?.iter().map(|it| it.as_u64().map(|it| it as usize)).collect::<Option<Vec<_>>>();
    let dtype = DType::from_name(json["dtype"].as_str()?)?;
    let view = tensors.tensor(json["tensor"].as_str()?).ok()?;
    let storage = Storage::from_bytes(view.data()).ok()?;
    let sizes = dims(&json["size"])?;
    let strides = match json.get("stride") {
        Some(strides) => dims(strides)?,
        None => tracefx_core::contiguous_strides(&sizes).to_vec(),
    };
    Tensor::view_of(storage, dtype, &sizes, &strides, 0).ok()
}

/// The same elements with a gap after each and with the dimensions the other way round in memory.
fn restrided(tensor: &Tensor) -> Option<Tensor> {
    let mut strides = vec![0; tensor.rank()];
    let mut stride = 2;
    for (dim, &size) in tensor.sizes().iter().enumerate() {
        strides[dim] = stride;
        stride *= size.max(1);
    }
    let storage = Storage::zeroed((stride + 3) * tensor.dtype().size()).ok()?;
    let res = Tensor::view_of(storage, tensor.dtype(), tensor.sizes(), &strides, 3).ok()?;
    let size = tensor.dtype().size();
    let from = tensor.storage().read();
    let mut to = res.storage().write().unwrap();
    for (at, to_at) in tensor.offsets().zip(res.offsets()) {
        to.bytes_mut()[to_at * size..(to_at + 1) * size].copy_from_slice(&from.bytes()[at * size..(at + 1) * size]);
    }
    drop(to);
    Some(res)
}

/// The elements in row-major order.
pub(crate) fn scalars(tensor: &Tensor) -> Result<Vec<Scalar>, Diagnostic> {
    tracefx_core::with_element!(tensor.dtype(), T => Ok(tensor.to_vec::<T>()?.into_iter().map(T::to_scalar).collect()),
        else Err(Diagnostic::unsupported_dtype(tensor.dtype(), "comparing")))
}

/// Whether two numbers agree within these bounds, relative and absolute; ints and bools must be equal.
pub(crate) fn is_close(got: Scalar, want: Scalar, (rtol, atol): (f64, f64)) -> bool {
    let close = |got: f64, want: f64| {
        (got.is_nan() && want.is_nan())
            || got == want
            || ((got - want).abs() <= atol + rtol * want.abs() && got.is_finite())
    };
    match (got, want) {
        (Scalar::Int(got), Scalar::Int(want)) => got == want,
        (Scalar::Bool(got), Scalar::Bool(want)) => got == want,
        _ => close(got.to_complex().re, want.to_complex().re) && close(got.to_complex().im, want.to_complex().im),
    }
}
