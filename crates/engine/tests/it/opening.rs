//! Programs that are opened from bytes that come by ranges are those of the whole file.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use tracefx_core::{Code, Result};
use tracefx_engine::{Limits, Opening, Request, open};
use tracefx_export::ExportedProgram;

/// Recorded archives of each container, and what `save` makes of them in our own format.
fn files() -> Vec<(String, Vec<u8>)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let names =
        ["programs/digits_cnn", "programs/tied_and_views", "programs-compat/2.8.0/cond", "programs-compat/2.6.0/cond"];
    let mut files = Vec::new();
    for name in names {
        let bytes = std::fs::read(PathBuf::from(&fixtures).join(name).join("model.pt2")).unwrap();
        let program = open(&bytes, &Limits::default()).unwrap();
        let own = tracefx_wire::encode_program(&program, &tracefx_wire::Options::FILE).unwrap();
        files.push((format!("{name} as .fxg"), own));
        files.push((name.to_string(), bytes));
    }
    files
}

/// Opens a file in pieces, and tells how many bytes were asked for.
fn opened(file: &[u8], sha256: Option<[u8; 32]>) -> (u64, Result<ExportedProgram>) {
    let mut opening = Opening::new(file.len() as u64, &Limits::default(), sha256);
    let mut asked = 0;
    while let Some(Request { id, range }) = opening.next_request() {
        asked += range.end - range.start;
        for piece in file[range.start as usize..range.end as usize].chunks(10_000) {
            if let Err(error) = opening.feed(id, piece) {
                return (asked, Err(error));
            }
        }
    }
    (asked, opening.finish())
}

#[test]
fn each_file_is_the_same_program_and_each_byte_comes_once() {
    for (name, file) in files() {
        let whole = open(&file, &Limits::default()).unwrap().to_string();
        let (asked, program) = opened(&file, None);
        assert_eq!((program.unwrap().to_string(), asked), (whole.clone(), file.len() as u64), "{name}");
        let program = Opening::read(&mut Cursor::new(&file), &Limits::default()).unwrap();
        assert_eq!(program.to_string(), whole, "{name}");
    }
}

#[test]
fn a_hash_is_that_of_the_whole_file() {
    for (name, file) in files() {
        let error = opened(&file, Some([0; 32])).1.err().unwrap();
        assert_eq!(error.code(), Code::ArchiveChecksum, "{name}: {error}");
        let found = error.message().split_whitespace().find(|it| it.len() > 64).unwrap()[..64].to_string();
        let hash: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&found[2 * at..2 * at + 2], 16).unwrap()).collect();
        opened(&file, Some(hash.clone().try_into().unwrap())).1.unwrap();
        // What nothing else would find: the date of the first entry.
        if file.starts_with(b"PK") {
            let mut other = file.clone();
            other[10] ^= 1;
            opened(&other, None).1.unwrap();
            let error = opened(&other, Some(hash.try_into().unwrap())).1.err().unwrap();
            assert_eq!(error.code(), Code::ArchiveChecksum, "{name}: {error}");
        }
    }
}

#[test]
fn what_is_no_program_is_refused_as_it_is_from_memory() {
    for bytes in [&b""[..], b"<html>", b"PK\x03\x04", &[7; 100_000]] {
        let error = open(bytes, &Limits::default()).err().unwrap();
        assert_eq!(opened(bytes, None).1.err().unwrap().to_string(), error.to_string());
        assert_eq!(Opening::read(&mut Cursor::new(bytes), &Limits::default()).err().unwrap(), error);
    }
    let limits = Limits { archive_bytes: 50_000, ..Limits::default() };
    let mut opening = Opening::new(100_000, &limits, None);
    let tail = opening.next_request().unwrap();
    let error = opening.feed(tail.id, &[7; 1 << 16]).unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded, "nothing more is asked for");
}

#[test]
fn what_was_not_asked_for_is_refused() {
    let mut opening = Opening::new(1000, &Limits::default(), None);
    assert_eq!(opening.feed(0, b"early").unwrap_err().code(), Code::InvalidArgument);
    let tail = opening.next_request().unwrap();
    assert_eq!(opening.next_request(), None);
    assert_eq!(opening.feed(tail.id, &[0; 1001]).unwrap_err().code(), Code::InvalidArgument);
    opening.feed(tail.id, &[0; 10]).unwrap();
    assert_eq!(opening.finish().err().unwrap().message(), "the file was cut off");
}
