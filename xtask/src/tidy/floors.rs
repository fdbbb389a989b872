//! The floors of `ts/src`: a folder may import values only from folders of lower rows.
//!
//! What a type says is gone when the program runs, and TypeScript finds it wherever it stands. Types go down all the same,
//! but for a short list: a reader who goes up for a type meets the knot that the rows undo. What is printed from Rust
//! (`bindings`) stands below all of them, outside of `ts/src`.

use super::files::sources;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const ROOT: &str = "ts/src";

/// Every folder of `ts/src`, and every file that is in none, with its row.
const ROWS: &[(&str, u8)] = &[
    ("base", 0),
    ("record", 1),
    ("graph", 2),
    ("tensor", 3),
    ("engine", 4),
    ("functions", 5),
    ("gpu", 5),
    ("torch", 6),
    ("nn", 7),
    ("optim", 7),
    ("fx", 8),
    ("trace", 9),
    ("wire", 9),
    ("save", 10),
    ("rewrite", 11),
    ("export", 12),
    ("library", 13),
    ("passes", 13),
    ("types", 13),
    ("draw", 14),
    ("install.ts", 14),
    ("lint", 14),
    ("node", 14),
    ("plugin", 14),
    ("runtime", 14),
    ("torch.ts", 14),
    ("worker", 14),
    ("explorer", 15),
    ("index.ts", 15),
    ("cli", 16),
    ("evaluate", 16),
];

/// Types that come from higher rows: the folder that reads one, the file that has it, and the reason.
const TYPES: &[(&str, &str, &str)] = &[
    ("base", "graph/args.ts", "a tuple holds arguments, and nodes are among them"),
    ("graph", "nn/module.ts", "a graph is told which module owns it"),
    ("graph", "fx/graphModule.ts", "hooks and printing are told which graph module owns the graph"),
    ("tensor", "functions/tensorMembers.ts", "Tensor has methods that call operators, which are put on it from above"),
    ("tensor", "torch/composed.ts", "Tensor has methods that are functions of torch, which are put on it from above"),
];

/// An import of one file of `ts/src` by another, by their paths in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Import {
    from: String,
    to: String,
    is_type: bool,
}

pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join(ROOT);
    let mut files = BTreeSet::new();
    let mut imports = Vec::new();
    for path in sources(&folder)? {
        let name = path.strip_prefix(&folder).expect("a file lies below the root").to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&path).map_err(|e| format!("cannot read {name}: {e}"))?;
        imports.extend(read(&name, &text));
        files.insert(name);
    }
    Ok(complaints(&files, &imports))
}

fn complaints(files: &BTreeSet<String>, imports: &[Import]) -> Vec<String> {
    let floors: BTreeSet<&str> = files.iter().map(|it| floor(it)).collect();
    let unknown = floors.iter().filter(|it| row(it).is_none());
    let mut complaints: Vec<String> =
        unknown.map(|it| format!("{ROOT}/{it} has no row: give it one in xtask/src/tidy/floors.rs")).collect();
    let gone = ROWS.iter().filter(|(it, _)| !floors.contains(it));
    complaints.extend(gone.map(|(it, _)| format!("{ROOT}/{it} is not there: take it off xtask/src/tidy/floors.rs")));
    complaints.extend(imports.iter().filter_map(complaint));
    let stale = TYPES.iter().filter(|listed| !imports.iter().any(|it| is_listed(it, listed)));
    complaints.extend(stale.map(|(from, to, _)| {
        format!("{from} reads no type of {to} any more: take it off the list in xtask/src/tidy/floors.rs")
    }));
    complaints.extend(cycles(imports).iter().map(|cycle| format!("{ROOT}: {} import each other", cycle.join(", "))));
    complaints
}

/// The folder of a file, or the file where it is in none.
fn floor(file: &str) -> &str {
    file.split('/').next().unwrap_or(file)
}

fn row(floor: &str) -> Option<u8> {
    ROWS.iter().find(|(it, _)| *it == floor).map(|(_, row)| *row)
}

