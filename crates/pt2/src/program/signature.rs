//! The signature of a program and of the modules that it called.

use super::tree;
use crate::schema;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_export::{
    Argument, CallSignature, ConstantValue, GraphSignature, InputKind, InputSpec, ModuleCallEntry, OutputKind,
    OutputSpec,
};
use tracefx_ir::{Arg, GraphModule, Opcode, Str};

pub(super) fn graph_signature(schema: &schema::GraphSignature) -> Result<GraphSignature> {
    Ok(GraphSignature {
        input_specs: schema.input_specs.iter().map(input_spec).collect::<Result<_>>()?,
        output_specs: schema.output_specs.iter().map(output_spec).collect::<Result<_>>()?,
    })
}

fn input_spec(spec: &schema::InputSpec) -> Result<InputSpec> {
    let tensor = |it: &schema::TensorArgument| Argument::Tensor(str(&it.name));
    let new = |kind, arg, target: Option<&String>| InputSpec {
        kind,
        arg,
        target: target.map(|it| str(it)),
        persistent: None,
    };
    Ok(match spec {
        schema::InputSpec::UserInput { arg } => new(InputKind::UserInput, argument(arg)?, None),
        schema::InputSpec::Parameter { arg, parameter_name } => {
            new(InputKind::Parameter, tensor(arg), Some(parameter_name))
        }
        schema::InputSpec::Buffer { arg, buffer_name, persistent } => {
            InputSpec { persistent: Some(*persistent), ..new(InputKind::Buffer, tensor(arg), Some(buffer_name)) }
        }
        schema::InputSpec::TensorConstant { arg, tensor_constant_name } => {
            new(InputKind::ConstantTensor, tensor(arg), Some(tensor_constant_name))
        }
        schema::InputSpec::CustomObj { arg, custom_obj_name } => {
            let arg = Argument::CustomObj { name: str(&arg.name), class_fqn: str(&arg.class_fqn) };
            new(InputKind::CustomObj, arg, Some(custom_obj_name))
        }
        schema::InputSpec::Token { arg } => new(InputKind::Token, Argument::Token(str(&arg.name)), None),
        schema::InputSpec::ConstantInput { name, value } => {
            let value = match value {
                schema::ConstantValue::None(_) => ConstantValue::None,
                schema::ConstantValue::Int(it) => ConstantValue::Int(*it),
                schema::ConstantValue::Float(it) => ConstantValue::Float(it.0),
                schema::ConstantValue::String(it) => ConstantValue::Str(str(it)),
                schema::ConstantValue::Bool(it) => ConstantValue::Bool(*it),
            };
            new(InputKind::UserInput, Argument::Constant { name: str(name), value }, None)
        }
    })
}

fn output_spec(spec: &schema::OutputSpec) -> Result<OutputSpec> {
    let new = |kind, arg: &schema::TensorArgument, target: Option<&String>| OutputSpec {
        kind,
        arg: Argument::Tensor(str(&arg.name)),
        target: target.map(|it| str(it)),
    };
    Ok(match spec {
        schema::OutputSpec::UserOutput { arg } => {
            OutputSpec { kind: OutputKind::UserOutput, arg: argument(arg)?, target: None }
        }
        schema::OutputSpec::LossOutput { arg } => new(OutputKind::LossOutput, arg, None),
        schema::OutputSpec::BufferMutation { arg, buffer_name } => {
            new(OutputKind::BufferMutation, arg, Some(buffer_name))
        }
        schema::OutputSpec::ParameterMutation { arg, parameter_name } => {
            new(OutputKind::ParameterMutation, arg, Some(parameter_name))
        }
        schema::OutputSpec::GradientToParameter { arg, parameter_name } => {
            new(OutputKind::GradientToParameter, arg, Some(parameter_name))
        }
        schema::OutputSpec::GradientToUserInput { arg, user_input_name } => {
            new(OutputKind::GradientToUserInput, arg, Some(user_input_name))
        }
        schema::OutputSpec::UserInputMutation { arg, user_input_name } => {
            new(OutputKind::UserInputMutation, arg, Some(user_input_name))
        }
        schema::OutputSpec::Token { arg } => {
            OutputSpec { kind: OutputKind::Token, arg: Argument::Token(str(&arg.name)), target: None }
        }
    })
}

