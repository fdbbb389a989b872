//! Copies and conversions of whole tensors, and tensors that are another one under a new name.

use crate::core::elementwise::{check_fits, is_dense, laid_out};
use crate::core::write_back;
use crate::create;
use crate::pointwise::unary_gradient;
use crate::view::decompose;
use crate::view::gradient;
use crate::{Args, OpDef, Operand, Output, Tags, Value, broadcast};
use tracefx_core::{Code, DType, Device, Diagnostic, Layout, MemoryFormat, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
        to_copy,
    )
    .tags(Tags::CORE)
    .vjp(unary_gradient::identity)
    .doc("A copy, converted to a dtype."),
    OpDef::new(
        "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, \
         MemoryFormat? memory_format=None) -> Tensor(a)",
        to_dtype,
    )
    .decompose(decompose::to_dtype)
    .vjp(unary_gradient::identity)
    .doc("The tensor itself if it has the dtype already, else a converted copy."),
    OpDef::new(
        "aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? \
         memory_format=None) -> Tensor(a)",
        to_dtype,
    )
    .decompose(decompose::to_dtype)
    .vjp(unary_gradient::identity)
    .doc("The tensor itself if it has the dtype and layout already, else a converted copy."),
    OpDef::new(
        "aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool \
         copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
        to_device,
    )
    .decompose(decompose::to_dtype)
    .vjp(unary_gradient::identity)
    .doc("The tensor itself if it has the device and dtype already, else a converted copy."),
    OpDef::new(
        "aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? \
         memory_format=None) -> Tensor(a)",
        to_other,
    )
    .decompose(decompose::to_dtype)
    .vjp(unary_gradient::identity)
    .doc("The tensor with the dtype of another one."),
    OpDef::new("aten::type_as(Tensor self, Tensor other) -> Tensor", type_as)
        .tags(Tags::MAY_GIVE_ARGUMENT)
        .decompose(decompose::type_as)
        .vjp(unary_gradient::identity)
        .doc("The tensor with the dtype of another one."),
    OpDef::new("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", clone)
        .tags(Tags::CORE)
        .vjp(unary_gradient::identity)
        .doc("A copy."),
    OpDef::new("aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)", contiguous_rule)
        .decompose(decompose::contiguous)
        .vjp(unary_gradient::identity)
        .doc("The tensor itself if it lies in memory in this order already, else a copy."),
    OpDef::new("aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", copy)
        .tags(Tags::CORE)
        .vjp(gradient::copy)
        .doc("`src` with the dtype and sizes of `self`.")
        .in_place(&["copy_"]),
    OpDef::new("aten::lift_fresh_copy(Tensor self) -> Tensor", clone_row_major)
        .decompose(decompose::copy)
        .vjp(unary_gradient::identity)
        .doc("A copy: a constant of the program, which the program may write to."),
    OpDef::new("aten::alias_copy(Tensor self) -> Tensor", clone_row_major)
        .decompose(decompose::copy)
        .vjp(unary_gradient::identity)
        .doc("A copy."),
    OpDef::new("aten::detach_copy(Tensor self) -> Tensor", clone_row_major).no_gradient().doc("A copy."),
    OpDef::new("aten::lift(Tensor self) -> Tensor", same)
        .tags(Tags::VIEW)
        .vjp(unary_gradient::identity)
        .doc("The tensor itself."),
    OpDef::new("aten::lift_fresh(Tensor(a) self) -> Tensor(a)", same)
        .write_back(write_back::whole)
        .tags(Tags::VIEW)
        .vjp(unary_gradient::identity)
        .doc("The tensor itself."),
    OpDef::new("aten::detach_(Tensor(a!) self) -> Tensor(a!)", same)
        .doc("The tensor itself, from here on without gradients."),
    OpDef::new("aten::detach(Tensor(a) self) -> Tensor(a)", view)
        .write_back(write_back::whole)
        .decompose(decompose::alias)
        .tags(Tags::VIEW)
        .no_gradient()
        .doc("A view of everything, without gradients."),
    OpDef::new("aten::alias(Tensor(a) self) -> Tensor(a)", view)
        .write_back(write_back::whole)
        .tags(Tags::VIEW)
        .tags(Tags::CORE)
        .vjp(unary_gradient::identity)
        .doc("A view of everything."),
    OpDef::new("aten::cpu(Tensor(a) self) -> Tensor(b|a)", same)
        .tags(Tags::VIEW)
        .vjp(unary_gradient::identity)
        .doc("The tensor itself: all tensors live on the CPU."),
    OpDef::new("aten::resolve_conj(Tensor(a) self) -> Tensor(a)", same)
        .decompose(decompose::itself)
        .tags(Tags::VIEW)
        .vjp(unary_gradient::identity)
        .doc("The tensor itself: conjugation is never put off here."),
    OpDef::new("aten::resolve_neg(Tensor(a) self) -> Tensor(a)", same)
        .decompose(decompose::itself)
        .tags(Tags::VIEW)
        .vjp(unary_gradient::identity)
        .doc("The tensor itself: negation is never put off here."),
    OpDef::new("aten::fill.Scalar(Tensor self, Scalar value) -> Tensor", fill)
        .decompose(create::decompose::fill_scalar)
        .tags(Tags::DECOMPOSED)
        .tags(Tags::CORE)
        .vjp(gradient::fill)
        .doc("A tensor as `self`, full of one value.")
        .tags(Tags::WRITES_SHARED)
        .in_place(&["fill_.Scalar"]),
    OpDef::new("aten::fill.Tensor(Tensor self, Tensor value) -> Tensor", fill)
        .decompose(create::decompose::fill_tensor)
        .vjp(gradient::fill)
        .doc("A tensor as `self`, full of one value.")
        .in_place(&["fill_.Tensor"]),
    OpDef::new("aten::zero(Tensor self) -> Tensor", fill)
        .decompose(create::decompose::zeros_like)
        .vjp(unary_gradient::zero)
        .doc("A tensor as `self`, full of zeros.")
        .tags(Tags::WRITES_SHARED)
        .in_place(&["zero_"]),
    OpDef::new(
        "aten::_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? \
         dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
        assert_metadata,
    )
    .tags(Tags::SIDE_EFFECT)
    .doc("Holds that a tensor has these sizes, strides, dtype, device and layout."),
];

