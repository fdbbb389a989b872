//! ExportedProgram: graph module, signature, state and dynamic-shape constraints.
//!
//! [`ExportedProgram`] is what `torch.export` gives: a graph whose inputs are the parameters, buffers and constants of the
//! module as well as the user's inputs, and a [`GraphSignature`] that says which is which. It is a plain value; reading
//! and writing files and running kernels are the work of other crates.
//!
//! [`ExportedProgram::module`] gives back a module that holds its own state and takes the user's inputs alone;
//! [`ExportedProgram::run_decompositions`] gives the same program in terms of fewer operators.
#![forbid(unsafe_code)]

mod checked;
mod decompose;
mod export;
mod exporter;
mod guards;
mod inputs;
mod lift_constants;
mod lifted_state;
mod move_to_device;
mod print;
mod program;
mod shapes;
mod signature;
mod tokens;
mod transform;
mod tree;
mod unflatten;
mod unlift;
mod verifier;
mod views;

pub use checked::merge_getitems;
pub use decompose::{DecompositionTable, Remove, default_decompositions, functionalize};
pub use export::export;
pub use exporter::{ASSERTED_CONVERSIONS, Exporter, Lifted, UserInput};
pub use guards::{ProgramGuard, ProgramGuards};
pub use inputs::InputChecker;
pub use move_to_device::Location;
pub use print::readable;
pub use program::{CallSignature, Constant, ExportedProgram, ModuleCallEntry, SCHEMA_VERSION, StateEntry};
pub use shapes::{DeferredAssertion, Dim, DimSpec, DynamicShapes, SessionInput, ShapeResult, ShapeSession, ShapeSpec};
pub use signature::{Argument, ConstantValue, GraphSignature, InputKind, InputSpec, OutputKind, OutputSpec};
pub use tree::{Key, TreeSpec};
pub use unlift::use_equal;
pub use verifier::{Dialect, Verifier};
pub use views::{BackwardSignature, ReplaceInputs};
