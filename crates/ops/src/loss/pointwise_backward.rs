//! The gradients of the losses that compare two tensors element by element. Each is one of the input alone; the gradient
//! of the target is that with the two exchanged, or nothing.

use crate::core::elementwise::{elementwise, laid_out, operands};
use crate::loss::decompose;
use crate::{Args, OpDef, Output, Tags, Tol, broadcast, promote};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    loss("aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor", row_major)
        .decompose(decompose::mse)
        .doc("The gradient of `mse_loss`."),
    loss(
        "aten::smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float \
         beta) -> Tensor",
        row_major,
    )
    .decompose(decompose::smooth_l1)
    .doc("The gradient of `smooth_l1_loss`."),
    loss(
        "aten::huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) \
         -> Tensor",
        huber,
    )
    .decompose(decompose::huber)
    .doc("The gradient of `huber_loss`."),
    loss(
        "aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? \
         weight=None, int reduction=1) -> Tensor",
        binary_cross_entropy,
    )
    .decompose(decompose::binary_cross_entropy)
    .doc("The gradient of `binary_cross_entropy`."),
    loss(
        "aten::soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> \
         Tensor",
        soft_margin,
    )
    .decompose(decompose::soft_margin)
    .doc("The gradient of `soft_margin_loss`."),
];

const fn loss(schema: &'static str, rule: crate::Rule) -> OpDef {
    OpDef::new(schema, rule).tags(Tags::POINTWISE).tolerance(Tol::Default)
}

type Meta<'a> = Args<'a, TensorMeta>;

/// The dtype of the gradient, which is that of the input.
fn float_dtype(args: &Meta<'_>) -> Result<DType> {
    let dtype = args.tensor(1)?.dtype;
    match promote(&operands(args, [0, 1, 2])?).is_float() && dtype.is_float() {
        true => Ok(dtype),
        false => Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)),
    }
}

fn row_major(args: &Meta<'_>) -> Result<Vec<Output>> {
    let mut sizes = Vec::new();
    for index in [1, 2, 0] {
        sizes = broadcast(args, &sizes, &args.tensor(index)?.sizes)?;
    }
    Ok(crate::contiguous(float_dtype(args)?, sizes))
}

fn same_dtype(args: &Meta<'_>) -> Result<DType> {
    let dtype = float_dtype(args)?;
    for index in [0, 2] {
        let other = args.tensor(index)?.dtype;
        if other != dtype {
            let what = format!("Found dtype {} but expected {}", other.cpp_name(), dtype.cpp_name());
            return Err(Diagnostic::new(Code::DTypeMismatch, what));
        }
    }
    Ok(dtype)
}

fn huber(args: &Meta<'_>) -> Result<Vec<Output>> {
    same_dtype(args)?;
    row_major(args)
}

fn binary_cross_entropy(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (dtype, input) = (same_dtype(args)?, args.tensor(1)?);
    for index in [0, 2, 3] {
        let Some(other) = args.opt_tensor(index)? else { continue };
        if !args.agree(&broadcast(args, &input.sizes, &other.sizes)?, &input.sizes) {
            return Err(args.bad_shape("binary_cross_entropy_backward: the gradient is of the sizes of the input"));
        }
    }
    Ok(vec![Output::Tensor(laid_out(dtype, input.sizes.clone(), &[input]))])
}

fn soft_margin(args: &Meta<'_>) -> Result<Vec<Output>> {
    elementwise(args, float_dtype(args)?, &operands(args, [2, 1, 0])?)
}
