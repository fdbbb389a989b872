//! Gradients of losses of classes, and of reductions of segments.

use crate::core::gradients::{Backward, Expr};
use tracefx_core::Result;

type Formulas = Result<Vec<Expr>>;

fn likelihood(it: &Backward<'_>, op: &'static str) -> Formulas {
    let arguments = (0..5).map(|index| it.arg(index));
    Ok(vec![Expr::aten(op, [it.grad()].into_iter().chain(arguments).chain([it.result(1)]))])
}

pub(crate) fn nll_loss(it: &Backward<'_>) -> Formulas {
    likelihood(it, "nll_loss_backward")
}

pub(crate) fn nll_loss2d(it: &Backward<'_>) -> Formulas {
    likelihood(it, "nll_loss2d_backward")
}

pub(crate) fn multi_margin_loss(it: &Backward<'_>) -> Formulas {
    let arguments = (0..6).map(|index| it.arg(index));
    Ok(vec![Expr::aten("multi_margin_loss_backward", [it.grad()].into_iter().chain(arguments))])
}

pub(crate) fn multilabel_margin_loss(it: &Backward<'_>) -> Formulas {
    let call = [it.grad(), it.arg(0), it.arg(1), it.arg(2), it.result(1)];
    Ok(vec![Expr::aten("multilabel_margin_loss_backward", call)])
}

pub(crate) fn ctc_loss(it: &Backward<'_>) -> Formulas {
    let is_tensor = it.op().schema.overload == "Tensor";
    let op = if is_tensor { "_ctc_loss_backward.Tensor" } else { "_ctc_loss_backward" };
    let arguments = (0..4).map(|index| it.arg(index));
    let known = [it.result(0), it.result(1), it.arg(4), it.arg(5)];
    Ok(vec![Expr::aten(op, [it.grad()].into_iter().chain(arguments).chain(known))])
}

pub(crate) fn segment_reduce(it: &Backward<'_>) -> Formulas {
    let value = |index: usize| it.args.values[index].clone();
    let options = [("lengths", value(2)), ("offsets", value(4)), ("axis", value(5)), ("initial", value(7))];
    let call = [it.grad(), it.result(0), it.arg(0), it.arg(1)];
    Ok(vec![Expr::aten_with("_segment_reduce_backward", call, &options)])
}
