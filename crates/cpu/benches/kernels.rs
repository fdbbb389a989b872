//! Times of single kernels: the cases of `benches/kernels.json`, whose names may be picked by a part of them.
//!
//! Prints the median time of each case in microseconds as a JSON object; `benches/kernels.py` sets it beside PyTorch's.

mod cases;

use serde_json::Value as Json;
use std::hint::black_box;
use tracefx_core::{DType, MemoryFormat, Tensor};
use tracefx_exec::Executor;
use tracefx_ops::{Value, registry};

fn main() {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    cases::time(include_str!("../../../benches/kernels.json"), |case| {
        let args: Vec<_> = case["args"].as_array().unwrap().iter().map(|it| value(&executor, it)).collect();
        let kwargs: Vec<_> = case["kwargs"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, it)| (key.as_str().into(), option(key, it.as_str().unwrap())))
            .collect();
        let op = case["op"].as_str().unwrap().to_owned();
        move || drop(black_box(executor.call(&op, &args, &kwargs).unwrap()))
    });
}

fn option(key: &str, it: &str) -> Value<Tensor> {
    match key {
        "dtype" => Value::DType(DType::from_name(it).unwrap()),
        "memory_format" => Value::MemoryFormat(MemoryFormat::Contiguous),
        _ => Value::Str(it.into()),
    }
}

fn value(executor: &Executor<'_>, it: &Json) -> Value<Tensor> {
    match it {
        Json::Null => Value::None,
        Json::Bool(it) => Value::Bool(*it),
        Json::Number(it) => it.as_i64().map_or_else(|| Value::Float(it.as_f64().unwrap()), Value::int),
        Json::String(it) => Value::Str(it.as_str().into()),
        Json::Array(items) => Value::List(items.iter().map(|it| value(executor, it)).collect()),
        Json::Object(_) => tensor(executor, it),
    }
}

/// Normally distributed numbers, converted; integers below a bound where there is one; permuted where that is said.
fn tensor(executor: &Executor<'_>, it: &Json) -> Value<Tensor> {
    let call = |op: &str, args: &[Value<Tensor>], kwargs: &[(_, Value<Tensor>)]| {
        executor.call(op, args, kwargs).unwrap().pop().unwrap()
    };
    let sizes = value(executor, &it["sizes"]);
    let tensor = match it["below"].as_i64() {
        Some(1) => call("aten.rand.default", &[sizes], &[]),
        Some(below) => call("aten.randint.default", &[Value::int(below), sizes], &[]),
        None => call("aten.randn.default", &[sizes], &[]),
    };
    let dtype = it["dtype"].as_str().map(|it| option("dtype", it));
    let tensor = match dtype {
        Some(dtype) => call("aten._to_copy.default", &[tensor], &[("dtype".into(), dtype)]),
        None => tensor,
    };
    match &it["permute"] {
        Json::Null => tensor,
        order => call("aten.permute.default", &[tensor, value(executor, order)], &[]),
    }
}
