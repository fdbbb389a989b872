//! Random numbers, in the order and with the generator of PyTorch's CPU.

pub(crate) mod distributions;
mod normal;
mod sample;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[distributions::KERNELS, normal::KERNELS, sample::KERNELS];
