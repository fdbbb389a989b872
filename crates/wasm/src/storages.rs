//! The memory of tensors, beside a program whose bytes are without it.

use crate::tensor::dtype_of;
use crate::{Refusal, handles, values};
use tracefx_core::{Code, Diagnostic, Storage, Tensor};
use wasm_bindgen::prelude::wasm_bindgen;

/// Storages in the order of a program's outline.
#[wasm_bindgen]
#[derive(Default)]
pub struct Storages(pub(crate) Vec<Storage>);

#[wasm_bindgen]
impl Storages {
    /// No storages.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Storages {
        Storages::default()
    }

    /// Appends the storage that this tensor looks at; it is shared, not copied.
    ///
    /// # Errors
    /// `Internal` where no tensor has this handle.
    pub fn push_tensor(&mut self, handle: u32) -> Result<(), Refusal> {
        self.0.push(handles::get(handle)?.storage().clone());
        Ok(())
    }

    /// Appends a storage with a copy of these bytes.
    ///
    /// # Errors
    /// `OutOfMemory` where a copy cannot be allocated.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.0.push(Storage::from_bytes(bytes)?);
        Ok(())
    }

    /// A tensor that looks at the storage of this position, as words; it shares the memory.
    ///
    /// # Errors
    /// `IndexOutOfRange` where there is no such storage, `ViewOutOfBounds` where the view leaves it.
    pub fn view(
        &self,
        index: usize,
        dtype: u32,
        sizes: &[u32],
        strides: &[u32],
        offset: usize,
    ) -> Result<Vec<u32>, Refusal> {
        let storage = self.0.get(index).ok_or_else(|| {
            Diagnostic::new(Code::IndexOutOfRange, format!("there is no storage {index}: there are {}", self.0.len()))
        })?;
        let dims = |it: &[u32]| it.iter().map(|&it| it as usize).collect::<Vec<_>>();
        let view = Tensor::view_of(storage.clone(), dtype_of(dtype)?, &dims(sizes), &dims(strides), offset)?;
        Ok(values::described(view))
    }
}
