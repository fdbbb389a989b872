//! Choices between two numbers, and arithmetic of three.

use crate::core::decompositions::forward;
use crate::core::elementwise::{check_all_fit, check_fits, check_numbers, elementwise, operands, promoting};
use crate::pointwise::binary_gradient;
use crate::pointwise::choice_gradient;
use crate::pointwise::decompose;
use crate::{Args, OpDef, Operand, Output, Tags, Tol, broadcast, contiguous, promote};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", where_rule)
        .tags(Tags::POINTWISE)
        .tags(Tags::CORE)
        .vjp(choice_gradient::where_self)
        .doc("The element of `self` where the condition holds, else that of `other`."),
    OpDef::new("aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", where_rule)
        .decompose(decompose::where_number)
        .tags(Tags::POINTWISE)
        .vjp(choice_gradient::where_self)
        .doc("The number `self` where the condition holds, else the element of `other`."),
    OpDef::new("aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", where_rule)
        .decompose(decompose::where_number)
        .tags(Tags::POINTWISE)
        .vjp(choice_gradient::where_self)
        .doc("The element of `self` where the condition holds, else the number `other`."),
    OpDef::new("aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", where_rule)
        .decompose(decompose::where_number)
        .tags(Tags::POINTWISE)
        .doc("The number `self` where the condition holds, else the number `other`."),
    OpDef::new("aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", masked_fill)
        .decompose(decompose::masked_fill)
        .tags(Tags::POINTWISE)
        .vjp(choice_gradient::masked_fill)
        .doc("`self`, with `value` where the mask is set.")
        .in_place(&["masked_fill_.Scalar"]),
    OpDef::new("aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", masked_fill)
        .decompose(decompose::masked_fill)
        .tags(Tags::POINTWISE)
        .vjp(choice_gradient::masked_fill)
        .doc("`self`, with `value` where the mask is set.")
        .in_place(&["masked_fill_.Tensor"]),
    OpDef::new("aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", clamp)
        .tags(Tags::POINTWISE)
        .tags(Tags::CORE)
        .vjp(choice_gradient::clamp)
        .doc("`self`, kept between `min` and `max`; `max` where they contradict each other.")
        .in_place(&["clamp_", "clip_"]),
    OpDef::new("aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", clamp)
        .tags(Tags::POINTWISE)
        .tags(Tags::CORE)
        .vjp(choice_gradient::clamp_tensor)
        .doc("`self`, kept between `min` and `max`; `max` where they contradict each other.")
        .in_place(&["clamp_.Tensor", "clip_.Tensor"]),
    OpDef::new("aten::clamp_min(Tensor self, Scalar min) -> Tensor", clamp_bound)
        .decompose(decompose::clamp_min)
        .tags(Tags::POINTWISE)
        .vjp(choice_gradient::clamp_min)
        .doc("`self`, but not below `min`.")
        .in_place(&["clamp_min_"]),
    OpDef::new("aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", promoting::<2>)
        .decompose(decompose::clamp_min)
        .tags(Tags::POINTWISE)
        .vjp(choice_gradient::clamp_min_tensor)
        .doc("`self`, but not below `min`.")
        .in_place(&["clamp_min_.Tensor"]),
    OpDef::new("aten::clamp_max(Tensor self, Scalar max) -> Tensor", clamp_bound)
        .decompose(decompose::clamp_max)
        .tags(Tags::POINTWISE)
        .vjp(choice_gradient::clamp_max)
        .doc("`self`, but not above `max`.")
        .in_place(&["clamp_max_"]),
    OpDef::new("aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", promoting::<2>)
        .decompose(decompose::clamp_max)
        .tags(Tags::POINTWISE)
        .vjp(choice_gradient::clamp_max_tensor)
        .doc("`self`, but not above `max`.")
        .in_place(&["clamp_max_.Tensor"]),
    OpDef::new("aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", lerp)
        .decompose(decompose::lerp)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .vjp(binary_gradient::lerp)
        .doc("`self + weight * (end - self)`.")
        .in_place(&["lerp_.Scalar"]),
    OpDef::new("aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", lerp)
        .decompose(decompose::lerp)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .vjp(binary_gradient::lerp)
        .doc("`self + weight * (end - self)`.")
        .in_place(&["lerp_.Tensor"]),
    OpDef::new("aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", addcmul)
        .decompose(decompose::addcmul)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .vjp(binary_gradient::addcmul)
        .doc("`self + value * tensor1 * tensor2`.")
        .in_place(&["addcmul_"]),
    OpDef::new("aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", addcdiv)
        .decompose(decompose::addcdiv)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .vjp(binary_gradient::addcdiv)
        .doc("`self + value * tensor1 / tensor2`.")
        .in_place(&["addcdiv_"]),
    OpDef::composite("aten::clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", |cx, args| {
        forward(cx, args, "clamp")
    })
    .doc("Another name of `clamp`."),
    OpDef::composite("aten::clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", |cx, args| {
        forward(cx, args, "clamp.Tensor")
    })
    .doc("Another name of `clamp`."),
];