/// The memory format that was asked for.
pub(crate) fn memory_format<T>(args: &Args<'_, T>) -> Result<Option<MemoryFormat>> {
    args.position("memory_format").map_or(Ok(None), |it| args.opt_memory_format(it))
}

/// Refuses layouts other than strided ones.
pub(crate) fn check_layout<T>(args: &Args<'_, T>) -> Result<()> {
    match args.position("layout").map(|it| &args.values[it]) {
        Some(Value::Layout(layout)) if *layout != Layout::Strided => {
            Err(args.unsupported(format!("the layout {layout} is not implemented")))
        }
        Some(_) | None => Ok(()),
    }
}

/// A new tensor of these sizes, laid out in this order; as `like` lies where that is preserved.
pub(crate) fn formatted<T>(
    args: &Args<'_, T>,
    dtype: DType,
    sizes: Vec<SymInt>,
    format: MemoryFormat,
    like: Option<&TensorMeta>,
) -> Result<TensorMeta> {
    let order: &[usize] = match format {
        MemoryFormat::Contiguous => return Ok(TensorMeta::contiguous(dtype, sizes)),
        MemoryFormat::Preserve => {
            return Ok(match like {
                Some(like) if is_dense(like) => {
                    TensorMeta { strides: like.strides.clone(), ..TensorMeta::contiguous(dtype, sizes) }
                }
                Some(like) => laid_out(dtype, sizes, &[like]),
                None => TensorMeta::contiguous(dtype, sizes),
            });
        }
        MemoryFormat::ChannelsLast => &[1, 3, 2, 0],
        MemoryFormat::ChannelsLast3d => &[1, 4, 3, 2, 0],
    };
    if sizes.len() != order.len() {
        return Err(args.bad_shape(format!("required rank {} tensor to use {} format", order.len(), format.name())));
    }
    let mut meta = TensorMeta::contiguous(dtype, sizes);
    let mut stride = SymInt::ONE;
    for &dim in order {
        meta.strides[dim] = stride.clone();
        stride *= &meta.sizes[dim].max(&SymInt::ONE);
    }
    Ok(meta)
}

/// A copy of the first argument.
fn converted(args: &Args<'_, TensorMeta>, dtype: DType, format: Option<MemoryFormat>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    let format = format.unwrap_or(MemoryFormat::Preserve);
    let meta = formatted(args, dtype, this.sizes.clone(), format, Some(this))?;
    Ok(vec![Output::Tensor(TensorMeta { device: device(args, &this.device), ..meta })])
}

/// The device that was asked for.
pub(crate) fn device<T>(args: &Args<'_, T>, own: &Device) -> Device {
    match args.position("device").map(|it| &args.values[it]) {
        Some(Value::Device(device)) => device.clone(),
        Some(_) | None => own.clone(),
    }
}

fn to_copy(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    check_layout(args)?;
    converted(args, args.opt_dtype(1)?.unwrap_or(args.tensor(0)?.dtype), memory_format(args)?)
}

