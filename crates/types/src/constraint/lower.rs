//! Transformed constraints as a formula: `transform_to_z3`, whose encoding of dimensions this is.

use super::generate::refuse;
use super::{Arithmetic, Constraint, DimTerm, Relation, SizeTerm, TypeTerm};
use crate::{Comparison, DimPair, Formula, Int, Problem, TypeExpr};
use rustc_hash::FxHashMap;
use tracefx_core::Result;

/// The variables of the formula so far.
#[derive(Clone, Default)]
pub(super) struct Lowering {
    ints: Vec<String>,
    types: Vec<String>,
    dim_vars: FxHashMap<u32, usize>,
    type_vars: FxHashMap<u32, usize>,
}

fn equal(a: Int, b: Int) -> Formula {
    Formula::Compare(Comparison::Eq, a, b)
}

fn differ(a: Int, b: Int) -> Formula {
    Formula::Not(Box::new(equal(a, b)))
}

impl Lowering {
    /// The formula as a problem, in which each dimension is known or unknown.
    pub(super) fn problem(self, formula: Formula) -> Problem {
        let mut kinds: Vec<usize> = self.dim_vars.values().copied().collect();
        kinds.sort_unstable();
        let mut all = Vec::with_capacity(2 * kinds.len() + 1);
        for kind in kinds {
            all.push(Formula::Compare(Comparison::Le, Int::Const(0), Int::Var(kind)));
            all.push(Formula::Compare(Comparison::Le, Int::Var(kind), Int::Const(1)));
        }
        all.push(formula);
        Problem { formula: Formula::And(all), ints: self.ints, types: self.types }
    }

    pub(super) fn formula(&mut self, constraint: &Constraint) -> Result<Formula> {
        match constraint {
            Constraint::True => Ok(Formula::Const(true)),
            Constraint::False => Ok(Formula::Const(false)),
            Constraint::Conj(items) => {
                Ok(Formula::And(items.iter().map(|it| self.formula(it)).collect::<Result<_>>()?))
            }
            Constraint::Disj(items) => Ok(Formula::Or(items.iter().map(|it| self.formula(it)).collect::<Result<_>>()?)),
            Constraint::Type(a, Relation::Eq, b) => Ok(Formula::SameType(self.ty(a), self.ty(b))),
            Constraint::Dim(a, relation, b) => self.relation(a, *relation, b),
            // Nothing else speaks of the variable, so it can always have the value of the condition.
            Constraint::Bool(..) => Ok(Formula::Const(true)),
            Constraint::Type(..)
            | Constraint::RankLe(..)
            | Constraint::TGreatestUpperBound { .. }
            | Constraint::DGreatestUpperBound { .. }
            | Constraint::CanReshape { .. }
            | Constraint::IndexSelect { .. }
            | Constraint::Transpose { .. }
            | Constraint::GetItem { .. }
            | Constraint::GetItemTensor { .. }
            | Constraint::CalcConv { .. }
            | Constraint::CalcMaxPool { .. }
            | Constraint::ApplyBroadcasting { .. }
            | Constraint::CalcProduct { .. } => {
                Err(refuse(format!("the constraint {constraint} must be transformed before it is solved")))
            }
        }
    }

