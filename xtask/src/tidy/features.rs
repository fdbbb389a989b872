//! One build serves all: the tests of a crate by itself are built of third-party crates with the features that they have in the whole
//! workspace. Otherwise `cargo test -p` and `cargo xtask` build everything once more, in a variant of their own.
//!
//! Cargo is asked for one platform, so that the answer is the same everywhere.

use super::rows::metadata;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const PLATFORM: &str = "x86_64-unknown-linux-gnu";

pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let whole = features(root, None)?;
    let metadata = metadata(root)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let mut complaints = Vec::new();
    for name in packages.iter().filter_map(|it| it["name"].as_str()) {
        let alone = features(root, Some(name))?;
        // What stands on none of our crates is built soon.
        if alone.iter().any(|it| it.starts_with("tracefx-core ")) {
            complaints.extend(differing(name, &alone, &whole));
        }
    }
    Ok(complaints)
}

/// Complains of what a crate by itself is built with that the workspace is not.
fn differing(name: &str, alone: &BTreeSet<String>, whole: &BTreeSet<String>) -> Option<String> {
    let others: Vec<&str> = alone.difference(whole).map(String::as_str).collect();
    (!others.is_empty()).then(|| {
        format!(
            "{name} by itself is built with {}, the workspace with other features of it: name those in \
             xtask/workspace-hack/Cargo.toml",
            others.join(", ")
        )
    })
}

/// The crates that are built for a package or for all of them, each with its version and its features.
fn features(root: &Path, package: Option<&str>) -> Result<BTreeSet<String>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["tree", "--locked", "--target", PLATFORM, "--edges", "normal,dev,build", "--prefix", "none"]);
    match package {
        Some(name) => command.args(["--package", name]),
        None => command.arg("--workspace"),
    };
    // The last mark is of a crate that was printed before; a name never holds one.
    let output = command.args(["--format", "{p} [{f}]"]).current_dir(root).output();
    let output = output.map_err(|e| format!("cannot run cargo tree: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(|it| it.trim_end_matches(" (*)").to_owned()).filter(|it| !it.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(lines: &[&str]) -> BTreeSet<String> {
        lines.iter().map(|&it| it.to_owned()).collect()
    }

    #[test]
    fn a_crate_of_other_features_is_told() {
        let whole = set(&["syn v2.0.119 [full,visit]", "half v2.7.0 []"]);
        assert_eq!(differing("core", &set(&["half v2.7.0 []"]), &whole), None);
        let complaint = differing("core", &set(&["syn v2.0.119 [full]", "half v2.7.0 []"]), &whole).unwrap();
        assert!(complaint.starts_with("core by itself is built with syn v2.0.119 [full], "), "{complaint}");
    }
}
