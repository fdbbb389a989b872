//! Values of expressions, with Python's arithmetic.

use crate::expr::{Call, Expr, Invalid};
use crate::float::FloatRef;
use crate::int::IntRef;
use crate::poly::{Atom, Term};
use crate::{Func, SymBool, SymFloat, SymInt, Symbol};
use std::cmp::Ordering;
use std::fmt;
use tracefx_core::{Code, Diagnostic};

/// A number or truth value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A Python `int` that fits 64 bits.
    Int(i64),
    /// A Python `float`.
    Float(f64),
    /// A Python `bool`.
    Bool(bool),
}

impl Value {
    fn to_f64(self) -> f64 {
        match self {
            Value::Int(it) => it as f64,
            Value::Float(it) => it,
            Value::Bool(it) => f64::from(u8::from(it)),
        }
    }

    fn to_int(self, func: Func) -> Result<i64, EvalError> {
        match self {
            Value::Int(it) => Ok(it),
            Value::Bool(it) => Ok(it.into()),
            Value::Float(_) => Err(EvalError::Domain(func)),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(it) => it.fmt(f),
            Value::Float(it) => f.write_str(&tracefx_core::python_float(*it)),
            Value::Bool(it) => f.write_str(if *it { "True" } else { "False" }),
        }
    }
}

/// Why an expression could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// A symbol has no value.
    Unbound(Symbol),
    /// A symbol that stands for an integer was bound to something else.
    NotAnInteger(Symbol),
    /// A number left 64 bits, or something was divided by zero.
    Invalid(Invalid),
    /// A function was given an argument for which it has no value.
    Domain(Func),
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Unbound(it) => write!(f, "the symbol {it} has no value yet"),
            EvalError::NotAnInteger(it) => {
                write!(f, "the symbol {it} stands for an integer, but was bound to something else")
            }
            EvalError::Invalid(it) => write!(f, "the expression {}", it.reason()),
            EvalError::Domain(it) => write!(f, "{} has no value for its argument", it.name()),
        }
    }
}

impl std::error::Error for EvalError {}

impl From<EvalError> for Diagnostic {
    fn from(error: EvalError) -> Self {
        Diagnostic::new(Code::InvalidArgument, error.to_string())
    }
}

const OVERFLOW: EvalError = EvalError::Invalid(Invalid::Overflow);
const DIVISION_BY_ZERO: EvalError = EvalError::Invalid(Invalid::DivisionByZero);

/// The values of symbols.
pub type Bindings<'a> = dyn Fn(&Symbol) -> Option<Value> + 'a;

impl SymInt {
    /// Like [`eval`](Self::eval), with bindings that may be floats, for expressions such as `TruncToInt(zuf0)`.
    ///
    /// # Errors
    ///
    /// As [`eval`](Self::eval).
    pub fn eval_with(&self, bindings: &Bindings<'_>) -> Result<i64, EvalError> {
        match self.view() {
            IntRef::Int(it) => Ok(it),
            IntRef::Invalid(it) => Err(EvalError::Invalid(it)),
            IntRef::Poly(poly) => poly
                .terms
                .iter()
                .try_fold(0i64, |sum, term| sum.checked_add(eval_term(term, bindings)?).ok_or(OVERFLOW)),
        }
    }
}

fn eval_term(term: &Term, bindings: &Bindings<'_>) -> Result<i64, EvalError> {
    let mut product = term.coeff;
    for factor in &term.factors {
        let value = match &factor.atom {
            Atom::Symbol(it) => match bindings(it) {
                Some(Value::Int(value)) => value,
                Some(Value::Bool(value)) => value.into(),
                Some(Value::Float(_)) => return Err(EvalError::NotAnInteger(it.clone())),
                None => return Err(EvalError::Unbound(it.clone())),
            },
            Atom::Call(it) => eval_call(it, bindings)?.to_int(it.func)?,
        };
        let value = value.checked_pow(factor.power).ok_or(OVERFLOW)?;
        product = product.checked_mul(value).ok_or(OVERFLOW)?;
    }
    Ok(product)
}

