//! Convolutions of one, two and three spatial dimensions. `convolution` is the one with a kernel; the others are made
//! of it, as in PyTorch.

use crate::conv::gradient;
use crate::core::decompositions::{Call, size_list, tensor_of};
use crate::core::memory_format::{in_memory_format, memory_format_of};
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, real_of};
use tracefx_core::{Code, DType, Diagnostic, MemoryFormat, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// Sums over all channels and taps; PyTorch's own float16 kernels round partial sums.
const TOLERANCE: Tol = Tol::Scaled(8.0);

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, \
             SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
        convolution,
    )
    .vjp(gradient::convolution)
    .doc("The convolution of a batch with a weight, in groups of channels; or the transpose of that.")
    .tags(Tags::CORE)
    .tolerance(TOLERANCE),
    OpDef::new(
        "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, \
             SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt \
             groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        convolution_backward,
    )
    .vjp(gradient::convolution_backward)
    .doc("The gradients of a convolution's input, weight and bias, as far as they are asked for.")
    .tags(Tags::CORE)
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, \
             SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool \
             deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
        underscore_convolution,
    )
    .tags(Tags::FRESH)
    .tags(Tags::NOT_DECOMPOSED)
    .doc("The same as `convolution`, with hints for GPUs.")
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] \
             padding=[0], SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
        conv,
    )
    .tags(Tags::FRESH)
    .doc("A convolution along one dimension, of a batch or of a single item.")
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] \
             padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
        conv,
    )
    .tags(Tags::FRESH)
    .doc("A convolution of images, of a batch or of a single one.")
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] \
             padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
        conv,
    )
    .tags(Tags::FRESH)
    .doc("A convolution of volumes, of a batch or of a single one.")
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str \
             padding=\"valid\", SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
        conv_padding,
    )
    .tags(Tags::FRESH)
    .doc("A convolution whose padding is `valid` (none) or `same` (the result has the size of the input).")
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str \
             padding=\"valid\", SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
        conv_padding,
    )
    .tags(Tags::FRESH)
    .doc("A convolution whose padding is `valid` (none) or `same` (the result has the size of the input).")
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str \
             padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
        conv_padding,
    )
    .tags(Tags::FRESH)
    .doc("A convolution whose padding is `valid` (none) or `same` (the result has the size of the input).")
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] \
             padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor",
        conv_transpose,
    )
    .tags(Tags::FRESH)
    .doc("The transpose of a convolution along one dimension.")
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], \
             SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) \
             -> Tensor",
        conv_transpose,
    )
    .tags(Tags::FRESH)
    .doc("The transpose of a convolution of images.")
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, \
             1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] \
             dilation=[1, 1, 1]) -> Tensor",
        conv_transpose,
    )
    .tags(Tags::FRESH)
    .doc("The transpose of a convolution of volumes.")
    .tolerance(TOLERANCE),
];

/// One int per spatial dimension; a single one counts for all.
fn spatial<T>(args: &Args<'_, T>, index: usize, n_dims: usize, least: i64, refusal: &str) -> Result<Vec<SymInt>> {
    let mut values = args.sym_ints(index)?;
    if values.len() == 1 {
        values = vec![values[0].clone(); n_dims];
    }
    if values.len() != n_dims {
        let name = &args.op.schema.args[index].name;
        return Err(args.invalid(format!("expected {name} to be a list of {n_dims} values, but got {}", values.len())));
    }
    if values.iter().any(|it| it.as_int().is_some_and(|it| it < least)) {
        return Err(args.invalid(refusal));
    }
    Ok(values)
}

fn show(sizes: &[SymInt]) -> String {
    let items: Vec<_> = sizes.iter().map(SymInt::to_string).collect();
    format!("[{}]", items.join(", "))
}

