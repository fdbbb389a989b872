use super::streamed::streamed;
use super::zip_writer::{End, Entry, deflated, entry, zip, zip_with};
use tracefx_core::Code;
use tracefx_pt2::{Archive, Container, Limits, LoadOptions, Order};

/// The smallest archive that has the parts of one of PyTorch 2.13.
fn parts() -> Vec<Entry> {
    vec![
        entry("m/data/weights/weight_0", [7u8; 40]),
        entry("m/data/weights/model_weights_config.json", "{\"config\": {}}"),
        entry("m/data/constants/model_constants_config.json", "{\"config\": {}}"),
        entry("m/models/model.json", "{}"),
        entry("m/archive_format", "pt2"),
        entry("m/archive_version", "0"),
        entry("m/byteorder", "little"),
    ]
}

fn with(change: impl FnOnce(&mut Vec<Entry>)) -> Vec<u8> {
    let mut entries = parts();
    change(&mut entries);
    zip(&entries)
}

#[track_caller]
fn refused(bytes: &[u8], options: &LoadOptions, code: Code, part: &str) {
    let read_all = |archive: Archive<'_>| archive.entries().try_for_each(|name| archive.read(name).map(drop));
    let in_memory = Archive::open(bytes, options).and_then(read_all);
    let error = in_memory.expect_err("a hostile archive was accepted");
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(part), "{error}");
    // The same file by ranges; what has no end record is nothing to begin with.
    for tail in [98, 160, usize::MAX] {
        let by_ranges = streamed(bytes, tail, 7, Order::OfTheFile, options).and_then(read_all);
        let error = by_ranges.expect_err("a hostile archive was accepted by ranges");
        assert_eq!(error.code(), code, "{error}, with a tail of {tail}");
        let is_end = error.message().contains("no end record");
        assert!(is_end || error.to_string().contains(part), "{error}, with a tail of {tail}");
    }
}

#[track_caller]
fn malformed(bytes: &[u8], part: &str) {
    refused(bytes, &LoadOptions::default(), Code::ArchiveMalformed, part);
}

#[test]
fn an_honest_archive_is_accepted_in_every_form() {
    let accepted = |bytes: &[u8], options: &LoadOptions| {
        let archive = Archive::open(bytes, options).unwrap();
        assert_eq!((archive.container(), archive.program_names()), (Container::RawWeights, vec!["model"]));
        assert_eq!(&*archive.read("m/data/weights/weight_0").unwrap(), &[7; 40]);
        for tail in [98, 150, 400, 700, usize::MAX] {
            let by_ranges = streamed(bytes, tail, 11, Order::OfTheFile, options).unwrap();
            assert_eq!(by_ranges.container(), Container::RawWeights);
            assert!(archive.entries().eq(by_ranges.entries()));
            for name in archive.entries() {
                assert_eq!(archive.read(name).unwrap(), by_ranges.read(name).unwrap(), "{name}");
            }
        }
    };
    let options = LoadOptions::default();
    accepted(&zip(&parts()), &options);
    accepted(&with(|it| it.iter_mut().for_each(|it| it.streamed = true)), &options);
    accepted(&zip_with(&parts(), &End { zip64: true, ..End::default() }), &options);
    let wide = End {
        zip64: true,
        n_entries: Some(0xffff),
        directory_size: Some(u32::MAX),
        directory_offset: Some(u32::MAX),
        ..End::default()
    };
    accepted(&zip_with(&parts(), &wide), &options);
    let folders = with(|it| it.insert(0, entry("m/", "")));
    accepted(&folders, &options);
    let compressed = with(|it| it[0] = deflated("m/data/weights/weight_0", &[7; 40]));
    accepted(&compressed, &LoadOptions { allow_deflate: true, ..LoadOptions::default() });
}

#[test]
fn what_is_not_a_zip_file_says_so() {
    for bytes in [&b""[..], b"PK", b"hello, world", b"\x80\x02}q\x00.", &[0; 4096], &[0xff; 4096]] {
        malformed(bytes, "not a whole zip file");
    }
    malformed(b"PK\x03\x04 and no more", "probably cut off");
}

#[test]
fn every_truncation_is_refused() {
    let whole = zip_with(&parts(), &End { zip64: true, ..End::default() });
    for len in 0..whole.len() {
        assert!(Archive::open(&whole[..len], &LoadOptions::default()).is_err(), "cut at {len}");
        let by_ranges = streamed(&whole[..len], 98, 50, Order::ProgramFirst, &LoadOptions::default());
        assert!(by_ranges.is_err(), "cut at {len}, by ranges");
    }
}

