//! Elements by their indices.

use super::Rows;
use super::view::{inverse, is_none};
use crate::call::{Call, Results, Tensor, unsupported};
use crate::graph::{Dim, X, int, text};
use tracefx_core::{DType, Result};
use tracefx_ops::Value;

pub(super) const OPS: Rows = &[
    ("aten.embedding.default", embedding),
    ("aten.gather.default", gather),
    ("aten.index.Tensor", index),
    ("aten.index_put.default", index_put),
    ("aten.index_select.default", index_select),
    ("aten.masked_scatter.default", masked_scatter),
    ("aten.masked_select.default", masked_select),
    ("aten.nonzero.default", nonzero),
    ("aten.nonzero_static.default", nonzero_static),
];

fn embedding(c: &mut Call<'_, '_>) -> Result<Results> {
    let (weight, indices) = (c.tensor("weight")?, c.operand("indices", DType::Int64)?);
    Ok(c.g().raw("Gather", &[&weight, &indices], vec![int("axis", 0)], weight.x.dtype).into())
}

fn index_select(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, index) = (c.tensor("self")?, c.tensor("index")?);
    let dim = c.dim("dim", x.rank())?;
    let at = c.g().cast(&index, DType::Int64)?;
    if x.rank() == 0 {
        return Ok(x.x.into());
    }
    let at = if index.rank() == 0 { c.g().as_vector(&at)? } else { at };
    Ok(c.g().raw("Gather", &[&x, &at], vec![int("axis", dim)], x.x.dtype).into())
}

fn gather(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, index) = (c.tensor("self")?, c.tensor("index")?);
    let dim = c.dim("dim", x.rank())?;
    let at = c.g().cast(&index, DType::Int64)?;
    if index.rank() == 0 || x.rank() == 0 {
        let row = c.g().reshape(&x, &[Dim::Known(-1)])?;
        return Ok(c.g().raw("Gather", &[&row, &at], vec![int("axis", 0)], x.x.dtype).into());
    }
    Ok(c.g().raw("GatherElements", &[&x, &at], vec![int("axis", dim)], x.x.dtype).into())
}

/// Where the elements of a mask are true: a row for each, a column for each dimension.
fn places(c: &mut Call<'_, '_>, x: &X) -> Result<X> {
    let mask = c.g().cast(x, DType::Bool)?;
    let found = c.g().raw("NonZero", &[&mask], Vec::new(), DType::Int64);
    Ok(c.g().transpose(&found, &[1, 0]))
}

fn nonzero(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    if x.rank() == 0 {
        // A row without columns, where the number is one.
        let n = c.operand("self", DType::Bool)?;
        let n = c.g().as_vector(&n)?;
        let (shape, zero) = (c.g().dims(&[Dim::Value(n), Dim::Known(0)])?, c.number(0.0, DType::Int64)?);
        return Ok(c.g().expand(&zero, &shape)?.into());
    }
    Ok(places(c, &x)?.into())
}

fn nonzero_static(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let size = c.dim_arg("size")?.ok_or_else(|| unsupported("a size is missing"))?;
    let fill = c.operand("fill_value", DType::Int64)?;
    let shape = c.g().dims(&[size.clone(), Dim::Known(x.rank() as i64)])?;
    let rest = c.g().expand(&fill, &shape)?;
    if x.rank() == 0 {
        return Ok(rest.into());
    }
    let at = places(c, &x)?;
    let both = c.g().concat(&[&at, &rest], 0);
    Ok(c.g().slice(&both, 0, &Dim::Known(0), &size, 1)?.into())
}

fn masked_select(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, mask) = (c.tensor("self")?, c.tensor("mask")?);
    let (x, mask) = together(c, &x, &mask)?;
    let (flat, mask) = (c.g().reshape(&x, &[Dim::Known(-1)])?, c.g().reshape(&mask, &[Dim::Known(-1)])?);
    let computed = crate::element::computed_in("Compress", x.dtype);
    let wide = c.g().cast(&flat, computed)?;
    let taken = c.g().raw("Compress", &[&wide, &mask], Vec::new(), computed);
    Ok(c.g().cast(&taken, x.dtype)?.into())
}

