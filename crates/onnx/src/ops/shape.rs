//! Views that keep the elements in their order, and copies.

use super::Rows;
use crate::call::{Call, Results, unsupported, wrap};
use crate::graph::Dim;
use tracefx_core::{DType, Result};
use tracefx_ops::Value;

pub(super) const OPS: Rows = &[
    ("aten._to_copy.default", to_copy),
    ("aten.alias.default", same),
    ("aten.clone.default", same),
    ("aten.copy.default", copy),
    ("aten.detach.default", same),
    ("aten.expand.default", expand),
    ("aten.lift_fresh_copy.default", same),
    ("aten.repeat.default", repeat),
    ("aten.squeeze.dim", |c| squeeze(c, "dim")),
    ("aten.squeeze.dims", |c| squeeze(c, "dim")),
    ("aten.unsqueeze.default", unsqueeze),
    ("aten.view.default", view),
    ("aten._unsafe_view.default", view),
    ("aten.reshape.default", reshape),
    ("aten.view.dtype", view_dtype),
];

fn same(c: &mut Call<'_, '_>) -> Result<Results> {
    let name = if c.schema.is_some_and(|it| it.args[0].name == "input") { "input" } else { "self" };
    Ok(c.tensor(name)?.x.into())
}

fn to_copy(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    Ok(c.operand("self", dtype)?.into())
}

fn copy(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let source = c.operand("src", x.x.dtype)?;
    let has_sizes = matches!(c.arg("src")?, Value::Tensor(it) if it.sizes == x.sizes);
    if has_sizes {
        return Ok(source.into());
    }
    let shape = c.shape_of(&x)?;
    Ok(c.g().expand(&source, &shape)?.into())
}

/// The sizes that a view asks for; what is known of the result is a number.
fn view(c: &mut Call<'_, '_>) -> Result<Results> {
    reshaped(c, "size")
}

fn reshape(c: &mut Call<'_, '_>) -> Result<Results> {
    reshaped(c, "shape")
}

fn reshaped(c: &mut Call<'_, '_>, name: &str) -> Result<Results> {
    let x = c.tensor("self")?;
    let mut dims = c.dims(name)?;
    for (dim, known) in dims.iter_mut().zip(c.result(0)?.sizes) {
        if let Some(it) = known.as_int() {
            *dim = Dim::Known(it);
        }
    }
    Ok(c.g().reshape(&x, &dims)?.into())
}

fn expand(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    // A size of one leaves the input's as it is in ONNX, which is what -1 asks for.
    let dims: Vec<Dim> =
        c.dims("size")?.into_iter().map(|it| if matches!(it, Dim::Known(-1)) { Dim::Known(1) } else { it }).collect();
    if c.result(0)?.sizes == x.sizes {
        return Ok(x.x.into());
    }
    let shape = c.g().dims(&dims)?;
    Ok(c.g().expand(&x, &shape)?.into())
}

fn repeat(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let repeats = c.dims("repeats")?;
    let missing: Vec<i64> = (0..(repeats.len() - x.rank()) as i64).collect();
    let padded = if missing.is_empty() { x.x.clone() } else { c.g().unsqueeze(&x, &missing)? };
    let repeats = c.g().dims(&repeats)?;
    Ok(c.g().math("Tile", &[&padded, &repeats])?.into())
}

fn unsqueeze(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let dim = c.dim("dim", x.rank() + 1)?;
    Ok(c.g().unsqueeze(&x, &[dim])?.into())
}

/// Drops those dimensions whose size is one; others stay.
fn squeeze(c: &mut Call<'_, '_>, name: &str) -> Result<Results> {
    let x = c.tensor("self")?;
    if x.rank() == 0 {
        return Ok(x.x.into());
    }
    let mut dims = Vec::new();
    for dim in c.ints(name)? {
        let dim = wrap(dim, x.rank())?;
        if x.sizes[dim as usize] == 1 && !dims.contains(&dim) {
            dims.push(dim);
        }
    }
    Ok(c.g().squeeze(&x, &dims)?.into())
}

