//! Tensors: strided views of storages. Views are made here; whatever computes elements is a kernel's.

use crate::{
    Code, DType, Diagnostic, Dims, Element, Region, Result, Scalar, Storage, allocate, contiguous_strides,
    copy_strided, has_contiguous_strides, numel, storage_span,
};
use std::fmt;

/// A strided view of a [`Storage`]: dtype, sizes, strides and offset, the last three in elements.
///
/// A clone is cheap and shares the storage. It is an invariant that every element of a tensor lies inside its storage;
/// the constructors check it, so readers need not.
#[derive(Clone)]
pub struct Tensor {
    storage: Storage,
    dtype: DType,
    sizes: Dims,
    strides: Dims,
    offset: usize,
}

impl Tensor {
    /// A row-major tensor of zeros.
    ///
    /// # Errors
    /// `OutOfMemory` when the sizes cannot be allocated.
    pub fn zeros(dtype: DType, sizes: &[usize]) -> Result<Self> {
        Ok(Self::row_major(Storage::zeroed(row_major_len(dtype, sizes)?)?, dtype, sizes))
    }

    /// A row-major tensor of elements that hold anything, for who writes all of them.
    ///
    /// # Errors
    /// `OutOfMemory` when the sizes cannot be allocated.
    pub fn unfilled(dtype: DType, sizes: &[usize]) -> Result<Self> {
        Ok(Self::row_major(Storage::unfilled(row_major_len(dtype, sizes)?)?, dtype, sizes))
    }

    fn row_major(storage: Storage, dtype: DType, sizes: &[usize]) -> Self {
        Tensor { storage, dtype, sizes: sizes.into(), strides: contiguous_strides(sizes), offset: 0 }
    }

    /// A row-major tensor of one value, converted to the dtype as PyTorch converts.
    ///
    /// # Errors
    /// `OutOfMemory` when the sizes cannot be allocated, `NotImplemented` for the 8-bit floats and complex32.
    pub fn full(dtype: DType, sizes: &[usize], value: Scalar) -> Result<Self> {
        let res = Self::zeros(dtype, sizes)?;
        crate::with_element!(dtype, T => {
            res.storage.write()?.elements_mut::<T>().fill(T::from_scalar(value));
            Ok(res)
        }, else Err(Diagnostic::unsupported_dtype(dtype, "full")))
    }

    /// A row-major tensor with a copy of these elements.
    ///
    /// # Errors
    /// `ShapeMismatch` when the sizes do not hold exactly these elements.
    pub fn from_slice<T: Element>(data: &[T], sizes: &[usize]) -> Result<Self> {
        if numel(sizes) != Some(data.len()) {
            return Err(Diagnostic::new(
                Code::ShapeMismatch,
                format!("sizes {sizes:?} do not hold {} elements", data.len()),
            ));
        }
        let res = Self::zeros(T::DTYPE, sizes)?;
        res.storage.write()?.elements_mut::<T>().copy_from_slice(data);
        Ok(res)
    }

    /// A view of a storage.
    ///
    /// # Errors
    /// `ViewOutOfBounds` when an element of the view would lie outside the storage.
    pub fn view_of(storage: Storage, dtype: DType, sizes: &[usize], strides: &[usize], offset: usize) -> Result<Self> {
        let out_of_bounds = |what: String| {
            Err(Diagnostic::new(Code::ViewOutOfBounds, what)
                .help("the file is damaged or was not written by PyTorch; export the program again"))
        };
        if sizes.len() != strides.len() {
            return out_of_bounds(format!("{} sizes but {} strides", sizes.len(), strides.len()));
        }
        let fits = storage_span(sizes, strides, offset)
            .and_then(|span| span.checked_mul(dtype.size() as u64))
            .is_some_and(|span| span <= storage.len() as u64);
        if !fits || numel(sizes).is_none() {
            return out_of_bounds(format!(
                "a {} view of sizes {sizes:?}, strides {strides:?} and offset {offset} leaves its storage of {} bytes",
                dtype.name(),
                storage.len()
            ));
        }
        Ok(Tensor { storage, dtype, sizes: sizes.into(), strides: strides.into(), offset })
    }

