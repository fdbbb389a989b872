//! Floating-point kernels are written for float32 and float64; float16 and bfloat16 compute in float32 and are rounded
//! once, when the result is written.

use crate::numeric::dense::written;
use crate::numeric::elementary::Elementary;
use crate::numeric::map::{convert_all, gather};
use std::ops::{Add, AddAssign, Deref, Div, Mul, MulAssign, Neg, Sub};
use tracefx_core::allocate::filled;
use tracefx_core::{DType, Dims, Element, Result, StorageRead, Tensor, bf16, f16};

/// The types that floating-point kernels compute in.
pub(crate) trait Real:
    Element
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + MulAssign
    + PartialOrd
{
    const ZERO: Self;
    const ONE: Self;
    const INFINITY: Self;
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
    fn is_nan(self) -> bool;
}

macro_rules! real {
    ($($ty:ident),+) => {$(
        impl Real for $ty {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = $ty::INFINITY;
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
            #[inline(always)]
            fn is_nan(self) -> bool {
                $ty::is_nan(self)
            }
        }
    )+};
}
real!(f32, f64);

/// Half types as numbers of their own: each operation is done in float32 and rounded, for the operators where PyTorch
/// does so.
macro_rules! half_real {
    ($($ty:ident),+) => {$(
        impl Real for $ty {
            const ZERO: Self = $ty::ZERO;
            const ONE: Self = $ty::ONE;
            const INFINITY: Self = $ty::INFINITY;
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
            #[inline(always)]
            fn is_nan(self) -> bool {
                $ty::is_nan(self)
            }
        }
    )+};
}
half_real!(f16, bf16);

/// Runs a block with `A` bound to the type in which a floating-point dtype computes; the `else` block runs for others.
macro_rules! with_real {
    ($dtype:expr, $A:ident => $body:expr, else $other:expr) => {
        match $dtype {
            ::tracefx_core::DType::Float16 | ::tracefx_core::DType::BFloat16 | ::tracefx_core::DType::Float32 => {
                type $A = f32;
                $body
            }
            ::tracefx_core::DType::Float64 => {
                type $A = f64;
                $body
            }
            _ => $other,
        }
    };
}
pub(crate) use with_real;

/// The elements of a tensor as `A`, with their strides: as they lie where the dtype is `A`'s, else converted and
/// row-major.
pub(crate) struct Strided<'a, A> {
    data: Data<'a, A>,
    offset: usize,
    pub(crate) sizes: Dims,
    pub(crate) strides: Dims,
}

enum Data<'a, A> {
    Read(StorageRead<'a>),
    Owned(Vec<A>),
}

impl<'a, A: Element> Strided<'a, A> {
    /// The elements where they lie.
    ///
    /// # Panics
    /// When `A` is not the element type of the tensor.
    pub(crate) fn exact(tensor: &'a Tensor) -> Self {
        assert_eq!(A::DTYPE, tensor.dtype(), "a kernel reads a tensor as what it is");
        Strided {
            data: Data::Read(tensor.storage().read()),
            // An empty tensor may have any offset.
            offset: if tensor.numel() == 0 { 0 } else { tensor.offset() },
            sizes: tensor.sizes().into(),
            strides: tensor.strides().into(),
        }
    }

    /// The elements; the one at index `i` is at the sum of `i[d] * strides[d]`.
    pub(crate) fn data(&self) -> &[A] {
        match &self.data {
            Data::Read(guard) => &guard.elements::<A>()[self.offset..],
            Data::Owned(data) => data,
        }
    }
}

impl<'a, A: Real> Strided<'a, A> {
    /// The elements of a floating-point tensor.
    pub(crate) fn new(tensor: &'a Tensor) -> Result<Self> {
        if tensor.dtype() == A::DTYPE {
            return Ok(Self::exact(tensor));
        }
        Ok(Strided {
            data: Data::Owned(converted(tensor)?),
            offset: 0,
            sizes: tensor.sizes().into(),
            strides: tracefx_core::contiguous_strides(tensor.sizes()),
        })
    }

    /// The elements of a floating-point tensor in row-major order.
    pub(crate) fn dense(tensor: &'a Tensor) -> Result<Self> {
        if tensor.dtype() == A::DTYPE && tensor.is_contiguous() {
            return Ok(Self::exact(tensor));
        }
        Ok(Strided {
            data: Data::Owned(converted(tensor)?),
            offset: 0,
            sizes: tensor.sizes().into(),
            strides: tracefx_core::contiguous_strides(tensor.sizes()),
        })
    }
}

impl<A: Real> Deref for Strided<'_, A> {
    type Target = [A];

    fn deref(&self) -> &[A] {
        self.data()
    }
}

fn converted<A: Real>(tensor: &Tensor) -> Result<Vec<A>> {
    if tensor.dtype() == A::DTYPE {
        return tensor.to_vec::<A>();
    }
    let mut res = filled(A::ZERO, tensor.numel())?;
    let tensor = tensor.contiguous()?;
    let guard = tensor.storage().read();
    // An empty tensor may have any offset.
    let at = if res.is_empty() { 0 } else { tensor.offset() };
    match tensor.dtype() {
        DType::Float16 => gather(guard.elements::<f16>(), at, 1, &mut res),
        DType::BFloat16 => gather(guard.elements::<bf16>(), at, 1, &mut res),
        DType::Float32 => gather(guard.elements::<f32>(), at, 1, &mut res),
        other => return Err(tracefx_core::Diagnostic::unsupported_dtype(other, "a floating-point kernel")),
    }
    Ok(res)
}

/// Gives the elements of a new, row-major result to `fill` as `A`, and rounds them to its dtype.
///
/// # Errors
/// `OutOfMemory` where there is no room for the elements in the dtype of the computation.
pub(crate) fn fill_real<A: Real, R>(result: &Tensor, fill: impl FnOnce(&mut [A]) -> R) -> Result<R> {
    try_fill_real(result, |out| Ok(fill(out)))
}

/// As [`fill_real`], where `fill` may fail.
///
/// # Errors
/// As there, and what `fill` gives.
pub(crate) fn try_fill_real<A: Real, R>(result: &Tensor, fill: impl FnOnce(&mut [A]) -> Result<R>) -> Result<R> {
    let mut guard = written(result);
    if result.dtype() == A::DTYPE {
        return fill(&mut guard.elements_mut::<A>()[..result.numel()]);
    }
    let mut wide = filled(A::ZERO, result.numel())?;
    let res = fill(&mut wide)?;
    match result.dtype() {
        DType::Float16 => convert_all(&wide, guard.elements_mut::<f16>()),
        DType::BFloat16 => convert_all(&wide, guard.elements_mut::<bf16>()),
        DType::Float32 => convert_all(&wide, guard.elements_mut::<f32>()),
        DType::Float64 => convert_all(&wide, guard.elements_mut::<f64>()),
        other => unreachable!("a floating-point kernel has a result of {other}"),
    }
    Ok(res)
}

/// What rounding to a floating-point dtype and back does to a number.
pub(crate) fn rounding<A: Real>(dtype: DType) -> fn(A) -> A {
    match dtype {
        DType::Float16 => |it| A::of(f16::from_f32(it.to_f64() as f32).to_f64()),
        DType::BFloat16 => |it| A::of(bf16::from_f32(it.to_f64() as f32).to_f64()),
        DType::Float32 => |it| A::of(it.to_f64() as f32 as f64),
        _ => |it| it,
    }
}
