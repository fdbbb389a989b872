//! [`ShapeEnv`]: what is known of the symbols, and which comparisons follow from it.

use crate::expr::Expr;
use crate::int::IntRef;
use crate::poly::{Atom, Term};
use crate::range::Interval;
use crate::{Func, SymBool, SymInt, Symbol, ValueRange, division};
use std::collections::BTreeMap;
use std::fmt;

/// The ranges of a program's symbols.
///
/// Decisions are sound: `Some` holds for every value of the symbols in their ranges for which both sides have a value,
/// and what does not follow from ranges and arithmetic is `None`. The ranges are those that the program declares.
/// PyTorch runs a program whose range starts at 2 with a size of 1 all the same, so a decision is for reasoning about
/// programs, and never replaces looking at the sizes of a run.
///
/// ```
/// use tracefx_sym::{ShapeEnv, SymInt, Symbol, ValueRange};
/// let s0 = Symbol::size("s0");
/// let mut env = ShapeEnv::new();
/// env.constrain(&s0, ValueRange::between(2, 10)).unwrap();
/// let s0 = SymInt::from(s0);
/// assert_eq!(env.decide_le(&s0.floor_div(&2.into()), &5.into()), Some(true));
/// assert_eq!(env.decide_eq(&s0, &4.into()), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ShapeEnv {
    ranges: BTreeMap<Symbol, ValueRange>,
}

/// Two constraints of a symbol that no value meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The symbol.
    pub symbol: Symbol,
    /// What was known.
    pub known: ValueRange,
    /// What was to be added.
    pub added: ValueRange,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no value of {} is in both {} and {}", self.symbol, self.known, self.added)
    }
}

impl std::error::Error for Contradiction {}

/// How often one decision may look into a `Max`, `Min` or floor division.
const BUDGET: u32 = 64;

impl ShapeEnv {
    /// An environment that knows no symbols.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what is known of a symbol.
    ///
    /// # Errors
    ///
    /// If no value is left; then nothing changes.
    pub fn constrain(&mut self, symbol: &Symbol, range: ValueRange) -> Result<(), Contradiction> {
        let known = self.ranges.get(symbol).copied().unwrap_or_default();
        let both = known.intersect(&range);
        if both.is_empty() {
            return Err(Contradiction { symbol: symbol.clone(), known, added: range });
        }
        self.ranges.insert(symbol.clone(), both);
        Ok(())
    }

    /// The symbols and their ranges, by name.
    pub fn ranges(&self) -> impl Iterator<Item = (&Symbol, &ValueRange)> {
        self.ranges.iter()
    }

    /// The range that a symbol was constrained to, if it was.
    pub fn declared_range(&self, symbol: &Symbol) -> Option<ValueRange> {
        self.ranges.get(symbol).copied()
    }

    /// What is known of a symbol: its range and its assumptions.
    pub fn range(&self, symbol: &Symbol) -> ValueRange {
        let range = self.ranges.get(symbol).copied().unwrap_or_default();
        let assumed = match symbol.assumptions() {
            it if it.positive => ValueRange::at_least(1),
            it if it.nonnegative => ValueRange::at_least(0),
            _ => ValueRange::UNBOUNDED,
        };
        // A file may declare a positive symbol with a range of [0, 0]; the range is what inputs are checked against.
        let both = range.intersect(&assumed);
        if both.is_empty() { range } else { both }
    }

    /// Bounds of an expression's value.
    pub fn bounds(&self, int: &SymInt) -> ValueRange {
        match int.invalid() {
            Some(_) => ValueRange::UNBOUNDED,
            None => self.interval(int, &mut BUDGET.clone()).into(),
        }
    }

    /// Whether `a == b`.
    pub fn decide_eq(&self, a: &SymInt, b: &SymInt) -> Option<bool> {
        let difference = self.difference(a, b)?;
        match (difference.lo(), difference.hi()) {
            (Some(0), Some(0)) => Some(true),
            (Some(1..), _) | (_, Some(..0)) => Some(false),
            (_, _) => None,
        }
    }

    /// Whether `a != b`.
    pub fn decide_ne(&self, a: &SymInt, b: &SymInt) -> Option<bool> {
        self.decide_eq(a, b).map(|it| !it)
    }

