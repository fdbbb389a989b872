//! The rows of the registry, one file per family of operators.

use crate::OpDef;

mod join;
mod lookup;
mod repeat;
mod reshape;
mod scalar;
mod slice;
mod split;
mod view;

/// The tables of all families.
pub(crate) const ALL: &[&[OpDef]] =
    &[join::OPS, lookup::OPS, repeat::OPS, reshape::OPS, scalar::OPS, slice::OPS, split::OPS, view::OPS];
