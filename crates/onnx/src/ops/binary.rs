//! Arithmetic of two operands. Both are cast to the dtype of the result first, for ONNX promotes nothing.

use super::Rows;
use super::unary::{sign, signbit, trunc};
use crate::call::{Call, Results, unsupported};
use crate::graph::{Dim, GraphBuilder, X, int};
use std::f64::consts::PI;
use tracefx_core::{DType, Result};

pub(super) const OPS: Rows = &[
    ("aten.__lshift__.Scalar", |c| shift(c, true)),
    ("aten.__rshift__.Scalar", |c| shift(c, false)),
    ("aten.add.Scalar", |c| scaled(c, "Add")),
    ("aten.add.Tensor", |c| scaled(c, "Add")),
    ("aten.atan2.default", |c| of_two(c, atan2)),
    ("aten.bitwise_and.Scalar", |c| bitwise(c, "And", "BitwiseAnd")),
    ("aten.bitwise_and.Tensor", |c| bitwise(c, "And", "BitwiseAnd")),
    ("aten.bitwise_left_shift.Tensor", |c| shift(c, true)),
    ("aten.bitwise_or.Scalar", |c| bitwise(c, "Or", "BitwiseOr")),
    ("aten.bitwise_or.Tensor", |c| bitwise(c, "Or", "BitwiseOr")),
    ("aten.bitwise_right_shift.Tensor", |c| shift(c, false)),
    ("aten.bitwise_xor.Scalar", |c| bitwise(c, "Xor", "BitwiseXor")),
    ("aten.bitwise_xor.Tensor", |c| bitwise(c, "Xor", "BitwiseXor")),
    ("aten.copysign.Tensor", |c| of_two(c, copysign)),
    ("aten.div.Scalar", |c| of_two(c, |g, a, b| g.math("Div", &[a, b]))),
    ("aten.div.Scalar_mode", div_mode),
    ("aten.div.Tensor", |c| of_two(c, |g, a, b| g.math("Div", &[a, b]))),
    ("aten.div.Tensor_mode", div_mode),
    ("aten.fmax.default", |c| of_two(c, |g, a, b| without_nan(g, "Max", a, b))),
    ("aten.fmin.default", |c| of_two(c, |g, a, b| without_nan(g, "Min", a, b))),
    ("aten.fmod.Scalar", |c| of_two(c, fmod)),
    ("aten.fmod.Tensor", |c| of_two(c, fmod)),
    ("aten.hypot.default", |c| of_two(c, hypot)),
    ("aten.ldexp.Tensor", ldexp),
    ("aten.maximum.default", |c| of_two(c, |g, a, b| g.math("Max", &[a, b]))),
    ("aten.minimum.default", |c| of_two(c, |g, a, b| g.math("Min", &[a, b]))),
    ("aten.mul.Scalar", |c| of_two(c, |g, a, b| g.math("Mul", &[a, b]))),
    ("aten.mul.Tensor", |c| of_two(c, |g, a, b| g.math("Mul", &[a, b]))),
    ("aten.nextafter.default", |c| of_two(c, nextafter)),
    ("aten.pow.Scalar", power),
    ("aten.pow.Tensor_Scalar", power),
    ("aten.pow.Tensor_Tensor", power),
    ("aten.remainder.Scalar", |c| of_two(c, remainder)),
    ("aten.remainder.Tensor", |c| of_two(c, remainder)),
    ("aten.sub.Scalar", |c| scaled(c, "Sub")),
    ("aten.sub.Tensor", |c| scaled(c, "Sub")),
];

/// A formula of `self` and `other` in the dtype of the result.
fn of_two(c: &mut Call<'_, '_>, made: fn(&mut GraphBuilder, &X, &X) -> Result<X>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (a, b) = (c.operand("self", dtype)?, c.operand("other", dtype)?);
    Ok(made(c.g(), &a, &b)?.into())
}