fn convolution(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (input, weight) = (args.tensor(0)?, args.tensor(1)?);
    let (is_transposed, groups) = (args.bool(6)?, args.int(8)?);
    let Some(n_dims @ 1..) = weight.sizes.len().checked_sub(2) else {
        return Err(args.bad_shape("weight should have at least three dimensions"));
    };
    if input.sizes.len() != weight.sizes.len() {
        return Err(args.bad_shape(format!(
            "Expected {}-dimensional input for {}-dimensional weight {}, but got {}-dimensional input of size {} \
                 instead",
            weight.sizes.len(),
            weight.sizes.len(),
            show(&weight.sizes),
            input.sizes.len(),
            show(&input.sizes)
        )));
    }
    if n_dims > 3 {
        return Err(args.unsupported(format!("a convolution of {n_dims} spatial dimensions")));
    }
    let stride = spatial(args, 3, n_dims, 1, "non-positive stride is not supported")?;
    let padding = spatial(args, 4, n_dims, 0, "negative padding is not supported")?;
    let dilation = spatial(args, 5, n_dims, 1, "dilation should be greater than zero")?;
    let extra = spatial(args, 7, n_dims, 0, "negative output_padding is not supported")?;
    if groups <= 0 {
        return Err(args.invalid(format!("expected groups > 0, but got groups={groups}")));
    }
    check_dtypes(args, input, weight)?;
    check_channels(args, input, weight, is_transposed, groups)?;
    let channels = if is_transposed { &weight.sizes[1] * groups } else { weight.sizes[0].clone() };
    if let Some(bias) = args.opt_tensor(2)?.filter(|it| it.sizes.len() != 1 || args.differ(&it.sizes[0], &channels)) {
        return Err(args.bad_shape(format!(
            "Given transposed={}, weight of size {}, expected bias to be 1-dimensional with {channels} elements, but \
             got bias of size {} instead",
            is_transposed as u8,
            show(&weight.sizes),
            show(&bias.sizes)
        )));
    }
    let mut sizes = vec![input.sizes[0].clone(), channels];
    for dim in 0..n_dims {
        let (size, kernel) = (&input.sizes[dim + 2], &weight.sizes[dim + 2]);
        let reach = &dilation[dim] * (kernel - 1);
        sizes.push(if is_transposed {
            (size - 1) * &stride[dim] - &padding[dim] * 2 + reach + &extra[dim] + 1
        } else {
            let room = size + &padding[dim] * 2 - reach - 1;
            if args.less(&room, &SymInt::ZERO) {
                return Err(args.bad_shape(format!(
                    "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater \
                     than actual input size",
                    &padding[dim] * 2 + size,
                    &dilation[dim] * (kernel - 1) + 1
                )));
            }
            room.floor_div(&stride[dim]) + 1
        });
    }
    if sizes[2..].iter().any(|it| args.less(it, &SymInt::ZERO)) {
        return Err(args.bad_shape(format!("the output would have the sizes {}", show(&sizes))));
    }
    Ok(vec![Output::Tensor(lying_as(input, weight, input.dtype, sizes))])
}

/// A result or gradient of a convolution of this input and weight, in the memory format that PyTorch's CPU chooses: channels
/// last where one of the two is. Of one dimension only the weight is asked, as an image of height one; of three, only dtypes
/// for which PyTorch has a kernel of oneDNN lie so.
fn lying_as(input: &TensorMeta, weight: &TensorMeta, dtype: DType, sizes: Vec<SymInt>) -> TensorMeta {
    if let [n, channels, length] = &sizes[..] {
        let format = memory_format_of(&as_image(weight));
        let image = vec![n.clone(), channels.clone(), SymInt::ONE, length.clone()];
        let mut strides = in_memory_format(dtype, image, format).strides;
        strides.remove(2);
        return TensorMeta { strides, ..TensorMeta::contiguous(dtype, sizes) };
    }
    let format = match (memory_format_of(input), memory_format_of(weight)) {
        (MemoryFormat::Contiguous, format) | (format, _) => format,
    };
    let has_kernel = real_of(input.dtype).is_float() && real_of(input.dtype) != DType::Float64;
    let format = if format == MemoryFormat::ChannelsLast3d && !has_kernel { MemoryFormat::Contiguous } else { format };
    in_memory_format(dtype, sizes, format)
}

