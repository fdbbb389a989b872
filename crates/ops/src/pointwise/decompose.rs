//! Operators that compute each element by itself.

use crate::core::decompositions;
use crate::core::decompositions::{Call, Ints, choose, fill_places as fill, promoted, scalar_tensor};
use crate::{Cx, Traced, Value};
use std::f64::consts;
use tracefx_core::{DType, DTypeKind, Layout, Result, Scalar};

type Results = Result<Vec<Traced>>;

fn float(value: f64) -> Traced {
    Value::Float(value)
}

fn int(value: i64) -> Traced {
    Value::int(value)
}

fn is_number(value: &Traced, number: f64) -> bool {
    value.as_scalar().is_some_and(|it| it.to_complex() == Scalar::Float(number).to_complex())
}

pub(crate) fn celu(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::Stay, |cx, values| {
        let [x, alpha, ..] = values else { unreachable!("celu has two arguments") };
        let is_plain = is_number(alpha, 1.0);
        let scaled = if is_plain { x.clone() } else { cx.aten("div.Tensor", [x, alpha])? };
        let mut low = cx.aten("expm1", [&scaled])?;
        if !is_plain {
            low = cx.aten("mul.Tensor", [&low, alpha])?;
        }
        let is_high = cx.aten("gt.Scalar", [x, &int(0)])?;
        choose(cx, &is_high, x, &low)
    })
}

fn softplus_of(cx: &mut Cx<'_>, x: &Traced, beta: &Traced, threshold: &Traced) -> Result<Traced> {
    let is_plain = is_number(beta, 1.0);
    let scaled = if is_plain { x.clone() } else { cx.aten("mul.Tensor", [x, beta])? };
    let exp = cx.aten("exp", [&scaled])?;
    let mut soft = cx.aten("log1p", [&exp])?;
    if !is_plain {
        soft = cx.aten("div.Tensor", [&soft, beta])?;
    }
    let is_high = cx.aten("gt.Scalar", [&scaled, threshold])?;
    choose(cx, &is_high, x, &soft)
}

pub(crate) fn softplus(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::Stay, |cx, values| softplus_of(cx, &values[0], &values[1], &values[2]))
}

pub(crate) fn mish(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::BecomeFloats, |cx, values| {
        let soft = softplus_of(cx, &values[0], &int(1), &int(20))?;
        let tanh = cx.aten("tanh", [&soft])?;
        cx.aten("mul.Tensor", [&values[0], &tanh])
    })
}

/// `x + 3` within 0 and 6.
fn gate(cx: &mut Cx<'_>, x: &Traced) -> Result<Traced> {
    let moved = cx.aten("add.Tensor", [x, &int(3)])?;
    let low = cx.aten("clamp", [&moved, &int(0)])?;
    cx.aten("clamp", [&low, &Value::None, &int(6)])
}

pub(crate) fn hardsigmoid(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::Stay, |cx, values| {
        let gate = gate(cx, &values[0])?;
        cx.aten("div.Tensor", [&gate, &int(6)])
    })
}

pub(crate) fn hardswish(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::Stay, |cx, values| {
        let gate = gate(cx, &values[0])?;
        let product = cx.aten("mul.Tensor", [&values[0], &gate])?;
        cx.aten("div.Tensor", [&product, &int(6)])
    })
}

pub(crate) fn silu(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::Stay, |cx, values| {
        let sigmoid = cx.aten("sigmoid", [&values[0]])?;
        cx.aten("mul.Tensor", [&values[0], &sigmoid])
    })
}

pub(crate) fn threshold(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::Stay, |cx, values| {
        let is_low = cx.aten("le.Scalar", [&values[0], &values[1]])?;
        fill(cx, &values[0], &is_low, &values[2])
    })
}

pub(crate) fn hardshrink(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let x = &args.values[0];
    let abs = cx.aten("abs", [x])?;
    let is_low = cx.aten("le.Scalar", [&abs, &args.values[1]])?;
    Ok(vec![fill(cx, x, &is_low, &int(0))?])
}

pub(crate) fn softshrink(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (x, lambda) = (&args.values[0], &args.values[1]);
    let abs = cx.aten("abs", [x])?;
    let is_high = cx.aten("gt.Scalar", [&abs, lambda])?;
    let sign = cx.aten("sign", [x])?;
    let step = cx.aten("mul.Tensor", [&sign, lambda])?;
    let moved = cx.aten("sub.Tensor", [x, &step])?;
    // Keeps NaN, which a zero would hide.
    let zero = cx.aten("mul.Tensor", [x, &int(0)])?;
    Ok(vec![cx.aten("where.self", [&is_high, &moved, &zero])?])
}