#[test]
fn a_prefix_a_suffix_and_gaps_are_refused() {
    let whole = zip(&parts());
    malformed(&[&b"#!/bin/sh\n"[..], &whole].concat(), "");
    malformed(&[&whole[..], b"tail"].concat(), "");
    malformed(&[&whole[..], &whole].concat(), "");
    malformed(&zip_with(&parts(), &End { comment: whole.clone(), ..End::default() }), "");
    malformed(&zip_with(&parts(), &End { comment: b"hello".to_vec(), ..End::default() }), "comment");
    malformed(&zip_with(&parts(), &End { before: vec![0; 7], ..End::default() }), "");
    malformed(&with(|it| it[2].gap = b"hidden".to_vec()), "6 bytes after entry");
    malformed(
        &with(|it| {
            it[2].streamed = true;
            it[2].gap = vec![0];
        }),
        "belong to nothing",
    );
}

#[test]
fn overlapping_entries_are_refused() {
    malformed(&with(|it| it.push(Entry { offset: Some(0), ..it[0].clone() })), "");
    // The quoted overlap: the payload of one entry holds the whole of the next.
    let inner = zip(&parts()[..1]);
    let outer = entry("m/outer", inner);
    let nested = Entry { offset: Some(30 + 7), ..entry("m/data/weights/weight_0", [7u8; 40]) };
    let mut bytes = vec![outer];
    bytes.push(Entry { payload: Vec::new(), ..nested });
    malformed(&zip(&bytes), "");
}

#[test]
fn two_entries_of_one_name_are_refused() {
    malformed(&with(|it| it.push(it[3].clone())), "two entries");
}

#[test]
fn entries_outside_of_the_file_are_refused() {
    for offset in [1, 0x7fff_ffff, u32::MAX - 1, u32::MAX] {
        malformed(&with(|it| it[1].offset = Some(offset)), "");
    }
    for size in [41, 0x7fff_ffff, u32::MAX - 1, u32::MAX] {
        malformed(&with(|it| (it[0].packed, it[0].size) = (size, size)), "");
    }
}

#[test]
fn lies_of_zip64_are_refused() {
    let zip64 = |change: &dyn Fn(&mut End)| {
        let mut end = End { zip64: true, ..End::default() };
        change(&mut end);
        malformed(&zip_with(&parts(), &end), "");
    };
    for value in [0, 1, 0xffff_ffff, u64::MAX / 2, u64::MAX] {
        zip64(&|end| end.zip64_entries = Some(value));
        zip64(&|end| end.zip64_size = Some(value));
        zip64(&|end| end.zip64_offset = Some(value));
        zip64(&|end| end.locator_offset = Some(value));
    }
    // An extra field that states sizes near the end of 64 bits.
    for (packed, offset) in [(u64::MAX, 0u64), (u64::MAX - 29, 0), (40, u64::MAX), (1 << 63, 1 << 63)] {
        let field = [&[1, 0, 24, 0][..], &packed.to_le_bytes(), &packed.to_le_bytes(), &offset.to_le_bytes()].concat();
        malformed(
            &with(|it| {
                (it[0].packed, it[0].size, it[0].offset) = (u32::MAX, u32::MAX, Some(u32::MAX));
                it[0].central_extra = field;
            }),
            "",
        );
    }
}

#[test]
fn lies_of_the_end_record_are_refused() {
    for value in [0, 1, 6, 8, 0xffff] {
        malformed(&zip_with(&parts(), &End { n_entries: Some(value), ..End::default() }), "");
    }
    for value in [0, 1, 0x7fff_ffff, u32::MAX] {
        malformed(&zip_with(&parts(), &End { directory_size: Some(value), ..End::default() }), "");
        malformed(&zip_with(&parts(), &End { directory_offset: Some(value), ..End::default() }), "");
    }
}

#[test]
fn local_headers_must_agree_with_the_directory() {
    malformed(&with(|it| it[3].local_name = b"m/models/other.json".to_vec()), "contradicts the zip directory");
    let mut bytes = zip(&parts());
    // The checksum, sizes, method and flags of the first local header, one at a time.
    for at in [6, 8, 14, 18, 22] {
        bytes[at] ^= 1;
        malformed(&bytes, "contradicts the zip directory");
        bytes[at] ^= 1;
    }
    assert!(Archive::open(&bytes, &LoadOptions::default()).is_ok());
}

