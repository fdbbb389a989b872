//! Tensors, dtypes, scalars and diagnostics: what every other tracefx crate stands on.
//!
//! This crate knows nothing of graphs or operators. A [`Tensor`] is a strided view of a shared [`Storage`], exactly as
//! in PyTorch: two tensors may look at the same bytes, and writing through one is seen by the other.
//!
//! ```
//! use tracefx_core::{DType, Tensor};
//!
//! let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
//! let xt = x.permuted(&[1, 0]);
//! assert_eq!((xt.dtype(), xt.sizes(), xt.strides()), (DType::Float32, &[3, 2][..], &[1, 3][..]));
//! assert_eq!(xt.to_vec::<f32>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
//! ```
#![forbid(unsafe_code)]

pub mod allocate;
mod copy;
mod device;
mod diagnostic;
mod dtype;
mod element;
mod float8;
mod generator;
mod half;
mod recycle;
mod scalar;
mod storage;
mod storage_writer;
mod strides;
mod tensor;

pub use ::half::{bf16, f16};
pub use copy::{Region, copy_strided};
pub use device::{Device, Layout, MemoryFormat};
pub use diagnostic::{Code, Diagnostic, Result};
pub use dtype::{DType, DTypeKind, DTypes};
pub use element::{Bool8, Element};
pub use float8::{float8_from_f32, float8_to_f32};
pub use generator::{Generator, with_default_generator};
pub use scalar::{Complex64, Scalar, python_float};
pub use storage::{Storage, StorageRead, StorageWrite};
pub use storage_writer::StorageWriter;
pub use strides::{Dims, contiguous_strides, has_contiguous_strides, numel, storage_span};
pub use tensor::Tensor;
