//! [`Problem`]: what solvers are asked, and what they answer.

use crate::Type;
use crate::solve::Search;
use std::collections::BTreeMap;
use tracefx_core::Result;

/// An integer expression over a problem's variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Int {
    /// A number.
    Const(i64),
    /// A variable, by its place among the problem's.
    Var(usize),
    /// A sum.
    Add(Vec<Int>),
    /// A product.
    Mul(Vec<Int>),
    /// A quotient, rounded down.
    Div(Box<Int>, Box<Int>),
    /// A remainder, of the sign of the divisor.
    Mod(Box<Int>, Box<Int>),
}

/// A dimension: `kind` is 0 where it is unknown and 1 where it is `size`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimPair {
    /// Whether it is known.
    pub kind: Int,
    /// Its size.
    pub size: Int,
}

/// The type of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeExpr {
    /// Unknown.
    Dyn,
    /// A variable, by its place among the problem's.
    Var(usize),
    /// A tensor of 1 to 4 dimensions, whose parts are variables and numbers.
    Tensor(Vec<DimPair>),
}

/// How two integers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `a = b`
    Eq,
    /// `a <= b`
    Le,
    /// `a < b`
    Lt,
}

/// What is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// Always, or never.
    Const(bool),
    /// All of them.
    And(Vec<Formula>),
    /// One of them.
    Or(Vec<Formula>),
    /// Not this.
    Not(Box<Formula>),
    /// A comparison of integers.
    Compare(Comparison, Int, Int),
    /// Two types are the same.
    SameType(TypeExpr, TypeExpr),
}

/// A formula, and the names of its variables.
///
/// ```
/// use tracefx_types::{Comparison, Formula, Int, Problem, Verdict};
/// let half = Int::Mod(Box::new(Int::Var(0)), Box::new(Int::Const(2)));
/// let is_odd = Formula::Not(Box::new(Formula::Compare(Comparison::Eq, half, Int::Const(0))));
/// let is_double = Formula::Compare(Comparison::Eq, Int::Var(0), Int::Mul(vec![Int::Const(2), Int::Var(1)]));
/// let problem = Problem::of_ints(["s0", "s1"], Formula::And(vec![is_double, is_odd]));
/// assert_eq!(problem.solve(), Verdict::Unsat);
/// assert!(problem.to_smt_lib().ends_with("(check-sat)\n(get-model)\n"));
/// ```
#[derive(Clone, Debug)]
pub struct Problem {
    /// What is to hold.
    pub formula: Formula,
    /// The names of the integer variables.
    pub ints: Vec<String>,
    /// The names of the type variables.
    pub types: Vec<String>,
}

/// Values under which a formula holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// The integers by name.
    pub ints: BTreeMap<String, i64>,
    /// The types by name.
    pub types: BTreeMap<String, Type>,
}

/// What a solver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can hold, with these values.
    Sat(Model),
    /// It cannot hold.
    Unsat,
    /// The solver does not know, for this reason.
    Unknown(String),
}

/// Something that solves what the solver of this crate leaves open, such as a process that reads
/// [`Problem::to_smt_lib`].
pub trait Solver {
    /// Whether the problem can be solved.
    ///
    /// # Errors
    /// Where there is no solver to ask.
    fn solve(&self, problem: &Problem) -> Result<Verdict>;
}

/// How many steps the search takes before it gives up.
pub const DEFAULT_BUDGET: u32 = 20_000;

impl Problem {
    /// A problem of integers alone.
    pub fn of_ints<S: Into<String>>(names: impl IntoIterator<Item = S>, formula: Formula) -> Self {
        Problem { formula, ints: names.into_iter().map(Into::into).collect(), types: Vec::new() }
    }

    /// Solves it: by propagation, elimination and search, within [`DEFAULT_BUDGET`]. The answer is never a guess.
    pub fn solve(&self) -> Verdict {
        self.solve_within(DEFAULT_BUDGET)
    }

    /// Solves it within so many steps of search.
    pub fn solve_within(&self, budget: u32) -> Verdict {
        Search::new(self).run(budget)
    }

    /// Solves it, and asks the other solver where the own one does not know.
    ///
    /// # Errors
    /// What the other solver refuses.
    pub fn solve_with(&self, other: &dyn Solver) -> Result<Verdict> {
        match self.solve() {
            Verdict::Unknown(_) => other.solve(self),
            known @ (Verdict::Sat(_) | Verdict::Unsat) => Ok(known),
        }
    }
}
