//! The layering of the crates: a crate may depend only on crates of lower rows.
//!
//! Dependencies of tests are free: a test of the interpreter may well use the kernels above it.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

const PREFIX: &str = "tracefx-";

/// The crate that has the others under one name.
const FACADE: &str = "tracefx";

/// Every crate, without the prefix of its package name, and its row.
const ROWS: &[(&str, u8)] = &[
    ("core", 0),
    ("sym", 0),
    ("ir", 1),
    ("plan", 1),
    ("ops", 2),
    ("testing", 2),
    ("exec", 3),
    ("types", 3),
    ("rewrite", 4),
    ("compile", 4),
    ("gpu", 4),
    ("export", 5),
    ("onnx", 6),
    ("wire", 6),
    ("pt2", 6),
    ("cpu", 6),
    ("wgpu", 6),
    ("runtime", 7),
    ("engine", 8),
    ("wasm-parts", 8),
    ("wasm", 9),
    ("wasm-gpu", 9),
    ("wasm-runtime", 9),
    ("cli", 9),
    (FACADE, 9),
    ("conformance", 10),
    ("fuzz", 10),
];

/// Dependencies inside a row that are allowed, with the reason.
const WITHIN_A_ROW: &[(&str, &str, &str)] = &[("sym", "core", "it refuses its input with core's Diagnostic")];

/// A dependency of one of our crates on another, by their names without the prefix.
type Edge = (String, String);

pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let (crates, edges) = read(&metadata(root)?)?;
    let unknown = crates.iter().filter(|it| row(it).is_none());
    let mut complaints: Vec<String> =
        unknown.map(|it| format!("crate {it} has no row: give it one in xtask/src/tidy/rows.rs")).collect();
    complaints.extend(edges.iter().filter_map(complaint));
    Ok(complaints)
}

fn row(name: &str) -> Option<u8> {
    ROWS.iter().find(|(it, _)| *it == name).map(|(_, row)| *row)
}

/// Why an edge is forbidden, if it is.
fn complaint((from, to): &Edge) -> Option<String> {
    let (from_row, to_row) = (row(from)?, row(to)?);
    let listed = WITHIN_A_ROW.iter().any(|(a, b, _)| a == from && b == to);
    if to_row < from_row || listed {
        return None;
    }
    Some(format!("{from} (row {from_row}) may not use {to} (row {to_row}): a crate may use only lower rows"))
}

/// What cargo says of the packages of the workspace.
pub(super) fn metadata(root: &Path) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("cannot run cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata printed no JSON: {e}"))
}

/// Our crates and the dependencies between them, from the output of `cargo metadata`.
fn read(metadata: &Value) -> Result<(Vec<String>, Vec<Edge>), String> {
    let (mut crates, mut edges) = (Vec::new(), Vec::new());
    for package in metadata["packages"].as_array().ok_or("cargo metadata has no packages")? {
        let Some(from) = ours(package) else { continue };
        crates.push(from.clone());
        for dependency in package["dependencies"].as_array().ok_or("a package has no dependencies")? {
            if let Some(to) = ours(dependency)
                && dependency["kind"] != "dev"
            {
                edges.push((from.clone(), to));
            }
        }
    }
    Ok((crates, edges))
}

/// The name without the prefix, if it is one of our crates.
pub(super) fn ours(package: &Value) -> Option<String> {
    let name = package["name"].as_str()?;
    if name == FACADE { Some(name.to_owned()) } else { name.strip_prefix(PREFIX).map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn edge(from: &str, to: &str) -> Option<String> {
        complaint(&(from.to_owned(), to.to_owned()))
    }

    #[test]
    fn lower_rows_are_allowed() {
        assert_eq!(edge("ir", "core"), None);
        assert_eq!(edge("pt2", "export"), None);
        assert_eq!(edge("wasm", "cpu"), None);
    }

    #[test]
    fn higher_and_equal_rows_are_refused() {
        let message = "ir (row 1) may not use ops (row 2): a crate may use only lower rows";
        assert_eq!(edge("ir", "ops").as_deref(), Some(message));
        assert!(edge("wire", "pt2").is_some());
        assert!(edge("core", "sym").is_some());
    }

    #[test]
    fn listed_edges_within_a_row_are_allowed_in_one_direction() {
        assert_eq!(edge("sym", "core"), None);
        assert!(edge("core", "core").is_some());
    }

    #[test]
    fn the_interpreter_stands_below_what_runs_graphs() {
        assert_eq!(edge("exec", "ops"), None);
        for above in ["rewrite", "export", "cpu"] {
            assert_eq!(edge(above, "exec"), None);
            assert!(edge("exec", above).is_some());
        }
    }

    #[test]
    fn metadata_is_read_without_foreign_packages_and_tests() {
        let metadata = json!({ "packages": [
            { "name": "xtask", "dependencies": [{ "name": "tracefx-core", "kind": null }] },
            { "name": "tracefx-exec", "dependencies": [
                { "name": "tracefx-core", "kind": null },
                { "name": "tracefx-cpu", "kind": "dev" },
                { "name": "half", "kind": null },
            ] },
        ] });
        let (crates, edges) = read(&metadata).unwrap();
        assert_eq!(crates, ["exec"]);
        assert_eq!(edges, [("exec".to_owned(), "core".to_owned())]);
    }
}
