//! Finds a Rust toolchain that can build the standard library for WebAssembly.
//!
//! The engine is built with unwinding panics and atomic instructions, for which no standard library is shipped in
//! compiled form. Building it takes its sources and a compiler that admits unstable flags.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What to install when no toolchain fits.
const HELP: &str = "help: where rustup is:  rustup toolchain install nightly --profile minimal -c rust-src
help: on Debian:        apt-get install rustc-web cargo-web rust-web-src lld-22";

/// A toolchain that can build the standard library for WebAssembly.
pub(super) enum Toolchain {
    /// A nightly of rustup with the component rust-src; it brings its own linker.
    Nightly { sysroot: PathBuf },
    /// Debian's compiler for web browsers with its sources, and LLVM's linker beside it.
    Debian { linker: PathBuf },
}

impl Toolchain {
    /// Finds the first toolchain that fits.
    pub(super) fn find() -> Result<Self, String> {
        if let Some(sysroot) = nightly_sysroot().filter(|it| sources(it).is_dir()) {
            return Ok(Toolchain::Nightly { sysroot });
        }
        let rustc = Path::new("/usr/bin/rustc");
        if rustc.exists() && Path::new("/usr/bin/cargo").exists() && sources(Path::new("/usr")).is_dir() {
            return match newest_wasm_ld(Path::new("/usr/bin")) {
                Some(linker) => Ok(Toolchain::Debian { linker }),
                None => Err(format!("no wasm-ld stands beside {}\n{HELP}", rustc.display())),
            };
        }
        Err(format!("no Rust toolchain here can build the standard library for WebAssembly\n{HELP}"))
    }

    /// What it is, in words.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Toolchain::Nightly { .. } => "rustup's nightly",
            Toolchain::Debian { .. } => "Debian's rustc-web",
        }
    }

    /// Its cargo.
    pub(super) fn cargo(&self) -> Command {
        let mut command = match self {
            Toolchain::Nightly { .. } => {
                let mut command = Command::new("rustup");
                command.args(["run", "nightly", "cargo"]);
                command
            }
            Toolchain::Debian { .. } => {
                let mut command = Command::new("/usr/bin/cargo");
                command.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1");
                command
            }
        };
        // The cargo that runs xtask says which toolchain it is; that is not the one meant here.
        command.env_remove("RUSTUP_TOOLCHAIN");
        command
    }

    /// The folder that holds the compiler and the sources of the standard library.
    pub(super) fn sysroot(&self) -> &Path {
        match self {
            Toolchain::Nightly { sysroot } => sysroot,
            Toolchain::Debian { .. } => Path::new("/usr"),
        }
    }

    /// The linker to name, if the compiler has none of its own.
    pub(super) fn linker(&self) -> Option<&Path> {
        match self {
            Toolchain::Nightly { .. } => None,
            Toolchain::Debian { linker } => Some(linker),
        }
    }
}

fn nightly_sysroot() -> Option<PathBuf> {
    let output = Command::new("rustup")
        .args(["run", "nightly", "rustc", "--print", "sysroot"])
        .env_remove("RUSTUP_TOOLCHAIN")
        .output()
        .ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(sysroot.trim()))
}

/// Where the sources of the standard library lie, if they are installed.
fn sources(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib/src/rust/library/std")
}

/// The `wasm-ld-N` of the highest N in a folder, or a plain `wasm-ld`.
fn newest_wasm_ld(folder: &Path) -> Option<PathBuf> {
    let names = std::fs::read_dir(folder).ok()?.flatten().map(|it| it.file_name().to_string_lossy().into_owned());
    let newest = names.filter_map(|it| it.strip_prefix("wasm-ld-")?.parse::<u32>().ok()).max();
    let name = newest.map_or("wasm-ld".to_owned(), |n| format!("wasm-ld-{n}"));
    let path = folder.join(name);
    path.exists().then_some(path)
}
