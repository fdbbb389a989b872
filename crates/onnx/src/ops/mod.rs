//! The table: what each operator becomes, in a file for each domain.

mod activation;
mod binary;
mod compare;
mod complex;
mod control;
mod conv;
mod create;
mod image;
mod index;
mod linalg;
mod matmul;
mod norm;
mod number;
mod pool;
mod reduce;
mod scan;
mod scatter;
mod shape;
mod sort;
mod special;
mod unary;
mod view;

use crate::call::{Call, Results};
use tracefx_core::Result;

/// Adds the nodes of a call to the graph, and gives their values.
pub(crate) type Translate = fn(&mut Call<'_, '_>) -> Result<Results>;

/// The translations of a domain, by the names of the registry.
pub(crate) type Rows = &'static [(&'static str, Translate)];

/// Every operator that has a translation of real numbers. Those of complex numbers are beside them.
pub(crate) const TABLE: &[Rows] = &[
    activation::OPS,
    binary::OPS,
    compare::OPS,
    control::OPS,
    conv::OPS,
    create::OPS,
    image::OPS,
    index::OPS,
    linalg::OPS,
    matmul::OPS,
    norm::OPS,
    number::OPS,
    pool::OPS,
    reduce::OPS,
    scan::OPS,
    scatter::OPS,
    shape::OPS,
    sort::OPS,
    special::OPS,
    unary::OPS,
    view::OPS,
];

/// The translations of calls that take or give complex numbers.
pub(crate) const COMPLEX: Rows = complex::OPS;

/// The translation of an operator.
pub(crate) fn find(name: &str) -> Option<Translate> {
    TABLE.iter().flat_map(|it| it.iter()).find(|(it, _)| *it == name).map(|(_, it)| *it)
}

/// The translation of a call that takes or gives complex numbers.
pub(crate) fn find_complex(name: &str) -> Option<Translate> {
    COMPLEX.iter().find(|(it, _)| *it == name).map(|(_, it)| *it)
}

/// Whether there is a translation of this operator.
pub(crate) fn is_known(name: &str) -> bool {
    find(name).is_some() || find_complex(name).is_some()
}
