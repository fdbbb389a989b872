//! The inside of a [`SymInt`], for those who translate it.

use crate::int::IntRef;
use crate::poly::Atom;
use crate::{Expr, Func, SymInt, Symbol};

/// One term of a polynomial: a coefficient, and what it multiplies with its powers.
#[derive(Clone, Debug, PartialEq)]
pub struct Summand {
    /// The coefficient.
    pub coefficient: i64,
    /// The factors and their powers, which are positive.
    pub factors: Vec<(IntFactor, u32)>,
}

/// What polynomials are made of.
#[derive(Clone, Debug, PartialEq)]
pub enum IntFactor {
    /// A symbol.
    Symbol(Symbol),
    /// A function of expressions.
    Call(Func, Vec<Expr>),
}

impl SymInt {
    /// The terms that it is the sum of; none where it has no value.
    ///
    /// ```
    /// use tracefx_sym::{IntFactor, SymInt, Symbol};
    /// let s0 = Symbol::size("s0");
    /// let terms = (SymInt::from(s0.clone()) * 2 + 3).summands();
    /// assert_eq!(terms.iter().map(|it| it.coefficient).sum::<i64>(), 5);
    /// assert!(terms.iter().any(|it| it.factors == [(IntFactor::Symbol(s0.clone()), 1)]));
    /// ```
    pub fn summands(&self) -> Vec<Summand> {
        let factor = |atom: &Atom| match atom {
            Atom::Symbol(it) => IntFactor::Symbol(it.clone()),
            Atom::Call(it) => IntFactor::Call(it.func, it.args.to_vec()),
        };
        match self.view() {
            IntRef::Int(0) | IntRef::Invalid(_) => Vec::new(),
            IntRef::Int(coefficient) => vec![Summand { coefficient, factors: Vec::new() }],
            IntRef::Poly(poly) => {
                let summand = |it: &crate::poly::Term| Summand {
                    coefficient: it.coeff,
                    factors: it.factors.iter().map(|it| (factor(&it.atom), it.power)).collect(),
                };
                poly.terms.iter().map(summand).collect()
            }
        }
    }
}