    /// Another view of this tensor's storage, with the same dtype.
    ///
    /// # Errors
    /// `ViewOutOfBounds` when an element of the view would lie outside the storage.
    pub fn as_strided(&self, sizes: &[usize], strides: &[usize], offset: usize) -> Result<Self> {
        Self::view_of(self.storage.clone(), self.dtype, sizes, strides, offset)
    }

    /// A row-major view of other sizes from the same first element on; the storage grows where it is too short.
    ///
    /// # Errors
    /// `OutOfMemory` when the storage cannot grow.
    pub fn resized(&self, sizes: &[usize]) -> Result<Self> {
        let strides = contiguous_strides(sizes);
        let len = storage_span(sizes, &strides, self.offset)
            .and_then(|it| usize::try_from(it).ok()?.checked_mul(self.dtype.size()))
            .filter(|&len| len <= isize::MAX as usize);
        self.storage.grow(len.ok_or_else(|| Diagnostic::out_of_memory(usize::MAX))?)?;
        self.as_strided(sizes, &strides, self.offset)
    }

    /// The same elements with the dimensions in another order.
    ///
    /// # Panics
    /// When `order` is not a permutation of the dimensions.
    pub fn permuted(&self, order: &[usize]) -> Self {
        assert_eq!(order.len(), self.rank(), "a permutation names every dimension once");
        let sizes = order.iter().map(|&dim| self.sizes[dim]).collect();
        let strides = order.iter().map(|&dim| self.strides[dim]).collect();
        Tensor { sizes, strides, ..self.clone() }
    }

    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes, in elements.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// The position of the first element in the storage, in elements.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The storage that this tensor looks at.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Whether both show the same elements of one storage in the same order.
    pub fn is_same_view(&self, other: &Tensor) -> bool {
        let lies = |it: &Tensor| (it.dtype, it.offset);
        self.storage.is_same(&other.storage)
            && lies(self) == lies(other)
            && self.sizes == other.sizes
            && self.strides == other.strides
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        // Of sizes that have an end, as every constructor saw; those of an empty tensor may be as large as they like.
        numel(&self.sizes).unwrap_or(usize::MAX)
    }

    /// Whether the elements lie row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        has_contiguous_strides(&self.sizes, &self.strides)
    }

    /// This tensor if it is contiguous, else a row-major copy.
    ///
    /// # Errors
    /// `OutOfMemory` when the copy cannot be allocated.
    pub fn contiguous(&self) -> Result<Self> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.compact_copy() }
    }

    /// A row-major copy with a storage of its own.
    ///
    /// # Errors
    /// `OutOfMemory` when the copy cannot be allocated.
    pub fn compact_copy(&self) -> Result<Self> {
        let res = Self::zeros(self.dtype, &self.sizes)?;
        let (source, mut target) = (self.storage.read(), res.storage.write()?);
        let from = Region { bytes: source.bytes(), offset: self.offset, strides: &self.strides };
        let to = Region { bytes: target.bytes_mut(), offset: 0, strides: &res.strides };
        copy_strided(self.dtype.size(), &self.sizes, from, to);
        drop(target);
        Ok(res)
    }

    /// The storage positions of the elements in row-major order, in elements.
    pub fn offsets(&self) -> impl Iterator<Item = usize> + '_ {
        let mut index: Dims = smallvec::smallvec![0; self.rank()];
        let mut at = self.offset;
        (0..self.numel()).map(move |_| {
            let res = at;
            for dim in (0..index.len()).rev() {
                index[dim] += 1;
                at += self.strides[dim];
                if index[dim] < self.sizes[dim] {
                    break;
                }
                at -= self.strides[dim] * self.sizes[dim];
                index[dim] = 0;
            }
            res
        })
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// `DTypeMismatch` when `T` is not the element type of this tensor, `OutOfMemory` when they cannot be allocated.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype {
            return Err(Diagnostic::new(
                Code::DTypeMismatch,
                format!("a {} tensor was read as {}", self.dtype.name(), T::DTYPE.name()),
            ));
        }
        let compact = self.contiguous()?;
        let guard = compact.storage.read();
        let n = compact.numel();
        Ok(if n == 0 { Vec::new() } else { allocate::copied(&guard.elements::<T>()[compact.offset..][..n])? })
    }

    /// The elements in row-major order, as little-endian bytes.
    ///
    /// # Errors
    /// `OutOfMemory` when a row-major copy cannot be allocated.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let compact = self.contiguous()?;
        let guard = compact.storage.read();
        let (n, size) = (compact.numel(), self.dtype.size());
        Ok(if n == 0 { Vec::new() } else { allocate::copied(&guard.bytes()[compact.offset * size..][..n * size])? })
    }

    /// The only element, as a scalar.
    ///
    /// # Errors
    /// `ShapeMismatch` unless there is exactly one element; `NotImplemented` for the 8-bit floats and complex32.
    pub fn item(&self) -> Result<Scalar> {
        if self.numel() != 1 {
            return Err(Diagnostic::new(
                Code::ShapeMismatch,
                format!("a Tensor with {} elements cannot be converted to Scalar", self.numel()),
            ));
        }
        if self.dtype.is_float8() {
            let bits = self.storage.read().elements::<u8>()[self.offset];
            return Ok(Scalar::Float(f64::from(crate::float8_to_f32(self.dtype, bits))));
        }
        crate::with_element!(self.dtype, T => Ok(self.storage.read().elements::<T>()[self.offset].to_scalar()),
            else Err(Diagnostic::unsupported_dtype(self.dtype, "item")))
    }
}