    /// Whether `a < b`.
    pub fn decide_lt(&self, a: &SymInt, b: &SymInt) -> Option<bool> {
        let difference = self.difference(a, b)?;
        match (difference.lo(), difference.hi()) {
            (_, Some(..0)) => Some(true),
            (Some(0..), _) => Some(false),
            (_, _) => None,
        }
    }

    /// Whether `a <= b`.
    pub fn decide_le(&self, a: &SymInt, b: &SymInt) -> Option<bool> {
        self.decide_lt(b, a).map(|it| !it)
    }

    /// Whether `a > b`.
    pub fn decide_gt(&self, a: &SymInt, b: &SymInt) -> Option<bool> {
        self.decide_lt(b, a)
    }

    /// Whether `a >= b`.
    pub fn decide_ge(&self, a: &SymInt, b: &SymInt) -> Option<bool> {
        self.decide_lt(a, b).map(|it| !it)
    }

    /// Whether a relation, or what `and`, `or` and `not` make of relations, holds.
    pub fn decide(&self, bool: &SymBool) -> Option<bool> {
        let call = match bool {
            SymBool::Const(it) => return Some(*it),
            SymBool::Invalid(_) => return None,
            SymBool::Call(it) => it,
        };
        let part = |arg: &Expr| if let Expr::Bool(it) = arg { self.decide(it) } else { None };
        match (call.func(), call.args()) {
            (Func::Eq, [Expr::Int(a), Expr::Int(b)]) => self.decide_eq(a, b),
            (Func::Ne, [Expr::Int(a), Expr::Int(b)]) => self.decide_ne(a, b),
            (Func::Lt, [Expr::Int(a), Expr::Int(b)]) => self.decide_lt(a, b),
            (Func::Le, [Expr::Int(a), Expr::Int(b)]) => self.decide_le(a, b),
            (Func::Gt, [Expr::Int(a), Expr::Int(b)]) => self.decide_gt(a, b),
            (Func::Ge, [Expr::Int(a), Expr::Int(b)]) => self.decide_ge(a, b),
            (Func::Not, [arg]) => part(arg).map(|it| !it),
            (func @ (Func::And | Func::Or), args) => {
                let deciding = func == Func::Or;
                let mut all_known = true;
                for arg in args {
                    match part(arg) {
                        Some(it) if it == deciding => return Some(deciding),
                        Some(_) => {}
                        None => all_known = false,
                    }
                }
                all_known.then_some(!deciding)
            }
            (_, _) => None,
        }
    }

    fn difference(&self, a: &SymInt, b: &SymInt) -> Option<Interval> {
        let difference = a - b;
        if difference.invalid().is_some() {
            // The difference can overflow where the sides do not.
            if a.invalid().or(b.invalid()).is_some() {
                return None;
            }
            let budget = &mut BUDGET.clone();
            return Some(self.interval(a, budget).plus(self.interval(b, budget).negate()));
        }
        Some(self.interval(&difference, &mut BUDGET.clone()))
    }

    /// The interval of a valid expression.
    fn interval(&self, int: &SymInt, budget: &mut u32) -> Interval {
        let terms = match int.view() {
            IntRef::Int(it) => return Interval::exactly(it.into()),
            IntRef::Invalid(_) => return Interval::ALL,
            IntRef::Poly(poly) => &*poly.terms,
        };
        let mut sum = Interval::exactly(0);
        for term in terms {
            let mut product = Interval::exactly(term.coeff.into());
            for factor in &term.factors {
                product = product.times(self.interval_of_atom(&factor.atom, budget).pow(factor.power));
            }
            sum = sum.plus(product);
        }
        if sum.lo().is_some() && sum.hi().is_some() && sum.lo() == sum.hi() {
            return sum;
        }
        for at in 0..terms.len() {
            if *budget == 0 {
                break;
            }
            if let Some(refined) = self.without_call(terms, at, budget) {
                sum = sum.intersect(refined);
            }
        }
        sum
    }

