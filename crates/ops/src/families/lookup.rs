//! Elements picked by position: one index for each result, along one dimension or of the flattened tensor.

use super::view::listed;
use crate::{Args, OpDef, Output, Tags, contiguous, normalize_dim};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::index_select(Tensor self, int dim, Tensor index) -> Tensor", index_select)
        .doc("The positions of a dimension that an index vector names.")
        .tags(Tags::CORE),
    OpDef::new(
        "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
        embedding,
    )
    .doc("The rows of a table that indices name.")
    .tags(Tags::CORE),
];

/// An error about a tensor of the wrong dtype.
pub(super) fn wrong_dtype<T>(args: &Args<'_, T>, what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name)
}

fn index_select(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, index) = (args.tensor(0)?, args.tensor(2)?);
    let dim = normalize_dim(args, args.int(1)?, base.sizes.len())?;
    if index.sizes.len() > 1 {
        return Err(args.bad_shape("index_select(): Index is supposed to be a vector"));
    }
    if !matches!(index.dtype, DType::Int32 | DType::Int64) {
        return Err(wrong_dtype(args, "index_select(): Expected dtype int32 or int64 for index"));
    }
    let n = index.sizes.first().cloned().unwrap_or(SymInt::ONE);
    let mut sizes = base.sizes.clone();
    match sizes.get_mut(dim) {
        Some(size) => *size = n,
        None if n.as_int().is_some_and(|it| it != 1) => {
            let what = format!("index_select(): Index to scalar can have only 1 value, got {n} value(s)");
            return Err(args.bad_shape(what));
        }
        None => {}
    }
    Ok(contiguous(base.dtype, sizes))
}

fn embedding(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (weight, indices) = (args.tensor(0)?, args.tensor(1)?);
    let [_, width] = &weight.sizes[..] else {
        return Err(args.bad_shape(format!("'weight' must be 2-D, but its sizes are {}", listed(&weight.sizes))));
    };
    if !matches!(indices.dtype, DType::Int32 | DType::Int64) {
        return Err(wrong_dtype(
            args,
            format!(
                "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but \
                 got torch.{}Tensor instead (while checking arguments for embedding)",
                indices.dtype.cpp_name()
            ),
        ));
    }
    Ok(contiguous(weight.dtype, indices.sizes.iter().chain([width]).cloned().collect()))
}
