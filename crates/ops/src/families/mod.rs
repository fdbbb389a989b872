//! The rows of the registry, one file per family of operators.

use crate::OpDef;

mod scalar;

/// The tables of all families.
pub(crate) const ALL: &[&[OpDef]] = &[scalar::OPS];
