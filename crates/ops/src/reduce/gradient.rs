//! Gradients of reductions.

use crate::core::gradients::{Backward, Expr};
use crate::{Value, reduced_dims};
use tracefx_core::Result;
use tracefx_sym::SymInt;

type Formulas = Result<Vec<Expr>>;

/// Over which dimensions a call reduces.
struct Reduced {
    /// The dimensions, counted from the front.
    dims: Vec<i64>,
    keepdim: bool,
    /// The sizes of the argument.
    sizes: Vec<SymInt>,
}

impl Reduced {
    /// By the arguments `dim` and `keepdim` of the schema, where there are such.
    fn of(it: &Backward<'_>) -> Result<Self> {
        let sizes = it.sizes(0)?.to_vec();
        let is_reduced = reduced_dims(it.args, sizes.len())?;
        let dims = (0..sizes.len() as i64).filter(|&dim| is_reduced[dim as usize]).collect();
        let keepdim = it.args.position("keepdim").is_some_and(|at| matches!(it.args.values[at], Value::Bool(true)));
        Ok(Reduced { dims, keepdim, sizes })
    }

    /// A result with the dimensions of size one that were not kept.
    fn restored(&self, it: &Expr) -> Expr {
        if self.keepdim {
            return it.clone();
        }
        self.dims.iter().fold(it.clone(), |it, &dim| it.unsqueeze(dim))
    }

    /// A result repeated for each element that it was made of.
    fn expanded(&self, it: &Expr) -> Expr {
        self.restored(it).expand(&self.sizes)
    }

    /// How many elements a result was made of.
    fn count(&self) -> SymInt {
        self.dims.iter().map(|&dim| &self.sizes[dim as usize]).product()
    }

    /// The sum over the dimensions, which are kept.
    fn sum(&self, it: &Expr) -> Expr {
        if self.sizes.is_empty() { it.clone() } else { it.sum_dims(&self.dims, true) }
    }

    /// The mean over the dimensions, which are kept.
    fn mean(&self, it: &Expr) -> Expr {
        if self.sizes.is_empty() {
            return it.clone();
        }
        Expr::aten("mean.dim", [it.clone(), self.dims[..].into(), true.into()])
    }
}

pub(crate) fn sum(it: &Backward<'_>) -> Formulas {
    Ok(vec![Reduced::of(it)?.expanded(&it.grad())])
}

pub(crate) fn nansum(it: &Backward<'_>) -> Formulas {
    Ok(vec![Reduced::of(it)?.expanded(&it.grad()).masked_fill(&it.arg(0).isnan(), 0.0)])
}

pub(crate) fn mean(it: &Backward<'_>) -> Formulas {
    let reduced = Reduced::of(it)?;
    Ok(vec![reduced.expanded(&it.grad()) / Expr::from(&reduced.count())])
}

/// The gradient in equal parts to all elements that are the extremum.
pub(crate) fn extremum(it: &Backward<'_>) -> Formulas {
    let reduced = Reduced::of(it)?;
    Ok(vec![evenly(&reduced, &it.arg(0), &it.grad(), &it.result(0))])
}

/// As [`extremum`]; where that is NaN, to all that are NaN.
pub(crate) fn chosen(it: &Backward<'_>) -> Formulas {
    let reduced = Reduced::of(it)?;
    let (x, y) = (it.arg(0), it.result(0));
    let is_chosen = Expr::aten(
        "logical_or",
        [x.eq(reduced.restored(&y)), Expr::aten("logical_and", [x.isnan(), reduced.restored(&y).isnan()])],
    );
    Ok(vec![shared(&reduced, &is_chosen, &it.grad())])
}

fn evenly(reduced: &Reduced, x: &Expr, grad: &Expr, extremum: &Expr) -> Expr {
    shared(reduced, &x.eq(reduced.restored(extremum)), grad)
}

fn shared(reduced: &Reduced, is_chosen: &Expr, grad: &Expr) -> Expr {
    reduced.restored(grad) / reduced.sum(is_chosen) * is_chosen
}

