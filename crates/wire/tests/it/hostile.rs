//! Files that were made to do harm: each is refused, by the rule that it breaks.

use tracefx_core::Code;
use tracefx_ir::Opcode;
use tracefx_wire::format::{
    ALIGNMENT, CRITICAL, ENTRY_LEN, HEADER_LEN, MAGIC, MAJOR, MAX_PAYLOAD, MINOR, Tag, WIDE, WIDE_ALIGNMENT, arg,
    attribute, sym, val,
};
use tracefx_wire::{Limits, MAX_DEPTH, decode_graph, decode_module, decode_program};

/// A section of a file: its tag as a word, its flags and its bytes.
type Section = (u32, u32, Vec<u8>);

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|it| it.to_le_bytes()).collect()
}

fn section(tag: Tag, words: &[u32]) -> Section {
    (tag.code(), tag.flags(), bytes(words))
}

fn strings(texts: &[&str]) -> Section {
    let mut words = vec![texts.len() as u32];
    let mut end = 0;
    for text in texts {
        end += text.len() as u32;
        words.push(end);
    }
    let mut res = bytes(&words);
    res.extend(texts.concat().into_bytes());
    res.resize(res.len().next_multiple_of(4), 0);
    (Tag::Strs.code(), Tag::Strs.flags(), res)
}

/// A file that is right but for what is in its sections.
fn file(sections: &[Section]) -> Vec<u8> {
    let mut table = Vec::new();
    let mut body = Vec::new();
    let start = HEADER_LEN + ENTRY_LEN * sections.len();
    for (code, flags, bytes) in sections {
        let alignment = if flags & WIDE != 0 { WIDE_ALIGNMENT } else { ALIGNMENT };
        let offset = (start + body.len()).next_multiple_of(alignment);
        body.resize(offset - start, 0);
        body.extend_from_slice(bytes);
        table.extend(code.to_le_bytes());
        table.extend(flags.to_le_bytes());
        table.extend((offset as u64).to_le_bytes());
        table.extend((bytes.len() as u64).to_le_bytes());
    }
    let mut res = MAGIC.to_vec();
    res.extend(MAJOR.to_le_bytes());
    res.extend(MINOR.to_le_bytes());
    res.extend((sections.len() as u32).to_le_bytes());
    res.extend([0; 4]);
    res.extend(((start + body.len()) as u64).to_le_bytes());
    res.extend([0; 8]);
    res.extend(table);
    res.extend(body);
    res
}

/// A node named `n` that calls `f` (strings 1 and 0) with these words as its only argument.
fn node(argument: &[u32]) -> Vec<u32> {
    let len = 6 + argument.len() as u32;
    let mut words = vec![Opcode::CallFunction as u32 | len << 8, 0, 1, 0, 1, 0];
    words.extend_from_slice(argument);
    words
}

fn graph_of(node: &[u32]) -> Vec<u8> {
    let words: Vec<u32> = std::iter::once(1).chain(node.iter().copied()).collect();
    file(&[strings(&["f", "n"]), section(Tag::Grph, &words)])
}

#[track_caller]
fn check(file: &[u8], code: Code, message: &str) {
    let limits = Limits::default();
    for error in [
        decode_graph(file, &limits).map(drop),
        decode_module(file, &[], &limits).map(drop),
        decode_program(file, &[], &limits).map(drop),
    ] {
        let error = error.expect_err("the file is refused");
        if error.code() == code && error.message().contains(message) {
            return;
        }
    }
    panic!("expected {code:?}, {message}; got {:?}", decode_graph(file, &limits).err());
}

#[track_caller]
fn malformed(file: &[u8], message: &str) {
    check(file, Code::WireMalformed, message);
}

/// The bytes of a file with a word changed.
fn with_word(mut file: Vec<u8>, at: usize, word: u32) -> Vec<u8> {
    file[at..at + 4].copy_from_slice(&word.to_le_bytes());
    file
}

#[test]
fn the_smallest_graph_is_accepted() {
    let graph = decode_graph(&graph_of(&node(&[arg::NONE])), &Limits::default()).unwrap();
    assert!(graph.to_string().contains("%n : [num_users=0] = call_function[target=f](args = (None,), kwargs = {})"));
}

