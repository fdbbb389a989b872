//! Where a panic happened. The exception that JavaScript catches carries the message alone.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use wasm_bindgen::prelude::wasm_bindgen;

static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Whether an instance over this memory has started.
static IS_STARTED: AtomicBool = AtomicBool::new(false);

/// Runs in each instance of the module before anything else. Those of threads have nothing to do.
#[wasm_bindgen(start)]
fn start() {
    if IS_STARTED.swap(true, Ordering::Relaxed) {
        return;
    }
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|it| format!("{}:{}:{}", it.file(), it.line(), it.column()));
        // A panic while the place of another one is being written keeps the place of that one.
        if let Ok(mut it) = PLACE.try_lock() {
            *it = place;
        }
    }));
    // There is no other source of chance in WebAssembly.
    crate::seed();
}

/// The file, line and column of the last panic, once.
#[wasm_bindgen]
pub fn take_panic_place() -> Option<String> {
    PLACE.lock().ok().and_then(|mut it| it.take())
}
