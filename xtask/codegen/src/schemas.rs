//! `schemas.ts`: the parameters of every operator, the overloads that only normalization knows, and the names of results.

use super::signature::camel_case;
use super::{array, filled};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use tracefx_ops::{OPERATOR_PLACES, registry};
use tracefx_rewrite::NORMALIZATION_SCHEMAS;

pub(super) fn body() -> String {
    let mut out = String::from(
        "/**\n\
         \x20* The parameters of the operators of `aten`: an overload a record, those of one operator in the order they are tried.\n\
         \x20* A record goes on in the lines that are indented.\n\
         \x20*/\n\
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
            out += &record(parameters);
        }
    }
    out.push_str("`;\n\n");
    out.push_str(
        "/** What torch.fx binds calls against besides: records as those of `crates/rewrite/src/normalize/schemas.txt`. */\n\
         export const NORMALIZATION_SCHEMAS = `\n",
    );
    out.extend(NORMALIZATION_SCHEMAS.lines().map(record));
    out.push_str("`;\n\n");
    write!(
        out,
        "/** How the qualified names of functions begin that are operators of `aten`. */\n\
         export const OPERATOR_PLACES: readonly string[] = {};\n\n",
        array(OPERATOR_PLACES, "")
    )
    .expect("writing to a string succeeds");
    out.push_str(&result_names());
    out
}

/// A record: a line, and what does not fit in it in lines that are indented.
fn record(text: &str) -> String {
    filled(text.split(' '), "  ").trim_start().to_string()
}

/// The operators with several results that have names. Overloads of an operator agree on them.
fn result_names() -> String {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for op in registry().ops() {
        let returns = &op.schema.returns;
        if returns.len() < 2 || returns.iter().any(|it| it.name.is_empty()) {
            continue;
        }
        let packet = format!("{}.{}", op.schema.namespace, op.schema.name);
        let of_op: Vec<String> = returns.iter().map(|it| camel_case(&it.name)).collect();
        let of_op = of_op.join(" ");
        let known = names.entry(packet).or_insert_with(|| of_op.clone());
        assert_eq!(*known, of_op, "the overloads of {} name their results differently", op.name);
    }
    let mut out = String::from(
        "/** The operators whose results have names, an operator a line. */\n\
         export const RESULT_NAMES = `\n",
    );
    for (packet, names) in names {
        writeln!(out, "{packet} {names}").expect("writing to a string succeeds");
    }
    out.push_str("`;\n");
    out
}