pub(crate) fn aminmax(it: &Backward<'_>) -> Formulas {
    let reduced = Reduced::of(it)?;
    let part = |index| it.opt_grad(index).map(|grad| evenly(&reduced, &it.arg(0), &grad, &it.result(index)));
    Ok(vec![match (part(0), part(1)) {
        (Some(low), Some(high)) => low + high,
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => Expr::none(),
    }])
}

/// The gradient to the elements whose positions are the second result.
pub(crate) fn selected(it: &Backward<'_>) -> Formulas {
    let reduced = Reduced::of(it)?;
    let dim = reduced.dims.first().copied().unwrap_or(0);
    Ok(vec![scattered(it, dim, &reduced.restored(&it.grad()), &reduced.restored(&it.result(1)))])
}

/// As [`selected`] of operators whose results have as many dimensions as the argument.
pub(crate) fn reordered(it: &Backward<'_>) -> Formulas {
    let at = it.args.position("dim").unwrap_or(1);
    Ok(vec![scattered(it, it.dim(at)?, &it.grad(), &it.result(1))])
}

fn scattered(it: &Backward<'_>, dim: i64, grad: &Expr, indices: &Expr) -> Expr {
    Expr::aten("scatter_add", [zeros_for(it, grad), dim.into(), indices.clone(), grad.clone()])
}

/// Zeros of the first argument's sizes and the gradient's dtype.
fn zeros_for(it: &Backward<'_>, grad: &Expr) -> Expr {
    let sizes = it.sizes(0).map_or(&[][..], |it| it);
    Expr::aten("new_zeros", [grad.clone(), sizes.into()])
}

/// The product of the others is taken without dividing, for an element may be zero: of those before times of those
/// behind.
pub(crate) fn prod(it: &Backward<'_>) -> Formulas {
    let (grad, mut x) = (it.grad(), it.arg(0));
    let sizes = it.sizes(0)?;
    let dtype = it.result_meta(0)?.dtype;
    if it.meta(0)?.dtype != dtype {
        x = Expr::aten_with("_to_copy", [x], &[("dtype", Value::DType(dtype))]);
    }
    if sizes.is_empty() {
        return Ok(vec![grad]);
    }
    let reduced = Reduced::of(it)?;
    if it.args.position("dim").is_none() {
        let n: SymInt = sizes.iter().product();
        let flat = x.reshape(std::slice::from_ref(&n));
        let others = others(&flat, 0, &n).reshape(sizes);
        return Ok(vec![grad * others.conj()]);
    }
    let dim = reduced.dims[0];
    let others = others(&x, dim, &sizes[dim as usize]);
    Ok(vec![reduced.restored(&grad) * others.conj()])
}

fn others(x: &Expr, dim: i64, size: &SymInt) -> Expr {
    if size.as_int() == Some(0) {
        return x.ones_like();
    }
    let flip = |it: &Expr| Expr::aten("flip", [it.clone(), Expr::from(&[dim][..])]);
    // The products of those before: ones in front, and the last left out.
    let before = |it: &Expr| {
        let one = it.narrow(dim, 0, 1).ones_like();
        let rest = it.narrow(dim, 0, &(size - &SymInt::ONE));
        let shifted = Expr::aten("cat", [Expr::list([one, rest]), dim.into()]);
        Expr::aten("cumprod", [shifted, dim.into()])
    };
    before(x) * flip(&before(&flip(x)))
}

/// What a variance is corrected by, in front of the sum of squares: `1 / (n - correction)`.
fn variance(it: &Backward<'_>, grad: &Expr, reduced: &Reduced) -> Result<Expr> {
    let x = it.arg(0);
    let correction = match it.args.position("correction").map(|at| it.args.opt_float(at)) {
        Some(correction) => correction?.unwrap_or(1.0),
        None => match it.args.position("unbiased").map(|at| it.args.bool(at)) {
            Some(unbiased) => f64::from(u8::from(unbiased?)),
            None => 1.0,
        },
    };
    let count = reduced.count();
    let scale = match count.as_int() {
        Some(n) => Expr::from(2.0 / (n as f64 - correction)),
        None => {
            let free = &count - &SymInt::from(correction as i64);
            2.0 / Expr::from(&free)
        }
    };
    Ok(reduced.restored(grad) * scale * (&x - reduced.mean(&x)))
}

