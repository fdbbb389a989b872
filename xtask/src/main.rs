//! Repository chores: code generation, tidy checks, WebAssembly builds.
//!
//! It is run through the alias in `.cargo/config.toml`:
//!
//! ```text
//! cargo xtask codegen [--check]     print bindings and docs/ops.md from the Rust values they mirror
//! cargo xtask tidy                  check the layering of the crates and the shape of their files
//! cargo xtask wasm [VARIANT]        build the engine into ts/wasm
//! ```
//!
//! It is not a build script: `cargo build` never depends on it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its user through the terminal")]
#![forbid(unsafe_code)]

mod tidy;
mod wasm;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask codegen [--check] | tidy | wasm [VARIANT]";

/// What a chore that failed has to say; one line or several.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["codegen", rest @ ..] => return codegen(rest),
        ["tidy"] => tidy::check(&root()),
        ["wasm"] => wasm::build(&root(), None),
        ["wasm", variant] => wasm::build(&root(), Some(variant)),
        [] => Err(USAGE.to_owned()),
        other => Err(format!("unknown arguments: {}\n{USAGE}", other.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the crate that prints what mirrors Rust values. It is made of the whole engine, so that it is built only for this.
fn codegen(args: &[&str]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--package", "codegen", "--"]).args(args).current_dir(root());
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot run cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository: the folder that holds the workspace's `Cargo.toml`.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the root of the repository").to_owned()
}
