//! Access to the elements of tensors as plain slices, in their own dtype and in row-major order. Operands by their strides
//! and in another dtype are [`strided`](super::strided)'s.

use std::marker::PhantomData;
use std::ops::Deref;
use tracefx_core::{Element, Result, StorageRead, StorageWrite, Tensor};

/// The elements of a tensor in row-major order: the tensor itself where it is contiguous, else a copy.
pub(crate) struct Dense(Tensor);

impl Dense {
    pub(crate) fn new(tensor: &Tensor) -> Result<Self> {
        Ok(Dense(tensor.contiguous()?))
    }

    /// The elements.
    ///
    /// # Panics
    /// When `T` is not the element type of the tensor.
    pub(crate) fn read<T: Element>(&self) -> DenseRead<'_, T> {
        assert_eq!(T::DTYPE, self.0.dtype(), "a kernel reads a tensor as what it is");
        self.elements()
    }

    /// The elements as unsigned bytes.
    ///
    /// # Panics
    /// When they are larger.
    pub(crate) fn bytes(&self) -> DenseRead<'_, u8> {
        assert_eq!(1, self.0.dtype().size(), "elements are read in their own width");
        self.elements()
    }

    fn elements<T: Element>(&self) -> DenseRead<'_, T> {
        let n = self.0.numel();
        // An empty tensor may have any offset.
        let offset = if n == 0 { 0 } else { self.0.offset() };
        DenseRead { guard: self.0.storage().read(), offset, n, element: PhantomData }
    }
}

/// The elements of a [`Dense`] while they are being read.
pub(crate) struct DenseRead<'a, T> {
    guard: StorageRead<'a>,
    offset: usize,
    n: usize,
    element: PhantomData<T>,
}

impl<T: Element> Deref for DenseRead<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.guard.elements::<T>()[self.offset..self.offset + self.n]
    }
}

/// Gives the elements of a new, row-major result to `fill`. It begins its storage, which may be longer: a plan gives several
/// results the same memory, one after the other.
///
/// # Panics
/// When `T` is not the element type of the tensor.
pub(crate) fn fill<T: Element, R>(result: &Tensor, fill: impl FnOnce(&mut [T]) -> R) -> R {
    assert_eq!(T::DTYPE, result.dtype(), "a kernel fills a tensor as what it is");
    fill(&mut written(result).elements_mut::<T>()[..result.numel()])
}

/// Gives all elements of the storage of a tensor to `change`: those of the tensor lie there by its strides.
///
/// # Panics
/// When `T` is not the element type of the tensor.
pub(crate) fn change<T: Element, R>(tensor: &Tensor, change: impl FnOnce(&mut [T]) -> R) -> R {
    assert_eq!(T::DTYPE, tensor.dtype(), "a kernel changes a tensor as what it is");
    change(written(tensor).elements_mut::<T>())
}

/// As [`change`], as unsigned integers of their width.
pub(crate) fn change_bits<T: bytemuck::Pod, R>(tensor: &Tensor, change: impl FnOnce(&mut [T]) -> R) -> R {
    assert_eq!(size_of::<T>(), tensor.dtype().size(), "elements are moved in their own width");
    let mut guard = written(tensor);
    let bytes = guard.bytes_mut();
    let n = bytes.len() / size_of::<T>();
    change(bytemuck::cast_slice_mut(&mut bytes[..n * size_of::<T>()]))
}

/// Write access to a new result, or to a tensor that is updated, whose bytes no lazy clone looks at.
pub(crate) fn written(result: &Tensor) -> StorageWrite<'_> {
    result.storage().write().expect("a new result has memory of its own")
}

/// Gives the elements of a new, row-major result to `fill`, as unsigned integers of their width.
pub(crate) fn fill_bits<T: bytemuck::Pod, R>(result: &Tensor, fill: impl FnOnce(&mut [T]) -> R) -> R {
    assert_eq!(size_of::<T>(), result.dtype().size(), "elements are moved in their own width");
    fill(bytemuck::cast_slice_mut(&mut written(result).bytes_mut()[..result.numel() * size_of::<T>()]))
}
