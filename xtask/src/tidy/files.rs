//! What source files look like: one concept per file, named after it.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose source files are checked, from the root of the repository.
const FOLDERS: &[&str] =
    &["crates", "fuzz", "python/src", "xtask/src", "xtask/codegen/src", "scripts", "ts/src", "ts/test"];

const EXTENSIONS: &[&str] = &["rs", "ts", "mjs"];

/// A file longer than this holds more than one idea, unless it is listed in [`LONG_FILES`].
const MOST_LINES: usize = 1000;

/// Files that may be longer, with the reason.
const LONG_FILES: &[(&str, &str)] = &[("crates/cli/src/completions.rs", "scripts for four shells, which are printed")];

/// Names that say nothing of what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "common", "misc"];

pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    let mut long = Vec::new();
    for folder in FOLDERS {
        for path in sources(&root.join(folder))? {
            let name =
                path.strip_prefix(root).expect("a file lies below the root").to_string_lossy().replace('\\', "/");
            complaints.extend(naming(&name));
            let text = fs::read_to_string(&path).map_err(|e| format!("cannot read {name}: {e}"))?;
            if text.lines().count() > MOST_LINES {
                long.push(name);
            }
        }
    }
    complaints.extend(length(&long, LONG_FILES));
    Ok(complaints)
}

/// The source files below a folder, sorted; none if the folder does not exist.
pub(super) fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    if !folder.exists() {
        return Ok(found);
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|e| format!("cannot read {}: {e}", folder.display()))? {
            let path = entry.map_err(|e| format!("cannot read {}: {e}", folder.display()))?.path();
            if path.is_dir() {
                if path.file_name().is_none_or(|it| it != "target" && it != "node_modules") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|it| EXTENSIONS.iter().any(|known| it == *known)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Complains of a path that has a part with an empty name.
fn naming(name: &str) -> Option<String> {
    let part = name.split('/').find(|part| {
        let stem = part.split('.').next().unwrap_or(part);
        EMPTY_NAMES.contains(&stem)
    })?;
    Some(format!("{name}: `{part}` says nothing of what is inside; name it after its concept"))
}

/// Complains of long files that are not listed, and of listed files that are not long.
fn length(long: &[String], listed: &[(&str, &str)]) -> Vec<String> {
    let unlisted = long.iter().filter(|name| !listed.iter().any(|(it, _)| it == name)).map(|name| {
        format!("{name} is longer than {MOST_LINES} lines: split it by idea, or list it in xtask/src/tidy/files.rs")
    });
    let stale = listed.iter().filter(|(it, _)| !long.iter().any(|name| it == name));
    let stale =
        stale.map(|(it, _)| format!("{it} is not long any more: take it off the list in xtask/src/tidy/files.rs"));
    unlisted.chain(stale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_refused_wherever_they_stand() {
        assert!(naming("crates/ir/src/utils.rs").is_some());
        assert!(naming("crates/common/src/lib.rs").is_some());
        assert!(naming("ts/src/helpers.test.ts").is_some());
        assert_eq!(naming("crates/ir/src/namespace.rs"), None);
        assert_eq!(naming("crates/ir/src/common_subexpression.rs"), None);
    }

    #[test]
    fn long_files_must_be_listed_and_listed_files_must_be_long() {
        let long = ["a.rs".to_owned()];
        assert_eq!(length(&long, &[("a.rs", "a table")]), Vec::<String>::new());
        assert_eq!(length(&long, &[]).len(), 1);
        assert_eq!(length(&[], &[("a.rs", "a table")]).len(), 1);
    }
}
