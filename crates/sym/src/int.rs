//! [`SymInt`], the integer that sizes and strides are.

use crate::expr::{Extent, Invalid};
use crate::poly::{self, Atom, Factor, Factors, Poly, Sum, Term};
use crate::{EvalError, Symbol, Value};
use smallvec::smallvec;
use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};
use std::sync::Arc;

/// An integer, known or symbolic: a number, or a canonical polynomial over symbols and calls such as `s0//2`.
///
/// Two expressions that are the same polynomial are equal, however they were built. Expressions that are equal for
/// deeper reasons may differ; [`ShapeEnv`](crate::ShapeEnv) decides what can be decided.
///
/// **Arithmetic never wraps and never panics.** What leaves 64 bits, divides by zero or grows without measure gives an
/// *invalid* value, which stays invalid through all further arithmetic, equals no number, decides no comparison, and
/// prints as `<leaves 64 bits>`. So shape rules are written as `a + b`, and who needs the outcome asks for it:
/// [`as_int`](Self::as_int) is `None`, [`to_int`](Self::to_int) and [`check`](Self::check) are errors.
///
/// ```
/// use tracefx_sym::{SymInt, Symbol};
/// let s0 = SymInt::from(Symbol::size("s0"));
/// let rows = (&s0 + 1) * 4;
/// assert_eq!(rows.to_string(), "4*s0 + 4");
/// assert_eq!(rows.floor_div(&4.into()) - &s0, 1);
/// assert!((SymInt::from(i64::MAX) + 1).to_int().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SymInt(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Int(i64),
    Poly(Arc<Poly>),
    Invalid(Invalid),
}

/// What a [`SymInt`] is, for the modules that walk it.
#[derive(Clone, Copy)]
pub(crate) enum IntRef<'a> {
    Int(i64),
    Poly(&'a Poly),
    Invalid(Invalid),
}

impl SymInt {
    /// Zero.
    pub const ZERO: SymInt = SymInt(Repr::Int(0));
    /// One.
    pub const ONE: SymInt = SymInt(Repr::Int(1));

    /// A known integer.
    pub const fn new(value: i64) -> Self {
        SymInt(Repr::Int(value))
    }

    /// A value that is no integer, for this reason.
    pub const fn of_invalid(invalid: Invalid) -> Self {
        SymInt(Repr::Invalid(invalid))
    }

    /// The integer, if it is known.
    pub fn as_int(&self) -> Option<i64> {
        match self.0 {
            Repr::Int(it) => Some(it),
            Repr::Poly(_) | Repr::Invalid(_) => None,
        }
    }

    /// The symbol, if it is one and nothing else.
    pub fn as_symbol(&self) -> Option<&Symbol> {
        match &self.0 {
            Repr::Poly(poly) => match poly.as_atom() {
                Some(Atom::Symbol(it)) => Some(it),
                Some(Atom::Call(_)) | None => None,
            },
            Repr::Int(_) | Repr::Invalid(_) => None,
        }
    }

    /// Whether it depends on symbols.
    pub fn is_symbolic(&self) -> bool {
        matches!(self.0, Repr::Poly(_))
    }

    /// Why it has no value, if it has none.
    pub fn invalid(&self) -> Option<Invalid> {
        match self.0 {
            Repr::Invalid(it) => Some(it),
            Repr::Int(_) | Repr::Poly(_) => None,
        }
    }

    /// The integer.
    ///
    /// # Errors
    ///
    /// If it is invalid, or symbolic; the error names the expression.
    pub fn to_int(&self) -> Result<i64, EvalError> {
        match &self.0 {
            Repr::Int(it) => Ok(*it),
            Repr::Invalid(it) => Err(EvalError::Invalid(*it)),
            Repr::Poly(_) => match self.symbols().into_iter().next() {
                Some(symbol) => Err(EvalError::Unbound(symbol)),
                None => self.eval(&|_| None),
            },
        }
    }

    /// The same, unless it is invalid.
    ///
    /// # Errors
    ///
    /// If it is invalid.
    pub fn check(self) -> Result<SymInt, EvalError> {
        match self.0 {
            Repr::Invalid(it) => Err(EvalError::Invalid(it)),
            Repr::Int(_) | Repr::Poly(_) => Ok(self),
        }
    }

