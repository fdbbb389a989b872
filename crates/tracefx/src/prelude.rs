//! What most programs use: `use tracefx::prelude::*;`. `Result` is not among it, so that the one of the standard library keeps its name.

#[cfg(feature = "ndarray")]
pub use crate::NdarrayTensor;
pub use crate::{Arg, Code, DType, Diagnostic, Graph, GraphModule, Node, NodeId, Opcode, Scalar, Tensor, Value};

#[cfg(feature = "pt2")]
pub use crate::{ExportedProgram, Limits, SaveOptions, save};
#[cfg(feature = "pt2")]
pub use tracefx_export::{Dim, DynamicShapes, ShapeSpec, default_decompositions};

#[cfg(feature = "gpu")]
pub use crate::Gpu;
#[cfg(feature = "cpu")]
pub use crate::{Library, Mode, Precision, RunLimits, Runner, inspect, open, open_file, save_to};
