//! `errors.ts`: the stable error codes, with the class that carries each in TypeScript.

use super::quoted;
use std::fmt::Write;
use tracefx_core::Code;

pub(super) fn body() -> String {
    let mut out = String::from("/** Every error, by name: its stable code and the class that carries it. */\n");
    out.push_str("export const ERRORS = {\n");
    for code in Code::ALL {
        let (name, id, class) = (code.name(), quoted(code.id()), quoted(code.class()));
        writeln!(out, "  {name}: {{ code: {id}, class: {class} }},").expect("writing to a string succeeds");
    }
    out.push_str("} as const;\n\n");
    out.push_str("/** The name of an error, such as `ShapeMismatch`. */\n");
    out.push_str("export type ErrorName = keyof typeof ERRORS;\n\n");
    out.push_str("/** A stable error code, such as `FX0301`. */\n");
    out.push_str("export type ErrorCode = (typeof ERRORS)[ErrorName][\"code\"];\n\n");
    out.push_str("/** The name of a class that carries errors, such as `OperatorError`. */\n");
    out.push_str("export type ErrorClass = (typeof ERRORS)[ErrorName][\"class\"];\n");
    out
}