/// `self ± alpha * other`.
fn scaled(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let dtype = c.dtype()?;
    let (a, mut b) = (c.operand("self", dtype)?, c.operand("other", dtype)?);
    if c.arg("alpha")?.as_scalar().is_none_or(|it| it.to_f64() != 1.0) {
        let alpha = c.operand("alpha", dtype)?;
        b = c.g().math("Mul", &[&b, &alpha])?;
    }
    Ok(c.g().math(op, &[&a, &b])?.into())
}

fn bitwise(c: &mut Call<'_, '_>, of_bools: &str, of_ints: &str) -> Result<Results> {
    let dtype = c.dtype()?;
    let (a, b) = (c.operand("self", dtype)?, c.operand("other", dtype)?);
    Ok(c.g().math(if dtype == DType::Bool { of_bools } else { of_ints }, &[&a, &b])?.into())
}

/// ONNX shifts unsigned integers alone. To the right, the complement of a negative number is shifted, which keeps its sign.
/// A negative distance is one beyond all bits in PyTorch.
fn shift(c: &mut Call<'_, '_>, to_left: bool) -> Result<Results> {
    let dtype = c.dtype()?;
    if dtype.is_float() {
        return Err(unsupported("a shift of floats has no translation"));
    }
    let (a, b) = (c.operand("self", dtype)?, c.operand("other", dtype)?);
    // Runtimes have no kernel of 16 bits.
    let unsigned = match dtype.size() {
        1 => DType::UInt8,
        8 => DType::UInt64,
        _ => DType::UInt32,
    };
    let (n_bits, zero) = ((dtype.size() * 8) as f64, c.number(0.0, dtype)?);
    let (width, last) = (c.number(n_bits, dtype)?, c.number(n_bits - 1.0, dtype)?);
    let g = c.g();
    let (is_negative, is_beyond) = (g.test("Less", &[&b, &zero])?, g.test("GreaterOrEqual", &[&b, &width])?);
    let is_over = g.test("Or", &[&is_negative, &is_beyond])?;
    let by = g.choose(&is_over, &last, &b)?;
    let by = g.cast(&by, unsigned)?;
    let attributes = |to: &str| vec![crate::graph::text("direction", to)];
    if to_left {
        let bits = g.cast(&a, unsigned)?;
        let shifted = g.raw("BitShift", &[&bits, &by], attributes("LEFT"), unsigned);
        let shifted = g.cast(&shifted, dtype)?;
        return Ok(g.choose(&is_over, &zero, &shifted)?.into());
    }
    let is_negative = g.test("Less", &[&a, &zero])?;
    let complement = g.math("BitwiseNot", &[&a])?;
    let bits = g.choose(&is_negative, &complement, &a)?;
    let bits = g.cast(&bits, unsigned)?;
    let shifted = g.raw("BitShift", &[&bits, &by], attributes("RIGHT"), unsigned);
    // What is not negative has no bit left.
    let shifted = g.cast(&shifted, dtype)?;
    let shifted = g.choose(&is_over, &zero, &shifted)?;
    let back = g.math("BitwiseNot", &[&shifted])?;
    Ok(g.choose(&is_negative, &back, &shifted)?.into())
}

fn div_mode(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (a, b) = (c.operand("self", dtype)?, c.operand("other", dtype)?);
    let mode = c.str("rounding_mode")?;
    let g = c.g();
    Ok(match mode.as_deref() {
        Some("floor") => floor_divide(g, &a, &b)?,
        // Integers are divided so in ONNX.
        Some(_) if !dtype.is_float() => g.math("Div", &[&a, &b])?,
        Some(_) => {
            let quotient = g.math("Div", &[&a, &b])?;
            trunc(g, &quotient)?
        }
        None => g.math("Div", &[&a, &b])?,
    }
    .into())
}

