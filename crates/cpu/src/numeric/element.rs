//! Arithmetic on single elements of every dtype, as PyTorch's CPU kernels accumulate: halves round after each step.

use tracefx_core::{Bool8, Element, bf16, f16};

/// An element that others can be combined with.
pub(crate) trait Arithmetic: Element {
    const ZERO: Self;
    const ONE: Self;
    /// The sum; integers wrap, bools are or-ed.
    fn plus(self, other: Self) -> Self;
    /// The product; integers wrap, bools are and-ed.
    fn times(self, other: Self) -> Self;
    /// The part of this that each of `n` has; integers round down.
    fn share(self, n: u32) -> Self;
}

macro_rules! arithmetic {
    ($($ty:ty, $zero:expr, $one:expr, |$a:ident, $b:ident| $plus:expr, $times:expr, |$n:ident| $share:expr;)+) => {$(
        impl Arithmetic for $ty {
            const ZERO: Self = $zero;
            const ONE: Self = $one;

            #[inline]
            fn plus(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $plus
            }

            #[inline]
            fn times(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $times
            }

            #[inline]
            fn share(self, $n: u32) -> Self {
                let $a = self;
                $share
            }
        }
    )+};
}

macro_rules! integers {
    ($($ty:ty),+) => {$(
        arithmetic! {
            $ty, 0, 1, |a, b| a.wrapping_add(b), a.wrapping_mul(b), |n| (a as i128).div_euclid(n as i128) as $ty;
        }
    )+};
}
integers!(u8, i8, u16, i16, u32, i32, u64, i64);

arithmetic! {
    f16, f16::ZERO, f16::ONE, |a, b| f16::from_f32(a.to_f32() + b.to_f32()), f16::from_f32(a.to_f32() * b.to_f32()),
        |n| f16::from_f32(a.to_f32() / n as f32);
    bf16, bf16::ZERO, bf16::ONE, |a, b| bf16::from_f32(a.to_f32() + b.to_f32()),
        bf16::from_f32(a.to_f32() * b.to_f32()), |n| bf16::from_f32(a.to_f32() / n as f32);
    f32, 0.0, 1.0, |a, b| a + b, a * b, |n| a / n as f32;
    f64, 0.0, 1.0, |a, b| a + b, a * b, |n| a / n as f64;
    [f32; 2], [0.0; 2], [1.0, 0.0], |a, b| [a[0] + b[0], a[1] + b[1]],
        [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]], |n| [a[0] / n as f32, a[1] / n as f32];
    [f64; 2], [0.0; 2], [1.0, 0.0], |a, b| [a[0] + b[0], a[1] + b[1]],
        [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]], |n| [a[0] / n as f64, a[1] / n as f64];
}

impl Arithmetic for Bool8 {
    const ZERO: Self = Bool8::FALSE;
    const ONE: Self = Bool8::TRUE;

    fn plus(self, other: Self) -> Self {
        Bool8::from(self.get() | other.get())
    }

    fn times(self, other: Self) -> Self {
        Bool8::from(self.get() & other.get())
    }

    fn share(self, _: u32) -> Self {
        self
    }
}
