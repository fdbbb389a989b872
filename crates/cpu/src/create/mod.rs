//! New tensors of no other tensor's elements, and single numbers out of tensors.

mod factories;
mod scalar;
mod window;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[factories::KERNELS, scalar::KERNELS, window::KERNELS];

/// Those of them that inference needs.
pub(crate) const INFERENCE: &[&[(&str, Kernel)]] = &[factories::KERNELS, scalar::KERNELS];
