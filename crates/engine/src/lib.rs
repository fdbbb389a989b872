//! Opens, inspects, runs and converts programs: what the command and the WebAssembly package share.
//!
//! Nothing here is an algorithm of its own: it puts the readers, the interpreter and the CPU kernels together, so that
//! both surfaces give the same answers and print the same tables.
//!
//! ```no_run
//! use tracefx_engine::{Limits, Runner, open};
//!
//! let program = open(&std::fs::read("model.pt2").unwrap(), &Limits::default()).unwrap();
//! println!("{}", program.module.graph);
//! let outputs = Runner::new(&program).unwrap().run(&[]);
//! ```
//!
//! Operators of one's own are put into a [`Library`], which opens the same doors: `library.runner(&program)`.
#![forbid(unsafe_code)]

/// The Rust of the tutorial is run as documentation is.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/passes.md")]
struct Tutorial;

mod call;
mod checkpoint;
pub mod command;
mod coverage;
mod diff;
mod edits;
mod extensions;
mod files;
mod inspect;
mod library;
mod open;
mod opening;
mod parted;
mod passes;
mod plans;
mod profile;
mod runner;
mod saving;
mod shapes;
mod tensors;

pub use call::{call, infer, tolerance};
pub use checkpoint::read_checkpoint;
pub use coverage::{OpUse, Support, coverage, op_support};
pub use diff::{Difference, ProgramDiff, diff_programs};
pub use extensions::{Body, EXTENSIONS, Extension};
pub use files::{open_file, read_file, save_to, write_file};
pub use inspect::{Report, inspect, printable};
pub use library::Library;
pub use open::{Format, Limits, open};
pub use opening::Opening;
pub use parted::PartedRun;
pub use passes::{HostPass, PassCall, PassReply, PassRequest, host_pass, pass_types};
pub use profile::{PlanReport, StepRow, StepSources, plan_types};
pub use runner::{Mode, RunLimits, Runner};
pub use shapes::{finish_shapes, shape_session};
pub use tensors::{Values, read_inputs, read_tensors, write_outputs, write_tensors};
/// What plans may change in the numbers.
pub use tracefx_compile::Precision;
/// How many threads kernels use.
pub use tracefx_cpu::{get_num_threads, set_num_threads, with_num_threads};
/// Bytes that an [`Opening`] wants.
pub use tracefx_pt2::Request;
/// How programs are written as PyTorch's archives.
pub use tracefx_pt2::{ArchiveWriter, SaveOptions, save};
