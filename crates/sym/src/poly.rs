//! Integer polynomials over atoms, in one canonical order.
//!
//! Terms stand in the order in which sympy prints them (lexicographic by the atoms, the constant last), so that printing
//! is a walk, and equal polynomials have equal parts.

use crate::expr::{Call, Extent, Invalid};
use crate::order;
use crate::{Expr, Symbol};
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What a polynomial is made of.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Atom {
    Symbol(Symbol),
    Call(Arc<Call>),
}

impl Atom {
    fn extent(&self) -> Extent {
        match self {
            Atom::Symbol(_) => Extent::LEAF,
            Atom::Call(it) => it.extent,
        }
    }

    pub(crate) fn visit_symbols(&self, visit: &mut dyn FnMut(&Symbol)) {
        match self {
            Atom::Symbol(it) => visit(it),
            Atom::Call(it) => it.args.iter().for_each(|arg: &Expr| arg.visit_symbols(visit)),
        }
    }
}

/// A power of an atom; the power is at least 1.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Factor {
    pub(crate) atom: Atom,
    pub(crate) power: u32,
}

/// The atoms of one term, in order, each once.
pub(crate) type Factors = SmallVec<[Factor; 2]>;

/// A coefficient and its atoms. The coefficient is never 0 inside of a [`Poly`]; the constant term has no factors.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    pub(crate) coeff: i64,
    pub(crate) factors: Factors,
}

impl Term {
    pub(crate) fn constant(coeff: i64) -> Term {
        Term { coeff, factors: Factors::new() }
    }

    pub(crate) fn times(&self, other: &Term) -> Result<Term, Invalid> {
        let coeff = self.coeff.checked_mul(other.coeff).ok_or(Invalid::Overflow)?;
        let mut factors = Factors::new();
        let (mut a, mut b) = (self.factors.as_slice(), other.factors.as_slice());
        while let (Some(x), Some(y)) = (a.first(), b.first()) {
            match order::cmp_atoms(&x.atom, &y.atom) {
                Ordering::Less => {
                    factors.push(x.clone());
                    a = &a[1..];
                }
                Ordering::Greater => {
                    factors.push(y.clone());
                    b = &b[1..];
                }
                Ordering::Equal => {
                    let power = x.power.checked_add(y.power).ok_or(Invalid::TooLarge)?;
                    factors.push(Factor { atom: x.atom.clone(), power });
                    (a, b) = (&a[1..], &b[1..]);
                }
            }
        }
        factors.extend(a.iter().chain(b).cloned());
        Ok(Term { coeff, factors })
    }

    /// `self / other`, where that is a term again.
    pub(crate) fn divided_by(&self, other: &Term) -> Option<Term> {
        let coeff = (self.coeff.checked_rem(other.coeff)? == 0).then(|| self.coeff.checked_div(other.coeff))??;
        let mut factors = self.factors.clone();
        for factor in &other.factors {
            let at = factors.iter().position(|it| it.atom == factor.atom)?;
            factors[at].power = factors[at].power.checked_sub(factor.power)?;
            if factors[at].power == 0 {
                factors.remove(at);
            }
        }
        Some(Term { coeff, factors })
    }
}

/// Two or more terms, or one that is not constant.
pub(crate) struct Poly {
    pub(crate) terms: Box<[Term]>,
    pub(crate) extent: Extent,
    hash: u64,
}

impl Poly {
    /// A polynomial of terms that are in order, each once, none of them 0.
    fn of_canonical(terms: Vec<Term>) -> Result<Poly, Invalid> {
        let mut extent = Extent::default();
        for term in &terms {
            extent = extent.beside(Extent::LEAF);
            for factor in &term.factors {
                extent = extent.beside(factor.atom.extent());
            }
        }
        if !extent.fits() {
            return Err(Invalid::TooLarge);
        }
        let mut hasher = FxHasher::default();
        terms.hash(&mut hasher);
        Ok(Poly { terms: terms.into(), extent, hash: hasher.finish() })
    }

    /// The only factor, if the polynomial is one atom and nothing else.
    pub(crate) fn as_atom(&self) -> Option<&Atom> {
        match &*self.terms {
            [Term { coeff: 1, factors }] => match factors.as_slice() {
                [Factor { atom, power: 1 }] => Some(atom),
                _ => None,
            },
            _ => None,
        }
    }
}

impl PartialEq for Poly {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (self.hash == other.hash && self.terms == other.terms)
    }
}

impl Eq for Poly {}

impl Hash for Poly {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

/// What terms add up to.
pub(crate) enum Sum {
    Constant(i64),
    Poly(Poly),
}

/// Adds up terms that are in order.
pub(crate) fn of_sorted(terms: impl IntoIterator<Item = Term>) -> Result<Sum, Invalid> {
    let mut sum: Vec<Term> = Vec::new();
    for term in terms {
        match sum.last_mut() {
            Some(last) if last.factors == term.factors => {
                last.coeff = last.coeff.checked_add(term.coeff).ok_or(Invalid::Overflow)?;
            }
            Some(last) if last.coeff == 0 => *last = term,
            Some(_) | None => sum.push(term),
        }
    }
    sum.pop_if(|last| last.coeff == 0);
    match sum.as_slice() {
        [] => Ok(Sum::Constant(0)),
        [Term { coeff, factors }] if factors.is_empty() => Ok(Sum::Constant(*coeff)),
        _ => Poly::of_canonical(sum).map(Sum::Poly),
    }
}

/// `a + b`.
pub(crate) fn add(a: &[Term], b: &[Term]) -> Result<Sum, Invalid> {
    let (mut a, mut b) = (a, b);
    let merged = std::iter::from_fn(|| {
        let from_a = match (a.first(), b.first()) {
            (Some(x), Some(y)) => order::cmp_factors(&x.factors, &y.factors).is_le(),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return None,
        };
        let side = if from_a { &mut a } else { &mut b };
        let (first, rest) = side.split_first()?;
        *side = rest;
        Some(first.clone())
    });
    of_sorted(merged)
}

/// `a * b`.
pub(crate) fn multiply(a: &[Term], b: &[Term]) -> Result<Sum, Invalid> {
    if a.len().saturating_mul(b.len()) > crate::expr::MAX_WEIGHT as usize {
        return Err(Invalid::TooLarge);
    }
    let mut products = Vec::with_capacity(a.len() * b.len());
    for x in a {
        for y in b {
            products.push(x.times(y)?);
        }
    }
    if a.len() > 1 && b.len() > 1 {
        products.sort_by(|x, y| order::cmp_factors(&x.factors, &y.factors));
    }
    of_sorted(products)
}

/// The largest term that divides every one of these, with a positive coefficient. There is at least one term.
pub(crate) fn common_divisor<'a>(terms: impl IntoIterator<Item = &'a Term>) -> Term {
    let mut common: Option<(u64, Factors)> = None;
    for term in terms {
        let size = term.coeff.unsigned_abs();
        common = Some(match common {
            None => (size, term.factors.clone()),
            Some((gcd, mut factors)) => {
                factors.retain(|factor| match term.factors.iter().find(|it| it.atom == factor.atom) {
                    Some(other) => {
                        factor.power = factor.power.min(other.power);
                        true
                    }
                    None => false,
                });
                (gcd_of(gcd, size), factors)
            }
        });
    }
    let (gcd, factors) = common.unwrap_or((1, Factors::new()));
    // Only i64::MIN alone has a divisor that is not an i64; not dividing by it is correct too.
    Term { coeff: i64::try_from(gcd).unwrap_or(1).max(1), factors }
}

fn gcd_of(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
