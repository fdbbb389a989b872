//! The gradients of softmax and of its logarithm, from their results.

use crate::core::decompositions::{Call, in_float32, to_dtype};
use crate::{Args, Cx, OpDef, Output, Tol, Traced, Value, contiguous, normalize_dim};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> \
         Tensor",
        from_result,
    )
    .tolerance(Tol::Default)
    .decompose(softmax)
    .doc("The gradient of `_softmax`."),
    OpDef::new(
        "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) \
         -> Tensor",
        from_result,
    )
    .tolerance(Tol::Default)
    .decompose(log_softmax)
    .doc("The gradient of `_log_softmax`."),
];

fn from_result(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (grad, output) = (args.tensor(0)?, args.tensor(1)?);
    if !args.agree(&grad.sizes, &output.sizes) {
        return Err(args.bad_shape("the gradient and the result should be of the same sizes"));
    }
    normalize_dim(args, args.int(2)?, grad.sizes.len())?;
    if grad.dtype != output.dtype {
        let what = format!("expected a gradient of {} but got {}", output.dtype.name(), grad.dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    // A softmax may have widened its input.
    let dtype = match (grad.dtype, args.opt_dtype(3)?) {
        (DType::Float32, Some(DType::Float16)) => DType::Float16,
        (own, _) => own,
    };
    if !dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(dtype, &args.op.name));
    }
    Ok(contiguous(dtype, grad.sizes.clone()))
}

/// The sum along the dimension, in the place of each element of it.
fn sum(cx: &mut Cx<'_>, args: &Call<'_>, value: &Traced) -> Result<Traced> {
    let dims = Value::List(vec![args.values[2].clone()]);
    cx.aten("sum.dim_IntList", [value, &dims, &Value::Bool(true)])
}

/// The result in the dtype of the input, where the softmax widened it.
fn narrowed(cx: &mut Cx<'_>, args: &Call<'_>, value: Traced) -> Result<Vec<Traced>> {
    // Of wider floats, the dtype of the input is no matter.
    let may_narrow = matches!(cx.meta(*args.tensor(0)?).dtype, DType::Float32 | DType::Float16);
    Ok(vec![match (value, args.opt_dtype(3)?) {
        (it, Some(DType::Float16)) if may_narrow => to_dtype(cx, it, DType::Float16)?,
        (value, _) => value,
    }])
}

fn softmax(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let res = in_float32(cx, args, |cx, values| {
        let [grad, output] = [values[0].clone(), values[1].clone()];
        let product = cx.aten("mul.Tensor", [&grad, &output])?;
        let total = sum(cx, args, &product)?;
        let mean = cx.aten("mul.Tensor", [&output, &total])?;
        cx.aten("sub.Tensor", [&product, &mean])
    })?;
    narrowed(cx, args, res)
}

fn log_softmax(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let res = in_float32(cx, args, |cx, values| {
        let [grad, output] = [values[0].clone(), values[1].clone()];
        let probability = cx.aten("exp", [&output])?;
        let total = sum(cx, args, &grad)?;
        let mean = cx.aten("mul.Tensor", [&probability, &total])?;
        cx.aten("sub.Tensor", [&grad, &mean])
    })?;
    narrowed(cx, args, res)
}
