//! What guards come to for the dimensions that have a name: PyTorch's `DimConstraints`.

use std::collections::{BTreeMap, BTreeSet};
use tracefx_sym::{Expr, Func, IntFactor, SymBool, SymInt, Symbol};

/// Congruences that take more steps to join are left alone.
const MAX_STEPS: i128 = 1 << 16;

/// `(factor*s + constant) / divisor` of one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    factor: i128,
    constant: i128,
    divisor: i128,
}

/// Conditions on symbols, and what follows from them.
#[derive(Debug)]
pub(super) struct DimConstraints<'a> {
    hints: &'a BTreeMap<Symbol, i64>,
    equalities: BTreeMap<Symbol, i64>,
    bounds: BTreeMap<Symbol, (Option<i64>, Option<i64>)>,
    /// Pairs of a line and a number that divides it.
    congruences: BTreeMap<Symbol, BTreeSet<(Line, i128)>>,
    multivariate: Vec<SymBool>,
}

/// What is known of a symbol after all.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Solved {
    /// The number that it is.
    pub(super) value: Option<i64>,
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
    /// It is a multiple of the first number plus the second.
    pub(super) multiple: Option<(i64, i64)>,
}

impl<'a> DimConstraints<'a> {
    pub(super) fn new(hints: &'a BTreeMap<Symbol, i64>) -> Self {
        DimConstraints {
            hints,
            equalities: BTreeMap::new(),
            bounds: BTreeMap::new(),
            congruences: BTreeMap::new(),
            multivariate: Vec::new(),
        }
    }

    /// Adds a condition, and says whether it holds whatever the sizes are.
    pub(super) fn add(&mut self, condition: &SymBool) -> bool {
        let SymBool::Call(call) = condition else { return condition.as_bool() == Some(true) };
        let func = call.func();
        if !matches!(func, Func::Eq | Func::Lt | Func::Le | Func::Gt | Func::Ge) {
            return false;
        }
        let symbols = Expr::Bool(condition.clone()).symbols();
        let [symbol] = symbols.as_slice() else {
            self.multivariate.push(condition.clone());
            return false;
        };
        let [Expr::Int(a), Expr::Int(b)] = call.args() else { return false };
        let n_congruences = self.congruences.get(symbol).map_or(0, BTreeSet::len);
        let Some(line) = self.line(a, symbol).zip(self.line(b, symbol)).and_then(|(a, b)| a.minus(b)) else {
            return false;
        };
        let is_new = self.congruences.get(symbol).map_or(0, BTreeSet::len) != n_congruences;
        if line.factor == 0 {
            return !is_new;
        }
        self.note(symbol, func, line);
        false
    }

    /// Notes that `line` is in this relation to zero.
    fn note(&mut self, symbol: &Symbol, func: Func, line: Line) {
        let (factor, wanted) = (line.factor, -line.constant);
        if func == Func::Eq {
            if wanted % factor == 0
                && let Ok(value) = i64::try_from(wanted / factor)
            {
                self.equalities.insert(symbol.clone(), value);
            }
            return;
        }
        let is_upper = matches!(func, Func::Lt | Func::Le) == (factor > 0);
        let is_strict = matches!(func, Func::Lt | Func::Gt);
        let (wanted, factor) = if factor < 0 { (-wanted, -factor) } else { (wanted, factor) };
        let (min, max) = self.bounds.entry(symbol.clone()).or_default();
        if is_upper {
            let bound = if is_strict { (wanted - 1).div_euclid(factor) } else { wanted.div_euclid(factor) };
            let bound = i64::try_from(bound).unwrap_or(i64::MAX);
            *max = Some(max.map_or(bound, |it| it.min(bound)));
        } else {
            let bound = if is_strict { wanted.div_euclid(factor) + 1 } else { -(-wanted).div_euclid(factor) };
            let bound = i64::try_from(bound).unwrap_or(i64::MIN);
            *min = Some(min.map_or(bound, |it| it.max(bound)));
        }
    }

    /// An expression as a line. A rest of a division is the one of the example, and becomes a congruence.
    fn line(&mut self, int: &SymInt, symbol: &Symbol) -> Option<Line> {
        let mut sum = Line::of(0, 0);
        for summand in int.summands() {
            let part = match summand.factors.as_slice() {
                [] => Line::of(0, 1),
                [(IntFactor::Symbol(_), 1)] => Line::of(1, 0),
                [(IntFactor::Call(func, args), 1)] => self.quotient(*func, args, symbol)?,
                _ => return None,
            };
            sum = sum.plus(part.times(summand.coefficient.into())?)?;
        }
        Some(sum)
    }

