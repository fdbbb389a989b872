//! The same elements under other sizes: views where the strides allow it, else copies.

use crate::core::decompositions::{Call, size_list};
use crate::core::write_back;
use crate::view::decompose;
use crate::view::gradient;
use crate::view::strides::{listed, view_of};
use crate::{Args, Cx, OpDef, Output, Tags, Traced, Value, contiguous, normalize_dim};
use tracefx_core::{MemoryFormat, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", view)
        .vjp(gradient::reshaped)
        .doc("The same elements under other sizes, without a copy.")
        .write_back(write_back::view)
        .tags(Tags::CORE.with(Tags::VIEW)),
    OpDef::new("aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor", view)
        .decompose(decompose::unsafe_view)
        .vjp(gradient::reshaped)
        .doc("`view` of a tensor that nobody else looks at.")
        .tags(Tags::VIEW),
    OpDef::new("aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", view_dtype)
        .no_gradient()
        .doc("The same bytes as elements of another dtype.")
        .write_back(write_back::view_dtype)
        .tags(Tags::VIEW),
    OpDef::new("aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", reshape)
        .vjp(gradient::reshaped)
        .doc("The same elements under other sizes: a view where the strides allow it, else a copy.")
        .tags(Tags::VIEW.with(Tags::MAY_COPY))
        .decompose(reshape_as_view_or_copy),
    OpDef::composite("aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)", |cx, args| {
        like_other(cx, args, "view")
    })
    .doc("A view under the sizes of another tensor.")
    .tags(Tags::VIEW),
    OpDef::composite("aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", |cx, args| {
        like_other(cx, args, "reshape")
    })
    .doc("The same elements under the sizes of another tensor.")
    .tags(Tags::VIEW),
    OpDef::composite("aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", flatten)
        .doc("Dimensions that follow each other become one."),
    OpDef::composite("aten::ravel(Tensor(a) self) -> Tensor(a)", ravel)
        .doc("All elements in one dimension.")
        .tags(Tags::VIEW.with(Tags::MAY_COPY)),
    OpDef::composite("aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", unflatten)
        .doc("One dimension becomes several.")
        .tags(Tags::VIEW),
];

/// The sizes with `-1` replaced by what makes them hold `numel` elements.
fn infer_size<T>(args: &Args<'_, T>, shape: &[SymInt], numel: &SymInt) -> Result<Vec<SymInt>> {
    let mismatch = || args.bad_shape(format!("shape '{}' is invalid for input of size {numel}", listed(shape)));
    let mut inferred = None;
    for (at, size) in shape.iter().enumerate() {
        if *size == -1 {
            if inferred.replace(at).is_some() {
                return Err(args.invalid("only one dimension can be inferred"));
            }
        } else if size.as_int().is_some_and(|it| it < 0) {
            let what = format!("invalid shape dimension {size} at index {at} of shape {}", listed(shape));
            return Err(args.invalid(what));
        }
    }
    let given: SymInt = shape.iter().enumerate().filter(|it| Some(it.0) != inferred).map(|it| it.1).product();
    let Some(at) = inferred else {
        // Where the data decides, PyTorch too takes the program's word for it.
        return if args.differ(&given, numel) || given.invalid().is_some() {
            Err(mismatch())
        } else {
            Ok(shape.to_vec())
        };
    };
    if given == 0 {
        if *numel != 0 {
            return Err(mismatch());
        }
        return Err(args.invalid(format!(
            "cannot reshape tensor of 0 elements into shape {} because the unspecified dimension size -1 can be any \
             value and is ambiguous",
            listed(shape)
        )));
    }
    if args.differ(&numel.modulo(&given), &SymInt::ZERO) || given.invalid().is_some() {
        return Err(mismatch());
    }
    let mut res = shape.to_vec();
    res[at] = numel.floor_div(&given);
    Ok(res)
}

