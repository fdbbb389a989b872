//! `dtypes.ts`: PyTorch's dtypes, with the number that stands for each where bytes cross.

use super::quoted;
use std::fmt::Write;
use tracefx_core::{DType, DTypeKind};

pub(super) fn body() -> String {
    let mut out = String::from("/** Every dtype, by PyTorch's name; `id` is its number where bytes cross. */\n");
    out.push_str("export const DTYPES = {\n");
    for (id, dtype) in DType::ALL.iter().enumerate() {
        let (name, short, kind) = (dtype.name(), quoted(dtype.short_name()), quoted(kind(*dtype)));
        let size = dtype.size();
        writeln!(out, "  {name}: {{ id: {id}, short: {short}, kind: {kind}, size: {size} }},")
            .expect("writing to a string succeeds");
    }
    out.push_str("} as const;\n\n");
    out.push_str("/** PyTorch's name of a dtype, without the `torch.` prefix. */\n");
    out.push_str("export type DType = keyof typeof DTYPES;\n");
    out
}

fn kind(dtype: DType) -> &'static str {
    match dtype.kind() {
        DTypeKind::Bool => "bool",
        DTypeKind::Int => "int",
        DTypeKind::Float => "float",
        DTypeKind::Complex => "complex",
    }
}