/// Two tensors of one shape, that to which both are broadcast.
pub(super) fn together(c: &mut Call<'_, '_>, a: &Tensor, b: &Tensor) -> Result<(X, X)> {
    if a.sizes == b.sizes {
        return Ok((a.x.clone(), b.x.clone()));
    }
    let (a_shape, b_shape) = (c.shape_of(a)?, c.shape_of(b)?);
    // Expanding goes both ways in ONNX.
    let a = c.g().expand(a, &b_shape)?;
    let b = c.g().expand(b, &a_shape)?;
    Ok((a, b))
}

/// The element of the source for each true one of the mask, in order.
fn masked_scatter(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, mask, source) = (c.tensor("self")?, c.tensor("mask")?, c.tensor("source")?);
    let (values, mask) = together(c, &x, &mask)?;
    let (zero, one) = (c.number(0.0, DType::Int64)?, c.number(1.0, DType::Int64)?);
    let g = c.g();
    let flat = g.reshape(&mask, &[Dim::Known(-1)])?;
    let counted = g.cast(&flat, DType::Int64)?;
    let count = g.raw("CumSum", &[&counted, &zero], Vec::new(), DType::Int64);
    let at = g.math("Sub", &[&count, &one])?;
    let at = g.math("Max", &[&at, &zero])?;
    let flat_source = g.reshape(&source, &[Dim::Known(-1)])?;
    // A source that is empty has one element, which nothing takes where the mask is empty, too.
    let spare = g.number(0.0, source.x.dtype)?;
    let spare = g.reshape(&spare, &[Dim::Known(1)])?;
    let flat_source = g.raw("Concat", &[&flat_source, &spare], vec![int("axis", 0)], source.x.dtype);
    let taken = g.raw("Gather", &[&flat_source, &at], vec![int("axis", 0)], source.x.dtype);
    let shape = g.shape_of(&values);
    let taken = g.raw("Reshape", &[&taken, &shape], vec![int("allowzero", 1)], source.x.dtype);
    Ok(g.choose(&mask, &taken, &values)?.into())
}

/// How an index of tensors is done: the indexed dimensions come to the front, where one tensor of places takes them.
struct Places {
    /// The dimensions of the tensor, those that are indexed first.
    order: Vec<i64>,
    /// How many they are.
    n: usize,
    /// The dimension at which the result of the index stands.
    first: usize,
    /// The number of dimensions that the index gives.
    rank: usize,
    /// The indices of an element in the last dimension.
    at: X,
}

