//! The names by which Python calls operators: the modules of functions, and the members of tensors that have another name.
//! TypeScript has a copy.

use tracefx_core::DType;

/// The modules in which PyTorch keeps functions that are operators of `aten`, as the beginnings of their names.
pub const OPERATOR_PLACES: &[&str] =
    &["torch._C._nn.", "torch._C._linalg.", "torch._C._fft.", "torch._C._special.", "torch."];

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
