//! Tensors from and to arrays of `ndarray`.

use ndarray::{Array, ArrayD, Dimension, IxDyn};
use tracefx_core::{Code, Diagnostic, Element, Result, Storage, Tensor};

/// Conversions of a [`Tensor`] from and to arrays of `ndarray`.
///
/// ```
/// use ndarray::{Array2, array};
/// use tracefx::prelude::*;
///
/// let x = Tensor::from_ndarray(array![[1.0f32, 2.0], [3.0, 4.0]])?;
/// assert_eq!(x.sizes(), [2, 2]);
/// let back: Array2<f32> = x.to_ndarray::<f32>()?.into_dimensionality().expect("two dimensions");
/// assert_eq!(back, array![[1.0, 2.0], [3.0, 4.0]]);
/// # Ok::<(), Diagnostic>(())
/// ```
pub trait NdarrayTensor: Sized {
    /// The tensor of an array, which keeps its memory and strides. An array that runs backwards along an axis is copied.
    ///
    /// # Errors
    /// `OutOfMemory` when there is no room for that copy.
    fn from_ndarray<T: Element, D: Dimension>(array: Array<T, D>) -> Result<Self>;

    /// A row-major array with a copy of the elements.
    ///
    /// # Errors
    /// `DTypeMismatch` when the tensor has elements of another type, `OutOfMemory` when there is no room for the copy.
    fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>>;
}

/// Elements that a storage reads as bytes.
struct Elements<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Elements<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl NdarrayTensor for Tensor {
    fn from_ndarray<T: Element, D: Dimension>(array: Array<T, D>) -> Result<Self> {
        let strides: Option<Vec<usize>> = array.strides().iter().map(|&it| usize::try_from(it).ok()).collect();
        let sizes = array.shape().to_vec();
        let Some(strides) = strides else {
            return Tensor::from_slice(&array.iter().copied().collect::<Vec<T>>(), &sizes);
        };
        let (elements, offset) = array.into_raw_vec_and_offset();
        Tensor::view_of(
            Storage::from_owner(Elements(elements))?,
            T::DTYPE,
            &sizes,
            &strides,
            offset.unwrap_or_default(),
        )
    }

    fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        ArrayD::from_shape_vec(IxDyn(self.sizes()), self.to_vec()?)
            .map_err(|problem| Diagnostic::new(Code::InvalidArgument, format!("the tensor is no array: {problem}")))
    }
}
