//! The sizes of the built package: what a user downloads, raw and compressed.

use crate::{Outcome, wasm};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where the sizes are recorded, from the root of the repository.
const RECORD: &str = "benches/sizes.md";

/// Where the compiled TypeScript lies, from the root of the repository.
const SCRIPTS: &str = "ts/dist";

/// A row of the table: bytes as they are, and after gzip at its best.
struct Row {
    name: String,
    raw: usize,
    gzip: usize,
}

/// Prints the table; with `record`, writes it down too.
pub(crate) fn print(root: &Path, record: bool) -> Outcome {
    let table = table(&rows(root)?);
    println!("{table}");
    if !record {
        return Ok(());
    }
    let text = format!(
        "# Sizes of the package\n\nWritten by `npm run sizes -- --record` after a build. A host loads one of the `.wasm` \
         files. JavaScript is counted\nas tsc emits it, file by file: with comments, neither bundled nor minified.\n\n{table}\n"
    );
    let path = root.join(RECORD);
    fs::create_dir_all(path.parent().expect("the record lies in a folder"))
        .and_then(|()| fs::write(&path, text))
        .map_err(|e| format!("cannot write {RECORD}: {e}"))
}

fn rows(root: &Path) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for path in files(&root.join(wasm::FOLDER), &["wasm", "js"])? {
        let name = path.strip_prefix(root).expect("a file lies below the root").display().to_string();
        rows.push(row(name, &[path])?);
    }
    let scripts = files(&root.join(SCRIPTS), &["js"])?;
    rows.push(row(format!("{SCRIPTS} ({} files)", scripts.len()), &scripts)?);
    Ok(rows)
}

fn row(name: String, paths: &[PathBuf]) -> Result<Row, String> {
    let mut row = Row { name, raw: 0, gzip: 0 };
    for path in paths {
        let bytes = fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        row.raw += bytes.len();
        row.gzip += gzipped(&bytes);
    }
    Ok(row)
}

fn gzipped(bytes: &[u8]) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("writing to memory succeeds");
    encoder.finish().expect("writing to memory succeeds").len()
}

/// The files of these kinds below a folder, sorted.
fn files(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, String> {
    let help = "help: run `npm start` to build the package";
    let entries = fs::read_dir(folder).map_err(|e| format!("cannot read {}: {e}\n{help}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| format!("cannot read {}: {e}", folder.display()))?.path();
        if path.is_dir() {
            found.extend(files(&path, extensions)?);
        } else if path.extension().is_some_and(|it| extensions.iter().any(|known| it == *known)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn table(rows: &[Row]) -> String {
    let name_width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max(4);
    let mut lines = vec![
        format!("| {:name_width$} | {:>9} | {:>9} |", "file", "raw", "gzip"),
        format!("|{:-<w$}|{:->10}:|{:->10}:|", "", "", "", w = name_width + 2),
    ];
    for Row { name, raw, gzip } in rows {
        lines.push(format!("| {name:name_width$} | {:>9} | {:>9} |", kilobytes(*raw), kilobytes(*gzip)));
    }
    lines.join("\n")
}

/// Thousands of bytes, with one decimal.
fn kilobytes(bytes: usize) -> String {
    format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_aligned() {
        let row = Row { name: "ts/wasm/a.wasm".to_owned(), raw: 76_280, gzip: 999 };
        let expected = "\
| file           |       raw |      gzip |
|----------------|----------:|----------:|
| ts/wasm/a.wasm |   76.2 kB |    0.9 kB |";
        assert_eq!(table(&[row]), expected);
    }
}
