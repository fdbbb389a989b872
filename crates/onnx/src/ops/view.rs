//! Views that take, order or join parts, and what writes parts back.

use super::Rows;
use crate::call::{Call, Results, Tensor, check_listed, dynamic, invalid, positive, unsupported, wrap};
use crate::graph::{Dim, X, int, text};
use tracefx_core::{DType, Result};
use tracefx_ops::Value;

pub(super) const OPS: Rows = &[
    ("aten.as_strided.default", as_strided),
    ("aten.cat.default", cat),
    ("aten.constant_pad_nd.default", constant_pad),
    ("aten.diagonal.default", diagonal),
    ("aten.diagonal_scatter.default", diagonal_scatter),
    ("aten.flip.default", flip),
    ("aten.permute.default", permute),
    ("aten.select.int", select),
    ("aten.select_scatter.default", select_scatter),
    ("aten.slice.Tensor", slice),
    ("aten.slice_scatter.default", slice_scatter),
    ("aten.split_with_sizes.default", split_with_sizes),
    ("aten.unfold.default", unfold),
];

fn permute(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let order = c.ints("dims")?.into_iter().map(|it| wrap(it, x.rank())).collect::<Result<Vec<_>>>()?;
    if order.iter().enumerate().all(|(at, &it)| at as i64 == it) {
        return Ok(x.x.into());
    }
    Ok(c.g().transpose(&x, &order).into())
}

fn select(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let dim = c.dim("dim", x.rank())?;
    let index = c.operand("index", DType::Int64)?;
    Ok(c.g().raw("Gather", &[&x, &index], vec![int("axis", dim)], x.x.dtype).into())
}

/// Where a slice begins and ends. What is beyond the size is clamped by ONNX as by Python.
fn bounds(c: &mut Call<'_, '_>) -> Result<(Dim, Dim)> {
    let start = c.dim_arg("start")?.unwrap_or(Dim::Known(0));
    let end = c.dim_arg("end")?.unwrap_or(Dim::Known(i64::MAX));
    Ok((start, end))
}

fn slice(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let dim = c.dim("dim", x.rank())?;
    let (start, end) = bounds(c)?;
    let step = c.int("step")?;
    if step == 1 && matches!((&start, &end), (Dim::Known(0), Dim::Known(i64::MAX))) {
        return Ok(x.x.into());
    }
    Ok(c.g().slice(&x, dim, &start, &end, step)?.into())
}

/// The indices of a dimension: `0..size`.
pub(super) fn indices(c: &mut Call<'_, '_>, x: &Tensor, dim: usize) -> Result<X> {
    match x.sizes[dim].as_int() {
        Some(n) => {
            check_listed(&[n])?;
            c.g().vector(&(0..n).collect::<Vec<_>>())
        }
        None => {
            let size = c.g().size_of(&x.x, dim as i64);
            let size = c.g().reshape(&size, &[])?;
            let (zero, one) = (c.number(0.0, DType::Int64)?, c.number(1.0, DType::Int64)?);
            Ok(c.g().raw("Range", &[&zero, &size, &one], Vec::new(), DType::Int64))
        }
    }
}

/// The order that moves a dimension to the front.
pub(super) fn to_front(dim: i64, rank: usize) -> Vec<i64> {
    std::iter::once(dim).chain((0..rank as i64).filter(|&it| it != dim)).collect()
}

/// The order that takes this one back.
pub(super) fn inverse(order: &[i64]) -> Vec<i64> {
    let mut res = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &it)| res[it as usize] = at as i64);
    res
}

/// Writes `source`, whose first dimension is that of `at`, to these places of a dimension.
fn write_at(c: &mut Call<'_, '_>, x: &Tensor, dim: i64, at: &X, source: &X) -> Result<X> {
    let order = to_front(dim, x.rank());
    let g = c.g();
    let (front, at) = (g.transpose(x, &order), g.unsqueeze(at, &[1])?);
    let written = g.raw("ScatterND", &[&front, &at, source], Vec::new(), x.x.dtype);
    Ok(g.transpose(&written, &inverse(&order)))
}