    /// The unknowns in it, each once, by name.
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut found = Vec::new();
        self.visit_symbols(&mut |it| found.push(it.clone()));
        found.sort();
        found.dedup();
        found
    }

    /// The value under bindings of the symbols, with Python's arithmetic.
    ///
    /// # Errors
    ///
    /// If a symbol is not bound, a number leaves 64 bits, or something is divided by zero.
    pub fn eval(&self, bindings: &dyn Fn(&Symbol) -> Option<i64>) -> Result<i64, EvalError> {
        self.eval_with(&|symbol| bindings(symbol).map(Value::Int))
    }

    /// The integer to the power of `exponent`.
    pub fn pow(&self, exponent: u32) -> SymInt {
        if let (Some(base), true) = (self.as_int(), exponent > 0) {
            return base.checked_pow(exponent).map_or(Self::of_invalid(Invalid::Overflow), SymInt::new);
        }
        if let Repr::Poly(poly) = &self.0
            && let [Term { coeff, factors }] = &*poly.terms
            && exponent > 0
        {
            let powers: Option<Factors> = factors
                .iter()
                .map(|it| Some(Factor { atom: it.atom.clone(), power: it.power.checked_mul(exponent)? }))
                .collect();
            return match (coeff.checked_pow(exponent), powers) {
                (Some(coeff), Some(factors)) => Self::of_terms(vec![Term { coeff, factors }]),
                (None, _) => Self::of_invalid(Invalid::Overflow),
                (_, None) => Self::of_invalid(Invalid::TooLarge),
            };
        }
        let mut power = SymInt::ONE;
        for bit in (0..u32::BITS - exponent.leading_zeros()).rev() {
            power = &power * &power;
            if exponent >> bit & 1 == 1 {
                power *= self;
            }
            if power.invalid().is_some() {
                break;
            }
        }
        // The zeroth power of what has no value has none.
        if let Some(invalid) = self.invalid() { Self::of_invalid(invalid) } else { power }
    }

    pub(crate) fn view(&self) -> IntRef<'_> {
        match &self.0 {
            Repr::Int(it) => IntRef::Int(*it),
            Repr::Poly(it) => IntRef::Poly(it),
            Repr::Invalid(it) => IntRef::Invalid(*it),
        }
    }

    pub(crate) fn extent(&self) -> Extent {
        match &self.0 {
            Repr::Poly(it) => it.extent,
            Repr::Int(_) | Repr::Invalid(_) => Extent::LEAF,
        }
    }

    pub(crate) fn visit_symbols(&self, visit: &mut dyn FnMut(&Symbol)) {
        if let Repr::Poly(poly) = &self.0 {
            poly.terms.iter().flat_map(|it| &it.factors).for_each(|it| it.atom.visit_symbols(visit));
        }
    }

    pub(crate) fn of_atom(atom: Atom) -> SymInt {
        Self::of_terms(vec![Term { coeff: 1, factors: smallvec![Factor { atom, power: 1 }] }])
    }

    /// The sum of terms that are in canonical order.
    pub(crate) fn of_terms(terms: Vec<Term>) -> SymInt {
        Self::of_sum(poly::of_sorted(terms))
    }

    fn of_sum(sum: Result<Sum, Invalid>) -> SymInt {
        SymInt(match sum {
            Ok(Sum::Constant(it)) => Repr::Int(it),
            Ok(Sum::Poly(it)) => Repr::Poly(Arc::new(it)),
            Err(it) => Repr::Invalid(it),
        })
    }

    /// The terms of a valid value; zero has one too.
    pub(crate) fn with_terms<T>(&self, with: impl FnOnce(&[Term]) -> T) -> T {
        match &self.0 {
            Repr::Int(it) => with(&[Term::constant(*it)]),
            Repr::Poly(it) => with(&it.terms),
            Repr::Invalid(_) => with(&[]),
        }
    }

    fn binary(
        &self,
        other: &SymInt,
        ints: fn(i64, i64) -> Option<i64>,
        polys: fn(&[Term], &[Term]) -> Result<Sum, Invalid>,
    ) -> SymInt {
        if let Some(invalid) = Invalid::of_either(self.invalid(), other.invalid()) {
            return Self::of_invalid(invalid);
        }
        match (&self.0, &other.0) {
            (Repr::Int(a), Repr::Int(b)) => ints(*a, *b).map_or(Self::of_invalid(Invalid::Overflow), SymInt::new),
            (Repr::Int(_) | Repr::Poly(_) | Repr::Invalid(_), _) => {
                Self::of_sum(self.with_terms(|a| other.with_terms(|b| polys(a, b))))
            }
        }
    }

    fn plus(&self, other: &SymInt) -> SymInt {
        self.binary(other, i64::checked_add, poly::add)
    }

    fn times(&self, other: &SymInt) -> SymInt {
        self.binary(other, i64::checked_mul, poly::multiply)
    }

    fn minus(&self, other: &SymInt) -> SymInt {
        match (&self.0, &other.0) {
            // Not a sum with the negated number, because i64::MIN has none.
            (Repr::Int(a), Repr::Int(b)) => a.checked_sub(*b).map_or(Self::of_invalid(Invalid::Overflow), SymInt::new),
            (Repr::Int(_) | Repr::Poly(_) | Repr::Invalid(_), _) => self.plus(&other.times(&SymInt::new(-1))),
        }
    }
}

