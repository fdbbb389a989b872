//! The kinds of recorded graphs: what checks a case of each.

mod cse;
mod dce;

use crate::case::{Case, Check};

/// A kind of recorded graphs, and what checks a case of it.
type Kind = (&'static str, fn(&Case) -> Check);

pub(crate) const KINDS: &[Kind] = &[("dce", dce::check), ("cse", cse::check)];
