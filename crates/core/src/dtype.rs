//! The dtypes: their names, sizes, kinds, and numbers in PyTorch's files. Which one an operator gives is the operator's matter.

use std::fmt;

/// The broad kind of a dtype; type promotion goes up this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DTypeKind {
    /// `bool`.
    Bool,
    /// Signed and unsigned integers.
    Int,
    /// Floating-point numbers.
    Float,
    /// Complex numbers.
    Complex,
}

macro_rules! dtypes {
    ($($(#[$meta:meta])* $variant:ident $name:literal $short:literal $kind:ident $size:literal),+ $(,)?) => {
        /// The type of a tensor's elements, with PyTorch's names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DType { $($(#[$meta])* $variant),+ }

        impl DType {
            /// Every dtype, in declaration order.
            pub const ALL: &'static [DType] = &[$(DType::$variant),+];

            /// PyTorch's name, without the `torch.` prefix.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name),+ }
            }

            /// PyTorch's abbreviation, as in `f32[2, 3]`.
            pub const fn short_name(self) -> &'static str {
                match self { $(DType::$variant => $short),+ }
            }

            /// Bytes per element.
            pub const fn size(self) -> usize {
                match self { $(DType::$variant => $size),+ }
            }

            /// The broad kind.
            pub const fn kind(self) -> DTypeKind {
                match self { $(DType::$variant => DTypeKind::$kind),+ }
            }
        }
    };
}

dtypes! {
    /// One byte, 0 or 1.
    Bool "bool" "b8" Bool 1,
    /// Unsigned 8-bit integer.
    UInt8 "uint8" "u8" Int 1,
    /// Signed 8-bit integer.
    Int8 "int8" "i8" Int 1,
    /// Unsigned 16-bit integer.
    UInt16 "uint16" "u16" Int 2,
    /// Signed 16-bit integer.
    Int16 "int16" "i16" Int 2,
    /// Unsigned 32-bit integer.
    UInt32 "uint32" "u32" Int 4,
    /// Signed 32-bit integer.
    Int32 "int32" "i32" Int 4,
    /// Unsigned 64-bit integer.
    UInt64 "uint64" "u64" Int 8,
    /// Signed 64-bit integer.
    Int64 "int64" "i64" Int 8,
    /// 8-bit float: 4 exponent bits, 3 mantissa bits, finite only.
    Float8E4M3FN "float8_e4m3fn" "f8e4m3fn" Float 1,
    /// 8-bit float: 5 exponent bits, 2 mantissa bits.
    Float8E5M2 "float8_e5m2" "f8e5m2" Float 1,
    /// 8-bit float as E4M3, without a negative zero.
    Float8E4M3FNUZ "float8_e4m3fnuz" "f8e4m3fnuz" Float 1,
    /// 8-bit float as E5M2, without a negative zero.
    Float8E5M2FNUZ "float8_e5m2fnuz" "f8e5m2fnuz" Float 1,
    /// 8-bit power-of-two scale.
    Float8E8M0FNU "float8_e8m0fnu" "f8e8m0fnu" Float 1,
    /// IEEE 754 half precision.
    Float16 "float16" "f16" Float 2,
    /// Brain float: the upper half of a float32.
    BFloat16 "bfloat16" "bf16" Float 2,
    /// IEEE 754 single precision.
    Float32 "float32" "f32" Float 4,
    /// IEEE 754 double precision.
    Float64 "float64" "f64" Float 8,
    /// A pair of float16.
    Complex32 "complex32" "c32" Complex 4,
    /// A pair of float32.
    Complex64 "complex64" "c64" Complex 8,
    /// A pair of float64.
    Complex128 "complex128" "c128" Complex 16,
}