impl Default for SymInt {
    fn default() -> Self {
        SymInt::ZERO
    }
}

impl From<i64> for SymInt {
    fn from(value: i64) -> Self {
        SymInt::new(value)
    }
}

impl From<i32> for SymInt {
    fn from(value: i32) -> Self {
        SymInt::new(value.into())
    }
}

impl From<usize> for SymInt {
    /// A length; one that leaves 63 bits is an overflow.
    fn from(value: usize) -> Self {
        i64::try_from(value).map_or(SymInt::of_invalid(Invalid::Overflow), SymInt::new)
    }
}

impl From<Symbol> for SymInt {
    fn from(symbol: Symbol) -> Self {
        SymInt::of_atom(Atom::Symbol(symbol))
    }
}

impl PartialEq<i64> for SymInt {
    fn eq(&self, other: &i64) -> bool {
        self.as_int() == Some(*other)
    }
}

macro_rules! operator {
    ($trait:ident $method:ident $assign_trait:ident $assign:ident $does:ident) => {
        impl $trait<&SymInt> for &SymInt {
            type Output = SymInt;
            fn $method(self, other: &SymInt) -> SymInt {
                self.$does(other)
            }
        }
        impl $trait<SymInt> for &SymInt {
            type Output = SymInt;
            fn $method(self, other: SymInt) -> SymInt {
                self.$does(&other)
            }
        }
        impl $trait<&SymInt> for SymInt {
            type Output = SymInt;
            fn $method(self, other: &SymInt) -> SymInt {
                self.$does(other)
            }
        }
        impl $trait for SymInt {
            type Output = SymInt;
            fn $method(self, other: SymInt) -> SymInt {
                self.$does(&other)
            }
        }
        impl $trait<i64> for &SymInt {
            type Output = SymInt;
            fn $method(self, other: i64) -> SymInt {
                self.$does(&SymInt::new(other))
            }
        }
        impl $trait<i64> for SymInt {
            type Output = SymInt;
            fn $method(self, other: i64) -> SymInt {
                self.$does(&SymInt::new(other))
            }
        }
        impl $trait<&SymInt> for i64 {
            type Output = SymInt;
            fn $method(self, other: &SymInt) -> SymInt {
                SymInt::new(self).$does(other)
            }
        }
        impl $trait<SymInt> for i64 {
            type Output = SymInt;
            fn $method(self, other: SymInt) -> SymInt {
                SymInt::new(self).$does(&other)
            }
        }
        impl $assign_trait<&SymInt> for SymInt {
            fn $assign(&mut self, other: &SymInt) {
                *self = self.$does(other);
            }
        }
        impl $assign_trait for SymInt {
            fn $assign(&mut self, other: SymInt) {
                *self = self.$does(&other);
            }
        }
        impl $assign_trait<i64> for SymInt {
            fn $assign(&mut self, other: i64) {
                *self = self.$does(&SymInt::new(other));
            }
        }
    };
}

operator!(Add add AddAssign add_assign plus);
operator!(Sub sub SubAssign sub_assign minus);
operator!(Mul mul MulAssign mul_assign times);

impl Neg for &SymInt {
    type Output = SymInt;
    fn neg(self) -> SymInt {
        self.times(&SymInt::new(-1))
    }
}

impl Neg for SymInt {
    type Output = SymInt;
    fn neg(self) -> SymInt {
        -&self
    }
}

impl std::iter::Sum for SymInt {
    fn sum<I: Iterator<Item = SymInt>>(iter: I) -> SymInt {
        iter.fold(SymInt::ZERO, |a, b| a + b)
    }
}

impl<'a> std::iter::Sum<&'a SymInt> for SymInt {
    fn sum<I: Iterator<Item = &'a SymInt>>(iter: I) -> SymInt {
        iter.fold(SymInt::ZERO, |a, b| a + b)
    }
}

impl std::iter::Product for SymInt {
    fn product<I: Iterator<Item = SymInt>>(iter: I) -> SymInt {
        iter.fold(SymInt::ONE, |a, b| a * b)
    }
}

impl<'a> std::iter::Product<&'a SymInt> for SymInt {
    fn product<I: Iterator<Item = &'a SymInt>>(iter: I) -> SymInt {
        iter.fold(SymInt::ONE, |a, b| a * b)
    }
}
