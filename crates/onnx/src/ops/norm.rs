//! Normalization.

use super::Rows;
use super::reduce::count;
use crate::call::{Call, Results, Tensor, check_listed, invalid, positive};
use crate::element::computed_in;
use crate::graph::{Dim, X, float, int};
use tracefx_core::{DType, Result};

pub(super) const OPS: Rows = &[
    ("aten._native_batch_norm_legit.no_stats", |c| trained(c, false)),
    ("aten._native_batch_norm_legit_functional.default", |c| trained(c, true)),
    ("aten._native_batch_norm_legit_no_training.default", evaluated),
    ("aten.native_group_norm.default", group_norm),
    ("aten.native_layer_norm.default", layer_norm),
];

/// A weight for each channel, or a number for all where there is none.
fn weight(c: &mut Call<'_, '_>, name: &str, n: i64, otherwise: f64, dtype: DType) -> Result<X> {
    if let Some(it) = c.opt_tensor(name)? {
        return c.g().cast(&it, dtype);
    }
    check_listed(&[n])?;
    c.g().constant(&tracefx_core::Tensor::full(dtype, &[n as usize], tracefx_core::Scalar::Float(otherwise))?)
}

fn evaluated(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("input")?;
    let (n, eps) = (x.size(1)?, c.float("eps")?);
    let computed = computed_in("BatchNormalization", x.x.dtype);
    let wide = c.g().cast(&x, computed)?;
    let (scale, bias) = (weight(c, "weight", n, 1.0, computed)?, weight(c, "bias", n, 0.0, computed)?);
    let (mean, variance) = (c.operand("running_mean", computed)?, c.operand("running_var", computed)?);
    let inputs = [&wide, &scale, &bias, &mean, &variance];
    let result = c.g().raw("BatchNormalization", &inputs, vec![float("epsilon", eps)], computed);
    let empty = tracefx_core::Tensor::zeros(c.result(1)?.dtype, &[0])?;
    let empty = c.g().constant(&empty)?;
    Ok(Results(vec![Some(c.g().cast(&result, x.x.dtype)?), Some(empty.clone()), Some(empty)]))
}

/// A vector of channels as it is broadcast over batch and space.
fn by_channel(c: &mut Call<'_, '_>, it: &X, rank: usize) -> Result<X> {
    let dims: Vec<Dim> = (0..rank).map(|dim| Dim::Known(if dim == 1 { -1 } else { 1 })).collect();
    c.g().reshape(it, &dims)
}

/// The scaled and moved values, by the weights of channels.
fn affine(c: &mut Call<'_, '_>, x: X, rank: usize, dtype: DType) -> Result<X> {
    let mut x = x;
    for (name, op) in [("weight", "Mul"), ("bias", "Add")] {
        if let Some(it) = c.opt_tensor(name)? {
            let it = c.g().cast(&it, dtype)?;
            let it = by_channel(c, &it, rank)?;
            x = c.g().math(op, &[&x, &it])?;
        }
    }
    Ok(x)
}

/// Mean and variance over dimensions, which stay as ones.
fn moments(c: &mut Call<'_, '_>, x: &X, dims: &[i64]) -> Result<(X, X, X)> {
    let g = c.g();
    let mean = g.reduce("ReduceMean", x, dims, true)?;
    let centred = g.math("Sub", &[x, &mean])?;
    let squares = g.math("Mul", &[&centred, &centred])?;
    let variance = g.reduce("ReduceMean", &squares, dims, true)?;
    Ok((mean, variance, centred))
}

fn inverse_deviation(c: &mut Call<'_, '_>, variance: &X, eps: f64) -> Result<X> {
    let eps = c.number(eps, variance.dtype)?;
    let g = c.g();
    let moved = g.math("Add", &[variance, &eps])?;
    let root = g.math("Sqrt", &[&moved])?;
    g.math("Reciprocal", &[&root])
}

