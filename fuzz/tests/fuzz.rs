//! A slice of the fuzzing for every change: the seeds of all targets and fixed mutations of them.
//!
//! `cargo test --workspace --test fuzz` runs what CI runs. Behind `--`, a target runs it alone, and numbers, as `5` or
//! `0..100000`, run these cases of it. A case that panics, or that ends the process, is a finding, and the line that says so
//! says how to run it again.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command")]

use std::ops::Range;
use std::panic::catch_unwind;
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracefx_fuzz::{Cases, TARGETS, Target, target};

/// Set, to name each case before it is run: the last one named ended the process.
const NAMES_CASES: &str = "TRACEFX_FUZZ_NAMES_CASES";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).filter(|it| !it.starts_with('-')).collect();
    let Some((&name, rest)) = args.split_first() else { return all() };
    let cases = rest.first().map(|it| range(it));
    match (target(name), cases) {
        (Some(target), None) => run(target, None),
        (Some(target), Some(Some(range))) => run(target, Some(range)),
        _ => {
            let names: Vec<&str> = TARGETS.iter().map(|it| it.name).collect();
            eprintln!("usage: fuzz [TARGET [CASE | FROM..TO]]\ntargets: {}", names.join(", "));
            ExitCode::FAILURE
        }
    }
}

fn range(text: &str) -> Option<Range<usize>> {
    if let Some((from, to)) = text.split_once("..") {
        return Some(from.parse().ok()?..to.parse().ok()?);
    }
    let case = text.parse().ok()?;
    Some(case..case + 1)
}

/// Runs cases of one target, up to the first finding.
fn run(target: &'static Target, range: Option<Range<usize>>) -> ExitCode {
    let cases = Cases::of(target);
    let range = range.unwrap_or(0..cases.len);
    let names_cases = std::env::var_os(NAMES_CASES).is_some();
    for case in range.clone() {
        if names_cases {
            println!("{case}");
        }
        let input = cases.input(case);
        if catch_unwind(|| (target.check)(&input)).is_err() {
            println!("{}: case {case} is a finding: {}", target.name, input.escape_ascii());
            println!("run it again: cargo test --workspace --test fuzz -- {} {case}", target.name);
            return ExitCode::FAILURE;
        }
    }
    println!("{}: {} executions, no finding", target.name, range.len());
    ExitCode::SUCCESS
}

/// Runs each target in a process of its own, some at a time, and sums up as tests do.
fn all() -> ExitCode {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(target) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !in_own_process(target.name) {
                        failed.lock().expect("nobody panics with it").push(target.name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("nobody panics with it");
    let (sum, n_failed) = (if failed.is_empty() { "ok" } else { "FAILED" }, failed.len());
    println!("test result: {sum}. {} passed; {n_failed} failed; targets that are fuzzed", TARGETS.len() - n_failed);
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn in_own_process(name: &str) -> bool {
    println!("{name}: running");
    let output = start(name, false);
    print!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    if output.status.code().is_none() {
        // It did not come to say which case this was; it is the same one in every run.
        let named = String::from_utf8_lossy(&start(name, true).stdout).lines().last().unwrap_or_default().to_owned();
        println!("{name}: case {named} is a finding: {}", output.status);
        println!("run it again: cargo test --workspace --test fuzz -- {name} {named}");
    }
    output.status.success()
}

fn start(name: &str, names_cases: bool) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("a process knows its program"));
    if names_cases {
        command.env(NAMES_CASES, "1");
    }
    command.arg(name).output().expect("a program that runs can be started")
}