#[test]
fn headers_are_checked() {
    let good = graph_of(&node(&[arg::NONE]));
    malformed(b"", "not in the tracefx format");
    malformed(b"PK\x03\x04", "not in the tracefx format");
    malformed(&good[..20], "ends early");
    check(&with_word(good.clone(), 4, 2), Code::WireVersion, "version 2.0");
    check(&with_word(good.clone(), 12, 2), Code::WireVersion, "unknown flags");
    malformed(&with_word(good.clone(), 8, u32::MAX), "4294967295 sections do not fit");
    malformed(&with_word(good.clone(), 24, 1), "unused words");
    malformed(&with_word(good.clone(), 12, 1), "checksum does not agree");
    malformed(&with_word(good.clone(), 20, 1), "the file says that it has");
    malformed(&[good.clone(), vec![0]].concat(), "the file says that it has");
}

#[test]
fn sections_are_checked() {
    let (strs, grph) = (strings(&["f", "n"]), section(Tag::Grph, &[0]));
    let code = u32::from_le_bytes(*b"EVIL");
    check(&file(&[strs.clone(), (code, CRITICAL, vec![])]), Code::WireVersion, "needs section EVIL");
    check(&file(&[strs.clone(), (code, 4, vec![])]), Code::WireVersion, "unknown flags");
    malformed(&file(&[grph.clone(), strs.clone()]), "in a wrong place");
    malformed(&file(&[strs.clone(), strs.clone()]), "there twice");
    malformed(&file(&[(Tag::Strs.code(), 0, vec![]), grph.clone()]), "has the flags");
    malformed(&file(std::slice::from_ref(&grph)), "section STRS is missing");
    malformed(&file(std::slice::from_ref(&strs)), "0 graphs for 1 modules");
    malformed(&file(&[strings(&[]), grph.clone(), grph.clone()]), "2 graphs for 1 modules");
    malformed(&file(&[strings(&[]), grph.clone(), section(Tag::Sign, &[])]), "no module that it belongs to");
    malformed(&file(&[strings(&[]), grph.clone(), section(Tag::Edit, &[])]), "the answer of a pass");

    // Two sections in one place, with a hole before, or with bytes between them.
    let good = file(&[strings(&[]), grph.clone()]);
    let entry = HEADER_LEN + ENTRY_LEN;
    malformed(&with_word(good.clone(), entry + 8, HEADER_LEN as u32 + 48), "was expected");
    malformed(&with_word(good.clone(), entry + 8, 96), "was expected");
    malformed(&with_word(good.clone(), entry + 12, 1), "was expected");
    malformed(&with_word(good.clone(), entry + 16, 5), "has 5 bytes, and there are 4");
    malformed(&with_word(good.clone(), entry + 16, 0), "follow the last section");
    malformed(&with_word(good.clone(), entry + 20, 1 << 31), "bytes, and there are 4");
    malformed(&with_word(good, HEADER_LEN + 2 * ENTRY_LEN + 4, 1), "are not zero");
}

#[test]
fn strings_are_checked() {
    let of = |words: &[u32], tail: &[u8]| {
        let mut text = bytes(words);
        text.extend_from_slice(tail);
        file(&[(Tag::Strs.code(), Tag::Strs.flags(), text), section(Tag::Grph, &[0])])
    };
    malformed(&of(&[u32::MAX], b""), "4294967295 strings are announced");
    malformed(&of(&[2, 4, 2], b"abcd"), "ends at 2, and the one before at 4");
    malformed(&of(&[1, 8], b"abcd"), "ends early");
    malformed(&of(&[1, 1], b"a\0\0\x01"), "not zero");
    malformed(&of(&[1, 4], b"ab\xff\xff"), "string 0 is not UTF-8");
    malformed(&of(&[2, 2, 4], b"abab"), "string 1 is there twice");
    malformed(&of(&[1, 4], b"abcd"), "nothing uses string 0");
    malformed(&of(&[1, 4], b"abcdefgh"), "left over");
}

