//! The gradients of resizing.

use crate::core::memory_format::in_format_of;
use crate::image::gradient;
use crate::{Args, OpDef, Output, Tol, contiguous};
use tracefx_core::{DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, \
         float? scales=None) -> Tensor",
        keeping_format,
    )
    .vjp(gradient::nearest1d_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `upsample_nearest1d`."),
    OpDef::new(
        "aten::_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] \
         input_size, float? scales=None) -> Tensor",
        keeping_format,
    )
    .vjp(gradient::nearest_exact1d_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `_upsample_nearest_exact1d`."),
    OpDef::new(
        "aten::upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool \
         align_corners, float? scales=None) -> Tensor",
        keeping_format,
    )
    .vjp(gradient::linear1d_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `upsample_linear1d`."),
    OpDef::new(
        "aten::upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, \
         float? scales_h=None, float? scales_w=None) -> Tensor",
        keeping_format,
    )
    .vjp(gradient::nearest2d_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `upsample_nearest2d`."),
    OpDef::new(
        "aten::_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] \
         input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        keeping_format,
    )
    .vjp(gradient::nearest_exact2d_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `_upsample_nearest_exact2d`."),
    OpDef::new(
        "aten::upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, \
         bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        keeping_format,
    )
    .vjp(gradient::bilinear2d_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `upsample_bilinear2d`."),
    OpDef::new(
        "aten::upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, \
         bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        row_major,
    )
    .vjp(gradient::bicubic2d_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `upsample_bicubic2d`."),
    OpDef::new(
        "aten::_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] \
         input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        antialiased,
    )
    .vjp(gradient::bilinear2d_aa_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `_upsample_bilinear2d_aa`."),
    OpDef::new(
        "aten::_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, \
         bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        antialiased_bicubic,
    )
    .vjp(gradient::bicubic2d_aa_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `_upsample_bicubic2d_aa`."),
    OpDef::new(
        "aten::upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, \
         float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        row_major,
    )
    .vjp(gradient::nearest3d_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `upsample_nearest3d`."),
    OpDef::new(
        "aten::_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] \
         input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        row_major,
    )
    .vjp(gradient::nearest_exact3d_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `_upsample_nearest_exact3d`."),
    OpDef::new(
        "aten::upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, \
         bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        keeping_format,
    )
    .vjp(gradient::trilinear3d_backward)
    .tolerance(Tol::Default)
    .doc("The gradient of `upsample_trilinear3d`."),
];

fn keeping_format(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (grad, sizes) = (args.tensor(0)?, input_size(args)?);
    Ok(vec![Output::Tensor(in_format_of(grad, grad.dtype, sizes))])
}

fn antialiased(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    match args.tensor(0)?.dtype {
        DType::Float16 | DType::BFloat16 => Err(Diagnostic::unsupported_dtype(args.tensor(0)?.dtype, &args.op.name)),
        _ => keeping_format(args),
    }
}

fn antialiased_bicubic(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    antialiased(args)?;
    row_major(args)
}

fn row_major(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(contiguous(args.tensor(0)?.dtype, input_size(args)?))
}

/// The sizes of the input, once the gradient has those of the result.
fn input_size(args: &Args<'_, TensorMeta>) -> Result<Vec<SymInt>> {
    let (grad, output, input) = (args.tensor(0)?, args.sym_ints(1)?, args.sym_ints(2)?);
    let n_dims = args.op.schema.args.iter().filter(|it| it.name.starts_with("scales")).count();
    if output.len() != n_dims || input.len() != n_dims + 2 {
        return Err(args.bad_shape(format!(
            "It is expected output_size equals to {n_dims} and input_size equals to {}, but got {} and {}",
            n_dims + 2,
            output.len(),
            input.len()
        )));
    }
    let is_empty = |it: &SymInt| it.as_int().is_some_and(|it| it <= 0);
    let show = |it: &[SymInt]| it.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ");
    if input[1..].iter().any(is_empty) || output.iter().any(is_empty) || input[0].as_int().is_some_and(|it| it < 0) {
        return Err(args.bad_shape(format!(
            "Input and output sizes should be greater than 0, but got input ({}) output ({})",
            show(&input[1..]),
            show(&output)
        )));
    }
    let expected = [&input[..2], &output].concat();
    if !args.agree(&grad.sizes, &expected) {
        return Err(args.bad_shape(format!(
            "Expected grad_output to be of the sizes [{}] but got [{}]",
            show(&expected),
            show(&grad.sizes)
        )));
    }
    if !grad.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(grad.dtype, &args.op.name));
    }
    Ok(input)
}
