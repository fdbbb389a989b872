//! The graph against PyTorch's recorded answers, and its invariants under random edits.

mod corpus;
mod edit_script;
mod lint;
mod namespace;
mod print;
mod properties;