/// The tensor itself, if that is what `to` asks for.
fn to(args: &Args<'_, TensorMeta>, dtype: DType) -> Result<Vec<Output>> {
    check_layout(args)?;
    let this = args.tensor(0)?;
    let is_copy = args.position("copy").map_or(Ok(false), |it| args.bool(it))?;
    let format = memory_format(args)?;
    let lies_right = match format {
        None | Some(MemoryFormat::Preserve) => true,
        Some(format) => is_laid_out(args, this, format)?,
    };
    if dtype == this.dtype && !is_copy && lies_right {
        return Ok(vec![Output::Same(0)]);
    }
    converted(args, dtype, format)
}

fn to_dtype(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    to(args, args.opt_dtype(1)?.unwrap_or(args.tensor(0)?.dtype))
}

fn to_device(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    to(args, args.opt_dtype(2)?.unwrap_or(args.tensor(0)?.dtype))
}

fn to_other(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    to(args, args.tensor(1)?.dtype)
}

fn type_as(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    to(args, args.tensor(1)?.dtype)
}

fn clone(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    converted(args, args.tensor(0)?.dtype, memory_format(args)?)
}

fn clone_row_major(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    converted(args, args.tensor(0)?.dtype, Some(MemoryFormat::Contiguous))
}

/// Whether a tensor lies in memory in this order.
pub(crate) fn is_laid_out<T>(args: &Args<'_, T>, meta: &TensorMeta, format: MemoryFormat) -> Result<bool> {
    let expected = formatted(args, meta.dtype, meta.sizes.clone(), format, Some(meta))?;
    let is_empty = meta.sizes.iter().any(|it| *it == 0);
    // A size of one may have any stride.
    let fits = |dim: usize| meta.sizes[dim] == 1 || meta.strides[dim] == expected.strides[dim];
    Ok((0..meta.sizes.len()).all(fits) || is_empty)
}

fn contiguous_rule(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let format = args.opt_memory_format(1)?.unwrap_or(MemoryFormat::Contiguous);
    let this = args.tensor(0)?;
    if format == MemoryFormat::Preserve {
        return Err(args.invalid("preserve memory format is unsupported by the contiguous operator"));
    }
    if is_laid_out(args, this, format)? {
        return Ok(vec![Output::Same(0)]);
    }
    converted(args, this.dtype, Some(format))
}

fn copy(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (this, src) = (args.tensor(0)?, args.tensor(1)?);
    if !broadcast(args, &this.sizes, &src.sizes).is_ok_and(|it| args.agree(&it, &this.sizes)) {
        let shown = |it: &[SymInt]| it.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ");
        return Err(args.bad_shape(format!(
            "output with shape [{}] doesn't match the broadcast shape [{}]",
            shown(&this.sizes),
            shown(&src.sizes)
        )));
    }
    converted(args, this.dtype, None)
}

fn fill(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = args.tensor(0)?.dtype;
    let value = if args.values.len() > 1 { Some(args.operand(1)?) } else { None };
    match value {
        Some(Operand::Scalar(value)) => check_fits(value, dtype)?,
        Some(Operand::Tensor(value)) if !value.sizes.is_empty() => {
            let n = value.sizes.len();
            return Err(args.bad_shape(format!(
                "fill_ only supports 0-dimension value tensor but got tensor with {n} dimensions."
            )));
        }
        Some(Operand::Tensor(_)) | None => {}
    }
    converted(args, dtype, None)
}

fn same(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    args.tensor(0)?;
    Ok(vec![Output::Same(0)])
}

fn view(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![Output::view(args.tensor(0)?.clone())])
}

fn assert_metadata(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    let failed = |what: &str, expected: String, got: String| {
        let what = format!("Tensor {what} mismatch! Expected: {expected}, Got: {got}");
        Err(Diagnostic::new(Code::AssertionFailed, what))
    };
    let shown = |it: &[SymInt]| format!("[{}]", it.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", "));
    for (index, what, got) in [(1, "sizes", &this.sizes), (2, "strides", &this.strides)] {
        if !args.is_none(index) {
            let expected = args.sym_ints(index)?;
            if expected != *got {
                return failed(what, shown(&expected), shown(got));
            }
        }
    }
    if let Some(dtype) = args.opt_dtype(3)?
        && dtype != this.dtype
    {
        return failed("dtype", dtype.name().to_string(), this.dtype.name().to_string());
    }
    check_layout(args)?;
    // All tensors live on the CPU here, so that a program for another device runs; it has no device to hold to.
    Ok(Vec::new())
}
