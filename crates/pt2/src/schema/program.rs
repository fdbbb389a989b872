//! Programs, graphs and signatures.

use super::{Argument, CustomObjArgument, Float, NamedArgument, SymBool, SymFloat, SymInt, TensorArgument, TensorMeta};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The version of the schema, in a document of which nothing else is known.
#[derive(Deserialize)]
pub(super) struct VersionHead {
    pub(super) schema_version: SchemaVersion,
}

/// A whole program.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ExportedProgram {
    /// The graph and what belongs to it.
    pub graph_module: GraphModule,
    /// The version of each operator set.
    pub opset_version: IndexMap<String, i64>,
    /// The bounds of each symbol.
    pub range_constraints: IndexMap<String, RangeConstraint>,
    /// The schema's version.
    pub schema_version: SchemaVersion,
    /// The rules that the graph keeps: `TRAINING`, `ATEN`…
    #[serde(default)]
    pub verifiers: Vec<String>,
    /// The PyTorch that wrote the program.
    #[serde(default = "old_torch_version")]
    pub torch_version: String,
    /// Checks of the inputs, as Python expressions.
    #[serde(default)]
    pub guards_code: Vec<String>,
}

fn old_torch_version() -> String {
    "<=2.4".to_string()
}

/// The bounds of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RangeConstraint {
    /// The smallest value.
    #[serde(deserialize_with = "Option::deserialize")]
    pub min_val: Option<i64>,
    /// The largest value.
    #[serde(deserialize_with = "Option::deserialize")]
    pub max_val: Option<i64>,
}

/// A version of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SchemaVersion {
    /// Another one is another format.
    pub major: i64,
    /// A larger one has more fields.
    pub minor: i64,
}

/// A graph, its signature, and where its parts come from.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct GraphModule {
    /// The graph.
    pub graph: Graph,
    /// What its inputs and outputs are.
    pub signature: GraphSignature,
    /// The modules that were called.
    pub module_call_graph: Vec<ModuleCallEntry>,
    /// Further text by key.
    #[serde(default)]
    pub metadata: IndexMap<String, String>,
    /// The fields of each registered named tuple.
    #[serde(default)]
    pub treespec_namedtuple_fields: IndexMap<String, NamedTupleDef>,
}

/// The fields of a named tuple.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct NamedTupleDef {
    /// Their names.
    pub field_names: Vec<String>,
}

/// A graph, with what is known of its values.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Graph {
    /// The inputs.
    pub inputs: Vec<Argument>,
    /// The outputs.
    pub outputs: Vec<Argument>,
    /// The nodes, each after those it uses.
    pub nodes: Vec<Node>,
    /// Every tensor.
    pub tensor_values: IndexMap<String, TensorMeta>,
    /// Every symbolic integer.
    pub sym_int_values: IndexMap<String, SymInt>,
    /// Every symbolic boolean.
    pub sym_bool_values: IndexMap<String, SymBool>,
    /// Whether the output is a tensor and not a tuple of one.
    #[serde(default)]
    pub is_single_tensor_return: bool,
    /// Every object of another kind.
    #[serde(default)]
    pub custom_obj_values: IndexMap<String, CustomObjArgument>,
    /// Every symbolic float.
    #[serde(default)]
    pub sym_float_values: IndexMap<String, SymFloat>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Node {
    /// What is called.
    pub target: String,
    /// With what.
    pub inputs: Vec<NamedArgument>,
    /// What it gives.
    pub outputs: Vec<Argument>,
    /// Further text by key.
    pub metadata: IndexMap<String, String>,
    /// Of a higher-order operator: whether it gives a tensor and not a tuple of one.
    pub is_hop_single_tensor_return: Option<bool>,
    /// The name of the node, since PyTorch 2.11.
    pub name: Option<String>,
}

/// What a graph's inputs and outputs are.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct GraphSignature {
    /// What each input is.
    pub input_specs: Vec<InputSpec>,
    /// What each output is.
    pub output_specs: Vec<OutputSpec>,
}

/// A constant that is an input.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum ConstantValue {
    /// `None`.
    #[serde(rename = "as_none")]
    None(bool),
    /// An integer.
    #[serde(rename = "as_int")]
    Int(i64),
    /// A float.
    #[serde(rename = "as_float")]
    Float(Float),
    /// A string.
    #[serde(rename = "as_string")]
    String(String),
    /// A boolean.
    #[serde(rename = "as_bool")]
    Bool(bool),
}

/// What an input is.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are named after what they name")]
pub enum InputSpec {
    /// What the caller gives.
    UserInput { arg: Argument },
    /// A parameter.
    Parameter { arg: TensorArgument, parameter_name: String },
    /// A buffer, saved with the state or not.
    Buffer { arg: TensorArgument, buffer_name: String, persistent: bool },
    /// A constant tensor.
    TensorConstant { arg: TensorArgument, tensor_constant_name: String },
    /// An object of another kind.
    CustomObj { arg: CustomObjArgument, custom_obj_name: String },
    /// A token that orders effects.
    Token { arg: TensorArgument },
    /// A constant that the caller must give again.
    ConstantInput { name: String, value: ConstantValue },
}

/// What an output is.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are named after what they name")]
pub enum OutputSpec {
    /// What the caller gets.
    UserOutput { arg: Argument },
    /// The loss.
    LossOutput { arg: TensorArgument },
    /// The new value of a buffer.
    BufferMutation { arg: TensorArgument, buffer_name: String },
    /// The new value of a parameter.
    ParameterMutation { arg: TensorArgument, parameter_name: String },
    /// The gradient of a parameter.
    GradientToParameter { arg: TensorArgument, parameter_name: String },
    /// The gradient of an input.
    GradientToUserInput { arg: TensorArgument, user_input_name: String },
    /// The new value of an input.
    UserInputMutation { arg: TensorArgument, user_input_name: String },
    /// A token that orders effects.
    Token { arg: TensorArgument },
}

/// A module that was called, and how where that was preserved.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ModuleCallEntry {
    /// The path of the module; the root's is empty.
    pub fqn: String,
    /// How it was called.
    pub signature: Option<ModuleCallSignature>,
}

/// How a module was called.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ModuleCallSignature {
    /// The values that went in.
    pub inputs: Vec<Argument>,
    /// The values that came out.
    pub outputs: Vec<Argument>,
    /// The structure of its arguments.
    pub in_spec: String,
    /// The structure of its result.
    pub out_spec: String,
    /// The names of its parameters.
    pub forward_arg_names: Option<Vec<String>>,
}