fn slice_scatter(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, source) = (c.tensor("self")?, c.tensor("src")?);
    let dim = c.dim("dim", x.rank())?;
    let (start, end) = bounds(c)?;
    let step = c.int("step")?;
    let whole = step == 1 && matches!((&start, &end), (Dim::Known(0), Dim::Known(i64::MAX)));
    let same = source.sizes == x.sizes && source.x.dtype == x.x.dtype;
    if whole && same {
        return Ok(source.x.into());
    }
    let all = indices(c, &x, dim as usize)?;
    let at = c.g().slice(&all, 0, &start, &end, step)?;
    // The source may have sizes of one, which stand for those of the part.
    let source = c.g().cast(&source, x.x.dtype)?;
    let mut dims = c.sizes_of(&x);
    dims[dim as usize] = Dim::Value(c.g().shape_of(&at));
    let shape = c.g().dims(&dims)?;
    let source = c.g().expand(&source, &shape)?;
    let source = c.g().transpose(&source, &to_front(dim, x.rank()));
    Ok(write_at(c, &x, dim, &at, &source)?.into())
}

fn select_scatter(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let dim = c.dim("dim", x.rank())?;
    let (source, index) = (c.operand("src", x.x.dtype)?, c.operand("index", DType::Int64)?);
    let at = c.g().as_vector(&index)?;
    let source = c.g().unsqueeze(&source, &[0])?;
    Ok(write_at(c, &x, dim, &at, &source)?.into())
}

/// The order that moves the two dimensions of a diagonal to the front, and the places of its elements in them.
fn diagonal_places(c: &mut Call<'_, '_>, x: &Tensor) -> Result<(Vec<i64>, Vec<[i64; 2]>)> {
    let (rank, offset) = (x.rank(), c.int("offset")?);
    let (rows, columns) = (c.dim("dim1", rank)?, c.dim("dim2", rank)?);
    let (n_rows, n_columns) = (x.size(rows as usize)?, x.size(columns as usize)?);
    let (row, column) = ((-offset).max(0), offset.max(0));
    let n = (n_rows - row).min(n_columns - column).max(0);
    check_listed(&[n])?;
    let others = (0..rank as i64).filter(|&it| it != rows && it != columns);
    let order = [rows, columns].into_iter().chain(others).collect();
    Ok((order, (0..n).map(|it| [row + it, column + it]).collect()))
}

fn places(c: &mut Call<'_, '_>, at: &[[i64; 2]]) -> Result<X> {
    let flat: Vec<i64> = at.iter().flatten().copied().collect();
    c.g().constant(&tracefx_core::Tensor::from_slice(&flat, &[at.len(), 2])?)
}

/// The diagonal comes last.
fn diagonal(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let (order, at) = diagonal_places(c, &x)?;
    let at = places(c, &at)?;
    let front = c.g().transpose(&x, &order);
    let taken = c.g().raw("GatherND", &[&front, &at], Vec::new(), x.x.dtype);
    let to_back: Vec<i64> = (1..x.rank() as i64 - 1).chain([0]).collect();
    Ok(c.g().transpose(&taken, &to_back).into())
}

fn diagonal_scatter(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let (order, at) = diagonal_places(c, &x)?;
    let at = places(c, &at)?;
    let source = c.operand("src", x.x.dtype)?;
    let g = c.g();
    let source = g.transpose(&source, &to_front(x.rank() as i64 - 2, x.rank() - 1));
    let front = g.transpose(&x, &order);
    let written = g.raw("ScatterND", &[&front, &at, &source], Vec::new(), x.x.dtype);
    Ok(g.transpose(&written, &inverse(&order)).into())
}

fn flip(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let dims = c.ints("dims")?.into_iter().map(|it| wrap(it, x.rank())).collect::<Result<Vec<_>>>()?;
    if dims.is_empty() || x.rank() == 0 {
        return Ok(x.x.into());
    }
    let n = dims.len();
    let (start, end) = (c.g().vector(&vec![-1; n])?, c.g().vector(&vec![i64::MIN; n])?);
    let (axes, steps) = (c.g().vector(&dims)?, c.g().vector(&vec![-1; n])?);
    Ok(c.g().raw("Slice", &[&x, &start, &end, &axes, &steps], Vec::new(), x.x.dtype).into())
}

/// PyTorch leaves out empty vectors, whatever the other tensors are.
fn cat(c: &mut Call<'_, '_>) -> Result<Results> {
    let (dtype, rank) = (c.dtype()?, c.result(0)?.sizes.len());
    let dim = c.dim("dim", rank)?;
    let tensors: Vec<Tensor> = c.tensors("tensors")?.into_iter().flatten().collect();
    let kept = tensors.into_iter().filter(|it| it.rank() == rank).collect::<Vec<_>>();
    let parts = kept.iter().map(|it| c.g().cast(it, dtype)).collect::<Result<Vec<_>>>()?;
    Ok(match &parts[..] {
        [] => return Err(unsupported("a concatenation of nothing")),
        [part] => part.clone(),
        parts => c.g().concat(&parts.iter().collect::<Vec<_>>(), dim),
    }
    .into())
}

