//! The WebAssembly surface of the engine: bytes and words in, bytes and words out, handles.
//!
//! Nothing is computed here. What is refused crosses as the JSON of its diagnostic (see [`refusal`]), thrown as a
//! string; a panic crosses as an exception, with its place to be asked for afterwards (see [`panics`]). TypeScript turns
//! both into classes with a stable code. Names keep their Rust spelling on both sides: the glue is private to the package.

mod archive;
mod checkpoint;
#[cfg(any(target_arch = "wasm32", test))]
mod growth;
mod handles;
mod library;
mod opening;
mod operator;
mod panics;
mod parted;
mod passes;
mod program;
mod random;
mod refusal;
mod shapes;
mod storages;
mod tensor;
mod threads;
mod values;

pub use archive::Archive;
pub use checkpoint::read_checkpoint;
pub use library::{Host, define_composite_operator, define_operator, remove_operator, set_host};
pub use opening::Opening;
pub use operator::{call_operator, differentiate_operator, infer_operator, operator_tolerance, resolve_operator};
pub use panics::take_panic_place;
pub use parted::PlanParts;
pub use passes::{PassReply, PassRequest};
pub use program::{Program, ProgramRunner, RunWatch, default_decompositions, write_outputs};
pub use random::{initial_seed, manual_seed, rng_state, seed, set_rng_state};
pub use refusal::Refusal;
pub use shapes::ShapeSession;
pub use storages::Storages;
pub use tensor::{free_tensor, new_tensor, read_tensor, resize_tensor, storage_length};
pub use threads::{Threads, num_threads, run_worker, set_num_threads, set_threads, worker_stopped};
pub use tracefx_wasm_parts::{Parts, load_part, set_parts, use_relaxed_simd};

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tracefx_core::{Code, Diagnostic};
use wasm_bindgen::prelude::wasm_bindgen;

/// The version of the engine.
///
/// ```
/// assert_eq!(tracefx_wasm::engine_version(), env!("CARGO_PKG_VERSION"));
/// ```
#[wasm_bindgen]
pub fn engine_version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Fails in the way that is asked for, so that the package can test what arrives in JavaScript: `refuse`, `panic`, or
/// `trap`, which no handler survives; `panic`, `trap` and `throw` also after `thread: `, on another thread.
///
/// # Errors
///
/// Always, unless it does not return at all.
///
/// # Panics
///
/// When it is asked to.
#[wasm_bindgen]
pub fn __test_failure(kind: &str) -> Result<(), Refusal> {
    match kind {
        "refuse" => Err(Diagnostic::new(Code::ShapeMismatch, "mat1 is 2x3 but mat2 is 4x5")
            .node("mm_1")
            .op("aten.mm.default")
            .note("mat1 is %x")
            .help("transpose mat2")
            .into()),
        "panic" => panic!("asked to panic"),
        "trap" => std::process::abort(),
        "throw" => wasm_bindgen::throw_str("asked to throw"),
        other => match other.strip_prefix("thread: ") {
            Some(kind) => fail_elsewhere(kind),
            None => Err(Diagnostic::new(Code::InvalidOption, format!("no failure is called {other}")).into()),
        },
    }
}

/// Fails on another thread than this one, which looks for it for a fifth of a second.
fn fail_elsewhere(kind: &str) -> Result<(), Refusal> {
    const LOOKS: usize = 200;
    let (here, has_come) = (thread::current().id(), AtomicBool::new(false));
    tracefx_cpu::parallel_for(2, &|_| {
        if thread::current().id() != here {
            has_come.store(true, Ordering::Relaxed);
            let _ = __test_failure(kind);
        }
        for _ in 0..LOOKS {
            if !has_come.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
    Err(Diagnostic::new(Code::InvalidOption, "no other thread has come").into())
}
