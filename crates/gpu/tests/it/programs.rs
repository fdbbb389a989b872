//! Recorded calls as programs.

use crate::recorded::{arg, parse_value};
use safetensors::SafeTensors;
use serde_json::Value as Json;
use tracefx_core::Tensor;
use tracefx_ir::{Graph, GraphModule, Str};
use tracefx_ops::{Op, Value};

/// A program of the call, and its inputs.
pub(crate) fn program(op: &Op, case: &Json, tensors: &SafeTensors<'_>) -> Option<(GraphModule, Vec<Value<Tensor>>)> {
    let mut graph = Graph::new();
    let mut inputs = Vec::new();
    let mut input = |it: &Tensor| {
        inputs.push(Value::Tensor(it.clone()));
        graph.placeholder(&format!("x{}", inputs.len() - 1)).into()
    };
    let mut read = |it: &Json| Some(arg(&parse_value(it, Some(tensors), false)?, &mut input));
    let args = case["args"].as_array()?.iter().map(&mut read).collect::<Option<Vec<_>>>()?;
    let kwargs = case["kwargs"].as_object()?.iter();
    let kwargs = kwargs.map(|(name, it)| Some((Str::from(name.as_str()), read(it)?))).collect::<Option<Vec<_>>>()?;
    let call = graph.call_function(&format!("torch.ops.{}", op.name), args, kwargs);
    graph.output(call.into());
    Some((GraphModule::new(graph), inputs))
}
