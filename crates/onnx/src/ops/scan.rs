//! Running results along a dimension: sums have a node of their own, the others are a `Scan`.

use super::Rows;
use crate::call::{Call, Results, Tensor};
use crate::graph::{Dim, X, graph, int, ints};
use crate::model::value_info;
use crate::proto::GraphProto;
use tracefx_core::{DType, Result};

pub(super) const OPS: Rows = &[
    ("aten.cummax.default", |c| extremum(c, "GreaterOrEqual")),
    ("aten.cummin.default", |c| extremum(c, "LessOrEqual")),
    ("aten.cumprod.default", product),
    ("aten.cumsum.default", sum),
    ("aten.logcumsumexp.default", log_sum_exp),
];

fn sum(c: &mut Call<'_, '_>) -> Result<Results> {
    let (dtype, tensor) = (c.dtype()?, c.tensor("self")?);
    let x = c.operand("self", dtype)?;
    let dim = c.dim("dim", tensor.rank())?;
    if tensor.rank() == 0 {
        return Ok(x.into());
    }
    let axis = c.number(dim as f64, DType::Int64)?;
    if dtype == DType::Int64 {
        return Ok(c.g().raw("CumSum", &[&x, &axis], Vec::new(), dtype).into());
    }
    Ok(c.g().math("CumSum", &[&x, &axis])?.into())
}

/// A step of a scan: of the states and the elements, the new states.
type Step<'a> = dyn FnMut(&mut Call<'_, '_>, &[X], &[X]) -> Result<Vec<X>> + 'a;

/// A `Scan` along a dimension: `step` makes new states of the old ones and of an element, and the states are the results.
fn scan(c: &mut Call<'_, '_>, inputs: &[&X], dim: i64, initial: &[X], step: &mut Step<'_>) -> Result<Vec<X>> {
    let outer = std::mem::take(&mut c.g().nodes);
    let g = c.g();
    let mut named = |base: &str, of: &X| X { name: g.fresh(base), dtype: of.dtype };
    let states: Vec<X> = initial.iter().map(|it| named("state", it)).collect();
    let elements: Vec<X> = inputs.iter().map(|it| named("element", it)).collect();
    let new = step(c, &states, &elements)?;
    let g = c.g();
    let mut output = Vec::new();
    for _ in 0..2 {
        for it in &new {
            let copy = g.raw("Identity", &[it], Vec::new(), it.dtype);
            output.push(value_info(&copy, None)?);
        }
    }
    let input = states.iter().chain(&elements).map(|it| value_info(it, None)).collect::<Result<_>>()?;
    let node = std::mem::replace(&mut g.nodes, outer);
    let body = GraphProto { node, name: "scan".to_string(), input, output, ..GraphProto::default() };
    let n = new.len();
    let attributes = vec![
        graph("body", body),
        int("num_scan_inputs", inputs.len() as i64),
        ints("scan_input_axes", &vec![dim; inputs.len()]),
        ints("scan_output_axes", &vec![dim; n]),
    ];
    let all: Vec<Option<&X>> = initial.iter().chain(inputs.iter().copied()).map(Some).collect();
    let dtypes: Vec<DType> = new.iter().chain(&new).map(|it| it.dtype).collect();
    Ok(g.node("Scan", &all, attributes, &dtypes).split_off(n))
}

/// The sizes without a dimension.
fn shape_without(c: &mut Call<'_, '_>, x: &Tensor, dim: i64) -> Result<X> {
    let mut dims: Vec<Dim> = c.sizes_of(x);
    dims.remove(dim as usize);
    c.g().dims(&dims)
}

