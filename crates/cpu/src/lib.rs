//! CPU kernels: scalar and SIMD, a folder for each domain, a backward beside its forward.
//!
//! Each file of a domain has a table that joins its kernels to operators by name. A kernel reads its inputs through
//! `numeric::dense::Dense` or by their strides and fills new, row-major results. The sizes and dtypes of results are
//! decided by the shape rules of `tracefx-ops`, and which kernel runs by the executor; kernels know nothing of graphs.
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

#[cfg(test)]
mod agreement;
mod attention;
mod conv;
mod create;
mod fft;
mod fused;
mod gemm;
mod image;
mod index;
mod linalg;
mod loops;
mod loss;
mod norm;
mod numeric;
mod pointwise;
mod random;
mod recurrent;
mod reduce;
mod sort;
mod view;

#[cfg(target_family = "wasm")]
pub use numeric::isa::{AddProducts, use_relaxed_simd};
pub use numeric::thread_pool::{
    get_num_threads, parallel_for, run_worker, set_num_threads, start_workers_by, with_num_threads, worker_stopped,
};
use std::sync::OnceLock;
use tracefx_exec::{Kernel, Kernels};

/// The kernels of all domains: a table for each of their files.
const DOMAINS: &[&[&[(&str, Kernel)]]] = &[
    &[attention::KERNELS],
    conv::KERNELS,
    create::KERNELS,
    &[fft::KERNELS],
    image::KERNELS,
    index::KERNELS,
    linalg::KERNELS,
    loss::KERNELS,
    norm::KERNELS,
    pointwise::KERNELS,
    random::KERNELS,
    &[recurrent::KERNELS],
    reduce::KERNELS,
    sort::KERNELS,
    view::KERNELS,
];

/// The files of kernels that inference needs: what forward passes of networks call besides fused steps. What is left out is not linked with who
/// asks for these alone.
const INFERENCE: &[&[&[(&str, Kernel)]]] = &[
    &[attention::KERNELS],
    conv::INFERENCE,
    create::INFERENCE,
    image::INFERENCE,
    index::INFERENCE,
    linalg::INFERENCE,
    norm::INFERENCE,
    pointwise::INFERENCE,
    reduce::INFERENCE,
    view::INFERENCE,
];

/// The kernels that inference needs, for who runs plans with a small part of this backend. Operators are the executor's: no
/// kernel of these asks for the registry of all.
pub fn inference_kernels() -> &'static Kernels {
    static KERNELS: OnceLock<Kernels> = OnceLock::new();
    KERNELS.get_or_init(|| Kernels::new(&INFERENCE.concat()).with_fused(fused::prepare))
}

/// The kernels of this backend.
pub fn kernels() -> &'static Kernels {
    static KERNELS: OnceLock<Kernels> = OnceLock::new();
    KERNELS.get_or_init(|| Kernels::new(&DOMAINS.concat()).with_fused(fused::prepare))
}

/// The vector instructions that kernels use here: the best ones of this machine, or in debug builds those that every machine of the
/// target has.
pub fn instruction_set() -> &'static str {
    numeric::isa::Level::of_fast_steps().name()
}

/// All operators with these kernels.
#[cfg(test)]
fn executor() -> tracefx_exec::Executor<'static> {
    tracefx_exec::Executor::new(tracefx_ops::registry(), kernels())
}
