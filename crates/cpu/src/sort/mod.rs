//! The order of elements: sorting, selecting, searching, unique elements.

pub(crate) mod introsort;
pub(crate) mod search;
pub(crate) mod sorting;
pub(crate) mod unique;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[search::KERNELS, sorting::KERNELS, unique::KERNELS];
