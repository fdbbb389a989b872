//! Whose memory a module works on.

use crate::Refusal;
use crate::encoding::Renumbered;
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{EntityType, ImportSection, Module, RawSection};
use wasmparser::{Parser, Payload};

/// The module with memory that is not shared in place of shared memory that it imports. Its atomic instructions do the same there, and a host
/// with threads makes it the other module again: one bit of the import tells them apart.
///
/// # Errors
/// [`Refusal::Malformed`], [`Refusal::Truncated`], [`Refusal::Encoding`], and [`Refusal::Unsupported`] where it imports no shared memory.
pub fn with_unshared_memory(module: &[u8]) -> Result<Vec<u8>, Refusal> {
    let (mut res, mut is_found) = (Module::new(), false);
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        if let Payload::ImportSection(imports) = &payload {
            let mut section = ImportSection::new();
            for import in imports.clone().into_imports() {
                let import = import?;
                let mut ty = Renumbered::default().entity_type(import.ty)?;
                if let EntityType::Memory(memory) = &mut ty {
                    is_found |= std::mem::take(&mut memory.shared);
                }
                section.import(import.module, import.name, ty);
            }
            res.section(&section);
        } else if let Some((id, range)) = payload.as_section() {
            res.section(&RawSection { id, data: module.get(range).ok_or(Refusal::Truncated)? });
        }
    }
    if is_found { Ok(res.finish()) } else { Err(Refusal::Unsupported("no shared memory that it imports")) }
}