pub(crate) fn var(it: &Backward<'_>) -> Formulas {
    Ok(vec![variance(it, &it.grad(), &Reduced::of(it)?)?])
}

/// The gradient of a variance by that of its root, which is zero where the root is.
fn of_root(grad: &Expr, root: &Expr) -> Expr {
    (grad / (root * 2.0)).masked_fill(&root.eq(0.0), 0.0)
}

pub(crate) fn std(it: &Backward<'_>) -> Formulas {
    Ok(vec![variance(it, &of_root(&it.grad(), &it.result(0)), &Reduced::of(it)?)?])
}

fn with_mean(it: &Backward<'_>, grad: Option<Expr>) -> Formulas {
    let reduced = Reduced::of(it)?;
    let spread = grad.map(|grad| variance(it, &grad, &reduced)).transpose()?;
    let mean = it.opt_grad(1).map(|grad| reduced.expanded(&grad) / Expr::from(&reduced.count()));
    Ok(vec![match (spread, mean) {
        (Some(spread), Some(mean)) => spread + mean,
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => Expr::none(),
    }])
}

pub(crate) fn var_mean(it: &Backward<'_>) -> Formulas {
    with_mean(it, it.opt_grad(0))
}

pub(crate) fn std_mean(it: &Backward<'_>) -> Formulas {
    with_mean(it, it.opt_grad(0).map(|grad| of_root(&grad, &it.result(0))))
}

pub(crate) fn logsumexp(it: &Backward<'_>) -> Formulas {
    let reduced = Reduced::of(it)?;
    let (x, y) = (it.arg(0), reduced.restored(&it.result(0)));
    let weight = (x - y).exp();
    Ok(vec![reduced.restored(&it.grad()) * weight.conj()])
}

/// Zero where the norm is, and for the largest and smallest in equal parts.
pub(crate) fn norm(it: &Backward<'_>) -> Formulas {
    let order = match (it.args.position("ord"), it.args.position("p")) {
        (Some(at), _) | (None, Some(at)) => it.args.opt_float(at)?.unwrap_or(2.0),
        (None, None) => 2.0,
    };
    let reduced = Reduced::of(it)?;
    let mut x = it.arg(0);
    let dtype = it.result_meta(0)?.dtype;
    let given = it.meta(0)?.dtype;
    if !given.is_complex() && given != dtype {
        x = Expr::aten_with("_to_copy", [x], &[("dtype", Value::DType(dtype))]);
    }
    let (grad, y) = (reduced.restored(&it.grad()), reduced.restored(&it.result(0)));
    if order == 0.0 {
        return Ok(vec![x.zeros_like()]);
    }
    if order == 1.0 {
        return Ok(vec![grad * x.sgn()]);
    }
    let is_zero = y.eq(0.0);
    if order == 2.0 {
        return Ok(vec![grad * (x / &y).masked_fill(&is_zero, 0.0)]);
    }
    let length = x.abs();
    if order.is_infinite() {
        let is_extreme =
            Expr::aten("logical_or", [length.eq(&y), Expr::aten("logical_and", [length.isnan(), y.isnan()])]);
        return Ok(vec![x.sgn() * (grad / reduced.sum(&is_extreme) * is_extreme)]);
    }
    let direction = match order {
        it if it < 1.0 => (x.sgn() * length.pow(order - 1.0)).masked_fill(&x.eq(0.0), 0.0),
        it if it < 2.0 => x.sgn() * length.pow(order - 1.0),
        _ => x * length.pow(order - 2.0),
    };
    let scale = (grad / y.pow(order - 1.0)).masked_fill(&is_zero, 0.0);
    Ok(vec![direction * scale])
}
