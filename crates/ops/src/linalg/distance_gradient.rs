//! Gradients of distances between points.

use crate::core::gradients::{Backward, Expr};
use tracefx_core::Result;

type Formulas = Result<Vec<Expr>>;

/// The gradient of the differences of which these are the distances in the `p`-norm.
fn of_difference(grad: &Expr, difference: &Expr, distance: &Expr, p: f64) -> Expr {
    let is_zero = distance.eq(0.0);
    let length = difference.abs();
    if p == 0.0 {
        return difference.zeros_like();
    }
    if p == 1.0 {
        return grad * difference.sign();
    }
    if p == 2.0 {
        return (grad * difference / distance).masked_fill(&is_zero, 0.0);
    }
    if p.is_infinite() {
        return grad * difference.sign() * length.eq(distance);
    }
    let scale = (grad / distance.pow(p - 1.0)).masked_fill(&is_zero, 0.0);
    if p < 2.0 {
        let slope = difference.sign() * length.pow(p - 1.0);
        return scale * if p < 1.0 { slope.masked_fill(&difference.eq(0.0), 0.0) } else { slope };
    }
    scale * (difference * length.pow(p - 2.0))
}

/// Of each two points of two sets.
pub(crate) fn cdist(it: &Backward<'_>) -> Formulas {
    let p = it.args.float(2)?;
    let difference = it.arg(0).unsqueeze(-2) - it.arg(1).unsqueeze(-3);
    let grads = of_difference(&it.grad().unsqueeze(-1), &difference, &it.result(0).unsqueeze(-1), p);
    Ok(vec![grads.sum_dims(&[-2], false), -grads.sum_dims(&[-3], false)])
}

/// Of each two points of one set, in the order of the upper triangle.
pub(crate) fn pdist(it: &Backward<'_>) -> Formulas {
    let (p, x) = (it.args.float(1)?, it.arg(0));
    let n = Expr::from(&it.sizes(0)?[0]);
    let pairs = Expr::aten("triu_indices", [n.clone(), n, 1.into()]);
    let of_pair = |at: i64| Expr::aten("select.int", [pairs.clone(), 0.into(), at.into()]);
    let (first, second) = (of_pair(0), of_pair(1));
    let points = |at: &Expr| Expr::aten("index_select", [x.clone(), 0.into(), at.clone()]);
    let difference = points(&first) - points(&second);
    let grads = of_difference(&it.grad().unsqueeze(-1), &difference, &it.result(0).unsqueeze(-1), p);
    let add = |base: Expr, at: Expr, grads: Expr| Expr::aten("index_add", [base, 0.into(), at, grads]);
    Ok(vec![add(add(x.zeros_like(), first, grads.clone()), second, -grads)])
}
