//! The computation that an expression stands for, step by step.

use crate::expr::Expr;
use crate::int::IntRef;
use crate::poly::{Atom, Term};
use crate::{Func, SymInt, Symbol};

/// Does the steps of a computation of an integer: on numbers, or by writing them into a graph.
pub trait Compute {
    /// What a step gives.
    type Value;
    /// Why a step cannot be done.
    type Error;

    /// A number.
    ///
    /// # Errors
    /// Where it cannot be done.
    fn number(&mut self, value: i64) -> Result<Self::Value, Self::Error>;

    /// An unknown.
    ///
    /// # Errors
    /// Where it cannot be done.
    fn symbol(&mut self, symbol: &Symbol) -> Result<Self::Value, Self::Error>;

    /// A sum.
    ///
    /// # Errors
    /// Where it cannot be done.
    fn add(&mut self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;

    /// A product.
    ///
    /// # Errors
    /// Where it cannot be done.
    fn mul(&mut self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;

    /// A call of a function on integers.
    ///
    /// # Errors
    /// Where it cannot be done.
    fn call(&mut self, func: Func, args: Vec<Self::Value>) -> Result<Self::Value, Self::Error>;

    /// Something that is not made of integers alone.
    fn refuse(&mut self, what: &str) -> Self::Error;
}

impl SymInt {
    /// Does the steps that give this integer, in the order in which it is printed.
    ///
    /// # Errors
    /// The first step that cannot be done.
    pub fn compute<C: Compute>(&self, compute: &mut C) -> Result<C::Value, C::Error> {
        match self.view() {
            IntRef::Int(value) => compute.number(value),
            IntRef::Invalid(invalid) => Err(compute.refuse(invalid.reason())),
            IntRef::Poly(poly) => {
                let mut sum = None;
                for term in poly.terms.iter() {
                    let value = compute_term(term, compute)?;
                    sum = Some(match sum {
                        Some(so_far) => compute.add(so_far, value)?,
                        None => value,
                    });
                }
                sum.map_or_else(|| compute.number(0), Ok)
            }
        }
    }
}

fn compute_term<C: Compute>(term: &Term, compute: &mut C) -> Result<C::Value, C::Error> {
    let mut product = None;
    for factor in &term.factors {
        for _ in 0..factor.power {
            let value = match &factor.atom {
                Atom::Symbol(it) => compute.symbol(it)?,
                Atom::Call(it) => {
                    let mut args = Vec::with_capacity(it.args.len());
                    for arg in &it.args {
                        match arg {
                            Expr::Int(arg) => args.push(arg.compute(compute)?),
                            Expr::Float(_) | Expr::Bool(_) => return Err(compute.refuse(it.func.name())),
                        }
                    }
                    compute.call(it.func, args)?
                }
            };
            product = Some(match product {
                Some(so_far) => compute.mul(so_far, value)?,
                None => value,
            });
        }
    }
    match product {
        Some(product) if term.coeff == 1 => Ok(product),
        Some(product) => {
            let coeff = compute.number(term.coeff)?;
            compute.mul(product, coeff)
        }
        None => compute.number(term.coeff),
    }
}
