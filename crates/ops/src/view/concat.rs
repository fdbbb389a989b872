//! Tensors put together: concatenation and what is made of it.

use crate::core::decompositions::{Call, size_list};
use crate::core::memory_format::{in_memory_format, memory_format_of};
use crate::index;
use crate::view::gradient;
use crate::view::strides::listed;
use crate::{
    Args, Cx, OpDef, Operand, Output, Tags, TensorRef, Tol, Traced, Value, contiguous, normalize_dim, promote,
};
use tracefx_core::{Code, Diagnostic, MemoryFormat, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::cat(Tensor[] tensors, int dim=0) -> Tensor", cat)
        .vjp(gradient::cat)
        .doc("The tensors one after the other along a dimension, in the dtype that they promote to.")
        .tags(Tags::CORE),
    OpDef::composite("aten::concat(Tensor[] tensors, int dim=0) -> Tensor", as_cat)
        .doc("The tensors one after the other along a dimension.")
        .tolerance(Tol::Exact),
    OpDef::composite("aten::concatenate(Tensor[] tensors, int dim=0) -> Tensor", as_cat)
        .doc("The tensors one after the other along a dimension.")
        .tolerance(Tol::Exact),
    OpDef::composite("aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", chunk_cat)
        .doc("Each tensor cut into chunks along a dimension, with zeros at the end, and the chunks side by side.")
        .tolerance(Tol::Exact),
    OpDef::composite("aten::stack(Tensor[] tensors, int dim=0) -> Tensor", stack)
        .doc("The tensors one after the other along a new dimension.")
        .tolerance(Tol::Exact),
    OpDef::composite("aten::hstack(Tensor[] tensors) -> Tensor", hstack)
        .doc("The tensors side by side.")
        .tolerance(Tol::Exact),
    OpDef::composite("aten::vstack(Tensor[] tensors) -> Tensor", vstack)
        .doc("The tensors one below the other.")
        .tolerance(Tol::Exact),
    OpDef::composite("aten::row_stack(Tensor[] tensors) -> Tensor", vstack)
        .doc("The tensors one below the other.")
        .tolerance(Tol::Exact),
    OpDef::composite("aten::dstack(Tensor[] tensors) -> Tensor", dstack)
        .doc("The tensors along a third dimension.")
        .tolerance(Tol::Exact),
    OpDef::composite("aten::column_stack(Tensor[] tensors) -> Tensor", column_stack)
        .doc("The tensors side by side, one-dimensional ones as columns.")
        .tolerance(Tol::Exact),
    OpDef::new("aten::block_diag(Tensor[] tensors) -> Tensor", block_diag)
        .decompose(index::decompose::block_diag)
        .vjp(gradient::block_diag)
        .doc("Matrices along the diagonal of a larger one that is zero elsewhere."),
    OpDef::composite("aten::meshgrid(Tensor[] tensors) -> Tensor[]", |cx, args| {
        Ok(vec![meshgrid(cx, args, args.tensors(0)?.into_iter().copied().collect(), "ij")?])
    })
    .doc("The coordinates of all points of a grid, one tensor for each axis.")
    .tags(Tags::VIEW),
    OpDef::composite("aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", |cx, args| {
        Ok(vec![meshgrid(cx, args, args.tensors(0)?.into_iter().copied().collect(), args.str(1)?)?])
    })
    .doc("The coordinates of all points of a grid, with the first two axes in matrix or in Cartesian order.")
    .tags(Tags::VIEW),
    OpDef::composite("aten::cartesian_prod(Tensor[] tensors) -> Tensor", cartesian_prod)
        .doc("All combinations of one element of each tensor.")
        .tolerance(Tol::Exact),
];

/// Whether `cat` leaves a tensor out: `torch.tensor([])` goes with everything, for old programs' sake.
fn is_skipped(meta: &TensorMeta) -> bool {
    meta.sizes.len() == 1 && meta.sizes[0] == 0
}

