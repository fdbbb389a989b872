//! Linear algebra: products, factorisations, eigenvalues, singular values, distances.

mod distance;
mod distance_backward;
mod eig;
mod householder;
mod matmul;
mod matrix;
mod svd;
mod triangular;
mod weight_only;

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
    weight_only::KERNELS,
];

/// Those of them that inference needs.
pub(crate) const INFERENCE: &[&[(&str, Kernel)]] = &[matmul::KERNELS, weight_only::KERNELS];
