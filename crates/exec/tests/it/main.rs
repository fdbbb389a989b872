//! Graphs that are run, and propagated through, from their beginning to their end.

mod plans;
mod walk;