impl SymFloat {
    /// The value under bindings of the symbols.
    ///
    /// # Errors
    ///
    /// If a symbol is not bound, or a function has no value for its argument.
    pub fn eval(&self, bindings: &Bindings<'_>) -> Result<f64, EvalError> {
        match self.view() {
            FloatRef::Const(it) => Ok(it),
            FloatRef::Rational(numerator, denominator) => int_true_div(numerator, denominator),
            FloatRef::Symbol(it) => bindings(it).map(Value::to_f64).ok_or_else(|| EvalError::Unbound(it.clone())),
            FloatRef::Call(it) => eval_call(it, bindings).map(Value::to_f64),
            FloatRef::Invalid(it) => Err(EvalError::Invalid(it)),
        }
    }
}

impl SymBool {
    /// The truth value under bindings of the symbols.
    ///
    /// # Errors
    ///
    /// If a symbol is not bound, or a function has no value for its argument.
    pub fn eval(&self, bindings: &Bindings<'_>) -> Result<bool, EvalError> {
        match self {
            SymBool::Const(it) => Ok(*it),
            SymBool::Invalid(it) => Err(EvalError::Invalid(*it)),
            SymBool::Call(it) => match eval_call(&it.0, bindings)? {
                Value::Bool(it) => Ok(it),
                Value::Int(_) | Value::Float(_) => Err(EvalError::Domain(it.func())),
            },
        }
    }
}

impl Expr {
    /// The value under bindings of the symbols.
    ///
    /// # Errors
    ///
    /// If a symbol is not bound, a number leaves 64 bits, something is divided by zero, or a function has no value for
    /// its argument.
    pub fn eval(&self, bindings: &Bindings<'_>) -> Result<Value, EvalError> {
        match self {
            Expr::Int(it) => it.eval_with(bindings).map(Value::Int),
            Expr::Float(it) => it.eval(bindings).map(Value::Float),
            Expr::Bool(it) => it.eval(bindings).map(Value::Bool),
        }
    }
}

fn eval_call(call: &Call, bindings: &Bindings<'_>) -> Result<Value, EvalError> {
    match (call.func, &*call.args) {
        // Python looks at the branch that is taken alone, and at no more parts than it needs.
        (Func::Where, [Expr::Bool(condition), yes, no]) => {
            if condition.eval(bindings)? {
                yes.eval(bindings)
            } else {
                no.eval(bindings)
            }
        }
        (Func::And | Func::Or, args) => {
            let deciding = Value::Bool(call.func == Func::Or);
            for arg in args {
                if arg.eval(bindings)? == deciding {
                    return Ok(deciding);
                }
            }
            Ok(Value::Bool(call.func == Func::And))
        }
        (func, args) => {
            let values: Vec<Value> = args.iter().map(|arg| arg.eval(bindings)).collect::<Result<_, _>>()?;
            apply(func, &values)
        }
    }
}

