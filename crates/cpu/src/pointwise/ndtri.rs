//! Kernels of the normal distribution and of entropies.

use crate::pointwise::special::in_float64;
use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};
use tracefx_exec::Kernel;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.special_ndtr.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, ndtr))),
    ("aten.special_ndtri.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, ndtri))),
    ("aten.special_log_ndtr.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, log_ndtr))),
    ("aten.special_erfcx.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, erfcx))),
    ("aten.special_entr.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, entr))),
];

fn ndtr(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

fn log_ndtr(x: f64) -> f64 {
    if x < -1.0 {
        (erfcx(-x * FRAC_1_SQRT_2) / 2.0).ln() - x * x / 2.0
    } else {
        (-libm::erfc(x * FRAC_1_SQRT_2) / 2.0).ln_1p()
    }
}

/// `exp(x * x) * erfc(x)`: the product, and for large numbers the asymptotic series of `erfc`.
fn erfcx(x: f64) -> f64 {
    if x < 25.0 {
        return (x * x).exp() * libm::erfc(x);
    }
    let z = 1.0 / (2.0 * x * x);
    let series = 1.0 + z * (-1.0 + z * (3.0 + z * (-15.0 + z * 105.0)));
    series / (x * PI.sqrt())
}

fn entr(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if x > 0.0 {
        -x * x.ln()
    } else if x == 0.0 {
        0.0
    } else {
        f64::NEG_INFINITY
    }
}

/// The inverse of [`ndtr`]: the tail of the smaller side, whose logarithm gives a first guess, and Newton's method on the
/// logarithm of the tail, which is nearly a parabola.
fn ndtri(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return if p == 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let tail = p.min(1.0 - p);
    let log_tail = tail.ln();
    // x is below zero here: the tail on the left.
    let mut x = if tail > 0.1 { (tail - 0.5) * (2.0 * PI).sqrt() } else { -(-2.0 * log_tail).sqrt() };
    for _ in 0..20 {
        let log = log_ndtr(x);
        // The derivative of the logarithm: the density over the tail.
        let slope = (-x * x / 2.0 - log).exp() / (SQRT_2 * PI.sqrt());
        let step = (log - log_tail) / slope;
        x -= step;
        if step.abs() <= 1e-16 * x.abs() {
            break;
        }
    }
    if p <= 0.5 { x } else { -x }
}
