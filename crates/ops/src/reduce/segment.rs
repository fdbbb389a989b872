//! Reductions of segments of one dimension, which are given by their lengths or by where they start.

use crate::loss::classification_gradient;
use crate::{Args, OpDef, Output, Tags, Tol, contiguous, normalize_dim};
use tracefx_core::{DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? \
         offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
        segment_reduce,
    )
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .vjp(classification_gradient::segment_reduce)
    .doc("The sum, mean, maximum, minimum or product of each segment."),
    OpDef::new(
        "aten::_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? \
         lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor",
        backward,
    )
    .tolerance(Tol::Default)
    .doc("The gradient of `segment_reduce`."),
];

fn segment_reduce(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    if !args.is_none(3) {
        return Err(args.unsupported("segment_reduce(): indices based reduction is not supported yet."));
    }
    let data = args.tensor(0)?;
    Ok(contiguous(data.dtype, reduced(args, data, args.str(1)?, [2, 4, 5])?))
}

fn backward(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (grad, output, data) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    let expected = reduced(args, data, args.str(3)?, [4, 5, 6])?;
    if !args.agree(&grad.sizes, &expected) || !args.agree(&output.sizes, &expected) {
        return Err(args.bad_shape("the gradient and the output should have one element for each segment"));
    }
    if grad.dtype != data.dtype || output.dtype != data.dtype {
        return Err(args.invalid("the gradient, the output and the data should be of one dtype"));
    }
    Ok(contiguous(data.dtype, data.sizes.clone()))
}

/// The sizes of the result; lengths, offsets and axis are at these positions.
fn reduced(
    args: &Args<'_, TensorMeta>,
    data: &TensorMeta,
    reduce: &str,
    [lengths, offsets, axis]: [usize; 3],
) -> Result<Vec<tracefx_sym::SymInt>> {
    if !matches!(reduce, "max" | "mean" | "min" | "sum" | "prod") {
        return Err(args.invalid(format!("unsupported reduction given! {reduce}")));
    }
    if !data.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(data.dtype, &args.op.name));
    }
    let axis = normalize_dim(args, args.int(axis)?, data.sizes.len())?;
    let (name, bounds) = match (args.opt_tensor(lengths)?, args.opt_tensor(offsets)?) {
        (_, Some(offsets)) => ("offsets", offsets),
        (Some(lengths), None) => ("lengths", lengths),
        (None, None) => {
            return Err(args.invalid("segment_reduce(): Either lengths or offsets must be defined."));
        }
    };
    if !matches!(bounds.dtype, DType::Int32 | DType::Int64) {
        return Err(args.invalid(format!("segment_reduce(): {name} should be int32 or int64")));
    }
    if bounds.sizes.len() != axis + 1 {
        return Err(args
            .bad_shape(format!("segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")));
    }
    if !args.agree(&bounds.sizes[..axis], &data.sizes[..axis]) {
        return Err(args.bad_shape(format!("segment_reduce(): {name} and data should agree in front of the axis")));
    }
    let mut sizes = data.sizes.clone();
    sizes[axis] = if name == "offsets" { &bounds.sizes[axis] - 1 } else { bounds.sizes[axis].clone() };
    if sizes[axis].as_int().is_some_and(|it| it < 0) {
        return Err(args.bad_shape("segment_reduce(): offsets should have at least one element"));
    }
    Ok(sizes)
}
