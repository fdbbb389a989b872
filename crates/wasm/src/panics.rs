//! Where a panic happened. The exception that JavaScript catches carries the message alone.

use std::cell::RefCell;
use wasm_bindgen::prelude::wasm_bindgen;

thread_local! {
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs once for each instance of the module, before anything else.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|it| format!("{}:{}:{}", it.file(), it.line(), it.column()));
        // A panic while the place of another one is being written keeps the place of that one.
        PLACE.with(|it| {
            if let Ok(mut it) = it.try_borrow_mut() {
                *it = place;
            }
        });
    }));
    // There is no other source of chance in WebAssembly.
    crate::seed();
}

/// The file, line and column of the last panic, once.
#[wasm_bindgen]
pub fn take_panic_place() -> Option<String> {
    PLACE.with(|it| it.take())
}
