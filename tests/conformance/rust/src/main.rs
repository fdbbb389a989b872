//! Runs PyTorch's recorded graphs through the crates: the engine `rust` of `npm run -s conformance -- graphs DIR`.
//!
//!     cargo run -p tracefx-conformance -- DIR [ONLY]
//!
//! Prints one JSON object a case: its name, `passed`, `failed` or `skipped`, and what differs. The script that starts it
//! knows the differences on purpose, and counts.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the answers are what is printed")]

mod case;
mod compare;
mod kinds;
mod values;

use case::Case;
use serde_json::json;
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
    for (kind, check) in kinds::KINDS {
        let file = Path::new(dir).join(format!("{kind}.jsonl"));
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(problem) => {
                println!("{}: {problem}", file.display());
                return ExitCode::from(2);
            }
        };
        for line in text.lines().filter(|it| !it.is_empty()) {
            let case = Case::new(serde_json::from_str(line).expect("the corpus is JSON"));
            let name = format!("{kind}/{}", case.name());
            if name.contains(only) {
                let (status, detail) = match check(&case) {
                    Ok(()) => ("passed", String::new()),
                    Err(problem) if problem.starts_with("FX0401") => ("skipped", problem),
                    Err(problem) => ("failed", problem),
                };
                println!("{}", json!({ "name": name, "status": status, "detail": detail }));
            }
        }
    }
    ExitCode::SUCCESS
}
