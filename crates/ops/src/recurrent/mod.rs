//! Recurrent networks and packed sequences.

use crate::OpDef;

pub(crate) mod cells;
pub(crate) mod cells_packed;
pub(crate) mod pack;
pub(crate) mod pack_gradient;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] =
    &[("recurrent/cells", cells::OPS), ("recurrent/cells_packed", cells_packed::OPS), ("recurrent/pack", pack::OPS)];
