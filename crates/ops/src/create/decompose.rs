//! New tensors.

use crate::core::decompositions;
use crate::core::decompositions::{Call, arange as arange_of, options};
use crate::{Cx, Traced, Value};
use tracefx_core::{DType, Device, MemoryFormat, Result};

type Results = Result<Vec<Traced>>;

fn full(cx: &mut Cx<'_>, args: &Call<'_>, value: i64) -> Results {
    let options = options(args, DType::Float32, &Device::cpu());
    Ok(vec![cx.aten_with("full", [&args.values[0], &Value::int(value)], &options)?])
}

pub(crate) fn ones(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    full(cx, args, 1)
}

pub(crate) fn zeros(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    full(cx, args, 0)
}

fn full_like(cx: &mut Cx<'_>, args: &Call<'_>, value: &Traced, keeps_layout: bool) -> Results {
    let mut options = Vec::new();
    for name in ["dtype", "layout", "device"] {
        if let Some(at) = args.position(name).filter(|&at| !args.is_none(at)) {
            options.push((name, args.values[at].clone()));
        }
    }
    options.push(("pin_memory", Value::Bool(false)));
    let given = args.position("memory_format").map(|at| args.values[at].clone()).filter(|it| *it != Value::None);
    if keeps_layout || given.is_some() {
        options.push(("memory_format", given.unwrap_or(Value::MemoryFormat(MemoryFormat::Preserve))));
    }
    Ok(vec![cx.aten_with("full_like", [&args.values[0], value], &options)?])
}

pub(crate) fn ones_like(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    full_like(cx, args, &Value::int(1), true)
}

pub(crate) fn zeros_like(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    full_like(cx, args, &Value::int(0), true)
}

pub(crate) fn fill_scalar(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    full_like(cx, args, &args.values[1], false)
}

pub(crate) fn fill_tensor(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    if !cx.meta(*args.tensor(1)?).sizes.is_empty() {
        let n = cx.meta(*args.tensor(1)?).sizes.len();
        let what = format!("fill_ only supports 0-dimension value tensor but got tensor with {n} dimensions.");
        return Err(args.bad_shape(what));
    }
    Ok(vec![cx.aten("copy", [&args.values[0], &args.values[1]])?])
}

fn new_full_of(cx: &mut Cx<'_>, args: &Call<'_>, value: &Traced) -> Results {
    let meta = cx.meta(*args.tensor(0)?);
    let options = options(args, meta.dtype, &meta.device.clone());
    Ok(vec![cx.aten_with("full", [&args.values[1], value], &options)?])
}

pub(crate) fn new_ones(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    new_full_of(cx, args, &Value::int(1))
}

pub(crate) fn new_zeros(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    new_full_of(cx, args, &Value::int(0))
}

pub(crate) fn new_full(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    new_full_of(cx, args, &args.values[2])
}

pub(crate) fn new_empty(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let meta = cx.meta(*args.tensor(0)?);
    let options = options(args, meta.dtype, &meta.device.clone());
    Ok(vec![cx.aten_with("empty.memory_format", [&args.values[1]], &options)?])
}

pub(crate) fn arange(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let start = if args.op.schema.args[0].name == "start" { args.values[0].clone() } else { Value::int(0) };
    let end = &args.values[args.position("end").expect("arange has an end")];
    let mut options = Vec::new();
    for name in ["dtype", "layout", "device", "pin_memory"] {
        let given = args.position(name).map(|at| args.values[at].clone()).filter(|it| *it != Value::None);
        match (name, given) {
            (_, Some(given)) => options.push((name, given)),
            ("layout", None) => options.push((name, Value::Layout(tracefx_core::Layout::Strided))),
            ("pin_memory", None) => options.push((name, Value::Bool(false))),
            (_, None) => {}
        }
    }
    Ok(vec![cx.aten_with("arange.start_step", [&start, end], &options)?])
}

