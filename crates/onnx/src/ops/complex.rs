//! Complex numbers, which runtimes have no tensors of: real and imaginary part are a last dimension of two.

use super::Rows;
use super::binary::atan2;
use super::index::together;
use crate::call::{Call, Results, Tensor, check_listed, unsupported, wrap};
use crate::graph::{Dim, GraphBuilder, X, int};
use tracefx_core::{DType, Result};
use tracefx_ops::{Value, real_of};

/// The translations of calls that take or give complex numbers.
pub(super) const OPS: Rows = &[
    ("aten._conj.default", conj),
    ("aten._fft_c2c.default", c2c),
    ("aten._fft_c2r.default", c2r),
    ("aten._fft_r2c.default", r2c),
    ("aten._to_copy.default", to_copy),
    ("aten.abs.default", abs),
    ("aten.add.Tensor", |c| sum(c, "Add")),
    ("aten.alias.default", same),
    ("aten.angle.default", angle),
    ("aten.clone.default", same),
    ("aten.complex.default", complex),
    ("aten.index_select.default", index_select),
    ("aten.mul.Tensor", product),
    ("aten.polar.default", polar),
    ("aten.sub.Tensor", |c| sum(c, "Sub")),
    ("aten.view_as_complex.default", same),
    ("aten.view_as_real.default", view_as_real),
];

/// A complex value of the graph: a real tensor with the parts in its last dimension.
fn of(x: &X, dtype: DType) -> X {
    X { name: x.name.clone(), dtype }
}

/// The parts of a complex value as a real tensor.
fn parts(x: &X) -> X {
    of(x, real_of(x.dtype))
}

fn part(g: &mut GraphBuilder, x: &X, at: i64) -> Result<X> {
    let at = g.number(at as f64, DType::Int64)?;
    Ok(g.raw("Gather", &[&parts(x), &at], vec![int("axis", -1)], real_of(x.dtype)))
}

fn joined(g: &mut GraphBuilder, re: &X, im: &X, dtype: DType) -> Result<X> {
    let (re, im) = (g.unsqueeze(re, &[-1])?, g.unsqueeze(im, &[-1])?);
    Ok(of(&g.concat(&[&re, &im], -1), dtype))
}

/// The parts of an operand, whatever number it is.
fn operand(c: &mut Call<'_, '_>, name: &str, dtype: DType) -> Result<(X, X)> {
    let real = real_of(dtype);
    match c.arg(name)? {
        Value::Tensor(it) if it.x.dtype.is_complex() => {
            let (re, im) = (part(c.g(), &it.x, 0)?, part(c.g(), &it.x, 1)?);
            Ok((c.g().cast(&re, real)?, c.g().cast(&im, real)?))
        }
        Value::Complex(it) => Ok((c.number(it.re, real)?, c.number(it.im, real)?)),
        _ => {
            let re = c.operand(name, real)?;
            let (zero, shape) = (c.number(0.0, real)?, c.g().shape_of(&re));
            let im = c.g().expand(&zero, &shape)?;
            Ok((re, im))
        }
    }
}

fn same(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, dtype) = (c.tensor("self")?.x, c.dtype()?);
    Ok(of(&x, dtype).into())
}

fn view_as_real(c: &mut Call<'_, '_>) -> Result<Results> {
    Ok(parts(&c.tensor("self")?.x).into())
}

fn to_copy(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    if !dtype.is_complex() {
        return Err(unsupported("a cast that drops imaginary parts has no translation"));
    }
    let (re, im) = operand(c, "self", dtype)?;
    Ok(joined(c.g(), &re, &im, dtype)?.into())
}

fn complex(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (re, im) = (c.tensor("real")?, c.tensor("imag")?);
    let (re, im) = together(c, &re, &im)?;
    Ok(joined(c.g(), &re, &im, dtype)?.into())
}

fn polar(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (length, angle) = (c.tensor("abs")?.x, c.tensor("angle")?.x);
    let g = c.g();
    let (cosine, sine) = (g.math("Cos", &[&angle])?, g.math("Sin", &[&angle])?);
    let (re, im) = (g.math("Mul", &[&length, &cosine])?, g.math("Mul", &[&length, &sine])?);
    Ok(joined(g, &re, &im, dtype)?.into())
}

fn conj(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (re, im) = operand(c, "self", dtype)?;
    let im = c.g().math("Neg", &[&im])?;
    Ok(joined(c.g(), &re, &im, dtype)?.into())
}

fn abs(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = parts(&c.tensor("self")?.x);
    Ok(c.g().reduce("ReduceL2", &x, &[-1], false)?.into())
}

fn angle(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.tensor("self")?.x.dtype;
    let (re, im) = operand(c, "self", dtype)?;
    Ok(atan2(c.g(), &im, &re)?.into())
}

fn sum(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let dtype = c.dtype()?;
    if c.arg("alpha")?.as_scalar().is_none_or(|it| it.to_f64() != 1.0) {
        return Err(unsupported("a scaled sum of complex numbers has no translation"));
    }
    let (a, b) = (operand(c, "self", dtype)?, operand(c, "other", dtype)?);
    let (re, im) = (c.g().math(op, &[&a.0, &b.0])?, c.g().math(op, &[&a.1, &b.1])?);
    Ok(joined(c.g(), &re, &im, dtype)?.into())
}

fn product(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (a, b) = (operand(c, "self", dtype)?, operand(c, "other", dtype)?);
    let g = c.g();
    let (first, second) = (g.math("Mul", &[&a.0, &b.0])?, g.math("Mul", &[&a.1, &b.1])?);
    let re = g.math("Sub", &[&first, &second])?;
    let (first, second) = (g.math("Mul", &[&a.0, &b.1])?, g.math("Mul", &[&a.1, &b.0])?);
    let im = g.math("Add", &[&first, &second])?;
    Ok(joined(g, &re, &im, dtype)?.into())
}

