//! Views that cut a tensor into pieces along one dimension.

use crate::core::decompositions::Call;
use crate::core::write_back;
use crate::index::gather::wrong_dtype;
use crate::view::decompose;
use crate::view::gradient;
use crate::view::slice::{select_of, slice_of};
use crate::view::strides::{listed, out_of_range};
use crate::{Args, Cx, OpDef, Output, Tags, Traced, Value, normalize_dim};
use tracefx_core::allocate::{collected, filled, try_collected};
use tracefx_core::{DType, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", split)
        .write_back(write_back::equal_piece)
        .vjp(gradient::split)
        .doc("Pieces of equal size; the last one may be smaller.")
        .tags(Tags::VIEW)
        .decompose(split_by_sizes),
    OpDef::new("aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", split)
        .decompose(decompose::unsafe_split)
        .vjp(gradient::split)
        .doc("`split` of a tensor that nobody else looks at.")
        .tags(Tags::VIEW),
    OpDef::new(
        "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
        split_with_sizes,
    )
    .vjp(gradient::split)
    .doc("Pieces of these sizes.")
    .write_back(write_back::piece)
    .tags(Tags::CORE.with(Tags::VIEW)),
    OpDef::new(
        "aten::unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
        split_with_sizes,
    )
    .decompose(decompose::unsafe_split_with_sizes)
    .vjp(gradient::split)
    .doc("`split_with_sizes` of a tensor that nobody else looks at.")
    .tags(Tags::VIEW),
    OpDef::composite("aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]", sizes)
        .doc("Pieces of these sizes.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", |cx, args| {
        chunk(cx, args, "split.Tensor", "split_with_sizes")
    })
    .doc("At most this many pieces of equal size; the last one may be smaller.")
    .tags(Tags::VIEW),
    OpDef::composite("aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", |cx, args| {
        chunk(cx, args, "unsafe_split.Tensor", "unsafe_split_with_sizes")
    })
    .doc("`chunk` of a tensor that nobody else looks at.")
    .tags(Tags::VIEW),
    OpDef::composite(
        "aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
        tensor_split_sections,
    )
    .doc("Exactly this many pieces; the first ones are larger by one where it does not divide.")
    .tags(Tags::VIEW),
    OpDef::composite(
        "aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
        tensor_split_indices,
    )
    .doc("The pieces between these positions.")
    .tags(Tags::VIEW),
    OpDef::new(
        "aten::tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, \
             int dim=0) -> Tensor(a)[]",
        tensor_split_by_tensor,
    )
    .vjp(gradient::split)
    .doc("The pieces that a tensor says: their number if it is 0-d, else the positions between them.")
    .tags(Tags::VIEW.with(Tags::DATA_DEPENDENT_SHAPE)),
    OpDef::composite("aten::hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", |cx, args| {
        axis_split(cx, args, 1)
    })
    .doc("Equal pieces along columns.")
    .tags(Tags::VIEW),
    OpDef::composite("aten::hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", |cx, args| {
        axis_split(cx, args, 1)
    })
    .doc("The pieces between these columns.")
    .tags(Tags::VIEW),
    OpDef::composite("aten::vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", |cx, args| {
        axis_split(cx, args, 0)
    })
    .doc("Equal pieces along rows.")
    .tags(Tags::VIEW),
    OpDef::composite("aten::vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", |cx, args| {
        axis_split(cx, args, 0)
    })
    .doc("The pieces between these rows.")
    .tags(Tags::VIEW),
    OpDef::composite("aten::dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", |cx, args| {
        axis_split(cx, args, 2)
    })
    .doc("Equal pieces along the third dimension.")
    .tags(Tags::VIEW),
    OpDef::composite("aten::dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", |cx, args| {
        axis_split(cx, args, 2)
    })
    .doc("The pieces between these positions of the third dimension.")
    .tags(Tags::VIEW),
    OpDef::new("aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", unbind)
        .write_back(write_back::position)
        .doc("Each position of a dimension, which disappears.")
        .tags(Tags::VIEW)
        .decompose(unbind_by_slices),
];

/// The pieces of these sizes along one dimension, one after the other.
fn pieces<T>(args: &Args<'_, T>, base: &TensorMeta, dim: usize, sizes: &[SymInt]) -> Result<Vec<Output>> {
    let mut start = SymInt::ZERO;
    let piece = |size: &SymInt| {
        let end = &start + size;
        let res = slice_of(args, base, dim, Some(&start), Some(&end), &SymInt::ONE);
        start = end;
        Output::view(res)
    };
    Ok(vec![Output::List(collected(sizes.iter().map(piece))?)])
}

