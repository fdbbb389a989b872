//! The gradients of tables of which rows were looked up.

use crate::conv;
use crate::core::decompositions::Call;
use crate::index::gather::wrong_dtype;
use crate::view::strides::listed;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, contiguous};
use tracefx_core::{DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt \
         padding_idx, bool scale_grad_by_freq) -> Tensor",
        embedding,
    )
    .decompose(conv::decompose::embedding)
    .tags(Tags::CORE.with(Tags::DECOMPOSED))
    .tolerance(Tol::Default)
    .doc("The gradient of the table of `embedding`."),
    OpDef::composite(
        "aten::embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool \
         scale_grad_by_freq, bool sparse) -> Tensor",
        dense,
    )
    .doc("The gradient of the table of `embedding`, which is dense here."),
    OpDef::new(
        "aten::_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor \
         bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, \
         Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
        bags,
    )
    .tolerance(Tol::Default)
    .doc("The gradient of the table of `_embedding_bag`."),
    OpDef::new(
        "aten::_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, \
         Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? \
         per_sample_weights, int padding_idx=-1) -> Tensor",
        dense_bags,
    )
    .tolerance(Tol::Default)
    .doc("The gradient of the table of `_embedding_bag`, when it is known to which bag each index belongs."),
    OpDef::new(
        "aten::_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor \
         offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor",
        samples,
    )
    .tolerance(Tol::Default)
    .doc("The gradient of the weights of the samples of `_embedding_bag`."),
];

type Meta<'a> = Args<'a, TensorMeta>;

fn check_index(args: &Meta<'_>, index: usize) -> Result<()> {
    let meta = args.tensor(index)?;
    if matches!(meta.dtype, DType::Int32 | DType::Int64) {
        return Ok(());
    }
    Err(wrong_dtype(
        args,
        format!(
            "Expected tensor for argument '{}' to have one of the following scalar types: Long, Int; but got \
             torch.{}Tensor instead (while checking arguments for {})",
            args.op.schema.args[index].name,
            meta.dtype.cpp_name(),
            args.op.schema.name
        ),
    ))
}

fn n_rows(args: &Meta<'_>, index: usize) -> Result<SymInt> {
    let n = args.sym_int(index)?;
    if args.less(n, &SymInt::ZERO) {
        return Err(args.invalid(format!("a table cannot have {n} rows")));
    }
    Ok(n.clone())
}

fn embedding(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (grad, indices) = (args.tensor(0)?, args.tensor(1)?);
    check_index(args, 1)?;
    let Some((width, _)) = grad.sizes.split_last().filter(|it| args.agree(it.1, &indices.sizes)) else {
        return Err(args.bad_shape(format!(
            "a gradient of {} is not one row for each of the indices {}",
            listed(&grad.sizes),
            listed(&indices.sizes)
        )));
    };
    if args.bool(4)? && !grad.dtype.is_float() && !grad.dtype.is_complex() {
        return Err(Diagnostic::unsupported_dtype(grad.dtype, &args.op.name));
    }
    Ok(contiguous(grad.dtype, vec![n_rows(args, 2)?, width.clone()]))
}

fn dense(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    if args.bool(5)? {
        return Err(args.unsupported("sparse gradients are not supported"));
    }
    Ok(vec![cx.aten("embedding_dense_backward", &args.values[..5])?])
}

/// The gradient of a table whose bags have these gradients, with the options that begin at `at`: the number of rows,
/// the scale by frequency, and the mode.
fn table(args: &Meta<'_>, at: usize, mode: usize) -> Result<Vec<Output>> {
    let (grad, indices) = (args.tensor(0)?, args.tensor(1)?);
    check_index(args, 1)?;
    let [_, width] = &grad.sizes[..] else {
        return Err(args.bad_shape(format!("the gradient of bags is a matrix, not {}", listed(&grad.sizes))));
    };
    if indices.sizes.len() != 1 {
        return Err(args.bad_shape(format!("the indices of bags are a vector, not {}", listed(&indices.sizes))));
    }
    if !(0..=2).contains(&args.int(mode)?) {
        return Err(args.invalid("embedding_bag: the mode is 0 (sum), 1 (mean) or 2 (max)"));
    }
    if !grad.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(grad.dtype, &args.op.name));
    }
    Ok(contiguous(grad.dtype, vec![n_rows(args, at)?, width.clone()]))
}

fn bags(args: &Meta<'_>) -> Result<Vec<Output>> {
    if args.bool(9)? {
        return Err(args.unsupported("sparse gradients are not supported"));
    }
    check_index(args, 2)?;
    table(args, 6, 8)
}

fn dense_bags(args: &Meta<'_>) -> Result<Vec<Output>> {
    table(args, 5, 7)
}

fn samples(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (grad, weight, indices) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    check_index(args, 2)?;
    check_index(args, 3)?;
    if args.int(5)? != 0 {
        return Err(args.invalid(
            "embedding_bag_backward: per_sample_weights only supported for mode='sum', not for a mean or a maximum",
        ));
    }
    let fits = grad.sizes.len() == 2 && weight.sizes.len() == 2 && grad.sizes[1] == weight.sizes[1];
    if !fits || indices.sizes.len() != 1 {
        return Err(args.bad_shape("the gradient of bags and the table are matrices of the same width"));
    }
    if grad.dtype != weight.dtype || !grad.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(grad.dtype, &args.op.name));
    }
    Ok(contiguous(grad.dtype, indices.sizes.clone()))
}
