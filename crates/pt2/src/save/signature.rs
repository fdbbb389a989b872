//! The signature of a program and of the modules that it called.

use super::{invalid, tree, unsavable};
use crate::schema::{self, SymBoolArgument, SymFloatArgument, SymIntArgument, TensorArgument};
use tracefx_core::Result;
use tracefx_export::{
    Argument, CallSignature, ConstantValue, GraphSignature, InputKind, InputSpec, ModuleCallEntry, OutputKind,
    OutputSpec,
};
use tracefx_ir::Str;

/// The signature. `renamed` gives the name that the file has for a value.
pub(super) fn graph_signature<'a>(
    signature: &'a GraphSignature,
    renamed: &dyn Fn(&'a str) -> &'a str,
) -> Result<schema::GraphSignature> {
    Ok(schema::GraphSignature {
        input_specs: signature.input_specs.iter().map(input_spec).collect::<Result<_>>()?,
        output_specs: signature.output_specs.iter().map(|it| output_spec(it, renamed)).collect::<Result<_>>()?,
    })
}

fn input_spec(spec: &InputSpec) -> Result<schema::InputSpec> {
    let arg = || tensor(&spec.arg, spec.kind.name());
    let target = || target(spec.target.as_ref(), &spec.arg, spec.kind.name());
    Ok(match spec.kind {
        InputKind::UserInput => match &spec.arg {
            Argument::Constant { name, value } => schema::InputSpec::ConstantInput {
                name: name.to_string(),
                value: match value {
                    ConstantValue::None => schema::ConstantValue::None(true),
                    ConstantValue::Bool(it) => schema::ConstantValue::Bool(*it),
                    ConstantValue::Int(it) => schema::ConstantValue::Int(*it),
                    ConstantValue::Float(it) => schema::ConstantValue::Float(schema::Float(*it)),
                    ConstantValue::Str(it) => schema::ConstantValue::String(it.to_string()),
                },
            },
            place => schema::InputSpec::UserInput { arg: argument(place, &|it| it)? },
        },
        InputKind::Parameter => schema::InputSpec::Parameter { arg: arg()?, parameter_name: target()? },
        InputKind::Buffer => schema::InputSpec::Buffer {
            arg: arg()?,
            buffer_name: target()?,
            persistent: spec.persistent.unwrap_or(true),
        },
        InputKind::ConstantTensor => schema::InputSpec::TensorConstant { arg: arg()?, tensor_constant_name: target()? },
        InputKind::CustomObj => match &spec.arg {
            Argument::CustomObj { name, class_fqn } => schema::InputSpec::CustomObj {
                arg: schema::CustomObjArgument { name: name.to_string(), class_fqn: class_fqn.to_string() },
                custom_obj_name: target()?,
            },
            other => return Err(unfit(other, spec.kind.name())),
        },
        InputKind::Token => schema::InputSpec::Token { arg: arg()? },
    })
}

fn output_spec<'a>(spec: &'a OutputSpec, renamed: &dyn Fn(&'a str) -> &'a str) -> Result<schema::OutputSpec> {
    let arg = || {
        tensor(&spec.arg, spec.kind.name()).map(|it| match spec.arg.name() {
            name if !name.is_empty() => TensorArgument { name: renamed(name).to_string() },
            _ => it,
        })
    };
    let target = || target(spec.target.as_ref(), &spec.arg, spec.kind.name());
    Ok(match spec.kind {
        OutputKind::UserOutput => schema::OutputSpec::UserOutput { arg: argument(&spec.arg, renamed)? },
        OutputKind::LossOutput => schema::OutputSpec::LossOutput { arg: arg()? },
        OutputKind::BufferMutation => schema::OutputSpec::BufferMutation { arg: arg()?, buffer_name: target()? },
        OutputKind::ParameterMutation => {
            schema::OutputSpec::ParameterMutation { arg: arg()?, parameter_name: target()? }
        }
        OutputKind::GradientToParameter => {
            schema::OutputSpec::GradientToParameter { arg: arg()?, parameter_name: target()? }
        }
        OutputKind::GradientToUserInput => {
            schema::OutputSpec::GradientToUserInput { arg: arg()?, user_input_name: target()? }
        }
        OutputKind::UserInputMutation => {
            schema::OutputSpec::UserInputMutation { arg: arg()?, user_input_name: target()? }
        }
        OutputKind::Token => schema::OutputSpec::Token { arg: arg()? },
    })
}

