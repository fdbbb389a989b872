//! Functions of the elements at one place, with their gradients and decompositions.

use crate::OpDef;

pub(crate) mod activation;
pub(crate) mod activation_backward;
pub(crate) mod activation_backward_decompose;
pub(crate) mod activation_gradient;
pub(crate) mod binary;
pub(crate) mod binary_gradient;
pub(crate) mod choice_gradient;
pub(crate) mod compare;
pub(crate) mod complex;
pub(crate) mod decompose;
pub(crate) mod polynomial;
pub(crate) mod special;
pub(crate) mod special_gradient;
pub(crate) mod ternary;
pub(crate) mod unary;
pub(crate) mod unary_gradient;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] = &[
    ("pointwise/activation", activation::OPS),
    ("pointwise/activation_backward", activation_backward::OPS),
    ("pointwise/binary", binary::OPS),
    ("pointwise/compare", compare::OPS),
    ("pointwise/complex", complex::OPS),
    ("pointwise/polynomial", polynomial::OPS),
    ("pointwise/special", special::OPS),
    ("pointwise/ternary", ternary::OPS),
    ("pointwise/unary", unary::OPS),
];
