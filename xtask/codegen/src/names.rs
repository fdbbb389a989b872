//! `names.ts`: the names that a node may not have.

use super::quoted;
use std::fmt::Write;
use tracefx_ir::Namespace;

pub(super) fn body() -> String {
    let mut out = String::from(
        "/** Names that a node may not have: Python's keywords and builtins, and the globals of generated code. */\n",
    );
    out.push_str("export const ILLEGAL_NAMES: ReadonlySet<string> = new Set([\n");
    for name in Namespace::ILLEGAL_NAMES {
        writeln!(out, "  {},", quoted(name)).expect("writing to a string succeeds");
    }
    out.push_str("]);\n");
    out
}
