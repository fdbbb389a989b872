//! Functions of one tensor, element by element.

use super::Rows;
use crate::call::{Call, Results};
use crate::element::wide;
use crate::graph::{GraphBuilder, X};
use tracefx_core::{DType, Result};

pub(super) const OPS: Rows = &[
    ("aten.abs.default", |c| simple(c, "Abs")),
    ("aten.acos.default", |c| simple(c, "Acos")),
    ("aten.acosh.default", |c| simple(c, "Acosh")),
    ("aten.asin.default", |c| simple(c, "Asin")),
    ("aten.asinh.default", |c| simple(c, "Asinh")),
    ("aten.atan.default", |c| simple(c, "Atan")),
    ("aten.atanh.default", |c| simple(c, "Atanh")),
    ("aten.bitwise_not.default", bitwise_not),
    ("aten.ceil.default", |c| rounded(c, "Ceil")),
    ("aten.cos.default", |c| simple(c, "Cos")),
    ("aten.cosh.default", |c| formula(c, cosh)),
    ("aten.erf.default", |c| simple(c, "Erf")),
    ("aten.exp.default", |c| simple(c, "Exp")),
    ("aten.exp2.default", exp2),
    ("aten.expm1.default", |c| formula(c, expm1)),
    ("aten.floor.default", |c| rounded(c, "Floor")),
    ("aten.isinf.default", |c| float_test(c, "IsInf")),
    ("aten.isnan.default", |c| float_test(c, "IsNaN")),
    ("aten.log.default", |c| simple(c, "Log")),
    ("aten.log10.default", |c| logarithm(c, std::f64::consts::LN_10)),
    ("aten.log1p.default", |c| formula(c, log1p)),
    ("aten.log2.default", |c| logarithm(c, std::f64::consts::LN_2)),
    ("aten.logical_not.default", logical_not),
    ("aten.neg.default", |c| simple(c, "Neg")),
    ("aten.reciprocal.default", |c| simple(c, "Reciprocal")),
    ("aten.relu.default", |c| formula(c, relu)),
    ("aten.round.default", |c| rounded(c, "Round")),
    ("aten.round.decimals", round_decimals),
    ("aten.rsqrt.default", rsqrt),
    ("aten.sigmoid.default", |c| simple(c, "Sigmoid")),
    ("aten.sign.default", |c| formula(c, sign)),
    ("aten.signbit.default", signbit_of),
    ("aten.sin.default", |c| simple(c, "Sin")),
    ("aten.sinh.default", |c| formula(c, sinh)),
    ("aten.sqrt.default", |c| simple(c, "Sqrt")),
    ("aten.tan.default", |c| formula(c, tan)),
    ("aten.tanh.default", |c| simple(c, "Tanh")),
    ("aten.trunc.default", trunc_of),
];

/// One node, in the dtype of the result.
fn simple(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let dtype = c.dtype()?;
    let x = c.operand("self", dtype)?;
    Ok(c.g().math(op, &[&x])?.into())
}

/// A formula in the dtype of the result; halves are rounded once, in the end.
pub(super) fn formula(c: &mut Call<'_, '_>, made: fn(&mut GraphBuilder, &X) -> Result<X>) -> Result<Results> {
    let wide = wide(c.dtype()?);
    let x = c.operand("self", wide)?;
    Ok(made(c.g(), &x)?.into())
}

/// Rounding, which leaves integers alone.
fn rounded(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let x = c.tensor("self")?.x;
    Ok(if x.dtype.is_float() { c.g().math(op, &[&x])? } else { x }.into())
}

/// A question that only floats answer with yes.
fn float_test(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let x = c.tensor("self")?.x;
    let x = if x.dtype.is_float() { x } else { c.g().cast(&x, DType::Float32)? };
    Ok(c.g().test(op, &[&x])?.into())
}

/// Of integers it is the greater of them and zero: runtimes have it for floats.
fn relu(g: &mut GraphBuilder, x: &X) -> Result<X> {
    if x.dtype.is_float() {
        return g.math("Relu", &[x]);
    }
    let zero = g.number(0.0, x.dtype)?;
    g.math("Max", &[x, &zero])
}

fn bitwise_not(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?.x;
    let op = if x.dtype == DType::Bool { "Not" } else { "BitwiseNot" };
    Ok(c.g().math(op, &[&x])?.into())
}

fn logical_not(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.operand("self", DType::Bool)?;
    Ok(c.g().not(&x).into())
}

fn exp2(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (x, two) = (c.operand("self", dtype)?, c.number(2.0, dtype)?);
    Ok(c.g().math("Pow", &[&two, &x])?.into())
}

/// A quotient of logarithms in float64, so that it is whole for the powers of its base.
fn logarithm(c: &mut Call<'_, '_>, natural: f64) -> Result<Results> {
    let x = c.operand("self", DType::Float64)?;
    let (log, scale) = (c.g().math("Log", &[&x])?, c.number(natural, DType::Float64)?);
    Ok(c.g().math("Div", &[&log, &scale])?.into())
}

fn rsqrt(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let x = c.operand("self", dtype)?;
    let root = c.g().math("Sqrt", &[&x])?;
    Ok(c.g().math("Reciprocal", &[&root])?.into())
}

fn round_decimals(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?.x;
    if !x.dtype.is_float() {
        return Ok(x.into());
    }
    let decimals = c.int("decimals")?;
    let scale = c.number(10f64.powi(decimals.unsigned_abs() as i32), x.dtype)?;
    let (there, back) = if decimals < 0 { ("Div", "Mul") } else { ("Mul", "Div") };
    let scaled = c.g().math(there, &[&x, &scale])?;
    let rounded = c.g().math("Round", &[&scaled])?;
    Ok(c.g().math(back, &[&rounded, &scale])?.into())
}

