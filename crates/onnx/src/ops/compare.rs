//! Comparisons, logic and choices.

use super::Rows;
use crate::call::{Call, Results};
use tracefx_core::{DType, Result};
use tracefx_ops::Value;

pub(super) const OPS: Rows = &[
    ("aten.clamp.default", clamp),
    ("aten.clamp.Tensor", clamp),
    ("aten.clamp_max.default", clamp_max),
    ("aten.clamp_min.default", clamp_min),
    ("aten.eq.Scalar", |c| compare(c, "Equal", false)),
    ("aten.eq.Tensor", |c| compare(c, "Equal", false)),
    ("aten.ge.Scalar", |c| compare(c, "GreaterOrEqual", false)),
    ("aten.ge.Tensor", |c| compare(c, "GreaterOrEqual", false)),
    ("aten.gt.Scalar", |c| compare(c, "Greater", false)),
    ("aten.gt.Tensor", |c| compare(c, "Greater", false)),
    ("aten.le.Scalar", |c| compare(c, "LessOrEqual", false)),
    ("aten.le.Tensor", |c| compare(c, "LessOrEqual", false)),
    ("aten.logical_and.default", |c| logic(c, "And")),
    ("aten.logical_or.default", |c| logic(c, "Or")),
    ("aten.logical_xor.default", |c| logic(c, "Xor")),
    ("aten.lt.Scalar", |c| compare(c, "Less", false)),
    ("aten.lt.Tensor", |c| compare(c, "Less", false)),
    ("aten.ne.Scalar", |c| compare(c, "Equal", true)),
    ("aten.ne.Tensor", |c| compare(c, "Equal", true)),
    ("aten.where.self", choice),
];

/// A comparison in the dtype that PyTorch promotes both to.
fn compare(c: &mut Call<'_, '_>, op: &str, negated: bool) -> Result<Results> {
    let dtype = c.promoted(&["self", "other"])?;
    let (a, b) = (c.operand("self", dtype)?, c.operand("other", dtype)?);
    let holds = c.g().test(op, &[&a, &b])?;
    Ok(if negated { c.g().not(&holds) } else { holds }.into())
}

fn logic(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let (a, b) = (c.operand("self", DType::Bool)?, c.operand("other", DType::Bool)?);
    Ok(c.g().test(op, &[&a, &b])?.into())
}

fn choice(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (a, b) = (c.operand("self", dtype)?, c.operand("other", dtype)?);
    let condition = c.operand("condition", DType::Bool)?;
    Ok(c.g().choose(&condition, &a, &b)?.into())
}

/// The lower bound first, so that the upper one holds where they contradict each other.
fn clamp(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let mut x = c.operand("self", dtype)?;
    for (bound, op) in [("min", "Max"), ("max", "Min")] {
        if !matches!(c.arg(bound)?, Value::None) {
            let bound = c.operand(bound, dtype)?;
            x = c.g().math(op, &[&x, &bound])?;
        }
    }
    Ok(x.into())
}

fn clamp_min(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (x, bound) = (c.operand("self", dtype)?, c.operand("min", dtype)?);
    Ok(c.g().math("Max", &[&x, &bound])?.into())
}

fn clamp_max(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (x, bound) = (c.operand("self", dtype)?, c.operand("max", dtype)?);
    Ok(c.g().math("Min", &[&x, &bound])?.into())
}
