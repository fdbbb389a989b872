//! The order in which sympy sorts the parts of an expression (`default_sort_key`), because printing follows it.
//!
//! A key is: the class, the arguments (fewer first, then one by one), the exponent, the coefficient.

use crate::expr::Call;
use crate::float::{FloatRef, SymFloat};
use crate::int::IntRef;
use crate::poly::{Atom, Factor, Term};
use crate::{Expr, Func, SymBool, Symbol};
use std::cmp::Ordering;

/// Compares the atoms of two terms: the larger power of the smaller atom comes first, the constant last.
pub(crate) fn cmp_factors(a: &[Factor], b: &[Factor]) -> Ordering {
    for (x, y) in a.iter().zip(b) {
        let order = cmp_atoms(&x.atom, &y.atom).then_with(|| y.power.cmp(&x.power));
        if order.is_ne() {
            return order;
        }
    }
    b.len().cmp(&a.len())
}

pub(crate) fn cmp_atoms(a: &Atom, b: &Atom) -> Ordering {
    match (a, b) {
        (Atom::Symbol(x), Atom::Symbol(y)) => x.cmp(y),
        (Atom::Call(x), Atom::Call(y)) if std::sync::Arc::ptr_eq(x, y) => Ordering::Equal,
        (Atom::Symbol(_) | Atom::Call(_), _) => cmp_keys(&Key::atom(a), &Key::atom(b)),
    }
}

pub(crate) fn cmp_exprs(a: &Expr, b: &Expr) -> Ordering {
    cmp_keys(&Key::expr(a), &Key::expr(b))
}

/// The order of the arguments of `Max`, `Min`, `And` and `Or`: smaller expressions first.
pub(crate) fn cmp_unordered_args(a: &Expr, b: &Expr) -> Ordering {
    n_nodes(a).cmp(&n_nodes(b)).then_with(|| cmp_exprs(a, b))
}

/// The terms of a sum in the order in which sympy shows them: as they are, but `6 - u0` instead of `-u0 + 6`.
pub(crate) fn shown_terms(terms: &[Term]) -> impl ExactSizeIterator<Item = &Term> {
    let constant_first = match terms {
        [term, constant] => {
            term.coeff < 0 && term.factors.len() == 1 && constant.factors.is_empty() && constant.coeff > 0
        }
        _ => false,
    };
    (0..terms.len()).map(move |at| &terms[if constant_first { 1 - at } else { at }])
}

/// The number of nodes of the tree that sympy has for an expression.
fn n_nodes(expr: &Expr) -> u32 {
    let of_call = |call: &Call| 1 + call.args.iter().map(n_nodes).sum::<u32>();
    match expr {
        Expr::Int(it) => match it.view() {
            IntRef::Int(_) | IntRef::Invalid(_) => 1,
            IntRef::Poly(poly) => {
                let n_of_factor = |factor: &Factor| {
                    let base = match &factor.atom {
                        Atom::Symbol(_) => 1,
                        Atom::Call(it) => of_call(it),
                    };
                    if factor.power == 1 { base } else { base + 2 }
                };
                let n_of_term = |term: &Term| {
                    let parts = term.factors.len() + usize::from(term.coeff != 1 || term.factors.is_empty());
                    let n_coeff = u32::from(term.coeff != 1 || term.factors.is_empty());
                    n_coeff + term.factors.iter().map(n_of_factor).sum::<u32>() + u32::from(parts > 1)
                };
                poly.terms.iter().map(n_of_term).sum::<u32>() + u32::from(poly.terms.len() > 1)
            }
        },
        Expr::Float(it) => match it.view() {
            FloatRef::Call(it) => of_call(it),
            FloatRef::Const(_) | FloatRef::Rational(..) | FloatRef::Symbol(_) | FloatRef::Invalid(_) => 1,
        },
        Expr::Bool(it) => match it {
            SymBool::Call(it) => of_call(&it.0),
            SymBool::Const(_) | SymBool::Invalid(_) => 1,
        },
    }
}

/// A view of an expression as sympy's sort key sees it.
struct Key<'a> {
    part: Part<'a>,
    exponent: u32,
    coeff: i64,
}

