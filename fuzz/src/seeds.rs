//! What mutations start from: the recorded programs, expressions and files of the tests.

use crate::random::Random;
use crate::stored::stored_entries;
use crate::targets::plan::case;
use std::fs;
use std::path::{Path, PathBuf};
use tracefx_ops::registry;
use tracefx_runtime::Saved;
use tracefx_wire::format::{ENTRY_LEN, HEADER_LEN, Tag};

/// Files longer than this are left out.
const MAX_LEN: usize = 65_536;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What lies in a folder, in the order of the names.
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|problem| panic!("{}: {problem}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|it| it.expect("a folder can be listed").path()).collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()))
}

/// The small recorded programs.
fn fixtures() -> Vec<Vec<u8>> {
    let (mut found, mut rest) = (Vec::new(), vec![root().join("tests/fixtures")]);
    while let Some(path) = rest.pop() {
        if path.is_dir() {
            rest.extend(list(&path));
        } else if path.ends_with("model.pt2") {
            found.push(read(&path));
        }
    }
    found.retain(|it| it.len() <= MAX_LEN);
    found
}

/// The entries with such names.
fn ending(zip: &[u8], end: &str) -> Vec<Vec<u8>> {
    stored_entries(zip).filter(|(name, _)| name.ends_with(end)).map(|(_, bytes)| bytes.to_vec()).collect()
}

/// Archives, and the JSON in them.
pub(crate) fn archives() -> Vec<Vec<u8>> {
    let zips = fixtures();
    let documents: Vec<Vec<u8>> = zips.iter().flat_map(|zip| ending(zip, ".json")).collect();
    [zips, documents].concat()
}

/// The JSON of programs with that of their weights.
pub(crate) fn programs() -> Vec<Vec<u8>> {
    let pair = |zip: &Vec<u8>| {
        let [program, weights] = ["models/model.json", "model_weights_config.json"].map(|it| ending(zip, it).pop());
        Some([program?, b"\n--\n".to_vec(), weights?].concat())
    };
    fixtures().iter().filter_map(pair).collect()
}

/// The pickles of the files of `torch.save` in archives.
pub(crate) fn pickles() -> Vec<Vec<u8>> {
    let saved = fixtures().into_iter().flat_map(|zip| ending(&zip, ".pt")).filter(|it| !it.is_empty());
    saved.flat_map(|zip| ending(&zip, "/data.pkl")).collect()
}

/// The golden files, as they are and as lists of their sections.
pub(crate) fn wire_files() -> Vec<Vec<u8>> {
    let golden = list(&root().join("tests/golden/wire"));
    let files = golden.iter().filter(|it| it.extension().is_some_and(|it| it == "fxg"));
    files.map(|it| read(it)).flat_map(|file| [sections(&file), file]).collect()
}

/// Each section as the number of its kind, its length in two bytes and its bytes.
fn sections(file: &[u8]) -> Vec<u8> {
    let number = |at: usize| file[at..].first_chunk().map_or(0, |it| u64::from_le_bytes(*it) as usize);
    let count = number(8) & 0xffff_ffff;
    let section = |at: usize| {
        let entry = HEADER_LEN + ENTRY_LEN * at;
        let code = file[entry..].first_chunk().map(|it| u32::from_le_bytes(*it));
        let kind = Tag::ALL.iter().position(|it| Some(it.code()) == code).expect("a golden file has known sections");
        let (offset, length) = (number(entry + 8), number(entry + 16));
        [&[kind as u8][..], &(length as u16).to_le_bytes(), &file[offset..offset + length]].concat()
    };
    (0..count).flat_map(section).collect()
}

/// The recorded expressions and guards, as they are in files.
pub(crate) fn expressions() -> Vec<Vec<u8>> {
    let tables = list(&root().join("crates/sym/tests/fixtures"));
    let texts = tables.iter().map(|it| String::from_utf8(read(it)).expect("the tables are text"));
    let first = |row: &str| row.split('\t').next().unwrap_or_default().as_bytes().to_vec();
    texts.flat_map(|it| it.lines().map(first).collect::<Vec<_>>()).collect()
}

/// The bytes of the plans of random networks, and of their outlines.
pub(crate) fn plans() -> Vec<Vec<u8>> {
    let plans = random().into_iter().step_by(8).filter_map(|it| case(&it)?.plan());
    let files = plans.flat_map(|it| [it.to_bytes(), it.to_outline()]);
    files.map(|it| it.expect("a plan has bytes")).filter(|it| it.len() <= MAX_LEN).collect()
}

/// The plans of random networks as a file has them, of those that need no kernel that the runtime has not.
pub(crate) fn saved_plans() -> Vec<Vec<u8>> {
    let plans = random().into_iter().step_by(4).filter_map(|it| case(&it)?.plan());
    let saved = plans.filter_map(|it| Saved::of(&[&it], &[], registry(), String::new()).ok());
    saved.map(|it| it.to_bytes().expect("plans have bytes")).filter(|it| it.len() <= MAX_LEN).collect()
}

/// Bytes of which no sense is made here: short and long ones.
pub(crate) fn random() -> Vec<Vec<u8>> {
    let mut random = Random(0);
    (0..256).map(|at| (0..16 + 2 * at).map(|_| random.number() as u8).collect()).collect()
}
