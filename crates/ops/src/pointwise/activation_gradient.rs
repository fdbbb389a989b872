//! Gradients of activations, of softmax and of dropout.

use crate::core::gradients::{Backward, Expr};
use crate::{Traced, Value};
use tracefx_core::Result;

type Formulas = Result<Vec<Expr>>;

/// Rules that call an operator of the backward pass with the incoming gradient, the input, and these arguments after it.
macro_rules! of_input {
    ($($name:ident $op:literal $($index:literal)*;)*) => {$(
        pub(crate) fn $name(it: &Backward<'_>) -> Formulas {
            Ok(vec![Expr::aten($op, [it.grad(), it.arg(0), $(it.arg($index)),*])])
        }
    )*};
}

of_input! {
    hardtanh "hardtanh_backward" 1 2;
    threshold "threshold_backward" 1;
    silu "silu_backward";
    mish "mish_backward";
    softplus "softplus_backward" 1 2;
    softshrink "softshrink_backward" 1;
    hardshrink "hardshrink_backward" 1;
    hardsigmoid "hardsigmoid_backward";
    hardswish "hardswish_backward";
}

/// The scales at which SELU networks normalise themselves, as in aten/src/ATen/native/Activation.cpp.
const SELU_ALPHA: f64 = 1.6732632423543772848170429916717;
const SELU_SCALE: f64 = 1.0507009873554804934193349852946;

pub(crate) fn relu(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("threshold_backward", [it.grad(), it.result(0), 0.into()])])
}

pub(crate) fn leaky_relu(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("leaky_relu_backward", [it.grad(), it.arg(0), it.arg(1), false.into()])])
}

fn elu_of(it: &Backward<'_>, [alpha, scale, input_scale]: [Expr; 3]) -> Formulas {
    let call = [it.grad(), alpha, scale, input_scale, false.into(), it.arg(0)];
    Ok(vec![Expr::aten("elu_backward", call)])
}

pub(crate) fn elu(it: &Backward<'_>) -> Formulas {
    elu_of(it, [it.arg(1), it.arg(2), it.arg(3)])
}

pub(crate) fn celu(it: &Backward<'_>) -> Formulas {
    elu_of(it, [it.arg(1), 1.into(), (1.0 / it.args.float(1)?).into()])
}

pub(crate) fn selu(it: &Backward<'_>) -> Formulas {
    elu_of(it, [SELU_ALPHA.into(), SELU_SCALE.into(), 1.into()])
}

/// Through the decomposition, an infinity of the formula that is not taken would give NaN.
pub(crate) fn elu_backward(it: &Backward<'_>) -> Formulas {
    let (scale, input_scale) = (it.args.float(2)?, it.args.float(3)?);
    let (grad, x) = (it.arg(0), it.arg(5));
    let of_grad = [it.grad(), it.arg(1), it.arg(2), it.arg(3), it.arg(4), it.arg(5)];
    let mut slope = it.grad() * grad * input_scale;
    if !it.args.bool(4)? {
        slope = slope * (it.args.float(1)? * scale * input_scale) * (&x * input_scale).exp();
    }
    let none = Expr::none;
    let of_x = slope.where_else_zero(&x.lt(0));
    Ok(vec![Expr::aten("elu_backward", of_grad), none(), none(), none(), none(), of_x])
}

/// Rules of what lets the incoming gradient through or not: linear in it, and constant between the bounds.
macro_rules! shrunk {
    ($($name:ident $op:literal;)*) => {$(
        pub(crate) fn $name(it: &Backward<'_>) -> Formulas {
            Ok(vec![Expr::aten($op, [it.grad(), it.arg(1), it.arg(2)]), it.arg(1).zeros_like()])
        }
    )*};
}

shrunk! {
    softshrink_backward "softshrink_backward";
    hardshrink_backward "hardshrink_backward";
}

/// As that of [`elu_backward`].
pub(crate) fn softplus_backward(it: &Backward<'_>) -> Formulas {
    let (grad, beta) = (it.arg(0), it.args.float(2)?);
    let of_grad = Expr::aten("softplus_backward", [it.grad(), it.arg(1), it.arg(2), it.arg(3)]);
    let x = it.arg(1) * beta;
    let sigmoid = x.sigmoid();
    let slope = it.grad() * grad * &sigmoid * (1.0 - sigmoid) * beta;
    Ok(vec![of_grad, slope.masked_fill(&x.ge(it.arg(3)), 0.0)])
}

/// As that of [`elu_backward`].
pub(crate) fn hardswish_backward(it: &Backward<'_>) -> Formulas {
    let (grad, x) = (it.arg(0), it.arg(1));
    let of_grad = Expr::aten("hardswish_backward", [it.grad(), x.clone()]);
    let is_between = Expr::aten("logical_and", [x.gt(-3.0), x.lt(3.0)]);
    Ok(vec![of_grad, (it.grad() * grad / 3.0).where_else_zero(&is_between)])
}

pub(crate) fn gelu(it: &Backward<'_>) -> Formulas {
    let approximate = [("approximate", it.args.values[1].clone())];
    Ok(vec![Expr::aten_with("gelu_backward", [it.grad(), it.arg(0)], &approximate)])
}

pub(crate) fn log_sigmoid(it: &Backward<'_>) -> Formulas {
    let buffer = (-it.arg(0).abs()).exp();
    Ok(vec![Expr::aten("log_sigmoid_backward", [it.grad(), it.arg(0), buffer])])
}

pub(crate) fn log_sigmoid_forward(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("log_sigmoid_backward", [it.grad(), it.arg(0), it.result(1)])])
}

pub(crate) fn prelu_kernel(it: &Backward<'_>) -> Formulas {
    let both = Expr::aten("_prelu_kernel_backward", [it.grad(), it.arg(0), it.arg(1)]);
    Ok(vec![both.clone(), both.result(1)])
}

pub(crate) fn rrelu_with_noise(it: &Backward<'_>) -> Formulas {
    let call = [it.grad(), it.arg(0), it.result(1), it.arg(2), it.arg(3), it.arg(4), false.into()];
    Ok(vec![Expr::aten("rrelu_with_noise_backward", call)])
}

/// The gradient of a softmax, from its result.
fn of_result(it: &Backward<'_>, op: &'static str) -> Formulas {
    let dtype: Traced = Value::DType(it.meta(0)?.dtype);
    Ok(vec![Expr::aten(op, [it.grad(), it.result(0), it.arg(1), dtype.into()])])
}

pub(crate) fn softmax(it: &Backward<'_>) -> Formulas {
    of_result(it, "_softmax_backward_data")
}

pub(crate) fn log_softmax(it: &Backward<'_>) -> Formulas {
    of_result(it, "_log_softmax_backward_data")
}

/// What was kept was scaled up.
pub(crate) fn native_dropout(it: &Backward<'_>) -> Formulas {
    let p = it.args.float(1)?;
    let is_training = !it.args.is_none(2) && it.args.bool(2)?;
    let scale = match is_training {
        true if p == 1.0 => 0.0,
        true => 1.0 / (1.0 - p),
        false => 1.0,
    };
    Ok(vec![it.grad() * it.result(1) * scale])
}