/// Division that rounds down. Of floats it is PyTorch's, by way of the rest: the rounded quotient may be one too many.
pub(super) fn floor_divide(g: &mut GraphBuilder, a: &X, b: &X) -> Result<X> {
    if !a.dtype.is_float() {
        // The quotient that is cut off, or one less: without it, the dividend would leave the range of its dtype.
        let quotient = g.math("Div", &[a, b])?;
        let product = g.math("Mul", &[&quotient, b])?;
        let rest = g.math("Sub", &[a, &product])?;
        let one = g.number(1.0, a.dtype)?;
        let lower = g.math("Sub", &[&quotient, &one])?;
        let is_opposite = opposite(g, &rest, b)?;
        return g.choose(&is_opposite, &lower, &quotient);
    }
    let (zero, one, half) = (g.number(0.0, a.dtype)?, g.number(1.0, a.dtype)?, g.number(0.5, a.dtype)?);
    let quotient = g.math("Div", &[a, b])?;
    let rest = fmod(g, a, b)?;
    let whole = g.math("Sub", &[a, &rest])?;
    let whole = g.math("Div", &[&whole, b])?;
    let lower = g.math("Sub", &[&whole, &one])?;
    let is_opposite = opposite(g, &rest, b)?;
    let whole = g.choose(&is_opposite, &lower, &whole)?;
    let floor = g.math("Floor", &[&whole])?;
    let (excess, above) = (g.math("Sub", &[&whole, &floor])?, g.math("Add", &[&floor, &one])?);
    let is_near = g.test("Greater", &[&excess, &half])?;
    let floor = g.choose(&is_near, &above, &floor)?;
    let signed_zero = copysign(g, &zero, &quotient)?;
    let is_zero = g.test("Equal", &[&whole, &zero])?;
    let floor = g.choose(&is_zero, &signed_zero, &floor)?;
    let by_zero = g.test("Equal", &[b, &zero])?;
    g.choose(&by_zero, &quotient, &floor)
}

/// Whether a rest is not zero, and of the other sign than the divisor.
fn opposite(g: &mut GraphBuilder, rest: &X, b: &X) -> Result<X> {
    let zero = g.number(0.0, b.dtype)?;
    let (is_zero, rest_below) = (g.test("Equal", &[rest, &zero])?, g.test("Less", &[rest, &zero])?);
    let b_below = g.test("Less", &[b, &zero])?;
    let (is_rest, differ) = (g.not(&is_zero), g.test("Xor", &[&rest_below, &b_below])?);
    g.test("And", &[&is_rest, &differ])
}

/// The rest with the sign of the dividend. Runtimes find that of integers in float64: it is made of the rest with the sign of the
/// divisor, which is exact.
pub(super) fn fmod(g: &mut GraphBuilder, a: &X, b: &X) -> Result<X> {
    if a.dtype.is_float() {
        return g.math_with("Mod", &[a, b], vec![int("fmod", 1)]);
    }
    let rest = g.math("Mod", &[a, b])?;
    let (is_opposite, moved) = (opposite(g, &rest, a)?, g.math("Sub", &[&rest, b])?);
    g.choose(&is_opposite, &moved, &rest)
}

/// The rest with the sign of the divisor.
pub(super) fn remainder(g: &mut GraphBuilder, a: &X, b: &X) -> Result<X> {
    if !a.dtype.is_float() {
        return g.math("Mod", &[a, b]);
    }
    let rest = fmod(g, a, b)?;
    let (is_opposite, moved) = (opposite(g, &rest, b)?, g.math("Add", &[&rest, b])?);
    g.choose(&is_opposite, &moved, &rest)
}

fn power(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (a, b) = (c.operand("self", dtype)?, c.operand("exponent", dtype)?);
    if dtype.is_float() {
        return Ok(c.g().math("Pow", &[&a, &b])?.into());
    }
    if c.result(0)?.sizes.iter().any(|it| *it == 0) {
        return Ok(c.g().math("Mul", &[&a, &b])?.into());
    }
    integer_power(c, &a, &b, dtype)
}