/// The strides with which `base` can be seen under these sizes, or `None` where that takes a copy: `computeStride` of
/// aten/src/ATen/TensorUtils.cpp. Walks both shapes from the end in chunks of dimensions that lie next to each other
/// in memory; a chunk of the old shape must be a whole number of dimensions of the new one.
fn strides_for(base: &TensorMeta, sizes: &[SymInt]) -> Option<Vec<SymInt>> {
    let Some(mut chunk_stride) = base.strides.last().cloned() else { return Some(vec![SymInt::ONE; sizes.len()]) };
    if base.sizes.iter().any(|it| *it == 0) {
        if base.sizes == sizes {
            return Some(base.strides.clone());
        }
        return Some(TensorMeta::contiguous(base.dtype, sizes.to_vec()).strides);
    }
    let mut strides = vec![SymInt::ZERO; sizes.len()];
    let mut n_left = sizes.len();
    let (mut old_numel, mut new_numel) = (SymInt::ONE, SymInt::ONE);
    for dim in (0..base.sizes.len()).rev() {
        old_numel *= &base.sizes[dim];
        let ends_chunk = dim == 0 || (base.sizes[dim - 1] != 1 && base.strides[dim - 1] != &old_numel * &chunk_stride);
        if !ends_chunk {
            continue;
        }
        while n_left > 0 && (is_less(&new_numel, &old_numel) || sizes[n_left - 1] == 1) {
            n_left -= 1;
            strides[n_left] = &new_numel * &chunk_stride;
            new_numel *= &sizes[n_left];
        }
        if new_numel != old_numel {
            return contiguous_strides_for(base, sizes);
        }
        if dim > 0 {
            chunk_stride = base.strides[dim - 1].clone();
            (old_numel, new_numel) = (SymInt::ONE, SymInt::ONE);
        }
    }
    (n_left == 0).then_some(strides)
}

/// Products of symbols can be equal without looking so; a row-major tensor can be seen under all sizes that fit.
fn contiguous_strides_for(base: &TensorMeta, sizes: &[SymInt]) -> Option<Vec<SymInt>> {
    let is_symbolic = base.sizes.iter().chain(sizes).any(SymInt::is_symbolic);
    let is_contiguous = base.strides == TensorMeta::contiguous(base.dtype, base.sizes.clone()).strides;
    (is_symbolic && is_contiguous).then(|| TensorMeta::contiguous(base.dtype, sizes.to_vec()).strides)
}

/// Whether a product of sizes is less than another one; of products that are not known, whether they differ.
fn is_less(a: &SymInt, b: &SymInt) -> bool {
    match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => a < b,
        (_, _) => a != b,
    }
}

fn view(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let sizes = infer_size(args, &args.sym_ints(1)?, &base.sizes.iter().product())?;
    let Some(strides) = strides_for(base, &sizes) else {
        let what = "view size is not compatible with input tensor's size and stride (at least one dimension spans \
                    across two contiguous subspaces). Use .reshape(...) instead.";
        return Err(args.bad_shape(what));
    };
    Ok(vec![Output::view(view_of(base, sizes, strides, base.storage_offset.clone()))])
}

fn reshape(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let sizes = infer_size(args, &args.sym_ints(1)?, &base.sizes.iter().product())?;
    Ok(match strides_for(base, &sizes) {
        Some(strides) => vec![Output::view(view_of(base, sizes, strides, base.storage_offset.clone()))],
        None => contiguous(base.dtype, sizes),
    })
}

fn reshape_as_view_or_copy(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let base = cx.meta(*args.tensor(0)?);
    let sizes = infer_size(args, &args.sym_ints(1)?, &base.sizes.iter().product())?;
    let is_view = strides_for(base, &sizes).is_some();
    let sizes = size_list(&sizes);
    if is_view {
        return Ok(vec![cx.aten("view", [&args.values[0], &sizes])?]);
    }
    let format = Value::MemoryFormat(MemoryFormat::Contiguous);
    let copy = cx.aten_with("clone", [&args.values[0]], &[("memory_format", format)])?;
    Ok(vec![cx.aten("_unsafe_view", [&copy, &sizes])?])
}

