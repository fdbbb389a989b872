//! Elements at places that a tensor of indices or a mask gives, read, written or accumulated.

mod advanced;
mod embedding_backward;
mod embedding_bag;
pub(crate) mod gather;
mod nonzero;
mod scatter;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[
    advanced::KERNELS,
    embedding_backward::KERNELS,
    embedding_bag::KERNELS,
    gather::KERNELS,
    nonzero::KERNELS,
    scatter::KERNELS,
];

/// Those of them that inference needs.
pub(crate) const INFERENCE: &[&[(&str, Kernel)]] = &[advanced::KERNELS, gather::KERNELS, scatter::KERNELS];
