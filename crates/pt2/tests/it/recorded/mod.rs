//! The recorded programs.

use std::path::{Path, PathBuf};

/// The recorded data of the project.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

/// The folders below these that hold a program, sorted.
pub(crate) fn folders(mut rest: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    while let Some(folder) = rest.pop() {
        if folder.join("model.pt2").exists() {
            found.push(folder.clone());
        }
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        rest.extend(entries.map(|it| it.unwrap().path()).filter(|it| it.is_dir()));
    }
    found.sort();
    found
}
