//! Quantisation as programs of `torch.ao` spell it out: integers with a scale and the integer that stands for zero.
//!
//! The scale is one for all elements, one for each channel, or one for each token, which is a row of the last dimension.

use crate::core::decompositions::{Call, size_list, tensor_of};
use crate::index::gather::wrong_dtype;
use crate::{Cx, OpDef, TensorRef, Tol, Traced, Value};
use tracefx_core::{DType, Result};
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite(
        "quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, \
         int quant_max, ScalarType dtype) -> Tensor",
        quantize,
    )
    .doc("The nearest integers with a scale."),
    OpDef::composite(
        "quantized_decomposed::quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int \
         quant_min, int quant_max, ScalarType dtype) -> Tensor",
        quantize,
    )
    .doc("The nearest integers with a scale."),
    OpDef::composite(
        "quantized_decomposed::quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, \
         Tensor quant_min, Tensor quant_max, ScalarType dtype) -> Tensor",
        quantize,
    )
    .doc("The nearest integers with a scale."),
    OpDef::composite(
        "quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, \
         int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
        dequantize,
    )
    .doc("The floats that integers with a scale stand for."),
    OpDef::composite(
        "quantized_decomposed::dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int \
         quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
        dequantize,
    )
    .doc("The floats that integers with a scale stand for."),
    OpDef::composite(
        "quantized_decomposed::dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, \
         Tensor quant_min, Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
        dequantize,
    )
    .doc("The floats that integers with a scale stand for."),
    OpDef::composite(
        "quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, \
         int quant_min, int quant_max, ScalarType dtype) -> Tensor",
        quantize_per_channel,
    )
    .doc("The nearest integers with a scale for each channel."),
    OpDef::composite(
        "quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int \
         axis, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
        dequantize_per_channel,
    )
    .doc("The floats that integers with a scale for each channel stand for."),
    OpDef::composite(
        "quantized_decomposed::quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int \
         quant_min, int quant_max, ScalarType dtype) -> Tensor",
        quantize_rows,
    )
    .doc("The nearest integers with a scale for each row."),
    OpDef::composite(
        "quantized_decomposed::dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int \
         quant_min, int quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor",
        dequantize_per_token,
    )
    .doc("The floats that integers with a scale for each row stand for."),
    OpDef::composite(
        "quantized_decomposed::quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int \
         quant_min, int quant_max, ScalarType dtype, int group_size) -> Tensor",
        quantize_per_group,
    )
    .doc("The nearest integers with a scale for each group of elements of a row."),
    OpDef::composite(
        "quantized_decomposed::dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, \
         int quant_min, int quant_max, ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor",
        dequantize_per_group,
    )
    .doc("The floats that integers with a scale for each group of elements of a row stand for."),
    OpDef::composite(
        "quantized_decomposed::choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
        choose_per_token,
    )
    .tolerance(Tol::Default)
    .doc("The scale for each row at which its largest magnitude is the largest int8, and zeros."),
    OpDef::composite(
        "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> \
         (Tensor, Tensor)",
        choose_per_token_asymmetric,
    )
    .tolerance(Tol::Default)
    .doc("The scale and zero for each row at which its elements fill the range of int8."),
    OpDef::composite(
        "quantized_decomposed::choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, \
         Tensor)",
        choose_per_token_asymmetric,
    )
    .tolerance(Tol::Default)
    .doc("The scale and zero for each row at which its elements fill the range of int8."),
];

/// The argument of this name.
fn at(args: &Call<'_>, name: &str) -> Traced {
    args.position(name).map_or(Value::None, |it| args.values[it].clone())
}

fn dtype_of(cx: &Cx<'_>, it: &Traced) -> DType {
    cx.meta(tensor_of(it)).dtype
}

/// A conversion, unless the dtype is the right one already.
fn converted(cx: &mut Cx<'_>, it: Traced, dtype: &Traced) -> Result<Traced> {
    if *dtype == Value::DType(dtype_of(cx, &it)) {
        return Ok(it);
    }
    cx.aten_with("_to_copy", [&it], &[("dtype", dtype.clone())])
}

