//! Functions of one number. How they are computed is [`elementary`](crate::numeric::elementary)'s,
//! [`complex`](crate::numeric::complex)'s and [`special`](super::special)'s; here they are joined to operators.

#![allow(
    clippy::useless_conversion,
    clippy::redundant_closure,
    reason = "the same code serves float32, whose conversion does something and whose methods are others"
)]

use crate::numeric::complex::complex1;
use crate::numeric::dispatch::{with_float, with_int, with_number, with_real};
use crate::numeric::elementary::{Elementary, Stepwise};
use crate::numeric::field::{self, Complex};
use crate::numeric::map::{Source, map1, number};
use crate::numeric::number::{Number, Real};
use crate::pointwise::special::Special;
use std::f64::consts::{LN_2, PI};
use tracefx_core::{Bool8, DType, Diagnostic, Result, Tensor};
use tracefx_exec::{Kernel, Target};
use tracefx_ops::Args;

/// A function of floats, and perhaps another one of complex numbers; integers become floats.
macro_rules! float {
    ($f:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = out.dtype();
            let source = Source::of(args, 0, dtype)?;
            with_float!(dtype, &args.op.name, F => map1::<F, F>(&source, out, $f))
        })
    };
    ($f:expr, $of_complex:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = out.dtype();
            let source = Source::of(args, 0, dtype)?;
            if dtype.is_complex() {
                return complex1(&source, out, $of_complex);
            }
            with_float!(dtype, &args.op.name, F => map1::<F, F>(&source, out, $f))
        })
    };
}

/// A function of floats that leaves integers as they are.
macro_rules! rounding {
    ($f:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = out.dtype();
            let source = Source::of(args, 0, dtype)?;
            with_float!(dtype, F => map1::<F, F>(&source, out, $f),
                else with_int!(dtype, &args.op.name, F => map1::<F, F>(&source, out, move |x| x)))
        })
    };
}