fn cat(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let tensors = args.tensors(0)?;
    if tensors.is_empty() {
        return Err(args.invalid("torch.cat(): expected a non-empty list of Tensors"));
    }
    if let Some(at) = tensors.iter().position(|it| it.sizes.is_empty()) {
        let what = format!("zero-dimensional tensor (at position {at}) cannot be concatenated");
        return Err(args.bad_shape(what));
    }
    let dtype = promote(&tensors.iter().map(|it| Operand::Tensor(*it)).collect::<Vec<_>>());
    let kept: Vec<_> = tensors.iter().enumerate().filter(|(_, it)| !is_skipped(it)).collect();
    let Some((_, first)) = kept.first() else {
        normalize_dim(args, args.int(1)?, 1)?;
        return Ok(contiguous(dtype, vec![SymInt::ZERO]));
    };
    let dim = normalize_dim(args, args.int(1)?, first.sizes.len())?;
    let mut sizes = first.sizes.clone();
    for (at, tensor) in &kept[1..] {
        if tensor.sizes.len() != sizes.len() {
            let what = "Tensors must have same number of dimensions: got";
            return Err(args.bad_shape(format!("{what} {} and {}", sizes.len(), tensor.sizes.len())));
        }
        for (other, size) in tensor.sizes.iter().enumerate() {
            if other == dim {
                continue;
            }
            if args.differ(size, &sizes[other]) {
                return Err(args.bad_shape(format!(
                    "Sizes of tensors must match except in dimension {dim}. Expected size {} but got size {size} for \
                     tensor number {at} in the list.",
                    sizes[other]
                )));
            }
        }
    }
    sizes[dim] = kept.iter().map(|(_, it)| &it.sizes[dim]).sum();
    let format = memory_format_of(first);
    let is_agreed = kept.iter().all(|(_, it)| memory_format_of(it) == format);
    let format = if is_agreed { format } else { MemoryFormat::Contiguous };
    Ok(vec![Output::Tensor(in_memory_format(dtype, sizes, format))])
}

fn as_cat(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![cx.aten("cat", &args.values)?])
}

/// Follows `_chunk_cat` of aten/src/ATen/native/TensorShape.cpp.
fn chunk_cat(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (tensors, n_chunks) = (args.tensors(0)?, args.int(2)?);
    if n_chunks < 1 {
        return Err(args.invalid("_chunk_cat expects positive num_chunks"));
    }
    let metas: Vec<TensorMeta> = tensors.iter().map(|it| cx.meta(**it).clone()).collect();
    let Some(first) = metas.first() else {
        return Err(args.invalid("_chunk_cat expects a non-empty input tensor list"));
    };
    let dim = normalize_dim(args, args.int(1)?, first.sizes.len())?;
    let mut chunks = Vec::new();
    for (tensor, meta) in tensors.into_iter().zip(&metas) {
        let Some(size) = meta.sizes.get(dim) else {
            return Err(args.bad_shape("_chunk_cat expects dim < ndim for all input tensors"));
        };
        if meta.dtype != first.dtype {
            let what = "_chunk_cat expects all input tensors with the same dtype";
            return Err(Diagnostic::new(Code::DTypeMismatch, what));
        }
        if meta.sizes.contains(&SymInt::ZERO) {
            return Err(args.bad_shape("_chunk_cat expects non-empty tensor"));
        }
        if !args.agree(&meta.sizes[..dim], &first.sizes[..dim]) {
            let what = "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors";
            return Err(args.bad_shape(what));
        }
        let missing = (size + (n_chunks - 1)).floor_div(&n_chunks.into()) * n_chunks - size;
        let mut it: Traced = (*tensor).into();
        if missing != 0 {
            let mut padding = vec![Value::int(0); 2 * (meta.sizes.len() - dim)];
            if let Some(last) = padding.last_mut() {
                *last = Value::Int(missing);
            }
            it = cx.aten("constant_pad_nd", [&it, &Value::List(padding), &Value::int(0)])?;
        }
        let mut sizes: Vec<Traced> = meta.sizes[..dim].iter().cloned().map(Value::Int).collect();
        sizes.extend([Value::int(n_chunks), Value::int(-1)]);
        chunks.push(cx.aten("reshape", [&it, &Value::List(sizes)])?);
    }
    Ok(vec![cx.aten("cat", [&Value::List(chunks), &Value::int(dim as i64 + 1)])?])
}

