//! Repository chores: code generation, tidy checks and WebAssembly builds.

fn main() {}
