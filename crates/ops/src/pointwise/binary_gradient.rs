//! Gradients of arithmetic of two and three numbers.

use crate::core::gradients::{Backward, Expr};
use tracefx_core::{Result, Scalar};

type Formulas = Result<Vec<Expr>>;

/// A scalar argument, conjugated.
fn conj_of(it: &Backward<'_>, index: usize) -> Result<Scalar> {
    let scalar = it.args.scalar(index)?;
    Ok(Expr::from(scalar).conj().number().unwrap_or(scalar))
}

pub(crate) fn add(it: &Backward<'_>) -> Formulas {
    let grad = it.grad();
    Ok(vec![grad.clone(), grad.times(conj_of(it, 2)?)])
}

pub(crate) fn sub(it: &Backward<'_>) -> Formulas {
    let grad = it.grad();
    Ok(vec![grad.clone(), -grad.times(conj_of(it, 2)?)])
}

pub(crate) fn rsub(it: &Backward<'_>) -> Formulas {
    let grad = it.grad();
    Ok(vec![-grad.times(conj_of(it, 2)?), grad])
}

pub(crate) fn mul(it: &Backward<'_>) -> Formulas {
    let (grad, x, y) = (it.grad(), it.arg(0), it.arg(1));
    Ok(vec![&grad * y.conj(), grad * x.conj()])
}

pub(crate) fn div(it: &Backward<'_>) -> Formulas {
    let (grad, y, quotient) = (it.grad(), it.arg(1), it.result(0));
    // By the quotient and not by the square of the divisor, which may overflow.
    Ok(vec![&grad / y.conj(), -grad * (quotient / y).conj()])
}

/// Of a rounded quotient none flows.
pub(crate) fn div_mode(it: &Backward<'_>) -> Formulas {
    match it.args.opt_str(2)? {
        None => div(it),
        Some(_) => Ok(vec![it.grad().zeros_like(), it.grad().zeros_like()]),
    }
}

fn modulo(it: &Backward<'_>, rounding: &'static str) -> Formulas {
    let mode = [("rounding_mode", crate::Value::Str(rounding.into()))];
    let quotient = Expr::aten_with("div.Tensor_mode", [it.arg(0), it.arg(1)], &mode);
    Ok(vec![it.grad(), -it.grad() * quotient])
}

pub(crate) fn remainder(it: &Backward<'_>) -> Formulas {
    modulo(it, "floor")
}

pub(crate) fn fmod(it: &Backward<'_>) -> Formulas {
    modulo(it, "trunc")
}

/// The gradient of the base: zero where the exponent is, even where the other factor is infinite.
fn pow_base(grad: &Expr, base: &Expr, exponent: &Expr) -> Expr {
    match exponent.number() {
        Some(number) if number.to_complex() == Scalar::Int(0).to_complex() => grad.zeros_like(),
        Some(Scalar::Complex(_)) | None => {
            let slope = exponent * base.pow(exponent - 1.0);
            let is_zero = exponent.eq(0.0);
            grad.times_unless(&is_zero, &slope.conj())
        }
        Some(number) => grad * (base.pow(number.to_f64() - 1.0) * number).conj(),
    }
}

