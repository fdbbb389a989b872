//! Functions of the elements at one place, with their gradients: one function of a number each, which
//! [`numeric::map`](crate::numeric::map) loops over the tensors.

pub(crate) mod activation;
pub(crate) mod activation_backward;
pub(crate) mod bessel;
pub(crate) mod binary;
pub(crate) mod compare;
pub(crate) mod gamma;
pub(crate) mod ndtri;
pub(crate) mod polynomial;
pub(crate) mod special;
pub(crate) mod ternary;
pub(crate) mod unary;

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
