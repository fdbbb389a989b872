//! Reductions.

use super::Rows;
use crate::call::{Call, Results, Tensor};
use crate::element::wide;
use crate::graph::{Dim, X, int};
use tracefx_core::{DType, Result};

pub(super) const OPS: Rows = &[
    ("aten.all.default", |c| truth(c, "ReduceMin")),
    ("aten.all.dim", |c| truth(c, "ReduceMin")),
    ("aten.amax.default", |c| extremum(c, "ReduceMax")),
    ("aten.amin.default", |c| extremum(c, "ReduceMin")),
    ("aten.any.default", |c| truth(c, "ReduceMax")),
    ("aten.any.dim", |c| truth(c, "ReduceMax")),
    ("aten.any.dims", |c| truth(c, "ReduceMax")),
    ("aten.argmax.default", |c| position(c, "ArgMax")),
    ("aten.argmin.default", |c| position(c, "ArgMin")),
    ("aten.linalg_vector_norm.default", vector_norm),
    ("aten.max.default", |c| extremum(c, "ReduceMax")),
    ("aten.max.dim", |c| extremum_and_position(c, "ReduceMax", "ArgMax")),
    ("aten.mean.default", mean),
    ("aten.mean.dim", mean),
    ("aten.min.default", |c| extremum(c, "ReduceMin")),
    ("aten.min.dim", |c| extremum_and_position(c, "ReduceMin", "ArgMin")),
    ("aten.prod.default", product),
    ("aten.prod.dim_int", product),
    ("aten.sum.default", |c| reduced(c, "ReduceSum")),
    ("aten.sum.dim_IntList", |c| reduced(c, "ReduceSum")),
    ("aten.var.correction", |c| Ok(Results(variance(c, false)?))),
    ("aten.var_mean.correction", |c| Ok(Results(variance(c, true)?))),
];

/// The dimensions that a reduction is over, and whether they stay. Overloads without an argument for them take all.
fn over(c: &Call<'_, '_>, x: &Tensor) -> Result<(Vec<i64>, bool)> {
    let has = |name: &str| c.schema.is_some_and(|it| it.args.iter().any(|it| it.name == name));
    let dims = if has("dim") { c.reduced("dim", x.rank())? } else { (0..x.rank() as i64).collect() };
    Ok((dims, has("keepdim") && c.bool("keepdim")?))
}

fn reduced(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let (dtype, tensor) = (c.dtype()?, c.tensor("self")?);
    let x = c.operand("self", dtype)?;
    let (dims, keepdim) = over(c, &tensor)?;
    Ok(c.g().reduce(op, &x, &dims, keepdim)?.into())
}

fn mean(c: &mut Call<'_, '_>) -> Result<Results> {
    let (dtype, tensor) = (c.dtype()?, c.tensor("self")?);
    let x = c.operand("self", dtype)?;
    let (dims, keepdim) = over(c, &tensor)?;
    Ok(mean_over(c, &tensor, &x, &dims, keepdim)?.into())
}

/// The mean. Of no elements it is NaN, and zero to runtimes.
fn mean_over(c: &mut Call<'_, '_>, tensor: &Tensor, x: &X, dims: &[i64], keepdim: bool) -> Result<X> {
    if dims.iter().any(|&it| tensor.sizes[it as usize] == 0) {
        let (sum, zero) = (c.g().reduce("ReduceSum", x, dims, keepdim)?, c.number(0.0, x.dtype)?);
        return c.g().math("Div", &[&sum, &zero]);
    }
    c.g().reduce("ReduceMean", x, dims, keepdim)
}

