//! Copies of elements to other places: what views say where their result needs memory of its own. Views that need none have
//! no kernel.

mod concat;
pub(crate) mod copy;
mod flip_roll;
mod pad;
mod reshape;
mod split;
mod view_scatter;

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

/// Those of them that inference needs.
pub(crate) const INFERENCE: &[&[(&str, Kernel)]] =
    &[concat::KERNELS, copy::KERNELS, flip_roll::KERNELS, pad::KERNELS, reshape::KERNELS, split::KERNELS];