fn split_with_sizes(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let dim = c.dim("dim", x.rank())?;
    let sizes = c.dims("split_sizes")?;
    let n = sizes.len();
    let sizes = c.g().dims(&sizes)?;
    let parts = c.g().node("Split", &[Some(&x.x), Some(&sizes)], vec![int("axis", dim)], &vec![x.x.dtype; n]);
    Ok(Results(parts.into_iter().map(Some).collect()))
}

/// The last dimension comes first in PyTorch's padding; ONNX has all beginnings, then all ends.
fn constant_pad(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let pad = c.dims("pad")?;
    let n = pad.len() / 2;
    let axes: Vec<i64> = (0..n).map(|it| (x.rank() - 1 - it) as i64).collect();
    let ordered: Vec<Dim> = pad.iter().step_by(2).chain(pad.iter().skip(1).step_by(2)).cloned().collect();
    let (pads, axes) = (c.g().dims(&ordered)?, c.g().vector(&axes)?);
    let computed = crate::element::computed_in("Pad", x.x.dtype);
    let value = c.operand("value", computed)?;
    let wide = c.g().cast(&x, computed)?;
    let padded = c.g().raw("Pad", &[&wide, &pads, &value, &axes], vec![text("mode", "constant")], computed);
    Ok(c.g().cast(&padded, x.x.dtype)?.into())
}

/// A view by strides of a row-major tensor takes elements by their places.
fn as_strided(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let (sizes, strides) = (c.ints("size")?, c.ints("stride")?);
    let offset = c.opt_int("storage_offset")?.unwrap_or(0);
    let arg = c.raw_arg(0).and_then(tracefx_ir::Arg::as_node).ok_or_else(|| unsupported("a view of no node"))?;
    let val = c.translator.module.graph.node(arg).meta.val.clone();
    if let Some(tracefx_ir::Val::Tensor(meta)) = val {
        let plain = tracefx_ir::TensorMeta::contiguous(meta.dtype, meta.sizes.clone());
        if plain.strides != meta.strides || meta.storage_offset != 0 {
            return Err(unsupported("a view by strides of what is no row-major tensor has no translation"));
        }
    }
    check_listed(&sizes)?;
    let mut at = vec![offset];
    for (&size, &stride) in sizes.iter().zip(&strides) {
        let places = at.iter().flat_map(|&base| (0..size).map(move |it| it.checked_mul(stride)?.checked_add(base)));
        at = places.collect::<Option<_>>().ok_or_else(|| invalid("the strides reach beyond any memory"))?;
    }
    let dims: Vec<usize> = sizes.iter().map(|&it| it as usize).collect();
    let at = c.g().constant(&tracefx_core::Tensor::from_slice(&at, &dims)?)?;
    let flat = c.g().reshape(&x, &[Dim::Known(-1)])?;
    Ok(c.g().raw("Gather", &[&flat, &at], vec![int("axis", 0)], x.x.dtype).into())
}

/// The windows of a dimension; what is in them comes last.
fn unfold(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let dim = c.dim("dimension", x.rank())?;
    let (size, step) = (c.int("size")?, positive("step", c.int("step")?)?);
    if x.rank() == 0 {
        return Ok(c.g().unsqueeze(&x, &[0])?.into());
    }
    let length = x.sizes[dim as usize].as_int().ok_or_else(|| dynamic("the dimension that is unfolded"))?;
    let n = (length - size).div_euclid(step) + 1;
    check_listed(&[n, size])?;
    let at: Vec<i64> = (0..n).flat_map(|window| (0..size).map(move |it| window * step + it)).collect();
    let at = c.g().constant(&tracefx_core::Tensor::from_slice(&at, &[n as usize, size as usize])?)?;
    let taken = c.g().raw("Gather", &[&x, &at], vec![int("axis", dim)], x.x.dtype);
    let rank = x.rank() as i64 + 1;
    let order: Vec<i64> = (0..rank).filter(|&it| it != dim + 1).chain([dim + 1]).collect();
    Ok(c.g().transpose(&taken, &order).into())
}

/// Whether a list argument has a `None`, or is none.
pub(super) fn is_none(value: &Value<Tensor>) -> bool {
    matches!(value, Value::None)
}
