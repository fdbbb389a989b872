//! The gradients of pooling.

use crate::core::memory_format::in_format_of;
use crate::image::pooling::{Windows, lead, make_contiguous};
use crate::image::pooling_gradient;
use crate::{Args, OpDef, Output, Tags, Tol};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] \
             padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        avg_pool2d,
    )
    .vjp(pooling_gradient::avg_pool2d_backward)
    .doc("The gradient of the input of `avg_pool2d`.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] \
             padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        avg_pool3d,
    )
    .vjp(pooling_gradient::avg_pool3d_backward)
    .doc("The gradient of the input of `avg_pool3d`.")
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] \
             stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        max_pool2d,
    )
    .vjp(pooling_gradient::max_pool2d_backward)
    .doc("The gradient of the input of `max_pool2d_with_indices`.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] \
             stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        max_pool3d,
    )
    .vjp(pooling_gradient::max_pool3d_backward)
    .doc("The gradient of the input of `max_pool3d_with_indices`.")
    .tolerance(Tol::Default),
    OpDef::new("aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor", adaptive_avg_pool2d)
        .vjp(pooling_gradient::adaptive_avg_pool2d_backward)
        .doc("The gradient of the input of `_adaptive_avg_pool2d`.")
        .tags(Tags::CORE)
        .tolerance(Tol::Default),
    OpDef::new("aten::_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor", adaptive_avg_pool3d)
        .vjp(pooling_gradient::adaptive_avg_pool3d_backward)
        .doc("The gradient of the input of `_adaptive_avg_pool3d`.")
        .tolerance(Tol::Default),
    OpDef::new(
        "aten::adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        adaptive_max_pool2d,
    )
    .vjp(pooling_gradient::adaptive_max_pool2d_backward)
    .doc("The gradient of the input of `adaptive_max_pool2d`.")
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        adaptive_max_pool3d,
    )
    .vjp(pooling_gradient::adaptive_max_pool3d_backward)
    .doc("The gradient of the input of `adaptive_max_pool3d`.")
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] \
             output_size, Tensor indices) -> Tensor",
        |args| fractional_max_pool(args, 2),
    )
    .vjp(pooling_gradient::fractional_max_pool2d_backward)
    .doc("The gradient of the input of `fractional_max_pool2d`.")
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] \
             output_size, Tensor indices) -> Tensor",
        |args| fractional_max_pool(args, 3),
    )
    .vjp(pooling_gradient::fractional_max_pool3d_backward)
    .doc("The gradient of the input of `fractional_max_pool3d`.")
    .tolerance(Tol::Default),
];

type Meta<'a> = Args<'a, TensorMeta>;

/// A gradient of the input, once the gradient of the result has the sizes that the result had.
fn like_input(args: &Meta<'_>, expected: &[SymInt]) -> Result<Output> {
    let (grad, input) = (args.tensor(0)?, args.tensor(1)?);
    if !args.agree(&grad.sizes, expected) {
        let show = |it: &[SymInt]| it.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ");
        return Err(args.bad_shape(format!(
            "expected a gradient of sizes [{}] but got [{}]",
            show(expected),
            show(&grad.sizes)
        )));
    }
    if grad.dtype != input.dtype {
        let what = format!("expected dtype {} for the gradient but got {}", input.dtype.name(), grad.dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    Ok(Output::Tensor(in_format_of(input, input.dtype, input.sizes.clone())))
}

fn avg_pool(args: &Meta<'_>, n_dims: usize) -> Result<Output> {
    let windows = Windows::read(args, 2, n_dims, false)?;
    if args.opt_int(7)? == Some(0) {
        return Err(args.invalid("divisor must be not zero"));
    }
    like_input(args, &windows.result(args, args.tensor(1)?)?.sizes)
}

fn avg_pool2d(args: &Meta<'_>) -> Result<Vec<Output>> {
    Ok(vec![avg_pool(args, 2)?])
}

fn avg_pool3d(args: &Meta<'_>) -> Result<Vec<Output>> {
    let mut output = avg_pool(args, 3)?;
    make_contiguous(&mut output);
    Ok(vec![output])
}

fn check_indices(args: &Meta<'_>, indices: usize) -> Result<()> {
    let indices = args.tensor(indices)?;
    if indices.dtype != DType::Int64 || !args.agree(&indices.sizes, &args.tensor(0)?.sizes) {
        return Err(args.bad_shape("the indices should be int64 and of the sizes of the gradient"));
    }
    Ok(())
}

fn max_pool(args: &Meta<'_>, n_dims: usize) -> Result<Vec<Output>> {
    let windows = Windows::read(args, 2, n_dims, true)?;
    check_indices(args, 7)?;
    Ok(vec![like_input(args, &windows.result(args, args.tensor(1)?)?.sizes)?])
}

fn max_pool2d(args: &Meta<'_>) -> Result<Vec<Output>> {
    max_pool(args, 2)
}

fn max_pool3d(args: &Meta<'_>) -> Result<Vec<Output>> {
    max_pool(args, 3)
}

/// A gradient of the input, where the result has any spatial sizes.
fn like_input_of_any(args: &Meta<'_>, n_dims: usize) -> Result<Output> {
    let (grad, input) = (args.tensor(0)?, args.tensor(1)?);
    let n_lead = lead(args, input, n_dims)?;
    let own = grad.sizes.get(n_lead..).unwrap_or(&[]);
    if own.len() != n_dims {
        return Err(args.bad_shape("the gradient should have as many dimensions as the input"));
    }
    like_input(args, &[&input.sizes[..n_lead], own].concat())
}

fn adaptive_avg_pool2d(args: &Meta<'_>) -> Result<Vec<Output>> {
    Ok(vec![like_input_of_any(args, 2)?])
}

fn adaptive_avg_pool3d(args: &Meta<'_>) -> Result<Vec<Output>> {
    let mut output = like_input_of_any(args, 3)?;
    make_contiguous(&mut output);
    Ok(vec![output])
}

fn adaptive_max_pool2d(args: &Meta<'_>) -> Result<Vec<Output>> {
    check_indices(args, 2)?;
    Ok(vec![like_input_of_any(args, 2)?])
}

fn adaptive_max_pool3d(args: &Meta<'_>) -> Result<Vec<Output>> {
    check_indices(args, 2)?;
    adaptive_avg_pool3d(args)
}

fn fractional_max_pool(args: &Meta<'_>, n_dims: usize) -> Result<Vec<Output>> {
    check_indices(args, 4)?;
    let (input, output) = (args.tensor(1)?, args.sym_ints(3)?);
    if output.len() != n_dims {
        return Err(args.invalid(format!("output_size must either be a single int or {n_dims} ints")));
    }
    let n_lead = lead(args, input, n_dims)?;
    let mut output = like_input(args, &[&input.sizes[..n_lead], &output].concat())?;
    make_contiguous(&mut output);
    Ok(vec![output])
}
