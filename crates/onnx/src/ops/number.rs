//! Numbers that only a run tells: sizes, Python's arithmetic on them, and assertions, which a model has none of.

use super::Rows;
use super::binary::{floor_divide, remainder};
use crate::call::{Call, Results, unsupported};
use crate::graph::{GraphBuilder, X};
use tracefx_core::{DType, Result};
use tracefx_ops::Value;

pub(super) const OPS: Rows = &[
    ("aten._assert_async.msg", nothing),
    ("aten._assert_scalar.default", nothing),
    ("aten._assert_tensor_metadata.default", nothing),
    ("aten._local_scalar_dense.default", item),
    ("aten.item.default", item),
    ("aten.sym_constrain_range_for_size.default", nothing),
    ("aten.sym_size.int", sym_size),
    ("math.ceil", |c| to_int(c, "Ceil")),
    ("math.floor", |c| to_int(c, "Floor")),
    ("operator.add", |c| arithmetic(c, |g, a, b| g.math("Add", &[a, b]))),
    ("operator.and_", |c| arithmetic(c, |g, a, b| g.math("And", &[a, b]))),
    ("operator.eq", |c| compare(c, "Equal", false)),
    ("operator.floordiv", |c| arithmetic(c, floor_divide)),
    ("operator.ge", |c| compare(c, "GreaterOrEqual", false)),
    ("operator.getitem", nothing),
    ("operator.gt", |c| compare(c, "Greater", false)),
    ("operator.le", |c| compare(c, "LessOrEqual", false)),
    ("operator.lt", |c| compare(c, "Less", false)),
    ("operator.mod", |c| arithmetic(c, remainder)),
    ("operator.mul", |c| arithmetic(c, |g, a, b| g.math("Mul", &[a, b]))),
    ("operator.ne", |c| compare(c, "Equal", true)),
    ("operator.neg", negate),
    ("operator.not_", not),
    ("operator.or_", |c| arithmetic(c, |g, a, b| g.math("Or", &[a, b]))),
    ("operator.pow", |c| arithmetic(c, |g, a, b| g.math("Pow", &[a, b]))),
    ("operator.sub", |c| arithmetic(c, |g, a, b| g.math("Sub", &[a, b]))),
    ("operator.truediv", |c| arithmetic(c, |g, a, b| g.math("Div", &[a, b]))),
    ("torch.sym_float", |c| converted(c, DType::Float64)),
    ("torch.sym_int", |c| converted(c, DType::Int64)),
    ("torch.sym_max", |c| arithmetic(c, |g, a, b| g.math("Max", &[a, b]))),
    ("torch.sym_min", |c| arithmetic(c, |g, a, b| g.math("Min", &[a, b]))),
    ("torch.sym_not", not),
];

fn nothing(_: &mut Call<'_, '_>) -> Result<Results> {
    Ok(Results(Vec::new()))
}

fn sym_size(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let dim = c.dim("dim", x.rank())?;
    let size = c.g().size_of(&x, dim);
    Ok(c.g().reshape(&size, &[])?.into())
}

fn item(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let x = c.operand("self", dtype)?;
    Ok(c.g().reshape(&x, &[])?.into())
}

/// An argument by its place, as this dtype.
fn place(c: &mut Call<'_, '_>, at: usize, dtype: DType) -> Result<X> {
    let arg = c.node.args().get(at).ok_or_else(|| unsupported("an operand is missing"))?;
    match c.translator.value(arg)? {
        Value::Tensor(it) => c.g().cast(&it, dtype),
        other => {
            let scalar = other.as_scalar().ok_or_else(|| unsupported("an operand is no number"))?;
            c.g().scalar(scalar, dtype)
        }
    }
}

fn dtype_of(c: &Call<'_, '_>, at: usize) -> Result<DType> {
    let arg = c.node.args().get(at).ok_or_else(|| unsupported("an operand is missing"))?;
    Ok(match c.translator.value(arg)? {
        Value::Tensor(it) => it.x.dtype,
        Value::Float(_) => DType::Float64,
        Value::Bool(_) => DType::Bool,
        _ => DType::Int64,
    })
}

fn arithmetic(c: &mut Call<'_, '_>, made: fn(&mut GraphBuilder, &X, &X) -> Result<X>) -> Result<Results> {
    let dtype = c.dtype()?;
    let (a, b) = (place(c, 0, dtype)?, place(c, 1, dtype)?);
    Ok(made(c.g(), &a, &b)?.into())
}

fn compare(c: &mut Call<'_, '_>, op: &str, negated: bool) -> Result<Results> {
    let dtype = match (dtype_of(c, 0)?, dtype_of(c, 1)?) {
        (DType::Float64, _) | (_, DType::Float64) => DType::Float64,
        (DType::Bool, DType::Bool) => DType::Bool,
        _ => DType::Int64,
    };
    let (a, b) = (place(c, 0, dtype)?, place(c, 1, dtype)?);
    let holds = c.g().test(op, &[&a, &b])?;
    Ok(if negated { c.g().not(&holds) } else { holds }.into())
}

fn negate(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = c.dtype()?;
    let a = place(c, 0, dtype)?;
    Ok(c.g().math("Neg", &[&a])?.into())
}

fn not(c: &mut Call<'_, '_>) -> Result<Results> {
    let a = place(c, 0, DType::Bool)?;
    Ok(c.g().not(&a).into())
}

fn converted(c: &mut Call<'_, '_>, dtype: DType) -> Result<Results> {
    Ok(place(c, 0, dtype)?.into())
}

fn to_int(c: &mut Call<'_, '_>, op: &str) -> Result<Results> {
    let x = place(c, 0, DType::Float64)?;
    let rounded = c.g().math(op, &[&x])?;
    Ok(c.g().cast(&rounded, DType::Int64)?.into())
}
