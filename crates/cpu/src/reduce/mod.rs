//! Results that are made of many elements each: reductions, scans, softmax, counts, with their gradients.

mod histogram;
pub(crate) mod reduction;
mod scan;
mod segment;
mod softmax;
mod softmax_backward;
mod statistics;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[
    histogram::KERNELS,
    reduction::KERNELS,
    scan::KERNELS,
    segment::KERNELS,
    softmax::KERNELS,
    softmax_backward::KERNELS,
    statistics::KERNELS,
];

/// Those of them that inference needs.
pub(crate) const INFERENCE: &[&[(&str, Kernel)]] = &[reduction::KERNELS, scan::KERNELS, softmax::KERNELS];