pub(crate) fn prelu_kernel(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (x, weight) = (&args.values[0], &args.values[1]);
    let is_high = cx.aten("gt.Scalar", [x, &int(0)])?;
    let low = cx.aten("mul.Tensor", [weight, x])?;
    Ok(vec![cx.aten("where.self", [&is_high, x, &low])?])
}

pub(crate) fn heaviside(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (x, value) = (&args.values[0], &args.values[1]);
    let dtype = cx.meta_of(x).dtype;
    let is_zero = cx.aten("eq.Scalar", [x, &int(0)])?;
    let is_low = cx.aten("lt.Scalar", [x, &int(0)])?;
    let is_nan = cx.aten("isnan", [x])?;
    let is_low = cx.aten("logical_or", [&is_low, &is_nan])?;
    let step = choose(cx, &is_low, &int(0), &int(1))?;
    let res = cx.aten("where.self", [&is_zero, value, &step])?;
    Ok(vec![decompositions::to_dtype(cx, res, dtype)?])
}

/// The greater and the lesser of two tensors.
fn ordered(cx: &mut Cx<'_>, a: &Traced, b: &Traced) -> Result<(Traced, Traced)> {
    let is_greater = cx.aten("ge.Tensor", [a, b])?;
    Ok((cx.aten("where.self", [&is_greater, a, b])?, cx.aten("where.self", [&is_greater, b, a])?))
}

pub(crate) fn logaddexp(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    for index in 0..2 {
        if cx.meta(*args.tensor(index)?).dtype.is_complex() {
            return Err(args.unsupported("the decomposition of logaddexp is not implemented for complex numbers"));
        }
    }
    promoted(cx, args, 2, Ints::BecomeFloats, |cx, values| {
        let (a, b) = (&values[0], &values[1]);
        let (high, low) = ordered(cx, a, b)?;
        let is_finite = finite(cx, a)?;
        let is_infinite = cx.aten("logical_not", [&is_finite])?;
        let same = cx.aten("eq.Tensor", [a, b])?;
        let is_infinite = cx.aten("logical_and", [&is_infinite, &same])?;
        let difference = cx.aten("sub.Tensor", [&low, &high])?;
        let exp = cx.aten("exp", [&difference])?;
        let rest = cx.aten("log1p", [&exp])?;
        let sum = cx.aten("add.Tensor", [&high, &rest])?;
        cx.aten("where.self", [&is_infinite, a, &sum])
    })
}

pub(crate) fn logaddexp2(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 2, Ints::BecomeFloats, |cx, values| {
        let (a, b) = (&values[0], &values[1]);
        let (high, low) = ordered(cx, a, b)?;
        let is_infinite = cx.aten("isinf", [a])?;
        let same = cx.aten("eq.Tensor", [a, b])?;
        let is_infinite = cx.aten("logical_and", [&is_infinite, &same])?;
        let difference = cx.aten("sub.Tensor", [&low, &high])?;
        let exp = cx.aten("exp2", [&difference])?;
        let rest = cx.aten("log1p", [&exp])?;
        let rest = cx.aten("mul.Tensor", [&rest, &float(consts::LOG2_E)])?;
        let sum = cx.aten("add.Tensor", [&high, &rest])?;
        cx.aten("where.self", [&is_infinite, a, &sum])
    })
}

pub(crate) fn logit(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::BecomeFloats, |cx, values| {
        let x = &values[0];
        let eps = args.opt_float(1)?.unwrap_or(-1.0);
        let (low, high) = (float(eps), float(1.0 - eps));
        let is_low = cx.aten("lt.Scalar", [x, &low])?;
        let is_high = cx.aten("gt.Scalar", [x, &high])?;
        let inside = fill(cx, x, &is_high, &high)?;
        let inside = fill(cx, &inside, &is_low, &low)?;
        let rest = cx.aten("sub.Tensor", [&int(1), &inside])?;
        let odds = cx.aten("div.Tensor", [&inside, &rest])?;
        cx.aten("log", [&odds])
    })
}

