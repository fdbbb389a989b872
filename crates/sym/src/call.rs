//! Calls of functions, simplified where PyTorch does so.

use crate::boolean::BoolCall;
use crate::expr::{Call, Expr, Invalid};
use crate::int::IntRef;
use crate::poly::{Atom, Term};
use crate::{EvalError, Func, SymBool, SymFloat, SymInt, Value, division, eval, order};
use tracefx_core::{Code, Diagnostic, Result};

/// A function applied to arguments.
///
/// ```
/// use tracefx_sym::{Func, SymInt, Symbol, call};
/// let s0 = SymInt::from(Symbol::size("s0"));
/// let half = call(Func::FloorDiv, vec![s0.into(), SymInt::from(2).into()]).unwrap();
/// assert_eq!(half.to_string(), "(s0//2)");
/// assert!(call(Func::Not, vec![half]).is_err());
/// ```
///
/// # Errors
///
/// If there are too many or too few arguments, or one is of the wrong sort. A call without a value, such as a division
/// by zero, is no error but an invalid expression.
pub fn call(func: Func, args: Vec<Expr>) -> Result<Expr> {
    if !func.arity().accepts(args.len()) {
        let message = format!("{} does not take {} arguments", func.name(), args.len());
        return Err(Diagnostic::new(Code::ExpressionMalformed, message));
    }
    use Func::*;
    Ok(match func {
        FloorDiv | CleanDiv => {
            let [a, b] = ints(func, args)?;
            Expr::Int(division::floor_div(func, &a, &b))
        }
        Mod | PythonMod => {
            let [a, b] = ints(func, args)?;
            Expr::Int(division::modulo(func, &a, &b))
        }
        ModularIndexing => {
            let [base, divisor, modulus] = ints(func, args)?;
            if base == 0 || modulus == 1 {
                return Ok(Expr::Int(SymInt::ZERO));
            }
            fold(func, vec![Expr::Int(base), Expr::Int(divisor), Expr::Int(modulus)], Sort::Int)
        }
        Max | Min => match common_sort(func, &args)? {
            Sort::Int => Expr::Int(extremum(func, args)),
            Sort::Float => fold(func, args, Sort::Float),
        },
        Pow => power(args)?,
        PowByNatural => {
            let [base, exponent] = ints(func, args)?;
            match exponent.as_int().map(u32::try_from) {
                Some(Ok(exponent)) => Expr::Int(base.pow(exponent)),
                Some(Err(_)) | None => fold(func, vec![Expr::Int(base), Expr::Int(exponent)], Sort::Int),
            }
        }
        Where => {
            let Expr::Bool(condition) = &args[0] else { return Err(wrong_sort(func, &args[0])) };
            let sort = common_sort(func, &args[1..])?;
            match condition.as_bool() {
                Some(it) => args[if it { 1 } else { 2 }].clone(),
                None => fold(func, args, sort),
            }
        }
        Identity => {
            let sort = common_sort(func, &args)?;
            fold(func, args, sort)
        }
        IsNonOverlappingAndDenseIndicator => {
            all_ints(func, &args)?;
            fold(func, args, Sort::Int)
        }
        TruncToInt | FloorToInt | CeilToInt | RoundToInt => {
            common_sort(func, &args)?;
            fold(func, args, Sort::Int)
        }
        Add | Mul => match common_sort(func, &args)? {
            Sort::Int => {
                let ints = args.iter().filter_map(Expr::as_int);
                Expr::Int(if func == Add { ints.sum() } else { ints.product() })
            }
            Sort::Float => sum_or_product(func, args),
        },
        IntTrueDiv => {
            all_ints(func, &args)?;
            fold(func, args, Sort::Float)
        }
        RoundDecimal => {
            all_ints(func, &args[1..])?;
            common_sort(func, &args)?;
            fold(func, args, Sort::Float)
        }
        FloatTrueDiv | FloatPow | ToFloat | TruncToFloat | Sqrt | Cos | Cosh | Sin | Sinh | Tan | Tanh | Asin
        | Acos | Atan | Exp | Log | Log2 | Asinh => {
            common_sort(func, &args)?;
            fold(func, args, Sort::Float)
        }
        Eq | Ne | Lt | Le | Gt | Ge => {
            common_sort(func, &args)?;
            let [a, b] = exactly(args);
            Expr::Bool(relation(func, a, b))
        }
        And | Or => Expr::Bool(connective(func, bools(func, args)?)),
        Not => Expr::Bool(negation(bools(func, args)?.remove(0))),
    })
}

