//! Arithmetic of two numbers. What quotients and remainders are is for [`division`](crate::numeric::division) to say; loops,
//! broadcasting and conversions are [`map`](crate::numeric::map)'s.

use crate::numeric::complex::{complex1, complex2};
use crate::numeric::dispatch::{with_float, with_int, with_number, with_real};
use crate::numeric::division::Division;
use crate::numeric::field::Complex;
use crate::numeric::map::{Source, fill2, map2, number};
use crate::numeric::number::{Number, Real};
use std::sync::atomic::{AtomicBool, Ordering};
use tracefx_core::{Code, DType, Diagnostic, Element, Result, Tensor, bf16, f16};
use tracefx_exec::{Kernel, Target};
use tracefx_ops::Args;

/// A function of two real numbers.
macro_rules! real {
    ($f:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = out.dtype();
            let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
            with_real!(dtype, &args.op.name, F => map2::<F, F>(&a, &b, out, $f))
        })
    };
}

/// A function of two floats.
macro_rules! float {
    ($f:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = out.dtype();
            let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
            with_float!(dtype, &args.op.name, F => map2::<F, F>(&a, &b, out, $f))
        })
    };
}

/// A division, in which an integer divisor must not be zero.
macro_rules! divide {
    ($args:expr, $out:expr, $f:expr) => {{
        let (args, out) = ($args, $out);
        let dtype = out.dtype();
        let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
        with_float!(dtype, F => map2::<F, F>(&a, &b, out, $f), else with_int!(dtype, &args.op.name, F => {
            let (by_zero, out) = (AtomicBool::new(false), out.tensor(args)?);
            fill2::<F, F>(&a, &b, out, |a, b| if b == 0 {
                by_zero.store(true, Ordering::Relaxed);
                0
            } else {
                $f(a, b)
            })?;
            if by_zero.into_inner() { Err(Diagnostic::new(Code::InvalidArgument, "ZeroDivisionError")) } else { Ok(()) }
        }))
    }};
}

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.add.Tensor", Kernel::Pointwise(add)),
    ("aten.add.Scalar", Kernel::Pointwise(add)),
    ("aten.sub.Tensor", Kernel::Pointwise(|args, out| sub(args, out, [0, 1]))),
    ("aten.sub.Scalar", Kernel::Pointwise(|args, out| sub(args, out, [0, 1]))),
    ("aten.rsub.Tensor", Kernel::Pointwise(|args, out| sub(args, out, [1, 0]))),
    ("aten.rsub.Scalar", Kernel::Pointwise(|args, out| sub(args, out, [1, 0]))),
    ("aten.mul.Tensor", Kernel::Pointwise(mul)),
    ("aten.mul.Scalar", Kernel::Pointwise(mul)),
    ("aten.div.Tensor", Kernel::Pointwise(div)),
    ("aten.div.Scalar", Kernel::Pointwise(div)),
    ("aten.div.Tensor_mode", Kernel::Pointwise(div_mode)),
    ("aten.div.Scalar_mode", Kernel::Pointwise(div_mode)),
    ("aten.floor_divide.default", Kernel::Pointwise(floor_div)),
    ("aten.floor_divide.Scalar", Kernel::Pointwise(floor_div)),
    ("aten.remainder.Tensor", Kernel::Pointwise(remainder)),
    ("aten.remainder.Scalar", Kernel::Pointwise(remainder)),
    ("aten.remainder.Scalar_Tensor", Kernel::Pointwise(remainder)),
    ("aten.fmod.Tensor", Kernel::Pointwise(fmod)),
    ("aten.fmod.Scalar", Kernel::Pointwise(fmod)),
    ("aten.pow.Tensor_Tensor", Kernel::Pointwise(pow)),
    ("aten.pow.Tensor_Scalar", Kernel::Pointwise(pow)),
    ("aten.pow.Scalar", Kernel::Pointwise(pow)),
    ("aten.float_power.Tensor_Tensor", Kernel::Pointwise(pow)),
    ("aten.float_power.Tensor_Scalar", Kernel::Pointwise(pow)),
    ("aten.float_power.Scalar", Kernel::Pointwise(pow)),
    ("aten.maximum.default", real!(Real::larger)),
    ("aten.minimum.default", real!(Real::smaller)),
    ("aten.fmax.default", real!(|a, b| if b > a || Number::is_nan(a) { b } else { a })),
    ("aten.fmin.default", real!(|a, b| if b < a || Number::is_nan(a) { b } else { a })),
    ("aten.atan2.default", float!(|y, x| y.atan2(x))),
    ("aten.hypot.default", float!(|a, b| a.hypot(b))),
    ("aten.copysign.Tensor", float!(|a, b| a.copysign(b))),
    ("aten.copysign.Scalar", float!(|a, b| a.copysign(b))),
    ("aten.nextafter.default", Kernel::Pointwise(nextafter)),
    ("aten.xlogy.Tensor", Kernel::Pointwise(xlogy)),
    ("aten.xlogy.Scalar_Other", Kernel::Pointwise(xlogy)),
    ("aten.xlogy.Scalar_Self", Kernel::Pointwise(xlogy)),
    (
        "aten.logaddexp.default",
        float!(|a, b| if a == b && a.is_infinite() { a } else { a.max(b) + (-(a - b).abs()).exp().ln_1p() }),
    ),
    (
        "aten.logaddexp2.default",
        float!(|a, b| if a == b && a.is_infinite() { a } else { a.max(b) + (1.0 + (-(a - b).abs()).exp2()).log2() }),
    ),
    ("aten.heaviside.default", real!(|a, b| if a == Number::ZERO { b } else { ((a > Number::ZERO) as u8).into() })),
    ("aten.gcd.default", Kernel::Pointwise(|args, out| divisors(args, out, gcd))),
    ("aten.lcm.default", Kernel::Pointwise(|args, out| divisors(args, out, lcm))),
];

