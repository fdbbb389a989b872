//! Differences of neighbours, and areas under lines through points.

use crate::core::decompositions::{Call, size_list, tensor_of};
use crate::{Cx, OpDef, Traced, Value, normalize_dim};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite(
        "aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
        diff,
    )
    .doc("Each element minus the one before, `n` times."),
    OpDef::composite("aten::trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid)
        .doc("The area under a line through points."),
    OpDef::composite("aten::trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", trapezoid)
        .doc("The area under a line through points at equal distances."),
    OpDef::composite("aten::trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid)
        .doc("The area under a line through points."),
    OpDef::composite("aten::trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor", trapezoid)
        .doc("The area under a line through points at equal distances."),
    OpDef::composite("aten::cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", cumulative_trapezoid)
        .doc("The area under a line through points, up to each of them."),
    OpDef::composite(
        "aten::cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
        cumulative_trapezoid,
    )
    .doc("The area under a line through points at equal distances, up to each of them."),
];

/// All elements of a dimension but the first, and all but the last.
fn neighbours(cx: &mut Cx<'_>, value: &Traced, dim: usize) -> Result<(Traced, Traced)> {
    let mut slice =
        |start: Traced, end: Traced| cx.aten("slice.Tensor", [value, &Value::int(dim as i64), &start, &end]);
    Ok((slice(Value::int(1), Value::None)?, slice(Value::int(0), Value::int(-1))?))
}

fn diff(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (this, n) = (*args.tensor(0)?, args.int(1)?);
    let rank = cx.meta(this).sizes.len();
    if rank == 0 {
        return Err(args.bad_shape("diff expects input to be at least one-dimensional"));
    }
    if n < 0 {
        return Err(args.invalid(format!("order must be non-negative but got {n}")));
    }
    let dim = normalize_dim(args, args.int(2)?, rank)?;
    let mut res = Traced::from(this);
    if n == 0 {
        return Ok(vec![cx.aten("clone", [&res])?]);
    }
    if !args.is_none(3) || !args.is_none(4) {
        for index in [3, 4] {
            if let Some(it) = args.opt_tensor(index)?
                && cx.meta(*it).sizes.len() != rank
            {
                return Err(args.bad_shape("diff expects prepend or append to be the same dimension as input"));
            }
        }
        let parts = [&args.values[3], &res, &args.values[4]].into_iter().filter(|it| **it != Value::None).cloned();
        res = cx.aten("cat", [&Value::List(parts.collect()), &Value::int(dim as i64)])?;
    }
    for _ in 0..n {
        let meta = cx.meta(tensor_of(&res));
        let op = if meta.dtype == DType::Bool { "logical_xor" } else { "sub.Tensor" };
        let is_empty = meta.sizes[dim] == 0;
        let (after, before) = neighbours(cx, &res, dim)?;
        res = cx.aten(op, [&after, &before])?;
        if is_empty {
            break;
        }
    }
    Ok(vec![res])
}

fn dim_of(cx: &Cx<'_>, args: &Call<'_>) -> Result<usize> {
    let rank = cx.meta(*args.tensor(0)?).sizes.len();
    normalize_dim(args, args.int(args.values.len() - 1)?, rank)
}

fn check_no_bools(cx: &Cx<'_>, args: &Call<'_>) -> Result<()> {
    let is_bool = |it: &Traced| matches!(it, Value::Tensor(it) if cx.meta(*it).dtype == DType::Bool);
    if args.values[..2].iter().any(is_bool) {
        let what = "trapezoid: received a bool input for `x` or `y`, but bool is not supported";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    Ok(())
}

/// Zeros without this dimension, where there is no point along it.
fn without_points(cx: &mut Cx<'_>, args: &Call<'_>, dim: usize) -> Result<Option<Traced>> {
    let meta = cx.meta(*args.tensor(0)?).clone();
    if meta.sizes.get(dim).is_none_or(|it| *it != 0) {
        return Ok(None);
    }
    let mut sizes = meta.sizes;
    sizes.remove(dim);
    let sizes = size_list(&sizes);
    cx.aten_with("zeros", [&sizes], &[("dtype", Value::DType(meta.dtype))]).map(Some)
}

/// How far the points are from each other: along the dimension, or everywhere the same.
fn distances(cx: &mut Cx<'_>, args: &Call<'_>, dim: usize) -> Result<Traced> {
    let Value::Tensor(x) = args.values[1] else {
        if !matches!(args.values[1], Value::Int(_) | Value::Float(_) | Value::SymFloat(_)) {
            return Err(args.invalid("trapezoid: Currently, we only support dx as a real number."));
        }
        return Ok(args.values[1].clone());
    };
    let (y_sizes, x_sizes) = (cx.meta(*args.tensor(0)?).sizes.clone(), cx.meta(x).sizes.clone());
    let mut x = Traced::from(x);
    if x_sizes.len() < y_sizes.len() {
        let mut sizes = vec![SymInt::ONE; y_sizes.len()];
        if let [n] = &x_sizes[..] {
            if args.differ(n, &y_sizes[dim]) {
                return Err(args.bad_shape("trapezoid: There must be one `x` value for each sample point"));
            }
            sizes[dim] = n.clone();
        } else {
            let n_missing = y_sizes.len() - x_sizes.len();
            sizes[n_missing..].clone_from_slice(&x_sizes);
        }
        x = cx.aten("reshape", [&x, &size_list(&sizes)])?;
    }
    let (after, before) = neighbours(cx, &x, dim)?;
    cx.aten("sub.Tensor", [&after, &before])
}

fn trapezoid(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let dim = dim_of(cx, args)?;
    if let Some(zeros) = without_points(cx, args, dim)? {
        return Ok(vec![zeros]);
    }
    check_no_bools(cx, args)?;
    let (y, at) = (args.values[0].clone(), Value::int(dim as i64));
    let distance = distances(cx, args, dim)?;
    if !matches!(distance, Value::Tensor(_)) {
        let sum = cx.aten("sum.dim_IntList", [&y, &Value::List(vec![at.clone()])])?;
        let mut end = |index: i64| cx.aten("select.int", [&y, &at, &Value::int(index)]);
        let (first, last) = (end(0)?, end(-1)?);
        let ends = cx.aten("add.Tensor", [&first, &last])?;
        let half = cx.aten("mul.Scalar", [&ends, &Value::Float(0.5)])?;
        let inner = cx.aten("sub.Tensor", [&sum, &half])?;
        return Ok(vec![cx.aten("mul.Scalar", [&inner, &distance])?]);
    }
    let areas = areas(cx, &y, &distance, dim)?;
    let sum = cx.aten("sum.dim_IntList", [&areas, &Value::List(vec![at])])?;
    Ok(vec![cx.aten("div.Scalar", [&sum, &Value::Float(2.0)])?])
}

/// Twice the area between each two neighbours.
fn areas(cx: &mut Cx<'_>, y: &Traced, distance: &Traced, dim: usize) -> Result<Traced> {
    let (after, before) = neighbours(cx, y, dim)?;
    let sum = cx.aten("add.Tensor", [&before, &after])?;
    let op = if matches!(distance, Value::Tensor(_)) { "mul.Tensor" } else { "mul.Scalar" };
    cx.aten(op, [&sum, distance])
}

fn cumulative_trapezoid(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let dim = dim_of(cx, args)?;
    check_no_bools(cx, args)?;
    let distance = distances(cx, args, dim)?;
    let areas = areas(cx, &args.values[0], &distance, dim)?;
    let sums = cx.aten("cumsum", [&areas, &Value::int(dim as i64)])?;
    Ok(vec![cx.aten("div.Scalar", [&sums, &Value::Float(2.0)])?])
}