fn read_places(c: &mut Call<'_, '_>, x: &Tensor) -> Result<Places> {
    let Value::List(given) = c.arg("indices")? else { return Err(unsupported("an index is no list")) };
    let (mut dims, mut tensors) = (Vec::new(), Vec::new());
    let mut dim = 0i64;
    for it in &given {
        let Value::Tensor(it) = it else {
            dim += i64::from(is_none(it));
            continue;
        };
        if it.x.dtype == DType::Bool || it.x.dtype == DType::UInt8 {
            // A mask indexes as many dimensions as it has.
            let found = c.g().query("NonZero", &[&it.x], Vec::new(), DType::Int64)?;
            for row in 0..it.rank() {
                let at = c.number(row as f64, DType::Int64)?;
                let indices = c.g().raw("Gather", &[&found, &at], vec![int("axis", 0)], DType::Int64);
                tensors.push((indices, 1));
                dims.push(dim);
                dim += 1;
            }
        } else {
            tensors.push((c.g().cast(it, DType::Int64)?, it.rank()));
            dims.push(dim);
            dim += 1;
        }
    }
    if tensors.is_empty() {
        return Err(unsupported("an index of no tensor has no translation"));
    }
    let rank = tensors.iter().map(|it| it.1).max().unwrap_or(0);
    let adjacent = dims.windows(2).all(|it| it[1] == it[0] + 1);
    let others = (0..x.rank() as i64).filter(|it| !dims.contains(it));
    let order: Vec<i64> = dims.iter().copied().chain(others).collect();
    let first = if adjacent { dims[0] as usize } else { 0 };
    // Adding zeros of the other shapes broadcasts them to one.
    let g = c.g();
    let mut zeros: Option<X> = None;
    if tensors.len() > 1 {
        let zero = g.number(0.0, DType::Int64)?;
        for (it, _) in &tensors {
            let none = g.math("Mul", &[it, &zero])?;
            zeros = Some(match zeros {
                Some(so_far) => g.math("Add", &[&so_far, &none])?,
                None => none,
            });
        }
    }
    let mut columns = Vec::new();
    for (it, _) in &tensors {
        let it = if let Some(zeros) = &zeros { g.math("Add", &[it, zeros])? } else { it.clone() };
        columns.push(g.unsqueeze(&it, &[rank as i64])?);
    }
    let at = if let [column] = &columns[..] {
        column.clone()
    } else {
        g.concat(&columns.iter().collect::<Vec<_>>(), rank as i64)
    };
    Ok(Places { order, n: dims.len(), first, rank, at })
}

impl Places {
    /// The order that brings the dimensions of a result, those of the index first, to where PyTorch has them.
    fn order_back(&self, rank: usize) -> Vec<i64> {
        let rest = (rank - self.n) as i64;
        let (own, first) = (self.rank as i64, self.first as i64);
        (0..first).map(|it| own + it).chain(0..own).chain((first..rest).map(|it| own + it)).collect()
    }
}

fn is_identity(order: &[i64]) -> bool {
    order.iter().enumerate().all(|(at, &it)| at as i64 == it)
}

fn ordered(c: &mut Call<'_, '_>, x: &X, order: &[i64]) -> X {
    if is_identity(order) { x.clone() } else { c.g().transpose(x, order) }
}

fn index(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let places = read_places(c, &x)?;
    let front = ordered(c, &x, &places.order);
    let taken = c.g().raw("GatherND", &[&front, &places.at], Vec::new(), x.x.dtype);
    let order = places.order_back(x.rank());
    Ok(ordered(c, &taken, &order).into())
}

fn index_put(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, values) = (c.tensor("self")?, c.tensor("values")?);
    let accumulates = c.bool("accumulate")?;
    let places = read_places(c, &x)?;
    let front = ordered(c, &x, &places.order);
    // The values are broadcast to what an index would give, and then ordered as the places are.
    let order = places.order_back(x.rank());
    let values = c.g().cast(&values, x.x.dtype)?;
    let g = c.g();
    let at_shape = g.shape_of(&places.at);
    let (zero, last) = (Dim::Known(0), Dim::Known(-1));
    let own = g.slice(&at_shape, 0, &zero, &last, 1)?;
    let front_shape = g.shape_of(&front);
    let rest = g.slice(&front_shape, 0, &Dim::Known(places.n as i64), &Dim::Known(i64::MAX), 1)?;
    let whole = g.concat(&[&own, &rest], 0);
    let back = g.vector(&order)?;
    let shape = g.raw("Gather", &[&whole, &back], vec![int("axis", 0)], DType::Int64);
    let values = g.expand(&values, &shape)?;
    let values = if is_identity(&order) { values } else { g.transpose(&values, &inverse(&order)) };
    let written = if accumulates {
        g.math_with("ScatterND reduction", &[&front, &places.at, &values], vec![text("reduction", "add")])?
    } else {
        g.raw("ScatterND", &[&front, &places.at, &values], Vec::new(), x.x.dtype)
    };
    let back = inverse(&places.order);
    Ok(ordered(c, &written, &back).into())
}
