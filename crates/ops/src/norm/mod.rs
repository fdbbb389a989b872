//! Normalisation, with its gradients.

use crate::OpDef;

pub(crate) mod backward;
pub(crate) mod batch_norm;
pub(crate) mod decompose;
pub(crate) mod forward;
pub(crate) mod gradient;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] =
    &[("norm/backward", backward::OPS), ("norm/batch_norm", batch_norm::OPS), ("norm/forward", forward::OPS)];
