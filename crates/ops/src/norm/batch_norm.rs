//! Batch normalisation, in the variants that PyTorch's programs hold, and instance normalisation, which is made of it.

use crate::core::decompositions::{Call, size_list};
use crate::core::memory_format::in_format_of;
use crate::norm::gradient;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite(
        "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? \
             running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        batch_norm,
    )
    .tags(Tags::FRESH)
    .doc("Normalises each channel over the batch; in training it updates the running statistics.")
    .tags(Tags::WRITES_UNMARKED),
    OpDef::new(
        "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? \
             running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        native,
    )
    .vjp_of_first(1, gradient::batch_norm)
    .doc("Batch normalisation, with the mean and the inverse deviation of each channel as further results.")
    .tags(Tags::WRITES_UNMARKED)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, \
             Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        native,
    )
    .vjp_of_first(1, gradient::batch_norm)
    .doc("Batch normalisation that updates the running statistics in training.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, \
             float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        no_stats,
    )
    .vjp_of_first(1, gradient::batch_norm_no_stats)
    .doc("Batch normalisation without running statistics.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor \
             running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        no_training,
    )
    .vjp_of_first(1, gradient::batch_norm_no_training)
    .doc("Batch normalisation by the running statistics.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor \
             running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, \
             Tensor running_mean_out, Tensor running_var_out)",
        functional,
    )
    .vjp_of_first(1, gradient::batch_norm)
    .doc("Batch normalisation that gives the updated running statistics as results.")
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, \
             Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        with_update,
    )
    .vjp_of_first(1, gradient::batch_norm_with_update)
    .doc("Batch normalisation in training; the last result is scratch space of GPUs, empty here.")
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? \
             running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        no_update,
    )
    .vjp_of_first(1, gradient::batch_norm_no_training)
    .doc("Batch normalisation by the running statistics; the last result is scratch space of GPUs, empty here.")
    .tolerance(Tol::Default),
    OpDef::composite(
        "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? \
             running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        instance_norm,
    )
    .tags(Tags::FRESH)
    .doc("Normalises each channel of each item by itself.")
    .tags(Tags::WRITES_UNMARKED)
    // The statistics of half types are rounded, and those of a few points lie on the edge more often.
    .tolerance(Tol::Scaled(8.0)),
];

type Meta<'a> = Args<'a, TensorMeta>;

/// The normalised tensor and the statistics of each channel, which are empty where none are computed.
fn outputs(args: &Meta<'_>, n_params: usize, is_training: bool) -> Result<Vec<Output>> {
    let input = args.tensor(0)?;
    if !input.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(input.dtype, "batch normalisation").op(&*args.op.name));
    }
    let Some(n_channels) = input.sizes.get(1) else {
        return Err(args.bad_shape(format!("expected at least 2D input, got {}D", input.sizes.len())));
    };
    let mut stats_dtype = None;
    for index in 1..=n_params {
        let Some(param) = args.opt_tensor(index)? else { continue };
        let name = &args.op.schema.args[index].name;
        if !args.agree(&param.sizes, std::slice::from_ref(n_channels)) {
            let n: SymInt = param.sizes.iter().product();
            return Err(args.bad_shape(format!("{name} should contain {n_channels} elements not {n}")));
        }
        if param.dtype != input.dtype && (param.dtype != DType::Float32 || input.dtype.size() != 2) {
            let what = format!("{name} should be {} or float32 but is {}", input.dtype.name(), param.dtype.name());
            return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
        }
        stats_dtype.get_or_insert(param.dtype);
    }
    if !is_training && (n_params < 4 || args.is_none(3) || args.is_none(4)) {
        return Err(args.invalid("running_mean must be defined in evaluation mode"));
    }
    let n_stats = if is_training { n_channels.clone() } else { SymInt::from(0) };
    let stats = TensorMeta::contiguous(stats_dtype.unwrap_or(input.dtype), vec![n_stats]);
    let result = in_format_of(input, input.dtype, input.sizes.clone());
    Ok(vec![Output::Tensor(result), Output::Tensor(stats.clone()), Output::Tensor(stats)])
}

fn native(args: &Meta<'_>) -> Result<Vec<Output>> {
    outputs(args, 4, args.bool(5)?)
}