/// The input as float32, which is what is quantised.
fn wide(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Traced> {
    let input = args.values[0].clone();
    match dtype_of(cx, &input) {
        DType::Float32 => Ok(input),
        DType::Float16 | DType::BFloat16 => converted(cx, input, &Value::DType(DType::Float32)),
        other => Err(wrong_dtype(args, format!("Expecting input to have dtype torch.float32, but got dtype: {other}"))),
    }
}

/// Refuses integers of another dtype than the arguments say.
fn check_quantized(cx: &Cx<'_>, args: &Call<'_>) -> Result<()> {
    let own = dtype_of(cx, &args.values[0]);
    match at(args, "dtype") {
        Value::DType(dtype) if dtype != own => {
            Err(wrong_dtype(args, format!("Expecting input to have dtype: {dtype}, but got {own}")))
        }
        _ => Ok(()),
    }
}

/// `op` of a tensor and a tensor or number.
fn with(cx: &mut Cx<'_>, op: &str, a: &Traced, b: &Traced) -> Result<Traced> {
    let overload = if matches!(b, Value::Tensor(_)) { "Tensor" } else { "Scalar" };
    cx.aten(&format!("{op}.{overload}"), [a, b])
}

/// `1 / scale`, in the dtype of the scale.
fn inverse(cx: &mut Cx<'_>, scale: &Traced) -> Result<Traced> {
    match scale.as_scalar() {
        Some(number) => Ok(Value::Float(1.0 / number.to_f64())),
        None => cx.aten("reciprocal", [scale]),
    }
}

/// Cuts off what the range lacks, and converts.
fn clamped(cx: &mut Cx<'_>, args: &Call<'_>, it: &Traced) -> Result<Traced> {
    let (min, max) = (at(args, "quant_min"), at(args, "quant_max"));
    let op = if matches!(min, Value::Tensor(_)) { "clamp.Tensor" } else { "clamp" };
    let it = cx.aten(op, [it, &min, &max])?;
    converted(cx, it, &at(args, "dtype"))
}

/// A scale or zero that is a tensor of one element, as a number that takes no part in type promotion.
fn number(cx: &mut Cx<'_>, args: &Call<'_>, it: &Traced) -> Result<Traced> {
    match it {
        Value::Tensor(tensor) => {
            let n: SymInt = cx.meta(*tensor).sizes.iter().product();
            if n.as_int().is_some_and(|it| it != 1) {
                let what = format!("Expecting scale and zero_point tensors to be one element, but received : {n}");
                return Err(args.bad_shape(what));
            }
            cx.aten("reshape", [it, &Value::ints(&[])])
        }
        number => Ok(number.clone()),
    }
}

fn quantize(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let input = wide(cx, args)?;
    let (scale, zero) = (number(cx, args, &args.values[1])?, number(cx, args, &args.values[2])?);
    let inverse = inverse(cx, &scale)?;
    let scaled = with(cx, "mul", &input, &inverse)?;
    let rounded = cx.aten("round", [&scaled])?;
    let shifted = with(cx, "add", &rounded, &zero)?;
    Ok(vec![clamped(cx, args, &shifted)?])
}

fn dequantize(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    check_quantized(cx, args)?;
    let dtype = match at(args, "out_dtype") {
        Value::None => Value::DType(DType::Float32),
        given => given,
    };
    let (scale, zero) = (number(cx, args, &args.values[1])?, number(cx, args, &args.values[2])?);
    let input = converted(cx, args.values[0].clone(), &dtype)?;
    let shifted = with(cx, "sub", &input, &zero)?;
    Ok(vec![with(cx, "mul", &shifted, &scale)?])
}

/// A tensor of one number for each channel, so that it broadcasts along the axis.
fn along_axis(cx: &mut Cx<'_>, args: &Call<'_>, it: &Traced) -> Result<Traced> {
    let rank = cx.meta(*args.tensor(0)?).sizes.len();
    let axis = args.int(3)?;
    let Some(axis) = usize::try_from(axis).ok().filter(|it| *it < rank) else {
        return Err(args.invalid(format!("Expecting axis to be < {rank}")));
    };
    let mut shape = vec![1; rank];
    shape[axis] = -1;
    cx.aten("view", [it, &Value::ints(&shape)])
}

fn quantize_per_channel(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let input = wide(cx, args)?;
    let scales = along_axis(cx, args, &args.values[1])?;
    let zeros = along_axis(cx, args, &args.values[2])?;
    let inverse = inverse(cx, &scales)?;
    let scaled = with(cx, "mul", &input, &inverse)?;
    let rounded = cx.aten("round", [&scaled])?;
    let shifted = with(cx, "add", &rounded, &zeros)?;
    Ok(vec![clamped(cx, args, &shifted)?])
}

fn dequantize_per_channel(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    check_quantized(cx, args)?;
    let mut res = args.values[0].clone();
    let scales = along_axis(cx, args, &args.values[1])?;
    if !args.is_none(2) {
        let zeros = along_axis(cx, args, &args.values[2])?;
        res = with(cx, "sub", &res, &zeros)?;
    }
    res = with(cx, "mul", &res, &scales)?;
    let dtype = match at(args, "out_dtype") {
        Value::None => Value::DType(DType::Float32),
        given => given,
    };
    Ok(vec![converted(cx, res, &dtype)?])
}

/// The nearest integers of what is scaled and shifted; other than for whole tensors, the zero is added before rounding.
fn shifted_rows(cx: &mut Cx<'_>, args: &Call<'_>, input: Traced, scales: Traced, zeros: Traced) -> Result<Traced> {
    let inverse = inverse(cx, &scales)?;
    let scaled = with(cx, "mul", &input, &inverse)?;
    let shifted = with(cx, "add", &scaled, &zeros)?;
    let rounded = cx.aten("round", [&shifted])?;
    clamped(cx, args, &rounded)
}

fn quantize_rows(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    check_tokens(cx, args)?;
    let [input, scales, zeros] = [0, 1, 2].map(|it| args.values[it].clone());
    Ok(vec![shifted_rows(cx, args, input, scales, zeros)?])
}

/// Refuses scales and zeros that are not one for each row.
fn check_tokens(cx: &Cx<'_>, args: &Call<'_>) -> Result<()> {
    let count = |it: TensorRef| cx.meta(it).sizes.iter().product::<SymInt>();
    let sizes = &cx.meta(*args.tensor(0)?).sizes;
    let n: SymInt = sizes[..sizes.len().saturating_sub(1)].iter().product();
    for (index, name) in [(1, "scales"), (2, "zero_points")] {
        let own = count(*args.tensor(index)?);
        if own != n {
            return Err(args.bad_shape(format!("num_tokens: {n} {name}: {own}")));
        }
    }
    Ok(())
}

fn dequantize_per_token(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    check_tokens(cx, args)?;
    let shifted = with(cx, "sub", &args.values[0], &args.values[2])?;
    let scaled = with(cx, "mul", &shifted, &args.values[1])?;
    Ok(vec![converted(cx, scaled, &at(args, "output_dtype"))?])
}

/// The elements in rows of a group each, and scales or zeros in one column.
fn groups(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<[Traced; 3]> {
    let sizes = cx.meta(*args.tensor(0)?).sizes.clone();
    let group = args.int(args.position("group_size").unwrap_or_default())?;
    if group <= 1 {
        return Err(args.invalid("group_size must be > 1"));
    }
    let [_, n] = &sizes[..] else { return Err(args.bad_shape("input must be 2-dimensional")) };
    // A group is not longer than a row.
    let group = n.as_int().map_or(group, |it| group.min(it));
    if group == 0 || n.as_int().is_some_and(|it| it % group != 0) {
        return Err(args.bad_shape("input.shape[-1] must be divisible by group_size"));
    }
    let rows = cx.aten("reshape", [&args.values[0], &Value::ints(&[-1, group])])?;
    let mut column = |it: &Traced| match it {
        Value::None => Ok(Value::None),
        it => cx.aten("reshape", [it, &Value::ints(&[-1, 1])]),
    };
    Ok([rows, column(&args.values[1])?, column(&args.values[2])?])
}

fn quantize_per_group(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [rows, scales, zeros] = groups(cx, args)?;
    let res = shifted_rows(cx, args, rows, scales, zeros)?;
    let sizes = size_list(&cx.meta(*args.tensor(0)?).sizes);
    Ok(vec![cx.aten("reshape", [&res, &sizes])?])
}

fn dequantize_per_group(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [mut rows, scales, zeros] = groups(cx, args)?;
    if zeros != Value::None {
        rows = with(cx, "sub", &rows, &zeros)?;
    }
    let scaled = with(cx, "mul", &rows, &scales)?;
    let res = cx.aten("reshape", [&scaled, &size_list(&cx.meta(*args.tensor(0)?).sizes)])?;
    Ok(vec![converted(cx, res, &at(args, "output_dtype"))?])
}

fn choose_per_token(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    if at(args, "dtype") != Value::DType(DType::Int8) {
        return Err(args.invalid("unsupported dtype in choose_qparams_per_token"));
    }
    let size = cx.aten("abs", [&args.values[0]])?;
    let mut scales = cx.aten("amax", [&size, &Value::ints(&[-1]), &Value::Bool(true)])?;
    if dtype_of(cx, &scales) == DType::Float16 {
        scales = converted(cx, scales, &Value::DType(DType::Float32))?;
    }
    let scales = cx.aten("clamp_min", [&scales, &Value::Float(1e-5)])?;
    let scales = cx.aten("div.Scalar", [&scales, &Value::int(127)])?;
    let zeros = cx.aten("zeros_like", [&scales])?;
    Ok(vec![scales, zeros])
}

fn choose_per_token_asymmetric(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (least, most) = (-128, 127);
    let mut bound = |op: &str, clamp: &str| {
        let it = cx.aten(op, [&args.values[0], &Value::ints(&[-1]), &Value::Bool(true)])?;
        cx.aten(clamp, [&it, &Value::int(0)])
    };
    let (low, high) = (bound("amin", "clamp_max")?, bound("amax", "clamp_min")?);
    let range = cx.aten("sub.Tensor", [&high, &low])?;
    let scale = cx.aten("div.Scalar", [&range, &Value::Float(f64::from(most - least))])?;
    let scale = cx.aten("clamp_min", [&scale, &Value::Float(f64::from(f32::EPSILON))])?;
    let low = cx.aten("div.Tensor", [&low, &scale])?;
    let high = cx.aten("div.Tensor", [&high, &scale])?;
    // The zero that is exact at the bound which errs less.
    let low_error = cx.aten("add.Scalar", [&low, &Value::int(least.into())])?;
    let high_error = cx.aten("add.Scalar", [&high, &Value::int(most.into())])?;
    let errors = cx.aten("add.Tensor", [&low_error, &high_error])?;
    let is_low = cx.aten("gt.Scalar", [&errors, &Value::int(0)])?;
    let from_low = cx.aten("rsub.Scalar", [&low, &Value::int(least.into())])?;
    let from_high = cx.aten("rsub.Scalar", [&high, &Value::int(most.into())])?;
    let zero = cx.aten("where.self", [&is_low, &from_low, &from_high])?;
    let zero = cx.aten("clamp", [&zero, &Value::int(least.into()), &Value::int(most.into())])?;
    let zero = cx.aten("round", [&zero])?;
    let scale = converted(cx, scale, &Value::DType(DType::Float64))?;
    Ok(vec![scale, converted(cx, zero, &Value::DType(DType::Int64))?])
}
