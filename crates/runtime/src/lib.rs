//! Opens saved plans and runs them.
//!
//! A file in the byte format of tracefx may hold, beside its program, plans of it for some sizes of its inputs (`tracefx compile`). This crate
//! reads those, and nothing of the graph: what is linked with it are the plans' own data, the kernels of inference and what runs a plan, and
//! neither graphs, shape rules, decompositions, gradients, passes nor the reader of archives. In WebAssembly that is a small part of the engine.
//!
//! ```no_run
//! use tracefx_core::Tensor;
//! use tracefx_ops::Value;
//! use tracefx_runtime::Model;
//!
//! let model = Model::open(&std::fs::read("model.fxg").unwrap())?;
//! let image = Tensor::from_slice(&[0.0f32; 3 * 224 * 224], &[1, 3, 224, 224])?;
//! let outputs = model.run(&[Value::Tensor(image)])?;
//! # Ok::<(), tracefx_core::Diagnostic>(())
//! ```
#![forbid(unsafe_code)]

mod model;
mod saved;

pub use model::Model;
pub use saved::Saved;
