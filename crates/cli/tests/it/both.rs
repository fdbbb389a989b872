//! What the command prints, in a golden file that `ts/test/cli/both.test.ts` holds `npx tracefx` to as well.
//! `TRACEFX_UPDATE=1 cargo test -p tracefx-cli --test it both` writes it again.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Numbers of milliseconds differ from run to run.
fn without_times(text: &str) -> String {
    let mut res = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|it: char| it.is_ascii_digit()) {
        let end = rest[at..].find(|it: char| !it.is_ascii_digit() && it != '.').map_or(rest.len(), |it| at + it);
        let is_time = rest[end..].starts_with(" ms")
            || rest[..at].ends_with("\"milliseconds\":")
            || rest[..at].ends_with("\"median\":");
        res.push_str(&rest[..at]);
        res.push_str(if is_time { "#" } else { &rest[at..end] });
        rest = &rest[end..];
    }
    res + rest
}

/// What came of a command line: the exit code, what it prints, and the file that it writes.
fn outcome(words: &[&str], scratch: &Path) -> Value {
    let programs = root().join("tests/fixtures");
    let path = |word: &&str| {
        word.replace("FIXTURES", programs.to_str().unwrap()).replace("SCRATCH", scratch.to_str().unwrap())
    };
    let args: Vec<String> = words.iter().map(path).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_tracefx")).args(&args).output().unwrap();
    let clean = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        without_times(
            &text.replace(programs.to_str().unwrap(), "FIXTURES").replace(scratch.to_str().unwrap(), "SCRATCH"),
        )
    };
    let mut res = json!({ "args": words, "code": output.status.code(), "stdout": clean(&output.stdout) });
    let stderr = clean(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        // Programs that differ are no problem.
        Some(1) if stderr.is_empty() => {}
        Some(2) => res["stderr"] = json!(stderr),
        // The system's words for what went wrong with a file differ.
        _ => {
            let told: Value = serde_json::from_str(&stderr).unwrap_or_else(|_| panic!("{words:?}: {stderr}"));
            res["error"] = told["error"]["code"].clone();
        }
    }
    // Sums may be rounded otherwise where vectors are wider, so that of results only their being there is compared.
    if let Some(written) = words.iter().rfind(|it| it.starts_with("SCRATCH/") && !it.ends_with(".safetensors"))
        && let Ok(bytes) = std::fs::read(path(written))
    {
        let digits = Sha256::digest(&bytes).iter().map(|it| format!("{it:02x}")).collect::<String>();
        res["written"] = json!(digits);
    }
    res
}

#[test]
fn the_command_does_what_the_golden_file_says() {
    let scratch = std::env::temp_dir().canonicalize().unwrap().join(format!("tracefx-both-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let golden = root().join("tests/golden/command/outcomes.json");
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&golden).unwrap()).unwrap();
    let found: Vec<Value> = cases
        .iter()
        .map(|case| {
            let words: Vec<&str> = case["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
            outcome(&words, &scratch)
        })
        .collect();
    std::fs::remove_dir_all(&scratch).unwrap();
    if std::env::var_os("TRACEFX_UPDATE").is_some() {
        std::fs::write(&golden, format!("{:#}\n", Value::from(found))).unwrap();
        return;
    }
    for (found, case) in found.iter().zip(&cases) {
        assert_eq!(found, case);
    }
}
