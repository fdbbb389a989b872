//! Writing elements by their indices along one dimension.

use super::Rows;
use crate::call::{Call, Results, Tensor, unsupported};
use crate::graph::{GraphBuilder, X, int, text};
use tracefx_core::{DType, Result};

pub(super) const OPS: Rows = &[
    ("aten.scatter.src", |c| scatter(c, None)),
    ("aten.scatter.value", scatter_value),
    ("aten.scatter_add.default", |c| scatter(c, Some("add"))),
    ("aten.scatter_reduce.two", scatter_reduce),
];

/// Tensors of at least one dimension, with the dimension, and the index with it.
struct Target {
    x: X,
    index: X,
    dim: i64,
    was_number: bool,
}

fn target(c: &mut Call<'_, '_>, x: &Tensor) -> Result<Target> {
    let (mut index, n_dims) = (c.operand("index", DType::Int64)?, c.tensor("index")?.rank());
    let dim = c.dim("dim", x.rank())?;
    if n_dims == 0 {
        index = c.g().unsqueeze(&index, &[0])?;
    }
    let row = if x.rank() == 0 { c.g().unsqueeze(x, &[0])? } else { x.x.clone() };
    Ok(Target { x: row, index, dim, was_number: x.rank() == 0 })
}

/// The part of the source that the index asks for: it may be larger.
fn source(c: &mut Call<'_, '_>, into: &Target) -> Result<X> {
    let (source, index) = (c.tensor("src")?, c.tensor("index")?);
    let values = c.g().cast(&source, into.x.dtype)?;
    let values = if source.rank() == 0 { c.g().unsqueeze(&values, &[0])? } else { values };
    if source.sizes == index.sizes {
        return Ok(values);
    }
    let g = c.g();
    let (start, end) = (g.vector(&vec![0; source.rank().max(1)])?, g.shape_of(&into.index));
    Ok(g.raw("Slice", &[&values, &start, &end], Vec::new(), into.x.dtype))
}

fn written(c: &mut Call<'_, '_>, into: &Target, values: &X, reduction: Option<&str>) -> Result<X> {
    let mut attributes = vec![int("axis", into.dim)];
    let operands = [&into.x, &into.index, values];
    let result = match reduction {
        Some(it) => {
            attributes.push(text("reduction", it));
            c.g().math_with("ScatterElements reduction", &operands, attributes)?
        }
        None => c.g().raw("ScatterElements", &operands, attributes, into.x.dtype),
    };
    if into.was_number { c.g().squeeze(&result, &[0]) } else { Ok(result) }
}

fn scatter(c: &mut Call<'_, '_>, reduction: Option<&str>) -> Result<Results> {
    let x = c.tensor("self")?;
    let into = target(c, &x)?;
    let values = source(c, &into)?;
    Ok(written(c, &into, &values, reduction)?.into())
}

fn scatter_value(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let into = target(c, &x)?;
    let value = c.operand("value", x.x.dtype)?;
    let shape = c.g().shape_of(&into.index);
    let values = c.g().expand(&value, &shape)?;
    Ok(written(c, &into, &values, None)?.into())
}

/// NaN where one of the values is NaN, or what was there: runtimes compare with it, which is as good as not to see it.
fn with_nan(c: &mut Call<'_, '_>, into: Target, values: &X, result: &X) -> Result<X> {
    let g = c.g();
    let count = |g: &mut GraphBuilder, x: &X| {
        let is_nan = g.test("IsNaN", &[x])?;
        g.cast(&is_nan, DType::Int32)
    };
    let (before, given) = (count(g, &into.x)?, count(g, values)?);
    let n = written(c, &Target { x: before, ..into }, &given, Some("add"))?;
    let g = c.g();
    let (zero, nan) = (g.number(0.0, DType::Int32)?, g.number(f64::NAN, result.dtype)?);
    let is_nan = g.test("Greater", &[&n, &zero])?;
    g.choose(&is_nan, &nan, result)
}

/// Where what was there does not count, it is the neutral element first, for those that are written to.
fn scatter_reduce(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let includes = c.bool("include_self")?;
    let reduce = c.str("reduce")?.unwrap_or_default();
    let dtype = x.x.dtype;
    let (op, neutral) = match reduce.as_str() {
        "sum" | "mean" => ("add", c.number(0.0, dtype)?),
        "prod" => ("mul", c.number(1.0, dtype)?),
        "amax" => ("max", c.g().scalar(crate::element::lowest(dtype), dtype)?),
        "amin" => ("min", c.g().scalar(crate::element::highest(dtype), dtype)?),
        other => return Err(unsupported(format!("a scatter that reduces by {other} has no translation"))),
    };
    let mut into = target(c, &x)?;
    let values = source(c, &into)?;
    let shape = c.g().shape_of(&into.index);
    if !includes {
        let neutral = c.g().expand(&neutral, &shape)?;
        let attributes = vec![int("axis", into.dim)];
        into.x = c.g().raw("ScatterElements", &[&into.x, &into.index, &neutral], attributes, dtype);
    }
    let result = written(c, &into, &values, Some(op))?;
    if matches!(reduce.as_str(), "amax" | "amin") && dtype.is_float() {
        return Ok(with_nan(c, into, &values, &result)?.into());
    }
    if reduce != "mean" {
        return Ok(result.into());
    }
    // The counts are a scatter, too. What nothing is written to is divided by one.
    let (zero, one) = (c.number(0.0, dtype)?, c.number(1.0, dtype)?);
    let own_shape = c.g().shape_of(&into.x);
    let before = c.g().expand(if includes { &one } else { &zero }, &own_shape)?;
    let ones = c.g().expand(&one, &shape)?;
    let counts = Target { x: before, ..into };
    let n = written(c, &counts, &ones, Some("add"))?;
    let n = c.g().math("Max", &[&n, &one])?;
    Ok(if dtype.is_float() {
        c.g().math("Div", &[&result, &n])?
    } else {
        super::binary::floor_divide(c.g(), &result, &n)?
    }
    .into())
}
