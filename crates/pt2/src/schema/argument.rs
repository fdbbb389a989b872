//! What nodes take and give.

use super::{Device, Float, Graph, LayoutNumber, MemoryFormatNumber, ScalarType};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// A reference to a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TensorArgument {
    /// Its name.
    pub name: String,
}

/// A reference to a tensor, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum OptionalTensorArgument {
    /// A tensor.
    #[serde(rename = "as_tensor")]
    Tensor(TensorArgument),
    /// Nothing.
    #[serde(rename = "as_none")]
    None(bool),
}

/// A reference to a symbolic integer, or a number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum SymIntArgument {
    /// The name of a symbolic integer.
    #[serde(rename = "as_name")]
    Name(String),
    /// A number.
    #[serde(rename = "as_int")]
    Int(i64),
}

impl SymIntArgument {
    /// The name, where it is not a number.
    pub fn as_name(&self) -> Option<&str> {
        match self {
            SymIntArgument::Name(name) => Some(name),
            SymIntArgument::Int(_) => None,
        }
    }
}

/// A reference to a symbolic float, or a number.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum SymFloatArgument {
    /// The name of a symbolic float.
    #[serde(rename = "as_name")]
    Name(String),
    /// A number.
    #[serde(rename = "as_float")]
    Float(Float),
}

impl SymFloatArgument {
    /// The name, where it is not a number.
    pub fn as_name(&self) -> Option<&str> {
        match self {
            SymFloatArgument::Name(name) => Some(name),
            SymFloatArgument::Float(_) => None,
        }
    }
}

/// A reference to a symbolic boolean, or a value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum SymBoolArgument {
    /// The name of a symbolic boolean.
    #[serde(rename = "as_name")]
    Name(String),
    /// A value.
    #[serde(rename = "as_bool")]
    Bool(bool),
}

impl SymBoolArgument {
    /// The name, where it is not a number.
    pub fn as_name(&self) -> Option<&str> {
        match self {
            SymBoolArgument::Name(name) => Some(name),
            SymBoolArgument::Bool(_) => None,
        }
    }
}

/// A reference to an object that is neither a tensor nor a number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct CustomObjArgument {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class_fqn: String,
}

/// A sub-graph.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct GraphArgument {
    /// Its name.
    pub name: String,
    /// The graph.
    pub graph: Graph,
}

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct ComplexValue {
    /// The real part.
    pub real: Float,
    /// The imaginary part.
    pub imag: Float,
}

/// One value that a node takes or gives.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum Argument {
    /// `None`.
    #[serde(rename = "as_none")]
    None(bool),
    /// A tensor.
    #[serde(rename = "as_tensor")]
    Tensor(TensorArgument),
    /// A list of tensors.
    #[serde(rename = "as_tensors")]
    Tensors(Vec<TensorArgument>),
    /// An integer.
    #[serde(rename = "as_int")]
    Int(i64),
    /// A list of integers.
    #[serde(rename = "as_ints")]
    Ints(Vec<i64>),
    /// A float.
    #[serde(rename = "as_float")]
    Float(Float),
    /// A list of floats.
    #[serde(rename = "as_floats")]
    Floats(Vec<Float>),
    /// A string.
    #[serde(rename = "as_string")]
    String(String),
    /// A list of strings.
    #[serde(rename = "as_strings")]
    Strings(Vec<String>),
    /// A symbolic integer.
    #[serde(rename = "as_sym_int")]
    SymInt(SymIntArgument),
    /// A list of symbolic integers.
    #[serde(rename = "as_sym_ints")]
    SymInts(Vec<SymIntArgument>),
    /// A dtype.
    #[serde(rename = "as_scalar_type")]
    ScalarType(ScalarType),
    /// A memory format.
    #[serde(rename = "as_memory_format")]
    MemoryFormat(MemoryFormatNumber),
    /// A layout.
    #[serde(rename = "as_layout")]
    Layout(LayoutNumber),
    /// A device.
    #[serde(rename = "as_device")]
    Device(Device),
    /// A boolean.
    #[serde(rename = "as_bool")]
    Bool(bool),
    /// A list of booleans.
    #[serde(rename = "as_bools")]
    Bools(Vec<bool>),
    /// A symbolic boolean.
    #[serde(rename = "as_sym_bool")]
    SymBool(SymBoolArgument),
    /// A list of symbolic booleans.
    #[serde(rename = "as_sym_bools")]
    SymBools(Vec<SymBoolArgument>),
    /// A sub-graph.
    #[serde(rename = "as_graph")]
    Graph(Box<GraphArgument>),
    /// A list of tensors, some of them absent.
    #[serde(rename = "as_optional_tensors")]
    OptionalTensors(Vec<OptionalTensorArgument>),
    /// An object of another kind.
    #[serde(rename = "as_custom_obj")]
    CustomObj(CustomObjArgument),
    /// The name of an operator.
    #[serde(rename = "as_operator")]
    Operator(String),
    /// A symbolic float.
    #[serde(rename = "as_sym_float")]
    SymFloat(SymFloatArgument),
    /// A list of symbolic floats.
    #[serde(rename = "as_sym_floats")]
    SymFloats(Vec<SymFloatArgument>),
    /// A tensor, or nothing.
    #[serde(rename = "as_optional_tensor")]
    OptionalTensor(OptionalTensorArgument),
    /// A complex number.
    #[serde(rename = "as_complex")]
    Complex(ComplexValue),
    /// A list of lists of integers.
    #[serde(rename = "as_int_lists")]
    IntLists(Vec<Vec<i64>>),
    /// A dict.
    #[serde(rename = "as_string_to_argument")]
    StringToArgument(IndexMap<String, Argument>),
    /// A list of lists of tensors.
    #[serde(rename = "as_nested_tensors")]
    NestedTensors(Vec<Vec<TensorArgument>>),
    /// A list of lists of floats.
    #[serde(rename = "as_float_lists")]
    FloatLists(Vec<Vec<Float>>),
}

/// Whether an argument was given by position or by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Not recorded.
    Unknown,
    /// By position.
    Positional,
    /// By name.
    Keyword,
}

impl<'de> Deserialize<'de> for ArgumentKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match i64::deserialize(deserializer)? {
            0 => Ok(ArgumentKind::Unknown),
            1 => Ok(ArgumentKind::Positional),
            2 => Ok(ArgumentKind::Keyword),
            other => Err(serde::de::Error::custom(format!("{other} is no known ArgumentKind"))),
        }
    }
}

impl Serialize for ArgumentKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(match self {
            ArgumentKind::Unknown => 0,
            ArgumentKind::Positional => 1,
            ArgumentKind::Keyword => 2,
        })
    }
}

/// An argument of a node and the parameter that it is for.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct NamedArgument {
    /// The parameter's name.
    pub name: String,
    /// The value.
    pub arg: Argument,
    /// How it was given; absent in files of PyTorch 2.6.
    pub kind: Option<ArgumentKind>,
}
