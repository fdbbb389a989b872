//! Numbers: the sizes of tensors, and the Python functions that dynamic programs compute with them. They need no kernel,
//! for their results follow from the shapes and the arguments.

use crate::core::elementwise::check_fits;
use crate::view;
use crate::{Args, OpDef, Output, Tags, Value, normalize_dim};
use std::cmp::Ordering;
use tracefx_core::{Code, DType, Diagnostic, Result, Scalar};
use tracefx_ir::TensorMeta;
use tracefx_sym::{Func, SymBool, SymInt, call};

type Number = Value<TensorMeta>;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::sym_size.int(Tensor self, int dim) -> SymInt", |args| dim_of(args, &args.tensor(0)?.sizes))
        .tags(Tags::CORE)
        .doc("The size of one dimension."),
    OpDef::new("aten::sym_stride.int(Tensor self, int dim) -> SymInt", |args| dim_of(args, &args.tensor(0)?.strides))
        .tags(Tags::CORE)
        .doc("The stride of one dimension, in elements."),
    OpDef::new("aten::sym_numel(Tensor self) -> SymInt", |args| {
        let one = SymInt::from(1);
        int(args.tensor(0)?.sizes.iter().fold(one, |n, size| &n * size))
    })
    .tags(Tags::CORE)
    .doc("The number of elements."),
    OpDef::new("aten::sym_storage_offset(Tensor self) -> SymInt", |args| int(args.tensor(0)?.storage_offset.clone()))
        .tags(Tags::CORE)
        .doc("The position of the first element in its storage, in elements."),
    OpDef::new("operator::add(Any a, Any b) -> Any", |args| {
        arithmetic(args, Some(Func::Add), |a, b| a + b, |a, b| a + b)
    })
    .doc("Python's `a + b`.")
    .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE)),
    OpDef::new("operator::sub(Any a, Any b) -> Any", |args| arithmetic(args, None, |a, b| a - b, |a, b| a - b))
        .doc("Python's `a - b`."),
    OpDef::new("operator::mul(Any a, Any b) -> Any", |args| {
        arithmetic(args, Some(Func::Mul), |a, b| a * b, |a, b| a * b)
    })
    .doc("Python's `a * b`.")
    .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE)),
    OpDef::new("operator::truediv(Any a, Any b) -> Any", true_division).doc("Python's `a / b`, always a float."),
    OpDef::new("operator::floordiv(Any a, Any b) -> Any", |args| {
        refuse_zero_divisor(args)?;
        arithmetic(args, None, |a, b| a.floor_div(b), python_floor_division)
    })
    .doc("Python's `a // b`, rounded down."),
    OpDef::new("operator::mod(Any a, Any b) -> Any", |args| {
        refuse_zero_divisor(args)?;
        arithmetic(args, None, |a, b| a.modulo(b), python_modulo)
    })
    .doc("Python's `a % b`, with the sign of the divisor."),
    OpDef::new("operator::pow(Any a, Any b) -> Any", power).doc("Python's `a ** b`."),
    OpDef::new("operator::neg(Any a) -> Any", |args| match number(args, 0)? {
        Value::Float(it) => float(-it),
        other => int(-whole(args, &other)?),
    })
    .doc("Python's `-a`."),
    OpDef::new("operator::pos(Any a) -> Any", |args| match number(args, 0)? {
        Value::Float(it) => float(it),
        other => int(whole(args, &other)?),
    })
    .doc("Python's `+a`."),
    OpDef::new("operator::eq(Any a, Any b) -> Any", |args| compare(args, Func::Eq, |it| it == Some(Ordering::Equal)))
        .doc("Python's `a == b`."),
    OpDef::new("operator::ne(Any a, Any b) -> Any", |args| compare(args, Func::Ne, |it| it != Some(Ordering::Equal)))
        .doc("Python's `a != b`."),
    OpDef::new("operator::lt(Any a, Any b) -> Any", |args| compare(args, Func::Lt, |it| it == Some(Ordering::Less)))
        .doc("Python's `a < b`."),
    OpDef::new("operator::le(Any a, Any b) -> Any", |args| {
        compare(args, Func::Le, |it| it.is_some_and(Ordering::is_le))
    })
    .doc("Python's `a <= b`."),
    OpDef::new("operator::gt(Any a, Any b) -> Any", |args| compare(args, Func::Gt, |it| it == Some(Ordering::Greater)))
        .doc("Python's `a > b`."),
    OpDef::new("operator::ge(Any a, Any b) -> Any", |args| {
        compare(args, Func::Ge, |it| it.is_some_and(Ordering::is_ge))
    })
    .doc("Python's `a >= b`."),
    OpDef::new("operator::and_(Any a, Any b) -> Any", |args| bitwise(args, Func::And, |a, b| a & b))
        .doc("Python's `a & b`."),
    OpDef::new("operator::or_(Any a, Any b) -> Any", |args| bitwise(args, Func::Or, |a, b| a | b))
        .doc("Python's `a | b`."),
    OpDef::new("operator::lshift(Any a, Any b) -> Any", |args| {
        shift(args, |a, b| (b < 64).then(|| (a as i128) << b).and_then(|it| i64::try_from(it).ok()))
    })
    .doc("Python's `a << b`."),
    OpDef::new("operator::rshift(Any a, Any b) -> Any", |args| shift(args, |a, b| Some(a >> b.min(63))))
        .doc("Python's `a >> b`."),
    OpDef::new("math::trunc(Any a) -> Any", |args| whole_float(args, Func::TruncToInt, f64::trunc))
        .doc("Python's `math.trunc(a)`."),
    OpDef::new("math::floor(Any a) -> Any", |args| whole_float(args, Func::FloorToInt, f64::floor))
        .doc("Python's `math.floor(a)`."),
    OpDef::new("math::ceil(Any a) -> Any", |args| whole_float(args, Func::CeilToInt, f64::ceil))
        .doc("Python's `math.ceil(a)`."),
    OpDef::new("torch::sym_not(Any a) -> Any", |args| match number(args, 0)? {
        Value::SymBool(_) => symbolic(args, Func::Not),
        Value::Bool(it) => Ok(vec![Output::Value(Value::Bool(!it))]),
        other => Err(args.invalid(format!("takes a bool, and got a {}", other.kind_name()))),
    })
    .doc("PyTorch's `torch.sym_not(a)`."),
    OpDef::new("torch::sym_int(Any a) -> Any", |args| whole_float(args, Func::TruncToInt, f64::trunc))
        .doc("PyTorch's `torch.sym_int(a)`."),
    OpDef::new("torch::sym_float(Any a) -> Any", |args| match number(args, 0)?.as_scalar() {
        Some(it) => float(it.to_f64()),
        None => symbolic(args, Func::ToFloat),
    })
    .doc("PyTorch's `torch.sym_float(a)`."),
    OpDef::new("torch::sym_sqrt(Any a) -> Any", |args| match number(args, 0)?.as_scalar() {
        Some(it) => float(it.to_f64().sqrt()),
        None => symbolic(args, Func::Sqrt),
    })
    .doc("PyTorch's `torch.sym_sqrt(a)`."),
    OpDef::new("torch::sym_max(Any a, Any b) -> Any", |args| {
        arithmetic(args, Some(Func::Max), |a, b| a.max(b), |a, b| if b > a { b } else { a })
    })
    .doc("PyTorch's `torch.sym_max(a, b)`.")
    .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE)),
    OpDef::new("torch::sym_min(Any a, Any b) -> Any", |args| {
        arithmetic(args, Some(Func::Min), |a, b| a.min(b), |a, b| if b < a { b } else { a })
    })
    .doc("PyTorch's `torch.sym_min(a, b)`.")
    .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE)),
    OpDef::new("torch::sym_ite(Any b, Any t, Any f) -> Any", |args| match number(args, 0)? {
        Value::Bool(it) => Ok(vec![Output::Value(number(args, if it { 1 } else { 2 })?)]),
        Value::SymBool(_) => symbolic(args, Func::Where),
        other => Err(args.invalid(format!("takes a bool, and got a {}", other.kind_name()))),
    })
    .doc("PyTorch's `torch.sym_ite(b, t, f)`: `t` where `b` holds, else `f`."),
    OpDef::new("aten::item(Tensor self) -> Scalar", item).decompose(view::decompose::item).doc("The only element."),
    OpDef::new("aten::_local_scalar_dense(Tensor self) -> Scalar", first_item)
        .tags(Tags::CORE)
        .doc("The only element, or else the first one."),
    OpDef::new("aten::_assert_scalar(Scalar self, str assert_msg) -> ()", assert_scalar)
        .doc("Refuses to go on unless the number is true.")
        .tags(Tags::SIDE_EFFECT),
    OpDef::new("aten::_assert_async(Tensor self) -> ()", |_| Ok(Vec::new()))
        .doc("Refuses to go on unless the only element is true.")
        .tags(Tags::SIDE_EFFECT),
    OpDef::new("aten::_assert_async.msg(Tensor self, str assert_msg) -> ()", |_| Ok(Vec::new()))
        .doc("Refuses to go on unless the only element is true, with a message.")
        .tags(Tags::SIDE_EFFECT),
    OpDef::new("aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()", |_| Ok(Vec::new()))
        .doc("Refuses to go on unless all matrices of a batch were factored: the numbers that say so are zero.")
        .tags(Tags::SIDE_EFFECT),
    OpDef::new("aten::sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", constrain)
        .doc("Refuses to go on unless the number is in the range.")
        .tags(Tags::SIDE_EFFECT),
    OpDef::new("aten::sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", constrain)
        .doc("Refuses to go on unless the number is in the range; the number is a size.")
        .tags(Tags::SIDE_EFFECT),
];