fn stack(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let tensors = args.tensors(0)?;
    let Some(first) = tensors.first() else { return Err(args.invalid("stack expects a non-empty TensorList")) };
    let mut sizes = cx.meta(**first).sizes.clone();
    let dim = normalize_dim(args, args.int(1)?, sizes.len() + 1)? as i64;
    for (at, &&tensor) in tensors.iter().enumerate() {
        let own = &cx.meta(tensor).sizes;
        let differs = |(a, b): (&SymInt, &SymInt)| args.differ(a, b);
        if own.len() != sizes.len() || own.iter().zip(&sizes).any(differs) {
            return Err(args.bad_shape(format!(
                "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {at}",
                listed(&sizes),
                listed(own)
            )));
        }
    }
    // A last dimension of size one is no part of what `cat` would join.
    if dim as usize == sizes.len() {
        let unsqueezed = tensors.iter().map(|&&it| cx.aten("unsqueeze", [&it.into(), &Value::int(dim)]));
        let unsqueezed = unsqueezed.collect::<Result<_>>()?;
        return Ok(vec![cx.aten("cat", [&Value::List(unsqueezed), &Value::int(dim)])?]);
    }
    let joined = cx.aten("cat", [&args.values[0], &Value::int(dim)])?;
    sizes.insert(dim as usize, tensors.len().into());
    Ok(vec![cx.aten("view", [&joined, &size_list(&sizes)])?])
}