fn is_listed(import: &Import, (from, to, _): &(&str, &str, &str)) -> bool {
    import.is_type && floor(&import.from) == *from && import.to == *to
}

/// Why an import is forbidden, if it is.
fn complaint(import: &Import) -> Option<String> {
    let Import { from, to, is_type } = import;
    let (from_row, to_row) = (row(floor(from))?, row(floor(to))?);
    if floor(from) == floor(to) || to_row < from_row || TYPES.iter().any(|it| is_listed(import, it)) {
        return None;
    }
    let what = if *is_type { "types" } else { "values" };
    Some(format!(
        "{ROOT}/{from} (row {from_row}) may not import {what} of {to} (row {to_row}): a folder may import only from lower rows"
    ))
}

/// The files that import values of each other, each circle once.
fn cycles(imports: &[Import]) -> Vec<Vec<&str>> {
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Import { from, to, .. } in imports.iter().filter(|it| !it.is_type) {
        edges.entry(from).or_default().insert(to);
    }
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|file| (*file, reached(file, &edges))).collect();
    let mut found = BTreeSet::new();
    for (file, others) in &reach {
        let circle: Vec<&str> =
            others.iter().copied().filter(|it| reach.get(it).is_some_and(|back| back.contains(file))).collect();
        if !circle.is_empty() {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

fn reached<'a>(start: &str, edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = edges.get(start).into_iter().flatten().copied().collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(edges.get(file).into_iter().flatten());
        }
    }
    reached
}

/// The imports of a file of other files of `ts/src`. Statements begin at the margin, as the formatter has them.
fn read(name: &str, text: &str) -> Vec<Import> {
    let mut found = BTreeSet::new();
    let mut statement = String::new();
    for line in text.lines() {
        let begins = ["import ", "export {", "export type {", "export *"].iter().any(|it| line.starts_with(it));
        if !begins && statement.is_empty() {
            let code = !line.trim_start().starts_with('*') && !line.trim_start().starts_with("//");
            if let Some((_, rest)) = line.split_once("import(\"").filter(|_| code) {
                found.extend(import(name, rest.split('"').next().unwrap_or(rest), false));
            }
            continue;
        }
        if begins {
            statement.clear();
        }
        statement.push_str(line);
        statement.push('\n');
        if line.ends_with(';') {
            if let Some(specifier) = specifier(&statement) {
                let (has_values, has_types) = kinds(&statement);
                found.extend(has_values.then(|| import(name, specifier, false)).flatten());
                found.extend(has_types.then(|| import(name, specifier, true)).flatten());
            }
            statement.clear();
        }
    }
    found.into_iter().collect()
}

/// Where a statement imports from.
fn specifier(statement: &str) -> Option<&str> {
    let place = statement.trim_end().strip_suffix("\";")?;
    let (before, place) = place.rsplit_once('"')?;
    (before.ends_with("from ") || before == "import ").then_some(place)
}

/// Whether a statement imports values, and whether it imports types.
fn kinds(statement: &str) -> (bool, bool) {
    if statement.starts_with("import type ") || statement.starts_with("export type ") {
        return (false, true);
    }
    let Some((_, names)) = statement.split_once('{') else { return (true, false) };
    let names = names.split('}').next().unwrap_or(names).split(',').map(str::trim).filter(|it| !it.is_empty());
    let (types, values): (Vec<&str>, Vec<&str>) = names.partition(|it| it.starts_with("type "));
    (!values.is_empty(), !types.is_empty())
}

