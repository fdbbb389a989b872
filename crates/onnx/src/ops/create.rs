//! Tensors of nothing but their sizes: ranges, constants, random numbers.

use super::Rows;
use crate::call::{Call, Results, Tensor, check_listed, dynamic};
use crate::graph::{Dim, X, float, int};
use tracefx_core::{DType, Result, Scalar};
use tracefx_ops::Value;

pub(super) const OPS: Rows = &[
    ("aten.arange.start_step", arange),
    ("aten.bernoulli.Tensor", bernoulli),
    ("aten.bernoulli.p", bernoulli),
    ("aten.empty.memory_format", |c| filled(c, "size", None)),
    ("aten.empty_permuted.default", |c| filled(c, "size", None)),
    ("aten.empty_strided.default", |c| filled(c, "size", None)),
    ("aten.full.default", |c| filled(c, "size", Some("fill_value"))),
    ("aten.full_like.default", full_like),
    ("aten.rand.default", |c| random(c, true)),
    ("aten.rand_like.default", |c| random(c, false)),
    ("aten.randint.low", randint),
    ("aten.randn.default", |c| normal(c, true)),
    ("aten.randn_like.default", |c| normal(c, false)),
    ("aten.randperm.default", randperm),
    ("aten.scalar_tensor.default", scalar_tensor),
    ("aten.tril_indices.default", |c| triangle(c, |row, column, offset| column - row <= offset)),
    ("aten.triu_indices.default", |c| triangle(c, |row, column, offset| column - row >= offset)),
];

fn is_floating(value: &Value<Tensor>) -> bool {
    matches!(value, Value::Float(_)) || matches!(value, Value::Tensor(it) if it.x.dtype.is_float())
}

fn arange(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let values = [c.arg("start")?, c.arg("end")?, c.arg("step")?];
    let numbers: Option<Vec<Scalar>> = values.iter().map(Value::as_scalar).collect();
    let floating = dtype.is_float() || values.iter().any(is_floating);
    // ONNX sums the steps up, and PyTorch multiplies them: what is known is a constant.
    if let Some(numbers) = numbers {
        let count = c.result(0)?.sizes[0].as_int().ok_or_else(|| dynamic("the length"))?;
        check_listed(&[count])?;
        let at = |it: i64| match (numbers[0], numbers[2]) {
            (start, step) if floating => Scalar::Float(start.to_f64() + it as f64 * step.to_f64()),
            (start, step) => Scalar::Int(start.to_i64().wrapping_add(it.wrapping_mul(step.to_i64()))),
        };
        let as_ints: Vec<i64> = (0..count).map(|it| at(it).to_i64()).collect();
        let as_floats: Vec<f64> = (0..count).map(|it| at(it).to_f64()).collect();
        let n = [count as usize];
        let x = if dtype == DType::Float32 {
            let single: Vec<f32> = as_floats.iter().map(|&it| it as f32).collect();
            c.g().constant(&tracefx_core::Tensor::from_slice(&single, &n)?)?
        } else if dtype.is_float() {
            c.g().constant(&tracefx_core::Tensor::from_slice(&as_floats, &n)?)?
        } else {
            c.g().constant(&tracefx_core::Tensor::from_slice(&as_ints, &n)?)?
        };
        return Ok(c.g().cast(&x, dtype)?.into());
    }
    let kind = if values.iter().any(is_floating) { DType::Float64 } else { DType::Int64 };
    let (start, end, step) = (c.operand("start", kind)?, c.operand("end", kind)?, c.operand("step", kind)?);
    let g = c.g();
    let range = g.raw("Range", &[&start, &end, &step], Vec::new(), kind);
    Ok(g.cast(&range, dtype)?.into())
}

/// A tensor of one number. What PyTorch leaves unwritten is zero.
fn filled(c: &mut Call<'_, '_>, size: &str, value: Option<&str>) -> Result<Results> {
    let dtype = c.dtype()?;
    let dims = c.dims(size)?;
    let value = match value {
        Some(name) => c.operand(name, dtype)?,
        None => c.number(0.0, dtype)?,
    };
    let shape = c.g().dims(&dims)?;
    Ok(if dims.is_empty() { value } else { c.g().expand(&value, &shape)? }.into())
}

