//! Floating-point numbers. Kernels are written for float32 and float64; float16 and bfloat16 compute in float32 and are
//! rounded once, when the result is written ([`strided`](super::strided)). As numbers of their own they round after each
//! operation, for the operators where PyTorch does so.

use crate::numeric::elementary::Elementary;
use crate::numeric::number::{Arithmetic, Real};
use tracefx_core::{DType, bf16, f16};

/// A floating-point number.
pub(crate) trait Float: Real + Arithmetic {
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

/// A type, the one that its functions are computed in, and how a result is rounded to it.
macro_rules! float {
    ($($ty:ident, $wide:ident, $round:expr;)+) => {$(
        impl Float for $ty {
            const EPSILON: f64 = 1.0 / (1u64 << ($ty::MANTISSA_DIGITS - 1)) as f64;
            #[inline(always)]
            fn of(value: f64) -> Self {
                $round(value as $wide)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $round(Elementary::exp($wide::from(self)))
            }
            #[inline(always)]
            fn ln(self) -> Self {
                $round(Elementary::ln($wide::from(self)))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $round($wide::from(self).sqrt())
            }
            #[inline(always)]
            fn powf(self, exponent: Self) -> Self {
                $round($wide::from(self).powf($wide::from(exponent)))
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $round($wide::from(self).abs())
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $round($wide::from(self).floor())
            }
            #[inline(always)]
            fn round_ties_even(self) -> Self {
                $round($wide::from(self).round_ties_even())
            }
        }
    )+};
}
float! {
    f32, f32, f32::from;
    f64, f64, f64::from;
    f16, f32, f16::from_f32;
    bf16, f32, bf16::from_f32;
}

/// What rounding to a floating-point dtype and back does to a number.
pub(crate) fn rounding<A: Float>(dtype: DType) -> fn(A) -> A {
    match dtype {
        DType::Float16 => |it| A::of(f16::from_f32(it.to_f64() as f32).to_f64()),
        DType::BFloat16 => |it| A::of(bf16::from_f32(it.to_f64() as f32).to_f64()),
        DType::Float32 => |it| A::of(it.to_f64() as f32 as f64),
        _ => |it| it,
    }
}