fn dim_of(args: &Args<'_, TensorMeta>, dims: &[SymInt]) -> Result<Vec<Output>> {
    let dim = normalize_dim(args, args.int(1)?, dims.len())?;
    int(dims.get(dim).ok_or_else(|| args.bad_shape("a 0-d tensor has no dimensions"))?.clone())
}

fn int(value: SymInt) -> Result<Vec<Output>> {
    let value = value.check().map_err(|problem| Diagnostic::new(Code::InvalidArgument, problem.to_string()))?;
    Ok(vec![Output::Value(Value::Int(value))])
}

fn float(value: f64) -> Result<Vec<Output>> {
    Ok(vec![Output::Value(Value::Float(value))])
}

/// A number as it was given.
fn number(args: &Args<'_, TensorMeta>, index: usize) -> Result<Number> {
    match &args.values[index] {
        it if it.as_expr().is_some() => Ok(it.clone()),
        other => Err(args.unsupported(format!("{} of a {} is not implemented", args.op.name, other.kind_name()))),
    }
}

/// A number whose value has to be known.
fn known(args: &Args<'_, TensorMeta>, index: usize) -> Result<Scalar> {
    let number = number(args, index)?;
    number
        .as_scalar()
        .ok_or_else(|| args.unsupported(format!("{} of an unknown number is not implemented", args.op.name)))
}

