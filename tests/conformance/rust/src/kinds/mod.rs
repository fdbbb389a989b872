//! The kinds of recorded graphs: what checks a case of each.

mod const_fold;
mod cse;
mod dce;
mod functionalize;
mod lint;
mod matcher;
mod normalize;
mod partitioner;
mod replace_pattern;
mod split_module;
mod topo;

use crate::case::{Case, Check};

/// What checks a case.
pub(crate) type CheckCase = fn(&Case) -> Check;

/// A kind of recorded graphs, and what checks a case of it.
type Kind = (&'static str, CheckCase);

pub(crate) const KINDS: &[Kind] = &[
    ("const_fold", const_fold::check),
    ("cse", cse::check),
    ("dce", dce::check),
    ("functionalize", functionalize::check),
    ("lint", lint::check),
    ("partitioner", partitioner::check),
    ("matcher", matcher::check),
    ("replace_pattern", replace_pattern::check),
    ("normalize", normalize::check),
    ("split_module", split_module::check),
    ("topo", topo::check),
];
