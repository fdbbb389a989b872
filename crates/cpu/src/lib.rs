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
mod binary;
mod compare;
mod convolution;
mod dense;
mod dropout;
mod join;
mod lookup;
mod map;
mod matmul;
mod norm;
mod number;
mod pooling;
mod product;
mod real;
mod reshape;
mod softmax;
mod special;
mod strided;
mod ternary;
mod unary;
mod vector;

use std::sync::OnceLock;
use tracefx_exec::{Kernel, Kernels};

/// The kernels of all families.
const TABLES: &[&[(&str, Kernel)]] = &[
    activation::KERNELS,
    attention::KERNELS,
    binary::KERNELS,
    compare::KERNELS,
    convolution::KERNELS,
    dropout::KERNELS,
    join::KERNELS,
    lookup::KERNELS,
    matmul::KERNELS,
    norm::KERNELS,
    pooling::KERNELS,
    reshape::KERNELS,
    softmax::KERNELS,
    ternary::KERNELS,
    unary::KERNELS,
    vector::KERNELS,
];

/// The kernels of this backend.
pub fn kernels() -> &'static Kernels {
    static KERNELS: OnceLock<Kernels> = OnceLock::new();
    KERNELS.get_or_init(|| Kernels::new(TABLES))
}