/// The tensors with as many dimensions as `shape` says, which is given each tensor's rank, joined along a dimension.
fn join(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    dim: impl FnOnce(&Cx<'_>, &[Traced]) -> i64,
    shape: impl Fn(&mut Cx<'_>, Traced, usize) -> Result<Traced>,
) -> Result<Vec<Traced>> {
    let tensors = args.tensors(0)?;
    if tensors.is_empty() {
        return Err(args.invalid(format!("{} expects a non-empty TensorList", args.op.schema.name)));
    }
    let mut shaped = Vec::with_capacity(tensors.len());
    for &&tensor in &tensors {
        let rank = cx.meta(tensor).sizes.len();
        shaped.push(shape(cx, tensor.into(), rank)?);
    }
    let dim = dim(cx, &shaped);
    Ok(vec![cx.aten("cat", [&Value::List(shaped), &Value::int(dim)])?])
}

fn unsqueeze(cx: &mut Cx<'_>, tensor: &Traced, dim: i64) -> Result<Traced> {
    cx.aten("unsqueeze", [tensor, &Value::int(dim)])
}

fn reshape(cx: &mut Cx<'_>, tensor: &Traced, sizes: &[i64]) -> Result<Traced> {
    cx.aten("reshape", [tensor, &Value::ints(sizes)])
}

fn hstack(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let dim = |cx: &Cx<'_>, shaped: &[Traced]| match shaped[0] {
        Value::Tensor(first) if cx.meta(first).sizes.len() == 1 => 0,
        _ => 1,
    };
    join(cx, args, dim, |cx, tensor, rank| match rank {
        0 => reshape(cx, &tensor, &[1]),
        _ => Ok(tensor),
    })
}

fn vstack(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    join(
        cx,
        args,
        |_, _| 0,
        |cx, tensor, rank| match rank {
            0 => reshape(cx, &tensor, &[1, 1]),
            1 => unsqueeze(cx, &tensor, 0),
            _ => Ok(tensor),
        },
    )
}

fn dstack(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    join(
        cx,
        args,
        |_, _| 2,
        |cx, tensor, rank| match rank {
            0 => reshape(cx, &tensor, &[1, 1, 1]),
            1 => {
                let row = unsqueeze(cx, &tensor, 0)?;
                unsqueeze(cx, &row, -1)
            }
            2 => unsqueeze(cx, &tensor, -1),
            _ => Ok(tensor),
        },
    )
}

fn column_stack(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    join(
        cx,
        args,
        |_, _| 1,
        |cx, tensor, rank| match rank {
            0 | 1 => reshape(cx, &tensor, &[-1, 1]),
            _ => Ok(tensor),
        },
    )
}

fn block_diag(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let tensors = args.tensors(0)?;
    let dtype = promote(&tensors.iter().map(|it| Operand::Tensor(*it)).collect::<Vec<_>>());
    let (mut rows, mut columns) = (SymInt::ZERO, SymInt::ZERO);
    for (at, tensor) in tensors.iter().enumerate() {
        match &tensor.sizes[..] {
            [] => (rows, columns) = (rows + 1, columns + 1),
            [n] => (rows, columns) = (rows + 1, columns + n),
            [m, n] => (rows, columns) = (rows + m, columns + n),
            more => {
                return Err(args.bad_shape(format!(
                    "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {at} has {} dimensions",
                    more.len()
                )));
            }
        }
    }
    // Of no tensors at all, PyTorch makes a matrix of one row.
    let rows = if tensors.is_empty() { SymInt::ONE } else { rows };
    Ok(contiguous(dtype, vec![rows, columns]))
}

fn meshgrid(cx: &mut Cx<'_>, args: &Call<'_>, mut axes: Vec<TensorRef>, indexing: &str) -> Result<Traced> {
    let Some(&first) = axes.first() else {
        return Err(args.invalid("meshgrid expects a non-empty TensorList"));
    };
    let dtype = cx.meta(first).dtype;
    for &axis in &axes {
        let meta = cx.meta(axis);
        if meta.sizes.len() > 1 {
            return Err(args.bad_shape(format!(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {}",
                listed(&meta.sizes)
            )));
        }
        if meta.dtype != dtype {
            let what = "torch.meshgrid expects all tensors to have the same dtype";
            return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
        }
    }
    // Cartesian order is matrix order of the first two axes exchanged.
    let is_cartesian = match indexing {
        "ij" => false,
        "xy" => axes.len() >= 2,
        other => {
            let what = "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ";
            return Err(args.invalid(format!("{what}{other}")));
        }
    };
    if is_cartesian {
        axes.swap(0, 1);
    }
    let size = |cx: &Cx<'_>, axis: TensorRef| cx.meta(axis).sizes.first().cloned().unwrap_or(SymInt::ONE);
    let shape: Vec<Traced> = axes.iter().map(|&axis| Value::Int(size(cx, axis))).collect();
    let mut grids = Vec::with_capacity(axes.len());
    for (dim, &axis) in axes.iter().enumerate() {
        let mut own = vec![Value::int(1); axes.len()];
        own[dim] = shape[dim].clone();
        let line = cx.aten("view", [&axis.into(), &Value::List(own)])?;
        grids.push(cx.aten("expand", [&line, &Value::List(shape.clone())])?);
    }
    if is_cartesian {
        grids.swap(0, 1);
    }
    Ok(Value::List(grids))
}

fn cartesian_prod(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let tensors: Vec<TensorRef> = args.tensors(0)?.into_iter().copied().collect();
    for &tensor in &tensors {
        let sizes = &cx.meta(tensor).sizes;
        if sizes.len() != 1 {
            return Err(args.bad_shape(format!("Expect a 1D vector, but got shape {}", listed(sizes))));
        }
    }
    if let [only] = tensors[..] {
        return Ok(vec![only.into()]);
    }
    let Value::List(grids) = meshgrid(cx, args, tensors, "ij")? else {
        return Err(args.invalid("meshgrid gives a list"));
    };
    let mut columns = Vec::with_capacity(grids.len());
    for grid in grids {
        columns.push(reshape(cx, &grid, &[-1])?);
    }
    Ok(vec![cx.aten("stack", [&Value::List(columns), &Value::int(1)])?])
}