fn full_like(c: &mut Call<'_, '_>) -> Result<Results> {
    let (dtype, like) = (c.dtype()?, c.tensor("self")?);
    let value = c.operand("fill_value", dtype)?;
    let shape = c.shape_of(&like)?;
    Ok(c.g().expand(&value, &shape)?.into())
}

fn scalar_tensor(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    Ok(c.operand("s", dtype)?.into())
}

fn triangle(c: &mut Call<'_, '_>, holds: fn(i64, i64, i64) -> bool) -> Result<Results> {
    let (rows, columns, offset, dtype) = (c.int("row")?, c.int("col")?, c.int("offset")?, c.dtype()?);
    check_listed(&[rows, columns])?;
    let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let at: Vec<(i64, i64)> = all.filter(|&(row, column)| holds(row, column, offset)).collect();
    let flat: Vec<i64> = at.iter().map(|it| it.0).chain(at.iter().map(|it| it.1)).collect();
    let x = c.g().constant(&tracefx_core::Tensor::from_slice(&flat, &[2, at.len()])?)?;
    Ok(c.g().cast(&x, dtype)?.into())
}

/// Numbers between 0 and 1, as many as a tensor of this shape has.
fn uniform(c: &mut Call<'_, '_>, shape: &X, dtype: DType) -> Result<X> {
    let zero = c.number(0.0, DType::Float32)?;
    let like = c.g().expand(&zero, shape)?;
    let attributes = vec![float("low", 0.0), float("high", 1.0)];
    let x = c.g().raw("RandomUniformLike", &[&like], attributes, DType::Float32);
    c.g().cast(&x, dtype)
}

fn shape(c: &mut Call<'_, '_>, by_size: bool) -> Result<X> {
    if by_size {
        let dims = c.dims("size")?;
        return c.g().dims(&dims);
    }
    let like = c.tensor("self")?;
    c.shape_of(&like)
}

fn random(c: &mut Call<'_, '_>, by_size: bool) -> Result<Results> {
    let (dtype, shape) = (c.dtype()?, shape(c, by_size)?);
    Ok(uniform(c, &shape, dtype)?.into())
}

fn normal(c: &mut Call<'_, '_>, by_size: bool) -> Result<Results> {
    let (dtype, shape) = (c.dtype()?, shape(c, by_size)?);
    let zero = c.number(0.0, DType::Float32)?;
    let like = c.g().expand(&zero, &shape)?;
    let x = c.g().raw("RandomNormalLike", &[&like], Vec::new(), DType::Float32);
    Ok(c.g().cast(&x, dtype)?.into())
}

fn bernoulli(c: &mut Call<'_, '_>) -> Result<Results> {
    let (dtype, like, p) = (c.dtype()?, c.tensor("self")?, c.operand("p", DType::Float32)?);
    let shape = c.shape_of(&like)?;
    let drawn = uniform(c, &shape, DType::Float32)?;
    let is_one = c.g().test("Less", &[&drawn, &p])?;
    Ok(c.g().cast(&is_one, dtype)?.into())
}

fn randint(c: &mut Call<'_, '_>) -> Result<Results> {
    let (dtype, shape) = (c.dtype()?, shape(c, true)?);
    // In float32 a sum may be rounded to the upper bound, which is none of the numbers.
    let (low, high) = (c.operand("low", DType::Float64)?, c.operand("high", DType::Float64)?);
    let drawn = uniform(c, &shape, DType::Float64)?;
    let g = c.g();
    let width = g.math("Sub", &[&high, &low])?;
    let scaled = g.math("Mul", &[&drawn, &width])?;
    let moved = g.math("Add", &[&scaled, &low])?;
    let floor = g.math("Floor", &[&moved])?;
    Ok(g.cast(&floor, dtype)?.into())
}

/// The order of random numbers.
fn randperm(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let n = c.dim_arg("n")?.unwrap_or(Dim::Known(0));
    let n = c.g().dims(&[n])?;
    let drawn = uniform(c, &n, DType::Float32)?;
    let sorted = c.g().node("TopK", &[Some(&drawn), Some(&n)], vec![int("axis", 0)], &[DType::Float32, DType::Int64]);
    Ok(c.g().cast(&sorted[1], dtype)?.into())
}