/// From the nearer end, so that both ends are met.
pub(crate) fn lerp_of(cx: &mut Cx<'_>, from: &Traced, to: &Traced, weight: &Traced) -> Result<Traced> {
    let abs = cx.aten("abs", [weight])?;
    let is_far = cx.aten("ge.Scalar", [&abs, &float(0.5)])?;
    let back = cx.aten("sub.Tensor", [weight, &int(1)])?;
    let weight = cx.aten("where.self", [&is_far, &back, weight])?;
    let start = cx.aten("where.self", [&is_far, to, from])?;
    let way = cx.aten("sub.Tensor", [to, from])?;
    let step = cx.aten("mul.Tensor", [&weight, &way])?;
    cx.aten("add.Tensor", [&step, &start])
}

pub(crate) fn lerp(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 2, Ints::Stay, |cx, values| {
        let dtype = cx.meta_of(&values[0]).dtype;
        let weight = match &values[2] {
            Value::Tensor(_) => decompositions::to_dtype(cx, values[2].clone(), dtype)?,
            number => {
                let options = decompositions::options(args, dtype, &tracefx_core::Device::cpu());
                cx.aten_with("full", [&Value::List(Vec::new()), number], &options)?
            }
        };
        lerp_of(cx, &values[0], &values[1], &weight)
    })
}

pub(crate) fn rsub(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let [this, other, alpha] = &args.values[..] else { unreachable!("rsub has three arguments") };
    Ok(vec![cx.aten_with("sub.Tensor", [other, this], &[("alpha", alpha.clone())])?])
}

/// `x` times a function of `y`, zero where `x` is and NaN where `y` is.
fn times_log(cx: &mut Cx<'_>, args: &Call<'_>, log: &str) -> Results {
    promoted(cx, args, 2, Ints::BecomeFloats, |cx, values| {
        let beside = values.iter().find(|it| matches!(it, Value::Tensor(_))).expect("one of them is a tensor");
        let dtype = cx.meta_of(beside).dtype;
        let mut tensor = |value: &Traced| match value {
            Value::Tensor(_) => Ok(value.clone()),
            number => scalar_tensor(cx, number, dtype),
        };
        let (x, y) = (tensor(&values[0])?, tensor(&values[1])?);
        let is_zero = cx.aten("eq.Scalar", [&x, &int(0)])?;
        let log = cx.aten(log, [&y])?;
        let product = cx.aten("mul.Tensor", [&x, &log])?;
        let res = fill(cx, &product, &is_zero, &int(0))?;
        let is_nan = cx.aten("isnan", [&y])?;
        fill(cx, &res, &is_nan, &float(f64::NAN))
    })
}

pub(crate) fn xlogy(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    times_log(cx, args, "log")
}

pub(crate) fn xlog1py(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    times_log(cx, args, "log1p")
}

pub(crate) fn sinc(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::BecomeFloats, |cx, values| {
        let angle = cx.aten("mul.Tensor", [&values[0], &float(consts::PI)])?;
        let is_zero = cx.aten("eq.Scalar", [&angle, &int(0)])?;
        let sin = cx.aten("sin", [&angle])?;
        let ratio = cx.aten("div.Tensor", [&sin, &angle])?;
        fill(cx, &ratio, &is_zero, &int(1))
    })
}

pub(crate) fn frac(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::Stay, |cx, values| {
        let whole = cx.aten("trunc", [&values[0]])?;
        cx.aten("sub.Tensor", [&values[0], &whole])
    })
}

fn scaled(cx: &mut Cx<'_>, args: &Call<'_>, factor: f64) -> Results {
    promoted(cx, args, 1, Ints::BecomeFloats, |cx, values| cx.aten("mul.Tensor", [&values[0], &float(factor)]))
}

pub(crate) fn deg2rad(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    scaled(cx, args, consts::PI / 180.0)
}

pub(crate) fn rad2deg(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    scaled(cx, args, 180.0 / consts::PI)
}

fn add_product(cx: &mut Cx<'_>, args: &Call<'_>, op: &str) -> Results {
    promoted(cx, args, 3, Ints::Stay, |cx, values| {
        let scaled = cx.aten("mul.Tensor", [&values[1], &values[3]])?;
        let product = cx.aten(op, [&scaled, &values[2]])?;
        cx.aten("add.Tensor", [&values[0], &product])
    })
}

pub(crate) fn addcmul(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    add_product(cx, args, "mul.Tensor")
}

