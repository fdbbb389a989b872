//! Layer, group and root-mean-square normalisation.

use crate::core::decompositions::Call;
use crate::core::memory_format::in_format_of;
use crate::norm::gradient;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite(
        "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, \
             float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
        layer_norm,
    )
    .tags(Tags::FRESH)
    .doc("Normalises over the last dimensions."),
    OpDef::new(
        "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float \
             eps) -> (Tensor, Tensor, Tensor)",
        native_layer_norm,
    )
    .vjp_of_first(1, gradient::layer_norm)
    .doc("Layer normalisation, with the mean and the inverse deviation of each row as further results.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
    OpDef::composite(
        "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float \
             eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor",
        group_norm,
    )
    .tags(Tags::FRESH)
    .doc("Normalises over groups of channels."),
    OpDef::new(
        "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, \
             int group, float eps) -> (Tensor, Tensor, Tensor)",
        native_group_norm,
    )
    .vjp(gradient::group_norm)
    .doc("Group normalisation, with the mean and the inverse deviation of each group as further results.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
        rms_norm,
    )
    .doc("Divides by the root of the mean square over the last dimensions.")
    .decompose(decomposed_rms_norm)
    .tolerance(Tol::Default),
];

type Meta<'a> = Args<'a, TensorMeta>;
fn show(sizes: &[SymInt]) -> String {
    let items: Vec<_> = sizes.iter().map(SymInt::to_string).collect();
    format!("[{}]", items.join(", "))
}

/// How many dimensions are left in front of the normalised ones.
fn n_lead(args: &Meta<'_>, input: &TensorMeta, shape: &[SymInt], params: &[usize]) -> Result<usize> {
    if shape.is_empty() {
        return Err(args.bad_shape(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
             normalized_shape = []",
        ));
    }
    for &index in params {
        if let Some(param) = args.opt_tensor(index)?.filter(|it| !args.agree(&it.sizes, shape)) {
            let name = &args.op.schema.args[index].name;
            return Err(args.bad_shape(format!(
                "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {} and \
                 normalized_shape = {}",
                show(&param.sizes),
                show(shape)
            )));
        }
    }
    match input.sizes.len().checked_sub(shape.len()) {
        Some(n_lead) if args.agree(&input.sizes[n_lead..], shape) => Ok(n_lead),
        _ => Err(args.bad_shape(format!(
            "Given normalized_shape={}, expected input with shape [*, {}, but got input of size{}",
            show(shape),
            show(shape).trim_start_matches('['),
            show(&input.sizes)
        ))),
    }
}

/// The dtype of statistics: that of the parameters, which may be wider than the input.
fn stats_dtype(args: &Meta<'_>, input: &TensorMeta, params: &[usize]) -> Result<DType> {
    if !input.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(input.dtype, "normalisation").op(&*args.op.name));
    }
    let mut res = input.dtype;
    for &index in params {
        let Some(param) = args.opt_tensor(index)? else { continue };
        if param.dtype != input.dtype && (param.dtype != DType::Float32 || input.dtype.size() != 2) {
            let what = format!("mixed dtype: expected {} or float32, got {}", input.dtype.name(), param.dtype.name());
            return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
        }
        res = param.dtype;
    }
    Ok(res)
}

fn native_layer_norm(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (input, shape) = (args.tensor(0)?, args.sym_ints(1)?);
    let n_lead = n_lead(args, input, &shape, &[2, 3])?;
    let dtype = stats_dtype(args, input, &[2, 3])?;
    let mut stats = input.sizes[..n_lead].to_vec();
    stats.resize(input.sizes.len(), SymInt::from(1));
    let stats = Output::Tensor(TensorMeta::contiguous(dtype, stats));
    let result = Output::Tensor(TensorMeta::contiguous(input.dtype, input.sizes.clone()));
    Ok(vec![result, stats.clone(), stats])
}