#[test]
fn changed_bytes_are_found_by_their_checksum() {
    let bytes = with(|it| it[0].payload[3] ^= 0x10);
    refused(&bytes, &LoadOptions::default(), Code::ArchiveChecksum, "weight_0");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let names = [
        "/etc/passwd",
        "../x",
        "m/../../x",
        "m/./x",
        "m//x",
        "m\\x",
        "..\\x",
        "m/a\0b",
        "m/a\nb",
        "m/..",
        "",
        "//x",
        "m/x/../y",
        "\u{7f}",
        "m/..//x",
        "C:\\Windows\\x",
    ];
    for name in names {
        malformed(&with(|it| it.push(entry(name, "x"))), "plain relative path");
    }
    let not_text = with(|it| {
        (it[0].name, it[0].local_name) = (vec![0xff, 0xfe], vec![0xff, 0xfe]);
    });
    malformed(&not_text, "not UTF-8");
}

#[test]
fn encryption_and_unknown_compression_are_refused() {
    malformed(&with(|it| it[0].flags |= 1), "encrypted");
    for method in [1, 9, 12, 14, 93, 95, 98, 99] {
        let bytes = with(|it| it[0].method = method);
        refused(&bytes, &LoadOptions::default(), Code::ArchiveCompressed, "compression method");
    }
}

#[test]
fn bombs_are_refused() {
    let allow = LoadOptions { allow_deflate: true, ..LoadOptions::default() };
    let bomb = with(|it| it.push(deflated("m/extra/bomb", &vec![0; 10_000_000])));
    refused(&bomb, &LoadOptions::default(), Code::ArchiveCompressed, "allow_deflate");
    refused(&bomb, &allow, Code::LimitExceeded, "inflate_ratio");
    let small = Limits { inflated_bytes: 1_000_000, ..Limits::default() };
    refused(&bomb, &LoadOptions { limits: small, ..allow.clone() }, Code::LimitExceeded, "inflated_bytes");
    // One that states a harmless size.
    let liar = with(|it| it.push(Entry { size: 100, ..deflated("m/extra/bomb", &vec![0; 10_000_000]) }));
    refused(&liar, &allow, Code::ArchiveMalformed, "does not inflate to the 100 bytes");
    let hidden = with(|it| {
        let mut bomb = deflated("m/extra/two", b"first stream");
        bomb.payload.extend(b"second stream");
        bomb.packed += 13;
        it.push(bomb);
    });
    refused(&hidden, &allow, Code::ArchiveMalformed, "does not inflate");
}

#[test]
fn limits_on_the_archive_hold_and_are_named() {
    let bytes = zip(&parts());
    let check = |limits: Limits, name: &str| {
        refused(&bytes, &LoadOptions { limits, ..LoadOptions::default() }, Code::LimitExceeded, name);
    };
    check(Limits { archive_bytes: 100, ..Limits::default() }, "`archive_bytes` is 100");
    check(Limits { entries: 6, ..Limits::default() }, "`entries` is 6, but the file asks for 7");
    check(Limits { directory_bytes: 100, ..Limits::default() }, "`directory_bytes`");
    check(Limits { name_bytes: 10, ..Limits::default() }, "`name_bytes`");
    check(Limits { json_bytes: 2, ..Limits::default() }, "`json_bytes`");
}

#[test]
fn other_kinds_of_archive_are_named() {
    let wrong = |entries: &[Entry], part: &str| {
        refused(&zip(entries), &LoadOptions::default(), Code::ArchiveWrongKind, part);
    };
    wrong(&[entry("m/data.pkl", "\x02."), entry("m/version", "3")], "torch.save");
    wrong(&[entry("m/data.pkl", "\x02."), entry("m/code/a.py", "")], "TorchScript");
    wrong(&[entry("a.txt", "hello")], "no exported program");
    wrong(&[], "no exported program");
    let aoti = [
        entry("m/data/aotinductor/model/x.so", "ELF"),
        entry("m/archive_format", "pt2"),
        entry("m/archive_version", "0"),
    ];
    wrong(&aoti, "AOTInductor");
    wrong(&aoti[1..], "no program");
    let changed = |at: usize, text: &str| {
        let mut entries = parts();
        entries[at] = entry(std::str::from_utf8(&entries[at].name.clone()).unwrap(), text);
        entries
    };
    wrong(&changed(4, "onnx"), "format");
    wrong(&changed(6, "big"), "byte order");
    refused(&zip(&changed(5, "1")), &LoadOptions::default(), Code::SchemaVersion, "version");
}