/// The bytes of a row-major tensor.
fn row_major_len(dtype: DType, sizes: &[usize]) -> Result<usize> {
    let len = numel(sizes).and_then(|n| n.checked_mul(dtype.size())).filter(|&len| len <= isize::MAX as usize);
    len.ok_or_else(|| Diagnostic::out_of_memory(usize::MAX))
}

/// Runs a block with `T` bound to the element type of a dtype; the `else` block runs for dtypes without arithmetic
/// (8-bit floats and complex32).
///
/// ```
/// use tracefx_core::{DType, Element, with_element};
/// let size = with_element!(DType::Int16, T => size_of::<T>(), else 0);
/// assert_eq!(size, 2);
/// ```
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            $crate::DType::Bool => {
                type $T = $crate::Bool8;
                $body
            }
            $crate::DType::UInt8 => {
                type $T = u8;
                $body
            }
            $crate::DType::Int8 => {
                type $T = i8;
                $body
            }
            $crate::DType::UInt16 => {
                type $T = u16;
                $body
            }
            $crate::DType::Int16 => {
                type $T = i16;
                $body
            }
            $crate::DType::UInt32 => {
                type $T = u32;
                $body
            }
            $crate::DType::Int32 => {
                type $T = i32;
                $body
            }
            $crate::DType::UInt64 => {
                type $T = u64;
                $body
            }
            $crate::DType::Int64 => {
                type $T = i64;
                $body
            }
            $crate::DType::Float16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DType::BFloat16 => {
                type $T = $crate::bf16;
                $body
            }
            $crate::DType::Float32 => {
                type $T = f32;
                $body
            }
            $crate::DType::Float64 => {
                type $T = f64;
                $body
            }
            $crate::DType::Complex64 => {
                type $T = [f32; 2];
                $body
            }
            $crate::DType::Complex128 => {
                type $T = [f64; 2];
                $body
            }
            $crate::DType::Float8E4M3FN
            | $crate::DType::Float8E5M2
            | $crate::DType::Float8E4M3FNUZ
            | $crate::DType::Float8E5M2FNUZ
            | $crate::DType::Float8E8M0FNU
            | $crate::DType::Complex32 => $other,
        }
    };
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Tensor({}{:?}, strides {:?}, offset {})",
            self.dtype.short_name(),
            &self.sizes[..],
            &self.strides[..],
            self.offset
        )
    }
}