/// By the statistics of the batch; the running ones move towards them.
fn trained(c: &mut Call<'_, '_>, running: bool) -> Result<Results> {
    let x = c.tensor("input")?;
    let (rank, eps, momentum) = (x.rank(), c.float("eps")?, c.float("momentum")?);
    let dtype = if x.x.dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
    let wide = c.g().cast(&x, dtype)?;
    let dims: Vec<i64> = (0..rank as i64).filter(|&it| it != 1).collect();
    let (mean, variance, centred) = moments(c, &wide, &dims)?;
    let inverse = inverse_deviation(c, &variance, eps)?;
    let scaled = c.g().math("Mul", &[&centred, &inverse])?;
    let result = affine(c, scaled, rank, dtype)?;
    let result = c.g().cast(&result, x.x.dtype)?;
    let (save_mean, save_inverse) = (c.g().squeeze(&mean, &dims)?, c.g().squeeze(&inverse, &dims)?);
    let mut results = vec![Some(result), Some(save_mean.clone()), Some(save_inverse)];
    if running {
        let n = count(c, &x, &dims, dtype)?;
        let one = c.number(1.0, dtype)?;
        let flat = c.g().squeeze(&variance, &dims)?;
        let rest = c.g().math("Sub", &[&n, &one])?;
        let ratio = c.g().math("Div", &[&n, &rest])?;
        let unbiased = c.g().math("Mul", &[&flat, &ratio])?;
        for (name, new) in [("running_mean", save_mean), ("running_var", unbiased)] {
            let old = c.operand(name, dtype)?;
            let (keep, take) = (c.number(1.0 - momentum, dtype)?, c.number(momentum, dtype)?);
            let (kept, taken) = (c.g().math("Mul", &[&old, &keep])?, c.g().math("Mul", &[&new, &take])?);
            let moved = c.g().math("Add", &[&kept, &taken])?;
            let as_before = c.tensor(name)?.x.dtype;
            results.push(Some(c.g().cast(&moved, as_before)?));
        }
    }
    Ok(Results(results))
}

fn layer_norm(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("input")?;
    let n = c.ints("normalized_shape")?.len();
    let (axis, eps) = (x.rank() - n, c.float("eps")?);
    let dtype = x.x.dtype;
    let computed = if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
    let wide = c.g().cast(&x, computed)?;
    let scale = match c.opt_tensor("weight")? {
        Some(it) => c.g().cast(&it, computed)?,
        None => {
            let sizes = c.ints("normalized_shape")?;
            check_listed(&sizes)?;
            let sizes: Vec<usize> = sizes.iter().map(|&it| it as usize).collect();
            c.g().constant(&tracefx_core::Tensor::full(computed, &sizes, tracefx_core::Scalar::Float(1.0))?)?
        }
    };
    let bias = c.opt_tensor("bias")?;
    let bias = bias.map(|it| c.g().cast(&it, computed)).transpose()?;
    let attributes = vec![int("axis", axis as i64), float("epsilon", eps)];
    let normed = c.g().node("LayerNormalization", &[Some(&wide), Some(&scale), bias.as_ref()], attributes, &[computed]);
    let mut results = vec![Some(c.g().cast(&normed[0], dtype)?), None, None];
    if c.used[1] || c.used[2] {
        let dims: Vec<i64> = (axis as i64..x.rank() as i64).collect();
        let (mean, variance, _) = moments(c, &wide, &dims)?;
        let inverse = inverse_deviation(c, &variance, eps)?;
        let noted = c.result(1)?.dtype;
        results[1] = Some(c.g().cast(&mean, noted)?);
        results[2] = Some(c.g().cast(&inverse, noted)?);
    }
    Ok(Results(results))
}

/// Each group is a channel of an instance norm.
fn group_norm(c: &mut Call<'_, '_>) -> Result<Results> {
    let x: Tensor = c.tensor("input")?;
    let (groups, eps) = (positive("group", c.int("group")?)?, c.float("eps")?);
    let dtype = x.x.dtype;
    let computed = if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
    let wide = c.g().cast(&x, computed)?;
    let batch = c.size_of(&x, 0);
    let row = match (c.arg("C")?.as_scalar(), c.arg("HxW")?.as_scalar()) {
        (Some(channels), Some(plane)) => (channels.to_i64() / groups)
            .checked_mul(plane.to_i64())
            .ok_or_else(|| invalid("`C * HxW` is no number of elements"))?,
        _ => -1,
    };
    let rows = c.g().reshape(&wide, &[batch, Dim::Known(groups), Dim::Known(row)])?;
    let (mean, variance, centred) = moments(c, &rows, &[2])?;
    let inverse = inverse_deviation(c, &variance, eps)?;
    let scaled = c.g().math("Mul", &[&centred, &inverse])?;
    let shape = c.shape_of(&x)?;
    let scaled = c.g().raw("Reshape", &[&scaled, &shape], vec![int("allowzero", 1)], computed);
    let result = affine(c, scaled, x.rank(), computed)?;
    let result = c.g().cast(&result, dtype)?;
    let noted = c.result(1)?.dtype;
    let (mean, inverse) = (c.g().squeeze(&mean, &[2])?, c.g().squeeze(&inverse, &[2])?);
    Ok(Results(vec![Some(result), Some(c.g().cast(&mean, noted)?), Some(c.g().cast(&inverse, noted)?)]))
}
