//! Kernels of the modified Bessel functions of the first kind.

use crate::special::in_float64;
use tracefx_exec::Kernel;

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.i0.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, i0))),
    ("aten.special_i0e.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, |x| scaled(0, x)))),
    ("aten.special_i1.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, |x| scaled(1, x) * x.abs().exp()))),
    ("aten.special_i1e.default", Kernel::Fill(|args, outs| in_float64(args, 0, outs, |x| scaled(1, x)))),
];

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
        sum / (2.0 * std::f64::consts::PI * size).sqrt()
    };
    if order == 1 && x < 0.0 { -value } else { value }
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
