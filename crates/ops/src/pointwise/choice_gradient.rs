//! Gradients of what chooses between numbers: masks and bounds.

use crate::broadcast;
use crate::core::gradients::{Backward, Expr};
use tracefx_core::Result;
use tracefx_sym::SymInt;

type Formulas = Result<Vec<Expr>>;

fn and(a: &Expr, b: &Expr) -> Expr {
    Expr::aten("logical_and", [a.clone(), b.clone()])
}

fn or(a: &Expr, b: &Expr) -> Expr {
    Expr::aten("logical_or", [a.clone(), b.clone()])
}

/// Not a product with the mask: where the other was chosen, this may be infinite.
pub(crate) fn where_self(it: &Backward<'_>) -> Formulas {
    let (grad, is_not) = (it.grad(), it.arg(0).logical_not());
    Ok(vec![Expr::none(), grad.masked_fill(&is_not, 0.0), grad.masked_fill(&is_not.logical_not(), 0.0)])
}

pub(crate) fn masked_fill(it: &Backward<'_>) -> Formulas {
    let (grad, mask) = (it.grad(), it.arg(1));
    Ok(vec![grad.masked_fill(&mask, 0.0), Expr::none(), grad.where_else_zero(&mask).sum()])
}

/// The elements of the source that were not used get zeros.
pub(crate) fn masked_scatter(it: &Backward<'_>) -> Formulas {
    let (grad, mask, sizes) = (it.grad(), it.arg(1), it.sizes(2)?);
    let used = Expr::aten("masked_select", [grad.clone(), mask.clone()]);
    let n: SymInt = sizes.iter().product();
    let unused = it.arg(2).zeros_like().reshape(std::slice::from_ref(&n));
    let padded = Expr::aten("cat", [Expr::list([used, unused])]);
    Ok(vec![grad.masked_fill(&mask, 0.0), Expr::none(), padded.narrow(0, 0, &n).reshape(sizes)])
}

/// The elements of the mask get theirs back, in their order; the others flow nowhere.
pub(crate) fn masked_scatter_backward(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("masked_scatter", [it.arg(0).zeros_like(), it.arg(1), it.grad()])])
}

/// The selected elements go back to their places.
pub(crate) fn masked_select(it: &Backward<'_>) -> Formulas {
    let sizes = broadcast(it.args, it.sizes(0)?, it.sizes(1)?)?;
    let zeros = it.arg(0).zeros_like().expand(&sizes).contiguous();
    Ok(vec![Expr::aten("masked_scatter", [zeros, it.arg(1).expand(&sizes), it.grad()])])
}

/// Between numbers: nothing flows where a bound is met.
pub(crate) fn clamp(it: &Backward<'_>) -> Formulas {
    let (grad, x) = (it.grad(), it.arg(0));
    let inside = match (it.args.opt_scalar(1)?, it.args.opt_scalar(2)?) {
        (Some(min), Some(max)) => and(&x.gt(min), &x.lt(max)),
        (Some(min), None) => x.gt(min),
        (None, Some(max)) => x.lt(max),
        (None, None) => return Ok(vec![grad]),
    };
    Ok(vec![grad.where_else_zero(&inside)])
}

pub(crate) fn clamp_min(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad().where_else_zero(&it.arg(0).gt(it.arg(1)))])
}

pub(crate) fn clamp_max(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad().where_else_zero(&it.arg(0).lt(it.arg(1)))])
}

/// Where a tensor of bounds is met, half goes to the bound.
pub(crate) fn clamp_tensor(it: &Backward<'_>) -> Formulas {
    let (grad, x) = (it.grad(), it.arg(0));
    let half = &grad * 0.5;
    let bounds = (it.arg(1), it.arg(2));
    match (it.args.is_none(1), it.args.is_none(2)) {
        (true, true) => Ok(vec![grad]),
        (false, true) => clamp_min_tensor(it),
        (true, false) => {
            let split = half.where_else(&x.eq(&bounds.1), &grad);
            let of_max = split.masked_fill(&x.lt(&bounds.1), 0.0);
            Ok(vec![split.masked_fill(&x.gt(&bounds.1), 0.0), Expr::none(), of_max])
        }
        (false, false) => {
            let (min, max) = bounds;
            // Bounds that meet leave nothing to share, and where they cross the upper one decides.
            let (is_interval, is_crossed) = (min.lt(&max), min.gt(&max));
            let (at_min, at_max) = (and(&x.eq(&min), &is_interval), and(&x.eq(&max), &is_interval));
            let is_valid = min.le(&max);
            let below = and(&x.lt(&min), &is_valid);
            let above = or(&and(&x.gt(&max), &is_valid), &is_crossed);
            let split = half.where_else(&or(&at_min, &at_max), &grad);
            Ok(vec![
                split.masked_fill(&or(&x.lt(&min), &x.gt(&max)), 0.0),
                split.where_else_zero(&or(&below, &at_min)),
                split.where_else_zero(&or(&above, &at_max)),
            ])
        }
    }
}

/// [`clamp_tensor`] with a lower bound alone.
pub(crate) fn clamp_min_tensor(it: &Backward<'_>) -> Formulas {
    let (grad, x, min) = (it.grad(), it.arg(0), it.arg(1));
    let split = (&grad * 0.5).where_else(&x.eq(&min), &grad);
    Ok(vec![split.masked_fill(&x.lt(&min), 0.0), split.masked_fill(&x.gt(&min), 0.0)])
}

/// [`clamp_tensor`] with an upper bound alone.
pub(crate) fn clamp_max_tensor(it: &Backward<'_>) -> Formulas {
    let (grad, x, max) = (it.grad(), it.arg(0), it.arg(1));
    let split = (&grad * 0.5).where_else(&x.eq(&max), &grad);
    Ok(vec![split.masked_fill(&x.gt(&max), 0.0), split.masked_fill(&x.lt(&max), 0.0)])
}