/// A function of numbers that are not all known.
fn symbolic(args: &Args<'_, TensorMeta>, func: Func) -> Result<Vec<Output>> {
    let exprs =
        (0..args.values.len()).map(|index| Ok(number(args, index)?.as_expr())).collect::<Result<Option<Vec<_>>>>()?;
    let Some(exprs) = exprs else { return Err(args.unsupported("a complex number does not mix with symbols")) };
    let expr = call(func, exprs).map_err(|problem| args.unsupported(problem.message()))?;
    match expr.invalid() {
        Some(problem) => Err(args.invalid(problem.reason())),
        None => Ok(vec![Output::Value(expr.into())]),
    }
}

fn all_known(args: &Args<'_, TensorMeta>) -> bool {
    args.values.iter().all(|it| it.as_scalar().is_some())
}

/// An int; Python's bool is one.
fn whole(args: &Args<'_, TensorMeta>, number: &Number) -> Result<SymInt> {
    match number {
        Value::Int(it) => Ok(it.clone()),
        Value::Bool(it) => Ok(SymInt::from(*it as i64)),
        other => Err(args.invalid(format!("takes an int, and got a {}", other.kind_name()))),
    }
}

/// Ints give an int; where one is a float, both are. `func` is the function of floats that are not known, if there is one.
fn arithmetic(
    args: &Args<'_, TensorMeta>,
    func: Option<Func>,
    of_ints: fn(&SymInt, &SymInt) -> SymInt,
    of_floats: fn(f64, f64) -> f64,
) -> Result<Vec<Output>> {
    let (a, b) = (number(args, 0)?, number(args, 1)?);
    let is_float = |it: &Number| matches!(it, Value::Float(_) | Value::SymFloat(_));
    if is_float(&a) || is_float(&b) {
        if let (Some(func), false) = (func, all_known(args)) {
            return symbolic(args, func);
        }
        return float(of_floats(known(args, 0)?.to_f64(), known(args, 1)?.to_f64()));
    }
    int(of_ints(&whole(args, &a)?, &whole(args, &b)?))
}

