//! Losses, with their gradients.

use crate::OpDef;

pub(crate) mod classification;
pub(crate) mod classification_backward;
pub(crate) mod classification_gradient;
pub(crate) mod ctc;
pub(crate) mod decompose;
pub(crate) mod pointwise;
pub(crate) mod pointwise_backward;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] = &[
    ("loss/classification", classification::OPS),
    ("loss/classification_backward", classification_backward::OPS),
    ("loss/ctc", ctc::OPS),
    ("loss/pointwise", pointwise::OPS),
    ("loss/pointwise_backward", pointwise_backward::OPS),
];
