//! The messages of ONNX that a model of ours consists of, with the field numbers of `onnx.proto3`. What has presence there has
//! it here, so that an attribute of zero is written.

use prost::{Message, Oneof};

/// A model: a graph, and the versions that it is written in.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// The version of the format itself.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// Who wrote it.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// Which version of that.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// What people may want to know.
    #[prost(string, tag = "6")]
    pub doc_string: String,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// The versions of the operators.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Notes by key.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// A set of operators.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// Whose operators; empty for ONNX's own.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// Their version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A note.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// What it is about.
    #[prost(string, tag = "1")]
    pub key: String,
    /// What it says.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A graph: nodes in order, with their inputs, constants and outputs.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// The nodes, each after those that it uses.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants; one of the name of an input is its default.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// What goes in.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// What comes out.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// A call of an operator.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// The values that it takes; an empty name is one that is not given.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// The names of what it gives.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Its name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Its attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// What people may want to know.
    #[prost(string, tag = "6")]
    pub doc_string: String,
    /// Notes by key.
    #[prost(message, repeated, tag = "9")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// An attribute of a node.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A float.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// An int.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// A text.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub s: Option<Vec<u8>>,
    /// A tensor.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    /// A graph.
    #[prost(message, optional, tag = "6")]
    pub g: Option<GraphProto>,
    /// Ints.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Which of them it is.
    #[prost(int32, tag = "20")]
    pub r#type: i32,
}

/// A tensor with its data.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// Its sizes.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// Its dtype.
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Its name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Its elements, little-endian and row-major.
    #[prost(bytes = "vec", tag = "9")]
    pub raw_data: Vec<u8>,
}

/// What is known of an input or output.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
    /// What people may want to know.
    #[prost(string, tag = "3")]
    pub doc_string: String,
}

/// A type. Others than tensors are not used.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// A tensor's.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// A tensor's dtype and sizes.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// The dtype.
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// The sizes.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// The sizes of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// One for each dimension.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<Dimension>,
}

/// A size.
#[derive(Clone, PartialEq, Message)]
pub struct Dimension {
    /// What is known of it.
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub value: Option<DimensionValue>,
}

/// A size that is known, or has a name.
#[derive(Clone, PartialEq, Oneof)]
pub enum DimensionValue {
    /// The size.
    #[prost(int64, tag = "1")]
    DimValue(i64),
    /// The name, or the expression of names, of a dynamic size.
    #[prost(string, tag = "2")]
    DimParam(String),
}
