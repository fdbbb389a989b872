//! Windows and samples of images: pooling, upsampling, grid sampling, with their gradients.

pub(crate) mod grid_sampler;
pub(crate) mod grid_sampler_backward;
pub(crate) mod pooling;
pub(crate) mod pooling_backward;
pub(crate) mod upsample;
pub(crate) mod upsample_backward;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[
    grid_sampler::KERNELS,
    grid_sampler_backward::KERNELS,
    pooling::KERNELS,
    pooling_backward::KERNELS,
    upsample::KERNELS,
    upsample_backward::KERNELS,
];
