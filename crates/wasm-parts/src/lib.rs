//! Deferred parts of a module of WebAssembly, which the host instantiates when one of their functions is called first.
//!
//! `xtask/split` takes them out of the compiled module, and has [`load_part`] called where one is missing; before any call of a module
//! JavaScript says by [`set_parts`] what instantiates them. This crate is a part of every module that is split.
#![forbid(unsafe_code)]

#[cfg(target_family = "wasm")]
mod relaxed;

use std::cell::Cell;
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
    /// What does not move: a part that cannot be instantiated throws through the frames of who asked, which let go of nothing.
    static PARTS: Cell<Option<&'static Parts>> = const { Cell::new(None) };
}

/// Says what instantiates the parts of this instance.
#[wasm_bindgen]
pub fn set_parts(parts: Parts) {
    PARTS.set(Some(Box::leak(Box::new(parts))));
}

/// Has a part instantiated.
///
/// # Panics
/// Before [`set_parts`] was called.
#[wasm_bindgen]
pub fn load_part(part: u32) {
    PARTS.get().expect("set_parts is called before all else").load(part);
}

/// Says that the host has relaxed SIMD and the part whose functions have it: plans that are compiled from now on use them where their
/// precision is fast.
#[wasm_bindgen]
pub fn use_relaxed_simd() {
    #[cfg(target_family = "wasm")]
    tracefx_cpu::use_relaxed_simd(relaxed::add_products);
}
