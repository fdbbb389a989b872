//! Matching, rewriting and passes: those of `torch.fx`, on graphs of any dialect.
//!
//! A pass is a function of a [`GraphModule`](tracefx_ir::GraphModule), which it changes in place. Nothing here runs a
//! graph: passes that need numbers (folding constants, checking a rule) are put together one row above, in `engine`.
#![forbid(unsafe_code)]

mod dead_code;
mod pass;

pub use dead_code::eliminate_dead_code;
pub use pass::{Pass, PassResult};
