//! Windows and samples of images: pooling, upsampling, grid sampling, with their gradients.

mod grid_sampler;
mod grid_sampler_backward;
mod pooling;
mod pooling_backward;
mod upsample;
mod upsample_backward;

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

/// Those of them that inference needs.
pub(crate) const INFERENCE: &[&[(&str, Kernel)]] = &[pooling::KERNELS, upsample::KERNELS];
