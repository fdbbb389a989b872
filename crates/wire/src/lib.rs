//! The tracefx byte format: what crosses from TypeScript to Rust, and the `.fxg` file.
//!
//! Graphs, modules, tensors and exported programs as sections of little-endian words. `docs/format.md` specifies the bytes. Three
//! properties carry the rest:
//!
//! - *Exact*: integers of 64 bits, the bits of floats, lists that are not tuples, the order of everything.
//! - *One spelling*: what decodes encodes to the same bytes, so equal programs are equal files.
//! - *Safe*: the bytes are checked once, against themselves and never against what they announce; after that the graph
//!   is trusted. Hostile bytes give a [`Diagnostic`](tracefx_core::Diagnostic) that names the section and the byte.
//!
//! This crate knows neither passes nor kernels, and it runs no code of a file.
//!
//! ```
//! use tracefx_ir::{Arg, Graph, GraphModule};
//! use tracefx_wire::{Limits, Options, decode_module, encode_module};
//!
//! let mut graph = Graph::new();
//! let x = graph.placeholder("x");
//! let y = graph.call_function("torch.ops.aten.mul.Tensor", vec![Arg::Node(x), Arg::Float(-0.0)], vec![]);
//! graph.output(Arg::Tuple(vec![Arg::Node(y)]));
//!
//! let file = encode_module(&GraphModule::new(graph), &Options::FILE).unwrap();
//! let module = decode_module(&file, &[], &Limits::default()).unwrap();
//! assert_eq!(encode_module(&module, &Options::FILE).unwrap(), file);
//! assert_eq!(module.graph.find("mul_tensor").unwrap(), y);
//! ```
#![forbid(unsafe_code)]

mod arg;
mod codec;
mod cursor;
mod edit;
mod examples;
mod file;
pub mod format;
mod graph;
mod meta;
mod module;
mod options;
mod sign;
mod strings;
mod structure;
mod symbols;
mod tensors;
mod words;

pub use codec::{
    decode_graph, decode_module, decode_plan, decode_program, encode_edits, encode_graph, encode_module,
    encode_planned_program, encode_program, program_storages, storages,
};
pub use file::{Outline, Section};
pub use options::{Limits, MAX_DEPTH, Options};