/// A tensor of three dimensions with one of size one before the last.
fn as_image(meta: &TensorMeta) -> TensorMeta {
    let mut image = meta.clone();
    image.sizes.insert(2, SymInt::ONE);
    image.strides.insert(2, &meta.sizes[2] * &meta.strides[2]);
    image
}

fn convolution_backward(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (grad, input, weight) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    let n_dims = weight.sizes.len().saturating_sub(2);
    if !(1..=3).contains(&n_dims) || input.sizes.len() != n_dims + 2 || grad.sizes.len() != n_dims + 2 {
        return Err(args.bad_shape("the gradient, the input and the weight should have as many dimensions, 3 to 5"));
    }
    if grad.dtype != input.dtype || weight.dtype != input.dtype {
        let what = "the gradient, the input and the weight should be of one dtype";
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    let (is_transposed, groups) = (args.bool(7)?, args.int(9)?);
    for (index, least) in [(4, 1), (5, 0), (6, 1)] {
        spatial(args, index, n_dims, least, "stride and dilation should be positive and padding not negative")?;
    }
    if groups <= 0 {
        return Err(args.invalid(format!("expected groups > 0, but got groups={groups}")));
    }
    check_channels(args, input, weight, is_transposed, groups)?;
    let channels = if is_transposed { &weight.sizes[1] * groups } else { weight.sizes[0].clone() };
    if args.differ(&grad.sizes[1], &channels) || args.differ(&grad.sizes[0], &input.sizes[0]) {
        return Err(args.bad_shape(format!("a gradient of {} does not fit the convolution", show(&grad.sizes))));
    }
    let mut outputs = Vec::new();
    for (index, like) in [Some(input), Some(weight), None].into_iter().enumerate() {
        let is_wanted = matches!(args.list(10)?.get(index), Some(Value::Bool(true)));
        outputs.push(match like {
            _ if !is_wanted => Output::Value(Value::None),
            Some(like) => Output::Tensor(lying_as(input, weight, like.dtype, like.sizes.clone())),
            None => Output::Tensor(TensorMeta::contiguous(input.dtype, vec![channels.clone()])),
        });
    }
    Ok(outputs)
}

fn check_dtypes(args: &Args<'_, TensorMeta>, input: &TensorMeta, weight: &TensorMeta) -> Result<()> {
    let differs = |what: &str, dtype: DType| {
        let what = format!("Input type ({}) and {what} type ({}) should be the same", input.dtype.name(), dtype.name());
        Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name))
    };
    if weight.dtype != input.dtype {
        return differs("weight", weight.dtype);
    }
    match args.opt_tensor(2)? {
        Some(bias) if bias.dtype != input.dtype => differs("bias", bias.dtype),
        _ => Ok(()),
    }
}

fn check_channels(
    args: &Args<'_, TensorMeta>,
    input: &TensorMeta,
    weight: &TensorMeta,
    is_transposed: bool,
    groups: i64,
) -> Result<()> {
    let given = format!("Given groups={groups}, ");
    let weight_size = show(&weight.sizes);
    let n = &weight.sizes[0];
    if args.less(n, &groups.into()) {
        return Err(args.bad_shape(format!(
            "{given}expected weight to be at least {groups} at dimension 0, but got weight of size {weight_size} \
                 instead"
        )));
    }
    if args.differ(&n.modulo(&groups.into()), &SymInt::ZERO) {
        return Err(args.bad_shape(format!(
            "{given}expected weight to be divisible by {groups} at dimension 0, but got weight of size \
                 {weight_size} instead"
        )));
    }
    let expected = if is_transposed { weight.sizes[0].clone() } else { &weight.sizes[1] * groups };
    if args.differ(&input.sizes[1], &expected) {
        return Err(args.bad_shape(format!(
            "{given}weight of size {weight_size}, expected input{} to have {expected} channels, but got {} channels \
                 instead",
            show(&input.sizes),
            input.sizes[1]
        )));
    }
    Ok(())
}

fn underscore_convolution(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![cx.aten("convolution", &args.values[..9])?])
}

