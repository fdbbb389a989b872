//! Quotients and remainders of the types that kernels compute in: those of Python, which round down, and those of C, which
//! round towards zero. That an integer divisor is zero is for the kernel to find.

use crate::numeric::number::Real;

/// Division as PyTorch has it. The divisor of integers is not zero.
pub(crate) trait Division: Real {
    /// The quotient rounded down.
    fn floor_div(self, other: Self) -> Self;
    /// The quotient rounded towards zero.
    fn trunc_div(self, other: Self) -> Self;
    /// What is left of a division that rounds down: Python's `%`.
    fn remainder(self, other: Self) -> Self;
    /// What is left of a division that rounds towards zero: C's `fmod`.
    fn fmod(self, other: Self) -> Self;
}

macro_rules! float {
    ($($ty:ident),+) => {$(
        impl Division for $ty {
            fn floor_div(self, other: Self) -> Self {
                // As Python, and as c10::div_floor_floating: the quotient of the exact remainder, not of the rounded one.
                if other == 0.0 {
                    return self / other;
                }
                let left = self % other;
                let mut quotient = (self - left) / other;
                if left != 0.0 && (other < 0.0) != (left < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return (0.0 as $ty).copysign(self / other);
                }
                let floor = quotient.floor();
                if quotient - floor > 0.5 { floor + 1.0 } else { floor }
            }

            #[inline]
            fn trunc_div(self, other: Self) -> Self {
                (self / other).trunc()
            }

            #[inline]
            fn remainder(self, other: Self) -> Self {
                let left = self % other;
                if left != 0.0 && (other < 0.0) != (left < 0.0) { left + other } else { left }
            }

            #[inline]
            fn fmod(self, other: Self) -> Self {
                self % other
            }
        }
    )+};
}
float!(f32, f64);

impl Division for i64 {
    #[inline]
    fn floor_div(self, other: Self) -> Self {
        let quotient = self.wrapping_div(other);
        if self.wrapping_rem(other) != 0 && (self < 0) != (other < 0) { quotient - 1 } else { quotient }
    }

    #[inline]
    fn trunc_div(self, other: Self) -> Self {
        self.wrapping_div(other)
    }

    #[inline]
    fn remainder(self, other: Self) -> Self {
        let left = self.wrapping_rem(other);
        if left != 0 && (left < 0) != (other < 0) { left + other } else { left }
    }

    #[inline]
    fn fmod(self, other: Self) -> Self {
        self.wrapping_rem(other)
    }
}
