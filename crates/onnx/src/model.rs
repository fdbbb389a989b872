//! The model around the graph: its inputs, weights and outputs by the program's signature.

use crate::Options;
use crate::call::{Tensor, unsupported};
use crate::check::check_notes;
use crate::element::{initializer, onnx_dtype};
use crate::graph::{GraphBuilder, X};
use crate::proto::{
    Dimension, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
    TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use crate::translate::{Translator, check_translated, described, dtype_of};
use std::collections::{HashMap, HashSet};
use tracefx_core::{Code, Diagnostic, Result, Scalar};
use tracefx_export::{Argument, ExportedProgram, InputKind, OutputKind};
use tracefx_ir::{Opcode, TensorMeta};
use tracefx_ops::Value;
use tracefx_sym::SymInt;

/// The version of the operators that models are written in.
pub const OPSET: i64 = 20;

/// The version of the format that goes with it.
pub const IR_VERSION: i64 = 9;

/// The bytes that protobuf may hold.
const MOST_BYTES: usize = i32::MAX as usize;

/// A program as an ONNX model.
///
/// # Errors
/// As [`to_onnx`](crate::to_onnx).
pub fn to_model(program: &ExportedProgram, options: &Options) -> Result<ModelProto> {
    check_translated(&program.module)?;
    check_notes(program)?;
    let n_bytes = program.state_dict.values().map(|it| it.tensor.numel() * it.tensor.dtype().size()).sum::<usize>();
    if n_bytes > MOST_BYTES {
        let what = format!("the weights have {n_bytes} bytes, and an ONNX file holds {MOST_BYTES}");
        return Err(Diagnostic::new(Code::LimitExceeded, what)
            .help("split the program, or store its weights in half precision"));
    }
    let module = &program.module;
    let graph = &module.graph;
    let mut translator =
        Translator { builder: GraphBuilder::default(), module, values: HashMap::new(), metadata: options.metadata };
    let mutated: HashSet<&str> = program
        .signature
        .output_specs
        .iter()
        .filter(|it| matches!(it.kind, OutputKind::BufferMutation | OutputKind::ParameterMutation))
        .filter_map(|it| it.target.as_deref())
        .collect();
    let mut inputs = Vec::new();
    let mut weights: Vec<(tracefx_core::Tensor, X)> = Vec::new();
    let placeholders = graph.nodes().filter(|&it| graph.node(it).op() == Opcode::Placeholder);
    for (id, spec) in placeholders.zip(&program.signature.input_specs) {
        let node = graph.node(id);
        let val = node.meta.val.as_ref();
        let value = match (&spec.kind, &spec.arg) {
            (InputKind::UserInput, Argument::Constant { value, .. }) => value.to_value(),
            (InputKind::UserInput, _) => {
                let val = val.ok_or_else(|| crate::call::unknown().node(&**node.name()))?;
                let Some(dtype) = dtype_of(val) else { continue };
                let x = X { name: translator.builder.fresh(node.name()), dtype };
                let tensor = described(x, val)?;
                inputs.push(value_info(&tensor.x, Some(&tensor.sizes)).map_err(|it| it.node(&**node.name()))?);
                Value::Tensor(tensor)
            }
            (InputKind::Token, _) => Value::None,
            (InputKind::CustomObj, _) => {
                return Err(unsupported("ONNX has no custom objects").node(&**node.name()));
            }
            (InputKind::Parameter | InputKind::Buffer | InputKind::ConstantTensor, _) => {
                let fqn = spec.target.as_deref().unwrap_or(node.name());
                let tensor = program.tensor(fqn).ok_or_else(|| {
                    let what = format!("the program has no tensor `{fqn}`");
                    Diagnostic::new(Code::AttributeMissing, what).node(&**node.name())
                })?;
                let sizes = TensorMeta::of(tensor).sizes;
                let known = weights.iter().find(|(it, _)| it.is_same_view(tensor) && !mutated.contains(fqn));
                let x = if let Some((_, x)) = known {
                    x.clone()
                } else {
                    let x = X { name: translator.builder.fresh(fqn), dtype: tensor.dtype() };
                    let initializer = initializer(&x.name, tensor).map_err(|it| it.node(&**node.name()))?;
                    translator.builder.initializers.push(initializer);
                    // State that a call changes is an input, whose default is what the program begins with.
                    if mutated.contains(fqn) {
                        inputs.push(value_info(&x, Some(&sizes))?);
                    } else {
                        weights.push((tensor.clone(), x.clone()));
                    }
                    x
                };
                Value::Tensor(Tensor { x, sizes, is_number: false })
            }
        };
        translator.values.insert(id, value);
    }
    let results = translator.run(module)?;
    let outputs = named_outputs(program, &mut translator, results)?;
    let GraphBuilder { mut nodes, mut initializers, .. } = translator.builder;
    drop_unused(&mut nodes, &outputs);
    let mut used: HashSet<String> = outputs.iter().map(|it| it.name.clone()).collect();
    nodes.iter().for_each(|it| take_names(it, &mut used));
    let defaults: HashSet<String> = inputs.iter().map(|it| it.name.clone()).collect();
    initializers.retain(|it| used.contains(&it.name) || defaults.contains(&it.name));
    let note = |key: &str, value: &str| StringStringEntryProto { key: key.to_string(), value: value.to_string() };
    Ok(ModelProto {
        ir_version: IR_VERSION,
        producer_name: "tracefx".to_string(),
        producer_version: env!("CARGO_PKG_VERSION").to_string(),
        doc_string: String::new(),
        graph: Some(GraphProto {
            node: nodes,
            name: "main_graph".to_string(),
            initializer: initializers,
            input: inputs,
            output: outputs,
        }),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
        metadata_props: vec![note("torch_version", &program.torch_version)],
    })
}

/// The outputs by the signature: results first, then new values of state and inputs. What is `None` is left out.
fn named_outputs(
    program: &ExportedProgram,
    translator: &mut Translator<'_>,
    results: Vec<Value<Tensor>>,
) -> Result<Vec<ValueInfoProto>> {
    let specs: Vec<_> = program.signature.output_specs.iter().zip(results).collect();
    let (users, others): (Vec<_>, Vec<_>) = specs.into_iter().partition(|(it, _)| it.kind.is_result());
    let builder = &mut translator.builder;
    builder.place = "output".to_string();
    builder.notes = Vec::new();
    let mut outputs: Vec<ValueInfoProto> = Vec::new();
    for (spec, value) in users.into_iter().chain(others) {
        let (x, sizes): (X, Vec<SymInt>) = match value {
            Value::Tensor(it) => (it.x, it.sizes),
            other => match other.as_scalar() {
                Some(it @ Scalar::Float(_)) => (builder.scalar(it, tracefx_core::DType::Float64)?, Vec::new()),
                Some(it) => (builder.scalar(it, it.default_dtype())?, Vec::new()),
                None => continue,
            },
        };
        let name = match (&spec.kind, &spec.target) {
            (
                OutputKind::BufferMutation | OutputKind::ParameterMutation | OutputKind::UserInputMutation,
                Some(target),
            ) => {
                format!("{target}_mutated")
            }
            _ if spec.arg.name().is_empty() => format!("output_{}", outputs.len()),
            _ => spec.arg.name().to_string(),
        };
        let made_here = builder.nodes.iter().any(|it| it.output.iter().any(|it| **it == *x.name));
        let is_free = made_here && outputs.iter().all(|it| *it.name != *x.name);
        let x = if is_free && name == *x.name {
            x
        } else if is_free {
            builder.rename(0, x, &name)
        } else {
            let copy = builder.raw("Identity", &[&x], Vec::new(), x.dtype);
            let start = builder.nodes.len() - 1;
            builder.rename(start, copy, &name)
        };
        outputs.push(value_info(&x, Some(&sizes)).map_err(|it| it.node(&**spec.arg.name()))?);
    }
    Ok(outputs)
}

/// What is known of a value. Sizes that are not known have their expression for a name.
pub(crate) fn value_info(x: &X, sizes: Option<&[SymInt]>) -> Result<ValueInfoProto> {
    let dim = |it: &SymInt| {
        let value = it.as_int().map_or_else(|| DimensionValue::DimParam(it.to_string()), DimensionValue::DimValue);
        Dimension { value: Some(value) }
    };
    let shape = sizes.map(|sizes| TensorShapeProto { dim: sizes.iter().map(dim).collect() });
    let tensor_type = Some(TensorTypeProto { elem_type: onnx_dtype(x.dtype)?, shape });
    let r#type = Some(TypeProto { tensor_type });
    Ok(ValueInfoProto { name: x.name.to_string(), r#type, doc_string: String::new() })
}

/// Drops the nodes whose results nobody takes.
fn drop_unused(nodes: &mut Vec<NodeProto>, outputs: &[ValueInfoProto]) {
    let mut used: HashSet<String> = outputs.iter().map(|it| it.name.clone()).collect();
    let mut kept: Vec<bool> = Vec::new();
    for node in nodes.iter().rev() {
        let is_used = node.output.iter().any(|it| used.contains(it));
        if is_used {
            take_names(node, &mut used);
        }
        kept.push(is_used);
    }
    nodes.retain(|_| kept.pop().expect("one for each node"));
}

/// Adds the names that a node takes, those in its graphs included.
fn take_names(node: &NodeProto, used: &mut HashSet<String>) {
    used.extend(node.input.iter().cloned());
    for graph in node.attribute.iter().filter_map(|it| it.g.as_ref()) {
        graph.node.iter().for_each(|it| take_names(it, used));
        used.extend(graph.output.iter().map(|it| it.name.clone()));
    }
}
