//! Views of a part of a tensor: slices, single positions, windows and diagonals, by offsets and strides.

use crate::core::decompositions::Call;
use crate::core::write_back;
use crate::view::gradient;
use crate::view::strides::{listed, normalize_dims, out_of_range, view_of};
use crate::{Args, Cx, OpDef, Output, Tags, Traced, Value, normalize_dim};
use tracefx_core::{Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::{SymBool, SymInt};

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> \
             Tensor(a)",
        slice,
    )
    .vjp(gradient::slice)
    .doc("The positions of one dimension from `start` to `end`, in steps.")
    .write_back(write_back::slice)
    .tags(Tags::CORE.with(Tags::VIEW)),
    OpDef::new("aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", select)
        .vjp(gradient::select)
        .doc("One position of a dimension, which disappears.")
        .write_back(write_back::select)
        .tags(Tags::CORE.with(Tags::VIEW)),
    OpDef::composite("aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", narrow)
        .doc("The positions of one dimension from `start` on.")
        .tags(Tags::VIEW),
    OpDef::new("aten::narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)", |args| {
        let start = args.tensor(2)?;
        if !start.sizes.is_empty() || !start.dtype.is_int() {
            return Err(args.invalid("start must be an 0-dim integral Tensor."));
        }
        let base = args.tensor(0)?;
        if base.sizes.is_empty() {
            return Err(args.bad_shape("narrow() cannot be applied to a 0-dim tensor."));
        }
        normalize_dim(args, args.int(1)?, base.sizes.len())?;
        if args.sym_int(3)?.as_int().is_some_and(|it| it < 0) {
            return Err(args.invalid("narrow(): length must be non-negative."));
        }
        Ok(vec![Output::Unknown(Value::None)])
    })
    .vjp(gradient::narrow)
    .doc("The positions of one dimension from the one on that a 0-d tensor names.")
    .tags(Tags::VIEW),
    OpDef::new("aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", unfold)
        .vjp(gradient::unfold)
        .doc("Windows that slide over one dimension, as a new last dimension.")
        .tags(Tags::VIEW),
    OpDef::new("aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", diagonal)
        .vjp(gradient::diagonal)
        .doc("The diagonal of two dimensions, as a new last dimension.")
        .write_back(write_back::diagonal)
        .tags(Tags::CORE.with(Tags::VIEW)),
    OpDef::new(
        "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
        as_strided,
    )
    .vjp(gradient::as_strided)
    .doc("The storage seen with these sizes, strides and offset.")
    .write_back(write_back::as_strided)
    .tags(Tags::CORE.with(Tags::VIEW)),
];

/// The meta of `base[start:end:step]` along one dimension. Positions count from the end where they are known to be
/// negative, and are held inside the dimension.
pub(crate) fn slice_of<T>(
    args: &Args<'_, T>,
    base: &TensorMeta,
    dim: usize,
    start: Option<&SymInt>,
    end: Option<&SymInt>,
    step: &SymInt,
) -> TensorMeta {
    let size = &base.sizes[dim];
    let from_front = |it: &SymInt| {
        let is_from_end = args.decide(&SymBool::lt(it, &SymInt::ZERO)) == Some(true);
        let it = if is_from_end { it + size } else { it.clone() };
        least(args, &greatest(args, &it, &SymInt::ZERO), size)
    };
    let start = start.map_or(SymInt::ZERO, from_front);
    let end = match end {
        // What `x[a:]` is exported as.
        Some(end) if *end != i64::MAX => from_front(end),
        Some(_) | None => size.clone(),
    };
    let (mut sizes, mut strides) = (base.sizes.clone(), base.strides.clone());
    sizes[dim] = (greatest(args, &end, &start) - &start + step - 1).floor_div(step);
    let offset = &base.storage_offset + &start * &strides[dim];
    strides[dim] *= step;
    view_of(base, sizes, strides, offset)
}

/// The smaller one; without a `Min` where it is known which one that is.
fn least<T>(args: &Args<'_, T>, a: &SymInt, b: &SymInt) -> SymInt {
    match args.decide(&SymBool::le(a, b)) {
        Some(true) => a.clone(),
        Some(false) => b.clone(),
        None => a.min(b),
    }
}