impl SymInt {
    /// The larger one.
    pub fn max(&self, other: &SymInt) -> SymInt {
        extremum(Func::Max, vec![Expr::Int(self.clone()), Expr::Int(other.clone())])
    }

    /// The smaller one.
    pub fn min(&self, other: &SymInt) -> SymInt {
        extremum(Func::Min, vec![Expr::Int(self.clone()), Expr::Int(other.clone())])
    }
}

/// The sorts of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Int,
    Float,
}

fn wrong_sort(func: Func, arg: &Expr) -> Diagnostic {
    let message = format!("{} does not take the {} {arg}", func.name(), arg.sort());
    Diagnostic::new(Code::ExpressionMalformed, message)
}

/// Float if one of the numbers is.
fn common_sort(func: Func, args: &[Expr]) -> Result<Sort> {
    let mut sort = Sort::Int;
    for arg in args {
        match arg {
            Expr::Int(_) => {}
            Expr::Float(_) => sort = Sort::Float,
            Expr::Bool(_) => return Err(wrong_sort(func, arg)),
        }
    }
    Ok(sort)
}

fn all_ints(func: Func, args: &[Expr]) -> Result<()> {
    match args.iter().find(|arg| arg.as_int().is_none()) {
        Some(arg) => Err(wrong_sort(func, arg)),
        None => Ok(()),
    }
}

fn exactly<T, const N: usize>(args: Vec<T>) -> [T; N] {
    args.try_into().unwrap_or_else(|_| unreachable!("the arity was checked"))
}

fn ints<const N: usize>(func: Func, args: Vec<Expr>) -> Result<[SymInt; N]> {
    let ints: Result<Vec<SymInt>> = args
        .into_iter()
        .map(|arg| match arg {
            Expr::Int(it) => Ok(it),
            Expr::Float(_) | Expr::Bool(_) => Err(wrong_sort(func, &arg)),
        })
        .collect();
    ints.map(exactly)
}

fn bools(func: Func, args: Vec<Expr>) -> Result<Vec<SymBool>> {
    args.into_iter()
        .map(|arg| match arg {
            Expr::Bool(it) => Ok(it),
            Expr::Int(_) | Expr::Float(_) => Err(wrong_sort(func, &arg)),
        })
        .collect()
}

/// The call, or its value if all arguments are known.
fn fold(func: Func, args: Vec<Expr>, sort: Sort) -> Expr {
    let known: Option<Vec<Value>> = args.iter().map(Expr::as_value).collect();
    if let Some(known) = known
        && func != Func::Identity
    {
        match eval::apply(func, &known) {
            Ok(value) => return value.into(),
            Err(EvalError::Invalid(it)) => {
                return match sort {
                    Sort::Int => Expr::Int(SymInt::of_invalid(it)),
                    Sort::Float => Expr::Float(SymFloat::of_invalid(it)),
                };
            }
            // It stays a call; who evaluates it gets the error.
            Err(EvalError::Domain(_) | EvalError::Unbound(_) | EvalError::NotAnInteger(_)) => {}
        }
    }
    let call = Call::new(func, args);
    match (sort, call) {
        (Sort::Int, Ok(it)) => Expr::Int(SymInt::of_atom(Atom::Call(it))),
        (Sort::Int, Err(it)) => Expr::Int(SymInt::of_invalid(it)),
        (Sort::Float, call) => Expr::Float(SymFloat::of_call(call)),
    }
}

fn power(args: Vec<Expr>) -> Result<Expr> {
    let sort = common_sort(Func::Pow, &args)?;
    if let (Sort::Int, [Expr::Int(base), Expr::Int(exponent)]) = (sort, args.as_slice())
        && let Some(exponent) = exponent.as_int()
    {
        return match u32::try_from(exponent) {
            Ok(exponent) => Ok(Expr::Int(base.pow(exponent))),
            Err(_) => {
                let message = format!("the power {exponent} of {base} is not an integer of 64 bits");
                Err(Diagnostic::new(Code::ExpressionMalformed, message))
            }
        };
    }
    Ok(fold(Func::Pow, args, sort))
}

