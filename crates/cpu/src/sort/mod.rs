//! The order of elements: sorting, selecting, searching, unique elements.

mod introsort;
pub(crate) mod order;
mod search;
pub(crate) mod sorting;
mod unique;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[search::KERNELS, sorting::KERNELS, unique::KERNELS];