enum Part<'a> {
    Int,
    Float(f64),
    Rational(i64, i64),
    Symbol(&'a Symbol),
    Product(&'a [Factor]),
    Sum(&'a [Term]),
    Call(&'a Call),
    Bool(bool),
    Invalid,
}

impl<'a> Key<'a> {
    fn plain(part: Part<'a>) -> Self {
        Key { part, exponent: 1, coeff: 1 }
    }

    fn int(value: i64) -> Self {
        Key { part: Part::Int, exponent: 0, coeff: value }
    }

    fn atom(atom: &'a Atom) -> Self {
        Key::plain(match atom {
            Atom::Symbol(it) => Part::Symbol(it),
            Atom::Call(it) => Part::Call(it),
        })
    }

    fn factor(factor: &'a Factor) -> Self {
        Key { exponent: factor.power, ..Key::atom(&factor.atom) }
    }

    fn term(term: &'a Term) -> Self {
        match term.factors.as_slice() {
            [] => Key::int(term.coeff),
            [factor] => Key { coeff: term.coeff, ..Key::factor(factor) },
            factors => Key { part: Part::Product(factors), exponent: 1, coeff: term.coeff },
        }
    }

    fn expr(expr: &'a Expr) -> Self {
        match expr {
            Expr::Int(it) => match it.view() {
                IntRef::Int(value) => Key::int(value),
                IntRef::Poly(poly) => match &*poly.terms {
                    [term] => Key::term(term),
                    terms => Key::plain(Part::Sum(terms)),
                },
                IntRef::Invalid(_) => Key::plain(Part::Invalid),
            },
            Expr::Float(it) => Key::float(it),
            Expr::Bool(it) => Key::bool(it),
        }
    }

    fn float(float: &'a SymFloat) -> Self {
        Key::plain(match float.view() {
            FloatRef::Const(it) => Part::Float(it),
            FloatRef::Rational(numerator, denominator) => Part::Rational(numerator, denominator),
            FloatRef::Symbol(it) => Part::Symbol(it),
            FloatRef::Call(it) => Part::Call(it),
            FloatRef::Invalid(_) => Part::Invalid,
        })
    }

    fn bool(bool: &'a SymBool) -> Self {
        Key::plain(match bool {
            SymBool::Const(it) => Part::Bool(*it),
            SymBool::Call(it) => Part::Call(&it.0),
            SymBool::Invalid(_) => Part::Invalid,
        })
    }

    /// sympy's `class_key`.
    fn class(&self) -> (u8, u32, &'a str) {
        match self.part {
            Part::Int | Part::Float(_) | Part::Rational(..) => (1, 0, "Number"),
            Part::Symbol(_) => (2, 0, "Symbol"),
            Part::Product(_) => (3, 0, "Mul"),
            Part::Sum(_) => (3, 1, "Add"),
            Part::Call(call) => match call.func {
                Func::Mul => (3, 0, "Mul"),
                Func::Add => (3, 1, "Add"),
                Func::Pow => (3, 2, "Pow"),
                Func::Max | Func::Min => (5, 0, call.func.name()),
                Func::Eq | Func::Ne | Func::Lt | Func::Le | Func::Gt | Func::Ge => (5, 0, call.func.name()),
                Func::And | Func::Or | Func::Not => (5, 0, call.func.name()),
                func => (4, 10_000, func.name()),
            },
            Part::Bool(false) => (5, 0, "BooleanFalse"),
            Part::Bool(true) => (5, 0, "BooleanTrue"),
            Part::Invalid => (9, 0, "Invalid"),
        }
    }
}

fn cmp_keys(a: &Key<'_>, b: &Key<'_>) -> Ordering {
    a.class()
        .cmp(&b.class())
        .then_with(|| cmp_args(&a.part, &b.part))
        .then_with(|| a.exponent.cmp(&b.exponent))
        .then_with(|| a.coeff.cmp(&b.coeff))
}

fn cmp_args(a: &Part<'_>, b: &Part<'_>) -> Ordering {
    match (a, b) {
        (Part::Symbol(x), Part::Symbol(y)) => x.cmp(y),
        (Part::Float(x), Part::Float(y)) => x.total_cmp(y),
        (Part::Rational(a, b), Part::Rational(c, d)) => {
            (i128::from(*a) * i128::from(*d)).cmp(&(i128::from(*c) * i128::from(*b)))
        }
        (Part::Call(x), Part::Call(y)) => cmp_lists(&x.args, &y.args, cmp_exprs),
        (Part::Product(x), Part::Product(y)) => cmp_lists(x, y, |x, y| cmp_keys(&Key::factor(x), &Key::factor(y))),
        (Part::Sum(x), Part::Sum(y)) => {
            let (x, y): (Vec<&Term>, Vec<&Term>) = (shown_terms(x).collect(), shown_terms(y).collect());
            cmp_lists(&x, &y, |x, y| cmp_keys(&Key::term(x), &Key::term(y)))
        }
        // The class has decided everything else but numbers of different kinds, and sums of different sorts.
        (x, y) => rank(x).cmp(&rank(y)),
    }
}

fn rank(part: &Part<'_>) -> u8 {
    match part {
        Part::Int => 0,
        Part::Rational(..) => 1,
        Part::Float(_) => 2,
        Part::Symbol(_) => 3,
        Part::Product(_) => 4,
        Part::Sum(_) => 5,
        Part::Call(_) => 6,
        Part::Bool(_) => 7,
        Part::Invalid => 8,
    }
}

fn cmp_lists<T>(a: &[T], b: &[T], mut cmp: impl FnMut(&T, &T) -> Ordering) -> Ordering {
    a.len()
        .cmp(&b.len())
        .then_with(|| a.iter().zip(b).map(|(x, y)| cmp(x, y)).find(|it| it.is_ne()).unwrap_or(Ordering::Equal))
}
