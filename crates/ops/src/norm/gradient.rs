//! Gradients of normalisation.

use crate::core::gradients::{Backward, Expr};
use tracefx_core::Result;
use tracefx_sym::SymInt;

type Formulas = Result<Vec<Expr>>;

pub(crate) fn layer_norm(it: &Backward<'_>) -> Formulas {
    let call = [it.grad(), it.arg(0), it.arg(1), it.result(1), it.result(2), it.arg(2), it.arg(3), it.mask([0, 2, 3])];
    let all = Expr::aten("native_layer_norm_backward", call);
    Ok(vec![all.clone(), Expr::none(), all.result(1), all.result(2)])
}

pub(crate) fn group_norm(it: &Backward<'_>) -> Formulas {
    let sizes = [3, 4, 5, 6].map(|index| it.arg(index));
    let call = [it.grad(), it.arg(0), it.result(1), it.result(2), it.arg(1)].into_iter().chain(sizes);
    let all = Expr::aten("native_group_norm_backward", call.chain([it.mask([0, 1, 2])]));
    Ok(vec![through_statistics(it, all.clone())?, all.result(1), all.result(2)])
}

/// The gradient of the input of a group normalisation, with what comes in through the mean and the inverse deviation.
fn through_statistics(it: &Backward<'_>, mut sum: Expr) -> Result<Expr> {
    let (n_batch, n_channels, n_points) = (it.args.sym_int(3)?, it.args.sym_int(4)?, it.args.sym_int(5)?);
    let group = SymInt::from(it.args.int(6)?);
    let n = (n_channels * n_points).floor_div(&group);
    let groups = [n_batch.clone(), group, n.clone()];
    let each = |it: Expr| it.unsqueeze(-1);
    if let Some(grad) = it.opt_grad(1) {
        let share = each(grad) / &n;
        sum = sum + share.expand(&groups).reshape(it.sizes(0)?);
    }
    if let Some(grad) = it.opt_grad(2) {
        let distance = it.arg(0).reshape(&groups) - each(it.result(1));
        let slope = each(grad * it.result(2).pow(3)) * distance / &n;
        sum = sum - slope.reshape(it.sizes(0)?);
    }
    Ok(sum)
}

/// The gradients of a batch normalisation with these running statistics, in training or not.
fn batch_norm_of(it: &Backward<'_>, running: [Expr; 2], is_training: bool, eps: usize) -> Formulas {
    let [mean, var] = running;
    let call = [
        it.grad(),
        it.arg(0),
        it.arg(1),
        mean,
        var,
        it.result(1),
        it.result(2),
        is_training.into(),
        it.arg(eps),
        it.mask([0, 1, 2]),
    ];
    let all = Expr::aten("native_batch_norm_backward", call);
    Ok(vec![all.clone(), all.result(1), all.result(2)])
}

pub(crate) fn batch_norm(it: &Backward<'_>) -> Formulas {
    batch_norm_of(it, [it.arg(3), it.arg(4)], it.args.bool(5)?, 7)
}

pub(crate) fn batch_norm_no_stats(it: &Backward<'_>) -> Formulas {
    batch_norm_of(it, [Expr::none(), Expr::none()], it.args.bool(3)?, 5)
}

pub(crate) fn batch_norm_no_training(it: &Backward<'_>) -> Formulas {
    batch_norm_of(it, [it.arg(3), it.arg(4)], false, 6)
}

pub(crate) fn batch_norm_with_update(it: &Backward<'_>) -> Formulas {
    batch_norm_of(it, [it.arg(3), it.arg(4)], true, 6)
}