/// The gradient of the exponent: zero where the base is, unless the exponent is negative.
fn pow_exponent(grad: &Expr, base: &Expr, exponent: &Expr, power: &Expr, is_complex: bool) -> Expr {
    let zero_base = match base.number() {
        Some(number) if number.to_complex() == Scalar::Int(0).to_complex() => None,
        Some(number) => {
            let complex = number.to_complex();
            let logarithm = match (complex.im == 0.0 && complex.re > 0.0, is_complex) {
                (true, _) => complex.re.ln().into(),
                // The principal branch; of a real power of a negative number there is none.
                (false, true) => Scalar::Complex(tracefx_core::Complex64 {
                    re: complex.re.hypot(complex.im).ln(),
                    im: complex.im.atan2(complex.re),
                })
                .into(),
                (false, false) => Expr::from(f64::NAN),
            };
            return grad * (power * logarithm).conj();
        }
        None => Some(base.eq(0.0)),
    };
    let is_flat = match (zero_base, is_complex) {
        (None, true) => exponent.unary("real").ge(0.0),
        (None, false) => exponent.ge(0.0),
        (Some(is_zero), true) => Expr::aten("logical_and", [is_zero, exponent.unary("real").ge(0.0)]),
        (Some(is_zero), false) => match exponent.number() {
            Some(number) if number.to_f64() >= 0.0 => is_zero,
            Some(_) => return grad * (power * base.log()).conj(),
            None => Expr::aten("logical_and", [is_zero, exponent.ge(0.0)]),
        },
    };
    let slope = match base.number() {
        Some(_) => power * f64::NEG_INFINITY,
        None => power * base.log(),
    };
    grad.times_unless(&is_flat, &slope.conj())
}

pub(crate) fn pow(it: &Backward<'_>) -> Formulas {
    let (grad, base, exponent) = (it.grad(), it.arg(0), it.arg(1));
    let is_complex = it.result_meta(0)?.dtype.is_complex();
    let of_base = if base.number().is_some() { Expr::none() } else { pow_base(&grad, &base, &exponent) };
    let of_exponent = match exponent.number() {
        Some(_) => Expr::none(),
        None => pow_exponent(&grad, &base, &exponent, &it.result(0), is_complex),
    };
    Ok(vec![of_base, of_exponent])
}

/// Half of the gradient to each of two equal numbers.
fn larger(it: &Backward<'_>, is_less: fn(&Expr, &Expr) -> Expr) -> Formulas {
    let (grad, x, y) = (it.grad(), it.arg(0), it.arg(1));
    let split = (&grad * 0.5).where_else(&x.eq(&y), &grad);
    Ok(vec![split.masked_fill(&is_less(&x, &y), 0.0), split.masked_fill(&is_less(&y, &x), 0.0)])
}

pub(crate) fn maximum(it: &Backward<'_>) -> Formulas {
    larger(it, |x, y| x.lt(y))
}

pub(crate) fn minimum(it: &Backward<'_>) -> Formulas {
    larger(it, |x, y| x.gt(y))
}

/// As [`larger`], but a NaN gives way to the other number.
fn larger_number(
    it: &Backward<'_>,
    is_chosen: fn(&Expr, &Expr) -> Expr,
    is_more: fn(&Expr, &Expr) -> Expr,
) -> Formulas {
    let (grad, x, y) = (it.grad(), it.arg(0), it.arg(1));
    let split = (&grad * 0.5).where_else(&x.eq(&y), &grad);
    let or_nan = |it: Expr| Expr::aten("logical_or", [it, y.isnan()]);
    Ok(vec![split.where_else_zero(&or_nan(is_chosen(&x, &y))), split.masked_fill(&or_nan(is_more(&x, &y)), 0.0)])
}

pub(crate) fn fmax(it: &Backward<'_>) -> Formulas {
    larger_number(it, |x, y| x.ge(y), |x, y| x.gt(y))
}

pub(crate) fn fmin(it: &Backward<'_>) -> Formulas {
    larger_number(it, |x, y| x.le(y), |x, y| x.lt(y))
}

/// Zero at the origin, where there is no direction.
pub(crate) fn atan2(it: &Backward<'_>) -> Formulas {
    let (grad, x, y) = (it.grad(), it.arg(0), it.arg(1));
    let square = &x * &x + &y * &y;
    let scaled = (grad / &square).masked_fill(&square.eq(0.0), 0.0);
    Ok(vec![&scaled * y, scaled * -x])
}

pub(crate) fn hypot(it: &Backward<'_>) -> Formulas {
    let (grad, length) = (it.grad(), it.result(0));
    Ok(vec![&grad * (it.arg(0) / &length), grad * (it.arg(1) / length)])
}