fn no_stats(args: &Meta<'_>) -> Result<Vec<Output>> {
    outputs(args, 2, args.bool(3)?)
}

fn no_training(args: &Meta<'_>) -> Result<Vec<Output>> {
    outputs(args, 4, false)
}

fn functional(args: &Meta<'_>) -> Result<Vec<Output>> {
    let mut res = outputs(args, 4, args.bool(5)?)?;
    for index in [3, 4] {
        let running = args.tensor(index)?;
        res.push(Output::Tensor(TensorMeta::contiguous(running.dtype, running.sizes.clone())));
    }
    Ok(res)
}

fn with_scratch(mut outputs: Vec<Output>) -> Vec<Output> {
    outputs.push(Output::Tensor(TensorMeta::contiguous(DType::UInt8, vec![SymInt::from(0)])));
    outputs
}

fn with_update(args: &Meta<'_>) -> Result<Vec<Output>> {
    outputs(args, 4, true).map(with_scratch)
}

fn no_update(args: &Meta<'_>) -> Result<Vec<Output>> {
    outputs(args, 4, false).map(with_scratch)
}

fn batch_norm(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let input = *args.tensor(0)?;
    if cx.meta(input).sizes.contains(&SymInt::from(0)) {
        return empty(cx, args);
    }
    let (op, positions): (_, &[usize]) = if !args.bool(5)? {
        if args.is_none(3) || args.is_none(4) {
            return Err(args.invalid("running_mean must be defined in evaluation mode"));
        }
        ("_native_batch_norm_legit_no_training", &[0, 1, 2, 3, 4, 6, 7])
    } else if args.is_none(3) && args.is_none(4) {
        ("_native_batch_norm_legit.no_stats", &[0, 1, 2, 5, 6, 7])
    } else {
        ("_native_batch_norm_legit", &[0, 1, 2, 3, 4, 5, 6, 7])
    };
    Ok(vec![cx.aten(op, positions.iter().map(|&at| &args.values[at]))?])
}

/// Of an empty batch there is nothing to normalise; the result only depends on the parameters as a graph.
fn empty(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let mut res = cx.aten("clone", [&args.values[0]])?;
    for (index, op) in [(1, "mul.Tensor"), (2, "add.Tensor")] {
        if !args.is_none(index) {
            let first = cx.aten("select.int", [&args.values[index], &Value::int(0), &Value::int(0)])?;
            res = cx.aten(op, [&res, &first])?;
        }
    }
    Ok(vec![res])
}

/// Follows `instance_norm` of aten/src/ATen/native/Normalization.cpp: the items become channels of one item.
fn instance_norm(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (input, uses_input_stats) = (*args.tensor(0)?, args.bool(5)?);
    if !uses_input_stats && (args.is_none(3) || args.is_none(4)) {
        return Err(args.invalid("Expected running_mean and running_var to be defined when use_input_stats is false"));
    }
    let sizes = cx.meta(input).sizes.clone();
    let [n_batch, n_channels, rest @ ..] = &sizes[..] else {
        return Err(args.bad_shape(format!("expected at least 2D input, got {}D", sizes.len())));
    };
    let mut call = args.values.clone();
    for slot in &mut call[1..5] {
        if !matches!(slot, Value::None) {
            *slot = cx.aten("repeat", [slot, &size_list(std::slice::from_ref(n_batch))])?;
        }
    }
    let as_one = [&[SymInt::from(1), n_batch * n_channels], rest].concat();
    let contiguous = cx.aten("contiguous", [&input.into()])?;
    call[0] = cx.aten("view", [&contiguous, &size_list(&as_one)])?;
    let running = [call[3].clone(), call[4].clone()];
    let res = cx.aten("batch_norm", &call)?;
    for (index, running) in [3, 4].into_iter().zip(running) {
        if args.is_none(index) || !uses_input_stats {
            continue;
        }
        let per_item = cx.aten("view", [&running, &size_list(&[n_batch.clone(), n_channels.clone()])])?;
        let mean = cx.aten("mean.dim", [&per_item, &Value::ints(&[0])])?;
        cx.aten("copy_", [&args.values[index], &mean])?;
    }
    Ok(vec![cx.aten("view", [&res, &size_list(&sizes)])?])
}
