//! Convolutions and their gradients, and patches of images as columns.

use crate::OpDef;

pub(crate) mod decompose;
pub(crate) mod forward;
pub(crate) mod gradient;
pub(crate) mod unfold;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] = &[("conv/forward", forward::OPS), ("conv/unfold", unfold::OPS)];
