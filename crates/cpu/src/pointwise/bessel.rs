//! Kernels of the functions of Bessel and Airy.

use crate::pointwise::special::in_float64;
use tracefx_exec::Kernel;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.i0.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, i0))),
    ("aten.special_i0e.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, |x| scaled(0, x)))),
    ("aten.special_i1.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, |x| scaled(1, x) * x.abs().exp()))),
    ("aten.special_i1e.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, |x| scaled(1, x)))),
    ("aten.special_modified_bessel_i0.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, i0))),
    (
        "aten.special_modified_bessel_i1.default",
        Kernel::Fill(|args, outs| in_float64(args, 0, outs, |x| scaled(1, x) * x.abs().exp())),
    ),
    (
        "aten.special_modified_bessel_k0.default",
        Kernel::Fill(|args, outs| in_float64(args, 0, outs, |x| second_kind(0, x) * (-x).exp())),
    ),
    (
        "aten.special_modified_bessel_k1.default",
        Kernel::Fill(|args, outs| in_float64(args, 0, outs, |x| second_kind(1, x) * (-x).exp())),
    ),
    (
        "aten.special_scaled_modified_bessel_k0.default",
        Kernel::Fill(|args, outs| in_float64(args, 0, outs, |x| second_kind(0, x))),
    ),
    (
        "aten.special_scaled_modified_bessel_k1.default",
        Kernel::Fill(|args, outs| in_float64(args, 0, outs, |x| second_kind(1, x))),
    ),
    ("aten.special_bessel_j0.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, libm::j0))),
    ("aten.special_bessel_j1.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, libm::j1))),
    ("aten.special_bessel_y0.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, libm::y0))),
    ("aten.special_bessel_y1.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, libm::y1))),
    ("aten.special_airy_ai.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, airy))),
    ("aten.special_spherical_bessel_j0.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, spherical_j0))),
];

/// `sin(x) / x`, with its limits at zero and far away.
fn spherical_j0(x: f64) -> f64 {
    if x == 0.0 {
        1.0
    } else if x.is_infinite() {
        0.0
    } else {
        x.sin() / x
    }
}

/// The function of order zero.
pub(crate) fn i0(x: f64) -> f64 {
    scaled(0, x) * x.abs().exp()
}

/// The function of this order, zero or one, times `exp(-abs(x))`.
///
/// Up to 30 its power series, `(x/2)^order * sum((x/2)^2k / (k! (k + order)!))`, which has positive terms alone; beyond,
/// Hankel's series in `1 / x`, whose smallest term is below the precision there.
fn scaled(order: i32, x: f64) -> f64 {
    let size = x.abs();
    if x.is_nan() {
        return x;
    }
    if size.is_infinite() {
        return 0.0;
    }
    let value = if size <= 30.0 {
        let square = size * size / 4.0;
        let (mut term, mut sum) = (1.0, 1.0);
        for k in 1..200 {
            term *= square / f64::from(k * (k + order));
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        sum * (size / 2.0).powi(order) * (-size).exp()
    } else {
        let (mut term, mut sum) = (1.0, 1.0);
        for k in 1..30 {
            let odd = f64::from(2 * k - 1);
            term *= (odd * odd - f64::from(4 * order * order)) / (8.0 * f64::from(k) * size);
            sum += term;
        }
        // The root of the product, which is not finite near the end of the range.
        sum / ((2.0 * std::f64::consts::PI).sqrt() * size.sqrt())
    };
    if order == 1 && x < 0.0 { -value } else { value }
}

/// The modified function of the second kind of this order, zero or one, times `exp(x)`.
///
/// Below two its series, whose logarithm is that of the function of the first kind; beyond, its integral.
fn second_kind(order: i32, x: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x >= 2.0 {
        return integral(f64::from(order), x);
    }
    let square = x * x / 4.0;
    let log = (x / 2.0).ln();
    // Harmonic numbers, of `k` and of the next.
    let (mut term, mut sum, mut harmonic) = (1.0, 0.0, 0.0);
    for k in 0..30 {
        let k = f64::from(k);
        if order == 0 {
            sum += term * harmonic;
            term *= square / ((k + 1.0) * (k + 1.0));
        } else {
            sum += term * (2.0 * harmonic + 1.0 / (k + 1.0) - 2.0 * EULER);
            term *= square / ((k + 1.0) * (k + 2.0));
        }
        harmonic += 1.0 / (k + 1.0);
    }
    let first_kind = scaled(order, x) * x.exp();
    let value = if order == 0 { sum - (log + EULER) * first_kind } else { 1.0 / x + log * first_kind - x / 4.0 * sum };
    value * x.exp()
}

/// The modified function of the second kind of any order, times `exp(x)`, of an `x` that is not small: the integral of
/// `exp(-x * (cosh(t) - 1)) * cosh(order * t)`, whose sums at equal steps converge faster than any power of the step.
fn integral(order: f64, x: f64) -> f64 {
    // Hankel's series needs less for large arguments.
    if x > 200.0 {
        let odd = 4.0 * order * order;
        let (mut term, mut series) = (1.0, 1.0);
        for k in 1..20 {
            let k = f64::from(k);
            let root = 2.0 * k - 1.0;
            term *= (odd - root * root) / (8.0 * k * x);
            series += term;
        }
        return series * (std::f64::consts::PI / (2.0 * x)).sqrt();
    }
    // What is left is as narrow as the root of `1 / x`.
    let step = 0.125f64.min(0.5 / x.sqrt());
    let mut sum = 0.5;
    for k in 1..100 {
        let t = f64::from(k) * step;
        let exponent = x * (t.cosh() - 1.0);
        if exponent > 745.0 {
            break;
        }
        sum += (-exponent).exp() * (order * t).cosh();
    }
    sum * step
}

/// Around zero the power series, on the left its asymptotic waves, and on the right the function of Bessel that it is made
/// of. Of infinities, PyTorch says NaN.
fn airy(x: f64) -> f64 {
    use std::f64::consts::{FRAC_PI_4, PI};
    if !x.is_finite() {
        return f64::NAN;
    }
    let zeta = 2.0 / 3.0 * x.abs() * x.abs().sqrt();
    if x > 2.0 {
        return (x / 3.0).sqrt() / PI * (-zeta).exp() * integral(1.0 / 3.0, zeta);
    }
    if x < -8.0 {
        let (mut term, mut even, mut odd) = (1.0f64, 0.0, 0.0);
        for k in 0..16 {
            let sign = if k % 4 < 2 { 1.0 } else { -1.0 };
            if k % 2 == 0 {
                even += sign * term
            } else {
                odd += sign * term
            }
            let k = f64::from(k) + 1.0;
            term *= (6.0 * k - 5.0) * (6.0 * k - 3.0) * (6.0 * k - 1.0) / (216.0 * k * (2.0 * k - 1.0) * zeta);
        }
        let (sine, cosine) = (zeta + FRAC_PI_4).sin_cos();
        return (sine * even - cosine * odd) / (PI.sqrt() * x.abs().sqrt().sqrt());
    }
    let cube = x * x * x;
    let (mut f, mut g) = (1.0, x);
    let (mut f_sum, mut g_sum) = (f, g);
    for k in 0..60 {
        let k = 3.0 * f64::from(k);
        f *= cube / ((k + 2.0) * (k + 3.0));
        g *= cube / ((k + 3.0) * (k + 4.0));
        f_sum += f;
        g_sum += g;
    }
    0.355_028_053_887_817_2 * f_sum - 0.258_819_403_792_806_8 * g_sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are PyTorch's.
    #[test]
    fn both_series_agree() {
        let near = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 1e-14, "{got} {want}");
        near(i0(1.0), 1.2660658777520082);
        near(scaled(1, -1.0), -0.2079104153497085);
        near(scaled(0, 30.0), 0.0731459464822373);
        near(scaled(0, 30.0000001), 0.0731459463592757);
        near(scaled(1, 50.0), 0.0559931238928954);
    }
}
