//! The rows of the registry, one file per family of operators.

use crate::OpDef;

mod activation;
mod adaptive_pooling;
mod alias;
mod arrange;
mod atleast;
mod attention;
mod batch_norm;
mod binary;
mod class_loss;
mod compare;
mod complex;
mod convolution;
mod copy;
mod create;
mod ctc;
mod diagonal;
mod difference;
mod dropout;
mod einsum;
mod embedding_bag;
mod fourier;
mod fractional_pooling;
mod grid;
mod index;
mod join;
mod linalg;
mod lookup;
mod loss;
mod matmul;
mod matmul_composite;
mod nonzero;
mod norm;
mod packed;
mod pad;
mod pooling;
mod pooling_backward;
mod question;
mod random;
mod recurrent;
mod recurrent_packed;
mod reduce;
mod repeat;
mod reshape;
mod resize;
mod scalar;
mod scan;
mod scatter;
mod search;
mod shuffle;
mod slice;
mod softmax;
mod sort;
mod special;
mod spectral;
mod split;
mod statistics;
mod ternary;
mod turn;
mod unary;
mod unfold;
mod unique;
mod vector;
mod view;
mod view_copy;
mod view_in_place;
mod window;
mod write;

pub use reduce::reduced_dims;

/// The tables of all families.
pub(crate) const ALL: &[&[OpDef]] = &[
    activation::OPS,
    adaptive_pooling::OPS,
    alias::OPS,
    arrange::OPS,
    atleast::OPS,
    attention::OPS,
    batch_norm::OPS,
    binary::OPS,
    class_loss::OPS,
    compare::OPS,
    complex::OPS,
    convolution::OPS,
    copy::OPS,
    create::OPS,
    ctc::OPS,
    diagonal::OPS,
    difference::OPS,
    dropout::OPS,
    einsum::OPS,
    embedding_bag::OPS,
    fourier::OPS,
    fractional_pooling::OPS,
    grid::OPS,
    index::OPS,
    join::OPS,
    linalg::OPS,
    lookup::OPS,
    loss::OPS,
    matmul::OPS,
    matmul_composite::OPS,
    nonzero::OPS,
    norm::OPS,
    packed::OPS,
    pad::OPS,
    pooling::OPS,
    pooling_backward::OPS,
    question::OPS,
    random::OPS,
    recurrent::OPS,
    recurrent_packed::OPS,
    reduce::OPS,
    repeat::OPS,
    reshape::OPS,
    resize::OPS,
    scalar::OPS,
    scan::OPS,
    scatter::OPS,
    search::OPS,
    shuffle::OPS,
    slice::OPS,
    softmax::OPS,
    sort::OPS,
    special::OPS,
    spectral::OPS,
    split::OPS,
    statistics::OPS,
    ternary::OPS,
    turn::OPS,
    unary::OPS,
    unfold::OPS,
    unique::OPS,
    vector::OPS,
    view::OPS,
    view_copy::OPS,
    view_in_place::OPS,
    window::OPS,
    write::OPS,
];
