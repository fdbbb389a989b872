//! Floating-point numbers. Kernels are written for float32 and float64; float16 and bfloat16 compute in float32 and are
//! rounded once, when the result is written ([`strided`](super::strided)). As numbers of their own they round after each
//! operation, for the operators where PyTorch does so.

use crate::numeric::elementary::Elementary;
use crate::numeric::number::Real;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub};
use tracefx_core::{DType, bf16, f16};

/// A floating-point number.
pub(crate) trait Float:
    Real
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + MulAssign
{
    /// The distance from one to the next number.
    const EPSILON: f64;
    fn of(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn powf(self, exponent: Self) -> Self;
    fn abs(self) -> Self;
    fn floor(self) -> Self;
    fn round_ties_even(self) -> Self;
}

macro_rules! float {
    ($($ty:ident),+) => {$(
        impl Float for $ty {
            const EPSILON: f64 = $ty::EPSILON as f64;
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $ty
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn exp(self) -> Self {
                Elementary::exp(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                Elementary::ln(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $ty::sqrt(self)
            }
            #[inline(always)]
            fn powf(self, exponent: Self) -> Self {
                $ty::powf(self, exponent)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $ty::abs(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $ty::floor(self)
            }
            #[inline(always)]
            fn round_ties_even(self) -> Self {
                $ty::round_ties_even(self)
            }
        }
    )+};
}
float!(f32, f64);

/// Half types as numbers of their own: each operation is done in float32 and rounded, for the operators where PyTorch
/// does so.
macro_rules! half_float {
    ($($ty:ident),+) => {$(
        impl Float for $ty {
            const EPSILON: f64 = $ty::EPSILON.to_f64_const();
            #[inline(always)]
            fn of(value: f64) -> Self {
                $ty::from_f32(value as f32)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $ty::to_f64(self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $ty::from_f32(self.to_f32().exp())
            }
            #[inline(always)]
            fn ln(self) -> Self {
                $ty::from_f32(self.to_f32().ln())
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $ty::from_f32(self.to_f32().sqrt())
            }
            #[inline(always)]
            fn powf(self, exponent: Self) -> Self {
                $ty::from_f32(self.to_f32().powf(exponent.to_f32()))
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $ty::from_f32(self.to_f32().abs())
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $ty::from_f32(self.to_f32().floor())
            }
            #[inline(always)]
            fn round_ties_even(self) -> Self {
                $ty::from_f32(self.to_f32().round_ties_even())
            }
        }
    )+};
}
half_float!(f16, bf16);

/// What rounding to a floating-point dtype and back does to a number.
pub(crate) fn rounding<A: Float>(dtype: DType) -> fn(A) -> A {
    match dtype {
        DType::Float16 => |it| A::of(f16::from_f32(it.to_f64() as f32).to_f64()),
        DType::BFloat16 => |it| A::of(bf16::from_f32(it.to_f64() as f32).to_f64()),
        DType::Float32 => |it| A::of(it.to_f64() as f32 as f64),
        _ => |it| it,
    }
}