/// The dimension that `split` is along, and the sizes of its pieces.
fn split_sizes<T>(args: &Args<'_, T>, sizes: &[SymInt]) -> Result<(usize, Vec<SymInt>)> {
    if sizes.is_empty() {
        return Err(args.bad_shape("split expects at least a 1-dimensional tensor"));
    }
    let dim = normalize_dim(args, args.int(2)?, sizes.len())?;
    let (size, split_size) = (&sizes[dim], args.sym_int(1)?);
    if size.is_symbolic() || split_size.is_symbolic() {
        // How many pieces there are has to be known, and how large they are has not.
        let n_pieces = check_pieces(args, known_size(args, &(size + split_size - 1).floor_div(split_size))?)?.max(1);
        let mut res = filled(split_size.clone(), n_pieces as usize)?;
        res[n_pieces as usize - 1] = size - split_size * (n_pieces - 1);
        return Ok((dim, res));
    }
    let split_size = args.int(1)?;
    if split_size < 0 {
        return Err(args.invalid(format!("split expects split_size be non-negative, but got split_size={split_size}")));
    }
    let size = known_size(args, &sizes[dim])?;
    if split_size == 0 && size != 0 {
        let what = format!("split_size can only be 0 if dimension size is 0, but got dimension size of {size}");
        return Err(args.invalid(what));
    }
    if size == 0 {
        return Ok((dim, vec![SymInt::ZERO]));
    }
    let n_pieces = check_pieces(args, (size - 1) / split_size + 1)?;
    Ok((dim, collected((0..n_pieces).map(|at| split_size.min(size - at * split_size).into()))?))
}

fn split(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let (dim, sizes) = split_sizes(args, &base.sizes)?;
    pieces(args, base, dim, &sizes)
}

fn split_by_sizes(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (_, sizes) = split_sizes(args, &cx.meta(*args.tensor(0)?).sizes)?;
    let sizes = Value::List(collected(sizes.into_iter().map(Value::Int))?);
    cx.aten_all("split_with_sizes", [&args.values[0], &sizes, &args.values[2]], &[])
}

fn unbind_by_slices(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let sizes = &cx.meta(*args.tensor(0)?).sizes;
    let dim = normalize_dim(args, args.int(1)?, sizes.len())?;
    let size = sizes.get(dim).ok_or_else(|| args.bad_shape("unbind: a 0-d tensor has no dimensions"))?;
    let n = check_pieces(args, known_size(args, size)?)?;
    let (base, dim) = (args.values[0].clone(), dim as i64);
    let piece = |at: i64| {
        let slice = cx.aten("slice.Tensor", [&base, &Value::int(dim), &Value::int(at), &Value::int(at + 1)])?;
        cx.aten("squeeze.dims", [&slice, &Value::ints(&[dim])])
    };
    Ok(vec![Value::List(try_collected((0..n).map(piece))?)])
}

/// The size of a dimension that decides how many results there are.
fn known_size<T>(args: &Args<'_, T>, size: &SymInt) -> Result<i64> {
    args.specialize(size)
        .ok_or_else(|| args.unsupported(format!("the number of pieces depends on the size {size}, which is not known")))
}

/// The largest number of pieces that one call may give: a program is not believed that it needs more.
const MAX_PIECES: i64 = 1 << 20;

fn check_pieces<T>(args: &Args<'_, T>, n_pieces: i64) -> Result<i64> {
    if n_pieces > MAX_PIECES {
        return Err(args.unsupported(format!("{n_pieces} pieces are more than the limit of {MAX_PIECES}")));
    }
    Ok(n_pieces)
}

fn split_with_sizes(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    if base.sizes.is_empty() {
        return Err(args.bad_shape("split expects at least a 1-dimensional tensor"));
    }
    let sizes = args.sym_ints(1)?;
    let dim = normalize_dim(args, args.int(2)?, base.sizes.len())?;
    if sizes.iter().any(|it| it.as_int().is_some_and(|it| it < 0)) {
        return Err(args.invalid(format!(
            "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={}",
            listed(&sizes)
        )));
    }
    if args.differ(&sizes.iter().sum::<SymInt>(), &base.sizes[dim]) {
        return Err(args.bad_shape(format!(
            "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {dim}), but \
             got split_sizes={}",
            base.sizes[dim],
            listed(&sizes)
        )));
    }
    pieces(args, base, dim, &sizes)
}

fn unbind(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let dim = args.int(1)?;
    if base.sizes.is_empty() {
        return Err(out_of_range(args, format!("Dimension specified as {dim} but tensor has no dimensions")));
    }
    let dim = normalize_dim(args, dim, base.sizes.len())?;
    let size = check_pieces(args, known_size(args, &base.sizes[dim])?)?;
    Ok(vec![Output::List(collected((0..size).map(|at| Output::view(select_of(base, dim, &at.into()))))?)])
}

fn sizes(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    cx.aten_all("split_with_sizes", &args.values, &[])
}

