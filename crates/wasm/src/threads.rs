//! Threads of kernels, which the host has where memory can be shared.
//!
//! Each is an instance of the same module over the same memory, in a worker of the host, and calls [`run_worker`]. It computes parts of what
//! the instance of [`set_threads`] runs, and nothing else.

use std::cell::RefCell;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// What starts workers.
    pub type Threads;

    /// Has a worker call [`run_worker`] with this number, sooner or later; gives whether it will.
    #[wasm_bindgen(method)]
    fn start(this: &Threads, worker: usize) -> bool;
}

thread_local! {
    static THREADS: RefCell<Option<Threads>> = const { RefCell::new(None) };
}

/// Says what starts workers, which nothing does before.
#[wasm_bindgen]
pub fn set_threads(threads: Threads) {
    THREADS.set(Some(threads));
    // Workers that are wanted by others than the instance of this call are not started.
    tracefx_cpu::start_workers_by(|worker| THREADS.with_borrow(|it| it.as_ref().is_some_and(|it| it.start(worker))));
}

/// How many threads kernels use at most.
#[wasm_bindgen]
pub fn num_threads() -> usize {
    tracefx_cpu::get_num_threads()
}

/// Sets how many threads kernels use at most, one where it is zero.
#[wasm_bindgen]
pub fn set_num_threads(n: usize) {
    tracefx_cpu::set_num_threads(n.max(1)).expect("one thread is enough");
}

/// What a worker does. It does not return, and throws where it stops.
#[wasm_bindgen]
pub fn run_worker(worker: usize) {
    tracefx_cpu::run_worker(worker);
}

/// The address of a number of 32 bits, which the host sets to one when a worker stopped.
#[wasm_bindgen]
pub fn worker_stopped() -> usize {
    std::ptr::from_ref(tracefx_cpu::worker_stopped()).addr()
}
