//! Views that reorder, add, drop or stretch dimensions: their strides follow from the input's, and they need no kernel.

use crate::core::decompositions::{Call, size_list};
use crate::core::write_back;
use crate::pointwise::unary_gradient;
use crate::view::decompose;
use crate::view::gradient;
use crate::{Args, Cx, OpDef, Output, Tags, TensorRef, Traced, Value, normalize_dim};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)", permute)
        .vjp(gradient::permute)
        .doc("The dimensions in another order.")
        .write_back(write_back::permute)
        .tags(Tags::CORE.with(Tags::VIEW)),
    OpDef::new("aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", transpose)
        .write_back(write_back::transpose)
        .doc("Two dimensions change places.")
        .tags(Tags::VIEW)
        .decompose(as_permute),
    OpDef::new("aten::t(Tensor(a) self) -> Tensor(a)", t)
        .write_back(write_back::t)
        .doc("The transpose of a matrix.")
        .tags(Tags::VIEW)
        .decompose(as_permute),
    OpDef::composite("aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", as_transpose)
        .doc("Two dimensions change places.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", as_transpose)
        .doc("Two dimensions change places.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::numpy_T(Tensor(a) self) -> Tensor(a)", numpy_t)
        .doc("All dimensions the other way round.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::mT(Tensor(a) self) -> Tensor(a)", matrix_transpose)
        .doc("The last two dimensions change places.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::mH(Tensor(a) self) -> Tensor(a)", matrix_adjoint)
        .doc("The last two dimensions change places, conjugated where complex.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::adjoint(Tensor(a) self) -> Tensor(a)", matrix_adjoint)
        .doc("The last two dimensions change places, conjugated where complex.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", movedim)
        .doc("A dimension goes to another position; the others keep their order.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", movedim)
        .doc("Dimensions go to other positions; the others keep their order.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)", movedim)
        .doc("A dimension goes to another position; the others keep their order.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", movedim)
        .doc("Dimensions go to other positions; the others keep their order.")
        .tags(Tags::VIEW),
    OpDef::new("aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", expand)
        .vjp(unary_gradient::identity)
        .doc("Dimensions of size one repeat without a copy.")
        .tags(Tags::CORE.with(Tags::VIEW)),
    OpDef::composite("aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", expand_as)
        .doc("Expands to the sizes of another tensor.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", broadcast_to)
        .doc("Expands to these sizes.")
        .tags(Tags::VIEW),
    OpDef::composite("aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]", broadcast_tensors)
        .doc("Expands all tensors to the sizes that they broadcast to.")
        .tags(Tags::VIEW),
    OpDef::new("aten::squeeze(Tensor(a) self) -> Tensor(a)", |args| squeeze(args, None))
        .decompose(decompose::squeeze)
        .vjp(gradient::reshaped)
        .doc("Drops the dimensions of size one.")
        .write_back(write_back::squeeze)
        .tags(Tags::VIEW),
    OpDef::new("aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", |args| {
        squeeze(args, Some(vec![args.int(1)?]))
    })
    .decompose(decompose::squeeze_dim)
    .tags(Tags::DECOMPOSED)
    .vjp(gradient::reshaped)
    .doc("Drops a dimension if its size is one.")
    .write_back(write_back::squeeze)
    .tags(Tags::CORE.with(Tags::VIEW)),
    OpDef::new("aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", |args| squeeze(args, Some(args.ints(1)?)))
        .vjp(gradient::reshaped)
        .doc("Drops those of the dimensions whose size is one.")
        .write_back(write_back::squeeze)
        .tags(Tags::CORE.with(Tags::VIEW)),
    OpDef::new("aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", unsqueeze)
        .vjp(gradient::reshaped)
        .doc("Adds a dimension of size one.")
        .write_back(write_back::unsqueeze)
        .tags(Tags::CORE.with(Tags::VIEW)),
    OpDef::composite("aten::real(Tensor(a) self) -> Tensor(a)", real).doc("The real parts.").tags(Tags::VIEW),
    OpDef::composite("aten::imag(Tensor(a) self) -> Tensor(a)", imag).doc("The imaginary parts.").tags(Tags::VIEW),
    OpDef::new("aten::view_as_real(Tensor(a) self) -> Tensor(a)", view_as_real)
        .vjp(gradient::view_as_real)
        .doc("Complex numbers as pairs of floats in a last dimension of size two.")
        .write_back(write_back::view_as_real)
        .tags(Tags::VIEW),
    OpDef::new("aten::view_as_complex(Tensor(a) self) -> Tensor(a)", view_as_complex)
        .vjp(gradient::view_as_complex)
        .doc("Pairs of floats in a last dimension of size two as complex numbers.")
        .write_back(write_back::view_as_complex)
        .tags(Tags::VIEW),
];

