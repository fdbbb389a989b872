//! Splits a module of WebAssembly: into the primary module, which is instantiated, and deferred ones with functions that are rarely
//! called, each of which is instantiated over the same memory and tables when one of its functions is called first. (The scheme is
//! that of Binaryen's `wasm-split`, which its npm package does not have.)
//!
//! Which functions go where is decided by whoever calls [`split`]; [`instrument`] makes a module that tells which functions a run
//! called. Whatever is chosen, the modules do what the one did:
//!
//! - A deferred function that another part calls, or that is exported or in a table, is a stub in the primary module, which calls the
//!   export [`LOADER`] unless the part is there, and then the function by way of a slot of the table.
//! - Deferred modules import from [`PRIMARY`] what they share with it: memory, tables, globals, tags, and the functions that they
//!   call. When one is instantiated its functions take their places in the table.
//!
//! Functions with relaxed SIMD are a part of their own, so that hosts without it load the others ([`relaxed_functions`]).
#![forbid(unsafe_code)]

mod callees;
mod encoding;
mod instrument;
mod memory;
mod relaxed;
mod source;
mod split;

pub use callees::{with_roots, with_small_callees};
pub use encoding::NoFunction;
pub use instrument::{FLAG, instrument};
pub use memory::with_unshared_memory;
pub use relaxed::{relaxed_functions, without_relaxed};
pub use split::{LOADER, PRIMARY, Parts, split};

/// Why a module cannot be split.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The module cannot be read.
    #[error("the module cannot be read: {0}")]
    Malformed(#[from] wasmparser::BinaryReaderError),
    /// The module ends in the middle of a section.
    #[error("the module ends in the middle of a section")]
    Truncated,
    /// The module has something that splitting does not know.
    #[error("the module has {0}, which cannot be split")]
    Unsupported(&'static str),
    /// The module has no export that the stubs can call.
    #[error("the module exports no function `{LOADER}` that takes a number and gives nothing")]
    NoLoader,
    /// The encoder refused what was read.
    #[error("the module cannot be written: {0}")]
    Encoding(#[from] wasm_encoder::reencode::Error<NoFunction>),
}