pub(crate) fn copysign(it: &Backward<'_>) -> Formulas {
    let (grad, x) = (it.grad(), it.arg(0));
    let ratio = (it.result(0) / &x).masked_fill(&x.eq(0.0), 0.0);
    Ok(vec![&grad * ratio, grad.zeros_like()])
}

pub(crate) fn nextafter(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad().where_else_zero(&it.arg(0).ne(it.arg(1))), it.grad().zeros_like()])
}

/// `x * f(y)` that is zero wherever `x` is; `pole` is where the function is minus infinity. The operators are those of a tensor and of a
/// number as `y`.
fn x_times(it: &Backward<'_>, [of_tensor, of_number]: [&'static str; 2], pole: f64) -> Formulas {
    let (grad, x, y) = (it.grad(), it.arg(0), it.arg(1));
    let op = if y.number().is_some() { of_number } else { of_tensor };
    let factor = Expr::aten(op, [grad.clone(), y.clone()]);
    let of_x = match (x.number(), y.number()) {
        (Some(_), _) => Expr::none(),
        (None, Some(number)) if number.to_f64() > pole => factor,
        (None, Some(_)) => factor.masked_fill(&x.eq(0.0), 0.0),
        (None, None) => factor.masked_fill(&Expr::aten("logical_and", [x.eq(0.0), y.le(pole)]), 0.0),
    };
    let of_y = if y.number().is_some() { Expr::none() } else { grad * x / (y - pole) };
    Ok(vec![of_x, of_y])
}

pub(crate) fn xlogy(it: &Backward<'_>) -> Formulas {
    x_times(it, ["xlogy.Tensor", "xlogy.Scalar_Other"], 0.0)
}

pub(crate) fn xlog1py(it: &Backward<'_>) -> Formulas {
    x_times(it, ["special_xlog1py", "special_xlog1py.other_scalar"], -1.0)
}

pub(crate) fn logaddexp(it: &Backward<'_>) -> Formulas {
    let (grad, x, y) = (it.grad(), it.arg(0), it.arg(1));
    Ok(vec![&grad / ((&y - &x).exp() + 1.0).conj(), grad / ((x - y).exp() + 1.0).conj()])
}

pub(crate) fn logaddexp2(it: &Backward<'_>) -> Formulas {
    let (grad, x, y) = (it.grad(), it.arg(0), it.arg(1));
    let exp2 = |it: Expr| it.unary("exp2");
    Ok(vec![&grad / (exp2(&y - &x) + 1.0), grad / (exp2(x - y) + 1.0)])
}

pub(crate) fn addcmul(it: &Backward<'_>) -> Formulas {
    let (grad, x, y, value) = (it.grad(), it.arg(1), it.arg(2), it.args.scalar(3)?);
    Ok(vec![grad.clone(), &grad * y.times(value).conj(), grad * x.times(value).conj()])
}

pub(crate) fn addcdiv(it: &Backward<'_>) -> Formulas {
    let (grad, x, y, value) = (it.grad(), it.arg(1), it.arg(2), it.args.scalar(3)?);
    let inverse = y.reciprocal().times(value);
    let slope = (x / (&y * &y)).times(value);
    Ok(vec![grad.clone(), &grad * inverse.conj(), -grad * slope.conj()])
}

pub(crate) fn lerp(it: &Backward<'_>) -> Formulas {
    let (grad, start, end, weight) = (it.grad(), it.arg(0), it.arg(1), it.arg(2));
    let rest = match weight.number() {
        Some(Scalar::Complex(it)) => Scalar::Complex(tracefx_core::Complex64 { re: 1.0 - it.re, im: -it.im }).into(),
        Some(number) => Expr::from(1.0 - number.to_f64()),
        None => 1.0 - &weight,
    };
    Ok(vec![&grad * rest.conj(), &grad * weight.conj(), grad * (end - start).conj()])
}
