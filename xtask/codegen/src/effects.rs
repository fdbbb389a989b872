//! `effects.ts`: what has effects besides giving a value.

use super::quoted;
use std::fmt::Write;
use tracefx_export::ASSERTED_CONVERSIONS;
use tracefx_ops::{Op, Tags, registry};
use tracefx_rewrite::{
    CSE_BANNED_OPS, IN_PLACE_OPERATORS, PRIORITIZED, RANDOM_FUNCTIONS, SIDE_EFFECT_FUNCTIONS, SWITCHES,
};

pub(super) fn body() -> String {
    let named = |has: &dyn Fn(&Op) -> bool| {
        registry().ops().into_iter().filter(|it| has(it)).map(|it| it.name.clone()).collect::<Vec<_>>()
    };
    let has_effect = |it: &Op| it.def.tags.has(Tags::SIDE_EFFECT) || (is_written(it) && !shows_it_writes(it));
    let effects = named(&has_effect);
    let random = named(&|it| it.def.tags.has(Tags::RANDOM));
    let mut out = String::new();
    list(
        &mut out,
        "SIDE_EFFECT_FUNCTIONS",
        "Functions that are no operators and have an effect.",
        SIDE_EFFECT_FUNCTIONS,
    );
    list(&mut out, "RANDOM_FUNCTIONS", "Functions of `torch` that PyTorch takes for random.", RANDOM_FUNCTIONS);
    list(&mut out, "SIDE_EFFECT_OPERATORS", "Operators with an effect that their name does not show.", &effects);
    list(&mut out, "RANDOM_OPERATORS", "Operators that draw from a random generator.", &random);
    list(
        &mut out,
        "SWITCHES",
        "Functions that switch autocast, gradients or vmap for all that comes after them.",
        SWITCHES,
    );
    list(
        &mut out,
        "IN_PLACE_OPERATORS",
        "Functions of Python's `operator` that change their left operand.",
        &IN_PLACE_OPERATORS,
    );
    list(
        &mut out,
        "PRIORITIZED",
        "What `legalize_graph` puts as far ahead as it can, so that assertions about sizes come before what needs them.",
        PRIORITIZED,
    );
    list(
        &mut out,
        "ASSERTED_CONVERSIONS",
        "Conversions in front of which an export asserts what is converted.",
        ASSERTED_CONVERSIONS,
    );
    writing_operators(&mut out);
    list(&mut out, "CSE_BANNED_OPS", "Operators two calls of which are not to be merged.", CSE_BANNED_OPS);
    out
}

fn writing_operators(out: &mut String) {
    let doc = "Operators that may write although their name does not show it, with the place of the argument that says so, or -1.";
    writeln!(out, "/** {doc} */\nexport const WRITING_OPERATORS: Readonly<Record<string, number>> = {{")
        .expect("writing to a string succeeds");
    for op in registry().ops().into_iter().filter(|it| it.may_write() && !shows_it_writes(it)) {
        let training = op.schema.args.iter().position(|it| it.name == "training").filter(|_| !is_written(op));
        let at = training.map_or("-1".to_owned(), |it| it.to_string());
        writeln!(out, "  {}: {at},", quoted(&op.name)).expect("writing to a string succeeds");
    }
    out.push_str("};\n\n");
}

fn is_written(op: &Op) -> bool {
    op.schema.args.iter().any(|it| it.is_mutated)
}

/// Whether PyTorch's rules for names tell that an operator writes to an argument.
fn shows_it_writes(op: &Op) -> bool {
    let (name, overload) = (&op.schema.name, &op.schema.overload);
    let is_in_place = name.ends_with('_') && !name.ends_with("__");
    is_in_place || overload == "out" || overload.starts_with("out_") || overload.ends_with("_out")
}

fn list(out: &mut String, name: &str, doc: &str, items: &[impl AsRef<str>]) {
    writeln!(out, "/** {doc} */\nexport const {name}: readonly string[] = [").expect("writing to a string succeeds");
    for item in items {
        writeln!(out, "  {},", quoted(item.as_ref())).expect("writing to a string succeeds");
    }
    out.push_str("];\n\n");
}
