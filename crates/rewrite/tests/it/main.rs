//! Passes on graphs that are larger than an example, and on hostile ones.

mod build;
mod matching;
mod replacing;