fn add(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    let alpha = number(args, 2, dtype)?;
    with_number!(dtype, &args.op.name, F => {
        let alpha = F::from_scalar(alpha);
        if alpha == F::ONE {
            map2::<F, F>(&a, &b, out, Number::add)
        } else {
            map2::<F, F>(&a, &b, out, move |a, b| a.add(alpha.mul(b)))
        }
    })
}

fn sub(args: &Args<'_, Tensor>, out: Target<'_>, [from, by]: [usize; 2]) -> Result<()> {
    let dtype = out.dtype();
    let (a, b) = (Source::of(args, from, dtype)?, Source::of(args, by, dtype)?);
    let alpha = number(args, 2, dtype)?;
    with_number!(dtype, &args.op.name, F => {
        let alpha = F::from_scalar(alpha);
        if alpha == F::ONE {
            map2::<F, F>(&a, &b, out, Number::sub)
        } else {
            map2::<F, F>(&a, &b, out, move |a, b| a.sub(alpha.mul(b)))
        }
    })
}

fn mul(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    with_number!(dtype, &args.op.name, F => map2::<F, F>(&a, &b, out, Number::mul))
}

fn div(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    if dtype.is_complex() {
        return map2::<[f64; 2], [f64; 2]>(&a, &b, out, complex_div);
    }
    with_float!(dtype, &args.op.name, F => map2::<F, F>(&a, &b, out, move |a, b| a / b))
}

/// Smith's method: scales by the larger part of the divisor, so that nothing overflows on the way.
fn complex_div([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    if c.abs() >= d.abs() {
        if c == 0.0 && d == 0.0 {
            return [a / c.abs(), b / d.abs()];
        }
        let ratio = d / c;
        let scale = 1.0 / (c + d * ratio);
        [(a + b * ratio) * scale, (b - a * ratio) * scale]
    } else {
        let ratio = c / d;
        let scale = 1.0 / (c * ratio + d);
        [(a * ratio + b) * scale, (b * ratio - a) * scale]
    }
}

fn div_mode(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    match args.opt_str(2)? {
        Some("floor") => floor_div(args, out),
        Some(_) => divide!(args, out, Division::trunc_div),
        None => div(args, out),
    }
}

fn floor_div(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    divide!(args, out, Division::floor_div)
}

fn remainder(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    divide!(args, out, Division::remainder)
}

fn fmod(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    divide!(args, out, Division::fmod)
}

fn pow(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let a = Source::of(args, 0, dtype)?;
    // The power of an integer may be larger than its dtype holds.
    let b = if dtype.is_int() { Source::unrounded(args, 1, dtype)? } else { Source::of(args, 1, dtype)? };
    with_float!(dtype, F => match &b {
        // The exponents that PyTorch computes without logarithms; they differ at the infinities.
        Source::Scalar(exponent) if exponent.to_f64() == 2.0 => map2::<F, F>(&a, &b, out, move |a, _| a * a),
        Source::Scalar(exponent) if exponent.to_f64() == 3.0 => map2::<F, F>(&a, &b, out, move |a, _| a * a * a),
        Source::Scalar(exponent) if exponent.to_f64() == 0.5 => map2::<F, F>(&a, &b, out, move |a, _| a.sqrt()),
        Source::Scalar(exponent) if exponent.to_f64() == -0.5 => map2::<F, F>(&a, &b, out, move |a, _| 1.0 / a.sqrt()),
        Source::Scalar(exponent) if exponent.to_f64() == -1.0 => map2::<F, F>(&a, &b, out, move |a, _| 1.0 / a),
        Source::Scalar(_) | Source::Tensor(_) => map2::<F, F>(&a, &b, out, move |a, b| a.powf(b)),
    }, else if dtype.is_complex() {
        complex_pow(&a, &b, out)
    } else {
        with_int!(dtype, &args.op.name, F => map2::<F, F>(&a, &b, out, int_pow))
    })
}

/// As for floats, some exponents need no logarithm.
fn complex_pow(a: &Source, b: &Source, out: Target<'_>) -> Result<()> {
    let exponent = match b {
        Source::Scalar(it) if it.to_complex().im == 0.0 => Some(it.to_complex().re),
        Source::Scalar(_) | Source::Tensor(_) => None,
    };
    match exponent {
        Some(0.0) => complex1(a, out, move |_| Complex::new(1.0, 0.0)),
        Some(1.0) => complex1(a, out, move |a| a),
        Some(2.0) => complex1(a, out, move |a| a * a),
        Some(3.0) => complex1(a, out, move |a| a * a * a),
        Some(0.5) => complex1(a, out, Complex::sqrt),
        Some(-0.5) => complex1(a, out, move |a| a.sqrt().reciprocal()),
        Some(-1.0) => complex1(a, out, Complex::reciprocal),
        Some(-2.0) => complex1(a, out, move |a| (a * a).reciprocal()),
        Some(_) | None => complex2(a, b, out, Complex::pow),
    }
}

/// Squares and multiplies, wrapping. A negative power is the integer part of the fraction.
fn int_pow(base: i64, exponent: i64) -> i64 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 if exponent % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut base, mut exponent, mut result) = (base, exponent, 1i64);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

