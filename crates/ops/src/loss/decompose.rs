//! The gradients of losses, as formulas.

use crate::core::decompositions::{Call, choose, dim, formula, size_list};
use crate::core::gradients::Expr;
use crate::{Cx, Traced, Value};
use tracefx_core::Result;
use tracefx_sym::SymInt;

type Results = Result<Vec<Traced>>;

/// The number of elements that a mean is over, one for other reductions.
fn divisor(cx: &Cx<'_>, args: &Call<'_>, reduction: usize) -> Result<f64> {
    if args.int(reduction)? != 1 {
        return Ok(1.0);
    }
    let n: SymInt = cx.meta(*args.tensor(1)?).sizes.iter().product();
    match n.as_int() {
        Some(n) => Ok(n as f64),
        None => Err(args.unsupported("the decomposition of the gradient of a mean takes sizes that are known")),
    }
}

pub(crate) fn mse(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let norm = 2.0 / divisor(cx, args, 3)?;
    formula(cx, args, |it| Ok((&it[1] - &it[2]) * norm * &it[0]))
}

pub(crate) fn smooth_l1(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let norm = 1.0 / divisor(cx, args, 3)?;
    formula(cx, args, |it| {
        let (x, beta) = (&it[1] - &it[2], &it[4]);
        let grad = &it[0] * norm;
        Ok((&grad * &x / beta).where_else(&x.abs().lt(beta), &(&grad * x.sign())))
    })
}

pub(crate) fn huber(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let norm = 1.0 / divisor(cx, args, 3)?;
    let delta = args.float(4)?;
    formula(cx, args, |it| {
        let (grad, x) = (&it[0], &it[1] - &it[2]);
        let inside = &x * norm * grad;
        let above = (grad * norm * delta).where_else(&x.gt(delta), &inside);
        Ok((grad * -norm * delta).where_else(&x.lt(-delta), &above))
    })
}

pub(crate) fn binary_cross_entropy(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (divisor, has_weight) = (divisor(cx, args, 4)?, !args.is_none(3));
    let is_mean = args.int(4)? == 1;
    formula(cx, args, |it| {
        let (grad, x, target) = (&it[0], &it[1], &it[2]);
        let rest = Expr::aten("sub.Tensor", [1.into(), x.clone()]);
        let variance = Expr::aten("clamp", [x * rest, 1e-12.into()]);
        let mut res = grad * (x - target) / variance;
        if has_weight {
            res = res * &it[3];
        }
        Ok(if is_mean { res / divisor } else { res })
    })
}

pub(crate) fn soft_margin(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let divisor = divisor(cx, args, 3)?;
    let is_mean = args.int(3)? == 1;
    formula(cx, args, |it| {
        let (grad, x, target) = (&it[0], &it[1], &it[2]);
        let res = target * grad * ((target * x).sigmoid() - 1);
        Ok(if is_mean { res / divisor } else { res })
    })
}

/// Minus one at the class of each row, times what comes in for the row.
pub(crate) fn nll_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let [grad, this, target, weight, _, ignored, total] = &args.values[..] else {
        return Err(args.invalid("nll_loss_backward takes seven arguments"));
    };
    let rank = cx.meta_of(this).sizes.len();
    let at = dim(usize::from(rank > 1));
    let mut grad = grad.clone();
    if args.int(4)? == 1 {
        grad = cx.aten("div.Tensor", [&grad, total])?;
    }
    let mut target = target.clone();
    if rank == 1 && !cx.meta_of(&target).sizes.is_empty() {
        target = cx.aten("select.int", [&target, &dim(0), &Value::int(0)])?;
    }
    let target = cx.aten("unsqueeze", [&target, &at])?;
    let is_used = cx.aten("ne.Scalar", [&target, ignored])?;
    let safe = choose(cx, &is_used, &target, &Value::int(0))?;
    let zeros = cx.aten("zeros_like", [this])?;
    let ones = cx.aten("scatter.value", [&zeros, &at, &safe, &Value::Float(-1.0)])?;
    let grad_rank = cx.meta_of(&grad).sizes.len();
    if rank > grad_rank && grad_rank > 0 {
        grad = cx.aten("unsqueeze", [&grad, &at])?;
    }
    if *weight != Value::None {
        let mut shape = vec![SymInt::ONE; rank];
        shape[usize::from(rank > 1)] = cx.meta_of(weight).sizes[0].clone();
        let weight = cx.aten("reshape", [weight, &size_list(&shape)])?;
        grad = cx.aten("mul.Tensor", [&grad, &weight])?;
    }
    let is_used = cx.aten("ne.Scalar", [&target, ignored])?;
    let grad = choose(cx, &is_used, &grad, &Value::int(0))?;
    Ok(vec![cx.aten("mul.Tensor", [&ones, &grad])?])
}
