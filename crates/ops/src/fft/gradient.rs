//! Gradients of Fourier transforms: transforms the other way, by the same normalization.

use crate::core::gradients::{Backward, Expr};
use crate::normalize_dim;
use tracefx_core::Result;
use tracefx_sym::SymInt;

type Formulas = Result<Vec<Expr>>;

/// The dimension whose half is left out.
fn last_dim(it: &Backward<'_>) -> Result<usize> {
    normalize_dim(it.args, it.args.ints(1)?.last().copied().unwrap_or(-1), it.rank(0)?)
}

fn transformed(it: &Backward<'_>, grad: Expr, is_forward: bool) -> Expr {
    Expr::aten("_fft_c2c", [grad, it.arg(1), it.arg(2), is_forward.into()])
}

pub(crate) fn c2c(it: &Backward<'_>) -> Formulas {
    Ok(vec![transformed(it, it.grad(), !it.args.bool(3)?)])
}

/// The half that was left out has no gradient of its own.
pub(crate) fn r2c(it: &Backward<'_>) -> Formulas {
    let dim = last_dim(it)?;
    let (given, whole) = (&it.result_meta(0)?.sizes[dim], &it.sizes(0)?[dim]);
    let mut grad = it.grad();
    if given != whole {
        let mut pad = vec![SymInt::from(0); 2 * (it.rank(0)? - dim)];
        if let Some(last) = pad.last_mut() {
            *last = whole - given;
        }
        grad = Expr::aten("constant_pad_nd", [grad, pad[..].into()]);
    }
    Ok(vec![transformed(it, grad, false)])
}

/// What stands for two numbers counts twice.
pub(crate) fn c2r(it: &Backward<'_>) -> Formulas {
    let dim = last_dim(it)?;
    let (half, whole) = (&it.sizes(0)?[dim], &it.result_meta(0)?.sizes[dim]);
    let grad = Expr::aten("_fft_r2c", [it.grad(), it.arg(1), it.arg(2), true.into()]);
    let end = &(whole - half) + &SymInt::ONE;
    let part = |start: &SymInt, end: &SymInt| grad.narrow(dim as i64, start, end);
    let parts = [part(&SymInt::ZERO, &SymInt::ONE), part(&SymInt::ONE, &end) * 2.0, part(&end, half)];
    Ok(vec![Expr::aten("cat", [Expr::list(parts), (dim as i64).into()])])
}