fn where_rule(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let condition = args.tensor(0)?.dtype;
    if !matches!(condition, DType::Bool | DType::UInt8) {
        let what = format!("where expected condition to be a boolean tensor, but got a tensor with dtype {condition}");
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let dtype = promote(&operands(args, 1..3)?);
    // Beside a tensor of half precision, a number that it does not hold is infinite.
    if !matches!(dtype, DType::Float16 | DType::BFloat16) {
        check_all_fit(args, dtype)?;
    }
    elementwise(args, dtype, &operands(args, 0..3)?)
}

fn masked_fill(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (this, mask) = (args.tensor(0)?, args.tensor(1)?);
    if mask.dtype != DType::Bool {
        return Err(Diagnostic::new(Code::DTypeMismatch, "masked_fill only supports boolean masks"));
    }
    let value = args.operand(2)?;
    if let Operand::Tensor(value) = value
        && !value.sizes.is_empty()
    {
        let n = value.sizes.len();
        let what =
            format!("masked_fill only supports a 0-dimensional value tensor, but got tensor with {n} dimension(s).");
        return Err(args.invalid(what));
    }
    if let Operand::Scalar(value) = value {
        check_fits(value, this.dtype)?;
    }
    Ok(contiguous(this.dtype, broadcast(args, &this.sizes, &mask.sizes)?))
}

fn clamp(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    if args.is_none(1) && args.is_none(2) {
        return Err(args.invalid("torch.clamp: At least one of 'min' or 'max' must not be None"));
    }
    let operands = operands(args, 0..3)?;
    let dtype = promote(&operands);
    if dtype.is_complex() {
        return Err(Diagnostic::new(Code::DTypeMismatch, "clamp is not supported for complex types"));
    }
    check_all_fit(args, dtype)?;
    elementwise(args, dtype, &operands)
}

fn clamp_bound(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = promote(&operands(args, 0..2)?);
    check_all_fit(args, dtype)?;
    promoting::<2>(args)
}

fn lerp(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?.dtype;
    for index in 1..3 {
        if let Operand::Tensor(other) = args.operand(index)?
            && other.dtype != this
            && !(index == 2 && other.sizes.is_empty())
        {
            let name = &args.op.schema.args[index].name;
            let what = format!("expected dtype {} for `{name}` but got dtype {}", this.name(), other.dtype.name());
            return Err(Diagnostic::new(Code::DTypeMismatch, what));
        }
    }
    let operands = operands(args, 0..3)?;
    // A weight without dimensions may be of another dtype, and counts as one does; a number does not count.
    let dtype = if matches!(operands[2], Operand::Tensor(_)) { promote(&operands) } else { this };
    check_numbers(args, dtype)?;
    elementwise(args, dtype, &operands)
}

fn addcmul(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    check_numbers(args, promote(&operands(args, 0..3)?))?;
    promoting::<3>(args)
}

fn addcdiv(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    if promote(&operands(args, 1..3)?).kind() <= tracefx_core::DTypeKind::Int {
        let what = "Integer division with addcdiv is no longer supported, and in a future release addcdiv will \
                    perform a true division of tensor1 and tensor2.";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    addcmul(args)
}
