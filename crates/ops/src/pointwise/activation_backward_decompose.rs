//! The gradients of activations, as formulas.

use crate::Cx;
use crate::core::decompositions;
use crate::core::decompositions::{Call, formula};
use crate::core::gradients::Expr;
use crate::{Traced, Value};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};
use tracefx_core::Result;

type Results = Result<Vec<Traced>>;

fn choose(condition: Expr, yes: impl Into<Expr>, no: impl Into<Expr>) -> Expr {
    let (yes, no) = (yes.into(), no.into());
    let op = match (yes.number().is_some(), no.number().is_some()) {
        (true, true) => "where.Scalar",
        (true, false) => "where.ScalarSelf",
        (false, true) => "where.ScalarOther",
        (false, false) => "where.self",
    };
    Expr::aten(op, [condition, yes, no])
}

/// One minus this.
fn rest(it: &Expr) -> Expr {
    Expr::aten("sub.Tensor", [1.into(), it.clone()])
}

fn both(a: Expr, b: Expr) -> Expr {
    Expr::aten("bitwise_and.Tensor", [a, b])
}

pub(crate) fn tanh(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    formula(cx, args, |it| Ok(&it[0] * rest(&(&it[1] * &it[1])).conj()))
}

pub(crate) fn sigmoid(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    formula(cx, args, |it| Ok(&it[0] * (&it[1] * rest(&it[1])).conj()))
}

pub(crate) fn softplus(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    formula(cx, args, |it| {
        let [grad, x, beta, threshold] = it else { return Err(args.invalid("four arguments")) };
        let z = (x * beta).exp();
        Ok(choose((x * beta).gt(threshold), grad, grad * &z / (&z + 1.0)))
    })
}

pub(crate) fn elu(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (scale, input_scale) = (args.float(2)?, args.float(3)?);
    let low = args.float(1)? * scale;
    let is_result = args.bool(4)?;
    formula(cx, args, |it| {
        let (grad, x) = (&it[0], &it[5]);
        let steep =
            if is_result { grad * input_scale * (x + low) } else { grad * input_scale * low * (x * input_scale).exp() };
        Ok(choose(x.le(0), steep, grad * scale))
    })
}

pub(crate) fn hardsigmoid(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    formula(cx, args, |it| {
        let (grad, x) = (&it[0], &it[1]);
        Ok(choose(both(x.gt(-3.0), x.lt(3.0)), grad * (1.0 / 6.0), 0.0))
    })
}

pub(crate) fn hardtanh(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    formula(cx, args, |it| {
        let [grad, x, min, max] = it else { return Err(args.invalid("four arguments")) };
        let is_outside = Expr::aten("bitwise_or.Tensor", [x.le(min), x.ge(max)]);
        Ok(choose(is_outside, 0.0, grad))
    })
}

pub(crate) fn hardswish(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    formula(cx, args, |it| {
        let (grad, x) = (&it[0], &it[1]);
        Ok(choose(x.le(-3), 0.0, choose(x.lt(3), grad * (x / 3 + 0.5), grad)))
    })
}

pub(crate) fn threshold(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let [grad, x, threshold] = &args.values[..] else { return Err(args.invalid("three arguments")) };
    let is_low = cx.aten("le.Scalar", [x, threshold])?;
    Ok(vec![decompositions::choose(cx, &is_low, &Value::int(0), grad)?])
}

pub(crate) fn leaky_relu(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    formula(cx, args, |it| {
        let (grad, x) = (&it[0], &it[1]);
        Ok(choose(x.gt(0), grad, grad * &it[2]))
    })
}

pub(crate) fn gelu(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let is_tanh = args.str(2)? == "tanh";
    formula(cx, args, |it| {
        let (grad, x) = (&it[0], &it[1]);
        if !is_tanh {
            let cdf = ((x * FRAC_1_SQRT_2).erf() + 1) * 0.5;
            let pdf = (x * x * -0.5).exp() * (FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5);
            return Ok(grad * (cdf + x * pdf));
        }
        let (beta, kappa) = (SQRT_2 * FRAC_2_SQRT_PI * 0.5, 0.044715);
        let square = x * x;
        let tanh = ((x + (&square * x) * kappa) * beta).tanh();
        let left = x * 0.5;
        let right = &tanh + 1;
        let of_tanh = rest(&(&tanh * &tanh));
        let of_inner = (&square * (3.0 * kappa) + 1) * beta;
        Ok(grad * (right * 0.5 + left * of_tanh * of_inner))
    })
}

pub(crate) fn mish(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    formula(cx, args, |it| {
        let (grad, x) = (&it[0], &it[1]);
        let tanh = x.unary("softplus").tanh();
        let slope = x * x.sigmoid() * rest(&(&tanh * &tanh));
        Ok(grad * (&tanh + slope))
    })
}

pub(crate) fn silu(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    formula(cx, args, |it| {
        let (grad, x) = (&it[0], &it[1]);
        let sigmoid = x.sigmoid();
        Ok(grad * &sigmoid * (x * rest(&sigmoid) + 1))
    })
}

pub(crate) fn logit(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let eps = args.opt_float(2)?;
    formula(cx, args, |it| {
        let (grad, x) = (&it[0], &it[1]);
        let (low, high) = (eps.unwrap_or(0.0), 1.0 - eps.unwrap_or(0.0));
        let is_inside = Expr::aten("logical_and", [x.ge(low), x.le(high)]);
        let outside = if eps.is_some() { 0.0 } else { f64::NAN };
        Ok(choose(is_inside, grad / (x * rest(x)), outside))
    })
}

/// With the exponential that the forward pass has kept.
pub(crate) fn log_sigmoid(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let is_kept = cx.meta(*args.tensor(2)?).sizes.iter().all(|it| *it != 0);
    formula(cx, args, |it| {
        let (grad, x) = (&it[0], &it[1]);
        let is_low = x.lt(0);
        let slope = choose(is_low.clone(), 1, 0);
        let sign = choose(is_low, 1, -1);
        let z = if is_kept { it[2].clone() } else { (-x.abs()).exp() };
        Ok(grad * (slope - sign * (&z / (&z + 1))))
    })
}

pub(crate) fn prelu_kernel(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let [grad, x, weight] = [0, 1, 2].map(|it| Expr::from(args.values[it].clone()));
    let of_input = choose(x.gt(0), &grad, weight * &grad);
    let of_weight = choose(x.gt(0), 0.0, &x * &grad);
    Ok(Expr::compute([of_input, of_weight], cx)?.into())
}