/// What stands in a place.
fn argument<'a>(place: &'a Argument, renamed: &dyn Fn(&'a str) -> &'a str) -> Result<schema::Argument> {
    let name = |it: &'a Str| renamed(it).to_string();
    Ok(match place {
        Argument::Tensor(it) => schema::Argument::Tensor(TensorArgument { name: name(it) }),
        Argument::SymInt(it) => schema::Argument::SymInt(SymIntArgument::Name(name(it))),
        Argument::SymFloat(it) => schema::Argument::SymFloat(SymFloatArgument::Name(name(it))),
        Argument::SymBool(it) => schema::Argument::SymBool(SymBoolArgument::Name(name(it))),
        Argument::CustomObj { name: it, class_fqn } => {
            schema::Argument::CustomObj(schema::CustomObjArgument { name: name(it), class_fqn: class_fqn.to_string() })
        }
        Argument::Constant { value: ConstantValue::None, .. } => schema::Argument::None(true),
        Argument::Constant { value: ConstantValue::Bool(it), .. } => schema::Argument::Bool(*it),
        Argument::Constant { value: ConstantValue::Int(it), .. } => schema::Argument::Int(*it),
        Argument::Constant { value: ConstantValue::Float(it), .. } => schema::Argument::Float(schema::Float(*it)),
        Argument::Constant { value: ConstantValue::Str(it), .. } => schema::Argument::String(it.to_string()),
        Argument::Token(it) => {
            return Err(unsavable(format!("the token `{it}` stands where a user's value or one of a module should")));
        }
    })
}

/// The modules that were called.
pub(super) fn module_call_graph(entries: &[ModuleCallEntry]) -> Result<Vec<schema::ModuleCallEntry>> {
    let signature = |it: &CallSignature| {
        let places = |them: &[Argument]| them.iter().map(|it| argument(it, &|it| it)).collect::<Result<_>>();
        Ok(schema::ModuleCallSignature {
            inputs: places(&it.inputs)?,
            outputs: places(&it.outputs)?,
            in_spec: tree::dump(&it.in_spec)?,
            out_spec: tree::dump(&it.out_spec)?,
            forward_arg_names: it.forward_arg_names.as_ref().map(|it| it.iter().map(ToString::to_string).collect()),
        })
    };
    let entry = |it: &ModuleCallEntry| {
        let signature = it.signature.as_ref().map(signature).transpose();
        let signature =
            signature.map_err(|error: tracefx_core::Diagnostic| error.note(format!("of the module `{}`", it.fqn)))?;
        Ok(schema::ModuleCallEntry { fqn: it.fqn.to_string(), signature })
    };
    entries.iter().map(entry).collect()
}

fn tensor(place: &Argument, kind: &str) -> Result<TensorArgument> {
    match place {
        Argument::Tensor(name) | Argument::Token(name) => Ok(TensorArgument { name: name.to_string() }),
        other => Err(unfit(other, kind)),
    }
}

fn unfit(place: &Argument, kind: &str) -> tracefx_core::Diagnostic {
    let error = unsavable(format!("a {kind} is neither a tensor nor what PyTorch's files have in its place"));
    if place.name().is_empty() { error } else { error.node(&**place.name()) }
}

fn target(target: Option<&Str>, place: &Argument, kind: &str) -> Result<String> {
    let missing = || invalid(format!("the signature does not say what the {kind} belongs to")).node(&**place.name());
    target.map(ToString::to_string).ok_or_else(missing)
}