/// The bits of one dtype as another's: ONNX has none of that but for what two dtypes agree in.
fn view_dtype(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?.x;
    let dtype = c.dtype()?;
    let same_bits = |a: DType, b: DType| a.is_int() && b.is_int() && a.size() == b.size();
    if dtype == x.dtype || same_bits(dtype, x.dtype) {
        return Ok(c.g().cast(&x, dtype)?.into());
    }
    if dtype == DType::Int32 && x.dtype == DType::Float32 {
        return Ok(bits_of_float32(c, &x)?.into());
    }
    Err(unsupported(format!("the bits of {} as {} have no translation", x.dtype.name(), dtype.name())))
}

/// The bits of float32 by arithmetic: sign, exponent and mantissa, each found exactly.
fn bits_of_float32(c: &mut Call<'_, '_>, x: &crate::graph::X) -> Result<crate::graph::X> {
    let g = c.g();
    let negative = super::unary::signbit(g, x)?;
    let size = g.math("Abs", &[x])?;
    let wide = g.cast(&size, DType::Float64)?;
    let log = {
        let (log, two) = (g.math("Log", &[&wide])?, g.number(std::f64::consts::LN_2, DType::Float64)?);
        g.math("Div", &[&log, &two])?
    };
    let (least, most) = (g.number(-126.0, DType::Float64)?, g.number(127.0, DType::Float64)?);
    let exponent = g.math("Floor", &[&log])?;
    let exponent = g.math("Max", &[&exponent, &least])?;
    let exponent = g.math("Min", &[&exponent, &most])?;
    let (one, two) = (g.number(1.0, DType::Float64)?, g.number(2.0, DType::Float64)?);
    let scaled = |g: &mut crate::graph::GraphBuilder, exponent: &crate::graph::X| {
        let power = g.math("Pow", &[&two, exponent])?;
        g.math("Div", &[&wide, &power])
    };
    // The logarithm may be off by a rounding: the quotient says by how much.
    let quotient = scaled(g, &exponent)?;
    let (over, under) = (g.test("GreaterOrEqual", &[&quotient, &two])?, g.test("Less", &[&quotient, &one])?);
    let (higher, lower) = (g.math("Add", &[&exponent, &one])?, g.math("Sub", &[&exponent, &one])?);
    let exponent = g.choose(&over, &higher, &exponent)?;
    let lowered = g.choose(&under, &lower, &exponent)?;
    let exponent = g.math("Max", &[&lowered, &least])?;
    let quotient = scaled(g, &exponent)?;
    let (mantissa_scale, bias) = (g.number(8_388_608.0, DType::Float64)?, g.number(126.0, DType::Float64)?);
    // A normal number has its leading one in the field of the exponent, which it raises by one; a subnormal has none.
    let mantissa = g.math("Mul", &[&quotient, &mantissa_scale])?;
    let field = g.math("Add", &[&exponent, &bias])?;
    let field = g.math("Mul", &[&field, &mantissa_scale])?;
    let bits = g.math("Add", &[&field, &mantissa])?;
    let infinite = g.number(2_139_095_040.0, DType::Float64)?;
    let nan = g.number(2_143_289_344.0, DType::Float64)?;
    let (is_inf, is_nan) = (g.test("IsInf", &[x])?, g.test("IsNaN", &[x])?);
    let bits = g.choose(&is_inf, &infinite, &bits)?;
    let bits = g.choose(&is_nan, &nan, &bits)?;
    let bits = g.cast(&bits, DType::Int64)?;
    let lowest = g.scalar(tracefx_core::Scalar::Int(i32::MIN.into()), DType::Int64)?;
    let signed = g.math("Add", &[&bits, &lowest])?;
    let bits = g.choose(&negative, &signed, &bits)?;
    g.cast(&bits, DType::Int32)
}
