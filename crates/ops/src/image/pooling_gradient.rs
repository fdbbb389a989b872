//! Gradients of pooling, and of its gradients, which are linear in the incoming one.

use crate::core::gradients::{Backward, Expr};
use crate::{Traced, Value};
use tracefx_core::Result;
use tracefx_sym::SymInt;

type Formulas = Result<Vec<Expr>>;

/// A call with the incoming gradient in front of the arguments from `first` on.
fn with_grad(it: &Backward<'_>, op: &'static str, first: usize) -> Expr {
    let arguments = (first..it.args.values.len()).map(|index| it.arg(index));
    Expr::aten(op, [it.grad()].into_iter().chain(arguments))
}

/// Rules that hand the incoming gradient and all arguments to an operator of the backward pass.
macro_rules! of_arguments {
    ($($name:ident $op:literal;)*) => {$(
        pub(crate) fn $name(it: &Backward<'_>) -> Formulas {
            Ok(vec![with_grad(it, $op, 0)])
        }
    )*};
}

of_arguments! {
    avg_pool2d "avg_pool2d_backward";
    avg_pool3d "avg_pool3d_backward";
}

/// Rules of pooling by the largest element: the indices come last, after these arguments.
macro_rules! of_indices {
    ($($name:ident $op:literal $($index:literal)*;)*) => {$(
        pub(crate) fn $name(it: &Backward<'_>) -> Formulas {
            Ok(vec![Expr::aten($op, [it.grad(), it.arg(0), $(it.arg($index),)* it.result(1)])])
        }
    )*};
}

of_indices! {
    max_pool2d "max_pool2d_with_indices_backward" 1 2 3 4 5;
    max_pool3d "max_pool3d_with_indices_backward" 1 2 3 4 5;
    adaptive_max_pool2d "adaptive_max_pool2d_backward";
    adaptive_max_pool3d "adaptive_max_pool3d_backward";
    fractional_max_pool2d "fractional_max_pool2d_backward" 1 2;
    fractional_max_pool3d "fractional_max_pool3d_backward" 1 2;
}

pub(crate) fn adaptive_avg_pool2d(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("_adaptive_avg_pool2d_backward", [it.grad(), it.arg(0)])])
}

pub(crate) fn adaptive_avg_pool3d(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("_adaptive_avg_pool3d_backward", [it.grad(), it.arg(0)])])
}

pub(crate) fn avg_pool2d_backward(it: &Backward<'_>) -> Formulas {
    Ok(vec![with_grad(it, "avg_pool2d", 2)])
}

pub(crate) fn avg_pool3d_backward(it: &Backward<'_>) -> Formulas {
    Ok(vec![with_grad(it, "avg_pool3d", 2)])
}

/// The spatial sizes of the gradient that was pooled.
fn spatial<'a>(it: &Backward<'a>, n_dims: usize) -> Result<&'a [SymInt]> {
    let sizes = it.sizes(0)?;
    Ok(&sizes[sizes.len() - n_dims..])
}

pub(crate) fn adaptive_avg_pool2d_backward(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("_adaptive_avg_pool2d", [it.grad(), spatial(it, 2)?.into()])])
}

pub(crate) fn adaptive_avg_pool3d_backward(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("_adaptive_avg_pool3d", [it.grad(), spatial(it, 3)?.into()])])
}

/// The elements of the incoming gradient that the indices at this position name, in each plane or volume.
fn picked(it: &Backward<'_>, indices: usize, n_dims: usize) -> Formulas {
    let sizes = it.sizes(indices)?;
    let lead: Vec<Traced> = sizes[..sizes.len() - n_dims].iter().cloned().map(Value::Int).collect();
    let flat: Expr = Traced::List(lead.into_iter().chain([Value::int(-1)]).collect()).into();
    let flatten = |it: Expr| Expr::aten("reshape", [it, flat.clone()]);
    let call = [flatten(it.grad()), (-1i64).into(), flatten(it.arg(indices))];
    Ok(vec![Expr::aten("gather", call).reshape(sizes)])
}

pub(crate) fn max_unpool2d(it: &Backward<'_>) -> Formulas {
    picked(it, 1, 2)
}

pub(crate) fn max_unpool3d(it: &Backward<'_>) -> Formulas {
    picked(it, 1, 3)
}

pub(crate) fn max_pool2d_backward(it: &Backward<'_>) -> Formulas {
    picked(it, 7, 2)
}

pub(crate) fn max_pool3d_backward(it: &Backward<'_>) -> Formulas {
    picked(it, 7, 3)
}

pub(crate) fn adaptive_max_pool2d_backward(it: &Backward<'_>) -> Formulas {
    picked(it, 2, 2)
}

pub(crate) fn adaptive_max_pool3d_backward(it: &Backward<'_>) -> Formulas {
    picked(it, 2, 3)
}

pub(crate) fn fractional_max_pool2d_backward(it: &Backward<'_>) -> Formulas {
    picked(it, 4, 2)
}

pub(crate) fn fractional_max_pool3d_backward(it: &Backward<'_>) -> Formulas {
    picked(it, 4, 3)
}