#[test]
fn nodes_are_checked() {
    let head = Opcode::CallFunction as u32;
    malformed(&file(&[strings(&[]), section(Tag::Grph, &[u32::MAX])]), "4294967295 nodes are announced");
    malformed(&graph_of(&[6 | 6 << 8, 0, 1, 0, 0, 0]), "no opcode 6");
    malformed(&graph_of(&[head | 5 << 8, 0, 1, 0, 0, 0]), "at least 6 words");
    malformed(&graph_of(&[head | MAX_PAYLOAD << 8, 0, 1, 0, 0, 0]), "ends early");
    malformed(&graph_of(&[head | 6 << 8, 0, 1, 0, u32::MAX, 0]), "4294967295 arguments are announced");
    malformed(&graph_of(&[head | 6 << 8, 0, 1, 0, 0, u32::MAX]), "4294967295 keyword arguments are announced");
    malformed(&graph_of(&[head | 7 << 8, 0, 1, 0, 0, 0, 0]), "4 bytes are left over");
    malformed(&graph_of(&[head | 6 << 8, 1, 0, 0, 0, 0]), "string 1 is used before string 0");
    malformed(&graph_of(&[head | 6 << 8, 0, 7, 0, 0, 0]), "string 7 is used before string 1");
    malformed(&graph_of(&[head | 6 << 8, 0, 1, 9, 0, 0]), "string 8 is used before string 2");
    // The name `n` twice.
    let twice = [[2].as_slice(), &node(&[arg::NONE]), &node(&[arg::NONE])].concat();
    malformed(&file(&[strings(&["f", "n"]), section(Tag::Grph, &twice)]), "the name `n` is taken");
    // Keyword arguments with one key, and with a key of digits.
    let keywords = |keys: &[u32]| {
        let mut words = vec![1, head | (6 + 2 * keys.len() as u32) << 8, 0, 1, 0, 0, keys.len() as u32];
        keys.iter().for_each(|&key| words.extend([key, arg::NONE]));
        file(&[strings(&["f", "n", "10"]), section(Tag::Grph, &words)])
    };
    malformed(&keywords(&[1, 1]), "the key `n` is there twice");
    malformed(&keywords(&[2]), "`10` is not the name of a keyword argument");
}

#[test]
fn arguments_are_checked() {
    let argument = |words: &[u32]| graph_of(&node(words));
    malformed(&argument(&[arg::NODE]), "node 0 uses node 0, which is not before it");
    malformed(&argument(&[arg::NODE | 5 << 8]), "node 0 uses node 5");
    malformed(&argument(&[arg::BOOL | 2 << 8]), "neither true nor false");
    malformed(&argument(&[arg::NONE | 1 << 8]), "has the payload 1");
    malformed(&argument(&[arg::INT | 1 << 8, 0, 0]), "has the payload 1");
    malformed(&argument(&[arg::INT, 0]), "ends early");
    malformed(&argument(&[arg::TENSOR]), "no argument of kind 18 here");
    malformed(&argument(&[255]), "no argument of kind 255");
    malformed(&argument(&[arg::DTYPE | 99 << 8]), "no dtype 99");
    malformed(&argument(&[arg::LAYOUT | 99 << 8]), "no layout 99");
    malformed(&argument(&[arg::MEMORY_FORMAT | 99 << 8]), "no memory format 99");
    malformed(&argument(&[arg::DEVICE_INDEX, 1 << 31]), "31 bits");
    malformed(&argument(&[arg::LIST | MAX_PAYLOAD << 8]), "16777215 items are announced");
    malformed(&argument(&[arg::DICT | 1 << 8, 0]), "1 entries are announced");
    malformed(&argument(&[arg::DICT | 2 << 8, 0, arg::NONE, 0, arg::NONE]), "the key `f` is there twice");
    malformed(&argument(&[arg::SLICE, arg::NONE, arg::NONE]), "ends early");
    let device = file(&[strings(&["a b", "n"]), section(Tag::Grph, &[&[1], &node(&[arg::DEVICE])[..]].concat())]);
    malformed(&device, "`a b` is not a device");
    // Lists in lists, each of one item, and each that says that all the rest is in it.
    let nested = |levels: usize| {
        let mut words = vec![arg::LIST | 1 << 8; levels - 1];
        words.push(arg::NONE);
        argument(&words)
    };
    assert!(decode_graph(&nested(MAX_DEPTH), &Limits::default()).is_ok());
    check(&nested(MAX_DEPTH + 1), Code::LimitExceeded, "nested deeper than 64");
    check(&nested(100_000), Code::LimitExceeded, "nested deeper than 64");
}

#[test]
fn limits_are_kept() {
    let good = graph_of(&node(&[arg::NONE]));
    let refused = |limits: Limits| {
        let error = decode_graph(&good, &limits).unwrap_err();
        assert_eq!(error.code(), Code::LimitExceeded, "{error}");
    };
    refused(Limits { bytes: good.len() as u64 - 1, ..Limits::default() });
    refused(Limits { nodes: 0, ..Limits::default() });
    let module = file(&[strings(&["M"]), section(Tag::Mods, &[1, 0, 0, 0]), section(Tag::Grph, &[0])]);
    assert!(decode_module(&module, &[], &Limits::default()).is_ok());
    let error = decode_module(&module, &[], &Limits { modules: 0, ..Limits::default() }).unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded);
}