fn index_select(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let (dim, at) = (c.dim("dim", x.rank())?, c.operand("index", DType::Int64)?);
    let taken = c.g().raw("Gather", &[&parts(&x), &at], vec![int("axis", dim)], real_of(x.x.dtype));
    Ok(of(&taken, x.x.dtype).into())
}

/// One transform of a dimension. ONNX scales the inverse by the length, and PyTorch by what is asked for.
fn transform(g: &mut GraphBuilder, x: &X, dim: i64, inverse: bool, onesided: bool) -> Result<X> {
    let axis = g.number(dim as f64, DType::Int64)?;
    let attributes = vec![int("inverse", inverse.into()), int("onesided", onesided.into())];
    Ok(g.node("DFT", &[Some(x), None, Some(&axis)], attributes, &[x.dtype]).remove(0))
}

/// The factor of a normalization: 0 is none, 1 by the root of the length, 2 by the length. An inverse of ONNX is divided by it.
fn scaled(c: &mut Call<'_, '_>, x: &X, like: &Tensor, dims: &[i64], inverse: bool, last: Option<i64>) -> Result<X> {
    let mode = c.int("normalization")?;
    let mut n = 1.0;
    for (at, &dim) in dims.iter().enumerate() {
        let size = if at + 1 == dims.len() { last } else { None };
        n *= match size {
            Some(it) => it as f64,
            None => like.size(dim as usize)? as f64,
        };
    }
    let wanted = match mode {
        0 => 1.0,
        1 => 1.0 / n.sqrt(),
        _ => 1.0 / n,
    };
    let factor = if inverse { wanted * n } else { wanted };
    if factor == 1.0 {
        return Ok(x.clone());
    }
    let factor = c.number(factor, x.dtype)?;
    c.g().math("Mul", &[x, &factor])
}

fn dims(c: &Call<'_, '_>, rank: usize) -> Result<Vec<i64>> {
    c.ints("dim")?.into_iter().map(|it| wrap(it, rank)).collect()
}

fn c2c(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, dtype, inverse) = (c.tensor("self")?, c.dtype()?, !c.bool("forward")?);
    let dims = dims(c, x.rank())?;
    let mut value = parts(&x);
    for &dim in &dims {
        value = transform(c.g(), &value, dim, inverse, false)?;
    }
    Ok(of(&scaled(c, &value, &x, &dims, inverse, None)?, dtype).into())
}

/// The last dimension is real; the others are transforms of complex numbers.
fn r2c(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, dtype, onesided) = (c.tensor("self")?, c.dtype()?, c.bool("onesided")?);
    let dims = dims(c, x.rank())?;
    let mut value = c.g().unsqueeze(&x, &[-1])?;
    for (at, &dim) in dims.iter().rev().enumerate() {
        value = transform(c.g(), &value, dim, false, onesided && at == 0)?;
        if at == 0 {
            value = real_ends(c, &value, &x, dim, onesided)?;
        }
    }
    Ok(of(&scaled(c, &value, &x, &dims, false, None)?, dtype).into())
}

/// Of real numbers the first result is real, and so is the middle one of an even number: not nearly, as runtimes have it.
fn real_ends(c: &mut Call<'_, '_>, value: &X, x: &Tensor, dim: i64, onesided: bool) -> Result<X> {
    let n = x.size(dim as usize)?;
    check_listed(&[n])?;
    let length = if onesided { n / 2 + 1 } else { n };
    let is_real = |at: i64| at == 0 || 2 * at == n;
    let kept: Vec<f64> = (0..length).flat_map(|at| [1.0, if is_real(at) { 0.0 } else { 1.0 }]).collect();
    let mut sizes = vec![1; x.rank() + 1];
    (sizes[dim as usize], sizes[x.rank()]) = (length as usize, 2);
    let kept = c.g().constant(&tracefx_core::Tensor::from_slice(&kept, &sizes)?)?;
    let (kept, zero) = (c.g().cast(&kept, DType::Bool)?, c.number(0.0, value.dtype)?);
    c.g().choose(&kept, value, &zero)
}

/// The second half of the last dimension is the conjugate of the first, backwards.
fn c2r(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, n) = (c.tensor("self")?, c.int("last_dim_size")?);
    let dims = dims(c, x.rank())?;
    let Some((&last, others)) = dims.split_last() else { return Err(unsupported("a transform of no dimension")) };
    let mut value = parts(&x);
    for &dim in others {
        value = transform(c.g(), &value, dim, true, false)?;
    }
    check_listed(&[n])?;
    let half = n / 2 + 1;
    let mirrored: Vec<i64> = (half..n).map(|it| n - it).collect();
    let at = c.g().vector(&mirrored)?;
    let g = c.g();
    let front = g.slice(&value, last, &Dim::Known(0), &Dim::Known(half), 1)?;
    let back = g.raw("Gather", &[&value, &at], vec![int("axis", last)], value.dtype);
    let sign = g.constant(&tracefx_core::Tensor::from_slice(&[1.0f64, -1.0], &[2])?)?;
    let sign = g.cast(&sign, value.dtype)?;
    let back = g.math("Mul", &[&back, &sign])?;
    let whole = g.concat(&[&front, &back], last);
    let inverse = transform(g, &whole, last, true, false)?;
    let zero = g.number(0.0, DType::Int64)?;
    let real = g.raw("Gather", &[&inverse, &zero], vec![int("axis", -1)], value.dtype);
    Ok(scaled(c, &real, &x, &dims, true, Some(n))?.into())
}