/// Integers wrap around in PyTorch, and runtimes find powers in float64: they are squared and multiplied. Of a negative
/// exponent, only 1 and -1 leave something.
fn integer_power(c: &mut Call<'_, '_>, a: &X, b: &X, dtype: DType) -> Result<Results> {
    let (zero, one, two) = (c.number(0.0, dtype)?, c.number(1.0, dtype)?, c.number(2.0, dtype)?);
    let g = c.g();
    let none = g.math("Mul", &[a, &zero])?;
    let other_none = g.math("Mul", &[b, &zero])?;
    let none = g.math("Add", &[&none, &other_none])?;
    let (first, base) = (g.math("Add", &[&none, &one])?, g.math("Add", &[&none, a])?);
    let exponent = g.math("Add", &[&none, b])?;
    // A negative exponent is odd or even as its opposite is, which is all that matters to 1 and -1.
    let exponent = g.math("Abs", &[&exponent])?;
    let found = super::control::repeat_while(c, &[first, base, exponent], &mut |c, state| {
        let g = c.g();
        let bit = g.math("Mod", &[&state[2], &two])?;
        let is_odd = g.test("Equal", &[&bit, &one])?;
        let product = g.math("Mul", &[&state[0], &state[1]])?;
        let power = g.choose(&is_odd, &product, &state[0])?;
        let square = g.math("Mul", &[&state[1], &state[1]])?;
        let rest = g.math("Div", &[&state[2], &two])?;
        let goes_on = any_positive(g, &rest)?;
        Ok((goes_on, vec![power, square, rest]))
    })?;
    let g = c.g();
    let size = g.math("Abs", &[a])?;
    let (is_negative, is_unit) = (g.test("Less", &[b, &zero])?, g.test("Equal", &[&size, &one])?);
    let inverse = g.choose(&is_unit, &found[0], &none)?;
    Ok(g.choose(&is_negative, &inverse, &found[0])?.into())
}

/// Whether an integer of a tensor is greater than zero, as a condition.
pub(super) fn any_positive(g: &mut GraphBuilder, x: &X) -> Result<X> {
    let zero = g.number(0.0, x.dtype)?;
    let flat = g.reshape(x, &[Dim::Known(-1)])?;
    let most = g.reduce("ReduceMax", &flat, &[0], false)?;
    g.test("Greater", &[&most, &zero])
}

fn without_nan(g: &mut GraphBuilder, op: &str, a: &X, b: &X) -> Result<X> {
    let both = g.math(op, &[a, b])?;
    if !a.dtype.is_float() {
        return Ok(both);
    }
    let (a_nan, b_nan) = (g.test("IsNaN", &[a])?, g.test("IsNaN", &[b])?);
    let rest = g.choose(&b_nan, a, &both)?;
    g.choose(&a_nan, b, &rest)
}

fn copysign(g: &mut GraphBuilder, a: &X, b: &X) -> Result<X> {
    let positive = g.math("Abs", &[a])?;
    let (negative, is_negative) = (g.math("Neg", &[&positive])?, signbit(g, b)?);
    g.choose(&is_negative, &negative, &positive)
}

/// The quotient is of numbers between 0 and 1, so that no square overflows.
fn hypot(g: &mut GraphBuilder, a: &X, b: &X) -> Result<X> {
    let (a, b) = (g.math("Abs", &[a])?, g.math("Abs", &[b])?);
    let (most, least) = (g.math("Max", &[&a, &b])?, g.math("Min", &[&a, &b])?);
    let (zero, one) = (g.number(0.0, a.dtype)?, g.number(1.0, a.dtype)?);
    let ratio = g.math("Div", &[&least, &most])?;
    let square = g.math("Mul", &[&ratio, &ratio])?;
    let sum = g.math("Add", &[&square, &one])?;
    let root = g.math("Sqrt", &[&sum])?;
    let length = g.math("Mul", &[&most, &root])?;
    let is_zero = g.test("Equal", &[&most, &zero])?;
    let length = g.choose(&is_zero, &most, &length)?;
    // An infinite side is longer than what is no number.
    let (a_inf, b_inf) = (g.test("IsInf", &[&a])?, g.test("IsInf", &[&b])?);
    let is_inf = g.test("Or", &[&a_inf, &b_inf])?;
    let infinity = g.number(f64::INFINITY, a.dtype)?;
    g.choose(&is_inf, &infinity, &length)
}

