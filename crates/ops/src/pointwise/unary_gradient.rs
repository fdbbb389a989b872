//! Gradients of the functions of one number.

use crate::core::gradients::{Backward, Expr};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, PI};
use tracefx_core::{Complex64, Result, Scalar};

type Formulas = Result<Vec<Expr>>;

/// The rules of functions of one number, as formulas of the incoming gradient, the argument and the result.
macro_rules! formulas {
    ($($name:ident |$grad:pat_param, $x:pat_param, $y:pat_param| $formula:expr;)*) => {$(
        pub(crate) fn $name(it: &Backward<'_>) -> Formulas {
            let ($grad, $x, $y) = (it.grad(), it.arg(0), it.result(0));
            Ok(vec![$formula])
        }
    )*};
}

formulas! {
    exp |grad, _, y| grad * y.conj();
    exp2 |grad, _, y| grad * (y.conj() * LN_2);
    expm1 |grad, _, y| grad * (y.conj() + 1.0);
    log |grad, x, _| grad / x.conj();
    log1p |grad, x, _| grad / (x + 1.0).conj();
    log2 |grad, x, _| grad / (x.conj() * LN_2);
    log10 |grad, x, _| grad / (x.conj() * LN_10);
    sqrt |grad, _, y| grad / (y.conj() * 2.0);
    rsqrt |grad, _, y| grad * -0.5 * y.pow(3).conj();
    reciprocal |grad, _, y| -grad * (&y * &y).conj();
    sin |grad, x, _| grad * x.cos().conj();
    cos |grad, x, _| grad * -x.sin().conj();
    tan |grad, _, y| grad * (y.square() + 1.0).conj();
    asin |grad, x, _| grad * (1.0 - x.square()).rsqrt().conj();
    acos |grad, x, _| -grad * (1.0 - x.square()).rsqrt().conj();
    atan |grad, x, _| grad / (x.square() + 1.0).conj();
    sinh |grad, x, _| grad * x.cosh().conj();
    cosh |grad, x, _| grad * x.sinh().conj();
    tanh |grad, _, y| grad * (1.0 - y.square()).conj();
    asinh |grad, x, _| grad * (x.square() + 1.0).rsqrt().conj();
    atanh |grad, x, _| grad / (1.0 - x.square()).conj();
    erf |grad, x, _| grad * (-x.square()).exp() * FRAC_2_SQRT_PI;
    erfc |grad, x, _| grad * (-x.square()).exp() * -FRAC_2_SQRT_PI;
    erfinv |grad, _, y| grad * y.square().exp() / FRAC_2_SQRT_PI;
    lgamma |grad, x, _| grad * x.digamma();
    digamma |grad, x, _| grad * Expr::aten("polygamma", [1.into(), x]);
    sigmoid |grad, _, y| grad * (&y * (1.0 - &y)).conj();
    deg2rad |grad, _, _| grad * (PI / 180.0);
    rad2deg |grad, _, _| grad * (180.0 / PI);
    abs |grad, x, _| grad * x.sgn();
    neg |grad, _, _| -grad;
    square |grad, x, _| grad * (x.conj() * 2.0);
    identity |grad, _, _| grad;
    zero |grad, _, _| grad.zeros_like();
    conj |grad, _, _| grad.conj();
    nan_to_num |grad, x, _| grad * x.unary("isfinite");
}

/// Away from the cuts of a complex number the product of two roots is the root of the product.
pub(crate) fn acosh(it: &Backward<'_>) -> Formulas {
    let x = it.arg(0);
    let root = match it.meta(0)?.dtype.is_complex() {
        true => (&x + 1.0).rsqrt() * (x - 1.0).rsqrt(),
        false => (x.square() - 1.0).rsqrt(),
    };
    Ok(vec![it.grad() * root.conj()])
}

/// Without `eps` NaN outside of `[0, 1]`; with it zero outside of `[eps, 1 - eps]`.
pub(crate) fn logit(it: &Backward<'_>) -> Formulas {
    let (x, eps) = (it.arg(0), it.args.opt_float(1)?);
    let grad = it.grad() / (&x * (1.0 - &x));
    let low = eps.unwrap_or(0.0);
    let is_outside = Expr::aten("logical_or", [x.lt(low), x.gt(1.0 - low)]);
    Ok(vec![grad.masked_fill(&is_outside, if eps.is_some() { 0.0 } else { f64::NAN })])
}

/// Zero where the formula divides by zero.
pub(crate) fn sinc(it: &Backward<'_>) -> Formulas {
    let x = it.arg(0);
    let (scaled, square) = (&x * PI, x.square() * PI);
    let slope = (&scaled * scaled.cos() - scaled.sin()) / &square;
    Ok(vec![it.grad().times_unless(&square.eq(0.0), &slope.conj())])
}

/// A real number keeps its angle; a complex one turns by what is at right angles to it.
pub(crate) fn angle(it: &Backward<'_>) -> Formulas {
    let (grad, z) = (it.grad(), it.arg(0));
    if !it.meta(0)?.dtype.is_complex() {
        return Ok(vec![grad.zeros_like()]);
    }
    let turned = &z * Scalar::Complex(Complex64 { re: 0.0, im: 1.0 });
    Ok(vec![(grad / z.abs().square() * turned).masked_fill(&z.eq(0.0), 0.0)])
}

/// The direction is the same all along a ray: only what is at right angles to it counts.
pub(crate) fn sgn(it: &Backward<'_>) -> Formulas {
    let (grad, x, y) = (it.grad(), it.arg(0), it.result(0));
    if !it.meta(0)?.dtype.is_complex() {
        return Ok(vec![grad.zeros_like()]);
    }
    let length = x.abs();
    let along = (grad.conj() * &y).real() * &y;
    Ok(vec![((grad - along) / &length).masked_fill(&length.eq(0.0), 0.0)])
}