/// A view of the first argument with these sizes, strides and offset.
pub(crate) fn view_of(
    base: &TensorMeta,
    sizes: Vec<SymInt>,
    strides: Vec<SymInt>,
    storage_offset: SymInt,
) -> TensorMeta {
    TensorMeta { sizes, strides, storage_offset, ..base.clone() }
}

/// Sizes as PyTorch writes them in messages: `[2, 3]`.
pub(crate) fn listed<T: std::fmt::Display>(items: &[T]) -> String {
    let items: Vec<_> = items.iter().map(|it| it.to_string()).collect();
    format!("[{}]", items.join(", "))
}

/// An error about an index or dimension.
pub(crate) fn out_of_range<T>(args: &Args<'_, T>, what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::IndexOutOfRange, what).op(&*args.op.name)
}

/// The dimensions as indices from the front.
pub(crate) fn normalize_dims<T>(args: &Args<'_, T>, dims: &[i64], rank: usize) -> Result<Vec<usize>> {
    dims.iter().map(|&dim| normalize_dim(args, dim, rank)).collect()
}

fn reordered(base: &TensorMeta, order: &[usize]) -> Vec<Output> {
    let sizes = order.iter().map(|&dim| base.sizes[dim].clone()).collect();
    let strides = order.iter().map(|&dim| base.strides[dim].clone()).collect();
    vec![Output::view(view_of(base, sizes, strides, base.storage_offset.clone()))]
}

fn permute(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let (rank, dims) = (base.sizes.len(), args.ints(1)?);
    if dims.len() != rank {
        return Err(args.bad_shape(format!(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired \
             ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {}",
            dims.len()
        )));
    }
    let order = normalize_dims(args, &dims, rank)?;
    let mut is_seen = vec![false; rank];
    if order.iter().any(|&dim| std::mem::replace(&mut is_seen[dim], true)) {
        return Err(args.invalid("permute(): duplicate dims are not allowed."));
    }
    Ok(reordered(base, &order))
}

pub(crate) fn transpose(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let rank = base.sizes.len();
    let (a, b) = (normalize_dim(args, args.int(1)?, rank)?, normalize_dim(args, args.int(2)?, rank)?);
    let mut order: Vec<usize> = (0..rank).collect();
    if rank > 0 {
        order.swap(a, b);
    }
    Ok(reordered(base, &order))
}

pub(crate) fn t(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let rank = base.sizes.len();
    if rank > 2 {
        return Err(args.bad_shape(format!("t() expects a tensor with <= 2 dimensions, but self is {rank}D")));
    }
    let order: Vec<usize> = (0..rank).rev().collect();
    Ok(reordered(base, &order))
}

/// `transpose` and `t` by the core operator.
fn as_permute(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let rank = cx.meta(*args.tensor(0)?).sizes.len();
    let mut order: Vec<i64> = (0..rank as i64).collect();
    if args.values.len() == 1 {
        order.reverse();
    } else if rank > 0 {
        order.swap(normalize_dim(args, args.int(1)?, rank)?, normalize_dim(args, args.int(2)?, rank)?);
    }
    Ok(vec![cx.aten("permute", [&args.values[0], &Value::ints(&order)])?])
}

fn as_transpose(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![cx.aten("transpose.int", &args.values)?])
}

fn numpy_t(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let rank = cx.meta(*args.tensor(0)?).sizes.len() as i64;
    let order: Vec<i64> = (0..rank).rev().collect();
    Ok(vec![cx.aten("permute", [&args.values[0], &Value::ints(&order)])?])
}

/// A call of the op named by the last part of the schema's name on a 1-d tensor is refused; a 0-d one stays.
fn matrix_rank(cx: &Cx<'_>, args: &Call<'_>, what: &str) -> Result<usize> {
    let rank = cx.meta(*args.tensor(0)?).sizes.len();
    if rank == 1 {
        let what = format!("tensor.{what} is only supported on matrices or batches of matrices. Got 1-D tensor.");
        return Err(args.bad_shape(what));
    }
    Ok(rank)
}

fn matrix_transpose(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    if matrix_rank(cx, args, "mT")? == 0 {
        return Ok(vec![args.values[0].clone()]);
    }
    Ok(vec![cx.aten("transpose.int", [&args.values[0], &Value::int(-2), &Value::int(-1)])?])
}

