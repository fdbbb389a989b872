//! Below `engine` nothing asks for the operators of tracefx by itself: it takes the registry that it is given, in which the
//! operators of a user are as well.

use super::files::sources;
use std::fs;
use std::path::Path;

/// Where code takes a registry. `ops` makes it, and `engine` and what stands above hold libraries.
const CRATES: &[&str] = &["core", "sym", "ir", "exec", "types", "rewrite", "export", "wire", "pt2", "cpu"];

/// Lines that may stay, by file and a part of the line, with the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("export/src/checked.rs", "self.checked_in(registry())", SHORT),
    ("export/src/verifier/mod.rs", "self.validate_in(registry())", SHORT),
    ("export/src/unlift.rs", "self.module_in(registry())", SHORT),
    ("export/src/unflatten/mod.rs", "self.unflatten_in(registry())", SHORT),
    ("export/src/decompose/table.rs", "DecompositionTable::default_of(registry())", SHORT),
    ("pt2/src/options.rs", "registry: registry().clone()", DEFAULT),
    ("pt2/src/save/mod.rs", "registry: tracefx_ops::registry()", DEFAULT),
    ("view/view_scatter.rs", "registry().require(op)?", "a kernel reads the shape rule of another row of the tables"),
];

const SHORT: &str = "the short form of the function that takes a registry";

const DEFAULT: &str = "options that name no registry";

pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    let mut used = vec![false; ALLOWED.len()];
    let mut paths = Vec::new();
    for name in CRATES {
        paths.extend(sources(&root.join("crates").join(name).join("src"))?);
    }
    paths.sort();
    let is_test = |it: &Path| it.file_name().is_some_and(|it| it == "tests.rs" || it == "agreement.rs");
    for path in paths.iter().filter(|it| !is_test(it)) {
        let name = path.strip_prefix(root).expect("a file lies below the root").to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(path).map_err(|e| format!("cannot read {name}: {e}"))?;
        for (at, line) in global_uses(&text) {
            let is_known =
                |(file, part, _): &(&str, &str, &str)| name.ends_with(&format!("/{file}")) && line.contains(part);
            match ALLOWED.iter().position(is_known) {
                Some(known) => used[known] = true,
                None => complaints.push(format!(
                    "{name}:{at}: `{}` does not see operators of a user: take the registry as an argument, or list the \
                     line in xtask/src/tidy/registry.rs",
                    line.trim()
                )),
            }
        }
    }
    let unused = ALLOWED.iter().zip(used).filter(|(_, is_used)| !is_used);
    complaints.extend(
        unused.map(|((file, part, _), _)| {
            format!("{file} has no line `{part}`: take it out of xtask/src/tidy/registry.rs")
        }),
    );
    Ok(complaints)
}

/// The lines, outside of tests and comments, that ask for the operators of tracefx, with their numbers. An item of tests
/// ends, as rustfmt sets it, with the line that closes it at its own depth, or at once with a semicolon.
fn global_uses(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut in_tests: Option<usize> = None;
    text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(move |(_, line)| {
        let word = line.trim_start();
        if let Some(outer) = in_tests {
            let ends = depth(line) == outer && (word.starts_with('}') || word.ends_with(';'));
            in_tests = in_tests.filter(|_| !ends);
            return false;
        }
        if word.starts_with("#[cfg(test)]") {
            in_tests = Some(depth(line));
            return false;
        }
        !word.starts_with("//") && names_global(word)
    })
}

/// Whether a line calls the function `registry`, which is neither a method nor a function of another name.
fn names_global(line: &str) -> bool {
    line.match_indices("registry()").any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|it| it != '.' && it != '_' && !it.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_function_are_told_from_methods_tests_and_comments() {
        let text = "use tracefx_ops::registry;\n/// registry()\nfn f() {\n    g(registry());\n    tracefx_ops::registry().get(it);\n    self.registry().get(it);\n}\n#[cfg(test)]\nmod tests {\n    f(registry());\n}\n#[cfg(test)]\nuse tests::registry();\nfn g() {\n    registry();\n}\n";
        assert_eq!(global_uses(text).map(|(at, _)| at).collect::<Vec<_>>(), [4, 5, 15]);
    }
}
