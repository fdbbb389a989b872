//! Losses that are more than arithmetic of operators, with their gradients.

mod classification;
mod classification_backward;
mod ctc;
mod pointwise_backward;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] =
    &[classification::KERNELS, classification_backward::KERNELS, ctc::KERNELS, pointwise_backward::KERNELS];
