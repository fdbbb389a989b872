//! Copies of elements to other places: what views say where their result needs memory of its own. Views that need none have
//! no kernel.

pub(crate) mod concat;
pub(crate) mod copy;
pub(crate) mod flip_roll;
pub(crate) mod pad;
pub(crate) mod reshape;
pub(crate) mod split;
pub(crate) mod view_scatter;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[
    concat::KERNELS,
    copy::KERNELS,
    flip_roll::KERNELS,
    pad::KERNELS,
    reshape::KERNELS,
    split::KERNELS,
    view_scatter::KERNELS,
];
