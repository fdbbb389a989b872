//! Unsafe code is where `docs/unsafe.md` says, and nowhere else.

use super::files::sources;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const DOCUMENT: &str = "docs/unsafe.md";
/// Folders of crates.
const FOLDERS: &[&str] = &["crates", "fuzz", "python", "xtask"];
/// Crates in which macros of others write what is unsafe, so that it cannot be forbidden.
const OF_MACROS: &[(&str, &str)] =
    &[("crates/wasm", "wasm-bindgen"), ("crates/wasm-gpu", "wasm-bindgen"), ("fuzz/libfuzzer", "libfuzzer-sys")];

pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let document = fs::read_to_string(root.join(DOCUMENT)).map_err(|e| format!("cannot read {DOCUMENT}: {e}"))?;
    let told = rows(&document);
    let mut found = BTreeMap::new();
    let mut complaints = Vec::new();
    for folder in FOLDERS {
        for path in sources(&root.join(folder))? {
            let name =
                path.strip_prefix(root).expect("a file lies below the root").to_string_lossy().replace('\\', "/");
            if !name.ends_with(".rs") {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(|e| format!("cannot read {name}: {e}"))?;
            let n = places(&text);
            if n > 0 {
                found.insert(name.clone(), n);
            }
            let is_root = name.ends_with("/src/lib.rs") || name.ends_with("/src/main.rs");
            let folder = name.split("/src/").next().unwrap_or_default();
            let has_rows = told.keys().any(|it| it.starts_with(&format!("{folder}/src/")));
            let is_of_macros = OF_MACROS.iter().any(|(it, _)| *it == folder);
            if is_root && !has_rows && !is_of_macros && !text.contains("#![forbid(unsafe_code)]") {
                complaints
                    .push(format!("{name}: {DOCUMENT} has no row of this crate, which should forbid unsafe code"));
            }
        }
    }
    complaints.extend(compared(&found, &told));
    Ok(complaints)
}

/// The files of the table, and how many places each is said to have.
fn rows(document: &str) -> BTreeMap<String, usize> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| [")?.split('|');
        let file = cells.next()?.split(']').next()?;
        Some((file.to_owned(), cells.next()?.trim().parse().ok()?))
    };
    document.lines().filter_map(row).collect()
}

/// How often the keyword stands in the code of a file.
fn places(text: &str) -> usize {
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    let is_place =
        |it: &&str| ["{", "fn", "impl", "extern", "trait"].iter().any(|next| it.trim_start().starts_with(next));
    text.lines().map(|line| code(line).split("unsafe ").skip(1).filter(is_place).count()).sum()
}

fn compared(found: &BTreeMap<String, usize>, told: &BTreeMap<String, usize>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = found.keys().chain(told.keys()).collect();
    let differs = |name: &&String| found.get(*name) != told.get(*name);
    let complaint = |name: &String| {
        let (found, told) = (found.get(name).unwrap_or(&0), told.get(name).unwrap_or(&0));
        format!(
            "{name} has {found} places that are unsafe, and {DOCUMENT} tells of {told}: say there why, and what holds"
        )
    };
    names.into_iter().filter(differs).map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keyword_is_counted_where_it_is_code() {
        // Put together, so that this file has none.
        let count = |text: &str| places(&text.replace("KEYWORD", concat!("un", "safe")));
        let text = "// a KEYWORD fn\nlet x = KEYWORD { 1 };\nKEYWORD impl Send for A {}\npub KEYWORD fn f() {}\nlet KEYWORD_x = 1;\n";
        assert_eq!(count(text), 3);
        assert_eq!(count("a(KEYWORD { b }, KEYWORD { c })"), 2);
    }

    #[test]
    fn code_and_document_say_the_same() {
        let told = rows("| file | places |\n|---|--:|\n| [a.rs](../a.rs) | 2 | why |\n");
        assert_eq!(told, BTreeMap::from([("a.rs".to_owned(), 2)]));
        assert!(compared(&BTreeMap::from([("a.rs".to_owned(), 2)]), &told).is_empty());
        assert_eq!(compared(&BTreeMap::from([("a.rs".to_owned(), 3)]), &told).len(), 1);
        assert_eq!(compared(&BTreeMap::new(), &told).len(), 1);
        assert_eq!(compared(&BTreeMap::from([("b.rs".to_owned(), 1)]), &BTreeMap::new()).len(), 1);
    }
}
