//! Functions that ONNX has no node for, by formulas that are as exact as float32.

use super::Rows;
use super::binary::{any_positive, fmod};
use super::unary::formula;
use crate::call::{Call, Results, dynamic, unsupported};
use crate::graph::{GraphBuilder, X};
use std::f64::consts::PI;
use tracefx_core::{DType, Result};

pub(super) const OPS: Rows = &[
    ("aten.angle.default", |c| formula(c, angle)),
    ("aten.digamma.default", |c| formula(c, digamma)),
    ("aten.erfc.default", |c| formula(c, erfc)),
    ("aten.erfinv.default", |c| formula(c, erfinv)),
    ("aten.gcd.default", gcd),
    ("aten.i0.default", |c| formula(c, i0)),
    ("aten.lgamma.default", |c| formula(c, lgamma)),
    ("aten.rrelu_with_noise_functional.default", rrelu),
];

/// A polynomial by Horner's rule, the coefficient of the highest power first.
fn polynomial(g: &mut GraphBuilder, x: &X, coefficients: &[f64]) -> Result<X> {
    let mut sum = g.number(coefficients[0], x.dtype)?;
    for &it in &coefficients[1..] {
        let (product, next) = (g.math("Mul", &[&sum, x])?, g.number(it, x.dtype)?);
        sum = g.math("Add", &[&product, &next])?;
    }
    Ok(sum)
}

/// Of a real number it is 0 or pi.
fn angle(g: &mut GraphBuilder, x: &X) -> Result<X> {
    let (zero, pi) = (g.number(0.0, x.dtype)?, g.number(PI, x.dtype)?);
    let (below, is_nan) = (g.test("Less", &[x, &zero])?, g.test("IsNaN", &[x])?);
    let side = g.choose(&below, &pi, &zero)?;
    g.choose(&is_nan, x, &side)
}

/// A Chebyshev fit whose fractional error is below 1.2e-7 everywhere (Press et al., Numerical Recipes, `erfcc`).
fn erfc(g: &mut GraphBuilder, x: &X) -> Result<X> {
    let (zero, one, two) = (g.number(0.0, x.dtype)?, g.number(1.0, x.dtype)?, g.number(2.0, x.dtype)?);
    let half = g.number(0.5, x.dtype)?;
    let size = g.math("Abs", &[x])?;
    let halved = g.math("Mul", &[&size, &half])?;
    let below = g.math("Add", &[&one, &halved])?;
    let t = g.math("Reciprocal", &[&below])?;
    let fit = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let fitted = polynomial(g, &t, &fit)?;
    let square = g.math("Mul", &[&size, &size])?;
    let exponent = g.math("Sub", &[&fitted, &square])?;
    let exponential = g.math("Exp", &[&exponent])?;
    let tail = g.math("Mul", &[&t, &exponential])?;
    let (is_below, rest) = (g.test("Less", &[x, &zero])?, g.math("Sub", &[&two, &tail])?);
    g.choose(&is_below, &rest, &tail)
}

/// Two fits in `-log(1 - x²)` (Giles, Approximating the erfinv function, 2010).
fn erfinv(g: &mut GraphBuilder, x: &X) -> Result<X> {
    let (one, five) = (g.number(1.0, x.dtype)?, g.number(5.0, x.dtype)?);
    let (more, less) = (g.math("Add", &[&one, x])?, g.math("Sub", &[&one, x])?);
    let product = g.math("Mul", &[&more, &less])?;
    let log = g.math("Log", &[&product])?;
    let w = g.math("Neg", &[&log])?;
    let (near, far) = (g.number(2.5, x.dtype)?, g.number(3.0, x.dtype)?);
    let near = g.math("Sub", &[&w, &near])?;
    let central = polynomial(
        g,
        &near,
        &[
            2.810_226_36e-08,
            3.432_739_39e-07,
            -3.523_387_7e-06,
            -4.391_506_54e-06,
            0.000_218_580_87,
            -0.001_253_725_03,
            -0.004_177_681_64,
            0.246_640_727,
            1.501_409_41,
        ],
    )?;
    let root = g.math("Sqrt", &[&w])?;
    let far = g.math("Sub", &[&root, &far])?;
    let tail = polynomial(
        g,
        &far,
        &[
            -0.000_200_214_257,
            0.000_100_950_558,
            0.001_349_343_22,
            -0.003_673_428_44,
            0.005_739_507_73,
            -0.007_622_461_3,
            0.009_438_870_47,
            1.001_674_06,
            2.832_976_82,
        ],
    )?;
    let is_central = g.test("Less", &[&w, &five])?;
    let factor = g.choose(&is_central, &central, &tail)?;
    let inner = g.math("Mul", &[&factor, x])?;
    let size = g.math("Abs", &[x])?;
    let is_edge = g.test("Equal", &[&size, &one])?;
    let infinity = g.number(f64::INFINITY, x.dtype)?;
    let edge = g.math("Mul", &[x, &infinity])?;
    g.choose(&is_edge, &edge, &inner)
}

