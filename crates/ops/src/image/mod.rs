//! Windows and samples of images: pooling, upsampling, grid sampling, with their gradients.

use crate::OpDef;

pub(crate) mod adaptive_pooling;
pub(crate) mod decompose;
pub(crate) mod fractional_pooling;
pub(crate) mod gradient;
pub(crate) mod grid_sampler;
pub(crate) mod pooling;
pub(crate) mod pooling_backward;
pub(crate) mod pooling_gradient;
pub(crate) mod upsample;
pub(crate) mod upsample_backward;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] = &[
    ("image/adaptive_pooling", adaptive_pooling::OPS),
    ("image/fractional_pooling", fractional_pooling::OPS),
    ("image/grid_sampler", grid_sampler::OPS),
    ("image/pooling", pooling::OPS),
    ("image/pooling_backward", pooling_backward::OPS),
    ("image/upsample", upsample::OPS),
    ("image/upsample_backward", upsample_backward::OPS),
];
