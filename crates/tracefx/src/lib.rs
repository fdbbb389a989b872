//! torch.fx and torch.export for Rust: open a program that PyTorch exported, look at its graph, change it, run it, and save it.
//!
//! This crate has no code of its own beside conversions: it gives the crates that tracefx is made of one name and one version. What
//! one uses every day is here and in the [`prelude`]; the rest is in a module for each of those crates.
//!
//! ```
//! use tracefx::prelude::*;
//!
//! // Open. Here the file is made first; `open_file("model.pt2".as_ref(), &Limits::default())` opens one of PyTorch's.
//! # fn saved() -> tracefx::Result<Vec<u8>> {
//! #     let mut graph = Graph::new();
//! #     let x = graph.placeholder("x");
//! #     let y = graph.call_function("torch.relu", vec![x.into()], vec![]);
//! #     graph.output(y.into());
//! #     let x = Value::Tensor(Tensor::from_slice(&[-1.0f32, 2.0], &[2])?);
//! #     let mut bytes = Vec::new();
//! #     save(&Library::default().export(&GraphModule::new(graph), &[x])?, &SaveOptions::default(), &mut bytes)?;
//! #     Ok(bytes)
//! # }
//! let mut program = open(&saved()?, &Limits::default())?;
//!
//! // Inspect: the graph prints as PyTorch prints it.
//! println!("{}", program.module.graph);
//!
//! // Edit, with the names of torch.fx.
//! let graph = &mut program.module.graph;
//! let relus: Vec<_> = graph.find_nodes(Opcode::CallFunction, "torch.ops.aten.relu.default").collect();
//! for relu in relus {
//!     graph.set_target(relu, "torch.ops.aten.neg.default")?;
//! }
//! let program = Library::default().settle(&program)?;
//!
//! // Run.
//! let x = Tensor::from_slice(&[-1.0f32, 2.0], &[2])?;
//! let outputs = Runner::new(&program)?.run(&[Value::Tensor(x)])?;
//! let [Value::Tensor(y)] = outputs.as_slice() else { panic!("one tensor") };
//! assert_eq!(y.to_vec::<f32>()?, [1.0, -2.0]);
//!
//! // Save, for `torch.export.load`.
//! let mut bytes = Vec::new();
//! save(&program, &SaveOptions::default(), &mut bytes)?;
//! # Ok::<(), Diagnostic>(())
//! ```
//!
//! A [`Runner`] is [`Send`] and [`Sync`]: many threads call one. Whatever is refused is a [`Diagnostic`] with a stable [`Code`], the node,
//! and what to do; no input makes a function panic.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | none | graphs, symbolic sizes and the table of operators |
//! | `pt2` | exported programs, and PyTorch's archives, read and written |
//! | `passes` | matching, rewriting, passes, gradual types |
//! | `cpu` (default) | the two above, the CPU kernels, `.fxg` files and runs |
//! | `gpu` | runs on Vulkan, Metal or DirectX 12 |
//! | `runtime` | running saved plans alone: no graphs, no compiler |
//! | `ndarray` | tensors from and to arrays of `ndarray` |
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "ndarray")]
mod ndarray_tensor;
pub mod prelude;

/// The Rust of the guide and of the page in the registry is run as documentation is.
#[cfg(all(doctest, feature = "cpu", feature = "ndarray"))]
mod documents {
    #[doc = include_str!("../../../docs/rust.md")]
    struct Guide;
    #[doc = include_str!("../README.md")]
    struct Readme;
}

#[cfg(feature = "ndarray")]
pub use ndarray_tensor::NdarrayTensor;
#[doc(no_inline)]
pub use tracefx_core::{Code, DType, Diagnostic, Result, Scalar, Tensor};
#[doc(no_inline)]
pub use tracefx_ir::{Arg, Graph, GraphModule, Node, NodeId, Opcode};
#[doc(no_inline)]
pub use tracefx_ops::Value;

#[cfg(feature = "pt2")]
#[doc(no_inline)]
pub use tracefx_export::ExportedProgram;
#[cfg(feature = "pt2")]
#[doc(no_inline)]
pub use tracefx_pt2::{Limits, SaveOptions, save};

#[cfg(feature = "cpu")]
#[doc(no_inline)]
pub use tracefx_engine::{Library, Mode, Precision, RunLimits, Runner, inspect, open, open_file, save_to};
#[cfg(feature = "gpu")]
#[doc(no_inline)]
pub use tracefx_wgpu::Gpu;

pub use tracefx_core as core;
#[cfg(feature = "cpu")]
pub use tracefx_engine as engine;
#[cfg(feature = "passes")]
pub use tracefx_exec as exec;
#[cfg(feature = "pt2")]
pub use tracefx_export as export;
pub use tracefx_ir as ir;
pub use tracefx_ops as ops;
#[cfg(feature = "cpu")]
pub use tracefx_plan as plan;
#[cfg(feature = "pt2")]
pub use tracefx_pt2 as pt2;
#[cfg(feature = "passes")]
pub use tracefx_rewrite as rewrite;
#[cfg(feature = "runtime")]
pub use tracefx_runtime as runtime;
pub use tracefx_sym as sym;
#[cfg(feature = "passes")]
pub use tracefx_types as types;
#[cfg(feature = "gpu")]
pub use tracefx_wgpu as wgpu;
#[cfg(feature = "cpu")]
pub use tracefx_wire as wire;