/// Abramowitz and Stegun 9.8.1 and 9.8.2, whose errors are below 1.6e-7 and 1.9e-7.
fn i0(g: &mut GraphBuilder, x: &X) -> Result<X> {
    let bound = g.number(3.75, x.dtype)?;
    let size = g.math("Abs", &[x])?;
    let ratio = g.math("Div", &[&size, &bound])?;
    let square = g.math("Mul", &[&ratio, &ratio])?;
    let inner =
        polynomial(g, &square, &[0.004_581_3, 0.036_076_8, 0.265_973_2, 1.206_749_2, 3.089_942_4, 3.515_622_9, 1.0])?;
    let inverse = g.math("Reciprocal", &[&ratio])?;
    let outer = polynomial(
        g,
        &inverse,
        &[
            0.003_923_77,
            -0.016_476_33,
            0.026_355_37,
            -0.020_577_06,
            0.009_162_81,
            -0.001_575_65,
            0.002_253_19,
            0.013_285_92,
            0.398_942_28,
        ],
    )?;
    let (exponential, root) = (g.math("Exp", &[&size])?, g.math("Sqrt", &[&size])?);
    let scale = g.math("Div", &[&exponential, &root])?;
    let outer = g.math("Mul", &[&outer, &scale])?;
    let is_inner = g.test("Less", &[&size, &bound])?;
    g.choose(&is_inner, &inner, &outer)
}

/// Lanczos' approximation (g = 7, nine terms) in float64, and its reflection below one half.
fn lgamma(g: &mut GraphBuilder, x: &X) -> Result<X> {
    let dtype = x.dtype;
    let x = &g.cast(x, DType::Float64)?;
    let (half, one, pi) = (g.number(0.5, x.dtype)?, g.number(1.0, x.dtype)?, g.number(PI, x.dtype)?);
    let is_small = g.test("Less", &[x, &half])?;
    let mirrored = g.math("Sub", &[&one, x])?;
    let z = g.choose(&is_small, &mirrored, x)?;
    let z = g.math("Sub", &[&z, &one])?;
    let mut sum = g.number(0.999_999_999_999_809_9, x.dtype)?;
    let terms = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    for (at, &it) in terms.iter().enumerate() {
        let (place, numerator) = (g.number(at as f64 + 1.0, x.dtype)?, g.number(it, x.dtype)?);
        let below = g.math("Add", &[&z, &place])?;
        let term = g.math("Div", &[&numerator, &below])?;
        sum = g.math("Add", &[&sum, &term])?;
    }
    let (shift, root) = (g.number(7.5, x.dtype)?, g.number((2.0 * PI).ln() / 2.0, x.dtype)?);
    let t = g.math("Add", &[&z, &shift])?;
    let (log_t, log_sum) = (g.math("Log", &[&t])?, g.math("Log", &[&sum])?);
    let exponent = g.math("Add", &[&z, &half])?;
    let power = g.math("Mul", &[&exponent, &log_t])?;
    let value = g.math("Add", &[&root, &power])?;
    let value = g.math("Sub", &[&value, &t])?;
    let value = g.math("Add", &[&value, &log_sum])?;
    // log(pi / |sin(pi x)|) - lgamma(1 - x); the sine is of the rest, which is exact.
    let floor = g.math("Floor", &[x])?;
    let rest = g.math("Sub", &[x, &floor])?;
    let angle = g.math("Mul", &[&rest, &pi])?;
    let sine = g.math("Sin", &[&angle])?;
    let ratio = g.math("Div", &[&pi, &sine])?;
    let log = g.math("Log", &[&ratio])?;
    let reflected = g.math("Sub", &[&log, &value])?;
    let result = g.choose(&is_small, &reflected, &value)?;
    let (is_inf, infinity) = (g.test("IsInf", &[x])?, g.number(f64::INFINITY, x.dtype)?);
    let result = g.choose(&is_inf, &infinity, &result)?;
    g.cast(&result, dtype)
}

