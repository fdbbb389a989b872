//! Tensors in the engine's memory by number, so that a whole call crosses as numbers.

use crate::Refusal;
use std::cell::RefCell;
use tracefx_core::{Code, Diagnostic, Tensor};

/// Tensors that JavaScript holds, and the places that are free.
#[derive(Default)]
struct Handles {
    tensors: Vec<Option<Tensor>>,
    free: Vec<u32>,
}

thread_local! {
    static HANDLES: RefCell<Handles> = RefCell::default();
}

/// A handle of a tensor. JavaScript gives it back with [`free`].
pub(crate) fn insert(tensor: Tensor) -> u32 {
    HANDLES.with_borrow_mut(|it| match it.free.pop() {
        Some(handle) => {
            it.tensors[handle as usize] = Some(tensor);
            handle
        }
        None => {
            it.tensors.push(Some(tensor));
            // An address has 32 bits here, so there are not more tensors.
            it.tensors.len() as u32 - 1
        }
    })
}

/// The tensor of a handle.
pub(crate) fn get(handle: u32) -> Result<Tensor, Refusal> {
    HANDLES.with_borrow(|it| it.tensors.get(handle as usize).and_then(Option::clone)).ok_or_else(|| {
        Diagnostic::new(Code::Internal, format!("no tensor has the handle {handle}"))
            .help("this is a bug of tracefx, please report it")
            .into()
    })
}

/// Gives a handle back; its number is used again.
pub(crate) fn free(handle: u32) {
    let tensor = HANDLES.with_borrow_mut(|it| {
        let tensor = it.tensors.get_mut(handle as usize).and_then(Option::take);
        it.free.extend(tensor.is_some().then_some(handle));
        tensor
    });
    drop(tensor);
}
