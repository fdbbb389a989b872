//! Tensors in the engine's memory.

use crate::{Refusal, handles, values};
use tracefx_core::{Code, DType, Diagnostic, Storage, Tensor, contiguous_strides};
use wasm_bindgen::prelude::wasm_bindgen;

/// A row-major tensor with a copy of these bytes, as words (see [`values`]). JavaScript frees its handle.
///
/// # Errors
/// `ViewOutOfBounds` where the bytes are fewer than the sizes say.
#[wasm_bindgen]
pub fn new_tensor(dtype: u32, sizes: &[u32], bytes: &[u8]) -> Result<Vec<u32>, Refusal> {
    let sizes: Vec<usize> = sizes.iter().map(|&it| it as usize).collect();
    let storage = Storage::from_bytes(bytes)?;
    let tensor = Tensor::view_of(storage, dtype_of(dtype)?, &sizes, &contiguous_strides(&sizes), 0)?;
    Ok(values::described(tensor))
}

/// Gives a tensor's handle back.
#[wasm_bindgen]
pub fn free_tensor(handle: u32) {
    handles::free(handle);
}

/// A row-major tensor of other sizes over the same memory, which grows where it is too short, as words.
///
/// # Errors
/// `OutOfMemory` where it cannot grow.
#[wasm_bindgen]
pub fn resize_tensor(handle: u32, sizes: &[u32]) -> Result<Vec<u32>, Refusal> {
    let sizes: Vec<usize> = sizes.iter().map(|&it| it as usize).collect();
    Ok(values::described(handles::get(handle)?.resized(&sizes)?))
}

/// The elements of a tensor in row-major order, as bytes.
///
/// # Errors
/// `OutOfMemory` where a copy cannot be allocated.
#[wasm_bindgen]
pub fn read_tensor(handle: u32) -> Result<Vec<u8>, Refusal> {
    Ok(handles::get(handle)?.to_bytes()?)
}

/// The bytes of the storage that a tensor looks at.
///
/// # Errors
/// `Internal` where no tensor has this handle.
#[wasm_bindgen]
pub fn storage_length(handle: u32) -> Result<usize, Refusal> {
    Ok(handles::get(handle)?.storage().len())
}

pub(crate) fn dtype_of(id: u32) -> Result<DType, Refusal> {
    let found = DType::ALL.get(id as usize).copied();
    found.ok_or_else(|| Diagnostic::new(Code::Internal, format!("no dtype has the number {id}")).into())
}
