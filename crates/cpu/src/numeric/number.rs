//! Numbers: what elements of every dtype can do ([`Number`]), and those with an order ([`Real`]). How integers overflow,
//! halves round and bools add is decided here, as PyTorch's CPU kernels accumulate.
//!
//! [`Float`](super::float::Float) and [`Division`](super::division::Division) are of real numbers, and
//! [`Field`](super::field::Field) is of those that matrices are made of; what they share is [`Arithmetic`]. Which dtype runs in which of the types is for
//! [`dispatch`](super::dispatch) to say.

use crate::numeric::field::Complex;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};
use tracefx_core::{Bool8, Element, bf16, f16};

/// A number. Integers wrap, halves round after each step, and bools are those of C.
pub(crate) trait Number: bytemuck::Pod + PartialEq {
    const ZERO: Self;
    const ONE: Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// The mean of a sum of `n`. Integers round down, and bools stay as they are.
    fn div_count(self, n: u32) -> Self;

    /// Whether this is no number at all.
    #[inline(always)]
    #[expect(clippy::eq_op, reason = "NaN alone is not equal to itself")]
    fn is_nan(self) -> bool {
        self != self
    }
}

/// A number with the operators of the language: a float, or a complex number.
pub(crate) trait Arithmetic:
    Number
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
{
}

impl Arithmetic for f16 {}
impl Arithmetic for bf16 {}
impl Arithmetic for f32 {}
impl Arithmetic for f64 {}
impl Arithmetic for Complex {}

/// A number with an order.
pub(crate) trait Real: Number + Element + PartialOrd {
    /// The least one: of floats minus infinity.
    const LOWEST: Self;
    /// The largest one: of floats infinity.
    const HIGHEST: Self;

    /// The larger one; a NaN is larger than all.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }

    /// The smaller one; a NaN is smaller than all.
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }
}

macro_rules! number {
    ($($ty:ty, $zero:expr, $one:expr, |$a:ident, $b:ident| [$add:expr, $sub:expr, $mul:expr], |$n:ident| $div:expr;)+) => {$(
        impl Number for $ty {
            const ZERO: Self = $zero;
            const ONE: Self = $one;

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $add
            }

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $sub
            }

            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $mul
            }

            #[inline(always)]
            fn div_count(self, $n: u32) -> Self {
                let $a = self;
                $div
            }
        }
    )+};
}

macro_rules! ints {
    ($($ty:ty),+) => {$(
        number! {
            $ty, 0, 1, |a, b| [a.wrapping_add(b), a.wrapping_sub(b), a.wrapping_mul(b)],
                |n| (a as i128).div_euclid(n as i128) as $ty;
        }
    )+};
}
ints!(u8, i8, u16, i16, u32, i32, u64, i64);

macro_rules! halves {
    ($($ty:ident),+) => {$(
        number! {
            $ty, $ty::ZERO, $ty::ONE, |a, b| [
                $ty::from_f32(a.to_f32() + b.to_f32()),
                $ty::from_f32(a.to_f32() - b.to_f32()),
                $ty::from_f32(a.to_f32() * b.to_f32())
            ], |n| $ty::from_f32(a.to_f32() / n as f32);
        }
    )+};
}
halves!(f16, bf16);

macro_rules! complex {
    ($($part:ident),+) => {$(
        number! {
            [$part; 2], [0.0; 2], [1.0, 0.0], |a, b| [
                [a[0] + b[0], a[1] + b[1]],
                [a[0] - b[0], a[1] - b[1]],
                [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
            ], |n| [a[0] / n as $part, a[1] / n as $part];
        }
    )+};
}
complex!(f32, f64);

number! {
    Bool8, Bool8::FALSE, Bool8::TRUE, |a, b| [
        Bool8::from(a.get() | b.get()),
        Bool8::from(a.get() ^ b.get()),
        Bool8::from(a.get() & b.get())
    ], |_n| a;
    f32, 0.0, 1.0, |a, b| [a + b, a - b, a * b], |n| a / n as f32;
    f64, 0.0, 1.0, |a, b| [a + b, a - b, a * b], |n| a / n as f64;
    Complex, Complex::new(0.0, 0.0), Complex::new(1.0, 0.0), |a, b| [a + b, a - b, a * b], |n| a / Complex::new(n as f64, 0.0);
}

macro_rules! real {
    ($($ty:ident, $lowest:ident, $highest:ident;)+) => {$(
        impl Real for $ty {
            const LOWEST: Self = $ty::$lowest;
            const HIGHEST: Self = $ty::$highest;
        }
    )+};
}
real! {
    u8, MIN, MAX;
    i8, MIN, MAX;
    i16, MIN, MAX;
    i32, MIN, MAX;
    i64, MIN, MAX;
    f16, NEG_INFINITY, INFINITY;
    bf16, NEG_INFINITY, INFINITY;
    f32, NEG_INFINITY, INFINITY;
    f64, NEG_INFINITY, INFINITY;
}
