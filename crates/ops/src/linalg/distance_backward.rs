//! The gradients of distances between rows.

use crate::{Args, OpDef, Output, Tol, broadcast, contiguous};
use tracefx_core::{DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor", cdist)
        .tolerance(Tol::Default)
        .doc("The gradient of the first rows of `_cdist_forward`."),
    OpDef::new("aten::_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor", pdist)
        .tolerance(Tol::Default)
        .doc("The gradient of `_pdist_forward`."),
];

fn check_dtypes(args: &Args<'_, TensorMeta>, at: &[usize]) -> Result<DType> {
    let dtype = args.tensor(0)?.dtype;
    for &index in at {
        if args.tensor(index)?.dtype != dtype {
            return Err(args.invalid("the gradient, the rows and the distances should be of one dtype"));
        }
    }
    if !matches!(dtype, DType::Float32 | DType::Float64) {
        return Err(Diagnostic::unsupported_dtype(dtype, &args.op.name));
    }
    Ok(dtype)
}

fn cdist(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = check_dtypes(args, &[1, 2, 4])?;
    let (grad, first, second, distances) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?, args.tensor(4)?);
    let ([first_batch @ .., n, width], [second_batch @ .., m, other]) = (&first.sizes[..], &second.sizes[..]) else {
        return Err(args.bad_shape("cdist only supports at least 2D tensors"));
    };
    let batch = broadcast(args, first_batch, second_batch)?;
    let pairs = [&batch[..], &[n.clone(), m.clone()]].concat();
    if args.differ(width, other) || !args.agree(&grad.sizes, &pairs) || !args.agree(&grad.sizes, &distances.sizes) {
        return Err(args.bad_shape("the gradient and the distances should be of the sizes of all pairs of rows"));
    }
    // As in PyTorch, nothing is expanded where there is nothing.
    let is_empty = [n, m, width].into_iter().chain(&batch).any(|it| *it == SymInt::ZERO);
    let batch = if is_empty { first_batch } else { &batch };
    Ok(contiguous(dtype, [batch, &[n.clone(), width.clone()]].concat()))
}

fn pdist(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = check_dtypes(args, &[1, 3])?;
    let (grad, input, distances) = (args.tensor(0)?, args.tensor(1)?, args.tensor(3)?);
    if input.sizes.len() != 2 || grad.sizes != distances.sizes || grad.sizes.len() != 1 {
        return Err(args.bad_shape("the gradient and the distances should be one number for each pair of rows"));
    }
    if let (Some(n), Some(n_pairs)) = (input.sizes[0].as_int(), grad.sizes[0].as_int())
        && n * (n - 1) / 2 != n_pairs
    {
        return Err(args.bad_shape(format!("{n} rows make {} pairs, not {n_pairs}", n * (n - 1) / 2)));
    }
    Ok(contiguous(dtype, input.sizes.clone()))
}