/// Applies a function to known values, of the number and sorts that it takes.
pub(crate) fn apply(func: Func, args: &[Value]) -> Result<Value, EvalError> {
    let int = |at: usize| args[at].to_int(func);
    let float = |at: usize| args[at].to_f64();
    let unless = |outside: bool, value: f64| if outside { Err(EvalError::Domain(func)) } else { Ok(value) };
    use Func::*;
    Ok(match func {
        FloorDiv | CleanDiv => Value::Int(checked_floor_div(int(0)?, int(1)?)?),
        Mod | PythonMod => Value::Int(checked_modulo(int(0)?, int(1)?)?),
        ModularIndexing => Value::Int(checked_modulo(checked_floor_div(int(0)?, int(1)?)?, int(2)?)?),
        Max | Min => {
            let wanted = if func == Max { Ordering::Greater } else { Ordering::Less };
            // Like Python's, the first of equals.
            let mut best = args[0];
            for arg in &args[1..] {
                if compare(*arg, best) == Some(wanted) {
                    best = *arg;
                }
            }
            best
        }
        Pow | FloatPow | PowByNatural => match (args[0], args[1]) {
            (Value::Int(base), Value::Int(exponent)) if func != FloatPow => Value::Int(int_pow(func, base, exponent)?),
            (base, exponent) => Value::Float(float_pow(func, base.to_f64(), exponent.to_f64())?),
        },
        Where => match args[0] {
            Value::Bool(true) => args[1],
            Value::Bool(false) => args[2],
            Value::Int(_) | Value::Float(_) => return Err(EvalError::Domain(func)),
        },
        Identity => args[0],
        IsNonOverlappingAndDenseIndicator => {
            let values: Vec<i64> = (0..args.len()).map(int).collect::<Result<_, _>>()?;
            let (sizes, strides) = values.split_at(values.len() / 2);
            Value::Int(is_non_overlapping_and_dense(sizes, strides).into())
        }
        TruncToInt => rounded_int(args[0], f64::trunc)?,
        FloorToInt => rounded_int(args[0], f64::floor)?,
        CeilToInt => rounded_int(args[0], f64::ceil)?,
        RoundToInt => rounded_int(args[0], f64::round_ties_even)?,
        Add => numeric_fold(args, i64::checked_add, |a, b| a + b)?,
        Mul => numeric_fold(args, i64::checked_mul, |a, b| a * b)?,
        IntTrueDiv => Value::Float(int_true_div(int(0)?, int(1)?)?),
        FloatTrueDiv => {
            if float(1) == 0.0 {
                return Err(DIVISION_BY_ZERO);
            }
            Value::Float(float(0) / float(1))
        }
        ToFloat => Value::Float(float(0)),
        TruncToFloat => Value::Float(float(0).trunc()),
        RoundDecimal => Value::Float(round_decimal(float(0), int(1)?)?),
        Sqrt => Value::Float(unless(float(0) < 0.0, float(0).sqrt())?),
        Cos => Value::Float(unless(float(0).is_infinite(), float(0).cos())?),
        Sin => Value::Float(unless(float(0).is_infinite(), float(0).sin())?),
        Tan => Value::Float(unless(float(0).is_infinite(), float(0).tan())?),
        Cosh => Value::Float(not_overflown(float(0), f64::cosh)?),
        Sinh => Value::Float(not_overflown(float(0), f64::sinh)?),
        Tanh => Value::Float(float(0).tanh()),
        Asin => Value::Float(unless(float(0).abs() > 1.0, float(0).asin())?),
        Acos => Value::Float(unless(float(0).abs() > 1.0, float(0).acos())?),
        Atan => Value::Float(float(0).atan()),
        Asinh => Value::Float(float(0).asinh()),
        Exp => Value::Float(not_overflown(float(0), f64::exp)?),
        Log => Value::Float(unless(float(0) <= 0.0, float(0).ln())?),
        Log2 => Value::Float(unless(float(0) <= 0.0, float(0).log2())?),
        Eq | Ne | Lt | Le | Gt | Ge => Value::Bool(holds(func, compare(args[0], args[1]))),
        And => Value::Bool(args.iter().all(|it| *it == Value::Bool(true))),
        Or => Value::Bool(args.contains(&Value::Bool(true))),
        Not => Value::Bool(args[0] == Value::Bool(false)),
    })
}

/// Whether a relation holds between numbers that compare like this; `None` is a comparison with NaN.
pub(crate) fn holds(func: Func, order: Option<Ordering>) -> bool {
    match func {
        Func::Eq => order == Some(Ordering::Equal),
        Func::Ne => order != Some(Ordering::Equal),
        Func::Lt => order == Some(Ordering::Less),
        Func::Le => order.is_some_and(Ordering::is_le),
        Func::Gt => order == Some(Ordering::Greater),
        Func::Ge => order.is_some_and(Ordering::is_ge),
        _ => unreachable!("{} is not a relation", func.name()),
    }
}

