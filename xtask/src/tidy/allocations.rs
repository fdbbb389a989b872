//! Kernels ask for memory whose size an input decides: `tracefx_core::allocate` gives it or an error, where `vec!` and
//! `Vec::with_capacity` end the process.

use std::fs;
use std::path::Path;

/// Where kernels are.
const FOLDER: &str = "crates/cpu/src";

/// What ends the process where there is no memory. That a `collect` does is not seen by its text; the tests that refuse
/// each allocation find those.
const ABORTING: &[&str] = &["Vec::with_capacity(", "vec!["];

/// Lines that may stay, by file and a part of the line, with the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("eigen.rs", "vec![Complex::ZERO; n]", LINEAR_ALGEBRA),
    ("householder.rs", "Vec::with_capacity(n)", LINEAR_ALGEBRA),
    ("linalg.rs", "Vec::with_capacity(n)", LINEAR_ALGEBRA),
    ("matrix.rs", "vec![T::ZERO; rows * cols]", LINEAR_ALGEBRA),
    ("spectral.rs", "vec![T::ZERO; columns.rows]", LINEAR_ALGEBRA),
    ("attention.rs", "smallvec![0; sizes.len()]", RANK),
    ("index.rs", "vec![0; broadcast.len()]", RANK),
    ("nonzero.rs", "vec![0usize; tensor.rank()]", RANK),
    ("pooling.rs", "vec![1; n_dims]", RANK),
    ("pooling.rs", "vec![values[0]; n_dims]", RANK),
    ("random.rs", "vec![0; self.dims.len()]", RANK),
    ("scatter.rs", "vec![0usize; lead]", RANK),
    ("scatter.rs", "vec![0; sizes.len()]", RANK),
    ("turn.rs", "vec![0i64; base.rank()]", RANK),
    ("walk.rs", "smallvec![0; outer]", RANK),
    ("map.rs", "vec![R::zeroed(); if is_direct { 0 } else { BLOCK }]", "a block has a fixed length"),
];

const LINEAR_ALGEBRA: &str = "the kernels of linear algebra ask for all of their memory when they read their matrices";
const RANK: &str = "a tensor has 64 dimensions at most";

pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    let mut used = vec![false; ALLOWED.len()];
    let folder = root.join(FOLDER);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .map_err(|e| format!("cannot read {}: {e}", folder.display()))?
        .map(|it| it.map(|it| it.path()).map_err(|e| e.to_string()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    for path in paths.iter().filter(|it| it.file_name().is_some_and(|it| it != "agreement.rs")) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_string();
        let text = fs::read_to_string(path).map_err(|e| format!("cannot read {name}: {e}"))?;
        for (at, line) in aborting_lines(&text) {
            match ALLOWED.iter().position(|(file, part, _)| *file == name && line.contains(part)) {
                Some(known) => used[known] = true,
                None => complaints.push(format!(
                    "{FOLDER}/{name}:{at}: `{}` ends the process where there is no memory: take it from \
                     tracefx_core::allocate, or list it in xtask/src/tidy/allocations.rs",
                    line.trim()
                )),
            }
        }
    }
    let stale = ALLOWED.iter().zip(used).filter(|(_, is_used)| !is_used);
    complaints.extend(stale.map(|((file, part, _), _)| {
        format!("{FOLDER}/{file} has no `{part}` any more: take it off the list in xtask/src/tidy/allocations.rs")
    }));
    Ok(complaints)
}

/// The lines before the tests of a file that take memory of a length, with their numbers.
fn aborting_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().take_while(|(_, line)| line.trim() != "#[cfg(test)]");
    lines.map(|(at, line)| (at + 1, line)).filter(|(_, line)| {
        let code = line.split("//").next().unwrap_or(line);
        let has_length = |it: &str, at: usize| it != "vec![" || is_repeated(&code[at + it.len()..]);
        ABORTING.iter().any(|it| code.find(it).is_some_and(|at| has_length(it, at)))
    })
}

/// Whether what stands in brackets is an item and how often it is there; a list of items is as long as it is written.
fn is_repeated(inside: &str) -> bool {
    let mut depth = 0;
    for it in inside.chars() {
        match it {
            ';' if depth == 0 => return true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return false,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_length_is_found_before_the_tests() {
        let text = "let a = vec![0; n];\nlet b = vec![(a, [b; 3])];\n// vec![0; n]\nlet c = Vec::with_capacity(n);\n#[cfg(test)]\nlet d = vec![0; n];";
        assert_eq!(aborting_lines(text).map(|it| it.0).collect::<Vec<_>>(), [1, 4]);
    }
}
