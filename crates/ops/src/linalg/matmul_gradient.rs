//! Gradients of products of matrices and of vectors.

use crate::core::gradients::{Backward, Expr};
use tracefx_core::{Result, Scalar};

type Formulas = Result<Vec<Expr>>;

/// A scalar argument, conjugated.
fn conj_of(it: &Backward<'_>, index: usize) -> Result<Scalar> {
    let scalar = it.args.scalar(index)?;
    Ok(Expr::from(scalar).conj().number().unwrap_or(scalar))
}

/// `a @ b`, with the gradient of the product.
fn factors(op: &'static str, grad: &Expr, a: &Expr, b: &Expr) -> [Expr; 2] {
    [Expr::aten(op, [grad.clone(), b.adjoint()]), Expr::aten(op, [a.adjoint(), grad.clone()])]
}

pub(crate) fn mm(it: &Backward<'_>) -> Formulas {
    Ok(factors("mm", &it.grad(), &it.arg(0), &it.arg(1)).into())
}

pub(crate) fn bmm(it: &Backward<'_>) -> Formulas {
    Ok(factors("bmm", &it.grad(), &it.arg(0), &it.arg(1)).into())
}

/// `beta * self + alpha * (a @ b)`.
fn added(it: &Backward<'_>, factors: [Expr; 2]) -> Formulas {
    let (beta, alpha) = (conj_of(it, 3)?, conj_of(it, 4)?);
    let [a, b] = factors.map(|factor| factor.times(alpha));
    Ok(vec![it.grad().times(beta), a, b])
}

pub(crate) fn addmm(it: &Backward<'_>) -> Formulas {
    added(it, factors("mm", &it.grad(), &it.arg(1), &it.arg(2)))
}

pub(crate) fn baddbmm(it: &Backward<'_>) -> Formulas {
    added(it, factors("bmm", &it.grad(), &it.arg(1), &it.arg(2)))
}

/// The products of all batches are summed.
pub(crate) fn addbmm(it: &Backward<'_>) -> Formulas {
    let (a, b) = (it.sizes(1)?, it.sizes(2)?);
    let grad = it.grad().unsqueeze(0).expand(&[a[0].clone(), a[1].clone(), b[2].clone()]);
    added(it, factors("bmm", &grad, &it.arg(1), &it.arg(2)))
}

fn outer(a: &Expr, b: &Expr) -> Expr {
    a.unsqueeze(1) * b.unsqueeze(0)
}

pub(crate) fn addmv(it: &Backward<'_>) -> Formulas {
    let (grad, matrix, vector) = (it.grad(), it.arg(1), it.arg(2));
    let of_vector = Expr::aten("mv", [matrix.adjoint(), grad.clone()]);
    added(it, [outer(&grad, &vector.conj()), of_vector])
}

pub(crate) fn mv(it: &Backward<'_>) -> Formulas {
    let (grad, matrix, vector) = (it.grad(), it.arg(0), it.arg(1));
    let of_vector = Expr::aten("mv", [matrix.adjoint(), grad.clone()]);
    Ok(vec![outer(&grad, &vector.conj()), of_vector])
}

pub(crate) fn dot(it: &Backward<'_>) -> Formulas {
    let grad = it.grad();
    Ok(vec![&grad * it.arg(1).conj(), grad * it.arg(0).conj()])
}

/// The first vector is conjugated.
pub(crate) fn vdot(it: &Backward<'_>) -> Formulas {
    let grad = it.grad();
    Ok(vec![grad.conj() * it.arg(1), grad * it.arg(0)])
}

pub(crate) fn cross(it: &Backward<'_>) -> Formulas {
    let (grad, a, b) = (it.grad(), it.arg(0), it.arg(1));
    let cross = |a: Expr, b: Expr| Expr::aten_with("linalg_cross", [a, b], &[("dim", it.args.values[2].clone())]);
    Ok(vec![cross(b.conj(), grad.clone()), cross(grad, a.conj())])
}
