//! [`SymFloat`]: floats that depend on sizes or on computed values.

use crate::expr::{Call, Extent, Invalid};
use crate::{Expr, Func, SymInt, Symbol};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A float, known or symbolic. Floating-point arithmetic is not simplified beyond what sympy does in PyTorch: known
/// numbers are folded, sums and products are flat and sorted.
///
/// ```
/// use tracefx_sym::{Expr, Func, SymInt, SymFloat, Symbol, call};
/// let s0 = SymInt::from(Symbol::size("s0"));
/// let half = call(Func::IntTrueDiv, vec![s0.into(), SymInt::from(2).into()]).unwrap();
/// assert_eq!(half.to_string(), "IntTrueDiv(s0, 2)");
/// ```
#[derive(Clone)]
pub struct SymFloat(Repr);

#[derive(Clone)]
enum Repr {
    Const(f64),
    Rational(i64, i64),
    Symbol(Symbol),
    Call(Arc<Call>),
    Invalid(Invalid),
}

/// What a [`SymFloat`] is, for the modules that walk it.
#[derive(Clone, Copy)]
pub(crate) enum FloatRef<'a> {
    Const(f64),
    /// In lowest terms; the denominator is at least 2.
    Rational(i64, i64),
    Symbol(&'a Symbol),
    Call(&'a Arc<Call>),
    Invalid(Invalid),
}

impl SymFloat {
    /// A value that is no number, for this reason.
    pub const fn of_invalid(invalid: Invalid) -> Self {
        SymFloat(Repr::Invalid(invalid))
    }

    /// The number, if it is known.
    pub fn as_float(&self) -> Option<f64> {
        match self.0 {
            Repr::Const(it) => Some(it),
            // Both parts are i64; the quotient is rounded once, like Python's int / int.
            Repr::Rational(numerator, denominator) => crate::eval::int_true_div(numerator, denominator).ok(),
            Repr::Symbol(_) | Repr::Call(_) | Repr::Invalid(_) => None,
        }
    }

    /// Why it has no value, if it has none.
    pub fn invalid(&self) -> Option<Invalid> {
        match self.0 {
            Repr::Invalid(it) => Some(it),
            Repr::Const(_) | Repr::Rational(..) | Repr::Symbol(_) | Repr::Call(_) => None,
        }
    }

    /// The symbol, if it is one and nothing else.
    pub fn as_symbol(&self) -> Option<&Symbol> {
        match &self.0 {
            Repr::Symbol(it) => Some(it),
            Repr::Const(_) | Repr::Rational(..) | Repr::Call(_) | Repr::Invalid(_) => None,
        }
    }

    /// A fraction in lowest terms, or the integer that it is; `None` if it leaves 64 bits or divides by zero.
    pub(crate) fn fraction(numerator: i64, denominator: i64) -> Option<Expr> {
        let (mut gcd, mut rest) = (i128::from(numerator), i128::from(denominator));
        while rest != 0 {
            (gcd, rest) = (rest, gcd % rest);
        }
        // The sign of the divisor makes the denominator positive.
        let gcd = if (gcd < 0) == (denominator < 0) { gcd } else { -gcd };
        let numerator = i64::try_from(i128::from(numerator).checked_div(gcd)?).ok()?;
        match i64::try_from(i128::from(denominator).checked_div(gcd)?).ok()? {
            0 => None,
            1 => Some(Expr::Int(numerator.into())),
            denominator => Some(Expr::Float(SymFloat(Repr::Rational(numerator, denominator)))),
        }
    }

    pub(crate) fn of_call(call: Result<Arc<Call>, Invalid>) -> Self {
        SymFloat(match call {
            Ok(it) => Repr::Call(it),
            Err(it) => Repr::Invalid(it),
        })
    }

    pub(crate) fn is_fraction(&self) -> bool {
        matches!(self.0, Repr::Rational(..))
    }

    /// The call of `func` that it is.
    pub(crate) fn as_call(&self, func: Func) -> Option<&Arc<Call>> {
        match &self.0 {
            Repr::Call(it) if it.func == func => Some(it),
            Repr::Const(_) | Repr::Rational(..) | Repr::Symbol(_) | Repr::Call(_) | Repr::Invalid(_) => None,
        }
    }

    pub(crate) fn view(&self) -> FloatRef<'_> {
        match &self.0 {
            Repr::Const(it) => FloatRef::Const(*it),
            Repr::Rational(numerator, denominator) => FloatRef::Rational(*numerator, *denominator),
            Repr::Symbol(it) => FloatRef::Symbol(it),
            Repr::Call(it) => FloatRef::Call(it),
            Repr::Invalid(it) => FloatRef::Invalid(*it),
        }
    }

    pub(crate) fn extent(&self) -> Extent {
        match &self.0 {
            Repr::Call(it) => it.extent,
            Repr::Const(_) | Repr::Rational(..) | Repr::Symbol(_) | Repr::Invalid(_) => Extent::LEAF,
        }
    }

    pub(crate) fn visit_symbols(&self, visit: &mut dyn FnMut(&Symbol)) {
        match &self.0 {
            Repr::Symbol(it) => visit(it),
            Repr::Call(it) => it.args.iter().for_each(|arg| arg.visit_symbols(visit)),
            Repr::Const(_) | Repr::Rational(..) | Repr::Invalid(_) => {}
        }
    }
}

impl From<f64> for SymFloat {
    fn from(value: f64) -> Self {
        SymFloat(Repr::Const(value))
    }
}

impl From<SymInt> for SymFloat {
    /// The float nearest to an integer.
    fn from(int: SymInt) -> Self {
        match (int.as_int(), int.invalid()) {
            (Some(it), _) => SymFloat::from(it as f64),
            (None, Some(it)) => SymFloat::of_invalid(it),
            (None, None) => SymFloat::of_call(Call::new(Func::ToFloat, vec![Expr::Int(int)])),
        }
    }
}

impl From<Symbol> for SymFloat {
    fn from(symbol: Symbol) -> Self {
        SymFloat(Repr::Symbol(symbol))
    }
}

impl PartialEq for SymFloat {
    /// Structural: numbers are equal if their bits are, so that NaN equals itself.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Const(a), Repr::Const(b)) => a.to_bits() == b.to_bits(),
            (Repr::Rational(a, b), Repr::Rational(c, d)) => (a, b) == (c, d),
            (Repr::Symbol(a), Repr::Symbol(b)) => a == b,
            (Repr::Call(a), Repr::Call(b)) => a == b,
            (Repr::Invalid(a), Repr::Invalid(b)) => a == b,
            (Repr::Const(_) | Repr::Rational(..) | Repr::Symbol(_) | Repr::Call(_) | Repr::Invalid(_), _) => false,
        }
    }
}

impl Eq for SymFloat {}

impl Hash for SymFloat {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Repr::Const(it) => it.to_bits().hash(state),
            Repr::Rational(a, b) => (a, b).hash(state),
            Repr::Symbol(it) => it.hash(state),
            Repr::Call(it) => it.hash(state),
            Repr::Invalid(it) => it.hash(state),
        }
    }
}