fn refuse_zero_divisor(args: &Args<'_, TensorMeta>) -> Result<()> {
    match number(args, 1)?.as_scalar() {
        Some(divisor) if divisor.to_f64() == 0.0 => Err(args.invalid("division by zero")),
        Some(_) | None => Ok(()),
    }
}

fn true_division(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    refuse_zero_divisor(args)?;
    if !all_known(args) {
        let is_int = |it: &Number| matches!(it, Value::Int(_));
        return symbolic(args, if args.values.iter().all(is_int) { Func::IntTrueDiv } else { Func::FloatTrueDiv });
    }
    let (a, b) = (known(args, 0)?, known(args, 1)?);
    // Python rounds the quotient of two ints once; beyond 2^53 the conversion would round first.
    let is_exact = |it: Scalar| !matches!(it, Scalar::Int(it) if it.unsigned_abs() > 1 << 53);
    if matches!((a, b), (Scalar::Int(_), Scalar::Int(_))) && !(is_exact(a) && is_exact(b)) {
        return Err(args.unsupported("dividing ints beyond 2^53 is not implemented"));
    }
    float(a.to_f64() / b.to_f64())
}

/// CPython's `float_floor_div`: the quotient is taken of what the remainder leaves, so that it is exact.
fn python_floor_division(a: f64, b: f64) -> f64 {
    let quotient = (a - python_modulo(a, b)) / b;
    if quotient == 0.0 {
        return 0.0f64.copysign(a / b);
    }
    let floor = quotient.floor();
    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
}

fn python_modulo(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest.abs().copysign(b) }
}

fn power(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    match (&args.values[0], &args.values[1]) {
        (Value::SymFloat(_), _) | (_, Value::SymFloat(_)) => return symbolic(args, Func::FloatPow),
        (Value::Int(_), Value::Int(exponent)) if exponent.is_symbolic() => return symbolic(args, Func::PowByNatural),
        _ => {}
    }
    let (base, exponent) = (number(args, 0)?, known(args, 1)?);
    match (&base, exponent) {
        (Value::Int(_) | Value::Bool(_), Scalar::Int(exponent)) if exponent >= 0 => {
            let exponent = u32::try_from(exponent).map_err(|_| args.invalid("the exponent is too large"))?;
            int(whole(args, &base)?.pow(exponent))
        }
        _ => {
            let (base, exponent) = (known(args, 0)?.to_f64(), exponent.to_f64());
            if base == 0.0 && exponent < 0.0 {
                return Err(args.invalid("0.0 cannot be raised to a negative power"));
            }
            if base < 0.0 && base.is_finite() && exponent.is_finite() && exponent.fract() != 0.0 {
                return Err(args.unsupported("a power that is a complex number is not implemented"));
            }
            float(base.powf(exponent))
        }
    }
}

/// Compares exactly, ints with floats too: `holds` is told the order, of which there is none with a NaN.
fn compare(args: &Args<'_, TensorMeta>, func: Func, holds: fn(Option<Ordering>) -> bool) -> Result<Vec<Output>> {
    if !all_known(args) {
        return symbolic(args, func);
    }
    let order = match (known(args, 0)?, known(args, 1)?) {
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(&b),
        (Scalar::Float(a), b) => order(b.to_i64(), a).map(Ordering::reverse),
        (a, Scalar::Float(b)) => order(a.to_i64(), b),
        (a, b) => Some(a.to_i64().cmp(&b.to_i64())),
    };
    Ok(vec![Output::Value(Value::Bool(holds(order)))])
}

fn order(int: i64, float: f64) -> Option<Ordering> {
    // Every int of 64 bits lies between these two, which are exact as floats.
    const END: f64 = 9223372036854775808.0;
    match float {
        it if it.is_nan() => None,
        it if it >= END => Some(Ordering::Less),
        it if it < -END => Some(Ordering::Greater),
        it => {
            let whole = it.floor();
            Some(int.cmp(&(whole as i64)).then(if it > whole { Ordering::Less } else { Ordering::Equal }))
        }
    }
}

/// Bools give a bool, ints an int.
fn bitwise(args: &Args<'_, TensorMeta>, func: Func, f: fn(i64, i64) -> i64) -> Result<Vec<Output>> {
    if args.values.iter().any(|it| matches!(it, Value::SymBool(_))) {
        return symbolic(args, func);
    }
    match (known(args, 0)?, known(args, 1)?) {
        (Scalar::Bool(a), Scalar::Bool(b)) => Ok(vec![Output::Value(Value::Bool(f(a as i64, b as i64) != 0))]),
        (Scalar::Float(_) | Scalar::Complex(_), _) | (_, Scalar::Float(_) | Scalar::Complex(_)) => {
            Err(args.invalid("takes ints or bools, and got a float"))
        }
        (a, b) => int(SymInt::from(f(a.to_i64(), b.to_i64()))),
    }
}

