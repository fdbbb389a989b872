//! The solver: propagation of equalities and intervals, elimination of variables from linear constraints, and search.

mod linear;
mod nodes;
mod refute;
mod search;
mod state;

pub(crate) use search::Search;
