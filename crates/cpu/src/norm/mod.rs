//! Normalisation, with its gradients.

mod backward;
mod forward;

pub(crate) use forward::normalise;
use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[backward::KERNELS, forward::KERNELS];

/// Those of them that inference needs.
pub(crate) const INFERENCE: &[&[(&str, Kernel)]] = &[forward::KERNELS];
