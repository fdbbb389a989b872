//! What modules of WebAssembly ask of their host: deferred parts, and with the feature `threads` threads.
#![forbid(unsafe_code)]

mod parts;
#[cfg(feature = "threads")]
mod threads;

pub use parts::{Parts, load_part, set_parts};
#[cfg(feature = "threads")]
pub use threads::{Threads, num_threads, run_worker, set_num_threads, set_threads, worker_stopped};
