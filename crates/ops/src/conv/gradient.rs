//! Gradients of convolutions, and of their gradients. A convolution is linear in the input and in the weight, and so are
//! its gradients.

use crate::core::gradients::{Backward, Expr};
use crate::{Traced, Value};
use tracefx_core::Result;

type Formulas = Result<Vec<Expr>>;

pub(crate) fn convolution(it: &Backward<'_>) -> Formulas {
    let bias_sizes = if it.args.is_none(2) { Expr::none() } else { it.sizes(2)?.into() };
    let options = (3..9).map(|index| it.arg(index));
    let call = [it.grad(), it.arg(0), it.arg(1), bias_sizes].into_iter().chain(options);
    let all = Expr::aten("convolution_backward", call.chain([it.mask([0, 1, 2])]));
    Ok(vec![all.clone(), all.result(1), all.result(2)])
}

/// Follows `_convolution_double_backward` of aten/src/ATen/native/Convolution.cpp.
pub(crate) fn convolution_backward(it: &Backward<'_>) -> Formulas {
    let options = || (4..10).map(|index| it.arg(index));
    let (grad, input, weight) = (it.arg(0), it.arg(1), it.arg(2));
    let [of_input, of_weight, of_bias] = [0, 1, 2].map(|index| it.opt_grad(index));
    let forwards = |input: &Expr, weight: &Expr| {
        let call = [input.clone(), weight.clone(), Expr::none()].into_iter().chain(options());
        Expr::aten("convolution", call)
    };
    let backwards = |input: &Expr, weight: &Expr, wanted: usize| {
        let mask = Traced::List((0..3).map(|index| Value::Bool(index == wanted)).collect());
        let call = [grad.clone(), input.clone(), weight.clone(), Expr::none()].into_iter().chain(options());
        Expr::aten("convolution_backward", call.chain([mask.into()])).result(wanted)
    };
    let mut of_grad = vec![];
    of_grad.extend(of_input.as_ref().map(|it| forwards(it, &weight)));
    of_grad.extend(of_weight.as_ref().map(|it| forwards(&input, it)));
    if let Some(of_bias) = of_bias {
        let n_spatial = it.rank(0)?.saturating_sub(2);
        let mut shape = vec![1; n_spatial + 2];
        shape[1] = -1;
        of_grad.push(Expr::aten("reshape", [of_bias, shape[..].into()]).expand(it.sizes(0)?));
    }
    Ok(vec![
        of_grad.into_iter().reduce(|sum, it| sum + it).unwrap_or_else(Expr::none),
        of_weight.map_or_else(Expr::none, |it| backwards(&input, &it, 0)),
        of_input.map_or_else(Expr::none, |it| backwards(&it, &weight, 1)),
    ])
}
