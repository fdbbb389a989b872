//! Activations that both operators of their own and the epilogues of fused steps apply, so that both give the same bits.

use crate::numeric::elementary::Elementary;
use crate::numeric::number::{Arithmetic, Real};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// Activations of the floats that kernels compute in.
pub(crate) trait Activation: Elementary + Arithmetic + Real {
    /// The number within these limits, which are numbers; not a number stays so. One comparison for each limit is what
    /// becomes vector code wherever it stands.
    #[inline(always)]
    fn clamped(self, min: Self, max: Self) -> Self {
        let above = if self <= min { min } else { self };
        if above >= max { max } else { above }
    }

    fn leaky_relu(self, slope: Self) -> Self;
    fn silu(self) -> Self;
    fn hard_sigmoid(self) -> Self;
    fn hard_swish(self) -> Self;
    /// By the error function.
    fn gelu(self) -> Self;
    /// By the approximation with the hyperbolic tangent.
    fn gelu_tanh(self) -> Self;
}

macro_rules! activation {
    ($($ty:ident),+) => {$(
        impl Activation for $ty {
            #[inline(always)]
            fn leaky_relu(self, slope: Self) -> Self {
                if self > 0.0 { self } else { self * slope }
            }

            #[inline(always)]
            fn silu(self) -> Self {
                self / (1.0 + Elementary::exp(-self))
            }

            #[inline(always)]
            fn hard_sigmoid(self) -> Self {
                (self + 3.0).clamped(0.0, 6.0) / 6.0
            }

            #[inline(always)]
            fn hard_swish(self) -> Self {
                self * (self + 3.0).clamped(0.0, 6.0) / 6.0
            }

            #[inline(always)]
            fn gelu(self) -> Self {
                0.5 * self * (1.0 + Elementary::erf(self * FRAC_1_SQRT_2 as $ty))
            }

            #[inline(always)]
            fn gelu_tanh(self) -> Self {
                let beta = (FRAC_2_SQRT_PI * FRAC_1_SQRT_2) as $ty;
                0.5 * self * (1.0 + Elementary::tanh(beta * (self + 0.044715 * self * self * self)))
            }
        }
    )+};
}
activation!(f32, f64);
