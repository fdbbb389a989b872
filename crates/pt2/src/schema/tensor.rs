//! Tensors and symbolic numbers.

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tracefx_core::{DType, Layout, MemoryFormat};

/// A Python `float`: a JSON number, or one of the strings that stand for what JSON cannot write.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Float(pub f64);

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Float;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number, \"Infinity\", \"-Infinity\" or \"NaN\"")
            }

            fn visit_f64<E>(self, it: f64) -> Result<Float, E> {
                Ok(Float(it))
            }

            fn visit_i64<E>(self, it: i64) -> Result<Float, E> {
                Ok(Float(it as f64))
            }

            fn visit_u64<E>(self, it: u64) -> Result<Float, E> {
                Ok(Float(it as f64))
            }

            fn visit_str<E: serde::de::Error>(self, it: &str) -> Result<Float, E> {
                match it {
                    "Infinity" => Ok(Float(f64::INFINITY)),
                    "-Infinity" => Ok(Float(f64::NEG_INFINITY)),
                    "NaN" => Ok(Float(f64::NAN)),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(it), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            it if it.is_nan() => serializer.serialize_str("NaN"),
            f64::INFINITY => serializer.serialize_str("Infinity"),
            f64::NEG_INFINITY => serializer.serialize_str("-Infinity"),
            it => serializer.serialize_f64(it),
        }
    }
}

macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident($value:ty) { $($number:literal = $it:path),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $value);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match i64::deserialize(deserializer)? {
                    $($number => Ok($name($it)),)+
                    other => Err(serde::de::Error::custom(format!(
                        concat!("{} is no known ", stringify!($name)), other))),
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[allow(unreachable_patterns, reason = "some of these lists are complete")]
                match self.0 {
                    $($it => serializer.serialize_u8($number),)+
                    other => Err(serde::ser::Error::custom(format!(
                        concat!("{} has no number as a ", stringify!($name)), other))),
                }
            }
        }
    };
}

numbered! {
    /// A dtype by its number in the schema, which is not the number that C++ gives it.
    ScalarType(DType) {
        1 = DType::UInt8, 2 = DType::Int8, 3 = DType::Int16, 4 = DType::Int32, 5 = DType::Int64, 6 = DType::Float16,
        7 = DType::Float32, 8 = DType::Float64, 9 = DType::Complex32, 10 = DType::Complex64, 11 = DType::Complex128,
        12 = DType::Bool, 13 = DType::BFloat16, 28 = DType::UInt16, 29 = DType::Float8E4M3FN, 30 = DType::Float8E5M2,
        31 = DType::Float8E4M3FNUZ, 32 = DType::Float8E5M2FNUZ, 33 = DType::Float8E8M0FNU, 34 = DType::UInt32,
        35 = DType::UInt64,
    }
}

numbered! {
    /// A layout by its number in the schema.
    LayoutNumber(Layout) {
        1 = Layout::SparseCoo, 2 = Layout::SparseCsr, 3 = Layout::SparseCsc, 4 = Layout::SparseBsr,
        5 = Layout::SparseBsc, 6 = Layout::Mkldnn, 7 = Layout::Strided,
    }
}

numbered! {
    /// A memory format by its number in the schema.
    MemoryFormatNumber(MemoryFormat) {
        1 = MemoryFormat::Contiguous, 2 = MemoryFormat::ChannelsLast, 3 = MemoryFormat::ChannelsLast3d,
        4 = MemoryFormat::Preserve,
    }
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Device {
    /// The device type, such as `cpu`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its ordinal.
    #[serde(default, deserialize_with = "ordinal")]
    pub index: Option<i64>,
}

fn ordinal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    match Option::<i64>::deserialize(deserializer)? {
        Some(it) if it < 0 => Err(serde::de::Error::custom(format!("{it} is no index of a device"))),
        it => Ok(it),
    }
}

/// What is known of a tensor without its data.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct TensorMeta {
    /// The dtype.
    pub dtype: ScalarType,
    /// The sizes.
    pub sizes: Vec<SymInt>,
    /// Whether it asks for gradients.
    pub requires_grad: bool,
    /// Where it was.
    pub device: Device,
    /// The strides, in elements.
    pub strides: Vec<SymInt>,
    /// The position of the first element in its storage.
    pub storage_offset: SymInt,
    /// The layout.
    pub layout: LayoutNumber,
}

/// An integer, or an expression for one.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum SymInt {
    /// An expression.
    #[serde(rename = "as_expr")]
    Expr(SymExpr),
    /// A number.
    #[serde(rename = "as_int")]
    Int(i64),
}

/// A float, or an expression for one.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum SymFloat {
    /// An expression.
    #[serde(rename = "as_expr")]
    Expr(SymExpr),
    /// A number.
    #[serde(rename = "as_float")]
    Float(Float),
}

/// A boolean, or an expression for one.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum SymBool {
    /// An expression.
    #[serde(rename = "as_expr")]
    Expr(SymExpr),
    /// A value.
    #[serde(rename = "as_bool")]
    Bool(bool),
}

/// A symbolic expression in sympy's `srepr` form.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct SymExpr {
    /// The expression.
    pub expr_str: String,
    /// Its value when the program was exported.
    pub hint: Option<SymExprHint>,
}

/// The value of an expression when the program was exported.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum SymExprHint {
    /// Of an integer.
    #[serde(rename = "as_int")]
    Int(i64),
    /// Of a boolean.
    #[serde(rename = "as_bool")]
    Bool(bool),
    /// Of a float.
    #[serde(rename = "as_float")]
    Float(Float),
}

/// The payloads of weights or constants.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PayloadConfig {
    /// Each payload by the name of the weight.
    pub config: IndexMap<String, PayloadMeta>,
}

/// Where the bytes of a weight or constant lie, and how to look at them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PayloadMeta {
    /// The name of the entry, without its folder.
    pub path_name: String,
    /// Whether it is a `torch.nn.Parameter`.
    pub is_param: bool,
    /// Whether the bytes are a file of `torch.save`.
    pub use_pickle: bool,
    /// The view that it is of the bytes; an object that is no tensor has none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub tensor_meta: Option<TensorMeta>,
}
