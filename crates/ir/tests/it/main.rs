//! The graph against PyTorch's recorded answers, and its invariants under random edits.

mod corpus;
mod edit_script;
mod edits;
mod lint;
mod module;
mod namespace;
mod print;
mod properties;