fn ldexp(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (a, b, two) = (c.operand("self", dtype)?, c.operand("other", dtype)?, c.number(2.0, dtype)?);
    let scale = c.g().math("Pow", &[&two, &b])?;
    Ok(c.g().math("Mul", &[&a, &scale])?.into())
}

pub(super) fn atan2(g: &mut GraphBuilder, y: &X, x: &X) -> Result<X> {
    let (zero, pi, half_pi) = (g.number(0.0, x.dtype)?, g.number(PI, x.dtype)?, g.number(PI / 2.0, x.dtype)?);
    let (y_inf, x_inf) = (g.test("IsInf", &[y])?, g.test("IsInf", &[x])?);
    let both_inf = g.test("And", &[&y_inf, &x_inf])?;
    let (y_sign, x_sign) = (sign(g, y)?, sign(g, x)?);
    let (signs, ratio) = (g.math("Mul", &[&y_sign, &x_sign])?, g.math("Div", &[y, x])?);
    let ratio = g.choose(&both_inf, &signs, &ratio)?;
    let angle = g.math("Atan", &[&ratio])?;
    let (turn, to_left) = (copysign(g, &pi, y)?, signbit(g, x)?);
    let turned = g.math("Add", &[&angle, &turn])?;
    let angle = g.choose(&to_left, &turned, &angle)?;
    // On the axis of y, and at the origin, where the side of a zero counts.
    let (x_zero, y_zero) = (g.test("Equal", &[x, &zero])?, g.test("Equal", &[y, &zero])?);
    let upright = g.math("Mul", &[&y_sign, &half_pi])?;
    let origin = g.choose(&to_left, &turn, y)?;
    let on_axis = g.choose(&y_zero, &origin, &upright)?;
    let result = g.choose(&x_zero, &on_axis, &angle)?;
    let is_nan = g.test("IsNaN", &[y])?;
    g.choose(&is_nan, y, &result)
}

/// The neighbour of a number: `x ± (u(1 + 2u)|x| + η)` rounds to it (Rump, Zimmermann, Boldo, Melquiond 2009).
fn nextafter(g: &mut GraphBuilder, a: &X, b: &X) -> Result<X> {
    let (unit, least) = match a.dtype {
        DType::Float32 => (2f64.powi(-24), 2f64.powi(-149)),
        DType::Float64 => (2f64.powi(-53), f64::from_bits(1)),
        other => return Err(unsupported(format!("aten.nextafter of {} has no translation", other.name()))),
    };
    let (scale, least) = (g.number(unit * (1.0 + 2.0 * unit), a.dtype)?, g.number(least, a.dtype)?);
    let size = g.math("Abs", &[a])?;
    let step = g.math("Mul", &[&size, &scale])?;
    let step = g.math("Add", &[&step, &least])?;
    let (above, below) = (g.math("Add", &[a, &step])?, g.math("Sub", &[a, &step])?);
    let (is_up, is_same) = (g.test("Less", &[a, b])?, g.test("Equal", &[a, b])?);
    let moved = g.choose(&is_up, &above, &below)?;
    // From infinity one comes to the greatest number.
    let most = if a.dtype == DType::Float32 { f64::from(f32::MAX) } else { f64::MAX };
    let (is_infinite, most) = (g.test("IsInf", &[a])?, g.number(most, a.dtype)?);
    let most = copysign(g, &most, a)?;
    let moved = g.choose(&is_infinite, &most, &moved)?;
    let moved = g.choose(&is_same, b, &moved)?;
    let other_nan = g.test("IsNaN", &[b])?;
    g.choose(&other_nan, b, &moved)
}