fn product(c: &mut Call<'_, '_>) -> Result<Results> {
    let (dtype, tensor) = (c.dtype()?, c.tensor("self")?);
    let x = c.operand("self", dtype)?;
    let dim = c.dim("dim", tensor.rank())?;
    if tensor.rank() == 0 {
        return Ok(x.into());
    }
    if tensor.sizes.iter().any(|it| *it == 0) {
        return Ok(x.into());
    }
    let (one, shape) = (c.number(1.0, dtype)?, shape_without(c, &tensor, dim)?);
    let initial = c.g().expand(&one, &shape)?;
    let found = scan(c, &[&x], dim, &[initial], &mut |c, state, x| Ok(vec![c.g().math("Mul", &[&state[0], &x[0]])?]))?;
    Ok(found[0].clone().into())
}

/// The most so far, and where it stands: the last of equal ones, and NaN from the first on.
fn extremum(c: &mut Call<'_, '_>, op: &'static str) -> Result<Results> {
    let x = c.tensor("self")?;
    if x.rank() == 0 {
        let zero = c.number(0.0, DType::Int64)?;
        return Ok(Results(vec![Some(x.x), Some(zero)]));
    }
    let dim = c.dim("dim", x.rank())?;
    let dtype = x.x.dtype;
    // Runtimes scan nothing of nothing.
    if x.sizes.iter().any(|it| *it == 0) {
        let none = c.g().cast(&x, DType::Int64)?;
        return Ok(Results(vec![Some(x.x), Some(none)]));
    }
    let worst = if op == "GreaterOrEqual" { crate::element::lowest(dtype) } else { crate::element::highest(dtype) };
    let (worst, shape) = (c.g().scalar(worst, dtype)?, shape_without(c, &x, dim)?);
    let (zero, one) = (c.number(0.0, DType::Int64)?, c.number(1.0, DType::Int64)?);
    let (worst, zeros) = (c.g().expand(&worst, &shape)?, c.g().expand(&zero, &shape)?);
    let mut step = |c: &mut Call<'_, '_>, state: &[X], x: &[X]| {
        let g = c.g();
        let mut is_new = g.test(op, &[&x[0], &state[0]])?;
        if dtype.is_float() {
            let (x_nan, state_nan) = (g.test("IsNaN", &[&x[0]])?, g.test("IsNaN", &[&state[0]])?);
            let plain = g.not(&state_nan);
            let numbers = g.test("And", &[&is_new, &plain])?;
            is_new = g.test("Or", &[&numbers, &x_nan])?;
        }
        let value = g.choose(&is_new, &x[0], &state[0])?;
        let at = g.choose(&is_new, &state[2], &state[1])?;
        let next = g.math("Add", &[&state[2], &one])?;
        Ok(vec![value, at, next])
    };
    let found = scan(c, &[&x.x], dim, &[worst, zeros.clone(), zeros], &mut step)?;
    Ok(Results(vec![Some(found[0].clone()), Some(found[1].clone())]))
}

/// `log(exp(a) + exp(b))` as `m + log1p(exp(l - m))` of the greater and the lesser.
fn log_sum_exp(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    if x.rank() == 0 {
        return Ok(x.x.into());
    }
    let dim = c.dim("dim", x.rank())?;
    let dtype = x.x.dtype;
    if x.sizes.iter().any(|it| *it == 0) {
        return Ok(x.x.into());
    }
    let (lowest, shape) = (c.number(f64::NEG_INFINITY, dtype)?, shape_without(c, &x, dim)?);
    let initial = c.g().expand(&lowest, &shape)?;
    let found = scan(c, &[&x.x], dim, &[initial], &mut |c, state, x| {
        let g = c.g();
        let (most, least) = (g.math("Max", &[&state[0], &x[0]])?, g.math("Min", &[&state[0], &x[0]])?);
        let gap = g.math("Sub", &[&least, &most])?;
        let ratio = g.math("Exp", &[&gap])?;
        let log = super::unary::log1p(g, &ratio)?;
        let sum = g.math("Add", &[&most, &log])?;
        // Of two equal infinities the difference is no number.
        let is_inf = g.test("IsInf", &[&most])?;
        Ok(vec![g.choose(&is_inf, &most, &sum)?])
    })?;
    Ok(found[0].clone().into())
}