fn native_group_norm(args: &Meta<'_>) -> Result<Vec<Output>> {
    let input = args.tensor(0)?;
    let (n_batch, n_channels, n_points, group) = (args.sym_int(3)?, args.sym_int(4)?, args.sym_int(5)?, args.int(6)?);
    let n: SymInt = input.sizes.iter().product();
    if group <= 0 || args.differ(&n_channels.modulo(&group.into()), &SymInt::ZERO) {
        return Err(args.invalid(format!(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape {} and \
             num_groups={group}",
            show(&input.sizes)
        )));
    }
    if n != n_batch * n_channels * n_points {
        return Err(args.bad_shape(format!(
            "an input of shape {} has not {n_batch} x {n_channels} x {n_points} elements",
            show(&input.sizes)
        )));
    }
    for index in [1, 2] {
        if let Some(param) =
            args.opt_tensor(index)?.filter(|it| !args.agree(&it.sizes, std::slice::from_ref(n_channels)))
        {
            let name = &args.op.schema.args[index].name;
            return Err(args.bad_shape(format!(
                "Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of \
                 shape {} and input of shape {}",
                show(&param.sizes),
                show(&input.sizes)
            )));
        }
    }
    let dtype = stats_dtype(args, input, &[1, 2])?;
    let stats = Output::Tensor(TensorMeta::contiguous(dtype, vec![n_batch.clone(), SymInt::from(group)]));
    let result = in_format_of(input, input.dtype, input.sizes.clone());
    Ok(vec![Output::Tensor(result), stats.clone(), stats])
}

fn rms_norm(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (input, shape) = (args.tensor(0)?, args.sym_ints(1)?);
    n_lead(args, input, &shape, &[2])?;
    stats_dtype(args, input, &[2])?;
    Ok(vec![Output::Tensor(in_format_of(input, input.dtype, input.sizes.clone()))])
}

fn layer_norm(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![cx.aten("native_layer_norm", &args.values[..5])?])
}

fn group_norm(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let sizes = cx.meta(*args.tensor(0)?).sizes.clone();
    let [n_batch, n_channels, points @ ..] = &sizes[..] else {
        return Err(args.bad_shape(format!("expected at least 2D input, got {}D", sizes.len())));
    };
    let value = |index: usize| &args.values[index];
    let int = |it: &SymInt| Value::Int(it.clone());
    let n_points: SymInt = points.iter().product();
    let call =
        [value(0), value(2), value(3), &int(n_batch), &int(n_channels), &Value::Int(n_points), value(1), value(4)];
    Ok(vec![cx.aten("native_group_norm", call)?])
}

/// Follows `rms_norm_composite` of aten/src/ATen/native/layer_norm.cpp.
fn decomposed_rms_norm(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let input = *args.tensor(0)?;
    let meta = cx.meta(input).clone();
    let n_dims = args.sym_ints(1)?.len();
    let wide = if meta.dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
    let epsilon = if wide == DType::Float64 { f64::EPSILON } else { f32::EPSILON as f64 };
    let as_dtype = |cx: &mut Cx<'_>, it: Traced, from: DType, to: DType| {
        if from == to { Ok(it) } else { cx.aten_with("_to_copy", [&it], &[("dtype", Value::DType(to))]) }
    };
    let x = as_dtype(cx, input.into(), meta.dtype, wide)?;
    let dims: Vec<i64> = (meta.sizes.len() - n_dims..meta.sizes.len()).map(|it| it as i64).collect();
    let square = cx.aten("pow.Tensor_Scalar", [&x, &Value::int(2)])?;
    let mean = cx.aten("mean.dim", [&square, &Value::ints(&dims), &Value::Bool(true)])?;
    let shifted = cx.aten("add.Scalar", [&mean, &Value::Float(args.opt_float(3)?.unwrap_or(epsilon))])?;
    let factor = cx.aten("rsqrt", [&shifted])?;
    let mut res = cx.aten("mul.Tensor", [&x, &factor])?;
    if let Some(weight) = args.opt_tensor(2)? {
        res = cx.aten("mul.Tensor", [&res, &(*weight).into()])?;
    }
    Ok(vec![as_dtype(cx, res, wide, meta.dtype)?])
}
