//! Softmax and its logarithm.

use crate::core::decompositions::Call;
use crate::pointwise::activation_gradient;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, contiguous, normalize_dim};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", softmax)
        .vjp(activation_gradient::softmax)
        .doc("Exponentials along one dimension, divided by their sum.")
        .tags(Tags::CORE)
        .tolerance(Tol::Default),
    OpDef::new("aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", softmax)
        .vjp(activation_gradient::log_softmax)
        .doc("The logarithm of `_softmax`.")
        .tags(Tags::CORE)
        .tolerance(Tol::Default),
    OpDef::new("aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", safe_softmax)
        .vjp(activation_gradient::softmax)
        .doc("Softmax where a row of nothing but minus infinity gives zeros.")
        .decompose(decomposed_safe_softmax)
        .tolerance(Tol::Default),
    OpDef::composite("aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax_int)
        .tags(Tags::FRESH)
        .tags(Tags::OWN_DTYPE)
        .doc("Exponentials along one dimension, divided by their sum."),
    OpDef::composite("aten::special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax_int)
        .tags(Tags::FRESH)
        .doc("The same as `softmax`."),
    OpDef::composite("aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", log_softmax_int)
        .tags(Tags::FRESH)
        .tags(Tags::OWN_DTYPE)
        .doc("The logarithm of `softmax`."),
    OpDef::composite(
        "aten::special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        log_softmax_int,
    )
    .tags(Tags::FRESH)
    .doc("The logarithm of `softmax`."),
];

fn check(args: &Args<'_, TensorMeta>, dtype: DType) -> Result<()> {
    normalize_dim(args, args.int(1)?, args.tensor(0)?.sizes.len())?;
    let is_empty = args.tensor(0)?.sizes.contains(&SymInt::ZERO);
    if dtype.is_float() || dtype.is_complex() || is_empty {
        return Ok(());
    }
    let what = format!("\"{}\" not implemented for {}", args.op.schema.name, dtype.name());
    Err(Diagnostic::new(Code::DTypeMismatch, what).help("give the dtype of the result").op(&*args.op.name))
}

fn softmax(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let input = args.tensor(0)?;
    check(args, input.dtype)?;
    let is_widened = args.bool(2)?;
    if is_widened && input.dtype != DType::Float16 {
        return Err(args.invalid("conversion is supported for Half type only"));
    }
    let dtype = if is_widened { DType::Float32 } else { input.dtype };
    Ok(contiguous(dtype, input.sizes.clone()))
}

fn safe_softmax(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let input = args.tensor(0)?;
    let dtype = args.opt_dtype(2)?.unwrap_or(input.dtype);
    check(args, dtype)?;
    Ok(contiguous(dtype, input.sizes.clone()))
}

fn converted(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Traced> {
    let input = *args.tensor(0)?;
    match args.opt_dtype(2)? {
        Some(dtype) if dtype != cx.meta(input).dtype => {
            cx.aten_with("_to_copy", [&input.into()], &[("dtype", Value::DType(dtype))])
        }
        _ => Ok(input.into()),
    }
}

fn softmax_int(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let input = converted(cx, args)?;
    Ok(vec![cx.aten("_softmax", [&input, &args.values[1], &Value::Bool(false)])?])
}

fn log_softmax_int(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let input = converted(cx, args)?;
    Ok(vec![cx.aten("_log_softmax", [&input, &args.values[1], &Value::Bool(false)])?])
}

/// Follows `_safe_softmax` of torch/_decomp/decompositions.py.
fn decomposed_safe_softmax(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let dim = &args.values[1];
    let out = cx.aten("softmax.int", &args.values)?;
    let is_masked = cx.aten("eq.Scalar", [&args.values[0], &Value::Float(f64::NEG_INFINITY)])?;
    let is_row_masked = cx.aten("all.dim", [&is_masked, dim, &Value::Bool(true)])?;
    let zeros = cx.aten("zeros_like", [&out])?;
    Ok(vec![cx.aten("where.self", [&is_row_masked, &zeros, &out])?])
}
