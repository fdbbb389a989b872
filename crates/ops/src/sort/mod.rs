//! The order of elements: sorting, selecting, searching, unique elements.

use crate::OpDef;

pub(crate) mod decompose;
pub(crate) mod search;
pub(crate) mod sorting;
pub(crate) mod unique;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] =
    &[("sort/search", search::OPS), ("sort/sorting", sorting::OPS), ("sort/unique", unique::OPS)];
