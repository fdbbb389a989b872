//! Functions of the elements at one place, with their gradients: one function of a number each, which
//! [`numeric::map`](crate::numeric::map) loops over the tensors.

mod activation;
mod activation_backward;
pub(crate) mod bessel;
mod binary;
mod compare;
mod gamma;
mod ndtri;
mod polynomial;
pub(crate) mod special;
mod ternary;
mod unary;

use tracefx_exec::Kernel;

/// The kernels of this domain.
pub(crate) const KERNELS: &[&[(&str, Kernel)]] = &[
    activation::KERNELS,
    activation_backward::KERNELS,
    bessel::KERNELS,
    binary::KERNELS,
    compare::KERNELS,
    gamma::KERNELS,
    ndtri::KERNELS,
    polynomial::KERNELS,
    special::KERNELS,
    ternary::KERNELS,
    unary::KERNELS,
];

/// Those of them that inference needs.
pub(crate) const INFERENCE: &[&[(&str, Kernel)]] =
    &[activation::KERNELS, binary::KERNELS, compare::KERNELS, ternary::KERNELS, unary::KERNELS];
