//! Programs that PyTorch wrote, read and printed as PyTorch prints them.
//!
//! The fixtures of the repository always run. `TRACEFX_PROGRAMS` names further directories, separated by `:`, that are
//! searched for folders with a `model.pt2`. The graph is compared with `loaded.txt` beside it, or with a `graph.txt` that
//! begins with `graph():`, and the program with `program.txt`.

use crate::recorded::{fixtures, folders};
use std::path::Path;
use tracefx_pt2::{LoadOptions, load};

/// What differs, or nothing.
fn difference(folder: &Path) -> Option<String> {
    let program = match load(&std::fs::read(folder.join("model.pt2")).unwrap(), &LoadOptions::default()) {
        Ok(program) => program,
        Err(error) => return Some(error.to_string()),
    };
    let problems = program.module.graph.lint(Some(&program.module));
    if let Some(problem) = problems.first() {
        return Some(problem.to_string());
    }
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let expected = text("loaded.txt").or_else(|| text("graph.txt")).unwrap_or_default();
    if !expected.starts_with("graph():") {
        return None;
    }
    let graph = different_line("the graph", &expected, &program.module.graph.to_string());
    graph.or_else(|| different_line("the program", &text("program.txt")?, &program.to_string()))
}

fn different_line(what: &str, expected: &str, printed: &str) -> Option<String> {
    let (expected, printed) = (expected.trim_end(), printed.trim_end());
    let mut lines = expected.lines().zip(printed.lines()).enumerate();
    match lines.find(|(_, (expected, printed))| expected != printed) {
        Some((at, (expected, printed))) => {
            Some(format!("{what}, line {}\n  expected {expected}\n  printed  {printed}", at + 1))
        }
        None => (expected != printed).then(|| format!("the number of lines of {what}")),
    }
}

#[track_caller]
fn check(root: &Path, at_least: usize) {
    let folders = folders(vec![root.to_path_buf()]);
    assert!(folders.len() >= at_least, "{} holds {} programs only", root.display(), folders.len());
    let failures: Vec<String> = folders
        .iter()
        .filter_map(|folder| difference(folder).map(|what| format!("{}: {what}", folder.display())))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), folders.len(), failures.join("\n"));
}

#[test]
fn graphs_are_printed_as_pytorch_prints_them() {
    check(&fixtures().join("programs"), 22);
}

#[test]
fn programs_of_every_container_and_version_are_read() {
    check(&fixtures().join("programs-compat"), 8);
}

#[test]
fn programs_of_further_directories_are_read() {
    let Ok(roots) = std::env::var("TRACEFX_PROGRAMS") else { return };
    for root in roots.split(':') {
        check(Path::new(root), 1);
    }
}