/// A question to floats, to which all integers have the same answer, and perhaps what the answers of both parts of a complex
/// number make.
macro_rules! question {
    ($f:expr, $of_ints:expr) => {
        question!($f, $of_ints, |re, _| re)
    };
    ($f:expr, $of_ints:expr, $of_parts:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = args.tensor(0)?.dtype();
            let source = Source::of(args, 0, dtype)?;
            if dtype.is_complex() {
                let answer: fn(bool, bool) -> bool = $of_parts;
                let ask: fn(f64) -> bool = $f;
                return map1::<[f64; 2], Bool8>(&source, out, move |[re, im]| Bool8::from(answer(ask(re), ask(im))));
            }
            with_float!(dtype, F => map1::<F, Bool8>(&source, out, move |x| Bool8::from($f(x))),
                else map1::<i64, Bool8>(&source, out, move |_| Bool8::from($of_ints)))
        })
    };
}

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.exp.default", float!(Elementary::exp, Complex::exp)),
    ("aten.exp2.default", float!(|x| x.exp2(), Complex::exp2)),
    ("aten.expm1.default", float!(Elementary::exp_m1, Complex::exp_m1)),
    ("aten.log.default", float!(Elementary::ln, Complex::ln)),
    ("aten.log1p.default", float!(Elementary::ln_1p, Complex::ln_1p)),
    ("aten.log2.default", float!(|x| x.log2(), Complex::log2)),
    ("aten.log10.default", float!(|x| x.log10(), Complex::log10)),
    ("aten.sqrt.default", float!(|x| x.sqrt(), Complex::sqrt)),
    ("aten.rsqrt.default", float!(|x| 1.0 / x.sqrt(), |x| x.sqrt().reciprocal())),
    ("aten.reciprocal.default", float!(|x| 1.0 / x, Complex::reciprocal)),
    ("aten.sin.default", float!(|x| x.sin(), Complex::sin)),
    ("aten.cos.default", float!(|x| x.cos(), Complex::cos)),
    ("aten.tan.default", float!(|x| x.tan(), Complex::tan)),
    ("aten.asin.default", float!(|x| x.asin(), Complex::asin)),
    ("aten.acos.default", float!(|x| x.acos(), Complex::acos)),
    ("aten.atan.default", float!(|x| x.atan(), Complex::atan)),
    ("aten.sinh.default", float!(|x| x.sinh(), Complex::sinh)),
    ("aten.cosh.default", float!(|x| x.cosh(), Complex::cosh)),
    ("aten.tanh.default", float!(Elementary::tanh::<Stepwise>, Complex::tanh)),
    ("aten.asinh.default", float!(|x| f64::from(x).asinh() as _, Complex::asinh)),
    ("aten.acosh.default", float!(|x| acosh(f64::from(x)) as _, Complex::acosh)),
    ("aten.atanh.default", float!(|x| f64::from(x).atanh() as _, Complex::atanh)),
    ("aten.erf.default", float!(Elementary::erf::<Stepwise>)),
    ("aten.erfc.default", float!(|x| Special::erfc(x))),
    ("aten.erfinv.default", float!(|x| x.erfinv())),
    ("aten.lgamma.default", float!(|x| x.lgamma())),
    ("aten.digamma.default", float!(|x| x.digamma())),
    ("aten.sigmoid.default", float!(Elementary::sigmoid::<Stepwise>, Complex::sigmoid)),
    ("aten.logit.default", Kernel::Pointwise(logit)),
    ("aten.sinc.default", float!(|x| if x == 0.0 { 1.0 } else { (x * PI as F).sin() / (x * PI as F) }, Complex::sinc)),
    ("aten.deg2rad.default", float!(|x| (f64::from(x) * (PI / 180.0)) as _)),
    ("aten.rad2deg.default", float!(|x| (f64::from(x) * (180.0 / PI)) as _)),
    ("aten.abs.default", Kernel::Pointwise(abs)),
    ("aten.neg.default", Kernel::Pointwise(neg)),
    ("aten.conj_physical.default", Kernel::Pointwise(conj)),
    ("aten.sign.default", Kernel::Pointwise(sign)),
    ("aten.floor.default", rounding!(|x| x.floor())),
    ("aten.ceil.default", rounding!(|x| x.ceil())),
    ("aten.trunc.default", rounding!(|x| x.trunc())),
    ("aten.round.default", rounding!(|x| x.round_ties_even())),
    ("aten.round.decimals", Kernel::Pointwise(round_decimals)),
    ("aten.frac.default", float!(|x| x - x.trunc())),
    ("aten.square.default", Kernel::Pointwise(square)),
    ("aten.nan_to_num.default", Kernel::Pointwise(nan_to_num)),
    ("aten.bitwise_not.default", Kernel::Pointwise(bitwise_not)),
    ("aten.logical_not.default", Kernel::Pointwise(logical_not)),
    ("aten.isnan.default", question!(|x| Number::is_nan(x), false, |re, im| re || im)),
    ("aten.isinf.default", question!(|x| x == Real::LOWEST || x == Real::HIGHEST, false, |re, im| re || im)),
    ("aten.isposinf.default", question!(|x| x == Real::HIGHEST, false)),
    ("aten.isneginf.default", question!(|x| x == Real::LOWEST, false)),
    ("aten.isfinite.default", question!(|x| x > Real::LOWEST && x < Real::HIGHEST, true, |re, im| re && im)),
    ("aten.signbit.default", Kernel::Pointwise(signbit)),
];

/// For large numbers the logarithm of twice the number, whose square does not overflow.
fn acosh(x: f64) -> f64 {
    if x > 1e150 { x.ln() + LN_2 } else { x.acosh() }
}

fn abs(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let source = Source::of(args, 0, dtype)?;
    if dtype.is_complex() {
        return map1::<[f64; 2], f64>(&source, out, move |[re, im]| re.hypot(im));
    }
    with_float!(dtype, F => map1::<F, F>(&source, out, move |x| x.abs()),
        else with_int!(dtype, &args.op.name, F => map1::<F, F>(&source, out, move |x: F| x.wrapping_abs())))
}

fn neg(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let source = Source::of(args, 0, dtype)?;
    if dtype.is_complex() {
        return map1::<[f64; 2], [f64; 2]>(&source, out, move |[re, im]| [-re, -im]);
    }
    with_float!(dtype, F => map1::<F, F>(&source, out, move |x| -x),
        else with_int!(dtype, &args.op.name, F => map1::<F, F>(&source, out, move |x: F| x.wrapping_neg())))
}

/// Real numbers are their own conjugates, which the shape rule says.
fn conj(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    complex1(&Source::of(args, 0, out.dtype())?, out, field::Field::conj)
}

