//! Dropout. Without training it changes nothing; in training the random numbers are those of PyTorch for the same seed.

use crate::core::decompositions::{Call, to_dtype};
use crate::core::elementwise::{laid_out, promoting_to_float, to_float};
use crate::core::gradients::{Backward, Expr};
use crate::core::memory_format::memory_format_of;
use crate::pointwise::activation_gradient;
use crate::{Args, Cx, Infer, OpDef, Output, Tags, Tol, Traced, Value, check_cast};
use tracefx_core::{DType, DTypeKind, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    random("aten::dropout(Tensor input, float p, bool train) -> Tensor", |cx, args| {
        dropped(cx, args, Noise { by_channel: false, keeps_moments: false })
    })
    .doc("In training, zeros some elements and scales the others; else the input itself.")
    .in_place(&["dropout_"]),
    of_channels("aten::feature_dropout(Tensor input, float p, bool train) -> Tensor", |cx, args| {
        dropped(cx, args, Noise { by_channel: true, keeps_moments: false })
    })
    .doc("Dropout of whole channels.")
    .in_place(&["feature_dropout_"]),
    random("aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor", |cx, args| {
        dropped(cx, args, Noise { by_channel: false, keeps_moments: true })
    })
    .doc("Dropout that keeps mean and variance.")
    .in_place(&["alpha_dropout_"]),
    of_channels("aten::feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", |cx, args| {
        dropped(cx, args, Noise { by_channel: true, keeps_moments: true })
    })
    .doc("Dropout of whole channels that keeps mean and variance.")
    .in_place(&["feature_alpha_dropout_"]),
    OpDef::new("aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", native_dropout)
        .decompose(dropped_with_mask)
        .vjp(activation_gradient::native_dropout)
        .doc("Dropout, with the mask of the elements that were kept as a second result.")
        .tags(Tags::CORE.with(Tags::RANDOM))
        .tolerance(Tol::Default),
    OpDef::new(
        "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
        promoting_to_float::<2>,
    )
    .decompose(backward_as_product)
    .vjp(gradient_of_backward)
    .doc("The gradient of `native_dropout`, from its mask: `grad_output * mask * scale`.")
    .tags(Tags::POINTWISE)
    .tolerance(Tol::Default),
];

const fn random(schema: &'static str, decompose: crate::Decompose) -> OpDef {
    OpDef::new(schema, dropout)
        .decompose(decompose)
        .tags(Tags::RANDOM.with(Tags::MAY_GIVE_ARGUMENT))
        .tolerance(Tol::Default)
}

const fn of_channels(schema: &'static str, decompose: crate::Decompose) -> OpDef {
    OpDef { infer: Infer::Rule(feature_dropout), ..random(schema, decompose) }
}

/// What the input is multiplied with.
#[derive(Clone, Copy)]
struct Noise {
    /// One number for each channel.
    by_channel: bool,
    /// Mean and variance of the input stay what they are.
    keeps_moments: bool,
}

fn check_probability<T>(args: &Args<'_, T>) -> Result<f64> {
    match args.float(1)? {
        p if (0.0..=1.0).contains(&p) => Ok(p),
        p => Err(args.invalid(format!("dropout probability has to be between 0 and 1, but got {p}"))),
    }
}

fn dropout(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (input, p) = (args.tensor(0)?, check_probability(args)?);
    if !args.bool(2)? || p == 0.0 || input.sizes.contains(&SymInt::from(0)) {
        return Ok(vec![Output::Same(0)]);
    }
    Ok(vec![Output::Tensor(laid_out(input.dtype, input.sizes.clone(), &[input]))])
}

/// Where all is dropped, or nothing, no noise is drawn by channel and nobody asks for channels.
fn feature_dropout(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let res = dropout(args)?;
    if !matches!(res[..], [Output::Same(_)]) && args.float(1)? != 1.0 {
        check_channels(args, args.tensor(0)?.sizes.len())?;
    }
    Ok(res)
}

fn check_channels<T>(args: &Args<'_, T>, rank: usize) -> Result<()> {
    match rank {
        0 | 1 => Err(args.bad_shape("Feature dropout requires at least 2 dimensions in the input")),
        _ => Ok(()),
    }
}

fn native_dropout(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let input = args.tensor(0)?;
    let p = args.float(1)?;
    let of_dtype = |dtype| Output::Tensor(laid_out(dtype, input.sizes.clone(), &[input]));
    // As in PyTorch, where nothing is dropped nobody asks how probable it is, and without elements the mask is no mask.
    if input.sizes.contains(&SymInt::from(0)) {
        return Ok(vec![of_dtype(input.dtype), of_dtype(input.dtype)]);
    }
    if args.values[2] != Value::Bool(false) {
        check_probability(args)?;
        check_cast(if p == 1.0 { input.dtype } else { to_float(input.dtype) }, input.dtype)?;
    }
    Ok(vec![of_dtype(input.dtype), of_dtype(DType::Bool)])
}