/// Row numbers beside column numbers, compared.
pub(crate) fn eye(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let n_rows = args.sym_int(0)?.clone();
    let n_columns = if args.op.schema.args[1].name == "m" { args.sym_int(1)?.clone() } else { n_rows.clone() };
    let options = options(args, DType::Float32, &Device::cpu());
    let Value::DType(dtype) = options[0].1 else { return Err(args.invalid("the dtype of eye is no dtype")) };
    let numbers = narrowest(n_rows.max(&n_columns).as_int());
    let rows = arange_of(cx, &n_rows, Some(numbers))?;
    let columns = arange_of(cx, &n_columns, Some(numbers))?;
    let rows = cx.aten("unsqueeze", [&rows, &Value::int(-1)])?;
    let same = cx.aten("eq.Tensor", [&rows, &columns])?;
    Ok(vec![decompositions::to_dtype(cx, same, dtype)?])
}

/// The smallest dtype that numbers this many places, as PyTorch chooses it.
fn narrowest(n: Option<i64>) -> DType {
    match n {
        Some(..=255) => DType::UInt8,
        Some(..=32_767) => DType::Int16,
        Some(..=2_147_483_647) => DType::Int32,
        Some(_) | None => DType::Int64,
    }
}

fn triangle(cx: &mut Cx<'_>, args: &Call<'_>, op: &str) -> Results {
    let x = &args.values[0];
    let meta = cx.meta_of(x).clone();
    let [.., n_rows, n_columns] = &meta.sizes[..] else {
        return Err(args.bad_shape(format!("{}: input tensor must have at least 2 dimensions", args.op.schema.name)));
    };
    let columns = arange_of(cx, n_columns, None)?;
    let columns = cx.aten("unsqueeze", [&columns, &Value::int(-2)])?;
    let rows = arange_of(cx, n_rows, None)?;
    let rows = cx.aten("unsqueeze", [&rows, &Value::int(-1)])?;
    let distance = cx.aten("sub.Tensor", [&columns, &rows])?;
    let is_inside = cx.aten(op, [&distance, &args.values[1]])?;
    if meta.dtype == DType::Bool {
        return Ok(vec![cx.aten("logical_and", [&is_inside, x])?]);
    }
    let zero = decompositions::scalar_tensor(cx, &Value::int(0), meta.dtype)?;
    let res = cx.aten("where.self", [&is_inside, x, &zero])?;
    Ok(vec![res])
}

pub(crate) fn tril(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    triangle(cx, args, "le.Scalar")
}

pub(crate) fn triu(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    triangle(cx, args, "ge.Scalar")
}

/// Ordered in memory as the tensor is.
pub(crate) fn empty_like(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let meta = cx.meta(*args.tensor(0)?).clone();
    let format = args.opt_memory_format(5)?.unwrap_or(MemoryFormat::Preserve);
    if !matches!(format, MemoryFormat::Preserve | MemoryFormat::Contiguous) {
        return Err(args.unsupported("the decomposition of empty_like takes no channels last"));
    }
    let mut order: Vec<usize> = (0..meta.sizes.len()).collect();
    if format == MemoryFormat::Preserve {
        let strides: Option<Vec<i64>> = meta.strides.iter().map(|it| it.as_int()).collect();
        if let Some(strides) = strides {
            order.sort_by_key(|&it| std::cmp::Reverse(strides[it]));
        }
    }
    let order = Value::List(order.into_iter().map(decompositions::dim).collect());
    let options = options(args, meta.dtype, &meta.device);
    Ok(vec![cx.aten_with("empty_permuted", [&decompositions::size_list(&meta.sizes), &order], &options)?])
}

