use crate::{Complex64, DType, Scalar};
use half::{bf16, f16};

mod sealed {
    pub trait Sealed {}
}

/// A `bool` as tensors store it: one byte, where any non-zero byte is true.
///
/// Rust's `bool` may not hold a byte other than 0 or 1, and bytes that come out of a file may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool8(u8);

impl Bool8 {
    /// `false`.
    pub const FALSE: Bool8 = Bool8(0);
    /// `true`.
    pub const TRUE: Bool8 = Bool8(1);

    /// Whether the byte is non-zero.
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool8 {
    fn from(value: bool) -> Self {
        Bool8(value as u8)
    }
}

/// A Rust type that is the element of a tensor. The set is closed.
pub trait Element: bytemuck::Pod + PartialEq + Send + Sync + sealed::Sealed {
    /// The dtype whose elements these are.
    const DTYPE: DType;

    /// The nearest value of this type, converted as PyTorch converts on the CPU: floats to integers truncate,
    /// integers wrap, anything non-zero is true.
    fn from_scalar(value: Scalar) -> Self;

    /// This value as a scalar of its kind; exact.
    fn to_scalar(self) -> Scalar;
}

macro_rules! int_element {
    ($($ty:ty => $dtype:ident),+) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;

            fn from_scalar(value: Scalar) -> Self {
                match value {
                    Scalar::Bool(it) => it as $ty,
                    Scalar::Int(it) => it as $ty,
                    // PyTorch goes through int64, so that a negative float wraps in an unsigned type.
                    Scalar::Float(it) => it as i64 as $ty,
                    Scalar::Complex(it) => it.re as i64 as $ty,
                }
            }

            fn to_scalar(self) -> Scalar {
                Scalar::Int(self as i64)
            }
        }
    )+};
}
int_element!(u8 => UInt8, i8 => Int8, u16 => UInt16, i16 => Int16, u32 => UInt32, i32 => Int32, u64 => UInt64, i64 => Int64);

macro_rules! float_element {
    ($($ty:ty => $dtype:ident, $from:expr, $to:expr);+ $(;)?) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;

            fn from_scalar(value: Scalar) -> Self {
                let from: fn(f64) -> $ty = $from;
                match value {
                    Scalar::Bool(it) => from(it as u8 as f64),
                    Scalar::Int(it) => from(it as f64),
                    Scalar::Float(it) => from(it),
                    Scalar::Complex(it) => from(it.re),
                }
            }

            fn to_scalar(self) -> Scalar {
                let to: fn($ty) -> f64 = $to;
                Scalar::Float(to(self))
            }
        }
    )+};
}
float_element! {
    f16 => Float16, |it| f16::from_f32(it as f32), f16::to_f64;
    bf16 => BFloat16, |it| bf16::from_f32(it as f32), bf16::to_f64;
    f32 => Float32, |it| it as f32, |it| it as f64;
    f64 => Float64, |it| it, |it| it;
}

impl sealed::Sealed for Bool8 {}
impl Element for Bool8 {
    const DTYPE: DType = DType::Bool;

    fn from_scalar(value: Scalar) -> Self {
        Bool8::from(match value {
            Scalar::Bool(it) => it,
            Scalar::Int(it) => it != 0,
            Scalar::Float(it) => it != 0.0,
            Scalar::Complex(it) => it.re != 0.0 || it.im != 0.0,
        })
    }

    fn to_scalar(self) -> Scalar {
        Scalar::Bool(self.get())
    }
}

impl sealed::Sealed for [f32; 2] {}
impl Element for [f32; 2] {
    const DTYPE: DType = DType::Complex64;

    fn from_scalar(value: Scalar) -> Self {
        let it = value.to_complex();
        [it.re as f32, it.im as f32]
    }

    fn to_scalar(self) -> Scalar {
        Scalar::Complex(Complex64 { re: self[0] as f64, im: self[1] as f64 })
    }
}

impl sealed::Sealed for [f64; 2] {}
impl Element for [f64; 2] {
    const DTYPE: DType = DType::Complex128;

    fn from_scalar(value: Scalar) -> Self {
        let it = value.to_complex();
        [it.re, it.im]
    }

    fn to_scalar(self) -> Scalar {
        Scalar::Complex(Complex64 { re: self[0], im: self[1] })
    }
}
