//! Convolutions and their gradients: products of [`gemm`](crate::gemm) over patches of images.

pub(crate) mod backward;
pub(crate) mod depthwise;
pub(crate) mod forward;
pub(crate) mod im2col;
pub(crate) mod shape;
pub(crate) mod unfold;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[backward::KERNELS, forward::KERNELS, unfold::KERNELS];