/// Compares exactly, as Python does: an int is not rounded to a float first.
pub(crate) fn compare(a: Value, b: Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(&b),
        (Value::Float(a), b) => compare_int_with_float(b.to_int(Func::Eq).ok()?, a).map(Ordering::reverse),
        (a, Value::Float(b)) => compare_int_with_float(a.to_int(Func::Eq).ok()?, b),
        (a, b) => Some(a.to_int(Func::Eq).ok()?.cmp(&b.to_int(Func::Eq).ok()?)),
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

fn compare_int_with_float(a: i64, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        None
    } else if b >= TWO_TO_63 {
        Some(Ordering::Less)
    } else if b < -TWO_TO_63 {
        Some(Ordering::Greater)
    } else {
        // The whole part fits i64 exactly; the fraction decides between equals.
        Some(a.cmp(&(b.trunc() as i64)).then_with(|| 0.0.partial_cmp(&b.fract()).unwrap_or(Ordering::Equal)))
    }
}

fn checked_floor_div(a: i64, b: i64) -> Result<i64, EvalError> {
    if b == 0 { Err(DIVISION_BY_ZERO) } else { floor_div(a, b).ok_or(OVERFLOW) }
}

fn checked_modulo(a: i64, b: i64) -> Result<i64, EvalError> {
    if b == 0 { Err(DIVISION_BY_ZERO) } else { Ok(modulo(a, b)) }
}

/// Python's `a // b` for `b` other than 0; `None` where it leaves 64 bits.
pub(crate) fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// Python's `a % b` for `b` other than 0.
pub(crate) fn modulo(a: i64, b: i64) -> i64 {
    let rest = a.wrapping_rem(b);
    if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
}

/// Python's `a / b` of integers: the exact quotient, rounded once.
pub(crate) fn int_true_div(a: i64, b: i64) -> Result<f64, EvalError> {
    const EXACT: u64 = 1 << 53;
    if b == 0 {
        return Err(DIVISION_BY_ZERO);
    }
    let (dividend, divisor) = (a.unsigned_abs(), b.unsigned_abs());
    if dividend <= EXACT && divisor <= EXACT {
        return Ok(a as f64 / b as f64);
    }
    // A quotient of at least 55 bits, whose last bit also says whether there was a rest, rounds as the exact one does.
    let shift = (55 + divisor.ilog2()).saturating_sub(dividend.checked_ilog2().unwrap_or(0));
    let shifted = u128::from(dividend) << shift;
    let quotient = (shifted / u128::from(divisor)) | u128::from(shifted % u128::from(divisor) != 0);
    // The power of two is exact, and so is the product: the shift is at most 118.
    let size = quotient as f64 * f64::from_bits(u64::from(1023 - shift) << 52);
    Ok(if (a < 0) != (b < 0) { -size } else { size })
}

fn int_pow(func: Func, base: i64, exponent: i64) -> Result<i64, EvalError> {
    match (base, exponent) {
        (_, ..0) => Err(EvalError::Domain(func)),
        (0 | 1, _) => Ok(if exponent == 0 { 1 } else { base }),
        (-1, _) => Ok(if exponent % 2 == 0 { 1 } else { -1 }),
        (_, _) => u32::try_from(exponent).ok().and_then(|it| base.checked_pow(it)).ok_or(OVERFLOW),
    }
}

fn float_pow(func: Func, base: f64, exponent: f64) -> Result<f64, EvalError> {
    if base == 0.0 && exponent < 0.0 {
        return Err(DIVISION_BY_ZERO);
    }
    // Python gives a complex number.
    if base < 0.0 && base.is_finite() && exponent.is_finite() && exponent.fract() != 0.0 {
        return Err(EvalError::Domain(func));
    }
    let power = base.powf(exponent);
    if power.is_infinite() && base.is_finite() && exponent.is_finite() { Err(OVERFLOW) } else { Ok(power) }
}

