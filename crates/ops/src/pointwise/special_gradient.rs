//! Gradients of special functions.

use crate::core::gradients::{Backward, Expr};
use std::f64::consts::{FRAC_2_SQRT_PI, PI};
use tracefx_core::Result;

type Formulas = Result<Vec<Expr>>;

pub(crate) fn i0(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad() * it.arg(0).unary("special_i1")])
}

pub(crate) fn i0e(it: &Backward<'_>) -> Formulas {
    let x = it.arg(0);
    let slope = x.unary("special_i1e") - x.sgn() * it.result(0);
    Ok(vec![it.grad() * slope])
}

/// Half at zero, where the formula divides by zero.
fn first_order(it: &Backward<'_>, slope: fn(&Expr, &Expr) -> Expr) -> Formulas {
    let x = it.arg(0);
    let is_tiny = x.abs().le(f64::EPSILON);
    let slope = slope(&x.masked_fill(&is_tiny, f64::EPSILON), &it.result(0));
    Ok(vec![it.grad() * slope.masked_fill(&is_tiny, 0.5)])
}

pub(crate) fn i1(it: &Backward<'_>) -> Formulas {
    first_order(it, |x, y| x.unary("i0") - y / x)
}

pub(crate) fn i1e(it: &Backward<'_>) -> Formulas {
    first_order(it, |x, y| x.unary("special_i0e") - y * (x.sgn() + x.reciprocal()))
}

pub(crate) fn ndtr(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad() * (it.arg(0).square() * -0.5).exp() / (2.0 * PI).sqrt()])
}

pub(crate) fn ndtri(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad() * (it.result(0).square() * 0.5).exp() * (2.0 * PI).sqrt()])
}

pub(crate) fn log_ndtr(it: &Backward<'_>) -> Formulas {
    let exponent = it.result(0) + it.arg(0).square() * 0.5;
    Ok(vec![it.grad() * (-exponent).exp() / (2.0 * PI).sqrt()])
}

pub(crate) fn erfcx(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad() * (it.arg(0) * it.result(0) * 2.0 - FRAC_2_SQRT_PI)])
}

pub(crate) fn entr(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad() * -(it.arg(0).log() + 1.0)])
}

fn gamma_density(it: &Backward<'_>) -> Expr {
    let (a, x) = (it.arg(0), it.arg(1));
    (x.log() * (&a - 1.0) - &x - a.unary("lgamma")).exp()
}

pub(crate) fn igamma(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.missing(0), it.grad() * gamma_density(it)])
}

pub(crate) fn igammac(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.missing(0), -it.grad() * gamma_density(it)])
}

pub(crate) fn zeta(it: &Backward<'_>) -> Formulas {
    let (s, q) = (it.arg(0), it.arg(1));
    let next = match s.number() {
        Some(number) => Expr::from(number.to_f64() + 1.0),
        None => &s + 1.0,
    };
    let slope = match s.number() {
        Some(_) => Expr::aten("special_zeta.self_scalar", [next, q]),
        None => Expr::aten("special_zeta", [next, q]),
    };
    Ok(vec![it.missing(0), -it.grad() * (slope * s)])
}

pub(crate) fn polygamma(it: &Backward<'_>) -> Formulas {
    let next = it.args.int(0)? + 1;
    Ok(vec![Expr::none(), it.grad() * Expr::aten("polygamma", [next.into(), it.arg(1)])])
}

pub(crate) fn frexp(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad() / it.result(1).unary("exp2")])
}