fn chunk(cx: &mut Cx<'_>, args: &Call<'_>, equal: &str, by_sizes: &str) -> Result<Vec<Traced>> {
    let sizes = &cx.meta(*args.tensor(0)?).sizes;
    let chunks = args.int(1)?;
    if sizes.is_empty() {
        return Err(args.bad_shape("chunk expects at least a 1-dimensional tensor"));
    }
    if chunks <= 0 {
        return Err(args.invalid(format!("chunk expects `chunks` to be greater than 0, got: {chunks}")));
    }
    let size = &sizes[normalize_dim(args, args.int(2)?, sizes.len())?];
    // An empty dimension still gives as many pieces as were asked for.
    if *size == 0 {
        check_pieces(args, chunks)?;
        let zeros = Value::List(collected((0..chunks).map(|_| Value::int(0)))?);
        return cx.aten_all(by_sizes, [&args.values[0], &zeros, &args.values[2]], &[]);
    }
    let split_size = (size + (chunks - 1)).floor_div(&chunks.into());
    cx.aten_all(equal, [&args.values[0], &Value::Int(split_size), &args.values[2]], &[])
}

/// The size of the dimension that is split.
fn split_dim(cx: &Cx<'_>, args: &Call<'_>) -> Result<(usize, SymInt)> {
    let sizes = &cx.meta(*args.tensor(0)?).sizes;
    if sizes.is_empty() {
        let what = "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims";
        return Err(args.bad_shape(what));
    }
    let dim = normalize_dim(args, args.int(2)?, sizes.len())?;
    Ok((dim, sizes[dim].clone()))
}

/// The slices between these ends; the first one starts at the front.
fn slices(cx: &mut Cx<'_>, args: &Call<'_>, dim: usize, ends: impl IntoIterator<Item = SymInt>) -> Result<Vec<Traced>> {
    let mut start = SymInt::ZERO;
    let slice = |end: SymInt| {
        let start = std::mem::replace(&mut start, end.clone());
        let slice = [&args.values[0], &Value::int(dim as i64), &Value::Int(start), &Value::Int(end)];
        cx.aten("slice.Tensor", slice)
    };
    Ok(vec![Value::List(try_collected(ends.into_iter().map(slice))?)])
}

fn tensor_split_sections(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (dim, size) = split_dim(cx, args)?;
    let sections = args.int(1)?;
    if sections <= 0 {
        return Err(args.invalid(format!("number of sections must be larger than 0, got {sections}")));
    }
    check_pieces(args, sections)?;
    let size = known_size(args, &size)?;
    let (quotient, rest) = (size / sections, size % sections);
    slices(cx, args, dim, (1..=sections).map(|at| (at * quotient + at.min(rest)).into()))
}

fn tensor_split_indices(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (dim, size) = split_dim(cx, args)?;
    let ends = args.sym_ints(1)?;
    slices(cx, args, dim, ends.into_iter().chain([size]))
}

fn tensor_split_by_tensor(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, split) = (args.tensor(0)?, args.tensor(1)?);
    if base.sizes.is_empty() {
        let what = "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims";
        return Err(args.bad_shape(what));
    }
    normalize_dim(args, args.int(2)?, base.sizes.len())?;
    if split.dtype != DType::Int64 {
        return Err(wrong_dtype(args, "tensor_split expected tensor_indices_or_sections to have dtype of long"));
    }
    if split.sizes.len() > 1 {
        return Err(args.bad_shape(format!(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but \
             got a tensor with {} dims",
            split.sizes.len()
        )));
    }
    Ok(vec![Output::Unknown(Value::None)])
}

/// `hsplit`, `vsplit` and `dsplit`: a split along `axis`, or along the only dimension where `hsplit` is given one.
fn axis_split(cx: &mut Cx<'_>, args: &Call<'_>, axis: usize) -> Result<Vec<Traced>> {
    let sizes = &cx.meta(*args.tensor(0)?).sizes;
    let name = &args.op.schema.name;
    let least = [2, 1, 3][axis];
    if sizes.len() < least {
        return Err(args.bad_shape(format!(
            "torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {} dimensions!",
            sizes.len()
        )));
    }
    let dim = axis.min(sizes.len() - 1);
    if let Value::Int(_) = &args.values[1] {
        let sections = args.int(1)?;
        let size = known_size(args, &sizes[dim])?;
        if sections == 0 || size % sections != 0 {
            return Err(args.invalid(format!(
                "torch.{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not \
                 divisible by the split_size {sections}!"
            )));
        }
        return cx.aten_all("tensor_split.sections", [&args.values[0], &args.values[1], &Value::int(dim as i64)], &[]);
    }
    cx.aten_all("tensor_split.indices", [&args.values[0], &args.values[1], &Value::int(dim as i64)], &[])
}
