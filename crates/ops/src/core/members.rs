//! The members of Python's tensors that are operators by another name, of which TypeScript has a copy.

use tracefx_core::DType;

/// The methods that convert to a dtype.
pub const CONVERSIONS: &[(&str, DType)] = &[
    ("float", DType::Float32),
    ("double", DType::Float64),
    ("half", DType::Float16),
    ("bfloat16", DType::BFloat16),
    ("long", DType::Int64),
    ("int", DType::Int32),
    ("short", DType::Int16),
    ("char", DType::Int8),
    ("byte", DType::UInt8),
    ("bool", DType::Bool),
    ("cfloat", DType::Complex64),
    ("cdouble", DType::Complex128),
];

/// The attributes, with the operators that give them.
pub const ATTRIBUTES: &[(&str, &str)] = &[
    ("T", "aten.numpy_T"),
    ("mT", "aten.mT"),
    ("mH", "aten.mH"),
    ("H", "aten.mH"),
    ("real", "aten.real"),
    ("imag", "aten.imag"),
];
