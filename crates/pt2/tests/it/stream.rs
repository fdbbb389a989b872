//! Archives that come by ranges: which bytes are asked for, and when one is refused.

use std::path::Path;
use tracefx_core::{Code, Tensor};
use tracefx_pt2::{ArchiveStream, Limits, LoadOptions, Order, Request, SaveOptions, load, load_archive, save};

/// A program with weights of 8 MiB, 3 MiB and 40 bytes, as `save` writes it.
fn large() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs/tied_and_views/model.pt2");
    let mut program = load(&std::fs::read(path).unwrap(), &LoadOptions::default()).unwrap();
    let entry = program.state_dict.values().next().unwrap().clone();
    for (name, n) in [("large", 2 << 20), ("middle", 3 << 18), ("small", 10)] {
        let numbers: Vec<f32> = (0..n).map(|it| it as f32).collect();
        let tensor = Tensor::from_slice(&numbers, &[n]).unwrap();
        program.state_dict.insert(name.into(), tracefx_export::StateEntry { tensor, ..entry.clone() });
    }
    let mut file = Vec::new();
    save(&program, &SaveOptions::default(), &mut file).unwrap();
    file
}

fn begun(file: &[u8], tail: usize, order: Order) -> ArchiveStream {
    let tail = file[file.len() - tail..].to_vec();
    ArchiveStream::new(file.len() as u64, tail, order, &LoadOptions::default()).unwrap()
}

fn bytes<'a>(file: &'a [u8], request: &Request) -> &'a [u8] {
    &file[request.range.start as usize..request.range.end as usize]
}

/// Reads a whole file, and gives the ranges in the order in which they were asked for.
fn requests(file: &[u8], tail: usize, order: Order) -> Vec<(u64, u64)> {
    let mut stream = begun(file, tail, order);
    let mut asked = Vec::new();
    while let Some(request) = stream.next_request() {
        asked.push((request.range.start, request.range.end));
        bytes(file, &request).chunks(100_000).for_each(|it| stream.feed(request.id, it).unwrap());
    }
    let program = load_archive(stream.finish().unwrap(), &LoadOptions::default()).unwrap();
    let numbers = program.state_dict["large"].tensor.to_vec::<f32>().unwrap();
    assert_eq!((numbers.len(), numbers[12_345], numbers[2_000_001]), (2 << 20, 12_345.0, 2_000_001.0));
    asked
}

#[test]
fn each_byte_is_asked_for_once_and_no_more_than_a_weight_at_a_time() {
    let file = large();
    for (tail, order) in [(98, Order::ProgramFirst), (5000, Order::ProgramFirst), (98, Order::OfTheFile)] {
        let mut asked = requests(&file, tail, order);
        let longest = asked.iter().map(|(start, end)| end - start).max().unwrap();
        assert!(longest < (8 << 20) + 1000, "{longest} bytes were asked for at once");
        let is_ascending = asked[usize::from(tail == 98)..].is_sorted();
        assert_eq!(is_ascending, order == Order::OfTheFile, "{asked:?}");
        asked.sort_unstable();
        asked.push(((file.len() - tail) as u64, file.len() as u64));
        assert_eq!(asked[0].0, 0);
        assert!(asked.windows(2).all(|it| it[0].1 == it[1].0), "{asked:?}");
    }
}

#[test]
fn a_small_file_comes_with_its_end() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs/cond_simple/model.pt2");
    let file = std::fs::read(path).unwrap();
    let mut stream = begun(&file, file.len(), Order::ProgramFirst);
    assert_eq!(stream.next_request(), None);
    load_archive(stream.finish().unwrap(), &LoadOptions::default()).unwrap();
}

#[test]
fn a_program_that_is_refused_is_refused_before_its_weights_come() {
    let mut file = large();
    let needle = b"\"schema_version\"";
    let at = file.windows(needle.len()).position(|it| it == needle).unwrap();
    file[at + 1..at + 7].copy_from_slice(b"SCHEMA");
    let mut stream = begun(&file, 98, Order::ProgramFirst);
    let mut asked = 0;
    let error = loop {
        let request = stream.next_request().unwrap();
        asked += request.range.end - request.range.start;
        if let Err(error) = stream.feed(request.id, bytes(&file, &request)) {
            break error;
        }
    };
    assert_eq!(error.code(), Code::ArchiveChecksum, "{error}");
    assert!(asked < 100_000, "{asked} bytes were asked for");
}

#[test]
fn what_is_missing_and_what_was_not_asked_for_is_refused() {
    let file = large();
    let mut stream = begun(&file, 98, Order::ProgramFirst);
    assert_eq!(stream.feed(0, b"early").unwrap_err().code(), Code::InvalidArgument);
    let directory = stream.next_request().unwrap();
    assert_eq!(stream.next_request(), None, "where entries lie is not known yet");
    stream.feed(directory.id, bytes(&file, &directory)).unwrap();
    let first = stream.next_request().unwrap();
    stream.feed(first.id, &bytes(&file, &first)[..10]).unwrap();
    assert_eq!(stream.feed(77, b"other").unwrap_err().code(), Code::InvalidArgument);
    let error = stream.finish().err().unwrap();
    assert!(error.message().starts_with("the file was cut off: "), "{error}");
    let directory_only = begun(&file, 98, Order::ProgramFirst);
    assert_eq!(directory_only.finish().err().unwrap().code(), Code::ArchiveMalformed);
}

#[test]
fn a_length_that_lies_is_refused_by_its_limit() {
    let options = LoadOptions { limits: Limits { archive_bytes: 1000, ..Limits::default() }, ..Default::default() };
    let error = ArchiveStream::new(1001, vec![0; 98], Order::ProgramFirst, &options).err().unwrap();
    assert_eq!(error.code(), Code::LimitExceeded);
}