#[test]
fn modules_are_checked() {
    let modules = |words: &[u32], n_graphs: usize| {
        let mut sections = vec![strings(&["M", "a", "b"]), section(Tag::Mods, words)];
        sections.extend(vec![section(Tag::Grph, &[0]); n_graphs]);
        file(&sections)
    };
    let child = |index: u32| attribute::MODULE | index << 8;
    check(&modules(&[0], 0), Code::LimitExceeded, "0 modules");
    malformed(&modules(&[u32::MAX], 1), "4294967295 modules are announced");
    // A module that is its own child, a child of nobody, and a child of two.
    malformed(&modules(&[1, 0, 1, 0, 1, child(0)], 1), "module 0 stands where module 1 was expected");
    malformed(&modules(&[2, 0, 0, 0, 0, 0, 0], 2), "module 1 is in no other module");
    malformed(&modules(&[2, 0, 2, 0, 1, child(1), 2, child(1), 0, 0, 0], 2), "module 1 stands where module 2");
    malformed(&modules(&[1, 0, 1, 0, 1, 9], 1), "no attribute of kind 9");
    malformed(&modules(&[3, 0, 2, 0, 1, child(1), 1, child(2), 0, 0, 0, 0, 0, 0], 3), "`a` is there twice");
    malformed(&modules(&[1, 0, 0, 2, 1, 2, 1, 2], 1), "a key of the notes is there twice");
    malformed(&modules(&[1, 0, 1, 0, 1, attribute::PARAMETER], 1), "there is no tensor 0");
    // A chain of modules.
    let chain = |levels: u32| {
        let mut words = vec![levels];
        for level in 1..levels {
            words.extend([0, 1, 0, 1, child(level)]);
        }
        words.extend([0, 0, 0]);
        let mut sections = vec![strings(&["M", "a"]), section(Tag::Mods, &words)];
        sections.extend(vec![section(Tag::Grph, &[0]); levels as usize]);
        file(&sections)
    };
    assert!(decode_module(&chain(MAX_DEPTH as u32), &[], &Limits::default()).is_ok());
    malformed(&chain(MAX_DEPTH as u32 + 1), "module 64 stands where");
    malformed(&chain(1000), "module 64 stands where");
}

/// A module with one tensor, an attribute `a`, of these words, in a storage of 64 bytes.
fn tensor(storages: &[u32], words: &[u32], data: Option<usize>) -> Vec<u8> {
    let mut index = vec![storages.len() as u32 / 2, 1];
    index.extend_from_slice(storages);
    index.extend_from_slice(words);
    let mut sections = vec![
        strings(&["M", "a"]),
        section(Tag::Mods, &[1, 0, 1, 0, 1, attribute::BUFFER]),
        section(Tag::Grph, &[0]),
        section(Tag::Tens, &index),
    ];
    sections.extend(data.map(|len| (Tag::Data.code(), Tag::Data.flags(), vec![0; len])));
    file(&sections)
}

#[test]
fn tensors_stay_inside_their_storages() {
    const F32: u32 = 16;
    let storage = [64, 0];
    let view = |sizes: &[u64], strides: &[u64], offset: u64| {
        let mut words = vec![0, F32 | (sizes.len() as u32) << 8];
        for it in sizes.iter().chain(strides).chain([&offset]) {
            words.extend([*it as u32, (it >> 32) as u32]);
        }
        tensor(&storage, &words, Some(64))
    };
    assert!(decode_module(&view(&[4, 4], &[4, 1], 0), &[], &Limits::default()).is_ok());
    const MOST: u64 = (1 << 53) - 1;
    assert!(decode_module(&view(&[0, MOST], &[9, 9], 999), &[], &Limits::default()).is_ok());
    let out = |sizes: &[u64], strides: &[u64], offset: u64| {
        check(&view(sizes, strides, offset), Code::ViewOutOfBounds, "leaves its storage of 64 bytes");
    };
    out(&[4, 4], &[4, 1], 1);
    out(&[17], &[1], 0);
    out(&[2], &[MOST], 0);
    out(&[MOST, 2], &[0, MOST], 0);
    out(&[MOST, MOST], &[MOST, MOST], MOST);
    // Strides of zero make more elements than memory holds: of that no copy is ever asked for here.
    out(&[MOST, MOST], &[0, 0], 0);
    out(&[], &[], 16);
    for size in [MOST + 1, u64::MAX] {
        malformed(&view(&[1], &[size], 0), "does not fit this machine");
    }

    malformed(&tensor(&storage, &[0, F32, 0, 0], Some(60)), "ends early");
    malformed(&tensor(&storage, &[0, F32, 0, 0], Some(68)), "left over");
    malformed(&tensor(&[u32::MAX, (1 << 21) - 1], &[0, F32, 0, 0], Some(64)), "ends early");
    malformed(&tensor(&storage, &[0, F32, 0, 0], None), "it needs 1 storages, not 0");
    malformed(&tensor(&storage, &[1, F32, 0, 0], Some(64)), "looks at storage 1 before storage 0");
    malformed(&tensor(&[64, 0, 0, 0], &[0, F32, 0, 0], Some(64)), "no tensor looks at storage 1");
    malformed(&tensor(&storage, &[0, 99, 0, 0], Some(64)), "no dtype 99");
    malformed(&tensor(&storage, &[0, F32 | MAX_PAYLOAD << 8, 0, 0], Some(64)), "16777215 dimensions are announced");
    let data = (Tag::Data.code(), Tag::Data.flags(), vec![]);
    malformed(&file(&[strings(&[]), section(Tag::Grph, &[0]), data]), "there are no tensors");
}

