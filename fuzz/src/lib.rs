//! What fuzzing checks: for each target a function of bytes that panics where the code breaks a promise, and the seeds that
//! mutations start from. `tests/fuzz.rs` runs a fixed number of mutations in CI; `libfuzzer` runs any target for as long as
//! one likes.
//!
//! To add a target, add a file to `targets` and a row to [`TARGETS`].
#![forbid(unsafe_code)]

mod mutations;
pub mod networks;
pub mod random;
mod seeds;
mod stored;
mod targets;

pub use mutations::Cases;
pub use stored::stored;

/// A function of bytes that is fuzzed.
pub struct Target {
    /// Its name on command lines.
    pub name: &'static str,
    /// Takes any bytes, and panics where a promise is broken.
    pub check: fn(&[u8]),
    /// What mutations start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How many mutations CI runs besides the seeds: some seconds' worth.
    pub n_mutations: usize,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "archive", check: targets::archive::check, seeds: seeds::archives, n_mutations: 100_000 },
    Target { name: "expr", check: targets::expr::check, seeds: seeds::expressions, n_mutations: 300_000 },
    Target { name: "matcher", check: targets::matcher::check, seeds: seeds::random, n_mutations: 50_000 },
    Target { name: "pickle", check: targets::pickle::check, seeds: seeds::pickles, n_mutations: 300_000 },
    Target { name: "plan", check: targets::plan::check, seeds: seeds::random, n_mutations: 1_500 },
    Target { name: "plan_bytes", check: targets::plan_bytes::check, seeds: seeds::plans, n_mutations: 100_000 },
    Target { name: "program", check: targets::program::check, seeds: seeds::programs, n_mutations: 100_000 },
    Target { name: "saved_plans", check: targets::saved_plans::check, seeds: seeds::saved_plans, n_mutations: 30_000 },
    Target { name: "wire", check: targets::wire::check, seeds: seeds::wire_files, n_mutations: 300_000 },
];

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|it| it.name == name)
}
