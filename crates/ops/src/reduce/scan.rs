//! Scans: each element of the result depends on those before it along a dimension.

use crate::reduce::scan_gradient;
use crate::{Args, OpDef, Output, Tags, Tol, contiguous, normalize_dim};
use tracefx_core::{DType, DTypeKind, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", cumulative)
        .tolerance(Tol::Default)
        .tags(Tags::CORE)
        .vjp(scan_gradient::cumsum)
        .doc("The sums of the elements so far.")
        .in_place(&["cumsum_"]),
    OpDef::new("aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", cumulative)
        .tolerance(Tol::Default)
        .vjp(scan_gradient::cumprod)
        .doc("The products of the elements so far.")
        .in_place(&["cumprod_"]),
    OpDef::new("aten::logcumsumexp(Tensor self, int dim) -> Tensor", logcumsumexp)
        .tolerance(Tol::Default)
        .vjp(scan_gradient::logcumsumexp)
        .doc("The logarithms of the sums of the exponentials so far."),
    OpDef::new("aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", cumulative_extremum)
        .vjp(scan_gradient::cumulative_extremum)
        .doc("The largest elements so far, and where they are."),
    OpDef::new("aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", cumulative_extremum)
        .vjp(scan_gradient::cumulative_extremum)
        .doc("The smallest elements so far, and where they are."),
];

fn cumulative(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    normalize_dim(args, args.int(1)?, this.sizes.len())?;
    let own = if this.dtype.kind() <= DTypeKind::Int { DType::Int64 } else { this.dtype };
    let dtype = args.opt_dtype(2)?.unwrap_or(own);
    if dtype == DType::Bool {
        return Err(args.no_kernel(&format!("{}_out_cpu", args.op.schema.name), dtype));
    }
    Ok(contiguous(dtype, this.sizes.clone()))
}

fn logcumsumexp(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    normalize_dim(args, args.int(1)?, this.sizes.len())?;
    if this.dtype.kind() <= DTypeKind::Int {
        return Err(args.no_kernel("logcumsumexp_out_cpu", this.dtype));
    }
    Ok(contiguous(this.dtype, this.sizes.clone()))
}

fn cumulative_extremum(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    // As in PyTorch, where there is nothing to compute nobody asks along which dimension.
    if !this.sizes.contains(&SymInt::ZERO) {
        normalize_dim(args, args.int(1)?, this.sizes.len())?;
    }
    let mut results = contiguous(this.dtype, this.sizes.clone());
    results.extend(contiguous(DType::Int64, this.sizes.clone()));
    Ok(results)
}