/// `Max` or `Min` of integers: flat, without duplicates, with at most one number, and without parts that others absorb:
/// `Max(a, Min(a, b))` is `a`.
fn extremum(func: Func, args: Vec<Expr>) -> SymInt {
    let is_max = func == Func::Max;
    if let Some(invalid) = args.iter().fold(None, |it, arg| Invalid::of_either(it, arg.invalid())) {
        return SymInt::of_invalid(invalid);
    }
    let mut number: Option<i64> = None;
    let mut others: Vec<SymInt> = Vec::new();
    let mut queue: Vec<SymInt> = args.iter().filter_map(Expr::as_int).cloned().collect();
    while let Some(arg) = queue.pop() {
        if let Some(nested) = division::as_call(&arg, func) {
            queue.extend(nested.args.iter().filter_map(Expr::as_int).cloned());
            continue;
        }
        match arg.view() {
            IntRef::Int(value) => {
                number = Some(number.map_or(value, |it| if is_max { it.max(value) } else { it.min(value) }));
            }
            IntRef::Poly(_) | IntRef::Invalid(_) => others.push(arg),
        }
    }
    let mut others: Vec<Expr> = others.into_iter().map(Expr::Int).collect();
    others.sort_by(order::cmp_unordered_args);
    others.dedup();
    let opposite = if is_max { Func::Min } else { Func::Max };
    let absorbed: Vec<bool> = others.iter().map(|it| is_absorbed(it, opposite, number, &others)).collect();
    let mut absorbed = absorbed.into_iter();
    others.retain(|_| absorbed.next() != Some(true));
    if let (None, [Expr::Int(a), Expr::Int(b)]) = (number, others.as_slice())
        && let Some(a_is_larger) = larger_multiple(a, b)
    {
        return if a_is_larger == is_max { a.clone() } else { b.clone() };
    }
    if let (Some(number), [Expr::Int(only)]) = (number, others.as_slice()) {
        let only_is_larger = match number {
            0 => only.is_assumed_nonnegative(),
            1 => only.is_assumed_positive(),
            _ => false,
        };
        if only_is_larger {
            return if is_max { only.clone() } else { SymInt::new(number) };
        }
    }
    if let Some(number) = number {
        others.insert(0, Expr::Int(SymInt::new(number)));
    }
    if let [Expr::Int(only)] = others.as_slice() {
        return only.clone();
    }
    match Call::new(func, others) {
        Ok(it) => SymInt::of_atom(Atom::Call(it)),
        Err(it) => SymInt::of_invalid(it),
    }
}

/// Whether an argument of a `Max` is a `Min` (or the other way round) with a part that bounds it by another argument.
fn is_absorbed(arg: &Expr, opposite: Func, number: Option<i64>, others: &[Expr]) -> bool {
    let Some(inner) = arg.as_int().and_then(|it| division::as_call(it, opposite)) else { return false };
    inner.args.iter().any(|part| match (part.as_int().and_then(SymInt::as_int), number) {
        (Some(part), Some(number)) if opposite == Func::Min => part <= number,
        (Some(part), Some(number)) => part >= number,
        (Some(_), None) => false,
        (None, _) => others.contains(part),
    })
}

/// Of two multiples of one thing that is not negative, such as `s0` and `4*s0`: whether the first is the larger one.
fn larger_multiple(a: &SymInt, b: &SymInt) -> Option<bool> {
    let (IntRef::Poly(x), IntRef::Poly(y)) = (a.view(), b.view()) else { return None };
    let ([x], [y]) = (&*x.terms, &*y.terms) else { return None };
    let thing = SymInt::of_terms(vec![Term { coeff: 1, factors: x.factors.clone() }]);
    (x.factors == y.factors && thing.is_assumed_nonnegative()).then_some(x.coeff > y.coeff)
}

/// A sum or product of floats: flat, sorted, with at most one number.
fn sum_or_product(func: Func, args: Vec<Expr>) -> Expr {
    let mut number: Option<Value> = None;
    let mut others: Vec<Expr> = Vec::new();
    let mut queue: Vec<Expr> = args;
    queue.reverse();
    while let Some(arg) = queue.pop() {
        if let Expr::Float(it) = &arg
            && let Some(nested) = it.as_call(func)
        {
            queue.extend(nested.args.iter().rev().cloned());
            continue;
        }
        // A fraction stays one, as in sympy; it is a float only when it is evaluated.
        let value = arg.as_value().filter(|_| !matches!(&arg, Expr::Float(it) if it.is_fraction()));
        match (value, number) {
            (None, _) => others.push(arg),
            (Some(value), None) => number = Some(value),
            (Some(value), Some(so_far)) => match eval::apply(func, &[so_far, value]) {
                Ok(it) => number = Some(it),
                Err(_) => others.push(arg),
            },
        }
    }
    others.sort_by(order::cmp_exprs);
    let neutral = Value::Int(if func == Func::Add { 0 } else { 1 });
    if let Some(number) = number.filter(|it| *it != neutral || others.is_empty()) {
        let at = if func == Func::Add { others.len() } else { 0 };
        others.insert(at, number.into());
    }
    match others.len() {
        1 => others.remove(0),
        _ => Expr::Float(SymFloat::of_call(Call::new(func, others))),
    }
}

