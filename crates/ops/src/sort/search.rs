//! Where values belong among sorted ones.

use crate::index::gather::wrong_dtype;
use crate::view::strides::listed;
use crate::{Args, OpDef, Operand, Output, contiguous, promote};
use tracefx_core::{DType, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        bucketize,
    )
    .doc("Between which boundaries each element lies."),
    OpDef::new(
        "aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        bucketize,
    )
    .doc("Between which boundaries a number lies."),
    OpDef::new(
        "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool \
             right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        searchsorted,
    )
    .doc("Where each element belongs in the sorted line of its row."),
    OpDef::new(
        "aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool \
             right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        searchsorted,
    )
    .doc("Where a number belongs in a sorted line."),
];

fn result(
    args: &Args<'_, TensorMeta>,
    values: Operand<'_, TensorMeta>,
    boundaries: &TensorMeta,
    is_int32: bool,
) -> Result<Vec<Output>> {
    let common = promote(&[Operand::Tensor(boundaries), values]);
    if common.is_complex() || common == DType::Bool {
        let what = format!("{} is not implemented for '{}'", args.op.schema.name, common.cpp_name());
        return Err(wrong_dtype(args, what));
    }
    let sizes = match values {
        Operand::Tensor(values) => values.sizes.clone(),
        Operand::Scalar(_) => Vec::new(),
    };
    Ok(contiguous(if is_int32 { DType::Int32 } else { DType::Int64 }, sizes))
}

fn bucketize(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let boundaries = args.tensor(1)?;
    if boundaries.sizes.len() != 1 {
        let what = format!("boundaries tensor must be 1 dimension, but got dim({})", boundaries.sizes.len());
        return Err(args.bad_shape(what));
    }
    result(args, args.operand(0)?, boundaries, args.bool(2)?)
}

fn searchsorted(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (boundaries, values) = (args.tensor(0)?, args.operand(1)?);
    let bounds = &boundaries.sizes;
    if let Some(side) = args.opt_str(4)? {
        if !matches!(side, "left" | "right") {
            let what = "torch.searchsorted(): side can only be 'left' or 'right' but got";
            return Err(args.invalid(format!("{what} {side}")));
        }
        if side == "left" && args.bool(3)? {
            return Err(args.invalid(
                "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True",
            ));
        }
    }
    let no_sizes = Vec::new();
    let sizes = match values {
        Operand::Tensor(values) => &values.sizes,
        Operand::Scalar(_) => &no_sizes,
    };
    if sizes.is_empty() && bounds.len() != 1 {
        return Err(args.bad_shape(format!(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got \
             boundaries tensor dim({}) and input value's dim(0) numel(1)",
            bounds.len()
        )));
    }
    let differ = |(a, b): (&SymInt, &SymInt)| args.differ(a, b);
    let fits = bounds.len() == 1
        || (bounds.len() == sizes.len()
            && !bounds.is_empty()
            && !bounds.iter().zip(sizes).take(bounds.len() - 1).any(differ));
    if !fits {
        return Err(args.bad_shape(format!(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries \
             tensor and input value tensor must match, but we got boundaries tensor {} and input value tensor {}",
            listed(bounds),
            listed(sizes)
        )));
    }
    if let Some(sorter) = args.opt_tensor(5)? {
        if sorter.dtype != DType::Int64 {
            let what = "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype";
            return Err(wrong_dtype(args, format!("{what} {}", sorter.dtype.cpp_name())));
        }
        if sorter.sizes.len() != bounds.len() || sorter.sizes.iter().zip(bounds).any(differ) {
            return Err(args.bad_shape(format!(
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {} and got \
                 sorter tensor {}",
                listed(bounds),
                listed(&sorter.sizes)
            )));
        }
    }
    result(args, values, boundaries, args.bool(2)?)
}
