//! The language of Graphviz; what is drawn is the drawer's.

use std::fmt;

/// A drawing in the language DOT of Graphviz: nodes in boxes, and arrows between them. [`Display`](fmt::Display) writes it.
#[derive(Clone, Debug)]
pub struct DotGraph {
    name: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Box { name: String, attributes: Vec<(&'static str, String)> },
    Arrow { from: String, to: String },
}

impl DotGraph {
    pub(super) fn new(name: &str) -> Self {
        DotGraph { name: name.into(), parts: Vec::new() }
    }

    pub(super) fn add_node(&mut self, name: &str, attributes: Vec<(&'static str, String)>) {
        self.parts.push(Part::Box { name: name.into(), attributes });
    }

    pub(super) fn add_edge(&mut self, from: &str, to: &str) {
        self.parts.push(Part::Arrow { from: from.into(), to: to.into() });
    }

    /// Gives every box the colour that it should have.
    pub fn fill(&mut self, color_of: &dyn Fn(&str) -> &'static str) {
        for part in &mut self.parts {
            if let Part::Box { name, attributes } = part {
                let color = attributes.iter_mut().find(|it| it.0 == "fillcolor");
                color.into_iter().for_each(|it| it.1 = color_of(name).into());
            }
        }
    }
}

impl fmt::Display for DotGraph {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "digraph {} {{\nrankdir=TB;", quoted_name(&self.name))?;
        for part in &self.parts {
            match part {
                Part::Box { name, attributes } => {
                    let written: Vec<String> =
                        attributes.iter().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
                    writeln!(out, "{} [{}];", quoted_name(name), written.join(", "))?;
                }
                Part::Arrow { from, to } => writeln!(out, "{} -> {};", quoted_name(from), quoted_name(to))?,
            }
        }
        writeln!(out, "}}")
    }
}

/// A string of DOT; backslashes are escapes of labels there, which [`record_text`] writes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\\"").replace('\0', ""))
}

/// A name, in which a backslash is itself.
fn quoted_name(name: &str) -> String {
    quoted(&name.replace('\\', "\\\\"))
}

/// Text in a field of a record, in which no character means anything.
pub(super) fn record_text(text: &str) -> String {
    let mut res = String::with_capacity(text.len());
    for it in text.chars() {
        match it {
            '\\' | '{' | '}' | '|' | '<' | '>' => res.extend(['\\', it]),
            '\n' => res.push_str("\\n"),
            _ => res.push(it),
        }
    }
    res
}
