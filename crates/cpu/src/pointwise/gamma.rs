//! Kernels of the incomplete gamma functions, of zeta and polygamma, and of their kin.

#![allow(clippy::excessive_precision, reason = "the numbers stand here as in their source")]

use crate::pointwise::special::{Special, in_float64, in_float64_of_two};
use std::f64::consts::PI;
use tracefx_core::{DType, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

const ZETA: Kernel = Kernel::Fill(|args, outs| in_float64_of_two(args, outs, zeta));
const XLOG1PY: Kernel = Kernel::Fill(|args, outs| in_float64_of_two(args, outs, xlog1py));

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.igamma.default", Kernel::Fill(|args, outs| in_float64_of_two(args, outs, |a, x| incomplete(a, x).0))),
    ("aten.igammac.default", Kernel::Fill(|args, outs| in_float64_of_two(args, outs, |a, x| incomplete(a, x).1))),
    ("aten.special_zeta.default", ZETA),
    ("aten.special_zeta.other_scalar", ZETA),
    ("aten.special_zeta.self_scalar", ZETA),
    ("aten.special_xlog1py.default", XLOG1PY),
    ("aten.special_xlog1py.other_scalar", XLOG1PY),
    ("aten.special_xlog1py.self_scalar", XLOG1PY),
    ("aten.polygamma.default", Kernel::Fill(polygamma)),
];

fn xlog1py(x: f64, y: f64) -> f64 {
    if y.is_nan() {
        y
    } else if x == 0.0 {
        0.0
    } else {
        x * y.ln_1p()
    }
}

fn polygamma(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let n = args.int(0)?;
    let order = n as f64;
    let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
    match n {
        0 => in_float64(args, 1, outs, Special::digamma),
        1 if outs[0].dtype() == DType::Float64 => in_float64(args, 1, outs, |x| trigamma(x, (PI * x).sin())),
        // At the poles, what the sine is rounded to is all that there is.
        1 => in_float64(args, 1, outs, |x| trigamma(x, f64::from((std::f32::consts::PI * x as f32).sin()))),
        _ => in_float64(args, 1, outs, |x| sign * libm::tgamma(order + 1.0) * zeta(order + 1.0, x)),
    }
}

/// Reflection to the right half, and zeta there. `sine` is that of `pi * x`.
fn trigamma(x: f64, sine: f64) -> f64 {
    if x == f64::INFINITY {
        return 0.0;
    }
    if x >= 0.5 {
        return zeta(2.0, x);
    }
    PI * PI / (sine * sine) - zeta(2.0, 1.0 - x)
}

/// The sum of `(q + k)^-x` over all k from zero on: some terms, and the formula of Euler and Maclaurin for the others.
fn zeta(x: f64, q: f64) -> f64 {
    /// (2k)! / B2k, where B2k are the Bernoulli numbers.
    const FACTORS: [f64; 12] = [
        12.0,
        -720.0,
        30240.0,
        -1209600.0,
        47900160.0,
        -1.8924375803183791606e9,
        7.47242496e10,
        -2.950130727918164224e12,
        1.1646782814350067249e14,
        -4.5979787224074726105e15,
        1.8152105401943546773e17,
        -7.1661652561756670113e18,
    ];
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 || x.is_nan() || q.is_nan() {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if x != x.floor() {
            return f64::NAN;
        }
    }
    let mut sum = q.powf(-x);
    let (mut a, mut b, mut i) = (q, 0.0, 0);
    while i < 9 || a <= 9.0 {
        i += 1;
        a += 1.0;
        b = a.powf(-x);
        sum += b;
        if (b / sum).abs() < f64::EPSILON / 2.0 {
            return sum;
        }
    }
    sum += b * a / (x - 1.0) - 0.5 * b;
    let (mut factor, mut k) = (1.0, 0.0);
    for divisor in FACTORS {
        factor *= x + k;
        b /= a;
        let term = factor * b / divisor;
        sum += term;
        if (term / sum).abs() < f64::EPSILON / 2.0 {
            break;
        }
        k += 1.0;
        factor *= x + k;
        b /= a;
        k += 1.0;
    }
    sum
}

/// The lower and the upper incomplete gamma function over the whole one: below `a + 1` the power series of the lower one,
/// beyond the continued fraction of the upper one (Lentz's method).
fn incomplete(a: f64, x: f64) -> (f64, f64) {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 || (a == 0.0 && x == 0.0) || (a.is_infinite() && x.is_infinite())
    {
        return (f64::NAN, f64::NAN);
    }
    if a == 0.0 || x.is_infinite() {
        return (1.0, 0.0);
    }
    if x == 0.0 || a.is_infinite() {
        return (0.0, 1.0);
    }
    let front = (a * x.ln() - x - a.lgamma()).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut k) = (1.0 / a, 1.0 / a, a);
        for _ in 0..100_000 {
            k += 1.0;
            term *= x / k;
            sum += term;
            if term < sum * f64::EPSILON / 2.0 {
                break;
            }
        }
        let lower = front * sum;
        return (lower, 1.0 - lower);
    }
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..100_000 {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        let not_zero = |it: f64| if it.abs() < TINY { TINY } else { it };
        d = 1.0 / not_zero(an * d + b);
        c = not_zero(b + an / c);
        h *= d * c;
        if (d * c - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    let upper = front * h;
    (1.0 - upper, upper)
}
