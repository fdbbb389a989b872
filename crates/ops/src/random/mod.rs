//! Random numbers and dropout.

use crate::OpDef;

pub(crate) mod distributions;
pub(crate) mod dropout;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] =
    &[("random/distributions", distributions::OPS), ("random/dropout", dropout::OPS)];