pub(crate) fn addcdiv(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    add_product(cx, args, "div.Tensor")
}

pub(crate) fn masked_fill(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (x, mask, value) = (&args.values[0], &args.values[1], &args.values[2]);
    let dtype = cx.meta_of(x).dtype;
    Ok(vec![match value {
        Value::Tensor(_) => {
            let value = decompositions::to_dtype(cx, value.clone(), dtype)?;
            cx.aten("where.self", [mask, &value, x])?
        }
        number => fill(cx, x, mask, number)?,
    }])
}

pub(crate) fn clamp_min(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let op = if matches!(args.values[1], Value::Tensor(_)) { "clamp.Tensor" } else { "clamp" };
    Ok(vec![cx.aten(op, [&args.values[0], &args.values[1]])?])
}

pub(crate) fn clamp_max(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let op = if matches!(args.values[1], Value::Tensor(_)) { "clamp.Tensor" } else { "clamp" };
    Ok(vec![cx.aten(op, [&args.values[0], &Value::None, &args.values[1]])?])
}

pub(crate) fn floor_divide(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let mode = [("rounding_mode", Value::Str("floor".into()))];
    Ok(vec![cx.aten_with("div.Tensor_mode", [&args.values[0], &args.values[1]], &mode)?])
}

/// The largest number of a dtype.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => 65504.0,
        DType::BFloat16 => 3.3895313892515355e38,
        DType::Float64 | DType::Complex128 => f64::MAX,
        _ => f64::from(f32::MAX),
    }
}

pub(crate) fn nan_to_num(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let x = &args.values[0];
    let dtype = cx.meta_of(x).dtype;
    match dtype.kind() {
        DTypeKind::Bool | DTypeKind::Int => return Ok(vec![cx.aten("clone", [x])?]),
        DTypeKind::Complex => {
            return Err(args.unsupported("the decomposition of nan_to_num is not implemented for complex numbers"));
        }
        DTypeKind::Float => {}
    }
    let instead =
        |index: usize, default: f64| -> Result<Traced> { Ok(float(args.opt_float(index)?.unwrap_or(default))) };
    let is_nan = cx.aten("isnan", [x])?;
    let mut res = fill(cx, x, &is_nan, &instead(1, 0.0)?)?;
    for (index, infinity) in [(3, f64::NEG_INFINITY), (2, f64::INFINITY)] {
        let wide = decompositions::to_dtype(cx, x.clone(), decompositions::computing(dtype))?;
        let is_infinite = cx.aten("eq.Scalar", [&wide, &float(infinity)])?;
        res = fill(cx, &res, &is_infinite, &instead(index, infinity.signum() * largest(dtype))?)?;
    }
    Ok(vec![res])
}

/// A tensor of bools, all the same.
fn all_the_same(cx: &mut Cx<'_>, x: &Traced, value: bool) -> Result<Traced> {
    let options = [
        ("dtype", Value::DType(DType::Bool)),
        ("pin_memory", Value::Bool(false)),
        ("memory_format", Value::MemoryFormat(tracefx_core::MemoryFormat::Preserve)),
    ];
    cx.aten_with("full_like", [x, &Value::Bool(value)], &options)
}

fn is_infinity(cx: &mut Cx<'_>, args: &Call<'_>, infinity: f64) -> Results {
    let x = &args.values[0];
    Ok(vec![match cx.meta_of(x).dtype.kind() {
        DTypeKind::Float => cx.aten("eq.Scalar", [x, &float(infinity)])?,
        DTypeKind::Bool | DTypeKind::Int => all_the_same(cx, x, false)?,
        DTypeKind::Complex => {
            return Err(args.invalid(format!("{} does not support complex inputs.", args.op.schema.name)));
        }
    }])
}

pub(crate) fn isneginf(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    is_infinity(cx, args, f64::NEG_INFINITY)
}

pub(crate) fn isposinf(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    is_infinity(cx, args, f64::INFINITY)
}

