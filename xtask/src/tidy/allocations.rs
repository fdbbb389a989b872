//! Kernels, readers and writers ask for memory whose size an input decides: `tracefx_core::allocate` gives it or an error,
//! where `vec!` and `Vec::with_capacity` end the process.

use super::files::sources;
use std::fs;
use std::path::Path;

/// Where kernels are, and what reads and writes files.
const FOLDERS: &[&str] = &["crates/cpu/src", "crates/engine/src", "crates/pt2/src", "crates/wire/src"];

/// What ends the process where there is no memory. That a `collect` does is not seen by its text; the tests that refuse
/// each allocation find those.
const ABORTING: &[&str] = &["Vec::with_capacity(", "vec!["];

/// Lines that may stay, by file and a part of the line, with the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("attention.rs", "smallvec![0; sizes.len()]", RANK),
    ("index/advanced.rs", "vec![0; broadcast.len()]", RANK),
    ("nonzero.rs", "vec![0usize; tensor.rank()]", RANK),
    ("pooling.rs", "vec![1; n_dims]", RANK),
    ("pooling.rs", "vec![values[0]; n_dims]", RANK),
    ("random/distributions.rs", "vec![0; self.dims.len()]", RANK),
    ("scatter.rs", "vec![0usize; lead]", RANK),
    ("scatter.rs", "vec![0; sizes.len()]", RANK),
    ("flip_roll.rs", "vec![0i64; base.rank()]", RANK),
    ("strided_iter.rs", "smallvec![0; outer]", RANK),
    ("machine.rs", "vec![NONE; len]", "a tuple of three at most"),
    ("map.rs", "vec![R::zeroed(); if is_direct { 0 } else { BLOCK }]", "a block has a fixed length"),
    ("diff/matching.rs", "vec![None; before.items.len()]", NODES),
    ("passes/constants.rs", "vec![usize::MAX; call.module.graph.id_bound()]", NODES),
    ("passes/devices.rs", "vec![0; result.partitions.len()]", NODES),
    ("passes/manipulation.rs", "vec![None; call.module.graph.id_bound()]", NODES),
    ("passes/matching.rs", "vec![0; chosen.len()]", NODES),
    ("passes/matching.rs", "vec![None; graph.id_bound()]", NODES),
    ("passes/partition.rs", "vec![0; call.module.graph.id_bound()]", NODES),
    ("passes/types.rs", "Vec::with_capacity(source.len())", NODES),
    ("pt2/src/program/graph.rs", "Vec::with_capacity(parts.len())", NODES),
    ("pt2/src/program/graph.rs", "Vec::with_capacity(node.inputs.len())", NODES),
    ("save/argument.rs", "Vec::with_capacity(node.args().len()", NODES),
    ("save/argument.rs", "vec![String::new(); node.args().len()]", NODES),
    ("save/result.rs", "Vec::with_capacity(items.len())", NODES),
    ("save/zip.rs", "vec![b'0'; 40]", "an id has a fixed length"),
    ("wire/src/codec.rs", "Vec::with_capacity(count)", NODES),
    ("wire/src/edit.rs", "vec![None; graph.id_bound()]", NODES),
    ("wire/src/file.rs", "Vec::with_capacity(n_sections)", NODES),
    ("wire/src/graph.rs", "vec![None; graph.id_bound()]", NODES),
    ("wire/src/graph.rs", "Vec::with_capacity(count)", NODES),
    ("wire/src/module.rs", "Vec::with_capacity(count)", NODES),
    ("wire/src/strings.rs", "Vec::with_capacity(count)", NODES),
    ("wire/src/symbols.rs", "vec![None; texts.len()]", NODES),
    ("wire/src/tensors.rs", "Vec::with_capacity(n_storages)", NODES),
    ("wire/src/tensors.rs", "Vec::with_capacity(n_tensors)", NODES),
    ("wire/src/tensors.rs", "Vec::with_capacity(lens.len())", NODES),
];

const NODES: &str = "a list with an entry for each node, text or tensor of a graph or file that is there";

const RANK: &str = "a tensor has 64 dimensions at most";

pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    let mut used = vec![false; ALLOWED.len()];
    let mut paths = Vec::new();
    for folder in FOLDERS {
        paths.extend(sources(&root.join(folder))?);
    }
    paths.sort();
    for path in paths.iter().filter(|it| it.file_name().is_some_and(|it| it != "agreement.rs")) {
        let name = path.strip_prefix(root).expect("a file lies below the root").to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(path).map_err(|e| format!("cannot read {name}: {e}"))?;
        for (at, line) in aborting_lines(&text) {
            let is_known =
                |(file, part, _): &(&str, &str, &str)| name.ends_with(&format!("/{file}")) && line.contains(part);
            match ALLOWED.iter().position(is_known) {
                Some(known) => used[known] = true,
                None => complaints.push(format!(
                    "{name}:{at}: `{}` ends the process where there is no memory: take it from \
                     tracefx_core::allocate, or list it in xtask/src/tidy/allocations.rs",
                    line.trim()
                )),
            }
        }
    }
    let stale = ALLOWED.iter().zip(used).filter(|(_, is_used)| !is_used);
    complaints.extend(stale.map(|((file, part, _), _)| {
        format!("{file} has no `{part}` any more: take it off the list in xtask/src/tidy/allocations.rs")
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