    fn relation(&mut self, a: &SizeTerm, relation: Relation, b: &SizeTerm) -> Result<Formula> {
        match (relation, a, b) {
            (Relation::Eq, SizeTerm::Dim(a), SizeTerm::Dim(b)) => {
                // An unknown dimension has any size.
                if *a == DimTerm::Dyn || *b == DimTerm::Dyn {
                    let [a, b] = [self.kind(*a), self.kind(*b)];
                    return Ok(equal(a, b));
                }
                let (a, b) = (self.dim(*a), self.dim(*b));
                Ok(Formula::And(vec![equal(a.kind, b.kind), equal(a.size, b.size)]))
            }
            (Relation::Eq, a, b) => Ok(equal(self.size(a), self.size(b))),
            (Relation::Ne, SizeTerm::Dim(a), SizeTerm::Dim(DimTerm::Dyn))
            | (Relation::Ne, SizeTerm::Dim(DimTerm::Dyn), SizeTerm::Dim(a)) => Ok(equal(self.kind(*a), Int::Const(1))),
            (Relation::Ne, SizeTerm::Dim(a), SizeTerm::Dim(b)) => {
                let (a, b) = (self.dim(*a), self.dim(*b));
                Ok(Formula::Or(vec![
                    differ(a.kind, b.kind.clone()),
                    Formula::And(vec![equal(b.kind, Int::Const(1)), differ(a.size, b.size)]),
                ]))
            }
            (Relation::Le, a, b) => Ok(Formula::Compare(Comparison::Le, self.size(a), self.size(b))),
            (Relation::Lt, a, b) => Ok(Formula::Compare(Comparison::Lt, self.size(a), self.size(b))),
            (Relation::Gt, a, b) => Ok(Formula::Compare(Comparison::Lt, self.size(b), self.size(a))),
            (Relation::Ne | Relation::Consistency | Relation::Precision | Relation::Matching, _, _) => {
                Err(refuse(format!("{a} {relation} {b} is not a relation of solvers")))
            }
        }
    }

    fn int(&mut self, name: String) -> usize {
        self.ints.push(name);
        self.ints.len() - 1
    }

    /// The places of a dimension variable: its kind, then its size.
    fn dim_var(&mut self, var: u32) -> usize {
        if let Some(at) = self.dim_vars.get(&var) {
            return *at;
        }
        let at = self.int(format!("k{var}"));
        self.int(format!("d{var}"));
        self.dim_vars.insert(var, at);
        at
    }

    fn kind(&mut self, dim: DimTerm) -> Int {
        match dim {
            DimTerm::Dyn => Int::Const(0),
            DimTerm::Size(_) => Int::Const(1),
            DimTerm::Var(var) => Int::Var(self.dim_var(var)),
        }
    }

    fn dim(&mut self, dim: DimTerm) -> DimPair {
        let size = match dim {
            DimTerm::Dyn => {
                let name = format!("any{}", self.ints.len());
                Int::Var(self.int(name))
            }
            DimTerm::Size(it) => Int::Const(it),
            DimTerm::Var(var) => Int::Var(self.dim_var(var) + 1),
        };
        DimPair { kind: self.kind(dim), size }
    }

    fn ty(&mut self, ty: &TypeTerm) -> TypeExpr {
        match ty {
            TypeTerm::Dyn => TypeExpr::Dyn,
            TypeTerm::Tensor(dims) => TypeExpr::Tensor(dims.iter().map(|it| self.dim(*it)).collect()),
            TypeTerm::Var(var) => {
                let next = self.types.len();
                let at = *self.type_vars.entry(*var).or_insert(next);
                if at == next {
                    self.types.push(format!("t{var}"));
                }
                TypeExpr::Var(at)
            }
        }
    }

    fn size(&mut self, term: &SizeTerm) -> Int {
        match term {
            SizeTerm::Dim(dim) => self.dim(*dim).size,
            SizeTerm::Prod(dims) => Int::Mul(dims.iter().map(|it| self.dim(*it).size).collect()),
            SizeTerm::Binary(op, a, b) => {
                let (a, b) = (self.size(a), self.size(b));
                match op {
                    Arithmetic::Add => Int::Add(vec![a, b]),
                    Arithmetic::Sub => Int::Add(vec![a, Int::Mul(vec![Int::Const(-1), b])]),
                    Arithmetic::Mul => Int::Mul(vec![a, b]),
                    Arithmetic::Div => Int::Div(Box::new(a), Box::new(b)),
                    Arithmetic::Mod => Int::Mod(Box::new(a), Box::new(b)),
                }
            }
        }
    }
}