fn view_dtype(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let new = args.opt_dtype(1)?.unwrap_or(base.dtype);
    let (old_size, new_size) = (base.dtype.size(), new.size());
    let mut meta = TensorMeta { dtype: new, ..base.clone() };
    if old_size == new_size {
        return Ok(vec![Output::view(meta)]);
    }
    let refuse = |what: String, got: String| {
        let dtypes = format!("to view {} as {} (different element sizes)", base.dtype.cpp_name(), new.cpp_name());
        args.bad_shape(format!("{what} {dtypes}{got}"))
    };
    let Some(last) = base.sizes.len().checked_sub(1) else {
        return Err(refuse("self.dim() cannot be 0".to_string(), String::new()));
    };
    if base.strides[last] != 1 {
        return Err(refuse("self.stride(-1) must be 1".to_string(), format!(", but got {}", base.strides[last])));
    }
    if old_size > new_size {
        let ratio = (old_size / new_size) as i64;
        meta.sizes[last] *= ratio;
        meta.strides[..last].iter_mut().for_each(|it| *it *= ratio);
        meta.storage_offset *= ratio;
        return Ok(vec![Output::view(meta)]);
    }
    let ratio = SymInt::from(new_size / old_size);
    let divide = |what: String, it: &mut SymInt| {
        if args.differ(&it.modulo(&ratio), &SymInt::ZERO) {
            return Err(refuse(format!("{what} must be divisible by {ratio}"), format!(", but got {it}")));
        }
        *it = it.floor_div(&ratio);
        Ok(())
    };
    divide("self.size(-1)".to_string(), &mut meta.sizes[last])?;
    divide("self.storage_offset()".to_string(), &mut meta.storage_offset)?;
    for dim in 0..last {
        divide(format!("self.stride({dim})"), &mut meta.strides[dim])?;
    }
    Ok(vec![Output::view(meta)])
}

fn like_other(cx: &mut Cx<'_>, args: &Call<'_>, op: &str) -> Result<Vec<Traced>> {
    let sizes = cx.meta(*args.tensor(1)?).sizes.iter().map(|it| Value::Int(it.clone())).collect();
    Ok(vec![cx.aten(op, [&args.values[0], &Value::List(sizes)])?])
}

fn flatten(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let sizes = &cx.meta(*args.tensor(0)?).sizes;
    let start = normalize_dim(args, args.int(1)?, sizes.len())?;
    let end = normalize_dim(args, args.int(2)?, sizes.len())?;
    if start > end {
        return Err(args.invalid("flatten() has invalid args: start_dim cannot come after end_dim"));
    }
    if sizes.is_empty() {
        return Ok(vec![cx.aten("reshape", [&args.values[0], &Value::ints(&[1])])?]);
    }
    if start == end {
        return Ok(vec![args.values[0].clone()]);
    }
    let flat: SymInt = sizes[start..=end].iter().product();
    let shape = sizes[..start].iter().chain([&flat]).chain(&sizes[end + 1..]).map(|it| Value::Int(it.clone()));
    let shape = Value::List(shape.collect());
    Ok(vec![cx.aten("reshape", [&args.values[0], &shape])?])
}

fn ravel(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let row_major = cx.aten("contiguous", [&args.values[0]])?;
    Ok(vec![cx.aten("view", [&row_major, &Value::ints(&[-1])])?])
}

fn unflatten(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let sizes = &cx.meta(*args.tensor(0)?).sizes;
    let dim = normalize_dim(args, args.int(1)?, sizes.len())?;
    let parts = args.sym_ints(2)?;
    if parts.is_empty() {
        return Err(args.invalid("unflatten: sizes must be non-empty"));
    }
    let Some(size) = sizes.get(dim) else { return Err(args.bad_shape("unflatten: a 0-d tensor has no dimension")) };
    let inferred = infer_size(args, &parts, size).map_err(|problem| {
        args.bad_shape(format!(
            "unflatten: Provided sizes {} don't multiply up to the size of dim {dim} ({size}) in the input tensor",
            listed(&parts)
        ))
        .note(problem.message())
    })?;
    let shape = sizes[..dim].iter().chain(&inferred).chain(&sizes[dim + 1..]).map(|it| Value::Int(it.clone()));
    let shape = Value::List(shape.collect());
    Ok(vec![cx.aten("view", [&args.values[0], &shape])?])
}
