//! Activations, softmax, and dropout.

use super::Rows;
use super::unary::expm1;
use crate::call::{Call, Results, unsupported};
use crate::element::wide;
use crate::graph::{float, int, text};
use tracefx_core::{DType, Result};

pub(super) const OPS: Rows = &[
    ("aten._log_softmax.default", |c| softmax(c, "LogSoftmax")),
    ("aten._softmax.default", |c| softmax(c, "Softmax")),
    ("aten.elu.default", elu),
    ("aten.gelu.default", gelu),
    ("aten.hardtanh.default", hardtanh),
    ("aten.leaky_relu.default", leaky_relu),
    ("aten.native_dropout.default", dropout),
];

fn softmax(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let (dtype, rank) = (c.dtype()?, c.tensor("self")?.rank());
    let (x, dim) = (c.operand("self", dtype)?, c.dim("dim", rank)?);
    if rank == 0 {
        let row = c.g().unsqueeze(&x, &[0])?;
        let row = c.g().math_with(op, &[&row], vec![int("axis", 0)])?;
        return Ok(c.g().squeeze(&row, &[0])?.into());
    }
    Ok(c.g().math_with(op, &[&x], vec![int("axis", dim)])?.into())
}

fn gelu(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?.x;
    let approximate = c.str("approximate")?.unwrap_or_else(|| "none".to_string());
    Ok(c.g().math_with("Gelu", &[&x], vec![text("approximate", &approximate)])?.into())
}

fn elu(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = wide(c.dtype()?);
    let x = c.operand("self", dtype)?;
    let (alpha, scale, input_scale) = (c.float("alpha")?, c.float("scale")?, c.float("input_scale")?);
    let (zero, above) = (c.number(0.0, x.dtype)?, c.number(scale, x.dtype)?);
    let (below, inner) = (c.number(alpha * scale, x.dtype)?, c.number(input_scale, x.dtype)?);
    let g = c.g();
    let is_above = g.test("Greater", &[&x, &zero])?;
    let scaled = g.math("Mul", &[&x, &inner])?;
    let exponential = expm1(g, &scaled)?;
    let (yes, no) = (g.math("Mul", &[&x, &above])?, g.math("Mul", &[&exponential, &below])?);
    Ok(g.choose(&is_above, &yes, &no)?.into())
}

fn hardtanh(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?.x;
    let (least, most) = (c.operand("min_val", x.dtype)?, c.operand("max_val", x.dtype)?);
    Ok(c.g().math("Clip", &[&x, &least, &most])?.into())
}

fn leaky_relu(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, slope) = (c.tensor("self")?.x, c.float("negative_slope")?);
    if x.dtype == DType::Float64 {
        // Runtimes have it of float32 alone.
        let (zero, slope) = (c.number(0.0, x.dtype)?, c.number(slope, x.dtype)?);
        let (is_above, scaled) = (c.g().test("Greater", &[&x, &zero])?, c.g().math("Mul", &[&x, &slope])?);
        return Ok(c.g().choose(&is_above, &x, &scaled)?.into());
    }
    Ok(c.g().math_with("LeakyRelu", &[&x], vec![float("alpha", slope)])?.into())
}

/// In evaluation it is its input; in training its numbers are random, and a model of ONNX has others.
fn dropout(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("input")?;
    let (p, trains) = (c.float("p")?, c.bool("train")?);
    if trains && p != 0.0 && p != 1.0 {
        return Err(unsupported("dropout of a training step is random, and has no translation"));
    }
    let shape = c.shape_of(&x)?;
    let keep = c.g().scalar(tracefx_core::Scalar::Bool(!(trains && p == 1.0)), DType::Bool)?;
    let mask = c.g().expand(&keep, &shape)?;
    // A product, so that what is not a number stays so.
    let kept = c.g().cast(&mask, x.x.dtype)?;
    let result = c.g().math("Mul", &[&x, &kept])?;
    Ok(Results(vec![Some(result), Some(mask)]))
}
