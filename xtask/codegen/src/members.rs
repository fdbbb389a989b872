//! `members.ts`: the members of tensors that are operators by another name.

use super::quoted;
use std::fmt::Write;
use tracefx_ops::{ATTRIBUTES, CONVERSIONS};

pub(super) fn body() -> String {
    let mut out = String::from(
        "import type { DType } from \"./dtypes.ts\";\n\n\
         /** The methods that convert to a dtype. */\n\
         export const CONVERSIONS: Readonly<Record<string, DType>> = {\n",
    );
    for (name, dtype) in CONVERSIONS {
        writeln!(out, "  {name}: {},", quoted(dtype.name())).expect("writing to a string succeeds");
    }
    out.push_str(
        "};\n\n\
         /** The attributes, with the operators that give them. */\n\
         export const ATTRIBUTES: Readonly<Record<string, string>> = {\n",
    );
    for (name, operator) in ATTRIBUTES {
        writeln!(out, "  {name}: {},", quoted(operator)).expect("writing to a string succeeds");
    }
    out.push_str("};\n");
    out
}
