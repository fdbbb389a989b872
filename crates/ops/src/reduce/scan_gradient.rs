//! Gradients of running sums and products.

use crate::Value;
use crate::core::gradients::{Backward, Expr};
use tracefx_core::{DType, Result};

type Formulas = Result<Vec<Expr>>;

fn flip(it: &Expr, dim: i64) -> Expr {
    Expr::aten("flip", [it.clone(), Expr::from(&[dim][..])])
}

/// A running reduction from the end.
fn from_the_end(op: &'static str, it: &Expr, dim: i64) -> Expr {
    flip(&Expr::aten(op, [flip(it, dim), dim.into()]), dim)
}

pub(crate) fn cumsum(it: &Backward<'_>) -> Formulas {
    Ok(vec![from_the_end("cumsum", &it.grad(), it.dim(1)?)])
}

/// Before the first zero a product is divided by the element; at the first zero the products are taken as if it were one;
/// behind it all are zero.
pub(crate) fn cumprod(it: &Backward<'_>) -> Formulas {
    let (x, dim) = (it.arg(0), it.dim(1)?);
    let dtype = Value::DType(it.meta(0)?.dtype);
    let grad = Expr::aten_with("_to_copy", [it.grad()], &[("dtype", dtype)]);
    let is_zero = x.eq(0.0);
    let n_zeros = Expr::aten("cumsum", [is_zero.clone(), dim.into()]);
    let is_first = Expr::aten("logical_and", [is_zero.clone(), n_zeros.eq(1)]);
    let without = Expr::aten("cumprod", [x.masked_fill(&is_first, 1.0), dim.into()]);
    let sums = |products: &Expr| from_the_end("cumsum", &(&grad * products.conj()), dim);
    // Zeros are no divisors, though what is divided by them is not taken: the gradient of this formula would multiply with the quotient.
    let before = sums(&it.result(0)) / x.masked_fill(&is_zero, 1.0).conj();
    let at = sums(&without).where_else_zero(&is_first);
    Ok(vec![before.where_else(&n_zeros.eq(0), &at)])
}

pub(crate) fn cumulative_extremum(it: &Backward<'_>) -> Formulas {
    let (grad, dim) = (it.grad(), it.dim(1)?);
    Ok(vec![Expr::aten("scatter_add", [grad.zeros_like(), dim.into(), it.result(1), grad])])
}

/// In logarithms, those of the positive and of the negative gradients apart.
pub(crate) fn logcumsumexp(it: &Backward<'_>) -> Formulas {
    let (grad, x, y, dim) = (it.grad(), it.arg(0), it.result(0), it.dim(1)?);
    let spread = |log: Expr| (from_the_end("logcumsumexp", &(log - &y), dim) + &x).exp();
    let dtype = it.meta(0)?.dtype;
    if dtype.is_complex() {
        return Ok(vec![spread(grad.conj().log()).conj()]);
    }
    let lowest = match dtype {
        DType::Float64 => f64::MIN,
        DType::Float16 => -65504.0,
        DType::BFloat16 => -3.3895313892515355e38,
        _ => f64::from(f32::MIN),
    };
    let log = grad.abs().log();
    let positive = spread(log.masked_fill(&grad.le(0.0), lowest));
    let negative = spread(log.masked_fill(&grad.ge(0.0), lowest));
    Ok(vec![positive - negative])
}