fn shift(args: &Args<'_, TensorMeta>, f: fn(i64, u32) -> Option<i64>) -> Result<Vec<Output>> {
    let (value, count) = (args.int(0)?, args.int(1)?);
    let count = u32::try_from(count).map_err(|_| args.invalid("negative shift count"))?;
    int(SymInt::from(f(value, count).ok_or_else(|| args.invalid("the result does not fit 64 bits"))?))
}

/// A float as an int, rounded.
fn whole_float(args: &Args<'_, TensorMeta>, func: Func, round: fn(f64) -> f64) -> Result<Vec<Output>> {
    match number(args, 0)? {
        Value::SymFloat(_) => symbolic(args, func),
        Value::Float(it) => {
            let rounded = round(it);
            // The bounds are exact as floats; a cast beyond them would saturate in silence.
            if !(i64::MIN as f64..-(i64::MIN as f64)).contains(&rounded) {
                return Err(args.invalid(format!("{it} does not fit 64 bits")));
            }
            int(SymInt::from(rounded as i64))
        }
        other => int(whole(args, &other)?),
    }
}

fn item(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let one = SymInt::from(1);
    if args.tensor(0)?.sizes.iter().any(|it| it.as_int().is_some() && *it != one) {
        return Err(args.bad_shape("a Tensor with more or less than one element cannot be converted to Scalar"));
    }
    Ok(vec![Output::Unknown(args.new_item(args.tensor(0)?.dtype))])
}

/// What `item` calls once it has counted the elements: nobody counts them here.
fn first_item(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    if args.tensor(0)?.sizes.contains(&SymInt::ZERO) {
        return Err(args.bad_shape("_local_scalar_dense: Empty tensor not supported"));
    }
    Ok(vec![Output::Unknown(args.new_item(args.tensor(0)?.dtype))])
}

/// Whether a number is not known before the program runs, so that nothing can be said about it.
fn is_symbolic(value: &Number) -> bool {
    value.as_scalar().is_none() && value.as_expr().is_some()
}

/// What an assertion gives: nothing where it has been seen to hold, no result at all where a run has to see.
fn asserted(value: &Number) -> Vec<Output> {
    if is_symbolic(value) { Vec::new() } else { vec![Output::Value(Value::None)] }
}

fn assert_scalar(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let holds = match &args.values[0] {
        Value::SymBool(condition) => args.assume(condition),
        number if is_symbolic(number) => true,
        Value::Complex(it) => it.re != 0.0 || it.im != 0.0,
        _ => known(args, 0)?.to_f64() != 0.0,
    };
    if !holds {
        return Err(Diagnostic::new(Code::AssertionFailed, args.str(1)?));
    }
    Ok(asserted(&args.values[0]))
}

fn constrain(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (min, max) = (args.opt_int(1)?, args.opt_int(2)?);
    let size = match &args.values[0] {
        Value::Int(size) => size.clone(),
        _ => known(args, 0)?.to_i64().into(),
    };
    // What is not a whole number is refused, and a size is not negative.
    check_fits(known(args, 0).unwrap_or(Scalar::Int(0)), DType::Int64)?;
    let is_size = args.op.schema.name.ends_with("for_size");
    if is_size && max.is_some_and(|max| max <= 2) {
        let what = format!("Max value to constrain_range_for_size must be greater than 2. got: {}", max.unwrap_or(0));
        return Err(args.invalid(what));
    }
    let min = if is_size { Some(min.unwrap_or(0)) } else { min };
    let holds_min = min.is_none_or(|min| args.assume(&SymBool::ge(&size, &min.into())));
    if !(holds_min && max.is_none_or(|max| args.assume(&SymBool::le(&size, &max.into())))) {
        let bound = |it: Option<i64>| it.map_or("None".to_string(), |it| it.to_string());
        let what = format!("Invalid value range for {size} between [{}, {}].", bound(min), bound(max));
        return Err(Diagnostic::new(Code::AssertionFailed, what));
    }
    Ok(asserted(&args.values[0]))
}
