//! The tracefx byte format: what crosses from TypeScript to Rust, and the .fxg file.