    /// The interval of a sum, from looking into the call that its `at`-th term is a multiple of. The call and the other
    /// terms may depend on each other, as in `s0 - s0//2`.
    fn without_call(&self, terms: &[Term], at: usize, budget: &mut u32) -> Option<Interval> {
        let Term { coeff, factors } = &terms[at];
        let [factor] = factors.as_slice() else { return None };
        let Atom::Call(call) = &factor.atom else { return None };
        if factor.power != 1 {
            return None;
        }
        let rest: Vec<Term> = terms.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, it)| it.clone()).collect();
        let rest = SymInt::of_terms(rest);
        match (call.func, &*call.args) {
            (Func::Max | Func::Min, args) => {
                // k * Max(a, b) + rest is Max(k*a + rest, k*b + rest), or Min for a negative k.
                let is_max = (call.func == Func::Max) == (*coeff > 0);
                let mut extremum: Option<Interval> = None;
                for arg in args {
                    let branch = self.refined(&(arg.as_int()? * *coeff + &rest), budget)?;
                    extremum = Some(match extremum {
                        None => branch,
                        Some(it) if is_max => it.max(branch),
                        Some(it) => it.min(branch),
                    });
                }
                extremum
            }
            (Func::FloorDiv | Func::CleanDiv, [Expr::Int(base), Expr::Int(divisor)]) => {
                // d * (a//d) is a - r with a rest r from 0 to d - 1, so d times the sum is d*rest + k*a - k*r.
                let divisor = divisor.as_int().filter(|it| *it > 1)?;
                let scaled = self.refined(&(&rest * divisor + base * *coeff), budget)?;
                let remainder = Interval::between(0, i128::from(divisor) - 1);
                let scaled = scaled.plus(Interval::exactly(-i128::from(*coeff)).times(remainder));
                // The sum is whole: its lower bound rounds up, its upper one down.
                let divisor = Interval::exactly(divisor.into());
                let (up, down) = (scaled.negate().floor_div(divisor).negate(), scaled.floor_div(divisor));
                Some(up.ends_with(down))
            }
            _ => None,
        }
    }

    fn refined(&self, int: &SymInt, budget: &mut u32) -> Option<Interval> {
        *budget = budget.checked_sub(1)?;
        int.invalid().is_none().then(|| self.interval(int, budget))
    }

    fn interval_of_atom(&self, atom: &Atom, budget: &mut u32) -> Interval {
        let call = match atom {
            Atom::Symbol(it) => return self.range(it).into(),
            Atom::Call(it) => it,
        };
        let mut int = |arg: &Expr| arg.as_int().map_or(Interval::ALL, |it| self.interval(it, budget));
        match (call.func, &*call.args) {
            (Func::FloorDiv | Func::CleanDiv, [a, b]) => {
                let (a, b) = (int(a), int(b));
                a.floor_div(b)
            }
            (Func::Mod | Func::PythonMod, [a, b]) => match known_rest(a, b) {
                Some(rest) => Interval::exactly(rest.into()),
                None => {
                    let (a, b) = (int(a), int(b));
                    a.modulo(b)
                }
            },
            (Func::ModularIndexing, [base, divisor, modulus]) => {
                let (base, divisor, modulus) = (int(base), int(divisor), int(modulus));
                base.floor_div(divisor).modulo(modulus)
            }
            (Func::Max, args) => args.iter().map(int).reduce(Interval::max).unwrap_or(Interval::ALL),
            (Func::Min, args) => args.iter().map(int).reduce(Interval::min).unwrap_or(Interval::ALL),
            (Func::Where, [_, yes, no]) => {
                let (yes, no) = (int(yes), int(no));
                yes.union(no)
            }
            (Func::Identity, [arg]) => int(arg),
            (Func::IsNonOverlappingAndDenseIndicator, _) => Interval::between(0, 1),
            // A power with a negative exponent has no value.
            (Func::Pow | Func::PowByNatural, [base, _]) => match int(base).lo() {
                Some(1..) => Interval::at_least(1),
                Some(_) | None => Interval::ALL,
            },
            _ => Interval::ALL,
        }
    }
}

/// The rest of a division by a number that divides everything but the constant.
fn known_rest(a: &Expr, b: &Expr) -> Option<i64> {
    let difference = |rest: i64| division::modulo(Func::PythonMod, &(a.as_int()? - rest), b.as_int()?).as_int();
    let divisor = b.as_int()?.as_int()?;
    let constant = a.as_int()?.with_terms(|it| it.last().filter(|it| it.factors.is_empty()).map_or(0, |it| it.coeff));
    (difference(constant) == Some(0)).then(|| crate::eval::modulo(constant, divisor))
}
