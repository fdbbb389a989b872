//! Arrays of `ndarray` as tensors, and back.

use ndarray::{Array1, Array2, Array3, Axis, array};
use tracefx::prelude::*;

#[test]
fn an_array_keeps_its_memory_and_its_strides() {
    let array = Array2::from_shape_fn((64, 3), |(row, column)| (row * 3 + column) as f32).reversed_axes();
    let (start, is_aligned) = (array.as_ptr().addr(), array.as_ptr().addr().is_multiple_of(16));
    let expected: Vec<f32> = array.iter().copied().collect();
    let tensor = Tensor::from_ndarray(array).unwrap();
    assert_eq!((tensor.sizes(), tensor.strides()), (&[3, 64][..], &[1, 3][..]));
    assert_eq!(tensor.to_vec::<f32>().unwrap(), expected);
    assert_eq!(tensor.storage().read().bytes().as_ptr().addr() == start, is_aligned);
}

#[test]
fn slices_and_reversed_axes_are_the_same_elements() {
    let mut array = Array3::from_shape_fn((4, 5, 6), |(a, b, c)| (a * 100 + b * 10 + c) as i64);
    array.slice_collapse(ndarray::s![1..3, ..;2, 2..]);
    let expected = array.clone().into_dyn();
    assert_eq!(Tensor::from_ndarray(array.clone()).unwrap().to_ndarray::<i64>().unwrap(), expected);
    array.invert_axis(Axis(1));
    let expected = array.clone().into_dyn();
    assert_eq!(Tensor::from_ndarray(array).unwrap().to_ndarray::<i64>().unwrap(), expected);
}

#[test]
fn empty_arrays_and_other_dtypes() {
    let empty = Tensor::from_ndarray(Array1::<f32>::zeros(0)).unwrap();
    assert_eq!(empty.to_ndarray::<f32>().unwrap().shape(), [0]);
    let refused = Tensor::from_ndarray(array![1i32]).unwrap().to_ndarray::<f32>().unwrap_err();
    assert_eq!(refused.code(), Code::DTypeMismatch);
}
