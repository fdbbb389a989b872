//! Symbolic sizes: recorded expressions, tables and random properties, in one program.

mod fixtures;
mod properties;
mod tables;
