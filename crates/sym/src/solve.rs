//! Values of symbols from the sizes of concrete inputs.

use crate::int::IntRef;
use crate::poly::Atom;
use crate::{EvalError, ShapeEnv, SymInt, Symbol, ValueRange};
use std::collections::BTreeMap;

/// A size of an input: what the program says it is, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equation {
    /// The size in the program.
    pub expr: SymInt,
    /// The size of the input.
    pub value: i64,
}

/// What the sizes of the inputs say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Solution {
    /// The value of each symbol that could be found.
    pub bindings: BTreeMap<Symbol, i64>,
    /// What the inputs break, in the order of the equations.
    pub violations: Vec<Violation>,
    /// The equations that could not be looked at, because a symbol in them has no value.
    pub unsolved: Vec<usize>,
}

/// What is wrong with the inputs. Equations are named by their index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The size is another one than the program needs.
    Mismatch {
        /// The equation that does not hold.
        equation: usize,
        /// What the size had to be.
        expected: i64,
        /// The symbols in it, and the equations that their values are from.
        because: Vec<(Symbol, usize)>,
    },
    /// No integer solves the equation: `4*s0 == 7`.
    NotDivisible {
        /// The equation.
        equation: usize,
        /// The unknown in it.
        symbol: Symbol,
    },
    /// The value of a symbol is not in its range.
    OutOfRange {
        /// The equation that the value is from.
        equation: usize,
        /// The symbol.
        symbol: Symbol,
        /// Its value.
        value: i64,
        /// Its range.
        range: ValueRange,
    },
    /// The size that the program needs has no value.
    Undefined {
        /// The equation.
        equation: usize,
        /// Why.
        error: EvalError,
    },
}

impl Violation {
    /// The equation that it is about.
    pub fn equation(&self) -> usize {
        match self {
            Violation::Mismatch { equation, .. }
            | Violation::NotDivisible { equation, .. }
            | Violation::OutOfRange { equation, .. }
            | Violation::Undefined { equation, .. } => *equation,
        }
    }
}

/// Finds the values of the symbols and reports everything that does not fit.
///
/// Sizes that are a symbol alone give its value; then each equation with one unknown in it, in which the unknown is
/// linear, gives that one, until nothing new is found. Every other equation is a check. Ranges are checked as `env` has
/// them; assumptions, such as that a size is positive, are not.
///
/// ```
/// use tracefx_sym::{Equation, Parser, ShapeEnv, Violation, solve};
/// let mut parser = Parser::default();
/// let mut equation = |expr, value| Equation { expr: parser.parse_int(expr).unwrap(), value };
/// let solution = solve(&[equation("2*s0 + 1", 9), equation("s0", 4), equation("s0*s1", 12)], &ShapeEnv::new());
/// let values: Vec<_> = solution.bindings.values().collect();
/// assert_eq!(values, [&4, &3]);
/// assert!(solution.violations.is_empty());
///
/// let solution = solve(&[equation("4*s2", 7)], &ShapeEnv::new());
/// assert!(matches!(&solution.violations[..], [Violation::NotDivisible { .. }]));
/// ```
pub fn solve(equations: &[Equation], env: &ShapeEnv) -> Solution {
    let mut solver = Solver { equations, found: BTreeMap::new(), violations: Vec::new() };
    // The sizes that are a symbol alone come first, so that a derived one that does not fit is the one reported.
    let (alone, derived): (Vec<usize>, Vec<usize>) =
        (0..equations.len()).partition(|at| equations[*at].expr.as_symbol().is_some());
    let mut pending = Vec::new();
    for at in alone {
        if !solver.look_at(at) {
            pending.push(at);
        }
    }
    pending.extend(derived);
    loop {
        let before = pending.len();
        pending.retain(|at| !solver.look_at(*at));
        if pending.len() == before {
            break;
        }
    }
    let Solver { found, mut violations, .. } = solver;
    for (symbol, (value, equation)) in &found {
        if let Some(range) = env.declared_range(symbol)
            && !range.contains(*value)
        {
            let symbol = symbol.clone();
            violations.push(Violation::OutOfRange { equation: *equation, symbol, value: *value, range });
        }
    }
    violations.sort_by_key(Violation::equation);
    let bindings = found.into_iter().map(|(symbol, (value, _))| (symbol, value)).collect();
    pending.sort_unstable();
    Solution { bindings, violations, unsolved: pending }
}

struct Solver<'a> {
    equations: &'a [Equation],
    /// The value of a symbol and the equation that it is from.
    found: BTreeMap<Symbol, (i64, usize)>,
    violations: Vec<Violation>,
}

impl Solver<'_> {
    /// Uses an equation; false if that has to wait for more values.
    fn look_at(&mut self, at: usize) -> bool {
        let Equation { expr, value } = &self.equations[at];
        let symbols = expr.symbols();
        let unknown: Vec<&Symbol> = symbols.iter().filter(|it| !self.found.contains_key(it)).collect();
        let bound = |symbol: &Symbol| self.found.get(symbol).map(|(value, _)| *value);
        match unknown.as_slice() {
            [] => {
                match expr.eval(&bound) {
                    Ok(expected) if expected == *value => {}
                    Ok(expected) => {
                        let because =
                            symbols.iter().filter_map(|it| Some((it.clone(), self.found.get(it)?.1))).collect();
                        self.violations.push(Violation::Mismatch { equation: at, expected, because });
                    }
                    Err(error) => self.violations.push(Violation::Undefined { equation: at, error }),
                }
                true
            }
            [symbol] => {
                let line = expr.substitute(&|it| bound(it).map(SymInt::new));
                match solve_linear(&line, symbol, *value) {
                    Linear::Solved(found) => {
                        self.found.insert((*symbol).clone(), (found, at));
                        true
                    }
                    Linear::NotDivisible => {
                        let symbol = (*symbol).clone();
                        self.violations.push(Violation::NotDivisible { equation: at, symbol });
                        true
                    }
                    Linear::No => false,
                }
            }
            _ => false,
        }
    }
}

enum Linear {
    Solved(i64),
    NotDivisible,
    No,
}

/// Solves `coeff*symbol + constant == value`.
fn solve_linear(line: &SymInt, symbol: &Symbol, value: i64) -> Linear {
    let IntRef::Poly(poly) = line.view() else { return Linear::No };
    let (coeff, constant) = match &*poly.terms {
        [term] => (term, 0),
        [term, constant] if constant.factors.is_empty() => (term, constant.coeff),
        _ => return Linear::No,
    };
    match coeff.factors.as_slice() {
        [factor] if factor.power == 1 && factor.atom == Atom::Symbol(symbol.clone()) => {}
        _ => return Linear::No,
    }
    let (coeff, rest) = (i128::from(coeff.coeff), i128::from(value) - i128::from(constant));
    match i64::try_from(rest / coeff) {
        Ok(found) if rest % coeff == 0 => Linear::Solved(found),
        Ok(_) | Err(_) => Linear::NotDivisible,
    }
}
