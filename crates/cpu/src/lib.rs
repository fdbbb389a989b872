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
mod attention;
mod bessel;
mod binary;
mod class_loss;
mod compare;
mod convolution;
mod convolution_backward;
mod copy;
mod create;
mod ctc;
mod dense;
mod element;
mod embedding_bag;
mod fourier;
mod gamma;
mod gauss;
mod grid;
mod index;
mod introsort;
mod join;
mod linalg;
mod lookup;
mod map;
mod matmul;
mod nonzero;
mod norm;
mod normal;
mod number;
mod packed;
mod pad;
mod pooling;
mod pooling_backward;
mod product;
mod random;
mod real;
mod reduce;
mod reshape;
mod resize;
mod sample;
mod scalar;
mod scan;
mod scatter;
mod search;
mod softmax;
mod sort;
mod special;
mod spectral;
mod split;
mod statistics;
mod strided;
mod ternary;
mod turn;
mod unary;
mod unfold;
mod unique;
mod vector;
mod window;
mod write;

use std::sync::OnceLock;
use tracefx_exec::{Kernel, Kernels};

/// The kernels of all families.
const TABLES: &[&[(&str, Kernel)]] = &[
    activation::KERNELS,
    attention::KERNELS,
    bessel::KERNELS,
    binary::KERNELS,
    class_loss::KERNELS,
    compare::KERNELS,
    convolution::KERNELS,
    convolution_backward::KERNELS,
    copy::KERNELS,
    create::KERNELS,
    ctc::KERNELS,
    embedding_bag::KERNELS,
    fourier::KERNELS,
    gamma::KERNELS,
    gauss::KERNELS,
    grid::KERNELS,
    index::KERNELS,
    join::KERNELS,
    linalg::KERNELS,
    lookup::KERNELS,
    matmul::KERNELS,
    nonzero::KERNELS,
    norm::KERNELS,
    normal::KERNELS,
    packed::KERNELS,
    pad::KERNELS,
    pooling::KERNELS,
    pooling_backward::KERNELS,
    random::KERNELS,
    reduce::KERNELS,
    reshape::KERNELS,
    resize::KERNELS,
    sample::KERNELS,
    scalar::KERNELS,
    scan::KERNELS,
    scatter::KERNELS,
    search::KERNELS,
    softmax::KERNELS,
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
