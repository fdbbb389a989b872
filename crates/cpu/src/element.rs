//! Arithmetic on single elements of every dtype, as PyTorch's CPU kernels accumulate: halves round after each step.

use tracefx_core::{Bool8, Element, bf16, f16};

/// An element that others can be added to.
pub(crate) trait Arithmetic: Element {
    /// The sum; integers wrap, bools are or-ed.
    fn plus(self, other: Self) -> Self;
}

macro_rules! arithmetic {
    ($($ty:ty: |$a:ident, $b:ident| $plus:expr;)+) => {$(
        impl Arithmetic for $ty {
            #[inline]
            fn plus(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $plus
            }
        }
    )+};
}
arithmetic! {
    Bool8: |a, b| Bool8::from(a.get() | b.get());
    u8: |a, b| a.wrapping_add(b);
    i8: |a, b| a.wrapping_add(b);
    u16: |a, b| a.wrapping_add(b);
    i16: |a, b| a.wrapping_add(b);
    u32: |a, b| a.wrapping_add(b);
    i32: |a, b| a.wrapping_add(b);
    u64: |a, b| a.wrapping_add(b);
    i64: |a, b| a.wrapping_add(b);
    f16: |a, b| f16::from_f32(a.to_f32() + b.to_f32());
    bf16: |a, b| bf16::from_f32(a.to_f32() + b.to_f32());
    f32: |a, b| a + b;
    f64: |a, b| a + b;
    [f32; 2]: |a, b| [a[0] + b[0], a[1] + b[1]];
    [f64; 2]: |a, b| [a[0] + b[0], a[1] + b[1]];
}
