//! Gradual tensor types: what is known of shapes before a program runs, checked and inferred as torch.fx does it.
//!
//! A [`Type`] says as much of a value's shape as somebody wrote down. [`GraphTypeChecker`] finds contradictions and what
//! follows; [`infer_symbolic_types`] finds which unknown dimensions are the same. A [`ConstraintGenerator`] asks whether there
//! are shapes at all for which a graph runs: as a [`Problem`], which is solved here or printed for another solver. Nothing
//! here runs a graph. A [`TranslationValidator`] checks guards of sizes with the same solver.
#![forbid(unsafe_code)]

mod check;
mod constraint;
mod formula;
mod modules;
mod refine;
mod smt;
mod solve;
mod ty;
mod unify;
mod validator;

pub use check::{GraphTypeChecker, Types, annotate};
pub use constraint::{
    Arithmetic, Constraint, ConstraintGenerator, Constraints, DimTerm, MAX_TENSOR_RANK, Relation, SizeTerm, Symbol,
    TypeTerm, evaluate_conditional_with_constraints, transform_all_constraints,
};
pub use formula::{Comparison, DEFAULT_BUDGET, DimPair, Formula, Int, Model, Problem, Solver, TypeExpr, Verdict};
pub use modules::{ModuleSpec, Modules, Window};
pub use refine::{Equality, Refine, infer_symbolic_types, infer_symbolic_types_single_pass};
pub use smt::SmtLib;
pub use ty::{
    Dim, Type, broadcast_types, expand_to_tensor_dim, get_greatest_upper_bound, is_consistent, is_consistent_dim,
    is_more_precise,
};
pub use unify::{Substitution, Term, reify, unify, unify_with};
pub use validator::{Counterexample, TranslationValidator, Validation, bisect};
