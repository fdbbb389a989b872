//! Pickles read as data.
//!
//! A pickle is a program for a stack machine that can name any Python function and have it called. This reader runs
//! the part of it that builds plain values; what would be a call is written down as an [`Object`] and never made. So
//! opening a pickle cannot do anything, whatever it says: there is nothing here that could be called.
//!
//! Values lie in one list and refer to each other by [`ValueId`]. Sharing and cycles, which pickles can express, cost
//! nothing that way, and neither reading nor dropping a value recurses.

mod machine;
mod opcode;
mod value;
mod writer;

pub(crate) use writer::PickleWriter;

pub use value::{Global, Object, ObjectKind, Pickle, Value, ValueId};
