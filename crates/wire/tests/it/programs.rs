//! Programs that PyTorch wrote, through the byte format and back.
//!
//! The fixtures of the repository always run. `TRACEFX_PROGRAMS` names further directories, separated by `:`, that are
//! searched for folders with a `model.pt2`.

use crate::cases;
use std::path::{Path, PathBuf};
use tracefx_export::{Constant, ExportedProgram};
use tracefx_ir::Attribute;
use tracefx_pt2::{LoadOptions, load};
use tracefx_wire::{Limits, Options, decode_program, encode_program, program_storages};

/// The programs below this folder.
fn programs(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut rest) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = rest.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for path in entries.map(|it| it.unwrap().path()) {
            if path.is_dir() {
                rest.push(path);
            } else if path.file_name().is_some_and(|it| it == "model.pt2") {
                found.push(path);
            }
        }
    }
    found
}

/// The elements of all tensors, in order.
fn elements(program: &ExportedProgram) -> Vec<Vec<u8>> {
    let modules = program.module.modules();
    let attributes = modules.iter().flat_map(|(_, it)| it.attributes.values()).filter_map(|it| match it {
        Attribute::Tensor { tensor, .. } => Some(tensor),
        Attribute::Fake { .. } | Attribute::Module(_) => None,
    });
    let constants = program.constants.values().filter_map(|it| match it {
        Constant::Tensor(tensor) => Some(tensor),
        Constant::CustomObj(_) => None,
    });
    let state = program.state_dict.values().map(|it| &it.tensor);
    attributes.chain(state).chain(constants).map(|it| it.to_bytes().unwrap()).collect()
}

#[track_caller]
fn check(root: &Path, at_least: usize) {
    let paths = programs(root);
    assert!(paths.len() >= at_least, "{} holds {} programs only", root.display(), paths.len());
    for path in paths {
        let Ok(mut program) = load(&std::fs::read(&path).unwrap(), &LoadOptions::default()) else { continue };
        // What was noted while the archive was read is not part of the program.
        program.warnings.clear();
        for options in [Options::FILE, Options::CALL] {
            let file = encode_program(&program, &options).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let weights = if options.weights { vec![] } else { program_storages(&program).unwrap() };
            let read = decode_program(&file, &weights, &Limits::default()).unwrap();
            assert_eq!(cases::describe(&read), cases::describe(&program), "{}", path.display());
            assert!(elements(&read) == elements(&program), "{}: the elements differ", path.display());
            assert!(encode_program(&read, &options).unwrap() == file, "{}: the bytes differ", path.display());
        }
    }
}

#[test]
fn fixtures_go_through_the_byte_format() {
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures"), 20);
}

#[test]
fn further_programs_go_through_the_byte_format() {
    for root in std::env::var("TRACEFX_PROGRAMS").unwrap_or_default().split(':').filter(|it| !it.is_empty()) {
        check(Path::new(root), 1);
    }
}