fn matrix_adjoint(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let what = if args.op.schema.name == "mH" { "mH" } else { "adjoint()" };
    let rank = matrix_rank(cx, args, what)?;
    let mut res = args.values[0].clone();
    if rank > 0 {
        res = cx.aten("transpose.int", [&res, &Value::int(-2), &Value::int(-1)])?;
    }
    if cx.meta(*args.tensor(0)?).dtype.is_complex() {
        res = cx.aten("conj", [&res])?;
    }
    Ok(vec![res])
}

fn movedim(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let rank = cx.meta(*args.tensor(0)?).sizes.len();
    let dims = |index: usize| match &args.values[index] {
        Value::List(_) => args.ints(index),
        _ => Ok(vec![args.int(index)?]),
    };
    let (source, destination) = (dims(1)?, dims(2)?);
    if source.len() != destination.len() {
        return Err(args.invalid(format!(
            "movedim: Invalid source or destination dims: source ({} dims) should contain the same number of dims as \
             destination ({} dims)",
            listed(&source),
            listed(&destination)
        )));
    }
    let from = normalize_dims(args, &source, rank)?;
    let to = normalize_dims(args, &destination, rank)?;
    for (name, dims, given) in [("source", &from, &source), ("destination", &to, &destination)] {
        if (1..dims.len()).any(|at| dims[..at].contains(&dims[at])) {
            return Err(args.invalid(format!("movedim: repeated dim in `{name}` ({})", listed(given))));
        }
    }
    if rank == 0 {
        return Ok(vec![args.values[0].clone()]);
    }
    let mut rest = (0..rank).filter(|dim| !from.contains(dim));
    let order: Vec<i64> = (0..rank)
        .filter_map(|dim| match to.iter().position(|&it| it == dim) {
            Some(moved) => Some(from[moved] as i64),
            None => rest.next().map(|it| it as i64),
        })
        .collect();
    Ok(vec![cx.aten("permute", [&args.values[0], &Value::ints(&order)])?])
}

fn expand(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, target) = (args.tensor(0)?, args.sym_ints(1)?);
    let Some(lead) = target.len().checked_sub(base.sizes.len()) else {
        return Err(args.bad_shape(format!(
            "expand(torch.Tensor{{{}}}, size={}): the number of sizes provided ({}) must be greater or equal to the \
             number of dimensions in the tensor ({})",
            listed(&base.sizes),
            listed(&target),
            target.len(),
            base.sizes.len()
        )));
    };
    let mut sizes = target.clone();
    let mut strides = vec![SymInt::ZERO; target.len()];
    for dim in (0..target.len()).rev() {
        let (size, stride) = match dim.checked_sub(lead) {
            Some(own) => (base.sizes[own].clone(), base.strides[own].clone()),
            None => (SymInt::ONE, sizes.get(dim + 1).map_or(SymInt::ONE, |size| size * &strides[dim + 1])),
        };
        if target[dim] == -1 {
            if dim < lead {
                return Err(args.bad_shape(format!(
                    "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {dim}"
                )));
            }
            (sizes[dim], strides[dim]) = (size, stride);
        } else if size == 1 && target[dim] != 1 {
            if target[dim].as_int().is_some_and(|it| it < 0) {
                return Err(args.bad_shape(format!(
                    "The expanded size of the tensor ({}) must not be negative at dimension {dim}.  Target sizes: {}",
                    target[dim],
                    listed(&target)
                )));
            }
        } else {
            // A size that is not known is the same as the one that it meets: it cannot be stretched.
            if args.differ(&size, &target[dim]) {
                return Err(args.bad_shape(format!(
                    "The expanded size of the tensor ({}) must match the existing size ({size}) at non-singleton \
                     dimension {dim}.  Target sizes: {}.  Tensor sizes: {}",
                    target[dim],
                    listed(&target),
                    listed(&base.sizes)
                )));
            }
            strides[dim] = stride;
        }
    }
    Ok(vec![Output::view(view_of(base, sizes, strides, base.storage_offset.clone()))])
}

fn sizes_of(cx: &Cx<'_>, tensor: TensorRef) -> Traced {
    size_list(&cx.meta(tensor).sizes)
}

fn expand_as(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let sizes = sizes_of(cx, *args.tensor(1)?);
    Ok(vec![cx.aten("expand", [&args.values[0], &sizes])?])
}

fn broadcast_to(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![cx.aten("expand", &args.values)?])
}

