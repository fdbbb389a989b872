//! Recorded calls as programs.

use crate::recorded::parse_value;
use safetensors::SafeTensors;
use serde_json::Value as Json;
use tracefx_core::Tensor;
use tracefx_ir::{Arg, Graph, GraphModule, Str};
use tracefx_ops::{Op, Value};

/// A program of the call, and its inputs.
pub(crate) fn program(op: &Op, case: &Json, tensors: &SafeTensors<'_>) -> Option<(GraphModule, Vec<Value<Tensor>>)> {
    let mut graph = Graph::new();
    let mut inputs = Vec::new();
    let mut read = |it: &Json| Some(arg(&mut graph, &mut inputs, &parse_value(it, Some(tensors), false)?));
    let args = case["args"].as_array()?.iter().map(&mut read).collect::<Option<Vec<_>>>()?;
    let kwargs = case["kwargs"].as_object()?.iter();
    let kwargs = kwargs.map(|(name, it)| Some((Str::from(name.as_str()), read(it)?))).collect::<Option<Vec<_>>>()?;
    let call = graph.call_function(&format!("torch.ops.{}", op.name), args, kwargs);
    graph.output(call.into());
    Some((GraphModule::new(graph), inputs))
}

fn arg(graph: &mut Graph, inputs: &mut Vec<Value<Tensor>>, value: &Value<Tensor>) -> Arg {
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
        Value::List(items) => Arg::List(items.iter().map(|it| arg(graph, inputs, it)).collect()),
        Value::SymBool(_) | Value::SymFloat(_) => unreachable!("a recorded number is known"),
        Value::Tensor(_) => {
            inputs.push(value.clone());
            graph.placeholder(&format!("x{}", inputs.len() - 1)).into()
        }
    }
}
