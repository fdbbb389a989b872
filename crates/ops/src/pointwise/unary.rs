//! Functions of one number: exponentials, roundings, questions.

use crate::core::elementwise::{elementwise, operands, promoting, promoting_to_float, to_bool};
use crate::pointwise::decompose;
use crate::pointwise::unary_gradient;
use crate::view;
use crate::{Args, OpDef, Output, Tags, Tol};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    float("aten::exp(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::exp)
        .doc("e to the power of each element.")
        .in_place(&["exp_"]),
    float("aten::exp2(Tensor self) -> Tensor")
        .vjp(unary_gradient::exp2)
        .doc("2 to the power of each element.")
        .in_place(&["exp2_"]),
    float("aten::expm1(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::expm1)
        .doc("`exp(x) - 1`, exact near zero.")
        .in_place(&["expm1_"]),
    float("aten::log(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::log)
        .doc("The natural logarithm.")
        .in_place(&["log_"]),
    float("aten::log1p(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::log1p)
        .doc("`log(1 + x)`, exact near zero.")
        .in_place(&["log1p_"]),
    float("aten::log2(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::log2)
        .doc("The logarithm to base 2.")
        .in_place(&["log2_"]),
    float("aten::log10(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::log10)
        .doc("The logarithm to base 10.")
        .in_place(&["log10_"]),
    float("aten::sqrt(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::sqrt)
        .doc("The square root.")
        .in_place(&["sqrt_"]),
    float("aten::rsqrt(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::rsqrt)
        .doc("One over the square root.")
        .in_place(&["rsqrt_"]),
    float("aten::reciprocal(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::reciprocal)
        .doc("One over each element.")
        .in_place(&["reciprocal_"]),
    float("aten::sin(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::sin)
        .doc("The sine.")
        .in_place(&["sin_"]),
    float("aten::cos(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::cos)
        .doc("The cosine.")
        .in_place(&["cos_"]),
    float("aten::tan(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::tan)
        .doc("The tangent.")
        .in_place(&["tan_"]),
    float("aten::asin(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::asin)
        .doc("The inverse sine.")
        .in_place(&["asin_", "arcsin_"]),
    float("aten::acos(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::acos)
        .doc("The inverse cosine.")
        .in_place(&["acos_", "arccos_"]),
    float("aten::atan(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::atan)
        .doc("The inverse tangent.")
        .in_place(&["atan_", "arctan_"]),
    float("aten::sinh(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::sinh)
        .doc("The hyperbolic sine.")
        .in_place(&["sinh_"]),
    float("aten::cosh(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::cosh)
        .doc("The hyperbolic cosine.")
        .in_place(&["cosh_"]),
    float("aten::tanh(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::tanh)
        .doc("The hyperbolic tangent.")
        .in_place(&["tanh_"]),
    float("aten::asinh(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::asinh)
        .doc("The inverse hyperbolic sine.")
        .in_place(&["asinh_", "arcsinh_"]),
    float("aten::acosh(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::acosh)
        .doc("The inverse hyperbolic cosine.")
        .in_place(&["acosh_", "arccosh_"]),
    float("aten::atanh(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::atanh)
        .doc("The inverse hyperbolic tangent.")
        .in_place(&["atanh_", "arctanh_"]),
    float("aten::erf(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::erf)
        .doc("The error function.")
        .in_place(&["erf_"]),
    float("aten::erfc(Tensor self) -> Tensor")
        .vjp(unary_gradient::erfc)
        .doc("One minus the error function, exact where that is small.")
        .in_place(&["erfc_"]),
    float("aten::erfinv(Tensor self) -> Tensor")
        .vjp(unary_gradient::erfinv)
        .doc("The inverse of the error function.")
        .in_place(&["erfinv_"]),
    float("aten::lgamma(Tensor self) -> Tensor")
        .vjp(unary_gradient::lgamma)
        .doc("The logarithm of the absolute value of the gamma function.")
        .in_place(&["lgamma_"]),
    float("aten::digamma(Tensor self) -> Tensor")
        .vjp(unary_gradient::digamma)
        .doc("The derivative of the logarithm of the gamma function.")
        .in_place(&["digamma_"]),
    float("aten::sigmoid(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::sigmoid)
        .doc("The logistic function, `1 / (1 + exp(-x))`.")
        .in_place(&["sigmoid_"]),
    float("aten::logit(Tensor self, float? eps=None) -> Tensor")
        .decompose(decompose::logit)
        .vjp(unary_gradient::logit)
        .tags(Tags::ROUNDS_NUMBERS)
        .doc("`log(x / (1 - x))`, with x kept `eps` away from 0 and 1.")
        .in_place(&["logit_"]),
    float("aten::sinc(Tensor self) -> Tensor")
        .decompose(decompose::sinc)
        .vjp(unary_gradient::sinc)
        .doc("`sin(pi x) / (pi x)`, which is 1 at zero.")
        .in_place(&["sinc_"]),
    float("aten::deg2rad(Tensor self) -> Tensor")
        .decompose(decompose::deg2rad)
        .vjp(unary_gradient::deg2rad)
        .doc("Degrees as radians.")
        .in_place(&["deg2rad_"]),
    float("aten::rad2deg(Tensor self) -> Tensor")
        .decompose(decompose::rad2deg)
        .vjp(unary_gradient::rad2deg)
        .doc("Radians as degrees.")
        .in_place(&["rad2deg_"]),
    OpDef::new("aten::abs(Tensor self) -> Tensor", abs)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .tags(Tags::CORE)
        .vjp(unary_gradient::abs)
        .doc("The absolute value; of a complex number, its length.")
        .in_place(&["abs_", "absolute_"]),
    OpDef::new("aten::neg(Tensor self) -> Tensor", neg)
        .tags(Tags::POINTWISE)
        .tags(Tags::CORE)
        .vjp(unary_gradient::neg)
        .doc("The negative.")
        .in_place(&["neg_", "negative_"]),
    same("aten::sign(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::zero)
        .doc("-1, 0 or 1 by the sign; 0 of a NaN.")
        .in_place(&["sign_"]),
    same("aten::floor(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::zero)
        .doc("Rounded down.")
        .in_place(&["floor_"]),
    same("aten::ceil(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::zero)
        .doc("Rounded up.")
        .in_place(&["ceil_"]),
    same("aten::trunc(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::zero)
        .doc("Rounded towards zero.")
        .in_place(&["trunc_", "fix_"]),
    same("aten::round(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::zero)
        .doc("Rounded to the nearest, halves to the even neighbour.")
        .in_place(&["round_"]),
    OpDef::new("aten::round.decimals(Tensor self, *, int decimals) -> Tensor", promoting::<1>)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .vjp(unary_gradient::zero)
        .doc("Rounded to so many decimal places.")
        .in_place(&["round_.decimals"]),
    same("aten::frac(Tensor self) -> Tensor")
        .decompose(decompose::frac)
        .vjp(unary_gradient::identity)
        .doc("What lies behind the decimal point.")
        .in_place(&["frac_"]),
    OpDef::new("aten::positive(Tensor(a) self) -> Tensor(a)", positive)
        .decompose(view::decompose::itself)
        .tags(Tags::VIEW)
        .vjp(unary_gradient::identity)
        .doc("The tensor itself."),
    OpDef::new("aten::square(Tensor self) -> Tensor", square)
        .decompose(decompose::square)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .vjp(unary_gradient::square)
        .doc("Each element times itself.")
        .in_place(&["square_"]),
    same("aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor")
        .decompose(decompose::nan_to_num)
        .vjp(unary_gradient::nan_to_num)
        .doc("NaN and the infinities replaced by these numbers, or by 0, the largest and the smallest.")
        .in_place(&["nan_to_num_"]),
    OpDef::new("aten::bitwise_not(Tensor self) -> Tensor", bitwise_not)
        .tags(Tags::POINTWISE)
        .tags(Tags::CORE)
        .doc("Every bit the other way; of a bool, the other one.")
        .in_place(&["bitwise_not_"]),
    question("aten::logical_not(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether the element is zero.")
        .in_place(&["logical_not_"]),
    question("aten::isnan(Tensor self) -> Tensor").tags(Tags::CORE).doc("Whether the element is not a number."),
    question("aten::isinf(Tensor self) -> Tensor").tags(Tags::CORE).doc("Whether the element is an infinity."),
    question("aten::isposinf(Tensor self) -> Tensor")
        .decompose(decompose::isposinf)
        .doc("Whether the element is the positive infinity."),
    question("aten::isneginf(Tensor self) -> Tensor")
        .decompose(decompose::isneginf)
        .doc("Whether the element is the negative infinity."),
    question("aten::isfinite(Tensor self) -> Tensor")
        .decompose(decompose::isfinite)
        .doc("Whether the element is neither an infinity nor a NaN."),
    question("aten::signbit(Tensor self) -> Tensor").doc("Whether the sign bit is set."),
];

const fn float(schema: &'static str) -> OpDef {
    OpDef::new(schema, promoting_to_float::<1>).tags(Tags::POINTWISE).tolerance(Tol::Default)
}

const fn same(schema: &'static str) -> OpDef {
    OpDef::new(schema, promoting::<1>).tags(Tags::POINTWISE)
}

const fn question(schema: &'static str) -> OpDef {
    OpDef::new(schema, to_bool::<1>).tags(Tags::POINTWISE)
}

fn abs(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = args.tensor(0)?.dtype;
    let real = match dtype {
        DType::Complex32 => DType::Float16,
        DType::Complex64 => DType::Float32,
        DType::Complex128 => DType::Float64,
        other => other,
    };
    elementwise(args, real, &operands(args, [0])?)
}

fn neg(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    if args.tensor(0)?.dtype == DType::Bool {
        let what = "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a \
                    mask, use the `~` or `logical_not()` operator instead.";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    promoting::<1>(args)
}

fn bitwise_not(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = args.tensor(0)?.dtype;
    if dtype.is_float() || dtype.is_complex() {
        let what = format!("\"bitwise_not_cpu\" not implemented for '{}'", dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    promoting::<1>(args)
}

fn square(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    // As PyTorch's `pow(2)`: the exponent is an int, before which a bool gives way.
    let dtype = args.tensor(0)?.dtype;
    let dtype = if dtype == DType::Bool { DType::Int64 } else { dtype };
    elementwise(args, dtype, &operands(args, [0])?)
}

fn positive(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    if args.tensor(0)?.dtype == DType::Bool {
        let what = "The `+` operator, on a bool tensor is not supported.";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    Ok(vec![Output::Same(0)])
}