/// Follows `_dropout_impl` of aten/src/ATen/native/Dropout.cpp.
fn dropped(cx: &mut Cx<'_>, args: &Call<'_>, kind: Noise) -> Result<Vec<Traced>> {
    let (input, p) = (*args.tensor(0)?, check_probability(args)?);
    if !args.bool(2)? || p == 0.0 {
        return Ok(vec![input.into()]);
    }
    if p == 1.0 {
        // A zero of the input's own kind, so that its dtype stays.
        let zero = match cx.meta(input).dtype.kind() {
            DTypeKind::Bool => Value::Bool(false),
            DTypeKind::Int => Value::int(0),
            DTypeKind::Float | DTypeKind::Complex => Value::Float(0.0),
        };
        return Ok(vec![cx.aten("mul.Scalar", [&input.into(), &zero])?]);
    }
    let empty = match kind.by_channel {
        false => cx.aten("empty_like", [&input.into()])?,
        true => {
            let meta = cx.meta(input);
            let (dtype, rank) = (meta.dtype, meta.sizes.len());
            check_channels(args, rank)?;
            let sizes = meta.sizes.iter().enumerate().map(|(dim, it)| if dim < 2 { it.clone() } else { SymInt::ONE });
            let sizes = Value::List(sizes.map(Value::Int).collect());
            cx.aten_with("empty.memory_format", [&sizes], &[("dtype", Value::DType(dtype))])?
        }
    };
    let mut noise = cx.aten("bernoulli_.float", [&empty, &Value::Float(1.0 - p)])?;
    if !kind.keeps_moments {
        noise = cx.aten("div.Scalar", [&noise, &Value::Float(1.0 - p)])?;
        return Ok(vec![cx.aten("mul.Tensor", [&input.into(), &noise])?]);
    }
    // What is dropped becomes the least value of SELU, and a line brings mean and variance back.
    const ALPHA: f64 = 1.7580993408473766;
    let scale = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
    let mut offset = cx.aten("add.Scalar", [&noise, &Value::int(-1)])?;
    offset = cx.aten("mul.Scalar", [&offset, &Value::Float(ALPHA * scale)])?;
    offset = cx.aten("add.Scalar", [&offset, &Value::Float(ALPHA * scale * p)])?;
    noise = cx.aten("mul.Scalar", [&noise, &Value::Float(scale)])?;
    let kept = cx.aten("mul.Tensor", [&input.into(), &noise])?;
    Ok(vec![cx.aten("add.Tensor", [&kept, &offset])?])
}

/// Follows `native_dropout_cpu` of the same file.
fn dropped_with_mask(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let input = *args.tensor(0)?;
    if cx.meta(input).sizes.contains(&SymInt::from(0)) {
        return Ok(vec![input.into(), cx.aten("empty_like", [&input.into()])?]);
    }
    let bools = [("dtype", Value::DType(DType::Bool))];
    if matches!(args.values[2], Value::Bool(false)) {
        let mask = cx.aten_with("ones_like", [&input.into()], &bools)?;
        return Ok(vec![cx.aten("clone", [&input.into()])?, mask]);
    }
    let empty = cx.aten_with("empty_like", [&input.into()], &bools)?;
    let p = check_probability(args)?;
    // It is drawn row by row, and lies as the input does.
    let mut mask = cx.aten("bernoulli.p", [&empty, &Value::Float(1.0 - p)])?;
    if cx.meta_of(&mask).strides != cx.meta_of(&empty).strides {
        mask = cx.aten("copy", [&empty, &mask])?;
    }
    let kept = cx.aten("mul.Tensor", [&input.into(), &mask])?;
    let scale = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
    Ok(vec![cx.aten("mul.Scalar", [&kept, &Value::Float(scale)])?, mask])
}

/// Follows `native_dropout_backward` of torch/_decomp/decompositions.py.
fn backward_as_product(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [grad, mask, scale] = &args.values[..] else { return Err(args.invalid("three arguments")) };
    let mask = to_dtype(cx, mask.clone(), cx.meta_of(grad).dtype)?;
    let scaled = cx.aten("mul.Tensor", [&mask, scale])?;
    let res = cx.aten("mul.Tensor", [grad, &scaled])?;
    let format = Value::MemoryFormat(memory_format_of(cx.meta_of(grad)));
    Ok(vec![cx.aten_with("clone", [&res], &[("memory_format", format)])?])
}

/// It is linear in the incoming gradient; the mask has none.
fn gradient_of_backward(it: &Backward<'_>) -> Result<Vec<Expr>> {
    Ok(vec![it.grad() * it.arg(1) * it.arg(2)])
}