/// The larger one, likewise.
fn greatest<T>(args: &Args<'_, T>, a: &SymInt, b: &SymInt) -> SymInt {
    match args.decide(&SymBool::ge(a, b)) {
        Some(true) => a.clone(),
        Some(false) => b.clone(),
        None => a.max(b),
    }
}

/// The meta of `base[index]` along one dimension; the index has been checked.
pub(crate) fn select_of(base: &TensorMeta, dim: usize, index: &SymInt) -> TensorMeta {
    let (mut sizes, mut strides) = (base.sizes.clone(), base.strides.clone());
    let size = sizes.remove(dim);
    let stride = strides.remove(dim);
    let index = if index.as_int().is_some_and(|it| it < 0) { index + size } else { index.clone() };
    view_of(base, sizes, strides, &base.storage_offset + index * stride)
}

/// The view of `base` that `slice.Tensor` and its kin are about, with their arguments from `at` on.
pub(crate) fn slice_of_args(args: &Args<'_, TensorMeta>, base: &TensorMeta, at: usize) -> Result<TensorMeta> {
    if base.sizes.is_empty() {
        return Err(out_of_range(args, "slice() cannot be applied to a 0-dim tensor."));
    }
    let dim = normalize_dim(args, args.int(at)?, base.sizes.len())?;
    let step = args.sym_int(at + 3)?;
    if step.as_int().is_some_and(|it| it <= 0) {
        return Err(args.invalid("slice step must be positive"));
    }
    Ok(slice_of(args, base, dim, args.opt_sym_int(at + 1)?, args.opt_sym_int(at + 2)?, step))
}

fn slice(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![Output::view(slice_of_args(args, args.tensor(0)?, 1)?)])
}

/// The view of `base` that `select.int` and its kin are about, with their arguments from `at` on.
pub(crate) fn select_of_args(args: &Args<'_, TensorMeta>, base: &TensorMeta, at: usize) -> Result<TensorMeta> {
    if base.sizes.is_empty() {
        return Err(out_of_range(args, "select() cannot be applied to a 0-dim tensor."));
    }
    let dim = normalize_dim(args, args.int(at)?, base.sizes.len())?;
    let index = args.sym_int(at + 1)?;
    if let Some(it) = index.as_int()
        && args.less(&base.sizes[dim], &SymInt::from(if it < 0 { it.saturating_neg() } else { it.saturating_add(1) }))
    {
        return Err(out_of_range(
            args,
            format!("select(): index {it} out of range for tensor of size {} at dimension {dim}", listed(&base.sizes)),
        ));
    }
    Ok(select_of(base, dim, index))
}

fn select(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![Output::view(select_of_args(args, args.tensor(0)?, 1)?)])
}

/// The dimension, start and end that `narrow` means.
fn narrow_bounds<T>(args: &Args<'_, T>, sizes: &[SymInt]) -> Result<(usize, SymInt, SymInt)> {
    if sizes.is_empty() {
        return Err(args.bad_shape("narrow() cannot be applied to a 0-dim tensor."));
    }
    let dim = normalize_dim(args, args.int(1)?, sizes.len())?;
    let (mut start, length, size) = (args.sym_int(2)?.clone(), args.sym_int(3)?, &sizes[dim]);
    if args.less(length, &SymInt::ZERO) {
        return Err(args.invalid("narrow(): length must be non-negative."));
    }
    if args.less(size, &start) || args.less(&start, &-size) {
        let what = format!("start out of range (expected to be in range of [{}, {size}], but got {start})", -size);
        return Err(out_of_range(args, what));
    }
    if start.as_int().is_some_and(|it| it < 0) {
        start += size;
    }
    let end = &start + length;
    if args.less(size, &end) {
        let what = format!("start ({start}) + length ({length}) exceeds dimension size ({size}).");
        return Err(args.bad_shape(what));
    }
    Ok((dim, start, end))
}

fn narrow(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (dim, start, end) = narrow_bounds(args, &cx.meta(*args.tensor(0)?).sizes)?;
    let slice = [&args.values[0], &Value::int(dim as i64), &Value::Int(start), &Value::Int(end)];
    Ok(vec![cx.aten("slice.Tensor", slice)?])
}

fn unfold(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![Output::view(unfold_of_args(args, args.tensor(0)?, 1)?)])
}

