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

/// A row of factors, as the gradient of its products sees it.
struct Factors {
    /// How many zeros there are up to each one.
    n_zeros: Expr,
    is_first_zero: Expr,
    /// The factors with one in the place of the first zero.
    others: Expr,
    products_of_others: Expr,
    /// The gradient up to the first zero: before it a product is divided by the factor, at it the products are those of the others.
    up_to_zero: Expr,
}

impl Factors {
    fn new(grad: &Expr, x: &Expr, products: &Expr, dim: i64) -> Factors {
        let is_zero = x.eq(0.0);
        let n_zeros = Expr::aten("cumsum", [is_zero.clone(), dim.into()]);
        let is_first_zero = Expr::aten("logical_and", [is_zero.clone(), n_zeros.eq(1)]);
        let others = x.masked_fill(&is_first_zero, 1.0);
        let products_of_others = Expr::aten("cumprod", [others.clone(), dim.into()]);
        let sums = |products: &Expr| from_the_end("cumsum", &(grad * products.conj()), dim);
        // Quotients by zero are not selected below, but the gradient of this formula would multiply by them: zeros divide as ones.
        let before = sums(products) / x.masked_fill(&is_zero, 1.0).conj();
        let at = sums(&products_of_others).where_else_zero(&is_first_zero);
        let up_to_zero = before.where_else(&n_zeros.eq(0), &at);
        Factors { n_zeros, is_first_zero, others, products_of_others, up_to_zero }
    }
}

/// Behind the first zero it is that zero times the gradient that there is without it: this is zero, and its gradient in the first
/// zero is not.
pub(crate) fn cumprod(it: &Backward<'_>) -> Formulas {
    let (x, dim) = (it.arg(0), it.dim(1)?);
    let dtype = Value::DType(it.meta(0)?.dtype);
    let grad = Expr::aten_with("_to_copy", [it.grad()], &[("dtype", dtype)]);
    let all = Factors::new(&grad, &x, &it.result(0), dim);
    let without = Factors::new(&grad, &all.others, &all.products_of_others, dim).up_to_zero;
    let zero = x.where_else_zero(&all.is_first_zero).sum_dims(&[dim], true);
    // Zero times what overflowed would be NaN, and PyTorch's first gradient is zero there.
    let is_lost = Expr::aten("isfinite", [without.clone()]).logical_not();
    let behind = zero.conj() * without.masked_fill(&is_lost, 0.0);
    let is_up_to_zero = Expr::aten("logical_or", [all.n_zeros.eq(0), all.is_first_zero]);
    Ok(vec![all.up_to_zero.where_else(&is_up_to_zero, &behind)])
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
