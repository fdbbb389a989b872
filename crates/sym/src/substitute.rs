//! Putting expressions in the place of symbols.

use crate::call::call;
use crate::expr::{Expr, Invalid};
use crate::float::FloatRef;
use crate::int::IntRef;
use crate::poly::{Atom, Term};
use crate::{SymBool, SymFloat, SymInt, Symbol};

/// What stands for a symbol; `None` leaves it as it is.
type Replacement<'a> = dyn Fn(&Symbol) -> Option<SymInt> + 'a;

impl SymInt {
    /// The expression with other integers in the place of its symbols, simplified again.
    ///
    /// ```
    /// use tracefx_sym::{SymInt, Symbol};
    /// let (s0, s1) = (Symbol::size("s0"), Symbol::size("s1"));
    /// let area = SymInt::from(s0.clone()) * SymInt::from(s1);
    /// assert_eq!(area.substitute(&|it| (*it == s0).then(|| 4.into())).to_string(), "4*s1");
    /// ```
    pub fn substitute(&self, replacement: &Replacement<'_>) -> SymInt {
        match self.view() {
            IntRef::Int(_) | IntRef::Invalid(_) => self.clone(),
            IntRef::Poly(poly) => poly.terms.iter().map(|it| substitute_term(it, replacement)).sum(),
        }
    }
}

fn substitute_term(term: &Term, replacement: &Replacement<'_>) -> SymInt {
    let mut product = SymInt::new(term.coeff);
    for factor in &term.factors {
        let atom = match &factor.atom {
            Atom::Symbol(it) => replacement(it).unwrap_or_else(|| it.clone().into()),
            Atom::Call(it) => {
                let args = it.args.iter().map(|arg| arg.substitute(replacement)).collect();
                match call(it.func, args) {
                    Ok(Expr::Int(it)) => it,
                    // A negative power, or the like, that was not one before its symbols were known.
                    Ok(Expr::Float(_) | Expr::Bool(_)) | Err(_) => SymInt::of_invalid(Invalid::Undefined),
                }
            }
        };
        product *= atom.pow(factor.power);
    }
    product
}

impl SymFloat {
    /// The expression with integers in the place of its symbols, simplified again.
    pub fn substitute(&self, replacement: &Replacement<'_>) -> SymFloat {
        match self.view() {
            FloatRef::Const(_) | FloatRef::Rational(..) | FloatRef::Symbol(_) | FloatRef::Invalid(_) => self.clone(),
            FloatRef::Call(it) => {
                let args = it.args.iter().map(|arg| arg.substitute(replacement)).collect();
                match call(it.func, args) {
                    Ok(Expr::Float(it)) => it,
                    // One branch of a `Where`, say, may be an integer.
                    Ok(Expr::Int(it)) => it.into(),
                    Ok(Expr::Bool(_)) | Err(_) => SymFloat::of_invalid(Invalid::Undefined),
                }
            }
        }
    }
}

impl SymBool {
    /// The expression with integers in the place of its symbols, simplified again.
    pub fn substitute(&self, replacement: &Replacement<'_>) -> SymBool {
        match self {
            SymBool::Const(_) | SymBool::Invalid(_) => self.clone(),
            SymBool::Call(it) => {
                let args = it.args().iter().map(|arg| arg.substitute(replacement)).collect();
                match call(it.func(), args) {
                    Ok(Expr::Bool(it)) => it,
                    Ok(Expr::Int(_) | Expr::Float(_)) | Err(_) => SymBool::Invalid(Invalid::Undefined),
                }
            }
        }
    }
}

impl Expr {
    /// The expression with integers in the place of its symbols, simplified again.
    pub fn substitute(&self, replacement: &Replacement<'_>) -> Expr {
        match self {
            Expr::Int(it) => Expr::Int(it.substitute(replacement)),
            Expr::Float(it) => Expr::Float(it.substitute(replacement)),
            Expr::Bool(it) => Expr::Bool(it.substitute(replacement)),
        }
    }
}
