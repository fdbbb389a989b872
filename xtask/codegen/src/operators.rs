//! `operators.ts`: the operators of the registry and their overloads, as a type.

use super::quoted;
use std::collections::BTreeMap;
use std::fmt::Write;
use tracefx_ops::registry;

pub(super) fn body() -> String {
    let mut packets: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for op in registry().ops() {
        if op.schema.namespace == "aten" {
            packets.entry(&op.schema.name).or_default().push(quoted(&op.schema.overload));
        }
    }
    let mut out = String::from("/** The overloads of each operator of `aten`. */\nexport interface AtenOverloads {\n");
    for (name, overloads) in packets {
        writeln!(out, "  {name}: {};", overloads.join(" | ")).expect("writing to a string succeeds");
    }
    out.push_str("}\n");
    out
}