#[test]
fn storages_do_not_hide_bytes_between_them() {
    const U8: u32 = 1;
    let words = [2, 2, 1, 0, 1, 0, 0, U8, 0, 0, 1, U8, 0, 0];
    let mods = [1, 0, 2, 0, 1, attribute::BUFFER, 2, attribute::BUFFER | 1 << 8];
    let with = |hidden: u8| {
        let mut data = vec![0; 65];
        data[30] = hidden;
        file(&[
            strings(&["M", "a", "b"]),
            section(Tag::Mods, &mods),
            section(Tag::Grph, &[0]),
            section(Tag::Tens, &words),
            (Tag::Data.code(), Tag::Data.flags(), data),
        ])
    };
    assert!(decode_module(&with(0), &[], &Limits::default()).is_ok());
    malformed(&with(1), "the bytes between two storages are not zero");
}

#[test]
fn notes_are_checked() {
    let meta = |texts: &[&str], words: &[u32]| {
        let graph = section(Tag::Grph, &[&[1], &node(&[arg::NONE])[..]].concat());
        let syms = texts.iter().map(|it| (Tag::Syms.code(), CRITICAL, strings(&[it]).2));
        let mut sections = vec![strings(&["f", "n", "k", "val"])];
        sections.extend(syms);
        sections.extend([graph, section(Tag::Meta, words)]);
        file(&sections)
    };
    malformed(&meta(&[], &[0]), "the section is empty");
    malformed(&meta(&[], &[u32::MAX, 0, 0, 0]), "4294967295 records are announced");
    malformed(&meta(&[], &[1, 1, 0, 1, 2, 2]), "a record of node 1 stands where one of 0 to 1 may");
    malformed(&meta(&[], &[2, 0, 0, 1, 2, 2, 0, 0, 1, 2, 2]), "a record of node 0 stands where one of 1 to 1 may");
    malformed(&meta(&[], &[1, 0, 0, 0]), "the record of node 0 is empty");
    malformed(&meta(&[], &[1, 0, 0, 2, 2, 2, 2, 2]), "the key `k` is there twice");
    malformed(&meta(&[], &[1, 0, 0, 2, 2, 2, 3, 2]), "the key `val` is there twice");
    malformed(&meta(&[], &[1, 0, 1, 0, 99]), "no abstract value of kind 99");
    malformed(&meta(&[], &[1, 0, 1, 0, val::NUMBER, 99]), "begins no number");
    malformed(&meta(&[], &[1, 0, 1, 0, val::NUMBER, sym::EXPR]), "there is no string 0");
    malformed(&meta(&[], &[1, 0, 1, 0, val::TENSOR, arg::DEVICE, 0, 0, sym::BOOL]), "boolean stands for an int");
    malformed(&meta(&["x"], &[1, 0, 0, 1, 2, 2]), "SYMS: nothing uses string 0");
    for text in ["Integer(3)", "s0", "__import__('os')", "Add(Integer(1), Symbol('s0', integer=True))", "((((", ""] {
        malformed(&meta(&[text], &[1, 0, 1, 0, val::NUMBER, sym::EXPR]), "META at byte");
    }
    let deep = vec![val::LIST | 1 << 8; 1000];
    check(&meta(&[], &[&[1, 0, 1, 0], &deep[..]].concat()), Code::LimitExceeded, "nested deeper than 64");
}

#[test]
fn a_call_needs_little_stack() {
    // Readers recur to a bounded depth, so that a thread of a browser's size is enough.
    let run = || {
        let mut words = vec![arg::LIST | 1 << 8; MAX_DEPTH - 1];
        words.push(arg::NONE);
        let file = graph_of(&node(&words));
        let graph = decode_graph(&file, &Limits::default()).unwrap();
        graph.to_string().len()
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap();
    assert!(thread.join().unwrap() > MAX_DEPTH);
}
