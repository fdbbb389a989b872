//! Arithmetic of two numbers.

use crate::core::decompositions::forward;
use crate::core::elementwise::{
    check_fits, elementwise, operands, promoting, promoting_to_float, to_float as float_of,
};
use crate::pointwise::binary_gradient;
use crate::pointwise::decompose;
use crate::{Args, OpDef, Output, Tags, Tol, Value, contiguous, promote};
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, Result, Scalar};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    arithmetic("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", with_alpha)
        .tags(Tags::ROUNDS_NUMBERS)
        .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE))
        .tags(Tags::CORE)
        .vjp(binary_gradient::add)
        .doc("`self + alpha * other`.")
        .in_place(&["add_.Tensor"]),
    arithmetic("aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", with_alpha)
        .tags(Tags::ROUNDS_NUMBERS)
        .tags(Tags::CORE)
        .vjp(binary_gradient::add)
        .doc("`self + alpha * other`.")
        .in_place(&["add_.Scalar"]),
    arithmetic("aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", sub)
        .tags(Tags::ROUNDS_NUMBERS)
        .tags(Tags::CORE)
        .vjp(binary_gradient::sub)
        .doc("`self - alpha * other`.")
        .in_place(&["sub_.Tensor", "subtract_.Tensor"]),
    arithmetic("aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", sub)
        .tags(Tags::ROUNDS_NUMBERS)
        .tags(Tags::CORE)
        .vjp(binary_gradient::sub)
        .doc("`self - alpha * other`.")
        .in_place(&["sub_.Scalar", "subtract_.Scalar"]),
    arithmetic("aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", sub)
        .tags(Tags::ROUNDS_NUMBERS)
        .decompose(decompose::rsub)
        .vjp(binary_gradient::rsub)
        .doc("`other - alpha * self`."),
    arithmetic("aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", sub)
        .tags(Tags::ROUNDS_NUMBERS)
        .decompose(decompose::rsub)
        .vjp(binary_gradient::rsub)
        .doc("`other - alpha * self`."),
    arithmetic("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", promoting::<2>)
        .tags(Tags::KEEPS_NUMBERS)
        .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE))
        .tags(Tags::CORE)
        .vjp(binary_gradient::mul)
        .doc("`self * other`.")
        .in_place(&["mul_.Tensor", "multiply_.Tensor"]),
    binary("aten::mul.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::KEEPS_NUMBERS)
        .tags(Tags::CORE)
        .vjp(binary_gradient::mul)
        .doc("`self * other`."),
    in_place_by_number("aten::mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"),
    in_place_by_number("aten::multiply_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"),
    to_float("aten::div.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::KEEPS_NUMBERS)
        .tags(Tags::CORE)
        .vjp(binary_gradient::div)
        .doc("`self / other`, never as integers.")
        .in_place(&["div_.Tensor", "divide_.Tensor", "true_divide_.Tensor"]),
    to_float("aten::div.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::KEEPS_NUMBERS)
        .tags(Tags::CORE)
        .vjp(binary_gradient::div)
        .doc("`self / other`, never as integers.")
        .in_place(&["div_.Scalar", "divide_.Scalar", "true_divide_.Scalar"]),
    arithmetic("aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", div_mode)
        .tags(Tags::KEEPS_NUMBERS)
        .tags(Tags::CORE)
        .vjp(binary_gradient::div_mode)
        .doc("`self / other`, exact, or rounded towards zero (`trunc`) or down (`floor`).")
        .in_place(&["div_.Tensor_mode", "divide_.Tensor_mode"]),
    arithmetic("aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", div_mode)
        .tags(Tags::KEEPS_NUMBERS)
        .tags(Tags::CORE)
        .vjp(binary_gradient::div_mode)
        .doc("`self / other`, exact, or rounded towards zero (`trunc`) or down (`floor`).")
        .in_place(&["div_.Scalar_mode", "divide_.Scalar_mode"]),
    binary("aten::floor_divide(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::KEEPS_NUMBERS)
        .decompose(decompose::floor_divide)
        .doc("`self / other`, rounded down.")
        .in_place(&["floor_divide_.Tensor"]),
    binary("aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::KEEPS_NUMBERS)
        .decompose(decompose::floor_divide)
        .doc("`self / other`, rounded down.")
        .in_place(&["floor_divide_.Scalar"]),
    binary("aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::CORE)
        .vjp(binary_gradient::remainder)
        .doc("What is left of `self / other` rounded down; it has the sign of `other`.")
        .in_place(&["remainder_.Tensor"]),
    binary("aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::CORE)
        .vjp(binary_gradient::remainder)
        .doc("What is left of `self / other` rounded down; it has the sign of `other`.")
        .in_place(&["remainder_.Scalar"]),
    binary("aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
        .vjp(binary_gradient::remainder)
        .doc("What is left of `self / other` rounded down; it has the sign of `other`."),
    binary("aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::CORE)
        .vjp(binary_gradient::fmod)
        .doc("What is left of `self / other` rounded towards zero; it has the sign of `self`.")
        .in_place(&["fmod_.Tensor"]),
    binary("aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::CORE)
        .vjp(binary_gradient::fmod)
        .doc("What is left of `self / other` rounded towards zero; it has the sign of `self`.")
        .in_place(&["fmod_.Scalar"]),
    binary("aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
        .tags(Tags::CORE)
        .vjp(binary_gradient::pow)
        .doc("`self` to the power of `exponent`.")
        .in_place(&["pow_.Tensor"]),
    arithmetic("aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", pow_scalar)
        .tags(Tags::CORE)
        .vjp(binary_gradient::pow)
        .doc("`self` to the power of `exponent`.")
        .in_place(&["pow_.Scalar"]),
    arithmetic("aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor", pow_of_scalar)
        .tags(Tags::CORE)
        .vjp(binary_gradient::pow)
        .doc("`self` to the power of `exponent`."),
    arithmetic("aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", float_power)
        .decompose(decompose::float_power)
        .vjp(binary_gradient::pow)
        .doc("`self` to the power of `exponent`, in float64.")
        .in_place(&["float_power_.Tensor"]),
    arithmetic("aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", float_power)
        .decompose(decompose::float_power)
        .vjp(binary_gradient::pow)
        .doc("`self` to the power of `exponent`, in float64.")
        .in_place(&["float_power_.Scalar"]),
    arithmetic("aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", float_power_of_scalar)
        .decompose(decompose::float_power)
        .vjp(binary_gradient::pow)
        .doc("`self` to the power of `exponent`, in float64."),
    binary("aten::maximum(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE))
        .tags(Tags::CORE)
        .vjp(binary_gradient::maximum)
        .doc("The larger one; NaN where one is NaN."),
    binary("aten::minimum(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE))
        .tags(Tags::CORE)
        .vjp(binary_gradient::minimum)
        .doc("The smaller one; NaN where one is NaN."),
    binary("aten::fmax(Tensor self, Tensor other) -> Tensor")
        .vjp(binary_gradient::fmax)
        .doc("The larger one; the other one where one is NaN."),
    binary("aten::fmin(Tensor self, Tensor other) -> Tensor")
        .vjp(binary_gradient::fmin)
        .doc("The smaller one; the other one where one is NaN."),
    to_float("aten::atan2(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::CORE)
        .vjp(binary_gradient::atan2)
        .doc("The angle of the point `(other, self)`.")
        .in_place(&["atan2_", "arctan2_"]),
    binary("aten::hypot(Tensor self, Tensor other) -> Tensor")
        .vjp(binary_gradient::hypot)
        .doc("The length of the vector `(self, other)`.")
        .in_place(&["hypot_"]),
    to_float("aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor")
        .vjp(binary_gradient::copysign)
        .doc("`self` with the sign of `other`.")
        .in_place(&["copysign_.Tensor"]),
    to_float("aten::copysign.Scalar(Tensor self, Scalar other) -> Tensor")
        .vjp(binary_gradient::copysign)
        .doc("`self` with the sign of `other`.")
        .in_place(&["copysign_.Scalar"]),
    binary("aten::nextafter(Tensor self, Tensor other) -> Tensor")
        .vjp(binary_gradient::nextafter)
        .doc("The next float after `self` in the direction of `other`.")
        .in_place(&["nextafter_"]),
    arithmetic("aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor", xlogy)
        .decompose(decompose::xlogy)
        .vjp(binary_gradient::xlogy)
        .doc("`self * log(other)`, which is 0 where `self` is 0.")
        .in_place(&["xlogy_.Tensor"]),
    arithmetic("aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", xlogy)
        .decompose(decompose::xlogy)
        .vjp(binary_gradient::xlogy)
        .doc("`self * log(other)`, which is 0 where `self` is 0.")
        .in_place(&["xlogy_.Scalar_Other"]),
    arithmetic("aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", xlogy)
        .decompose(decompose::xlogy)
        .vjp(binary_gradient::xlogy)
        .doc("`self * log(other)`, which is 0 where `self` is 0."),
    to_float("aten::logaddexp(Tensor self, Tensor other) -> Tensor")
        .decompose(decompose::logaddexp)
        .vjp(binary_gradient::logaddexp)
        .doc("`log(exp(self) + exp(other))`."),
    to_float("aten::logaddexp2(Tensor self, Tensor other) -> Tensor")
        .decompose(decompose::logaddexp2)
        .vjp(binary_gradient::logaddexp2)
        .doc("`log2(2**self + 2**other)`."),
    arithmetic("aten::heaviside(Tensor self, Tensor values) -> Tensor", heaviside)
        .decompose(decompose::heaviside)
        .no_gradient()
        .doc("0 below zero, 1 above, and `values` at zero.")
        .in_place(&["heaviside_"]),
    binary("aten::gcd(Tensor self, Tensor other) -> Tensor").doc("The greatest common divisor.").in_place(&["gcd_"]),
    binary("aten::lcm(Tensor self, Tensor other) -> Tensor").doc("The least common multiple.").in_place(&["lcm_"]),
    OpDef::composite("aten::subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", |cx, args| {
        forward(cx, args, "sub.Tensor")
    })
    .doc("Another name of `sub`."),
    OpDef::composite("aten::subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", |cx, args| {
        forward(cx, args, "sub.Scalar")
    })
    .doc("Another name of `sub`."),
    OpDef::composite("aten::multiply.Tensor(Tensor self, Tensor other) -> Tensor", |cx, args| {
        forward(cx, args, "mul.Tensor")
    })
    .doc("Another name of `mul`."),
    OpDef::composite("aten::multiply.Scalar(Tensor self, Scalar other) -> Tensor", |cx, args| {
        forward(cx, args, "mul.Scalar")
    })
    .doc("Another name of `mul`."),
    OpDef::composite("aten::divide.Tensor(Tensor self, Tensor other) -> Tensor", |cx, args| {
        forward(cx, args, "div.Tensor")
    })
    .doc("Another name of `div`."),
    OpDef::composite("aten::divide.Scalar(Tensor self, Scalar other) -> Tensor", |cx, args| {
        forward(cx, args, "div.Scalar")
    })
    .doc("Another name of `div`."),
    OpDef::composite(
        "aten::divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
        |cx, args| forward(cx, args, "div.Tensor_mode"),
    )
    .doc("Another name of `div`."),
    OpDef::composite(
        "aten::divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
        |cx, args| forward(cx, args, "div.Scalar_mode"),
    )
    .doc("Another name of `div`."),
    OpDef::composite("aten::true_divide.Tensor(Tensor self, Tensor other) -> Tensor", |cx, args| {
        forward(cx, args, "div.Tensor")
    })
    .doc("Another name of `div`."),
    OpDef::composite("aten::true_divide.Scalar(Tensor self, Scalar other) -> Tensor", |cx, args| {
        forward(cx, args, "div.Scalar")
    })
    .doc("Another name of `div`."),
    OpDef::composite("aten::max.other(Tensor self, Tensor other) -> Tensor", |cx, args| forward(cx, args, "maximum"))
        .doc("Another name of `maximum`."),
    OpDef::composite("aten::min.other(Tensor self, Tensor other) -> Tensor", |cx, args| forward(cx, args, "minimum"))
        .doc("Another name of `minimum`."),
];

/// The product with a number in place. PyTorch makes the number the first operand here, so that it is rounded.
const fn in_place_by_number(schema: &'static str) -> OpDef {
    OpDef::in_place_of(schema, "aten.mul.Scalar").tags(Tags::ROUNDS_NUMBERS).doc("In place: `self * other`.")
}

const fn arithmetic(schema: &'static str, rule: crate::Rule) -> OpDef {
    OpDef::new(schema, rule).tags(Tags::POINTWISE).tolerance(Tol::Default)
}

const fn binary(schema: &'static str) -> OpDef {
    arithmetic(schema, promoting::<2>)
}

const fn to_float(schema: &'static str) -> OpDef {
    arithmetic(schema, promoting_to_float::<2>)
}

fn with_alpha(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let operands = operands(args, 0..2)?;
    let dtype = promote(&operands);
    let alpha = args.scalar(2)?;
    let is_boolean = matches!(alpha, Scalar::Bool(_));
    if is_boolean && dtype != DType::Bool {
        let what = "Boolean alpha only supported for Boolean results.";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    if alpha.kind() > DTypeKind::Int && dtype.kind() <= DTypeKind::Int {
        let what = "For integral input tensors, argument alpha must not be a floating point number.";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    if matches!(alpha, Scalar::Complex(_)) && !dtype.is_complex() {
        let what = "For non-complex input tensors, argument alpha must not be a complex number.";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    check_fits(alpha, dtype)?;
    elementwise(args, dtype, &operands)
}

fn heaviside(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (this, values) = (args.tensor(0)?.dtype, args.tensor(1)?.dtype);
    let what = if this.is_complex() || values.is_complex() {
        "heaviside is not yet implemented for complex tensors."
    } else if this != values {
        "heaviside is not yet implemented for tensors with different dtypes."
    } else {
        return promoting::<2>(args);
    };
    Err(Diagnostic::new(Code::DTypeMismatch, what))
}

fn sub(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let operands = operands(args, 0..2)?;
    let n_bools = operands.iter().filter(|it| promote(&[**it]) == DType::Bool).count();
    if n_bools > 0 {
        let what = if n_bools == 2 {
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
             operator instead."
        } else {
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, \
             use the `~` or `logical_not()` operator instead."
        };
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    with_alpha(args)
}

fn div_mode(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    match args.opt_str(2)? {
        None => promoting_to_float::<2>(args),
        Some(mode @ ("trunc" | "floor")) => {
            let dtype = promote(&operands(args, 0..2)?);
            if dtype.is_complex() || dtype == DType::Bool {
                return Err(args.no_kernel(&format!("div_{mode}_cpu"), dtype));
            }
            promoting::<2>(args)
        }
        Some(other) => Err(args
            .invalid(format!("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'"))),
    }
}

fn pow_scalar(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let operands = operands(args, 0..2)?;
    let dtype = promote(&operands);
    if dtype.is_int() && matches!(args.values[1], Value::Int(_)) && args.int(1)? < 0 {
        return Err(args.invalid("Integers to negative integer powers are not allowed."));
    }
    if dtype.is_int() || matches!(dtype, DType::Float16 | DType::BFloat16) {
        check_fits(args.scalar(1)?, dtype)?;
    }
    elementwise(args, dtype, &operands)
}

fn xlogy(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = promote(&operands(args, 0..2)?);
    if dtype.is_complex() {
        return Err(args.no_kernel("xlogy_cpu", dtype));
    }
    promoting_to_float::<2>(args)
}

/// The powers of a number are row-major, however the exponents lie.
fn pow_of_scalar(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(contiguous(promote(&operands(args, 0..2)?), args.tensor(1)?.sizes.clone()))
}

fn float_power_of_scalar(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(contiguous(float_power_dtype(promote(&operands(args, 0..2)?)), args.tensor(1)?.sizes.clone()))
}

fn float_power_dtype(promoted: DType) -> DType {
    if float_of(promoted).is_complex() { DType::Complex128 } else { DType::Float64 }
}

fn float_power(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let operands = operands(args, 0..2)?;
    elementwise(args, float_power_dtype(promote(&operands)), &operands)
}
