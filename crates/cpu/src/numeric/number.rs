//! The types that kernels compute in: `f32`, `f64`, `i64` and `[f64; 2]`, and what is done with them under one name.

use tracefx_core::Element;

/// A number: integers wrap.
pub(crate) trait Number: Element {
    const ZERO: Self;
    const ONE: Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

/// A number with an order.
pub(crate) trait Real: Number + PartialOrd {
    /// Whether this is no number at all.
    fn is_nan(self) -> bool;
    /// The largest float; the largest integer.
    const LOWEST: Self;
    const HIGHEST: Self;
    /// `-1`, `0` or `1`. Of a NaN, PyTorch says 0.
    fn sign(self) -> Self;
    /// The quotient rounded down. The divisor of integers is not zero.
    fn floor_div(self, other: Self) -> Self;
    /// The quotient rounded towards zero. The divisor of integers is not zero.
    fn trunc_div(self, other: Self) -> Self;
    /// What is left of a division that rounds down: Python's `%`. The divisor of integers is not zero.
    fn remainder(self, other: Self) -> Self;
    /// What is left of a division that rounds towards zero: C's `fmod`. The divisor of integers is not zero.
    fn fmod(self, other: Self) -> Self;

    /// The larger one; a NaN is larger than all.
    #[inline]
    fn larger(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }

    /// The smaller one; a NaN is smaller than all.
    #[inline]
    fn smaller(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }
}

macro_rules! float {
    ($($ty:ident),+) => {$(
        impl Number for $ty {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline]
            fn sub(self, other: Self) -> Self {
                self - other
            }
            #[inline]
            fn mul(self, other: Self) -> Self {
                self * other
            }
        }

        impl Real for $ty {
            const LOWEST: Self = $ty::NEG_INFINITY;
            const HIGHEST: Self = $ty::INFINITY;
            #[inline]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
            #[inline]
            fn sign(self) -> Self {
                ((self > 0.0) as u8 as $ty) - ((self < 0.0) as u8 as $ty)
            }
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

impl Number for i64 {
    const ZERO: Self = 0;
    const ONE: Self = 1;
    #[inline]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline]
    fn sub(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
    #[inline]
    fn mul(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
}

impl Real for i64 {
    const LOWEST: Self = i64::MIN;
    const HIGHEST: Self = i64::MAX;
    #[inline]
    fn is_nan(self) -> bool {
        false
    }
    #[inline]
    fn sign(self) -> Self {
        self.signum()
    }
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

impl Number for [f64; 2] {
    const ZERO: Self = [0.0, 0.0];
    const ONE: Self = [1.0, 0.0];
    #[inline]
    fn add(self, other: Self) -> Self {
        [self[0] + other[0], self[1] + other[1]]
    }
    #[inline]
    fn sub(self, other: Self) -> Self {
        [self[0] - other[0], self[1] - other[1]]
    }
    #[inline]
    fn mul(self, other: Self) -> Self {
        [self[0] * other[0] - self[1] * other[1], self[0] * other[1] + self[1] * other[0]]
    }
}

/// Runs a block with `F` bound to the type in which kernels compute on a float dtype; the `else` block runs for others.
macro_rules! with_float {
    ($dtype:expr, $F:ident => $body:expr, else $other:expr) => {
        match $dtype {
            tracefx_core::DType::Float16 | tracefx_core::DType::BFloat16 | tracefx_core::DType::Float32 => {
                type $F = f32;
                $body
            }
            tracefx_core::DType::Float64 => {
                type $F = f64;
                $body
            }
            _ => $other,
        }
    };
}
pub(crate) use with_float;

/// As [`with_float`], with int64 for integers and bools. uint64 is left out, for int64 does not hold it.
macro_rules! with_int {
    ($dtype:expr, $F:ident => $body:expr, else $other:expr) => {
        match $dtype {
            tracefx_core::DType::Bool
            | tracefx_core::DType::UInt8
            | tracefx_core::DType::Int8
            | tracefx_core::DType::UInt16
            | tracefx_core::DType::Int16
            | tracefx_core::DType::UInt32
            | tracefx_core::DType::Int32
            | tracefx_core::DType::Int64 => {
                type $F = i64;
                $body
            }
            _ => $other,
        }
    };
}
pub(crate) use with_int;

/// [`with_float`] and [`with_int`].
macro_rules! with_real {
    ($dtype:expr, $F:ident => $body:expr, else $other:expr) => {
        $crate::numeric::number::with_int!($dtype, $F => $body, else $crate::numeric::number::with_float!($dtype, $F => $body, else $other))
    };
}
pub(crate) use with_real;

/// As [`with_real`], with a pair of float64 for complex numbers.
macro_rules! with_number {
    ($dtype:expr, $F:ident => $body:expr, else $other:expr) => {
        match $dtype {
            tracefx_core::DType::Complex64 | tracefx_core::DType::Complex128 => {
                type $F = [f64; 2];
                $body
            }
            _ => $crate::numeric::number::with_real!($dtype, $F => $body, else $other),
        }
    };
}
pub(crate) use with_number;
