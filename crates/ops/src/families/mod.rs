//! The rows of the registry, one file per family of operators.

use crate::OpDef;

mod adaptive_pooling;
mod batch_norm;
mod convolution;
mod dropout;
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
mod view;

/// The tables of all families.
pub(crate) const ALL: &[&[OpDef]] = &[
    adaptive_pooling::OPS,
    batch_norm::OPS,
    convolution::OPS,
    dropout::OPS,
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
    view::OPS,
];
