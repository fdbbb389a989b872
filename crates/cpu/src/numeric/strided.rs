//! Operands by their strides, in the type that a kernel computes in, and results that are rounded from it. Half types are
//! converted here; elements of their own dtype are [`dense`](super::dense)'s to read and fill.

use crate::numeric::dense::written;
use crate::numeric::float::Float;
use crate::numeric::map::{cast, convert_all, gather};
use std::ops::Deref;
use tracefx_core::allocate::filled;
use tracefx_core::{DType, Dims, Element, Result, StorageRead, Tensor, bf16, f16};

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

impl<'a, A: Float> Strided<'a, A> {
    /// The elements of a floating-point tensor.
    pub(crate) fn new(tensor: &'a Tensor) -> Result<Self> {
        if tensor.dtype() == A::DTYPE {
            return Ok(Self::exact(tensor));
        }
        Self::row_major(tensor)
    }

    /// As [`Strided::new`], where one element that stands for all of a dimension, by a stride of zero, is converted once.
    pub(crate) fn expanded(tensor: &'a Tensor) -> Result<Self> {
        if tensor.dtype() == A::DTYPE || !tensor.strides().contains(&0) {
            return Self::new(tensor);
        }
        let is_one = |dim: usize| tensor.strides()[dim] == 0 && tensor.sizes()[dim] > 1;
        let sizes: Dims = (0..tensor.rank()).map(|dim| if is_one(dim) { 1 } else { tensor.sizes()[dim] }).collect();
        let compact = tensor.as_strided(&sizes, tensor.strides(), tensor.offset())?;
        let mut strides = tracefx_core::contiguous_strides(&sizes);
        (0..sizes.len()).filter(|dim| is_one(*dim)).for_each(|dim| strides[dim] = 0);
        Ok(Strided { data: Data::Owned(converted(&compact)?), offset: 0, sizes: tensor.sizes().into(), strides })
    }

    /// The elements of a floating-point tensor in row-major order.
    pub(crate) fn dense(tensor: &'a Tensor) -> Result<Self> {
        if tensor.dtype() == A::DTYPE && tensor.is_contiguous() {
            return Ok(Self::exact(tensor));
        }
        Self::row_major(tensor)
    }

    /// A copy of the elements.
    fn row_major(tensor: &Tensor) -> Result<Self> {
        Ok(Strided {
            data: Data::Owned(converted(tensor)?),
            offset: 0,
            sizes: tensor.sizes().into(),
            strides: tracefx_core::contiguous_strides(tensor.sizes()),
        })
    }
}

impl<'a> Strided<'a, i32> {
    /// The elements of a tensor of integers of up to 32 bits.
    pub(crate) fn integers(tensor: &'a Tensor) -> Result<Self> {
        if tensor.dtype() == DType::Int32 {
            return Ok(Self::exact(tensor));
        }
        Ok(Strided {
            data: Data::Owned(cast(tensor, DType::Int32)?.to_vec()?),
            offset: 0,
            sizes: tensor.sizes().into(),
            strides: tracefx_core::contiguous_strides(tensor.sizes()),
        })
    }
}

impl<A: Float> Deref for Strided<'_, A> {
    type Target = [A];

    fn deref(&self) -> &[A] {
        self.data()
    }
}

fn converted<A: Float>(tensor: &Tensor) -> Result<Vec<A>> {
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
pub(crate) fn fill_float<A: Float, R>(result: &Tensor, fill: impl FnOnce(&mut [A]) -> R) -> Result<R> {
    try_fill_float(result, |out| Ok(fill(out)))
}

/// As [`fill_float`], where `fill` may fail.
///
/// # Errors
/// As there, and what `fill` gives.
pub(crate) fn try_fill_float<A: Float, R>(result: &Tensor, fill: impl FnOnce(&mut [A]) -> Result<R>) -> Result<R> {
    let (mut guard, n) = (written(result), result.numel());
    if result.dtype() == A::DTYPE {
        return fill(&mut guard.elements_mut::<A>()[..n]);
    }
    let mut wide = filled(A::ZERO, n)?;
    let res = fill(&mut wide)?;
    match result.dtype() {
        DType::Float16 => convert_all(&wide, &mut guard.elements_mut::<f16>()[..n]),
        DType::BFloat16 => convert_all(&wide, &mut guard.elements_mut::<bf16>()[..n]),
        DType::Float32 => convert_all(&wide, &mut guard.elements_mut::<f32>()[..n]),
        DType::Float64 => convert_all(&wide, &mut guard.elements_mut::<f64>()[..n]),
        other => unreachable!("a floating-point kernel has a result of {other}"),
    }
    Ok(res)
}

/// Gives the elements of a new, row-major result of integers of up to 32 bits to `fill`, and stores the bits of them that it holds.
///
/// # Errors
/// `OutOfMemory` where there is no room for them, and what `fill` gives.
pub(crate) fn try_fill_int<R>(result: &Tensor, fill: impl FnOnce(&mut [i32]) -> Result<R>) -> Result<R> {
    let (mut guard, n) = (written(result), result.numel());
    if result.dtype() == DType::Int32 {
        return fill(&mut guard.elements_mut::<i32>()[..n]);
    }
    let mut wide = filled(0, n)?;
    let res = fill(&mut wide)?;
    match result.dtype() {
        DType::Int8 => guard.elements_mut::<i8>().iter_mut().zip(wide).for_each(|(to, it)| *to = it as i8),
        DType::UInt8 => guard.elements_mut::<u8>().iter_mut().zip(wide).for_each(|(to, it)| *to = it as u8),
        DType::Int16 => guard.elements_mut::<i16>().iter_mut().zip(wide).for_each(|(to, it)| *to = it as i16),
        other => unreachable!("a kernel of integers has a result of {other}"),
    }
    Ok(res)
}
