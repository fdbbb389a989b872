//! The numbers that matrices are made of: float64, and complex numbers of two of them, with their arithmetic. Elementary
//! functions of complex numbers are in [`complex`](super::complex).

use crate::numeric::number::{Arithmetic, Number};
use std::iter::{Product, Sum};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};
use tracefx_core::Element;

/// A number that can be added, multiplied and divided.
pub(crate) trait Field: Arithmetic + Sum + Product {
    /// What a tensor of such numbers holds.
    type Stored: Element;
    fn of(value: f64) -> Self;
    fn re(self) -> f64;
    fn conj(self) -> Self;
    /// The distance from zero.
    fn abs(self) -> f64;
    fn to_complex(self) -> Complex;
    /// The size by which LAPACK chooses pivots: the sum of the magnitudes of the parts.
    fn size(self) -> f64;

    /// The square of the distance from zero.
    fn square(self) -> f64 {
        (self * self.conj()).re()
    }

    /// This number at distance one from zero; zero as it is.
    fn direction(self) -> Self {
        let distance = self.abs();
        if distance == 0.0 { self } else { self / Self::of(distance) }
    }
}

impl Field for f64 {
    type Stored = f64;

    fn of(value: f64) -> Self {
        value
    }

    fn re(self) -> f64 {
        self
    }

    fn conj(self) -> Self {
        self
    }

    fn abs(self) -> f64 {
        f64::abs(self)
    }

    fn to_complex(self) -> Complex {
        Complex { re: self, im: 0.0 }
    }

    fn size(self) -> f64 {
        f64::abs(self)
    }
}

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Complex {
    pub(crate) re: f64,
    pub(crate) im: f64,
}

impl Field for Complex {
    type Stored = [f64; 2];

    fn of(value: f64) -> Self {
        Complex { re: value, im: 0.0 }
    }

    fn re(self) -> f64 {
        self.re
    }

    fn conj(self) -> Self {
        Complex { re: self.re, im: -self.im }
    }

    fn abs(self) -> f64 {
        self.re.hypot(self.im)
    }

    fn to_complex(self) -> Complex {
        self
    }

    fn size(self) -> f64 {
        self.re.abs() + self.im.abs()
    }
}

impl Add for Complex {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Complex {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Complex { re: self.re - other.re, im: self.im - other.im }
    }
}

impl Mul for Complex {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

impl Div for Complex {
    type Output = Self;

    /// Smith's method, which does not overflow where the quotient does not.
    fn div(self, other: Self) -> Self {
        if other.re == 0.0 && other.im == 0.0 {
            return Complex { re: self.re / other.re.abs(), im: self.im / other.re.abs() };
        }
        if other.re.abs() >= other.im.abs() {
            let ratio = other.im / other.re;
            let below = other.re + other.im * ratio;
            Complex { re: (self.re + self.im * ratio) / below, im: (self.im - self.re * ratio) / below }
        } else {
            let ratio = other.re / other.im;
            let below = other.re * ratio + other.im;
            Complex { re: (self.re * ratio + self.im) / below, im: (self.im * ratio - self.re) / below }
        }
    }
}

impl Neg for Complex {
    type Output = Self;

    fn neg(self) -> Self {
        Complex { re: -self.re, im: -self.im }
    }
}

impl AddAssign for Complex {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Complex {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl MulAssign for Complex {
    fn mul_assign(&mut self, other: Self) {
        *self = *self * other;
    }
}

impl DivAssign for Complex {
    fn div_assign(&mut self, other: Self) {
        *self = *self / other;
    }
}

impl Sum for Complex {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl Product for Complex {
    fn product<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ONE, Mul::mul)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_and_roots_undo_products() {
        let all = [(3.0, -4.0), (-0.5, 2.0), (0.0, 1e200), (-7.0, 0.0), (-7.0, -0.0)];
        for (re, im) in all {
            let it = Complex { re, im };
            let near = |a: Complex, b: Complex| assert!((a - b).abs() <= 1e-15 * b.abs(), "{a:?} {b:?}");
            near(it.sqrt() * it.sqrt(), it);
            assert!(it.sqrt().re >= 0.0);
            let other = Complex { re: 1.25, im: 0.75 };
            near(it * other / other, it);
            near(other / (other / it), it);
        }
    }
}
