//! A module of WebAssembly, read.

use crate::Refusal;
use wasm_encoder::{Module, RawSection, Section, SectionId};
use wasmparser::{
    Element, ElementItems, ElementKind, Export, FuncType, FunctionBody, Global, Import, MemoryType, Operator, Parser,
    Payload, TableInit, TableType, TagType, TypeRef,
};

/// The order in which sections stand in a module.
const ORDER: [SectionId; 12] = [
    SectionId::Type,
    SectionId::Import,
    SectionId::Function,
    SectionId::Table,
    SectionId::Memory,
    SectionId::Tag,
    SectionId::Global,
    SectionId::Export,
    SectionId::Element,
    SectionId::DataCount,
    SectionId::Code,
    SectionId::Data,
];

/// The sections of a module.
#[derive(Default)]
pub(crate) struct Source<'a> {
    /// The numbers of the sections, and their bytes without their headers.
    raw: Vec<(u8, &'a [u8])>,
    pub(crate) types: Vec<FuncType>,
    pub(crate) imports: Vec<Import<'a>>,
    /// The signatures of the functions that are imported.
    pub(crate) imported: Vec<u32>,
    /// The signatures of the functions that are defined.
    defined: Vec<u32>,
    pub(crate) tables: Vec<TableType>,
    /// Those that are imported, then those that are defined.
    pub(crate) memories: Vec<MemoryType>,
    pub(crate) tags: Vec<TagType>,
    pub(crate) globals: Vec<Global<'a>>,
    pub(crate) exports: Vec<Export<'a>>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) bodies: Vec<FunctionBody<'a>>,
}

/// Functions that the table of functions has from the beginning.
pub(crate) struct Segment {
    pub(crate) table: u32,
    /// The slot of the first one.
    pub(crate) first: u32,
    pub(crate) functions: Vec<u32>,
}

impl<'a> Source<'a> {
    pub(crate) fn read(module: &'a [u8]) -> Result<Self, Refusal> {
        let mut res = Source::default();
        for payload in Parser::new(0).parse_all(module) {
            let payload = payload?;
            if let Some((id, range)) = payload.as_section() {
                res.raw.push((id, module.get(range).ok_or(Refusal::Truncated)?));
            }
            match payload {
                Payload::TypeSection(it) => {
                    res.types = it.into_iter_err_on_gc_types().collect::<Result<_, _>>()?;
                }
                Payload::ImportSection(it) => res.imports = it.into_imports().collect::<Result<_, _>>()?,
                Payload::FunctionSection(it) => res.defined = it.into_iter().collect::<Result<_, _>>()?,
                Payload::TableSection(it) => {
                    for table in it {
                        let table = table?;
                        if !matches!(table.init, TableInit::RefNull) {
                            return Err(Refusal::Unsupported("a table with initial elements of its own"));
                        }
                        res.tables.push(table.ty);
                    }
                }
                Payload::MemorySection(it) => res.memories = it.into_iter().collect::<Result<_, _>>()?,
                Payload::TagSection(it) => res.tags = it.into_iter().collect::<Result<_, _>>()?,
                Payload::GlobalSection(it) => res.globals = it.into_iter().collect::<Result<_, _>>()?,
                Payload::ExportSection(it) => res.exports = it.into_iter().collect::<Result<_, _>>()?,
                Payload::ElementSection(it) => {
                    for element in it {
                        res.segments.push(segment(element?)?);
                    }
                }
                Payload::CodeSectionEntry(it) => res.bodies.push(it),
                Payload::StartSection { .. } => return Err(Refusal::Unsupported("a start function")),
                Payload::Version { .. }
                | Payload::DataCountSection { .. }
                | Payload::CodeSectionStart { .. }
                | Payload::DataSection(_)
                | Payload::CustomSection(_)
                | Payload::End(_) => {}
                _ => return Err(Refusal::Unsupported("a section")),
            }
        }
        let mut memories = Vec::new();
        for import in &res.imports {
            match import.ty {
                TypeRef::Func(signature) => res.imported.push(signature),
                TypeRef::Tag(_) => {}
                TypeRef::Memory(memory) => memories.push(memory),
                _ => return Err(Refusal::Unsupported("an import that is no function, no memory and no tag")),
            }
        }
        res.memories.splice(0..0, memories);
        Ok(res)
    }

    /// The module with these sections in place of its own; custom sections are left out.
    pub(crate) fn with(&self, sections: &[&dyn Section]) -> Vec<u8> {
        let mut res = Module::new().finish();
        for id in ORDER.map(|it| it as u8) {
            if let Some(section) = sections.iter().find(|it| it.id() == id) {
                section.append_to(&mut res);
            } else if let Some((_, data)) = self.raw.iter().find(|it| it.0 == id) {
                RawSection { id, data }.append_to(&mut res);
            }
        }
        res
    }

    /// The bytes of a section without its header; none where there is no such section.
    pub(crate) fn raw(&self, id: SectionId) -> &'a [u8] {
        self.raw.iter().find(|it| it.0 == id as u8).map_or(&[], |it| it.1)
    }

    /// The signatures of all functions: of those that are imported, then of those that are defined.
    pub(crate) fn signatures(&self) -> Vec<u32> {
        [&*self.imported, &*self.defined].concat()
    }

    /// The tags that the module imports, then those that it defines.
    pub(crate) fn all_tags(&self) -> Vec<TagType> {
        let imported = self.imports.iter().filter_map(|it| match it.ty {
            TypeRef::Tag(tag) => Some(tag),
            _ => None,
        });
        imported.chain(self.tags.iter().copied()).collect()
    }
}

impl Segment {
    /// The slots and what they have.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (u32, u32)> {
        (self.first..).zip(self.functions.iter().copied())
    }
}

fn segment(element: Element<'_>) -> Result<Segment, Refusal> {
    let ElementKind::Active { table_index, offset_expr } = element.kind else {
        return Err(Refusal::Unsupported("a segment of elements that is not active"));
    };
    let first = match offset_expr.get_operators_reader().read()? {
        Operator::I32Const { value } => value.cast_unsigned(),
        _ => return Err(Refusal::Unsupported("a segment of elements whose place is no constant")),
    };
    let ElementItems::Functions(functions) = element.items else {
        return Err(Refusal::Unsupported("a segment of elements that is not of functions"));
    };
    let functions = functions.into_iter().collect::<Result<_, _>>()?;
    Ok(Segment { table: table_index.unwrap_or(0), first, functions })
}
