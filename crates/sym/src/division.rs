//! Floor division and remainder of integer expressions, simplified as PyTorch does.
//!
//! The rules hold wherever both sides have a value: `floor(floor(a/b)/c) = floor(a/(b*c))` for positive `c`,
//! `floor((q*a + b)/q) = a + floor(b/q)`, and `floor((k*a)/(k*b)) = floor(a/b)`.

use crate::expr::{Call, Expr, Invalid};
use crate::int::IntRef;
use crate::poly::{self, Atom, Term};
use crate::{Func, SymInt, eval};
use std::sync::Arc;

impl SymInt {
    /// `self // other` as Python does it: rounded towards minus infinity.
    pub fn floor_div(&self, other: &SymInt) -> SymInt {
        floor_div(Func::FloorDiv, self, other)
    }

    /// `self % other` as Python does it: with the sign of `other`.
    ///
    /// Of sizes it is a `Mod`, as in PyTorch; where one of them might be negative it is a `PythonMod`.
    pub fn modulo(&self, other: &SymInt) -> SymInt {
        let of_sizes = self.is_assumed_nonnegative() && other.is_assumed_nonnegative();
        let func = if of_sizes { Func::Mod } else { Func::PythonMod };
        modulo(func, self, other)
    }
}

pub(crate) fn floor_div(func: Func, a: &SymInt, b: &SymInt) -> SymInt {
    if let Some(decided) = trivial(a, b) {
        return decided;
    }
    match (a.as_int(), b.as_int()) {
        (Some(0), _) => return SymInt::ZERO,
        (_, Some(1)) => return a.clone(),
        (_, Some(-1)) => return -a,
        (Some(a), Some(b)) => {
            return eval::floor_div(a, b).map_or(SymInt::of_invalid(Invalid::Overflow), SymInt::new);
        }
        (_, _) => {}
    }
    if let Some(inner) = as_call(a, Func::FloorDiv)
        && let [Expr::Int(base), Expr::Int(divisor)] = &*inner.args
        && b.is_assumed_positive()
    {
        let divisor = divisor * b;
        if divisor.invalid().is_none() {
            return floor_div(Func::FloorDiv, base, &divisor);
        }
    }
    if let Some(divisor) = b.as_int() {
        let (whole, rest): (Vec<Term>, Vec<Term>) =
            a.with_terms(|it| it.iter().cloned().partition(|term| term.coeff.checked_rem(divisor) == Some(0)));
        if !whole.is_empty() {
            let whole = quotient(&SymInt::of_terms(whole), &Term::constant(divisor));
            return match whole {
                Some(whole) => whole + floor_div(Func::FloorDiv, &SymInt::of_terms(rest), b),
                None => SymInt::of_invalid(Invalid::Overflow),
            };
        }
    }
    let common = a.with_terms(|x| b.with_terms(|y| poly::common_divisor(x.iter().chain(y))));
    if common != Term::constant(1)
        && let (Some(a), Some(b)) = (quotient(a, &common), quotient(b, &common))
    {
        return floor_div(func, &a, &b);
    }
    if let Some(exact) = exact_quotient(a, b) {
        return exact;
    }
    call(func, a, b)
}

/// PyTorch's `CeilDiv`: a floor division of `a + b - 1`, unless there is no rest.
pub(crate) fn ceil_div(a: &SymInt, b: &SymInt) -> SymInt {
    if let Some(decided) = trivial(a, b) {
        return decided;
    }
    exact_quotient(a, b).unwrap_or_else(|| floor_div(Func::FloorDiv, &(a + b - 1), b))
}

pub(crate) fn modulo(func: Func, a: &SymInt, b: &SymInt) -> SymInt {
    if let Some(decided) = trivial(a, b) {
        return decided;
    }
    if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
        return SymInt::new(eval::modulo(a, b));
    }
    if *a == 0 || *b == 1 || *b == -1 || a == b || *a == -b {
        return SymInt::ZERO;
    }
    if let Some(divisor) = b.as_int() {
        let (rest, constant) = a.with_terms(|terms| {
            let mut constant = 0;
            let mut rest = false;
            for term in terms {
                if term.factors.is_empty() {
                    constant = eval::modulo(term.coeff, divisor);
                } else {
                    rest |= term.coeff.checked_rem(divisor) != Some(0);
                }
            }
            (rest, constant)
        });
        // PyTorch knows odd from even, and multiples; it leaves `Mod(3*s0 + 1, 3)` alone.
        if !rest && (constant == 0 || divisor == 2) {
            return SymInt::new(constant);
        }
    }
    if exact_quotient(a, b).is_some() {
        return SymInt::ZERO;
    }
    if a.is_assumed_nonnegative() && (b - a).is_assumed_positive() {
        return a.clone();
    }
    call(func, a, b)
}

fn trivial(a: &SymInt, b: &SymInt) -> Option<SymInt> {
    match Invalid::of_either(a.invalid(), b.invalid()) {
        Some(it) => Some(SymInt::of_invalid(it)),
        None => (*b == 0).then(|| SymInt::of_invalid(Invalid::DivisionByZero)),
    }
}

fn call(func: Func, a: &SymInt, b: &SymInt) -> SymInt {
    match Call::new(func, vec![Expr::Int(a.clone()), Expr::Int(b.clone())]) {
        Ok(it) => SymInt::of_atom(Atom::Call(it)),
        Err(it) => SymInt::of_invalid(it),
    }
}

/// The call of `func` that the expression is, if it is nothing else.
pub(crate) fn as_call(a: &SymInt, func: Func) -> Option<&Arc<Call>> {
    match a.view() {
        IntRef::Poly(poly) => match poly.as_atom() {
            Some(Atom::Call(it)) if it.func == func => Some(it),
            Some(Atom::Call(_) | Atom::Symbol(_)) | None => None,
        },
        IntRef::Int(_) | IntRef::Invalid(_) => None,
    }
}

/// `a / divisor`, where every term is divisible.
fn quotient(a: &SymInt, divisor: &Term) -> Option<SymInt> {
    let terms: Option<Vec<Term>> = a.with_terms(|it| it.iter().map(|term| term.divided_by(divisor)).collect());
    // Dividing by a term keeps the order of terms.
    terms.map(SymInt::of_terms)
}

/// `a / b`, where `b` divides `a` as a polynomial: long division, each step of which removes the leading term.
fn exact_quotient(a: &SymInt, b: &SymInt) -> Option<SymInt> {
    let leading = b.with_terms(|it| it.first().cloned())?;
    let (mut rest, mut sum) = (a.clone(), SymInt::ZERO);
    // The quotient of polynomials with n and m terms can be longer than both; what is that long is not worth it.
    for _ in 0..32 {
        if rest == 0 {
            return Some(sum);
        }
        let step = rest.with_terms(|it| it.first().and_then(|term| term.divided_by(&leading)))?;
        let step = SymInt::of_terms(vec![step]);
        rest -= &step * b;
        sum += step;
        if rest.invalid().is_some() {
            return None;
        }
    }
    None
}
