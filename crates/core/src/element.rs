//! The Rust type that stands for the elements of each dtype, and how a number of Python becomes one.

use crate::half::{f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::{Complex64, DType, Scalar};
use ::half::{bf16, f16};

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

    /// The nearest float32; of a complex number its real part.
    fn to_f32(self) -> f32;

    /// As [`Element::from_scalar`] of [`Element::to_scalar`], in a form that becomes vector code in a loop.
    #[inline(always)]
    fn from_element<T: Element>(element: T) -> Self {
        Self::from_scalar(element.to_scalar())
    }
}

/// The float without what lies behind the point. What no int64 holds is the least one, as x86 has it.
#[inline(always)]
fn truncated(value: f64) -> i64 {
    // The upper bound is 2^63, which is no int64.
    if value >= i64::MIN as f64 && value < i64::MAX as f64 { value as i64 } else { i64::MIN }
}

macro_rules! int_element {
    ($($ty:ty => $dtype:ident),+) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;

            #[inline(always)]
            fn from_scalar(value: Scalar) -> Self {
                match value {
                    Scalar::Bool(it) => it as $ty,
                    Scalar::Int(it) => it as $ty,
                    // PyTorch goes through int64, so that a negative float wraps in an unsigned type.
                    Scalar::Float(it) => truncated(it) as $ty,
                    Scalar::Complex(it) => truncated(it.re) as $ty,
                }
            }

            #[inline(always)]
            fn to_scalar(self) -> Scalar {
                Scalar::Int(self as i64)
            }

            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
        }
    )+};
}
int_element!(u8 => UInt8, i8 => Int8, u16 => UInt16, i16 => Int16, u32 => UInt32, i32 => Int32, u64 => UInt64, i64 => Int64);

macro_rules! float_element {
    ($($ty:ty => $dtype:ident, $from:expr, $to:expr, |$it:ident| $to_f32:expr, $($from_element:expr)?);+ $(;)?) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;

            #[inline(always)]
            fn from_scalar(value: Scalar) -> Self {
                let from: fn(f64) -> $ty = $from;
                match value {
                    Scalar::Bool(it) => from(it as u8 as f64),
                    Scalar::Int(it) => from(it as f64),
                    Scalar::Float(it) => from(it),
                    Scalar::Complex(it) => from(it.re),
                }
            }

            #[inline(always)]
            fn to_scalar(self) -> Scalar {
                let to: fn($ty) -> f64 = $to;
                Scalar::Float(to(self))
            }

            #[inline(always)]
            fn to_f32(self) -> f32 {
                let $it = self;
                $to_f32
            }

            $(#[inline(always)]
            fn from_element<T: Element>(element: T) -> Self {
                let from: fn(f32) -> $ty = $from_element;
                from(element.to_f32())
            })?
        }
    )+};
}
float_element! {
    f16 => Float16, |it| f16::from_bits(f32_to_f16(it as f32)), |it| f16_to_f32(it.to_bits()) as f64,
        |it| f16_to_f32(it.to_bits()), |it| f16::from_bits(f32_to_f16(it));
    bf16 => BFloat16, |it| bf16::from_bits(f32_to_bf16(it as f32)), |it| f32::from_bits((it.to_bits() as u32) << 16) as f64,
        |it| f32::from_bits((it.to_bits() as u32) << 16), |it| bf16::from_bits(f32_to_bf16(it));
    f32 => Float32, |it| it as f32, |it| it as f64, |it| it, |it| it;
    f64 => Float64, |it| it, |it| it, |it| it as f32,;
}

impl sealed::Sealed for Bool8 {}
impl Element for Bool8 {
    const DTYPE: DType = DType::Bool;

    #[inline(always)]
    fn from_scalar(value: Scalar) -> Self {
        Bool8::from(match value {
            Scalar::Bool(it) => it,
            Scalar::Int(it) => it != 0,
            Scalar::Float(it) => it != 0.0,
            Scalar::Complex(it) => it.re != 0.0 || it.im != 0.0,
        })
    }

    #[inline(always)]
    fn to_scalar(self) -> Scalar {
        Scalar::Bool(self.get())
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.get() as u8 as f32
    }
}

impl sealed::Sealed for [f32; 2] {}
impl Element for [f32; 2] {
    const DTYPE: DType = DType::Complex64;

    #[inline(always)]
    fn from_scalar(value: Scalar) -> Self {
        let it = value.to_complex();
        [it.re as f32, it.im as f32]
    }

    #[inline(always)]
    fn to_scalar(self) -> Scalar {
        Scalar::Complex(Complex64 { re: self[0] as f64, im: self[1] as f64 })
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self[0]
    }
}

impl sealed::Sealed for [f64; 2] {}
impl Element for [f64; 2] {
    const DTYPE: DType = DType::Complex128;

    #[inline(always)]
    fn from_scalar(value: Scalar) -> Self {
        let it = value.to_complex();
        [it.re, it.im]
    }

    #[inline(always)]
    fn to_scalar(self) -> Scalar {
        Scalar::Complex(Complex64 { re: self[0], im: self[1] })
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self[0] as f32
    }
}
