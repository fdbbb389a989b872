//! The rows of the registry, one file per family of operators.

use crate::OpDef;

mod activation;
mod adaptive_pooling;
mod attention;
mod batch_norm;
mod binary;
mod compare;
mod convolution;
mod dropout;
mod einsum;
mod join;
mod lookup;
mod matmul;
mod matmul_composite;
mod norm;
mod pooling;
mod repeat;
mod reshape;
mod scalar;
mod slice;
mod softmax;
mod split;
mod ternary;
mod unary;
mod vector;
mod view;

/// The tables of all families.
pub(crate) const ALL: &[&[OpDef]] = &[
    activation::OPS,
    adaptive_pooling::OPS,
    attention::OPS,
    batch_norm::OPS,
    binary::OPS,
    compare::OPS,
    convolution::OPS,
    dropout::OPS,
    einsum::OPS,
    join::OPS,
    lookup::OPS,
    matmul::OPS,
    matmul_composite::OPS,
    norm::OPS,
    pooling::OPS,
    repeat::OPS,
    reshape::OPS,
    scalar::OPS,
    slice::OPS,
    softmax::OPS,
    split::OPS,
    ternary::OPS,
    unary::OPS,
    vector::OPS,
    ternary::OPS,
    unary::OPS,
    view::OPS,
];
