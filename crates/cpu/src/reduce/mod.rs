//! Results that are made of many elements each: reductions, scans, softmax, counts, with their gradients.

pub(crate) mod histogram;
pub(crate) mod reduction;
pub(crate) mod scan;
pub(crate) mod segment;
pub(crate) mod softmax;
pub(crate) mod softmax_backward;
pub(crate) mod statistics;

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