/// Integers wrap around in PyTorch, and are made of floats by runtimes: halves are multiplied until one is left.
fn product(c: &mut Call<'_, '_>) -> Result<Results> {
    let (dtype, tensor) = (c.dtype()?, c.tensor("self")?);
    let (dims, keepdim) = over(c, &tensor)?;
    let sizes: Option<Vec<i64>> = dims.iter().map(|&it| tensor.sizes[it as usize].as_int()).collect();
    let Some(sizes) = sizes.filter(|it| !dtype.is_float() && !it.contains(&0)) else {
        return reduced(c, "ReduceProd");
    };
    let mut x = c.operand("self", dtype)?;
    let g = c.g();
    for (&dim, mut n) in dims.iter().zip(sizes) {
        while n > 1 {
            let half = n / 2;
            let first = g.slice(&x, dim, &Dim::Known(0), &Dim::Known(half), 1)?;
            let second = g.slice(&x, dim, &Dim::Known(half), &Dim::Known(2 * half), 1)?;
            let mut product = g.math("Mul", &[&first, &second])?;
            if n % 2 == 1 {
                let last = g.slice(&x, dim, &Dim::Known(n - 1), &Dim::Known(n), 1)?;
                product = g.concat(&[&product, &last], dim);
            }
            (x, n) = (product, half + n % 2);
        }
    }
    Ok(if keepdim { x } else { g.squeeze(&x, &dims)? }.into())
}

/// The most or the least. NaN is more than both in PyTorch; a runtime may skip it.
pub(super) fn extremum_over(c: &mut Call<'_, '_>, op: &str, x: &X, dims: &[i64], keepdim: bool) -> Result<X> {
    let result = c.g().reduce(op, x, dims, keepdim)?;
    if !x.dtype.is_float() || dims.is_empty() {
        return Ok(result);
    }
    let is_nan = c.g().test("IsNaN", &[x])?;
    let any = c.g().reduce("ReduceMax", &is_nan, dims, keepdim)?;
    let nan = c.number(f64::NAN, x.dtype)?;
    c.g().choose(&any, &nan, &result)
}

fn extremum(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let x = c.tensor("self")?;
    let (dims, keepdim) = over(c, &x)?;
    Ok(extremum_over(c, op, &x, &dims, keepdim)?.into())
}

fn truth(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let (dtype, tensor) = (c.dtype()?, c.tensor("self")?);
    let x = c.operand("self", DType::Bool)?;
    let (dims, keepdim) = over(c, &tensor)?;
    // The kernels of truth values are younger than those of bytes.
    let bytes = c.g().cast(&x, DType::UInt8)?;
    let result = c.g().reduce(op, &bytes, &dims, keepdim)?;
    Ok(c.g().cast(&result, dtype)?.into())
}

/// The first index of the most or the least along a dimension.
fn place(c: &mut Call<'_, '_>, op: &str, x: &X, dim: i64, keepdim: bool) -> Result<X> {
    let attributes = |keepdim: bool| vec![int("axis", dim), int("keepdims", keepdim.into())];
    let found = c.g().query(op, &[x], attributes(keepdim), DType::Int64)?;
    if !x.dtype.is_float() {
        return Ok(found);
    }
    // The first NaN comes before all numbers.
    let is_nan = c.g().test("IsNaN", &[x])?;
    let marks = c.g().cast(&is_nan, DType::Int32)?;
    let first = c.g().query("ArgMax", &[&marks], attributes(keepdim), DType::Int64)?;
    let any = c.g().reduce("ReduceMax", &is_nan, &[dim], keepdim)?;
    c.g().choose(&any, &first, &found)
}

fn position(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let x = c.tensor("self")?;
    let keepdim = c.bool("keepdim")?;
    if let Some(dim) = c.opt_int("dim")?
        && x.rank() > 0
    {
        let dim = crate::call::wrap(dim, x.rank())?;
        return Ok(place(c, op, &x, dim, keepdim)?.into());
    }
    let flat = c.g().reshape(&x, &[Dim::Known(-1)])?;
    let found = place(c, op, &flat, 0, false)?;
    let ones = vec![Dim::Known(1); if keepdim { x.rank() } else { 0 }];
    Ok(c.g().reshape(&found, &ones)?.into())
}

