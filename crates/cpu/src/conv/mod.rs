//! Convolutions and their gradients: products of [`gemm`](crate::gemm) over patches of images.

mod backward;
mod depthwise;
mod forward;
mod im2col;
mod shape;
mod unfold;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[backward::KERNELS, forward::KERNELS, unfold::KERNELS];

/// Those of them that inference needs.
pub(crate) const INFERENCE: &[&[(&str, Kernel)]] = &[forward::KERNELS];
