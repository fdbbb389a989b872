//! Nothing: what counts is the manifest, which `cargo xtask tidy` holds complete.
#![forbid(unsafe_code)]
