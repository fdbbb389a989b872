//! The numbers of the format: they change with a version, or not at all.

use std::fmt::Write;
use tracefx_core::{DType, Layout, MemoryFormat};
use tracefx_export::{InputKind, OutputKind};
use tracefx_ir::Opcode;
use tracefx_wire::format::{self, Tag};

/// Every number that stands in a file, with its name.
fn table() -> String {
    let mut out = format!("magic {:?} header {} entry {}\n", format::MAGIC, format::HEADER_LEN, format::ENTRY_LEN);
    let alignments = (format::ALIGNMENT, format::WIDE_ALIGNMENT);
    writeln!(out, "alignments {alignments:?} checksum {} {}", format::CHECKSUM_AT, format::HAS_CHECKSUM).unwrap();
    writeln!(out, "payload {} exact {}", format::MAX_PAYLOAD, format::EXACT).unwrap();
    for tag in Tag::ALL {
        writeln!(out, "section {tag} {:#010x} {}", tag.code(), tag.flags()).unwrap();
    }
    for table in format::TABLES {
        for (name, number) in table.numbers {
            writeln!(out, "{} {name} {number}", table.name).unwrap();
        }
    }
    let mut names = |what: &str, names: &[&str]| {
        for (number, name) in names.iter().enumerate() {
            writeln!(out, "{what} {name} {number}").unwrap();
        }
    };
    names("opcode", &Opcode::ALL.map(Opcode::name));
    names("dtype", &DType::ALL.iter().map(|it| it.name()).collect::<Vec<_>>());
    names("layout", &Layout::ALL.iter().map(|it| it.name()).collect::<Vec<_>>());
    names("memory_format", &MemoryFormat::ALL.iter().map(|it| it.name()).collect::<Vec<_>>());
    names("input", &InputKind::ALL.iter().map(|it| it.name()).collect::<Vec<_>>());
    names("output", &OutputKind::ALL.iter().map(|it| it.name()).collect::<Vec<_>>());
    out
}

#[test]
fn numbers_do_not_change_without_a_version() {
    let (version, table) = ((format::MAJOR, format::MINOR), table());
    let hash = crc32fast::hash(table.as_bytes());
    assert_eq!(
        (version, hash),
        ((1, 0), 1_966_500_586),
        "the numbers of the format changed; files that were written before must still be read. Raise MINOR where \
         something was added that old readers may skip, else MAJOR, and write the new version and hash here:\n{table}"
    );
}

#[test]
fn enums_are_numbered_in_the_order_of_their_tables() {
    for (number, it) in Opcode::ALL.iter().enumerate() {
        assert_eq!(*it as usize, number);
    }
    for tag in Tag::ALL {
        assert_eq!(Tag::from_code(tag.code()), Some(*tag));
        assert_eq!(tag.code().to_le_bytes(), tag.name().as_bytes());
    }
}