/// The view of `base` that `unfold` and its kin are about, with their arguments from `at` on.
pub(crate) fn unfold_of_args(args: &Args<'_, TensorMeta>, base: &TensorMeta, at: usize) -> Result<TensorMeta> {
    let dim = normalize_dim(args, args.int(at)?, base.sizes.len())?;
    let (window, step) = (args.int(at + 1)?, args.int(at + 2)?);
    let (mut sizes, mut strides) = (base.sizes.clone(), base.strides.clone());
    let problem = |what: String| -> Result<TensorMeta, Diagnostic> { Err(args.invalid(what)) };
    if window < 0 {
        return problem(format!("size is {window} but must be >= 0"));
    }
    // A 0-d tensor counts as one of one element.
    let size = sizes.get(dim).cloned().unwrap_or(SymInt::ONE);
    if args.less(&size, &window.into()) {
        return problem(format!("maximum size for tensor at dimension {dim} is {size} but size is {window}"));
    }
    if step <= 0 {
        return problem(format!("step is {step} but must be > 0"));
    }
    let stride = strides.get(dim).cloned().unwrap_or(SymInt::ONE);
    if dim < sizes.len() {
        sizes[dim] = (size - window).floor_div(&step.into()) + 1;
        strides[dim] *= step;
    }
    sizes.push(window.into());
    strides.push(stride);
    Ok(view_of(base, sizes, strides, base.storage_offset.clone()))
}

/// The view of `base` that `diagonal` and its kin are about, with their arguments from `at` on.
pub(crate) fn diagonal_of_args(args: &Args<'_, TensorMeta>, base: &TensorMeta, at: usize) -> Result<TensorMeta> {
    let (offset, given) = (args.int(at)?, [args.int(at + 1)?, args.int(at + 2)?]);
    let dims = normalize_dims(args, &given, base.sizes.len())?;
    if dims[0] == dims[1] {
        let what = format!("diagonal dimensions cannot be identical {}, {}", given[0], given[1]);
        return Err(args.invalid(what));
    }
    let (rows, columns) = (&base.sizes[dims[0]], &base.sizes[dims[1]]);
    let size =
        if offset >= 0 { least(args, rows, &(columns - offset)) } else { least(args, &(rows + offset), columns) };
    let size = size.max(&SymInt::ZERO);
    let start = match offset {
        _ if size == 0 => SymInt::ZERO,
        0.. => &base.strides[dims[1]] * offset,
        _ => &base.strides[dims[0]] * -&SymInt::from(offset),
    };
    let rest = || (0..base.sizes.len()).filter(|dim| !dims.contains(dim));
    let sizes = rest().map(|dim| base.sizes[dim].clone()).chain([size]).collect();
    let stride = &base.strides[dims[0]] + &base.strides[dims[1]];
    let strides = rest().map(|dim| base.strides[dim].clone()).chain([stride]).collect();
    Ok(view_of(base, sizes, strides, &base.storage_offset + start))
}

fn diagonal(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![Output::view(diagonal_of_args(args, args.tensor(0)?, 1)?)])
}

/// The view that `as_strided` and `as_strided_scatter` are about, with their arguments from `at` on. Whether it stays
/// inside the storage, whoever makes the view knows.
pub(crate) fn as_strided_of_args(args: &Args<'_, TensorMeta>, at: usize) -> Result<TensorMeta> {
    let base = args.tensor(0)?;
    let (sizes, strides) = (args.sym_ints(at)?, args.sym_ints(at + 1)?);
    let offset = args.opt_sym_int(at + 2)?.unwrap_or(&base.storage_offset);
    let is_negative = |it: &SymInt| it.as_int().is_some_and(|it| it < 0);
    if sizes.len() != strides.len() {
        return Err(args.invalid("mismatch in length of strides and shape"));
    }
    if strides.iter().any(is_negative) {
        let what = "as_strided: Negative strides are not supported at the moment, got strides:";
        return Err(args.invalid(format!("{what} {}", listed(&strides))));
    }
    if sizes.iter().any(is_negative) {
        let what = format!(
            "Storage size calculation overflowed with sizes={} and strides={}",
            listed(&sizes),
            listed(&strides)
        );
        return Err(args.invalid(what));
    }
    if is_negative(offset) {
        return Err(args.invalid(format!("Tensor: invalid storage offset {offset}")));
    }
    Ok(view_of(base, sizes, strides, offset.clone()))
}

pub(crate) fn as_strided(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![Output::view(as_strided_of_args(args, 1)?)])
}
