//! A file of any bytes is refused with a typed error, or read and then written as it was.
//!
//! An input is either a file, whose checksum is set right first, or a list of sections, of which a file is made whose
//! header and section table are right: each is the number of its kind, its length (two bytes) and its bytes.

use tracefx_core::Storage;
use tracefx_wire::format::{
    ALIGNMENT, CHECKSUM_AT, ENTRY_LEN, HAS_CHECKSUM, HEADER_LEN, MAGIC, MAJOR, MINOR, Tag, WIDE, WIDE_ALIGNMENT,
};
use tracefx_wire::{
    Limits, Options, Outline, decode_graph, decode_module, decode_program, encode_graph, encode_module, encode_program,
    program_storages, storages,
};

pub(crate) fn check(input: &[u8]) {
    let file = if input.starts_with(&MAGIC) { checked(input) } else { assembled(input) };
    let limits = Limits::default();
    let Ok(outline) = Outline::read(&file, &limits) else { return };
    let has = |tag: Tag| outline.sections.iter().any(|it| it.tag() == Some(tag));
    let options = Options { checksum: outline.has_checksum, weights: has(Tag::Data), names: has(Tag::Nams) };
    let weights = if has(Tag::Data) { vec![] } else { beside(&file, &outline) };
    // Sections that are not known are skipped, and a newer minor version is not what is written.
    let is_comparable = outline.version == (MAJOR, MINOR) && outline.sections.iter().all(|it| it.tag().is_some());
    let check = |again: Vec<u8>| {
        let at = again.iter().zip(&file).position(|(again, it)| again != it).unwrap_or(again.len().min(file.len()));
        assert!(again == file || !is_comparable, "what was read is written in another way from byte {at} on");
    };
    if let Ok(graph) = decode_graph(&file, &limits) {
        check(encode_graph(&graph, &options).unwrap());
        let _ = (graph.to_string(), graph.lint(None));
    }
    if let Ok(module) = decode_module(&file, &weights, &limits) {
        check(encode_module(&module, &options).unwrap());
        let bytes = |it: Vec<Storage>| it.iter().map(Storage::len).sum::<usize>();
        assert!(bytes(storages(&module).unwrap()) <= file.len() + bytes(weights.clone()));
    }
    if let Ok(program) = decode_program(&file, &weights, &limits) {
        check(encode_program(&program, &options).unwrap());
        drop(program_storages(&program).unwrap());
    }
}

/// The file with the checksum that it should have.
fn checked(input: &[u8]) -> Vec<u8> {
    let mut file = input.to_vec();
    if file.len() >= HEADER_LEN && file[12] & HAS_CHECKSUM as u8 != 0 {
        file[CHECKSUM_AT..CHECKSUM_AT + 4].fill(0);
        let checksum = crc32fast::hash(&file);
        file[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
    }
    file
}

/// A file of these sections.
fn assembled(mut input: &[u8]) -> Vec<u8> {
    let mut sections = Vec::new();
    while let Some((&[kind, low, high], rest)) = input.split_first_chunk() {
        let (bytes, rest) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes([low, high]))));
        sections.push((Tag::ALL[usize::from(kind) % Tag::ALL.len()], bytes));
        input = rest;
    }
    sections.sort_by_key(|(tag, _)| *tag);
    let (mut table, mut body) = (Vec::new(), Vec::new());
    let start = HEADER_LEN + ENTRY_LEN * sections.len();
    for (tag, bytes) in &sections {
        let alignment = if tag.flags() & WIDE != 0 { WIDE_ALIGNMENT } else { ALIGNMENT };
        let offset = (start + body.len()).next_multiple_of(alignment);
        body.resize(offset - start, 0);
        body.extend_from_slice(bytes);
        table.extend([tag.code().to_le_bytes(), tag.flags().to_le_bytes()].concat());
        table.extend([(offset as u64).to_le_bytes(), (bytes.len() as u64).to_le_bytes()].concat());
    }
    let mut file = [&MAGIC[..], &MAJOR.to_le_bytes(), &MINOR.to_le_bytes()].concat();
    file.extend((sections.len() as u32).to_le_bytes());
    file.extend([0; 4]);
    file.extend(((start + body.len()) as u64).to_le_bytes());
    file.extend([0; 8]);
    file.extend(table);
    file.extend(body);
    file
}

/// Storages of the lengths that the file says that it needs beside it, unless they are large.
fn beside(file: &[u8], outline: &Outline) -> Vec<Storage> {
    let Some(index) = outline.sections.iter().find(|it| it.tag() == Some(Tag::Tens)) else { return vec![] };
    let index = &file[index.offset..index.offset + index.len];
    let count = index.first_chunk().map_or(0, |it| u32::from_le_bytes(*it) as usize);
    let lens = index.chunks_exact(8).skip(1).take(count);
    let lens = lens.map(|it| u64::from_le_bytes(it.try_into().expect("the chunks have eight bytes")));
    lens.map_while(|len| Storage::zeroed(usize::try_from(len).ok().filter(|&it| it <= 4096)?).ok()).collect()
}