/// A relation of two numbers.
pub(crate) fn relation(func: Func, a: Expr, b: Expr) -> SymBool {
    if let Some(invalid) = Invalid::of_either(a.invalid(), b.invalid()) {
        return SymBool::Invalid(invalid);
    }
    if let (Expr::Int(x), Expr::Int(y)) = (&a, &b)
        && let Some(difference) = (x - y).as_int()
    {
        return SymBool::Const(eval::holds(func, difference.cmp(&0).into()));
    }
    if let (Some(x), Some(y)) = (a.as_value(), b.as_value()) {
        return SymBool::Const(eval::holds(func, eval::compare(x, y)));
    }
    SymBool::of_call(Call::new(func, vec![a, b]))
}

/// `And` or `Or`: flat, sorted, without duplicates and without known parts.
pub(crate) fn connective(func: Func, args: Vec<SymBool>) -> SymBool {
    // `true` decides an Or and says nothing in an And.
    let deciding = func == Func::Or;
    let mut others: Vec<Expr> = Vec::new();
    let mut invalid = None;
    for arg in args {
        match arg {
            SymBool::Const(it) if it == deciding => return SymBool::Const(deciding),
            SymBool::Const(_) => {}
            SymBool::Invalid(it) => invalid = Invalid::of_either(invalid, Some(it)),
            SymBool::Call(it) if it.func() == func => others.extend(it.args().iter().cloned()),
            SymBool::Call(it) => others.push(Expr::Bool(SymBool::Call(it))),
        }
    }
    if let Some(invalid) = invalid {
        return SymBool::Invalid(invalid);
    }
    others.sort_by(order::cmp_unordered_args);
    others.dedup();
    match others.as_slice() {
        [] => SymBool::Const(!deciding),
        [Expr::Bool(only)] => only.clone(),
        _ => SymBool::of_call(Call::new(func, others)),
    }
}

/// `Not`, which turns a relation into the opposite one.
pub(crate) fn negation(arg: SymBool) -> SymBool {
    match arg {
        SymBool::Const(it) => SymBool::Const(!it),
        SymBool::Invalid(it) => SymBool::Invalid(it),
        SymBool::Call(it) => {
            let opposite = match it.func() {
                Func::Eq => Some(Func::Ne),
                Func::Ne => Some(Func::Eq),
                Func::Lt => Some(Func::Ge),
                Func::Le => Some(Func::Gt),
                Func::Gt => Some(Func::Le),
                Func::Ge => Some(Func::Lt),
                _ => None,
            };
            match (opposite, it.func(), it.args()) {
                // The opposite of `<` is `>=` for integers alone: a comparison with NaN is false both ways.
                (Some(opposite), _, [Expr::Int(_), Expr::Int(_)]) => {
                    SymBool::of_call(Call::new(opposite, it.args().to_vec()))
                }
                (None, Func::Not, [Expr::Bool(inner)]) => inner.clone(),
                (_, _, _) => SymBool::of_call(Call::new(Func::Not, vec![Expr::Bool(SymBool::Call(BoolCall(it.0)))])),
            }
        }
    }
}

impl Expr {
    /// The value, if it is known.
    pub fn as_value(&self) -> Option<Value> {
        match self {
            Expr::Int(it) => it.as_int().map(Value::Int),
            Expr::Float(it) => it.as_float().map(Value::Float),
            Expr::Bool(it) => it.as_bool().map(Value::Bool),
        }
    }
}

impl From<Value> for Expr {
    fn from(value: Value) -> Self {
        match value {
            Value::Int(it) => Expr::Int(it.into()),
            Value::Float(it) => Expr::Float(it.into()),
            Value::Bool(it) => Expr::Bool(it.into()),
        }
    }
}
