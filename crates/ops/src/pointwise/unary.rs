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
        .doc("e to the power of each element."),
    float("aten::exp2(Tensor self) -> Tensor").vjp(unary_gradient::exp2).doc("2 to the power of each element."),
    float("aten::expm1(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::expm1)
        .doc("`exp(x) - 1`, exact near zero."),
    float("aten::log(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::log).doc("The natural logarithm."),
    float("aten::log1p(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::log1p)
        .doc("`log(1 + x)`, exact near zero."),
    float("aten::log2(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::log2)
        .doc("The logarithm to base 2."),
    float("aten::log10(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::log10)
        .doc("The logarithm to base 10."),
    float("aten::sqrt(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::sqrt).doc("The square root."),
    float("aten::rsqrt(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::rsqrt)
        .doc("One over the square root."),
    float("aten::reciprocal(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::reciprocal)
        .doc("One over each element."),
    float("aten::sin(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::sin).doc("The sine."),
    float("aten::cos(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::cos).doc("The cosine."),
    float("aten::tan(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::tan).doc("The tangent."),
    float("aten::asin(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::asin).doc("The inverse sine."),
    float("aten::acos(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::acos).doc("The inverse cosine."),
    float("aten::atan(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::atan).doc("The inverse tangent."),
    float("aten::sinh(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::sinh).doc("The hyperbolic sine."),
    float("aten::cosh(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::cosh).doc("The hyperbolic cosine."),
    float("aten::tanh(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::tanh)
        .doc("The hyperbolic tangent."),
    float("aten::asinh(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::asinh)
        .doc("The inverse hyperbolic sine."),
    float("aten::acosh(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::acosh)
        .doc("The inverse hyperbolic cosine."),
    float("aten::atanh(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::atanh)
        .doc("The inverse hyperbolic tangent."),
    float("aten::erf(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::erf).doc("The error function."),
    float("aten::erfc(Tensor self) -> Tensor")
        .vjp(unary_gradient::erfc)
        .doc("One minus the error function, exact where that is small."),
    float("aten::erfinv(Tensor self) -> Tensor").vjp(unary_gradient::erfinv).doc("The inverse of the error function."),
    float("aten::lgamma(Tensor self) -> Tensor")
        .vjp(unary_gradient::lgamma)
        .doc("The logarithm of the absolute value of the gamma function."),
    float("aten::digamma(Tensor self) -> Tensor")
        .vjp(unary_gradient::digamma)
        .doc("The derivative of the logarithm of the gamma function."),
    float("aten::sigmoid(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::sigmoid)
        .doc("The logistic function, `1 / (1 + exp(-x))`."),
    float("aten::logit(Tensor self, float? eps=None) -> Tensor")
        .decompose(decompose::logit)
        .vjp(unary_gradient::logit)
        .tags(Tags::ROUNDS_NUMBERS)
        .doc("`log(x / (1 - x))`, with x kept `eps` away from 0 and 1."),
    float("aten::sinc(Tensor self) -> Tensor")
        .decompose(decompose::sinc)
        .vjp(unary_gradient::sinc)
        .doc("`sin(pi x) / (pi x)`, which is 1 at zero."),
    float("aten::deg2rad(Tensor self) -> Tensor")
        .decompose(decompose::deg2rad)
        .vjp(unary_gradient::deg2rad)
        .doc("Degrees as radians."),
    float("aten::rad2deg(Tensor self) -> Tensor")
        .decompose(decompose::rad2deg)
        .vjp(unary_gradient::rad2deg)
        .doc("Radians as degrees."),
    OpDef::new("aten::abs(Tensor self) -> Tensor", abs)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .tags(Tags::CORE)
        .vjp(unary_gradient::abs)
        .doc("The absolute value; of a complex number, its length."),
    OpDef::new("aten::neg(Tensor self) -> Tensor", neg)
        .tags(Tags::POINTWISE)
        .tags(Tags::CORE)
        .vjp(unary_gradient::neg)
        .doc("The negative."),
    same("aten::sign(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::zero)
        .doc("-1, 0 or 1 by the sign; 0 of a NaN."),
    same("aten::floor(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::zero).doc("Rounded down."),
    same("aten::ceil(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::zero).doc("Rounded up."),
    same("aten::trunc(Tensor self) -> Tensor").tags(Tags::CORE).vjp(unary_gradient::zero).doc("Rounded towards zero."),
    same("aten::round(Tensor self) -> Tensor")
        .tags(Tags::CORE)
        .vjp(unary_gradient::zero)
        .doc("Rounded to the nearest, halves to the even neighbour."),
    OpDef::new("aten::round.decimals(Tensor self, *, int decimals) -> Tensor", promoting::<1>)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .vjp(unary_gradient::zero)
        .doc("Rounded to so many decimal places."),
    same("aten::frac(Tensor self) -> Tensor")
        .decompose(decompose::frac)
        .vjp(unary_gradient::identity)
        .doc("What lies behind the decimal point."),
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
        .doc("Each element times itself."),
    same("aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor")
        .decompose(decompose::nan_to_num)
        .vjp(unary_gradient::nan_to_num)
        .doc("NaN and the infinities replaced by these numbers, or by 0, the largest and the smallest."),
    OpDef::new("aten::bitwise_not(Tensor self) -> Tensor", bitwise_not)
        .tags(Tags::POINTWISE)
        .tags(Tags::CORE)
        .doc("Every bit the other way; of a bool, the other one."),
    question("aten::logical_not(Tensor self) -> Tensor").tags(Tags::CORE).doc("Whether the element is zero."),
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
    OpDef::in_place("aten::exp_(Tensor(a!) self) -> Tensor(a!)", "aten.exp.default")
        .doc("In place: e to the power of each element."),
    OpDef::in_place("aten::exp2_(Tensor(a!) self) -> Tensor(a!)", "aten.exp2.default")
        .doc("In place: 2 to the power of each element."),
    OpDef::in_place("aten::expm1_(Tensor(a!) self) -> Tensor(a!)", "aten.expm1.default")
        .doc("In place: `exp(x) - 1`, exact near zero."),
    OpDef::in_place("aten::log_(Tensor(a!) self) -> Tensor(a!)", "aten.log.default")
        .doc("In place: the natural logarithm."),
    OpDef::in_place("aten::log1p_(Tensor(a!) self) -> Tensor(a!)", "aten.log1p.default")
        .doc("In place: `log(1 + x)`, exact near zero."),
    OpDef::in_place("aten::log2_(Tensor(a!) self) -> Tensor(a!)", "aten.log2.default")
        .doc("In place: the logarithm to base 2."),
    OpDef::in_place("aten::log10_(Tensor(a!) self) -> Tensor(a!)", "aten.log10.default")
        .doc("In place: the logarithm to base 10."),
    OpDef::in_place("aten::sqrt_(Tensor(a!) self) -> Tensor(a!)", "aten.sqrt.default")
        .doc("In place: the square root."),
    OpDef::in_place("aten::rsqrt_(Tensor(a!) self) -> Tensor(a!)", "aten.rsqrt.default")
        .doc("In place: one over the square root."),
    OpDef::in_place("aten::reciprocal_(Tensor(a!) self) -> Tensor(a!)", "aten.reciprocal.default")
        .doc("In place: one over each element."),
    OpDef::in_place("aten::sin_(Tensor(a!) self) -> Tensor(a!)", "aten.sin.default").doc("In place: the sine."),
    OpDef::in_place("aten::cos_(Tensor(a!) self) -> Tensor(a!)", "aten.cos.default").doc("In place: the cosine."),
    OpDef::in_place("aten::tan_(Tensor(a!) self) -> Tensor(a!)", "aten.tan.default").doc("In place: the tangent."),
    OpDef::in_place("aten::asin_(Tensor(a!) self) -> Tensor(a!)", "aten.asin.default")
        .doc("In place: the inverse sine."),
    OpDef::in_place("aten::acos_(Tensor(a!) self) -> Tensor(a!)", "aten.acos.default")
        .doc("In place: the inverse cosine."),
    OpDef::in_place("aten::atan_(Tensor(a!) self) -> Tensor(a!)", "aten.atan.default")
        .doc("In place: the inverse tangent."),
    OpDef::in_place("aten::sinh_(Tensor(a!) self) -> Tensor(a!)", "aten.sinh.default")
        .doc("In place: the hyperbolic sine."),
    OpDef::in_place("aten::cosh_(Tensor(a!) self) -> Tensor(a!)", "aten.cosh.default")
        .doc("In place: the hyperbolic cosine."),
    OpDef::in_place("aten::tanh_(Tensor(a!) self) -> Tensor(a!)", "aten.tanh.default")
        .doc("In place: the hyperbolic tangent."),
    OpDef::in_place("aten::asinh_(Tensor(a!) self) -> Tensor(a!)", "aten.asinh.default")
        .doc("In place: the inverse hyperbolic sine."),
    OpDef::in_place("aten::acosh_(Tensor(a!) self) -> Tensor(a!)", "aten.acosh.default")
        .doc("In place: the inverse hyperbolic cosine."),
    OpDef::in_place("aten::atanh_(Tensor(a!) self) -> Tensor(a!)", "aten.atanh.default")
        .doc("In place: the inverse hyperbolic tangent."),
    OpDef::in_place("aten::erf_(Tensor(a!) self) -> Tensor(a!)", "aten.erf.default")
        .doc("In place: the error function."),
    OpDef::in_place("aten::erfc_(Tensor(a!) self) -> Tensor(a!)", "aten.erfc.default")
        .doc("In place: one minus the error function, exact where that is small."),
    OpDef::in_place("aten::erfinv_(Tensor(a!) self) -> Tensor(a!)", "aten.erfinv.default")
        .doc("In place: the inverse of the error function."),
    OpDef::in_place("aten::lgamma_(Tensor(a!) self) -> Tensor(a!)", "aten.lgamma.default")
        .doc("In place: the logarithm of the absolute value of the gamma function."),
    OpDef::in_place("aten::digamma_(Tensor(a!) self) -> Tensor(a!)", "aten.digamma.default")
        .doc("In place: the derivative of the logarithm of the gamma function."),
    OpDef::in_place("aten::sigmoid_(Tensor(a!) self) -> Tensor(a!)", "aten.sigmoid.default")
        .doc("In place: the logistic function, `1 / (1 + exp(-x))`."),
    OpDef::in_place("aten::logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)", "aten.logit.default")
        .doc("In place: `log(x / (1 - x))`, with x kept `eps` away from 0 and 1."),
    OpDef::in_place("aten::sinc_(Tensor(a!) self) -> Tensor(a!)", "aten.sinc.default")
        .doc("In place: `sin(pi x) / (pi x)`, which is 1 at zero."),
    OpDef::in_place("aten::deg2rad_(Tensor(a!) self) -> Tensor(a!)", "aten.deg2rad.default")
        .doc("In place: degrees as radians."),
    OpDef::in_place("aten::rad2deg_(Tensor(a!) self) -> Tensor(a!)", "aten.rad2deg.default")
        .doc("In place: radians as degrees."),
    OpDef::in_place("aten::abs_(Tensor(a!) self) -> Tensor(a!)", "aten.abs.default")
        .doc("In place: the absolute value; of a complex number, its length."),
    OpDef::in_place("aten::neg_(Tensor(a!) self) -> Tensor(a!)", "aten.neg.default").doc("In place: the negative."),
    OpDef::in_place("aten::sign_(Tensor(a!) self) -> Tensor(a!)", "aten.sign.default")
        .doc("In place: -1, 0 or 1 by the sign; 0 of a NaN."),
    OpDef::in_place("aten::floor_(Tensor(a!) self) -> Tensor(a!)", "aten.floor.default").doc("In place: rounded down."),
    OpDef::in_place("aten::ceil_(Tensor(a!) self) -> Tensor(a!)", "aten.ceil.default").doc("In place: rounded up."),
    OpDef::in_place("aten::trunc_(Tensor(a!) self) -> Tensor(a!)", "aten.trunc.default")
        .doc("In place: rounded towards zero."),
    OpDef::in_place("aten::round_(Tensor(a!) self) -> Tensor(a!)", "aten.round.default")
        .doc("In place: rounded to the nearest, halves to the even neighbour."),
    OpDef::in_place("aten::round_.decimals(Tensor(a!) self, *, int decimals) -> Tensor(a!)", "aten.round.decimals")
        .doc("In place: rounded to so many decimal places."),
    OpDef::in_place("aten::frac_(Tensor(a!) self) -> Tensor(a!)", "aten.frac.default")
        .doc("In place: what lies behind the decimal point."),
    OpDef::in_place("aten::square_(Tensor(a!) self) -> Tensor(a!)", "aten.square.default")
        .doc("In place: each element times itself."),
    OpDef::in_place(
        "aten::nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor(a!)",
        "aten.nan_to_num.default",
    )
    .doc("In place: naN and the infinities replaced by these numbers, or by 0, the largest and the smallest."),
    OpDef::in_place("aten::bitwise_not_(Tensor(a!) self) -> Tensor(a!)", "aten.bitwise_not.default")
        .doc("In place: every bit the other way; of a bool, the other one."),
    OpDef::in_place("aten::logical_not_(Tensor(a!) self) -> Tensor(a!)", "aten.logical_not.default")
        .doc("In place: whether the element is zero."),
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