pub(crate) fn entr(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::BecomeFloats, |cx, values| {
        let x = &values[0];
        let is_nan = cx.aten("isnan", [x])?;
        let is_high = cx.aten("gt.Scalar", [x, &int(0)])?;
        let minus = cx.aten("neg", [x])?;
        let log = cx.aten("log", [x])?;
        let product = cx.aten("mul.Tensor", [&minus, &log])?;
        let is_zero = cx.aten("eq.Scalar", [x, &int(0)])?;
        let dtype = cx.meta_of(x).dtype;
        let infinity = scalar_tensor(cx, &float(f64::NEG_INFINITY), dtype)?;
        let rest = fill(cx, &infinity, &is_zero, &int(0))?;
        let res = cx.aten("where.self", [&is_high, &product, &rest])?;
        cx.aten("where.self", [&is_nan, x, &res])
    })
}

/// Neither infinite nor NaN.
fn finite(cx: &mut Cx<'_>, x: &Traced) -> Result<Traced> {
    if matches!(cx.meta_of(x).dtype.kind(), DTypeKind::Bool | DTypeKind::Int) {
        return all_the_same(cx, x, true);
    }
    let abs = cx.aten("abs", [x])?;
    let is_bounded = cx.aten("ne.Scalar", [&abs, &float(f64::INFINITY)])?;
    let is_number = cx.aten("eq.Tensor", [x, x])?;
    cx.aten("mul.Tensor", [&is_number, &is_bounded])
}

pub(crate) fn isfinite(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    Ok(vec![finite(cx, &args.values[0])?])
}

pub(crate) fn isclose(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (x, y) = (&args.values[0], &args.values[1]);
    let (rtol, atol, nan_is_nan) = (args.float(2)?, args.float(3)?, args.bool(4)?);
    let dtype = cx.meta_of(x).dtype;
    if dtype != cx.meta_of(y).dtype {
        return Err(args.invalid(format!("{} did not match {}", dtype.cpp_name(), cx.meta_of(y).dtype.cpp_name())));
    }
    for (name, value) in [("rtol", rtol), ("atol", atol)] {
        if value < 0.0 || value.is_nan() {
            return Err(args.invalid(format!("{name} must be greater than or equal to zero, but got {value}")));
        }
    }
    let mut close = cx.aten("eq.Tensor", [x, y])?;
    let is_exact = matches!(dtype.kind(), DTypeKind::Bool | DTypeKind::Int);
    if nan_is_nan && !is_exact {
        let (a, b) = (cx.aten("isnan", [x])?, cx.aten("isnan", [y])?);
        let both = cx.aten("bitwise_and.Tensor", [&a, &b])?;
        close = cx.aten("bitwise_or.Tensor", [&close, &both])?;
    }
    if rtol == 0.0 && atol == 0.0 {
        return Ok(vec![close]);
    }
    let (mut x, mut y) = (x.clone(), y.clone());
    if is_exact {
        (x, y) = (decompositions::to_dtype(cx, x, DType::Float32)?, decompositions::to_dtype(cx, y, DType::Float32)?);
    }
    let scaled = cx.aten("mul.Scalar", [&y, &float(rtol)])?;
    let scaled = cx.aten("abs", [&scaled])?;
    let allowed = cx.aten("add.Scalar", [&scaled, &float(atol)])?;
    let difference = cx.aten("sub.Tensor", [&x, &y])?;
    let actual = cx.aten("abs", [&difference])?;
    let is_finite = finite(cx, &actual)?;
    let is_near = cx.aten("le.Tensor", [&actual, &allowed])?;
    let is_near = cx.aten("bitwise_and.Tensor", [&is_finite, &is_near])?;
    Ok(vec![cx.aten("bitwise_or.Tensor", [&close, &is_near])?])
}

pub(crate) fn log_sigmoid(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (res, _) = log_sigmoid_of(cx, &args.values[0])?;
    Ok(vec![res])
}

/// The logarithm, and the exponential from which the gradient is computed.
fn log_sigmoid_of(cx: &mut Cx<'_>, x: &Traced) -> Result<(Traced, Traced)> {
    let meta = cx.meta_of(x);
    let options = [
        ("dtype", Value::DType(meta.dtype)),
        ("layout", Value::Layout(Layout::Strided)),
        ("device", Value::Device(meta.device.clone())),
        ("pin_memory", Value::Bool(false)),
    ];
    let zero = cx.aten_with("full", [&Value::List(Vec::new()), &int(0)], &options)?;
    let low = cx.aten("minimum", [&zero, x])?;
    let abs = cx.aten("abs", [x])?;
    let minus = cx.aten("neg", [&abs])?;
    let exp = cx.aten("exp", [&minus])?;
    let rest = cx.aten("log1p", [&exp])?;
    Ok((cx.aten("sub.Tensor", [&low, &rest])?, exp))
}

