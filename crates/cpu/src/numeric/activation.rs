//! Activations that both operators of their own and the epilogues of fused steps apply.

use crate::numeric::elementary::{Elementary, Rounding};
use crate::numeric::number::{Arithmetic, Real};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LOG2_E};

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
    fn silu<R: Rounding>(self) -> Self;
    fn hard_sigmoid(self) -> Self;
    fn hard_swish(self) -> Self;
    /// GELU by the approximation with the hyperbolic tangent.
    fn gelu_tanh<R: Rounding>(self) -> Self;
}

macro_rules! activation {
    ($($ty:ident),+) => {$(
        impl Activation for $ty {
            #[inline(always)]
            fn leaky_relu(self, slope: Self) -> Self {
                if self > 0.0 { self } else { self * slope }
            }

            #[inline(always)]
            fn silu<R: Rounding>(self) -> Self {
                self / Elementary::one_plus_exp_neg::<R>(self)
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
            fn gelu_tanh<R: Rounding>(self) -> Self {
                // `(1 + tanh(y)) / 2` is `1 / (1 + exp(-2 y))`, of which no digits are lost where the tangent is near -1.
                let beta = (-2.0 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * LOG2_E) as $ty;
                self / Elementary::one_plus_exp2::<R>(beta * (self + 0.044715 * self * self * self))
            }
        }
    )+};
}
activation!(f32, f64);
