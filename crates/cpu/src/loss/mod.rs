//! Losses that are more than arithmetic of operators, with their gradients.

pub(crate) mod classification;
pub(crate) mod classification_backward;
pub(crate) mod ctc;
pub(crate) mod pointwise_backward;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] =
    &[classification::KERNELS, classification_backward::KERNELS, ctc::KERNELS, pointwise_backward::KERNELS];