    fn quotient(&mut self, func: Func, args: &[Expr], symbol: &Symbol) -> Option<Line> {
        let [Expr::Int(base), Expr::Int(divisor)] = args else { return None };
        let divisor = i128::from(divisor.as_int().filter(|it| *it > 0)?);
        let hint = i128::from(base.eval(&|it| self.hints.get(it).copied()).ok()?);
        let rest = hint.rem_euclid(divisor);
        let line = self.line(base, symbol)?.minus(Line::of(0, rest))?;
        if line.divisor == 1 && (line.factor % divisor != 0 || line.constant % divisor != 0) {
            self.congruences.entry(symbol.clone()).or_default().insert((line, divisor));
        }
        match func {
            Func::FloorDiv | Func::CleanDiv => Some(Line { divisor: line.divisor.checked_mul(divisor)?, ..line }),
            Func::Mod | Func::PythonMod => Some(Line::of(0, rest)),
            _ => None,
        }
    }

    /// What follows for each symbol that conditions are about.
    pub(super) fn solve(mut self) -> BTreeMap<Symbol, Solved> {
        // A symbol that is a number may leave one symbol in a condition that had two.
        loop {
            let known = self.equalities.clone();
            for condition in std::mem::take(&mut self.multivariate) {
                self.add(&condition.substitute(&|it| known.get(it).map(|it| SymInt::from(*it))));
            }
            if self.equalities.len() == known.len() {
                break;
            }
        }
        let symbols: BTreeSet<Symbol> =
            self.equalities.keys().chain(self.bounds.keys()).chain(self.congruences.keys()).cloned().collect();
        let solved = |symbol: Symbol| {
            let value = self.equalities.get(&symbol).copied();
            let (min, max) = self.bounds.get(&symbol).copied().unwrap_or_default();
            let multiple = self.congruences.get(&symbol).filter(|_| value.is_none()).and_then(multiple);
            (symbol, Solved { value, min, max, multiple })
        };
        symbols.into_iter().map(solved).collect()
    }
}

/// The solution of congruences together: `m*k + r`, with `r` from `1 - m` to 0 as PyTorch has it.
fn multiple(congruences: &BTreeSet<(Line, i128)>) -> Option<(i64, i64)> {
    let mut found: Option<(i128, i128)> = None;
    for (line, divisor) in congruences {
        // `factor*s + constant == divisor*k` has to give a whole `s` for each `k`.
        if divisor % line.factor != 0 || line.constant % line.factor != 0 {
            continue;
        }
        let modulus = (divisor / line.factor).abs();
        let rest = (-line.constant / line.factor).rem_euclid(modulus);
        found = Some(match found {
            None => (modulus, rest),
            Some((other, of_other)) => {
                let common = (other / gcd(other, modulus)).checked_mul(modulus).filter(|it| it / other <= MAX_STEPS)?;
                let both = (0..common / other).map(|it| it * other + of_other).find(|it| it % modulus == rest)?;
                (common, both)
            }
        });
    }
    let (modulus, rest) = found.filter(|it| it.0 > 1)?;
    Some((i64::try_from(modulus).ok()?, i64::try_from(-(-rest).rem_euclid(modulus)).ok()?))
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Line {
    fn of(factor: i128, constant: i128) -> Line {
        Line { factor, constant, divisor: 1 }
    }

    fn times(self, by: i128) -> Option<Line> {
        Some(Line { factor: self.factor.checked_mul(by)?, constant: self.constant.checked_mul(by)?, ..self })
    }

    fn plus(self, other: Line) -> Option<Line> {
        let (a, b) = (self.times(other.divisor)?, other.times(self.divisor)?);
        let divisor = self.divisor.checked_mul(other.divisor)?;
        let (factor, constant) = (a.factor.checked_add(b.factor)?, a.constant.checked_add(b.constant)?);
        let common = gcd(gcd(factor.abs(), constant.abs()), divisor).max(1);
        Some(Line { factor: factor / common, constant: constant / common, divisor: divisor / common })
    }

    fn minus(self, other: Line) -> Option<Line> {
        self.plus(other.times(-1)?)
    }
}