fn extremum_and_position(c: &mut Call<'_, '_>, reduce: &str, find: &str) -> Result<Results> {
    let x = c.tensor("self")?;
    if x.rank() == 0 {
        let zero = c.number(0.0, DType::Int64)?;
        return Ok(Results(vec![Some(x.x), Some(zero)]));
    }
    let (dim, keepdim) = (c.dim("dim", x.rank())?, c.bool("keepdim")?);
    let most = extremum_over(c, reduce, &x, &[dim], keepdim)?;
    let at = if c.used[1] { Some(place(c, find, &x, dim, keepdim)?) } else { None };
    Ok(Results(vec![Some(most), at]))
}

/// How many elements these dimensions have.
pub(super) fn count(c: &mut Call<'_, '_>, x: &Tensor, dims: &[i64], dtype: DType) -> Result<X> {
    let known: Option<i64> = dims.iter().map(|&it| x.sizes[it as usize].as_int()).product();
    if let Some(n) = known {
        return c.number(n as f64, dtype);
    }
    let sizes: Vec<Dim> = dims.iter().map(|&it| c.size_of(x, it as usize)).collect();
    let sizes = c.g().dims(&sizes)?;
    let n = c.g().reduce("ReduceProd", &sizes, &[0], false)?;
    c.g().cast(&n, dtype)
}

/// Variance and mean, the mean where it is asked for.
fn variance(c: &mut Call<'_, '_>, with_mean: bool) -> Result<Vec<Option<X>>> {
    let x = c.tensor("self")?;
    let (dims, keepdim) = over(c, &x)?;
    let correction = c.opt_float("correction")?.unwrap_or(1.0);
    let dtype = wide(x.x.dtype);
    let x = Tensor { x: c.g().cast(&x, dtype)?, ..x };
    let n = count(c, &x, &dims, dtype)?;
    let (correction, zero) = (c.number(correction, dtype)?, c.number(0.0, dtype)?);
    let mean = mean_over(c, &x, &x, &dims, true)?;
    let g = c.g();
    let centred = g.math("Sub", &[&x, &mean])?;
    let squares = g.math("Mul", &[&centred, &centred])?;
    let sum = g.reduce("ReduceSum", &squares, &dims, keepdim)?;
    let n = g.math("Sub", &[&n, &correction])?;
    let n = g.math("Max", &[&n, &zero])?;
    let variance = g.math("Div", &[&sum, &n])?;
    let mean = if keepdim { mean } else { g.squeeze(&mean, &dims)? };
    Ok(if with_mean { vec![Some(variance), Some(mean)] } else { vec![Some(variance)] })
}

fn vector_norm(c: &mut Call<'_, '_>) -> Result<Results> {
    let (dtype, tensor) = (wide(c.dtype()?), c.tensor("self")?);
    let x = c.operand("self", dtype)?;
    let (dims, keepdim) = over(c, &tensor)?;
    let order = c.float("ord")?;
    Ok(norm(c, &x, order, &dims, keepdim)?.into())
}

/// The norm of this order over dimensions.
pub(super) fn norm(c: &mut Call<'_, '_>, x: &X, order: f64, dims: &[i64], keepdim: bool) -> Result<X> {
    if dims.is_empty() {
        return c.g().math("Abs", &[x]);
    }
    if order == 2.0 {
        return c.g().reduce("ReduceL2", x, dims, keepdim);
    }
    if order == 1.0 {
        return c.g().reduce("ReduceL1", x, dims, keepdim);
    }
    if order == 0.0 {
        let zero = c.number(0.0, x.dtype)?;
        let is_zero = c.g().test("Equal", &[x, &zero])?;
        let counted = c.g().not(&is_zero);
        let counted = c.g().cast(&counted, x.dtype)?;
        return c.g().reduce("ReduceSum", &counted, dims, keepdim);
    }
    let sizes = c.g().math("Abs", &[x])?;
    if order.is_infinite() {
        return extremum_over(c, if order > 0.0 { "ReduceMax" } else { "ReduceMin" }, &sizes, dims, keepdim);
    }
    let (power, root) = (c.number(order, x.dtype)?, c.number(1.0 / order, x.dtype)?);
    let g = c.g();
    let powers = g.math("Pow", &[&sizes, &power])?;
    let sum = g.reduce("ReduceSum", &powers, dims, keepdim)?;
    g.math("Pow", &[&sum, &root])
}
