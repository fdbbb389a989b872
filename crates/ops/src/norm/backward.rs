//! The gradients of normalisation: of the input, the weight and the bias, as far as the mask asks for them.

use crate::core::decompositions::Call;
use crate::core::memory_format::in_format_of;
use crate::norm::decompose;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor \
         mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        layer_norm,
    )
    .decompose(decompose::layer_norm)
    .tags(Tags::CORE.with(Tags::DECOMPOSED))
    .tolerance(Tol::Default)
    .doc("The gradients of `native_layer_norm`."),
    OpDef::new(
        "aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? \
         weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        group_norm,
    )
    .decompose(decompose::group_norm)
    .tags(Tags::CORE.with(Tags::DECOMPOSED))
    .tolerance(Tol::Default)
    .doc("The gradients of `native_group_norm`."),
    OpDef::new(
        "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, \
         Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] \
         output_mask) -> (Tensor, Tensor, Tensor)",
        batch_norm,
    )
    .decompose(decompose::batch_norm)
    .tolerance(Tol::Default)
    .doc("The gradients of batch normalisation: in training by the statistics of the batch, else by the running ones."),
    OpDef::composite(
        "aten::batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? \
         running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor \
         reserve) -> (Tensor, Tensor, Tensor)",
        without_reserve,
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("The gradients of `_batch_norm_with_update` and `_batch_norm_no_update`."),
];

type Meta<'a> = Args<'a, TensorMeta>;

/// The gradients of the input and the parameters, those that the mask at this position asks for.
fn masked(args: &Meta<'_>, mask: usize, outputs: [Option<TensorMeta>; 3]) -> Result<Vec<Output>> {
    let wanted = args.list(mask)?;
    if wanted.len() != outputs.len() {
        return Err(args.invalid("output_mask should hold three bools"));
    }
    let pairs = wanted.iter().zip(outputs);
    Ok(pairs
        .map(|(is_wanted, output)| match (is_wanted, output) {
            (Value::Bool(true), Some(meta)) => Output::Tensor(meta),
            _ => Output::Value(Value::None),
        })
        .collect())
}

/// The input, once the gradient of the result fits it.
fn input<'a>(args: &'a Meta<'_>) -> Result<&'a TensorMeta> {
    let (grad, input) = (args.tensor(0)?, args.tensor(1)?);
    if grad.dtype != input.dtype {
        let what = format!("expected scalar type {} but found {}", input.dtype.cpp_name(), grad.dtype.cpp_name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    if !input.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(input.dtype, "normalisation").op(&*args.op.name));
    }
    if !args.agree(&grad.sizes, &input.sizes) {
        return Err(args.bad_shape("the gradient and the input should be of the same sizes"));
    }
    Ok(input)
}

/// Checks that an argument, where it is given, has this many elements.
fn check_count(args: &Meta<'_>, index: usize, expected: &SymInt) -> Result<()> {
    let Some(meta) = args.opt_tensor(index)? else { return Ok(()) };
    let n: SymInt = meta.sizes.iter().product();
    if n != *expected {
        let name = &args.op.schema.args[index].name;
        return Err(args.bad_shape(format!("{name} should contain {expected} elements not {n}")));
    }
    Ok(())
}

fn layer_norm(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (input, shape) = (input(args)?, args.sym_ints(2)?);
    let Some(n_lead) = input.sizes.len().checked_sub(shape.len()).filter(|&it| input.sizes[it..] == shape) else {
        return Err(args.bad_shape("the last sizes of the input should be the normalized shape"));
    };
    let n_rows: SymInt = input.sizes[..n_lead].iter().product();
    let n: SymInt = shape.iter().product();
    for (index, expected) in [(3, &n_rows), (4, &n_rows), (5, &n), (6, &n)] {
        check_count(args, index, expected)?;
    }
    let like = |index: usize| -> Result<_> {
        Ok(args.opt_tensor(index)?.map(|it| TensorMeta::contiguous(it.dtype, it.sizes.clone())))
    };
    let of_input = TensorMeta::contiguous(input.dtype, input.sizes.clone());
    masked(args, 7, [Some(of_input), like(5)?, like(6)?])
}

fn group_norm(args: &Meta<'_>) -> Result<Vec<Output>> {
    let input = input(args)?;
    let (n_batch, n_channels, n_points, group) = (args.sym_int(5)?, args.sym_int(6)?, args.sym_int(7)?, args.int(8)?);
    if group <= 0 || args.differ(&n_channels.modulo(&group.into()), &SymInt::ZERO) {
        let what =
            format!("Expected number of channels {n_channels} to be evenly divisible by number of groups {group}");
        return Err(args.invalid(what));
    }
    let n: SymInt = input.sizes.iter().product();
    if n != n_batch * n_channels * n_points {
        return Err(args.bad_shape(format!("the input has not {n_batch} x {n_channels} x {n_points} elements")));
    }
    let n_rows = n_batch * group;
    for (index, expected) in [(2, &n_rows), (3, &n_rows), (4, n_channels)] {
        check_count(args, index, expected)?;
    }
    let dtype = args.opt_tensor(4)?.map_or(input.dtype, |it| it.dtype);
    let of_parameter = Some(TensorMeta::contiguous(dtype, vec![n_channels.clone()]));
    let of_input = in_format_of(input, input.dtype, input.sizes.clone());
    masked(args, 9, [Some(of_input), of_parameter.clone(), of_parameter])
}

fn batch_norm(args: &Meta<'_>) -> Result<Vec<Output>> {
    let input = input(args)?;
    let Some(n_channels) = input.sizes.get(1) else {
        return Err(args.bad_shape(format!("expected at least 2D input, got {}D", input.sizes.len())));
    };
    let is_training = args.bool(7)?;
    let mut dtype: Option<DType> = None;
    for index in 2..7 {
        check_count(args, index, n_channels).or_else(|problem| match args.opt_tensor(index)? {
            // The statistics of the batch are empty where there were none.
            Some(it) if index >= 5 && !is_training && it.sizes == [SymInt::ZERO] => Ok(()),
            _ => Err(problem),
        })?;
        dtype = dtype.or(args.opt_tensor(index)?.map(|it| it.dtype));
    }
    let stats = if is_training { [5, 6] } else { [3, 4] };
    if stats.into_iter().any(|it| args.is_none(it)) {
        let [mean, var] = stats.map(|it| &args.op.schema.args[it].name);
        return Err(args.invalid(format!("{mean} and {var} must be given where train is {is_training}")));
    }
    let of_parameter = Some(TensorMeta::contiguous(dtype.unwrap_or(input.dtype), vec![n_channels.clone()]));
    let of_input = in_format_of(input, input.dtype, input.sizes.clone());
    masked(args, 9, [Some(of_input), of_parameter.clone(), of_parameter])
}

fn without_reserve(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    cx.aten_all("native_batch_norm_backward", &args.values[..10], &[])
}