pub(crate) fn log_sigmoid_forward(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let dtype = cx.meta(*args.tensor(0)?).dtype;
    let wide = decompositions::to_dtype(cx, args.values[0].clone(), decompositions::computing(dtype))?;
    let (res, exp) = log_sigmoid_of(cx, &wide)?;
    Ok(vec![decompositions::to_dtype(cx, res, dtype)?, decompositions::to_dtype(cx, exp, dtype)?])
}

pub(crate) fn ndtr(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::BecomeFloats, |cx, values| {
        let scaled = cx.aten("mul.Tensor", [&values[0], &float(consts::FRAC_1_SQRT_2)])?;
        let erf = cx.aten("erf", [&scaled])?;
        let sum = cx.aten("add.Tensor", [&erf, &int(1)])?;
        cx.aten("mul.Tensor", [&sum, &float(0.5)])
    })
}

/// With the scaled complement below one, where the plain one would vanish.
pub(crate) fn log_ndtr(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    promoted(cx, args, 1, Ints::BecomeFloats, |cx, values| {
        let x = &values[0];
        let scaled = cx.aten("mul.Tensor", [x, &float(consts::FRAC_1_SQRT_2)])?;
        let is_low = cx.aten("lt.Scalar", [x, &float(1.0)])?;
        let minus = cx.aten("neg", [&scaled])?;
        let tail = cx.aten("special_erfcx", [&minus])?;
        let half = cx.aten("div.Tensor", [&tail, &int(2)])?;
        let log = cx.aten("log", [&half])?;
        let square = cx.aten("mul.Tensor", [&scaled, &scaled])?;
        let low = cx.aten("sub.Tensor", [&log, &square])?;
        let tail = cx.aten("erfc", [&scaled])?;
        let minus = cx.aten("neg", [&tail])?;
        let half = cx.aten("div.Tensor", [&minus, &int(2)])?;
        let high = cx.aten("log1p", [&half])?;
        cx.aten("where.self", [&is_low, &low, &high])
    })
}

pub(crate) fn selu(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (alpha, scale) = (float(1.6732632423543772), float(1.0507009873554805));
    Ok(vec![cx.aten("elu", [&args.values[0], &alpha, &scale])?])
}

pub(crate) fn square(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    Ok(vec![cx.aten("pow.Tensor_Scalar", [&args.values[0], &int(2)])?])
}

/// The same operator under its own name: `__and__` is `bitwise_and`.
fn bitwise(cx: &mut Cx<'_>, args: &Call<'_>, op: &str) -> Results {
    let overload = &args.op.schema.overload;
    Ok(vec![cx.aten(&format!("{op}.{overload}"), [&args.values[0], &args.values[1]])?])
}

pub(crate) fn and(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    bitwise(cx, args, "bitwise_and")
}

pub(crate) fn or(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    bitwise(cx, args, "bitwise_or")
}

pub(crate) fn xor(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    bitwise(cx, args, "bitwise_xor")
}

/// `where` with a number, or with two.
pub(crate) fn where_number(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    Ok(vec![choose(cx, &args.values[0], &args.values[1], &args.values[2])?])
}

/// The power, in float64 or complex128.
pub(crate) fn float_power(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let mut is_complex = false;
    for value in &args.values[..2] {
        is_complex |= match value {
            Value::Tensor(it) => cx.meta(*it).dtype.is_complex(),
            number => matches!(number, Value::Complex(_)),
        };
    }
    let dtype = if is_complex { DType::Complex128 } else { DType::Float64 };
    let wide = |cx: &mut Cx<'_>, value: &Traced| match value {
        Value::Tensor(_) => decompositions::to_dtype(cx, value.clone(), dtype),
        number if is_complex => Ok(number.clone()),
        number => Ok(float(number.as_scalar().map_or(0.0, Scalar::to_f64))),
    };
    let exponent = wide(cx, &args.values[1])?;
    let base = wide(cx, &args.values[0])?;
    let op = match (&base, &exponent) {
        (Value::Tensor(_), Value::Tensor(_)) => "pow.Tensor_Tensor",
        (Value::Tensor(_), _) => "pow.Tensor_Scalar",
        (_, _) => "pow.Scalar",
    };
    Ok(vec![cx.aten(op, [&base, &exponent])?])
}