/// An import by its relative path; none where it leads out of `ts/src`, as that of a package does.
fn import(from: &str, specifier: &str, is_type: bool) -> Option<Import> {
    if !specifier.starts_with('.') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in specifier.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(Import { from: from.to_owned(), to: parts.join("/"), is_type })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str, is_type: bool) -> Import {
        Import { from: from.to_owned(), to: to.to_owned(), is_type }
    }

    #[test]
    fn lower_rows_and_the_same_folder_are_allowed() {
        assert_eq!(complaint(&edge("nn/linear.ts", "tensor/tensor.ts", false)), None);
        assert_eq!(complaint(&edge("nn/linear.ts", "nn/module.ts", false)), None);
        assert_eq!(complaint(&edge("torch/functional/pad.ts", "torch/info.ts", false)), None);
        assert_eq!(complaint(&edge("index.ts", "torch.ts", true)), None);
    }

    #[test]
    fn higher_rows_and_others_of_the_same_row_are_refused() {
        let message = "ts/src/graph/node.ts (row 2) may not import values of nn/module.ts (row 7): a folder may import only from lower rows";
        assert_eq!(complaint(&edge("graph/node.ts", "nn/module.ts", false)).as_deref(), Some(message));
        assert!(complaint(&edge("wire/codec.ts", "trace/tracer.ts", false)).is_some());
        assert!(complaint(&edge("torch/ops.ts", "torch.ts", false)).is_some());
    }

    #[test]
    fn types_go_down_too_but_for_those_on_the_list() {
        assert_eq!(complaint(&edge("graph/node.ts", "nn/module.ts", true)), None);
        assert!(complaint(&edge("graph/node.ts", "nn/linear.ts", true)).is_some());
    }

    #[test]
    fn every_folder_has_a_row_and_every_row_a_folder() {
        let mut files: BTreeSet<String> = ROWS.iter().map(|(it, _)| (*it).to_owned()).collect();
        let imports: Vec<Import> = TYPES.iter().map(|(from, to, _)| edge(&format!("{from}/a.ts"), to, true)).collect();
        assert_eq!(complaints(&files, &imports), Vec::<String>::new());
        files.insert("attic/box.ts".to_owned());
        files.remove("torch");
        assert_eq!(
            complaints(&files, &imports),
            [
                "ts/src/attic has no row: give it one in xtask/src/tidy/floors.rs",
                "ts/src/torch is not there: take it off xtask/src/tidy/floors.rs",
            ]
        );
    }

    #[test]
    fn a_listed_type_that_nobody_reads_is_told() {
        let files: BTreeSet<String> = ROWS.iter().map(|(it, _)| (*it).to_owned()).collect();
        assert_eq!(complaints(&files, &[]).len(), TYPES.len());
    }

    #[test]
    fn values_in_a_circle_are_told_once_and_types_are_not() {
        let circle =
            [edge("nn/a.ts", "nn/b.ts", false), edge("nn/b.ts", "nn/c.ts", false), edge("nn/c.ts", "nn/a.ts", false)];
        assert_eq!(cycles(&circle), [["nn/a.ts", "nn/b.ts", "nn/c.ts"]]);
        let open = [edge("nn/a.ts", "nn/b.ts", false), edge("nn/b.ts", "nn/a.ts", true)];
        assert_eq!(cycles(&open), Vec::<Vec<&str>>::new());
    }

    #[test]
    fn imports_are_read_by_what_they_take() {
        let text = "\
/**
 * const module = await import(\"./example.ts\");
 */
import \"./register.ts\";
import acorn from \"acorn\";
import { a, type B } from \"../graph/a.ts\";
import type { C } from \"../graph/c.ts\";
import {
  d,
  e,
} from \"../graph/d.ts\";
import * as F from \"../torch/functional/index.ts\";
import { ERRORS } from \"../../../bindings/errors.ts\";
export { f } from \"./f.ts\";
export type { G } from \"./g.ts\";
export * from \"./h.ts\";
export { x };
const later = await import(\"./later.ts\");
";
        let read = read("nn/module.ts", text);
        let expected = [
            edge("nn/module.ts", "graph/a.ts", false),
            edge("nn/module.ts", "graph/a.ts", true),
            edge("nn/module.ts", "graph/c.ts", true),
            edge("nn/module.ts", "graph/d.ts", false),
            edge("nn/module.ts", "nn/f.ts", false),
            edge("nn/module.ts", "nn/g.ts", true),
            edge("nn/module.ts", "nn/h.ts", false),
            edge("nn/module.ts", "nn/later.ts", false),
            edge("nn/module.ts", "nn/register.ts", false),
            edge("nn/module.ts", "torch/functional/index.ts", false),
        ];
        assert_eq!(read, expected);
    }
}
