//! Runs plans on a GPU natively, by Vulkan, Metal or DirectX 12, through the crate `wgpu`: the hands of `tracefx-gpu`, which decides
//! everything else.
//!
//! A [`Gpu`] is an adapter with a device. For each plan it keeps the buffers that the plan's program has from run to run, and its pipelines.
//! What the steps of a device do between two of the CPU is one submission, and what a run gives is read at its end.
//!
//! ```no_run
//! use tracefx_wgpu::Gpu;
//! let gpu = Gpu::open()?;
//! println!("{}", tracefx_exec::Accelerator::name(&gpu));
//! # Ok::<(), tracefx_core::Diagnostic>(())
//! ```

mod clock;
mod gpu;
mod run;

pub use gpu::Gpu;