fn sign(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let source = Source::of(args, 0, dtype)?;
    with_real!(dtype, &args.op.name, F => map1::<F, F>(&source, out, move |x| ((x > F::ZERO) as u8 as F) - ((x < F::ZERO) as u8 as F)))
}

fn signbit(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let source = Source::of(args, 0, dtype)?;
    with_float!(dtype, F => map1::<F, Bool8>(&source, out, move |x| Bool8::from(x.is_sign_negative())),
        else map1::<i64, Bool8>(&source, out, move |x| Bool8::from(x < 0)))
}

fn square(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let source = Source::of(args, 0, dtype)?;
    with_number!(dtype, &args.op.name, F => map1::<F, F>(&source, out, move |x| x.mul(x)))
}

fn logit(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let source = Source::of(args, 0, dtype)?;
    let eps = if args.is_none(1) { None } else { Some(number(args, 1, dtype)?.to_f64()) };
    // PyTorch computes this one in half precision step by step, which shows where the logarithm is near zero.
    let round: fn(f32) -> f32 = match dtype {
        DType::Float16 => |x| half::f16::from_f32(x).to_f32(),
        DType::BFloat16 => |x| half::bf16::from_f32(x).to_f32(),
        _ => |x| x,
    };
    let (low, high) = match eps {
        Some(eps) => (eps, 1.0 - eps),
        None => (f64::NEG_INFINITY, f64::INFINITY),
    };
    match dtype {
        DType::Float64 => map1::<f64, f64>(&source, out, move |x| {
            let x = between(x, low, high);
            (x / (1.0 - x)).ln()
        }),
        _ => map1::<f32, f32>(&source, out, move |x| {
            let x = between(x, low as f32, high as f32);
            round(x / round(1.0 - x)).ln()
        }),
    }
}

/// Not `clamp`, which panics where the bounds contradict each other.
fn between<F: PartialOrd>(x: F, low: F, high: F) -> F {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}

fn round_decimals(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let source = Source::of(args, 0, dtype)?;
    let decimals = args.int(1)?;
    with_float!(dtype, F => {
        let power = (10.0 as F).powi(decimals.unsigned_abs().min(400) as i32);
        match decimals {
            0 => map1::<F, F>(&source, out, move |x| x.round_ties_even()),
            1.. => map1::<F, F>(&source, out, move |x| (x * power).round_ties_even() / power),
            _ => map1::<F, F>(&source, out, move |x| (x / power).round_ties_even() * power),
        }
    }, else if decimals >= 0 {
        with_int!(dtype, &args.op.name, F => map1::<F, F>(&source, out, move |x| x))
    } else {
        Err(Diagnostic::unsupported_dtype(dtype, &args.op.name))
    })
}

fn nan_to_num(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let source = Source::of(args, 0, dtype)?;
    let (largest, smallest) = match dtype {
        DType::Float16 => (65504.0, -65504.0),
        DType::BFloat16 => (f64::from(half::bf16::MAX), f64::from(half::bf16::MIN)),
        DType::Float32 | DType::Complex64 => (f64::from(f32::MAX), f64::from(f32::MIN)),
        _ => (f64::MAX, f64::MIN),
    };
    let nan = args.opt_float(1)?.unwrap_or(0.0);
    let (above, below) = (args.opt_float(2)?.unwrap_or(largest), args.opt_float(3)?.unwrap_or(smallest));
    let finite = move |x: f64| {
        if x.is_nan() {
            nan
        } else if x == f64::INFINITY {
            above
        } else if x == f64::NEG_INFINITY {
            below
        } else {
            x
        }
    };
    if dtype.is_complex() {
        return complex1(&source, out, move |x| Complex::new(finite(x.re), finite(x.im)));
    }
    with_float!(dtype, F => map1::<F, F>(&source, out, move |x| finite(f64::from(x)) as F),
        else with_int!(dtype, &args.op.name, F => map1::<F, F>(&source, out, move |x| x)))
}

fn bitwise_not(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let source = Source::of(args, 0, dtype)?;
    match dtype {
        DType::Bool => map1::<i64, i64>(&source, out, move |x| (x == 0) as i64),
        _ => map1::<i64, i64>(&source, out, move |x| !x),
    }
}

fn logical_not(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let source = Source::of(args, 0, dtype)?;
    with_number!(dtype, &args.op.name, F => map1::<F, Bool8>(&source, out, move |x| Bool8::from(x == F::ZERO)))
}