/// Half a wave of a cosine; a periodic window is one longer, without its end.
pub(crate) fn hann_window(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let n = args.int(0)?;
    let is_periodic = args.op.schema.args[1].name != "periodic" || args.bool(1)?;
    let options = options(args, DType::Float32, &Device::cpu());
    if n <= 1 {
        return Err(args.unsupported("the decomposition of hann_window takes more than one point"));
    }
    let n_points = if is_periodic { n + 1 } else { n };
    let numbers = cx.aten_with("arange.start_step", [&Value::int(0), &Value::int(n_points)], &options)?;
    let step = std::f64::consts::PI * 2.0 / (n_points - 1) as f64;
    let angles = cx.aten("mul.Tensor", [&numbers, &Value::Float(step)])?;
    let wave = cx.aten("cos", [&angles])?;
    let wave = cx.aten("mul.Tensor", [&wave, &Value::Float(-0.5)])?;
    let wave = cx.aten("add.Tensor", [&wave, &Value::Float(0.5)])?;
    if !is_periodic {
        return Ok(vec![wave]);
    }
    Ok(vec![cx.aten("slice.Tensor", [&wave, &Value::int(0), &Value::int(0), &Value::int(n)])?])
}

/// Steps from both ends, so that both are met.
fn steps_between(cx: &mut Cx<'_>, args: &Call<'_>, dtype: DType) -> Result<Traced> {
    let n = args.int(2)?;
    let is_complex = |it: &Traced| match it {
        Value::Tensor(it) => cx.meta(*it).dtype.is_complex(),
        number => matches!(number, Value::Complex(_)),
    };
    if n < 2 || dtype.is_complex() || args.values[..2].iter().any(is_complex) {
        return Err(args.unsupported("the decomposition takes at least two steps of real numbers"));
    }
    let mut ends = Vec::new();
    for value in &args.values[..2] {
        ends.push(match value {
            Value::Tensor(_) => decompositions::to_dtype(cx, value.clone(), DType::Float64)?,
            number => number.clone(),
        });
    }
    let [start, end] = [&ends[0], &ends[1]];
    let step = match (start.as_scalar(), end.as_scalar()) {
        (Some(start), Some(end)) => Value::Float((end.to_f64() - start.to_f64()) / (n - 1) as f64),
        (_, _) => {
            let way = cx.aten("sub.Tensor", [end, start])?;
            cx.aten("div.Tensor", [&way, &Value::int(n - 1)])?
        }
    };
    let numbers = arange_of(cx, &n.into(), None)?;
    let is_first_half = cx.aten("lt.Scalar", [&numbers, &Value::Float(n as f64 / 2.0)])?;
    let as_float = |cx: &mut Cx<'_>, it: Traced| {
        if dtype.is_float() { decompositions::to_dtype(cx, it, dtype) } else { Ok(it) }
    };
    let up = as_float(cx, numbers.clone())?;
    let up = cx.aten("mul.Tensor", [&up, &step])?;
    let up = cx.aten("add.Tensor", [&up, start])?;
    let rest = cx.aten("sub.Tensor", [&Value::int(n - 1), &numbers])?;
    let down = as_float(cx, rest)?;
    let down = cx.aten("mul.Tensor", [&down, &step])?;
    let down = cx.aten("sub.Tensor", [end, &down])?;
    cx.aten("where.self", [&is_first_half, &up, &down])
}

pub(crate) fn linspace(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let Value::DType(dtype) = options(args, DType::Float32, &Device::cpu())[0].1 else {
        return Err(args.invalid("the dtype of linspace is no dtype"));
    };
    let res = steps_between(cx, args, dtype)?;
    Ok(vec![decompositions::to_dtype(cx, res, dtype)?])
}

/// Powers of the steps, computed in float64.
pub(crate) fn logspace(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let Value::DType(dtype) = options(args, DType::Float32, &Device::cpu())[0].1 else {
        return Err(args.invalid("the dtype of logspace is no dtype"));
    };
    let exponents = steps_between(cx, args, DType::Float64)?;
    let base = args.values[args.position("base").expect("logspace has a base")].clone();
    let whole = args.float(3)?;
    let base = if whole.fract() == 0.0 { Value::int(whole as i64) } else { base };
    let res = cx.aten("pow.Scalar", [&base, &exponents])?;
    Ok(vec![decompositions::to_dtype(cx, res, dtype)?])
}
