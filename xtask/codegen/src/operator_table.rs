//! `docs/ops.md`: every operator, how each backend runs it, and with which dtypes.
//!
//! How an operator runs is the engine's coverage; what becomes of each dtype is in `tests/fixtures/dtypes/support.txt`,
//! which a test holds to what the engine does with PyTorch's recorded cases.

use std::collections::BTreeMap;
use std::fmt::Write;
use tracefx_engine::{Support, op_support};
use tracefx_ops::{Infer, Op, registry};

/// The dtypes of the recorded cases: `+` they run, `-` PyTorch refuses them, `!` they are not implemented, `.` there are none.
const DTYPES: &str = include_str!("../../../tests/fixtures/dtypes/support.txt");

/// The dtypes in the order of the letters.
const COLUMNS: [&str; 12] = ["f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "bool", "c64", "c128"];

const HEAD: &str = "\
# Operators

Each operator of the registry, how the CPU backend runs it, and with which dtypes. Gradients, shape rules and decompositions
are described by [the registry](../ARCHITECTURE.md); how to add an operator is in [add-an-op.md](add-an-op.md).

| cpu | |
|---|---|
| kernel | computed by a kernel |
| decomposition | made of other operators |
| view | its shape rule says everything: a view, or arithmetic on sizes |
| missing | refused with `NotImplemented` |

Under a dtype, `✓` says that PyTorch's recorded cases agree, `–` that PyTorch has no kernel for it and so it is refused, `✗`
that it is refused with `NotImplemented` (the reason stands behind the description), and nothing that no case is recorded.
";

/// What is recorded of an operator.
struct Recorded {
    letters: &'static str,
    reason: &'static str,
}

pub(super) fn body() -> String {
    let mut recorded: BTreeMap<&str, Recorded> = BTreeMap::new();
    for line in DTYPES.lines() {
        let mut parts = line.splitn(3, ' ');
        let (Some(op), Some(letters)) = (parts.next(), parts.next()) else { continue };
        recorded.insert(op, Recorded { letters, reason: parts.next().unwrap_or_default() });
    }
    let mut families: BTreeMap<&str, Vec<&Op>> = BTreeMap::new();
    for op in registry().ops() {
        families.entry(op.family).or_default().push(op);
    }
    let absent: Vec<&str> = recorded.keys().copied().filter(|it| registry().get(it).is_none()).collect();
    let mut out = format!("{HEAD}\n{}", counts(&recorded, absent.len()));
    for (family, ops) in families {
        writeln!(out, "\n## {family}\n\n| operator | cpu | {} | |", COLUMNS.join(" | ")).expect(WRITES);
        writeln!(out, "|---|---|{}---|", ":-:|".repeat(COLUMNS.len())).expect(WRITES);
        for op in ops {
            // What works in place is known by what it computes.
            let known = recorded.get(op.name.as_str()).or_else(|| match op.def.infer {
                Infer::InPlaceOf(functional) => recorded.get(functional),
                Infer::Rule(_) | Infer::Composite => None,
            });
            let cells: String = known.map_or(". ".repeat(COLUMNS.len()), |it| it.letters.to_string());
            let cells: Vec<&str> = cells.chars().filter(|it| *it != ' ').map(mark).collect();
            let reason = known.map_or("", |it| it.reason);
            let note = if reason.is_empty() { String::new() } else { format!(" *{}*", escaped(reason)) };
            let name = op.name.strip_prefix("aten.").unwrap_or(&op.name);
            let doc = escaped(op.def.doc);
            let support = op_support(op).name();
            writeln!(out, "| `{name}` | {support} | {} | {doc}{note} |", cells.join(" | ")).expect(WRITES);
        }
    }
    if !absent.is_empty() {
        out.push_str("\n## Not in the registry\n\nPyTorch has recorded cases of these, and calling them is refused with `NotImplemented`.\n\n");
        for name in absent {
            let why =
                if name.contains("_backward") { "gradients are made of other operators" } else { "not written yet" };
            writeln!(out, "- `{name}`: {why}").expect(WRITES);
        }
    }
    out
}

const WRITES: &str = "writing to a string succeeds";

/// The head's table: how many operators run in which way, and how many pairs of operator and dtype.
fn counts(recorded: &BTreeMap<&str, Recorded>, n_absent: usize) -> String {
    let ops = registry().ops();
    let count = |support: Support| ops.iter().filter(|op| op_support(op) == support).count();
    let letters = |letter: char| -> usize {
        let of_known = recorded.iter().filter(|(name, _)| registry().get(name).is_some());
        of_known.map(|(_, it)| it.letters.chars().filter(|it| *it == letter).count()).sum()
    };
    let mut out = String::from("| | count |\n|---|--:|\n");
    let mut row = |what: &str, n: usize| writeln!(out, "| {what} | {n} |").expect(WRITES);
    row("operators", ops.len());
    row("with a kernel", count(Support::Kernel));
    row("by decomposition", count(Support::Decomposition));
    row("views and sizes", count(Support::View));
    row("missing", count(Support::Missing));
    row("recorded, and not in the registry", n_absent);
    row("operators and dtypes that agree with PyTorch", letters('+'));
    row("operators and dtypes that PyTorch refuses too", letters('-'));
    row("operators and dtypes that are missing", letters('!'));
    out
}

fn mark(letter: char) -> &'static str {
    match letter {
        '+' => "✓",
        '-' => "–",
        '!' => "✗",
        _ => "",
    }
}

/// A text as the cell of a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}