/// The input with a batch dimension, and whether it had none.
fn as_batch(cx: &mut Cx<'_>, args: &Call<'_>, n_dims: usize) -> Result<(Traced, bool)> {
    let input = *args.tensor(0)?;
    let rank = cx.meta(input).sizes.len();
    if rank != n_dims + 1 && rank != n_dims + 2 {
        return Err(args.bad_shape(format!(
            "Expected {}D (unbatched) or {}D (batched) input to {}, but got input of size: {}",
            n_dims + 1,
            n_dims + 2,
            args.op.schema.name,
            show(&cx.meta(input).sizes)
        )));
    }
    match rank == n_dims + 1 {
        true => Ok((cx.aten("unsqueeze", [&input.into(), &Value::int(0)])?, true)),
        false => Ok((input.into(), false)),
    }
}

fn settle(cx: &mut Cx<'_>, result: Traced, is_single: bool) -> Result<Vec<Traced>> {
    Ok(vec![if is_single { cx.aten("squeeze.dim", [&result, &Value::int(0)])? } else { result }])
}

fn n_spatial(args: &Call<'_>) -> usize {
    // The name says it: conv1d, conv_transpose2d…
    args.op.schema.name.trim_end_matches('d').chars().last().and_then(|it| it.to_digit(10)).unwrap_or(0) as usize
}

fn conv(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let n_dims = n_spatial(args);
    let (input, is_single) = as_batch(cx, args, n_dims)?;
    let value = |index: usize| &args.values[index];
    let zeros = Value::ints(&vec![0; n_dims]);
    let call = [&input, value(1), value(2), value(3), value(4), value(5), &Value::Bool(false), &zeros, value(6)];
    let result = cx.aten("convolution", call)?;
    settle(cx, result, is_single)
}

fn conv_transpose(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (input, is_single) = as_batch(cx, args, n_spatial(args))?;
    let value = |index: usize| &args.values[index];
    let call = [&input, value(1), value(2), value(3), value(4), value(7), &Value::Bool(true), value(5), value(6)];
    let result = cx.aten("convolution", call)?;
    settle(cx, result, is_single)
}

fn conv_padding(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let n_dims = n_spatial(args);
    let (mut input, is_single) = as_batch(cx, args, n_dims)?;
    let value = |index: usize| &args.values[index];
    let mut padding = vec![SymInt::from(0); n_dims];
    match args.str(4)? {
        "valid" => {}
        "same" => {
            if args.sym_ints(3)?.iter().any(|it| *it != 1) {
                return Err(args.invalid("padding='same' is not supported for strided convolutions"));
            }
            let kernel = cx.meta(*args.tensor(1)?).sizes.get(2..).unwrap_or(&[]).to_vec();
            if kernel.len() != n_dims {
                return Err(args.bad_shape(format!("expected a weight of {} dimensions", n_dims + 2)));
            }
            let dilation = spatial(args, 5, n_dims, 1, "dilation should be greater than zero")?;
            let total: Vec<SymInt> = (0..n_dims).map(|dim| &dilation[dim] * (&kernel[dim] - 1)).collect();
            let two = SymInt::from(2);
            padding = total.iter().map(|it| it.floor_div(&two)).collect();
            // What is left over where the total is odd goes to the right; constant_pad_nd counts from the last dimension.
            let rest: Vec<SymInt> = total.iter().zip(&padding).map(|(total, left)| total - left * 2).collect();
            if rest.iter().any(|it| *it != 0) {
                let pad: Vec<SymInt> = rest.iter().rev().flat_map(|it| [SymInt::from(0), it.clone()]).collect();
                input = cx.aten("constant_pad_nd", [&input, &size_list(&pad)])?;
            }
        }
        other => return Err(args.invalid(format!("Invalid padding string: '{other}'"))),
    }
    let zeros = Value::ints(&vec![0; n_dims]);
    let input = tensor_of(&input).into();
    let call =
        [&input, value(1), value(2), value(3), &size_list(&padding), value(5), &Value::Bool(false), &zeros, value(6)];
    let result = cx.aten("convolution", call)?;
    settle(cx, result, is_single)
}
