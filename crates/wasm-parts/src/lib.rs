//! Deferred parts of a module of WebAssembly, which the host instantiates when one of their functions is called first.
//!
//! `xtask/split` takes them out of the compiled module, and has [`load_part`] called where one is missing; before any call of a module
//! JavaScript says by [`set_parts`] what instantiates them. This crate is a part of every module that is split.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// What instantiates parts.
    pub type Parts;

    /// Instantiates a part before it returns, or throws.
    #[wasm_bindgen(method)]
    fn load(this: &Parts, part: u32);
}

thread_local! {
    static PARTS: RefCell<Option<Parts>> = const { RefCell::new(None) };
}

/// Says what instantiates the parts of this instance.
#[wasm_bindgen]
pub fn set_parts(parts: Parts) {
    PARTS.set(Some(parts));
}

/// Has a part instantiated.
///
/// # Panics
/// Before [`set_parts`] was called.
#[wasm_bindgen]
pub fn load_part(part: u32) {
    PARTS.with_borrow(|it| it.as_ref().expect("set_parts is called before all else").load(part));
}
