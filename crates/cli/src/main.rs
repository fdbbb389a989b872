//! The native command `tracefx`.

fn main() {}
