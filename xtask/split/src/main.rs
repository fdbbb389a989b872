//! `wasm-split`: see the library. `cargo xtask wasm` runs it.
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "a command says what went wrong")]

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::process::ExitCode;
use wasm_split::{
    Refusal, instrument, relaxed_functions, split, with_roots, with_small_callees, with_unshared_memory,
    without_relaxed,
};

const USAGE: &str = "usage: wasm-split unshare IN.wasm OUT.wasm
       wasm-split without-relaxed IN.wasm OUT.wasm
       wasm-split instrument IN.wasm OUT.wasm
       wasm-split split IN.wasm [PART.wasm CALLED]... LAST.wasm RELAXED.wasm

CALLED is a file of the numbers of functions, separated by spaces or lines: those that no part before has are in this one, and
what no file has is in the last part. Functions with instructions of relaxed SIMD are in RELAXED whatever calls them, and what
`without-relaxed` and `instrument` give has none of these.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["unshare", from, to] => changed(from, to, with_unshared_memory),
        ["without-relaxed", from, to] => changed(from, to, without_relaxed),
        ["instrument", from, to] => changed(from, to, |module| instrument(&without_relaxed(module)?)),
        ["split", from, parts @ .., last, relaxed] if !parts.is_empty() && parts.len() % 2 == 0 => {
            parted(from, parts, last, relaxed)
        }
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn changed(from: &str, to: &str, change: impl Fn(&[u8]) -> Result<Vec<u8>, Refusal>) -> Result<(), String> {
    write(to, &change(&read(from)?).map_err(|e| e.to_string())?)
}

fn parted(from: &str, parts: &[&str], last: &str, relaxed: &str) -> Result<(), String> {
    let module = read(from)?;
    let n_files = parts.len() / 2 + 2;
    let of_relaxed = relaxed_functions(&module).map_err(|e| e.to_string())?;
    let mut part_of: HashMap<usize, usize> = of_relaxed.into_iter().map(|it| (it, n_files - 1)).collect();
    let mut files = Vec::new();
    for (part, pair) in parts.chunks(2).enumerate() {
        files.push(pair[0]);
        let mut called: BTreeSet<usize> = functions(pair[1])?.into_iter().collect();
        if part == 0 {
            called = with_roots(&module, called).map_err(|e| e.to_string())?;
        }
        called.retain(|it| !part_of.contains_key(it));
        for function in with_small_callees(&module, called).map_err(|e| e.to_string())? {
            part_of.entry(function).or_insert(part);
        }
    }
    let split = split(&module, n_files - 1, |function| part_of.get(&function).copied().unwrap_or(n_files - 2));
    let split = split.map_err(|e| e.to_string())?;
    files.extend([last, relaxed]);
    for (file, module) in files.into_iter().zip(std::iter::once(&split.primary).chain(&split.deferred)) {
        write(file, module)?;
    }
    Ok(())
}

/// The functions that a file names.
fn functions(path: &str) -> Result<Vec<usize>, String> {
    let text = String::from_utf8(read(path)?).map_err(|e| format!("{path}: {e}"))?;
    text.split_ascii_whitespace().map(|it| it.parse().map_err(|e| format!("{path}: {it}: {e}"))).collect()
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("cannot read {path}: {e}"))
}

fn write(path: &str, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|e| format!("cannot write {path}: {e}"))
}
