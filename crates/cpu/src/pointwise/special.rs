//! Special functions that Rust's floats do not have, and how they are mapped: float32 goes through float64, so that it rounds
//! once. Most are joined to operators in [`unary`](super::unary).

#![allow(clippy::excessive_precision, reason = "coefficients stand as their source gives them")]

use crate::numeric::map::{Source, fill1, fill2};
use tracefx_core::{DType, DTypeKind, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[("aten.frexp.Tensor", Kernel::Fill(frexp))];

/// Fills a result with a function of one number that is computed in float64 whatever the dtype.
pub(super) fn in_float64(
    args: &Args<'_, Tensor>,
    index: usize,
    outs: &[Tensor],
    f: impl Fn(f64) -> f64 + Sync,
) -> Result<()> {
    let dtype = outs[0].dtype();
    if dtype.kind() != DTypeKind::Float {
        return Err(Diagnostic::unsupported_dtype(dtype, &args.op.name));
    }
    // Called through a pointer, for the walk shall not be compiled again for each function.
    let f: &(dyn Fn(f64) -> f64 + Sync) = &f;
    fill1::<f64, f64>(&Source::of(args, index, dtype)?, &outs[0], f)
}

/// As [`in_float64`], of the first two arguments.
pub(super) fn in_float64_of_two(args: &Args<'_, Tensor>, outs: &[Tensor], f: fn(f64, f64) -> f64) -> Result<()> {
    let dtype = outs[0].dtype();
    if dtype.kind() != DTypeKind::Float {
        return Err(Diagnostic::unsupported_dtype(dtype, &args.op.name));
    }
    fill2::<f64, f64>(&Source::of(args, 0, dtype)?, &Source::of(args, 1, dtype)?, &outs[0], f)
}

fn frexp(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let this = Source::of(args, 0, DType::Float64)?;
    fill1::<f64, f64>(&this, &outs[0], |it| libm::frexp(it).0)?;
    fill1::<f64, f64>(&this, &outs[1], |it| if it.is_finite() { f64::from(libm::frexp(it).1) } else { 0.0 })
}

/// Functions beyond those of `f32` and `f64` themselves.
pub(crate) trait Special: Sized {
    fn erfc(self) -> Self;
    fn erfinv(self) -> Self;
    fn lgamma(self) -> Self;
    fn digamma(self) -> Self;
}

impl Special for f64 {
    fn erfc(self) -> Self {
        libm::erfc(self)
    }

    fn erfinv(self) -> Self {
        erfinv(self)
    }

    fn lgamma(self) -> Self {
        // The poles, where libm agrees, and minus infinity, where PyTorch says infinity.
        if self.is_infinite() { f64::INFINITY } else { libm::lgamma(self) }
    }

    fn digamma(self) -> Self {
        digamma(self)
    }
}

impl Special for f32 {
    fn erfc(self) -> Self {
        libm::erfc(self.into()) as f32
    }

    fn erfinv(self) -> Self {
        erfinv(self.into()) as f32
    }

    fn lgamma(self) -> Self {
        Special::lgamma(f64::from(self)) as f32
    }

    fn digamma(self) -> Self {
        digamma(self.into()) as f32
    }
}

/// Rational approximations of the central and the outer range, as in `calc_erfinv` of aten/src/ATen/native/Math.h, and
/// two steps of Newton's method, which double the digits each.
fn erfinv(y: f64) -> f64 {
    const A: [f64; 4] = [0.886226899, -1.645349621, 0.914624893, -0.140543331];
    const B: [f64; 4] = [-2.118377725, 1.442710462, -0.329097515, 0.012229801];
    const C: [f64; 4] = [-1.970840454, -1.624906493, 3.429567803, 1.641345311];
    const D: [f64; 2] = [3.543889200, 1.637067800];
    let size = y.abs();
    if size.is_nan() || size > 1.0 {
        return f64::NAN;
    }
    if size == 1.0 {
        return f64::INFINITY.copysign(y);
    }
    let mut x = if size <= 0.7 {
        let z = y * y;
        let above = ((A[3] * z + A[2]) * z + A[1]) * z + A[0];
        let below = (((B[3] * z + B[2]) * z + B[1]) * z + B[0]) * z + 1.0;
        y * above / below
    } else {
        let z = (-((1.0 - size) / 2.0).ln()).sqrt();
        let above = ((C[3] * z + C[2]) * z + C[1]) * z + C[0];
        let below = (D[1] * z + D[0]) * z + 1.0;
        (above / below).copysign(y)
    };
    for _ in 0..2 {
        // Near one, the difference of the error functions is exact only as the difference of their complements.
        let error = if size <= 0.7 { libm::erf(x) - y } else { ((1.0 - size) - libm::erfc(x.abs())) * y.signum() };
        x -= error / (std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp());
    }
    x
}

/// Reflection to the right half, recurrence to beyond 10, and the asymptotic series there, as in `calc_digamma` of
/// aten/src/ATen/native/Math.h.
fn digamma(x: f64) -> f64 {
    use std::f64::consts::PI;
    const SERIES: [f64; 7] = [
        8.33333333333333333333E-2,
        -2.10927960927960927961E-2,
        7.57575757575757575758E-3,
        -4.16666666666666666667E-3,
        3.96825396825396825397E-3,
        -8.33333333333333333333E-3,
        8.33333333333333333333E-2,
    ];
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        // The tangent of the fraction alone, for that of large numbers loses its digits.
        let fraction = x.fract();
        return digamma(1.0 - x) - PI / (PI * fraction).tan();
    }
    let mut x = x;
    let mut result = 0.0;
    while x < 10.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    let tail = if x < 1.0e17 {
        let z = 1.0 / (x * x);
        z * SERIES.iter().fold(0.0, |sum, &it| sum * z + it)
    } else {
        0.0
    };
    result + x.ln() - 0.5 / x - tail
}