fn broadcast_tensors(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let tensors = args.tensors(0)?;
    let mut sizes = Vec::new();
    for tensor in &tensors {
        sizes = crate::broadcast(args, &sizes, &cx.meta(**tensor).sizes)?;
    }
    let sizes = size_list(&sizes);
    let expanded = tensors.into_iter().map(|&it| cx.aten("expand", [&it.into(), &sizes]));
    Ok(vec![Value::List(expanded.collect::<Result<_>>()?)])
}

/// Only a size that is known to be one is dropped: a symbolic one counts as greater, as in PyTorch.
pub(crate) fn squeeze(args: &Args<'_, TensorMeta>, dims: Option<Vec<i64>>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let rank = base.sizes.len();
    let dims = match dims {
        Some(dims) => normalize_dims(args, &dims, rank)?,
        None => (0..rank).collect(),
    };
    if (1..dims.len()).any(|at| dims[..at].contains(&dims[at])) {
        return Err(args.invalid(format!("dim {} appears multiple times in the list of dims", repeated(&dims))));
    }
    let kept: Vec<usize> = (0..rank).filter(|dim| !(dims.contains(dim) && base.sizes[*dim] == 1)).collect();
    Ok(reordered(base, &kept))
}

/// The first of the dimensions that stands twice.
pub(crate) fn repeated(dims: &[usize]) -> usize {
    let at = (1..dims.len()).find(|&at| dims[..at].contains(&dims[at]));
    at.map_or(0, |at| dims[at])
}

pub(crate) fn unsqueeze(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let dim = normalize_dim(args, args.int(1)?, base.sizes.len() + 1)?;
    let (mut sizes, mut strides) = (base.sizes.clone(), base.strides.clone());
    let stride = base.sizes.get(dim).map_or(SymInt::ONE, |size| size * &base.strides[dim]);
    sizes.insert(dim, SymInt::ONE);
    strides.insert(dim, stride);
    Ok(vec![Output::view(view_of(base, sizes, strides, base.storage_offset.clone()))])
}

fn real(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    if !cx.meta(*args.tensor(0)?).dtype.is_complex() {
        return Ok(vec![args.values[0].clone()]);
    }
    part(cx, args, 0)
}

fn imag(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    if !cx.meta(*args.tensor(0)?).dtype.is_complex() {
        let what = "imag is not implemented for tensors with non-complex dtypes.";
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    part(cx, args, 1)
}

fn part(cx: &mut Cx<'_>, args: &Call<'_>, part: i64) -> Result<Vec<Traced>> {
    let pairs = cx.aten("view_as_real", [&args.values[0]])?;
    Ok(vec![cx.aten("select.int", [&pairs, &Value::int(-1), &Value::int(part)])?])
}

fn view_as_real(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let dtype = match base.dtype {
        DType::Complex32 => DType::Float16,
        DType::Complex64 => DType::Float32,
        DType::Complex128 => DType::Float64,
        _ => {
            let what = "view_as_real is only supported for complex tensors";
            return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
        }
    };
    let sizes = base.sizes.iter().cloned().chain([SymInt::from(2)]).collect();
    let strides = base.strides.iter().map(|it| it * 2).chain([SymInt::ONE]).collect();
    let meta = TensorMeta { dtype, ..view_of(base, sizes, strides, &base.storage_offset * 2) };
    Ok(vec![Output::view(meta)])
}

fn view_as_complex(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let dtype = match base.dtype {
        DType::Float16 => DType::Complex32,
        DType::Float32 => DType::Complex64,
        DType::Float64 => DType::Complex128,
        other => {
            let what = format!(
                "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar \
                 type: {}",
                other.cpp_name()
            );
            return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
        }
    };
    let Some((last, sizes)) = base.sizes.split_last() else {
        return Err(args.bad_shape("Input tensor must have one or more dimensions"));
    };
    let (last_stride, strides) = base.strides.split_last().expect("there are as many strides as sizes");
    let two = SymInt::from(2);
    let is_odd = |it: &SymInt| it.modulo(&two) == 1;
    let problem = if *last != 2 {
        "Tensor must have a last dimension of size 2"
    } else if *last_stride != 1 {
        "Tensor must have a last dimension with stride 1"
    } else if strides.iter().any(is_odd) {
        "Tensor must have a stride divisible by 2 for all but last dimension"
    } else if is_odd(&base.storage_offset) {
        "Tensor must have a storage_offset divisible by 2"
    } else {
        let strides = strides.iter().map(|it| it.floor_div(&two)).collect();
        let meta = TensorMeta { dtype, ..view_of(base, sizes.to_vec(), strides, base.storage_offset.floor_div(&two)) };
        return Ok(vec![Output::view(meta)]);
    };
    Err(args.bad_shape(problem))
}