/// By the recurrence to where the asymptotic series is exact, and by the reflection below zero; in float64.
fn digamma(g: &mut GraphBuilder, x: &X) -> Result<X> {
    let dtype = x.dtype;
    let x = &g.cast(x, DType::Float64)?;
    let (zero, one, pi) = (g.number(0.0, x.dtype)?, g.number(1.0, x.dtype)?, g.number(PI, x.dtype)?);
    let is_below = g.test("Less", &[x, &zero])?;
    let mirrored = g.math("Sub", &[&one, x])?;
    let mut z = g.choose(&is_below, &mirrored, x)?;
    let mut sum = zero.clone();
    for _ in 0..10 {
        let inverse = g.math("Reciprocal", &[&z])?;
        sum = g.math("Sub", &[&sum, &inverse])?;
        z = g.math("Add", &[&z, &one])?;
    }
    let inverse = g.math("Reciprocal", &[&z])?;
    let square = g.math("Mul", &[&inverse, &inverse])?;
    let series = polynomial(
        g,
        &square,
        &[1.0 / 12.0, -691.0 / 32760.0, 1.0 / 132.0, -1.0 / 240.0, 1.0 / 252.0, -1.0 / 120.0, 1.0 / 12.0, 0.0],
    )?;
    let (log, minus_half) = (g.math("Log", &[&z])?, g.number(-0.5, x.dtype)?);
    let first = g.math("Mul", &[&inverse, &minus_half])?;
    let value = g.math("Add", &[&log, &first])?;
    let value = g.math("Sub", &[&value, &series])?;
    let value = g.math("Add", &[&value, &sum])?;
    let floor = g.math("Floor", &[x])?;
    let rest = g.math("Sub", &[x, &floor])?;
    let angle = g.math("Mul", &[&rest, &pi])?;
    let (sine, cosine) = (g.math("Sin", &[&angle])?, g.math("Cos", &[&angle])?);
    let cotangent = g.math("Div", &[&cosine, &sine])?;
    let turned = g.math("Mul", &[&cotangent, &pi])?;
    let reflected = g.math("Sub", &[&value, &turned])?;
    let result = g.choose(&is_below, &reflected, &value)?;
    // At the poles it has no value; at zero it is infinite with the other sign.
    let (is_whole, is_zero) = (g.test("Equal", &[&rest, &zero])?, g.test("Equal", &[x, &zero])?);
    let (nan, pole) = (g.number(f64::NAN, x.dtype)?, g.test("And", &[&is_whole, &is_below])?);
    let result = g.choose(&pole, &nan, &result)?;
    let inverse = g.math("Reciprocal", &[x])?;
    let infinite = g.math("Neg", &[&inverse])?;
    let result = g.choose(&is_zero, &infinite, &result)?;
    g.cast(&result, dtype)
}

/// Euclid's algorithm in the order of PyTorch, which tells the sign where a number is the least of its dtype.
fn gcd(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (a, b) = (c.operand("self", dtype)?, c.operand("other", dtype)?);
    let sizes = c.result(0)?.sizes;
    if sizes.iter().any(|it| *it == 0) {
        return Ok(c.g().math("Mul", &[&a, &b])?.into());
    }
    let known: Option<Vec<i64>> = sizes.iter().map(tracefx_sym::SymInt::as_int).collect();
    let shape = c.g().vector(&known.ok_or_else(|| dynamic("the size of the result"))?)?;
    let (zero, one) = (c.number(0.0, dtype)?, c.number(1.0, dtype)?);
    let g = c.g();
    let (a, b) = (g.math("Abs", &[&a])?, g.math("Abs", &[&b])?);
    let (a, b) = (g.expand(&a, &shape)?, g.expand(&b, &shape)?);
    let done = super::control::repeat_while(c, &[b, a], &mut |c, state| {
        let g = c.g();
        let is_zero = g.test("Equal", &[&state[1], &zero])?;
        let divisor = g.choose(&is_zero, &one, &state[1])?;
        let rest = fmod(g, &state[0], &divisor)?;
        let next = g.choose(&is_zero, &state[0], &state[1])?;
        let rest = g.choose(&is_zero, &zero, &rest)?;
        let is_over = g.test("Equal", &[&rest, &zero])?;
        let marks = g.not(&is_over);
        let marks = g.cast(&marks, DType::Int32)?;
        let goes_on = any_positive(g, &marks)?;
        Ok((goes_on, vec![next, rest]))
    })?;
    Ok(done[0].clone().into())
}

/// In evaluation a leaky ReLU of the middle slope; in training its slopes are random.
fn rrelu(c: &mut Call<'_, '_>) -> Result<Results> {
    if c.bool("training")? || c.used[1] {
        return Err(unsupported("rrelu of a training step is random, and has no translation"));
    }
    let x = c.tensor("self")?.x;
    let slope = (c.float("lower")? + c.float("upper")?) / 2.0;
    let result = c.g().math_with("LeakyRelu", &[&x], vec![crate::graph::float("alpha", slope)])?;
    Ok(Results(vec![Some(result), None]))
}
