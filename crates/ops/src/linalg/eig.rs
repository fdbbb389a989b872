//! Eigenvalues of any square matrix.
//!
//! Their order, and the directions of the vectors in the complex plane, are free; they may be others than those of PyTorch.

use crate::linalg::triangular::{TOLERANCE, columns, shape, tensor};
use crate::{Args, OpDef, Output, complex_of};
use tracefx_core::{DType, Result};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", |args| {
        let (values, dtype) = values(args)?;
        Ok(vec![values, columns(dtype, &args.tensor(0)?.sizes, &[])])
    })
    .tolerance(TOLERANCE)
    .doc("The eigenvalues of square matrices, and their vectors as columns."),
    OpDef::new("aten::_linalg_eigvals(Tensor self) -> Tensor", |args| Ok(vec![values(args)?.0]))
        .tolerance(TOLERANCE)
        .doc("The eigenvalues of square matrices."),
    OpDef::composite("aten::linalg_eigvals(Tensor self) -> Tensor", |cx, args| {
        Ok(vec![cx.aten("_linalg_eigvals", &args.values)?])
    })
    .tolerance(TOLERANCE)
    .doc("The eigenvalues of square matrices."),
];

fn values(args: &Args<'_, TensorMeta>) -> Result<(Output, DType)> {
    let meta = args.tensor(0)?;
    let (lead, n, _) = shape(args, meta, true)?;
    let dtype = if meta.dtype.is_complex() { meta.dtype } else { complex_of(meta.dtype) };
    Ok((tensor(dtype, &lead, &[&n]), dtype))
}
