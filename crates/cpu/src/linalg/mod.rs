//! Linear algebra: products, factorisations, eigenvalues, singular values, distances.

pub(crate) mod distance;
pub(crate) mod distance_backward;
pub(crate) mod eig;
pub(crate) mod householder;
pub(crate) mod matmul;
pub(crate) mod matrix;
pub(crate) mod svd;
pub(crate) mod triangular;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[
    distance::KERNELS,
    distance_backward::KERNELS,
    eig::KERNELS,
    householder::KERNELS,
    matmul::KERNELS,
    svd::KERNELS,
    triangular::KERNELS,
];
