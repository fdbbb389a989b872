//! `wire.ts`: the numbers of the byte format.

use super::quoted;
use std::fmt::Write;
use tracefx_core::{Layout, MemoryFormat};
use tracefx_export::{InputKind, OutputKind};
use tracefx_ir::Opcode;
use tracefx_wire::MAX_DEPTH;
use tracefx_wire::format::{self, Tag};

pub(super) fn body() -> String {
    let mut out = String::new();
    let mut number = |doc: &str, name: &str, value: u64| {
        writeln!(out, "/** {doc} */\nexport const {name} = {value};").expect("writing to a string succeeds");
    };
    number("The first word of a file.", "MAGIC", u32::from_le_bytes(format::MAGIC).into());
    number("Readers refuse another major version.", "MAJOR", format::MAJOR.into());
    number("The minor version that is written.", "MINOR", format::MINOR.into());
    number("Bytes of the header.", "HEADER_LENGTH", format::HEADER_LEN as u64);
    number("Bytes of one entry of the section table.", "ENTRY_LENGTH", format::ENTRY_LEN as u64);
    number("The header's flag that says that the checksum is there.", "HAS_CHECKSUM", format::HAS_CHECKSUM.into());
    number("Where the checksum stands in the header.", "CHECKSUM_AT", format::CHECKSUM_AT as u64);
    number("A section's flag: a reader must know the section.", "CRITICAL", format::CRITICAL.into());
    number("A section's flag: it has the wide alignment.", "WIDE", format::WIDE.into());
    number("Where sections begin: at multiples of this.", "ALIGNMENT", format::ALIGNMENT as u64);
    number("Where wide sections and storages begin.", "WIDE_ALIGNMENT", format::WIDE_ALIGNMENT as u64);
    number("The largest number in the upper 24 bits of a word.", "MAX_PAYLOAD", format::MAX_PAYLOAD.into());
    number("How deep values and modules may be nested.", "MAX_DEPTH", MAX_DEPTH as u64);

    out.push_str("\n/** The kinds of sections in file order: their letters as a word, and their flags. */\n");
    out.push_str("export const SECTIONS = {\n");
    for tag in Tag::ALL {
        writeln!(out, "  {tag}: {{ code: {}, flags: {} }},", tag.code(), tag.flags())
            .expect("writing to a string succeeds");
    }
    out.push_str("} as const;\n\n/** The letters of a section. */\nexport type SectionName = keyof typeof SECTIONS;\n");

    for format::Table { doc, name, numbers } in format::TABLES {
        writeln!(out, "\n/** {doc} */\nexport const {name} = {{").expect("writing to a string succeeds");
        for (name, number) in *numbers {
            writeln!(out, "  {name}: {number},").expect("writing to a string succeeds");
        }
        out.push_str("} as const;\n");
    }
    let inputs: Vec<&str> = InputKind::ALL.iter().map(|it| it.name()).collect();
    names(&mut out, "What inputs are; the place in the list is the number.", "INPUT_KINDS", &inputs);
    let outputs: Vec<&str> = OutputKind::ALL.iter().map(|it| it.name()).collect();
    names(&mut out, "What outputs are; the place in the list is the number.", "OUTPUT_KINDS", &outputs);
    names(&mut out, "The opcodes; the place in the list is the number.", "OPCODES", &Opcode::ALL.map(Opcode::name));
    let layouts: Vec<&str> = Layout::ALL.iter().map(|it| it.name()).collect();
    names(&mut out, "The layouts; the place in the list is the number.", "LAYOUTS", &layouts);
    let formats: Vec<&str> = MemoryFormat::ALL.iter().map(|it| it.name()).collect();
    names(&mut out, "The memory formats; the place in the list is the number.", "MEMORY_FORMATS", &formats);
    out
}

fn names(out: &mut String, doc: &str, name: &str, names: &[&str]) {
    writeln!(out, "\n/** {doc} */\nexport const {name} = [").expect("writing to a string succeeds");
    for it in names {
        writeln!(out, "  {},", quoted(it)).expect("writing to a string succeeds");
    }
    out.push_str("] as const;\n");
}
