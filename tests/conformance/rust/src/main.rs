//! Runs PyTorch's recorded graphs through the crates: the engine `rust` of `npm run -s conformance -- graphs DIR`.
//!
//!     cargo run -p tracefx-conformance -- DIR [ONLY]
//!
//! Prints one JSON object a case: its name, its status, and what differs. A case that is listed in
//! `tests/conformance/graphs/differences.json` must differ.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the answers are what is printed")]

mod case;
mod compare;
mod kinds;

use case::Case;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (dir, only) = match args.as_slice() {
        [dir] => (dir, ""),
        [dir, only] => (dir, only.as_str()),
        _ => {
            println!("usage: tracefx-conformance DIR [ONLY]");
            return ExitCode::from(2);
        }
    };
    for &(kind, check) in kinds::KINDS {
        match run(Path::new(dir), kind, check, only) {
            Ok(results) => results.iter().for_each(|it| println!("{it}")),
            Err(problem) => {
                println!("{problem}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

/// Checks the cases of one kind whose names have `only` in them.
fn run(dir: &Path, kind: &str, check: kinds::CheckCase, only: &str) -> Result<Vec<Value>, String> {
    let differences: Map<String, Value> = serde_json::from_str(include_str!("../../graphs/differences.json"))
        .map_err(|problem| format!("differences.json: {problem}"))?;
    let file = dir.join(format!("{kind}.jsonl"));
    let text = std::fs::read_to_string(&file).map_err(|problem| format!("{}: {problem}", file.display()))?;
    let mut results = Vec::new();
    for line in text.lines().filter(|it| !it.is_empty()) {
        let case = Case::new(serde_json::from_str(line).map_err(|problem| format!("{kind}: {problem}"))?);
        let name = format!("{kind}/{}", case.name());
        if !name.contains(only) {
            continue;
        }
        let (status, detail) = match (check(&case), differences.get(&name)) {
            (Ok(()), None) => ("passed", Value::Null),
            (Ok(()), Some(_)) => ("failed", "is listed as a difference and does not differ".into()),
            (Err(_), Some(reason)) => ("differs", reason.clone()),
            (Err(problem), None) if problem.starts_with("FX0401") => ("skipped", problem.into()),
            (Err(problem), None) => ("failed", problem.into()),
        };
        results.push(json!({ "name": name, "status": status, "detail": detail }));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_graphs_come_out_as_in_pytorch() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/graphs");
        for &(kind, check) in kinds::KINDS {
            let results = run(&dir, kind, check, "").unwrap();
            let failed: Vec<&Value> =
                results.iter().filter(|it| it["status"] != "passed" && it["status"] != "differs").collect();
            assert!(
                !results.is_empty() && failed.is_empty(),
                "{kind}: {} of {}: {failed:#?}",
                failed.len(),
                results.len()
            );
        }
    }
}