fn not_overflown(arg: f64, function: fn(f64) -> f64) -> Result<f64, EvalError> {
    let value = function(arg);
    if value.is_infinite() && arg.is_finite() { Err(OVERFLOW) } else { Ok(value) }
}

fn rounded_int(value: Value, round: fn(f64) -> f64) -> Result<Value, EvalError> {
    match value {
        Value::Int(_) => Ok(value),
        Value::Bool(it) => Ok(Value::Int(it.into())),
        Value::Float(it) => {
            let whole = round(it);
            // Both bounds are exact floats; NaN fails both.
            if (-TWO_TO_63..TWO_TO_63).contains(&whole) { Ok(Value::Int(whole as i64)) } else { Err(OVERFLOW) }
        }
    }
}

fn numeric_fold(
    args: &[Value],
    ints: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
) -> Result<Value, EvalError> {
    let mut result = args[0];
    for arg in &args[1..] {
        result = match (result, *arg) {
            (Value::Int(a), Value::Int(b)) => Value::Int(ints(a, b).ok_or(OVERFLOW)?),
            (a, b) => Value::Float(floats(a.to_f64(), b.to_f64())),
        };
    }
    Ok(result)
}

/// Python's `round(value, digits)`: to the nearest decimal, exact halves to even.
fn round_decimal(value: f64, digits: i64) -> Result<f64, EvalError> {
    // A float has at most 1074 binary digits after the point, and 17 decimal ones carry it from there on.
    if !value.is_finite() || digits > 340 {
        return Ok(value);
    }
    if digits < -308 {
        return Ok(0.0_f64.copysign(value));
    }
    if let Ok(digits) = usize::try_from(digits) {
        // Rust prints the exact binary value, rounded to nearest, halves to even, as Python does.
        return format!("{value:.digits$}").parse().map_err(|_| EvalError::Domain(Func::RoundDecimal));
    }
    // `value` is whole digits and a fraction: round the digits to a power of ten, the fraction breaking ties.
    let places = digits.unsigned_abs() as usize;
    let text = format!("{:.0}", value.abs().trunc());
    let fraction = value.fract() != 0.0;
    let cut = text.len().saturating_sub(places);
    let (kept, dropped) = if text.len() < places { ("", "0") } else { text.split_at(cut) };
    let first = dropped.as_bytes().first().copied().unwrap_or(b'0');
    let beyond = fraction || dropped.bytes().skip(1).any(|it| it != b'0');
    let odd = kept.bytes().last().is_some_and(|it| it % 2 == 1);
    let up = match first.cmp(&b'5') {
        Ordering::Less => false,
        Ordering::Equal => beyond || odd,
        Ordering::Greater => true,
    };
    let mut decimal: Vec<u8> = kept.bytes().collect();
    if up {
        let mut at = decimal.len();
        loop {
            if at == 0 {
                decimal.insert(0, b'1');
                break;
            }
            at -= 1;
            if decimal[at] == b'9' {
                decimal[at] = b'0';
            } else {
                decimal[at] += 1;
                break;
            }
        }
    }
    let decimal = String::from_utf8_lossy(&decimal);
    let size: f64 = format!("0{decimal}e{places}").parse().map_err(|_| EvalError::Domain(Func::RoundDecimal))?;
    if size.is_infinite() { Err(OVERFLOW) } else { Ok(size.copysign(value)) }
}

/// PyTorch's `eval_is_non_overlapping_and_dense`.
fn is_non_overlapping_and_dense(sizes: &[i64], strides: &[i64]) -> bool {
    if let ([size], [stride]) = (sizes, strides) {
        return *stride == 1 || *size < 2;
    }
    let mut dims: Vec<(i64, i64)> = strides.iter().copied().zip(sizes.iter().copied()).collect();
    dims.sort_by_key(|(stride, _)| *stride);
    let mut expected: i64 = 1;
    for (stride, size) in dims {
        if size == 1 {
            continue;
        }
        if stride != expected {
            return false;
        }
        expected = expected.saturating_mul(size);
    }
    true
}