fn trunc_of(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?.x;
    Ok(if x.dtype.is_float() { trunc(c.g(), &x)? } else { x }.into())
}

fn signbit_of(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?.x;
    Ok(signbit(c.g(), &x)?.into())
}

pub(super) fn trunc(g: &mut GraphBuilder, x: &X) -> Result<X> {
    let zero = g.number(0.0, x.dtype)?;
    let is_negative = g.test("Less", &[x, &zero])?;
    let (up, down) = (g.math("Ceil", &[x])?, g.math("Floor", &[x])?);
    g.choose(&is_negative, &up, &down)
}

/// Of NaN it is zero, as in PyTorch.
pub(super) fn sign(g: &mut GraphBuilder, x: &X) -> Result<X> {
    if x.dtype == DType::Bool {
        return Ok(x.clone());
    }
    let zero = g.number(0.0, x.dtype)?;
    let (above, below) = (g.test("Greater", &[x, &zero])?, g.test("Less", &[x, &zero])?);
    let (above, below) = (g.cast(&above, x.dtype)?, g.cast(&below, x.dtype)?);
    g.math("Sub", &[&above, &below])
}

/// Whether a number is negative, a zero too.
pub(super) fn signbit(g: &mut GraphBuilder, x: &X) -> Result<X> {
    if x.dtype == DType::Bool {
        return g.test("Xor", &[x, x]);
    }
    let zero = g.number(0.0, x.dtype)?;
    let below = g.test("Less", &[x, &zero])?;
    if !x.dtype.is_float() {
        return Ok(below);
    }
    let inverse = g.math("Reciprocal", &[x])?;
    let (is_zero, is_minus) = (g.test("Equal", &[x, &zero])?, g.test("Less", &[&inverse, &zero])?);
    let is_minus_zero = g.test("And", &[&is_zero, &is_minus])?;
    g.test("Or", &[&below, &is_minus_zero])
}

/// Of float64, for which runtimes have no kernel, it is made of exponentials.
fn cosh(g: &mut GraphBuilder, x: &X) -> Result<X> {
    if x.dtype != DType::Float64 {
        return g.math("Cosh", &[x]);
    }
    let (negative, half) = (g.math("Neg", &[x])?, g.number(0.5, x.dtype)?);
    let (up, down) = (g.math("Exp", &[x])?, g.math("Exp", &[&negative])?);
    let sum = g.math("Add", &[&up, &down])?;
    g.math("Mul", &[&sum, &half])
}

/// Of float64 it is `(u + u / (u + 1)) / 2` of `u = exp(x) - 1`.
fn sinh(g: &mut GraphBuilder, x: &X) -> Result<X> {
    if x.dtype != DType::Float64 {
        return g.math("Sinh", &[x]);
    }
    let (one, half) = (g.number(1.0, x.dtype)?, g.number(0.5, x.dtype)?);
    let size = g.math("Abs", &[x])?;
    let u = expm1(g, &size)?;
    let above = g.math("Add", &[&u, &one])?;
    let ratio = g.math("Div", &[&u, &above])?;
    // Of infinity the ratio is no number: it is one.
    let is_inf = g.test("IsInf", &[&u])?;
    let ratio = g.choose(&is_inf, &one, &ratio)?;
    let sum = g.math("Add", &[&u, &ratio])?;
    let (value, sign) = (g.math("Mul", &[&sum, &half])?, sign(g, x)?);
    g.math("Mul", &[&value, &sign])
}

/// Of float64 it is the quotient of sine and cosine.
fn tan(g: &mut GraphBuilder, x: &X) -> Result<X> {
    if x.dtype != DType::Float64 {
        return g.math("Tan", &[x]);
    }
    let (sine, cosine) = (g.math("Sin", &[x])?, g.math("Cos", &[x])?);
    g.math("Div", &[&sine, &cosine])
}

/// `exp(x) - 1`, exact where x is small: Kahan's `(u - 1) * x / log(u)` of `u = exp(x)`.
pub(super) fn expm1(g: &mut GraphBuilder, x: &X) -> Result<X> {
    let (one, minus_one) = (g.number(1.0, x.dtype)?, g.number(-1.0, x.dtype)?);
    let u = g.math("Exp", &[x])?;
    let less = g.math("Sub", &[&u, &one])?;
    let log = g.math("Log", &[&u])?;
    let quotient = g.math("Div", &[x, &log])?;
    let kahan = g.math("Mul", &[&less, &quotient])?;
    let (is_one, is_lowest) = (g.test("Equal", &[&u, &one])?, g.test("Equal", &[&less, &minus_one])?);
    let is_inf = g.test("IsInf", &[&u])?;
    let plain = g.test("Or", &[&is_lowest, &is_inf])?;
    let rest = g.choose(&plain, &less, &kahan)?;
    g.choose(&is_one, x, &rest)
}

/// `log(1 + x)`, exact where x is small: `log(u) * x / (u - 1)` of `u = 1 + x`.
pub(super) fn log1p(g: &mut GraphBuilder, x: &X) -> Result<X> {
    let one = g.number(1.0, x.dtype)?;
    let u = g.math("Add", &[x, &one])?;
    let less = g.math("Sub", &[&u, &one])?;
    let log = g.math("Log", &[&u])?;
    let ratio = g.math("Div", &[x, &less])?;
    let kahan = g.math("Mul", &[&log, &ratio])?;
    let (is_one, is_inf) = (g.test("Equal", &[&u, &one])?, g.test("IsInf", &[&u])?);
    let rest = g.choose(&is_inf, &log, &kahan)?;
    g.choose(&is_one, x, &rest)
}
