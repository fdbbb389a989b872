//! Operators, called one at a time.

use crate::Refusal;
use crate::library::library;
use crate::tensor::dtype_of;
use crate::values::{Place, Reader, encode, encode_known, encoded, write, write_text};
use tracefx_core::{Code, Diagnostic};
use tracefx_ir::TensorMeta;
use tracefx_ops::Value;
use tracefx_wire::format::arg;
use wasm_bindgen::prelude::wasm_bindgen;

/// Calls an operator: `aten.add`, whose overload is found by the arguments, or `aten.add.Tensor`.
///
/// The call is the count of the positional arguments and the arguments, then the count of the keyword arguments and each
/// name (its bytes, counted) with its value; see [`values`](crate::values) for the words of a value. What comes back is
/// the results, and in front of them whether the only result is the first argument itself. Under autocast the number of the
/// narrow dtype is given, too.
///
/// # Errors
/// `NotImplemented` where there is no such operator, `SchemaMismatch` where the arguments fit none of its overloads; else
/// what the operator refuses.
#[wasm_bindgen]
pub fn call_operator(name: &str, call: &[u32], autocast: Option<u32>) -> Result<Vec<u32>, Refusal> {
    let mut reader = Reader::new(call);
    let (args, kwargs) = (reader.values()?, reader.named_values()?);
    let called = match autocast {
        Some(dtype) => library().call_under_autocast(dtype_of(dtype)?, name, &args, kwargs)?,
        None => library().call(name, &args, kwargs)?,
    };
    let mut out = vec![u32::from(called.is_self)];
    encode(&called.results, &mut out)?;
    Ok(out)
}

/// What is known of the results of a call: [`call_operator`] without data, with the words of such values, and under autocast
/// as there. New symbols are numbered behind those of the arguments.
///
/// # Errors
/// As [`call_operator`], and `NotImplemented` where the operator needs to know an unbacked size.
#[wasm_bindgen]
pub fn infer_operator(name: &str, call: &[u32], autocast: Option<u32>) -> Result<Vec<u32>, Refusal> {
    let mut reader = Reader::new(call);
    let (args, kwargs) = (reader.values()?, reader.named_values()?);
    Ok(encode_known(&library().infer_under(autocast.map(dtype_of).transpose()?, name, &args, &kwargs)?))
}

/// The call of an operator as a graph has it. The words are those of [`call_operator`], but that a tensor is the tag and a
/// number of the caller's; behind them is what is known of the tensors, by these numbers.
///
/// What comes back is the name of the overload as a string, how many results it has, for each the position of the argument
/// that it is plus one, or 0, the count of positional arguments and these, and the count of keyword arguments and their
/// names and values. Arguments that are the defaults are left out, and so is `out=`, but for the `dtype` that it asks for.
///
/// # Errors
/// As [`call_operator`] for what is no operator, or fits no overload.
#[wasm_bindgen]
pub fn resolve_operator(name: &str, call: &[u32]) -> Result<Vec<u32>, Refusal> {
    let mut reader = Reader::new(call);
    let (args, mut kwargs) = (reader.values::<Place>()?, reader.named_values()?);
    let out = kwargs.iter().position(|(key, _)| **key == *"out").map(|at| kwargs.remove(at).1);
    let tensors = reader.rest::<TensorMeta>()?;
    let library = library();
    let mut bound = library.resolve(name, &args, &kwargs)?;
    let known = |place: &Place| match tensors.get(place.0 as usize) {
        Some(Value::Tensor(meta)) => Ok(meta.clone()),
        _ => Err(Diagnostic::new(Code::Internal, format!("nothing is known of tensor {}", place.0))),
    };
    if let Some(Value::Tensor(out)) = &out {
        bound.compute_for_out(known(out)?.dtype);
    }
    let values = bound.values.iter().map(|it| it.try_map(&mut |place| known(place))).collect::<Result<_, _>>()?;
    let mut out = Vec::new();
    write_text(arg::STR, &bound.op.name, &mut out);
    let mut same = library.arguments_given_back(bound.op, values);
    same.resize(bound.op.schema.returns.len(), None);
    out.push(same.len() as u32);
    out.extend(same.iter().map(|it| it.map_or(0, |at| at as u32 + 1)));
    let (n_given, named) = bound.written();
    out.push(n_given as u32);
    bound.values[..n_given].iter().for_each(|it| write(it, &mut out));
    out.push(named.len() as u32);
    for at in named {
        write_text(arg::STR, &bound.op.schema.args[at].name, &mut out);
        write(&bound.values[at], &mut out);
    }
    Ok(out)
}

/// The gradients of the arguments of a call, one per argument of the schema, with `None` where no gradient flows. After the
/// words of [`call_operator`] come the gradients of the results, one per result.
///
/// # Errors
/// As [`call_operator`]; `NotImplemented` where the operator has no gradient, `InvalidArgument` where a gradient does not fit
/// its result.
#[wasm_bindgen]
pub fn differentiate_operator(name: &str, call: &[u32]) -> Result<Vec<u32>, Refusal> {
    let mut reader = Reader::new(call);
    let (args, kwargs) = (reader.values()?, reader.named_values()?);
    let grads: Vec<_> = reader.rest()?;
    let library = library();
    encoded(&library.vjp(name, &args, &kwargs)?.pull_back(&grads)?)
}

/// How near a result of this dtype must be to PyTorch's: relative and absolute.
///
/// # Errors
/// `NotImplemented` where there is no such operator.
#[wasm_bindgen]
pub fn operator_tolerance(name: &str, dtype: u32) -> Result<Vec<f64>, Refusal> {
    let (relative, absolute) = library().tolerance(name)?.for_dtype(dtype_of(dtype)?);
    Ok(vec![relative, absolute])
}