fn xlogy(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    // In half precision, PyTorch rounds the logarithm too.
    with_float!(dtype, &args.op.name, F => match dtype {
        DType::Float16 => map2(&a, &b, out, move |a, b| xlogy_by(a, b, |b: f32| f16::from_f32(b.ln()).to_f32())),
        DType::BFloat16 => map2(&a, &b, out, move |a, b| xlogy_by(a, b, |b: f32| bf16::from_f32(b.ln()).to_f32())),
        _ => map2::<F, F>(&a, &b, out, move |a, b| xlogy_by(a, b, F::ln)),
    })
}

fn xlogy_by<F: Real>(a: F, b: F, ln: impl Fn(F) -> F) -> F {
    if b.is_nan() {
        b
    } else if a == F::ZERO {
        F::ZERO
    } else {
        a.mul(ln(b))
    }
}

fn nextafter(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    match dtype {
        DType::Float32 => map2::<f32, f32>(&a, &b, out, libm::nextafterf),
        DType::Float64 => map2::<f64, f64>(&a, &b, out, libm::nextafter),
        // The neighbours of a half-precision float are not those of the float32 that others are computed in.
        DType::Float16 => map2::<f16, f16>(&a, &b, out, move |a, b| match half_step(a.into(), b.into()) {
            HalfStep::Other => b,
            HalfStep::Least => f16::from_bits(1 | (b.to_bits() & 0x8000)),
            HalfStep::Bits(step) => f16::from_bits(a.to_bits().wrapping_add_signed(step)),
        }),
        DType::BFloat16 => map2::<bf16, bf16>(&a, &b, out, move |a, b| match half_step(a.into(), b.into()) {
            HalfStep::Other => b,
            HalfStep::Least => bf16::from_bits(1 | (b.to_bits() & 0x8000)),
            HalfStep::Bits(step) => bf16::from_bits(a.to_bits().wrapping_add_signed(step)),
        }),
        _ => Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)),
    }
}

/// How the half-precision float after `a` in the direction of `b` is found.
enum HalfStep {
    /// It is `b`: the same number, or not one at all.
    Other,
    /// It is the least number of the sign of `b`.
    Least,
    /// This much is added to its bits, which are in the order of the magnitudes.
    Bits(i16),
}

fn half_step(a: f32, b: f32) -> HalfStep {
    if a == b || b.is_nan() {
        HalfStep::Other
    } else if a == 0.0 {
        HalfStep::Least
    } else if a.is_nan() {
        HalfStep::Bits(0)
    } else {
        HalfStep::Bits(if (a < b) == (a > 0.0) { 1 } else { -1 })
    }
}

/// A function of absolute values. The least integer of a dtype is its own, as in C.
fn divisors(args: &Args<'_, Tensor>, out: Target<'_>, f: fn(i64, i64) -> i64) -> Result<()> {
    let dtype = out.dtype();
    let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    if dtype.size() > size_of::<i64>() {
        return Err(Diagnostic::unsupported_dtype(dtype, &args.op.name));
    }
    let least = i64::MIN >> (64 - 8 * dtype.size());
    let absolute = move |it: i64| if it == least { it } else { it.abs() };
    with_int!(dtype, &args.op.name, F => map2::<F, F>(&a, &b, out, move |a, b| f(absolute(a), absolute(b))))
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b);
    while a != 0 {
        (a, b) = (b.wrapping_rem(a), a);
    }
    b
}

fn lcm(a: i64, b: i64) -> i64 {
    match gcd(a, b) {
        0 => 0,
        divisor => a.wrapping_div(divisor).wrapping_mul(b).wrapping_abs(),
    }
}
