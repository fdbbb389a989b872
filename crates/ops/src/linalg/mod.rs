//! Linear algebra: products, factorisations, eigenvalues, singular values, distances.

use crate::OpDef;

pub(crate) mod distance;
pub(crate) mod distance_backward;
pub(crate) mod distance_gradient;
pub(crate) mod eig;
pub(crate) mod einsum;
pub(crate) mod factorisation_gradient;
pub(crate) mod householder;
pub(crate) mod lstsq;
pub(crate) mod matmul;
pub(crate) mod matmul_composite;
pub(crate) mod matmul_gradient;
pub(crate) mod svd;
pub(crate) mod triangular;
pub(crate) mod weight_only;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] = &[
    ("linalg/distance", distance::OPS),
    ("linalg/distance_backward", distance_backward::OPS),
    ("linalg/eig", eig::OPS),
    ("linalg/einsum", einsum::OPS),
    ("linalg/householder", householder::OPS),
    ("linalg/lstsq", lstsq::OPS),
    ("linalg/matmul", matmul::OPS),
    ("linalg/matmul_composite", matmul_composite::OPS),
    ("linalg/svd", svd::OPS),
    ("linalg/triangular", triangular::OPS),
    ("linalg/weight_only", weight_only::OPS),
];