impl DType {
    /// The dtype of this name, with or without the `torch.` prefix; PyTorch's aliases (`float`, `long`…) count too.
    ///
    /// ```
    /// use tracefx_core::DType;
    /// assert_eq!(DType::from_name("torch.float32"), Some(DType::Float32));
    /// assert_eq!(DType::from_name("long"), Some(DType::Int64));
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_prefix("torch.").unwrap_or(name);
        let name = match name {
            "float" => "float32",
            "double" => "float64",
            "half" => "float16",
            "long" => "int64",
            "int" => "int32",
            "short" => "int16",
            "cfloat" => "complex64",
            "cdouble" => "complex128",
            "chalf" => "complex32",
            other => other,
        };
        Self::ALL.iter().copied().find(|it| it.name() == name)
    }

    /// The name that PyTorch's error messages use: that of `c10::ScalarType`, such as `Float` or `Long`.
    pub const fn cpp_name(self) -> &'static str {
        match self {
            DType::Bool => "Bool",
            DType::UInt8 => "Byte",
            DType::Int8 => "Char",
            DType::UInt16 => "UInt16",
            DType::Int16 => "Short",
            DType::UInt32 => "UInt32",
            DType::Int32 => "Int",
            DType::UInt64 => "UInt64",
            DType::Int64 => "Long",
            DType::Float8E4M3FN => "Float8_e4m3fn",
            DType::Float8E5M2 => "Float8_e5m2",
            DType::Float8E4M3FNUZ => "Float8_e4m3fnuz",
            DType::Float8E5M2FNUZ => "Float8_e5m2fnuz",
            DType::Float8E8M0FNU => "Float8_e8m0fnu",
            DType::Float16 => "Half",
            DType::BFloat16 => "BFloat16",
            DType::Float32 => "Float",
            DType::Float64 => "Double",
            DType::Complex32 => "ComplexHalf",
            DType::Complex64 => "ComplexFloat",
            DType::Complex128 => "ComplexDouble",
        }
    }

    /// The dtype of this number: that of `c10::ScalarType`, which PyTorch's operators take, too.
    ///
    /// ```
    /// use tracefx_core::DType;
    /// assert_eq!(DType::from_number(4), Some(DType::Int64));
    /// ```
    pub const fn from_number(number: i64) -> Option<Self> {
        Some(match number {
            0 => DType::UInt8,
            1 => DType::Int8,
            2 => DType::Int16,
            3 => DType::Int32,
            4 => DType::Int64,
            5 => DType::Float16,
            6 => DType::Float32,
            7 => DType::Float64,
            8 => DType::Complex32,
            9 => DType::Complex64,
            10 => DType::Complex128,
            11 => DType::Bool,
            15 => DType::BFloat16,
            23 => DType::Float8E5M2,
            24 => DType::Float8E4M3FN,
            25 => DType::Float8E5M2FNUZ,
            26 => DType::Float8E4M3FNUZ,
            27 => DType::UInt16,
            28 => DType::UInt32,
            29 => DType::UInt64,
            44 => DType::Float8E8M0FNU,
            _ => return None,
        })
    }

    /// Whether this is a real floating-point dtype.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), DTypeKind::Float)
    }

    /// Whether this is a complex dtype.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), DTypeKind::Complex)
    }

    /// Whether this is an integer dtype; `bool` is not one here.
    pub const fn is_int(self) -> bool {
        matches!(self.kind(), DTypeKind::Int)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "torch.{}", self.name())
    }
}

/// A set of dtypes.
///
/// ```
/// use tracefx_core::{DType, DTypes};
/// let halves: DTypes = [DType::Float16, DType::BFloat16].into_iter().collect();
/// assert!(halves.has(DType::Float16) && !halves.has(DType::Float32));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DTypes(u32);

impl DTypes {
    /// No dtype.
    pub const NONE: DTypes = DTypes(0);

    /// Whether the dtype is one of the set.
    pub const fn has(self, dtype: DType) -> bool {
        self.0 & (1 << dtype as u32) != 0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<DType> for DTypes {
    fn from_iter<I: IntoIterator<Item = DType>>(dtypes: I) -> Self {
        DTypes(dtypes.into_iter().fold(0, |set, it| set | 1 << it as u32))
    }
}
