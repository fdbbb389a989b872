//! CPU kernels: scalar and SIMD, written per family.
//!
//! Each file holds the kernels of one family and a table that joins them to operators by name. A kernel reads its
//! inputs through [`dense::Dense`] or by their strides and fills new, row-major results; it knows nothing of graphs.
//!
//! ```
//! use tracefx_core::Tensor;
//! use tracefx_exec::Executor;
//! use tracefx_ops::{Value, registry};
//!
//! let executor = Executor::new(registry(), tracefx_cpu::kernels());
//! assert!(tracefx_cpu::kernels().names().iter().all(|op| registry().get(op).is_some()));
//! # let _ = (executor, Tensor::from_slice(&[1.0f32], &[1]), Value::<Tensor>::None);
//! ```

mod activation;
mod activation_backward;
#[cfg(test)]
mod agreement;
mod attention;
mod bessel;
mod binary;
mod class_loss;
mod class_loss_backward;
mod compare;
mod complex;
mod convolution;
mod convolution_backward;
mod copy;
mod create;
mod ctc;
mod dense;
mod depthwise;
mod distance_backward;
mod eigen;
mod element;
mod elementary;
mod embedding_backward;
mod embedding_bag;
mod field;
mod fourier;
mod gamma;
mod gauss;
mod grid;
mod grid_backward;
mod histogram;
mod householder;
mod index;
mod introsort;
mod isa;
mod join;
mod linalg;
mod lookup;
mod loss_backward;
mod map;
mod matmul;
mod matrix;
mod nonzero;
mod norm;
mod norm_backward;
mod normal;
mod number;
mod packed;
mod pad;
mod parallel;
mod patches;
mod polynomial;
mod pooling;
mod pooling_backward;
mod product;
mod random;
mod real;
mod reduce;
mod reshape;
mod resize;
mod resize_backward;
mod sample;
mod scalar;
mod scan;
mod scatter;
mod scratch;
mod search;
mod segment;
mod softmax;
mod softmax_backward;
mod sort;
mod special;
mod spectral;
mod split;
mod statistics;
mod strided;
mod target;
mod ternary;
mod thin;
mod tiles;
mod turn;
mod unary;
mod unfold;
mod unique;
mod vector;
mod walk;
mod window;
mod write;

use std::sync::OnceLock;
use tracefx_exec::{Kernel, Kernels};

/// The kernels of all families.
const TABLES: &[&[(&str, Kernel)]] = &[
    activation::KERNELS,
    activation_backward::KERNELS,
    attention::KERNELS,
    bessel::KERNELS,
    binary::KERNELS,
    class_loss::KERNELS,
    class_loss_backward::KERNELS,
    compare::KERNELS,
    convolution::KERNELS,
    convolution_backward::KERNELS,
    copy::KERNELS,
    create::KERNELS,
    ctc::KERNELS,
    distance_backward::KERNELS,
    eigen::KERNELS,
    embedding_backward::KERNELS,
    embedding_bag::KERNELS,
    fourier::KERNELS,
    gamma::KERNELS,
    gauss::KERNELS,
    grid::KERNELS,
    grid_backward::KERNELS,
    histogram::KERNELS,
    householder::KERNELS,
    index::KERNELS,
    join::KERNELS,
    linalg::KERNELS,
    lookup::KERNELS,
    loss_backward::KERNELS,
    matmul::KERNELS,
    nonzero::KERNELS,
    norm::KERNELS,
    norm_backward::KERNELS,
    normal::KERNELS,
    packed::KERNELS,
    pad::KERNELS,
    polynomial::KERNELS,
    pooling::KERNELS,
    pooling_backward::KERNELS,
    random::KERNELS,
    reduce::KERNELS,
    reshape::KERNELS,
    resize::KERNELS,
    resize_backward::KERNELS,
    sample::KERNELS,
    scalar::KERNELS,
    scan::KERNELS,
    scatter::KERNELS,
    search::KERNELS,
    segment::KERNELS,
    softmax::KERNELS,
    softmax_backward::KERNELS,
    sort::KERNELS,
    special::KERNELS,
    spectral::KERNELS,
    split::KERNELS,
    statistics::KERNELS,
    ternary::KERNELS,
    turn::KERNELS,
    unary::KERNELS,
    unfold::KERNELS,
    unique::KERNELS,
    vector::KERNELS,
    window::KERNELS,
    write::KERNELS,
];

/// The kernels of this backend.
pub fn kernels() -> &'static Kernels {
    static KERNELS: OnceLock<Kernels> = OnceLock::new();
    KERNELS.get_or_init(|| Kernels::new(TABLES))
}
