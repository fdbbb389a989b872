//! `schemas.ts`: the parameters of every operator.

use std::collections::BTreeSet;
use std::fmt::Write;
use tracefx_ops::registry;

pub(super) fn body() -> String {
    let mut out = String::from(
        "/** The parameters of the operators of `aten`: an overload a line, those of one operator in the order they are tried. */\n\
         export const SCHEMAS = `\n",
    );
    let packets: BTreeSet<String> = registry()
        .ops()
        .iter()
        .filter_map(|op| op.name.strip_prefix("aten."))
        .map(|name| name.split('.').next().unwrap_or_default().to_string())
        .collect();
    for packet in packets {
        for op in registry().overloads(&format!("aten.{packet}")).unwrap_or_default() {
            let schema = op.def.schema.trim_start_matches("aten::");
            let parameters = schema.rsplit_once(" -> ").map_or(schema, |(parameters, _)| parameters);
            writeln!(out, "{parameters}").expect("writing to a string succeeds");
        }
    }
    out.push_str("`;\n");
    out
}
