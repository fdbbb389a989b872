//! Exported programs as ONNX models, for those who run them elsewhere.
//!
//! A program in terms of core operators becomes a model of [`OPSET`], whose nodes compute what PyTorch's do: dtypes are
//! promoted by casts, integers are divided as PyTorch divides them, sizes that are dynamic have names. Weights are
//! initializers by their qualified names. State that a call changes is an input with a default, and comes out as an output of its
//! own. One table has the translation of each operator; what has none is refused by name, all at once. `docs/onnx.md` tells what
//! differs.
//!
//! ```
//! use tracefx_export::{Argument, ExportedProgram, GraphSignature, InputKind, InputSpec, OutputKind, OutputSpec};
//! use tracefx_ir::{Arg, Graph, GraphModule, TensorMeta, Val};
//! use tracefx_core::DType;
//!
//! let mut graph = Graph::new();
//! let x = graph.placeholder("x");
//! let y = graph.call_function("torch.ops.aten.relu.default", vec![x.into()], vec![]);
//! for node in [x, y] {
//!     graph.meta_mut(node).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, vec![2.into()])));
//! }
//! graph.output(Arg::Tuple(vec![y.into()]));
//! let (x, y) = (Argument::Tensor("x".into()), Argument::Tensor("relu_default".into()));
//! let signature = GraphSignature {
//!     input_specs: vec![InputSpec { kind: InputKind::UserInput, arg: x, target: None, persistent: None }],
//!     output_specs: vec![OutputSpec { kind: OutputKind::UserOutput, arg: y, target: None }],
//! };
//! let program = ExportedProgram::new(GraphModule::new(graph), signature);
//! let model = tracefx_onnx::to_model(&program, &tracefx_onnx::Options::default()).unwrap();
//! assert_eq!(model.graph.unwrap().node[0].op_type, "Relu");
//! ```
#![forbid(unsafe_code)]

mod call;
mod check;
mod element;
mod graph;
mod model;
mod ops;
pub mod proto;
mod translate;

pub use model::{IR_VERSION, OPSET, to_model};

use prost::Message;
use tracefx_core::Result;
use tracefx_export::ExportedProgram;

/// How a model is written.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether nodes tell the node, the module and the source that they are from.
    pub metadata: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { metadata: true }
    }
}

/// A program as the bytes of an ONNX model.
///
/// # Errors
/// `NotImplemented` for operators, dtypes and options without a translation: of operators, all are named. `GraphInvalid` where
/// nothing is noted of the dtype of a node. `SchemaMismatch` where something else is noted than the operator gives, and what its
/// shape rule refuses of the arguments. `LimitExceeded` where the weights do not fit a file of ONNX.
pub fn to_onnx(program: &ExportedProgram, options: &Options) -> Result<Vec<u8>> {
    Ok(to_model(program, options)?.encode_to_vec())
}

/// Whether each operator that a program calls has a translation.
pub fn is_translated(program: &ExportedProgram) -> bool {
    translate::check_translated(&program.module).is_ok()
}

/// The operators that have a translation, by the names of the registry.
pub fn translated() -> impl Iterator<Item = &'static str> {
    let complex = ops::COMPLEX.iter().map(|(name, _)| *name).filter(|it| ops::find(it).is_none());
    ops::TABLE.iter().flat_map(|it| it.iter().map(|(name, _)| *name)).chain(complex)
}