/// What stands in a place of a signature; a constant there has no name.
fn argument(arg: &schema::Argument) -> Result<Argument> {
    let constant = |value| Ok(Argument::Constant { name: "".into(), value });
    match arg {
        schema::Argument::Tensor(it) => Ok(Argument::Tensor(str(&it.name))),
        schema::Argument::SymInt(schema::SymIntArgument::Name(name)) => Ok(Argument::SymInt(str(name))),
        schema::Argument::SymFloat(schema::SymFloatArgument::Name(name)) => Ok(Argument::SymFloat(str(name))),
        schema::Argument::SymBool(schema::SymBoolArgument::Name(name)) => Ok(Argument::SymBool(str(name))),
        schema::Argument::CustomObj(it) => {
            Ok(Argument::CustomObj { name: str(&it.name), class_fqn: str(&it.class_fqn) })
        }
        schema::Argument::None(_) => constant(ConstantValue::None),
        schema::Argument::Bool(it) | schema::Argument::SymBool(schema::SymBoolArgument::Bool(it)) => {
            constant(ConstantValue::Bool(*it))
        }
        schema::Argument::Int(it) | schema::Argument::SymInt(schema::SymIntArgument::Int(it)) => {
            constant(ConstantValue::Int(*it))
        }
        schema::Argument::Float(it) | schema::Argument::SymFloat(schema::SymFloatArgument::Float(it)) => {
            constant(ConstantValue::Float(it.0))
        }
        schema::Argument::String(it) => constant(ConstantValue::Str(str(it))),
        _ => Err(invalid("a place of the signature is neither a value nor a constant")),
    }
}

pub(super) fn module_call_graph(entries: &[schema::ModuleCallEntry]) -> Result<Vec<ModuleCallEntry>> {
    let arguments = |them: &[schema::Argument]| them.iter().map(argument).collect::<Result<Vec<_>>>();
    let entry = |entry: &schema::ModuleCallEntry| {
        let signature = match &entry.signature {
            Some(it) => Some(CallSignature {
                inputs: arguments(&it.inputs)?,
                outputs: arguments(&it.outputs)?,
                in_spec: tree::parse(&it.in_spec)?,
                out_spec: tree::parse(&it.out_spec)?,
                forward_arg_names: it.forward_arg_names.as_ref().map(|them| them.iter().map(|it| str(it)).collect()),
            }),
            None => None,
        };
        Ok(ModuleCallEntry { fqn: str(&entry.fqn), signature })
    };
    entries.iter().map(entry).collect()
}

/// Refuses a signature that does not fit its graph: each input and output has a spec, and they have the same names.
pub(crate) fn check(module: &GraphModule, signature: &GraphSignature) -> Result<()> {
    let graph = &module.graph;
    let node = |id| graph.node(id);
    let placeholders: Vec<_> = graph.nodes().map(node).filter(|it| it.op() == Opcode::Placeholder).collect();
    let specs = &signature.input_specs;
    if placeholders.len() != specs.len() {
        return Err(invalid(format!("the graph has {} inputs, but its signature {}", placeholders.len(), specs.len())));
    }
    for (placeholder, spec) in placeholders.iter().zip(specs) {
        if placeholder.name() != spec.arg.name() && !matches!(spec.arg, Argument::Constant { .. }) {
            return Err(
                invalid(format!("the signature calls an input `{}`", spec.arg.name())).node(&**placeholder.name())
            );
        }
    }
    let outputs = graph.output_node().and_then(|it| graph.node(it).args().first());
    let outputs = match outputs {
        Some(Arg::Tuple(items)) => &items[..],
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let specs = &signature.output_specs;
    if outputs.len() != specs.len() {
        return Err(invalid(format!("the graph has {} outputs, but its signature {}", outputs.len(), specs.len())));
    }
    for (output, spec) in outputs.iter().zip(specs) {
        let name = output.as_node().map_or("", |it| &**node(it).name());
        if name != &**spec.arg.name() && !matches!(spec.arg, Argument::Constant { .. }) {
            let what = format!("the signature calls an output `{}`, but the graph `{name}`", spec.arg.name());
            return Err(invalid(what).node("output"));
        }
    }
    Ok(())
}

fn str(text: &str) -> Str {
    text.into()
}

fn invalid(what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::GraphInvalid, what)
}
