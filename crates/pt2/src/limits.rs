//! How much an archive may ask for.

use tracefx_core::{Code, Diagnostic, Result};

/// What an untrusted archive may ask for. Every bound is checked before memory is taken, and an error names the field
/// that it ran into, so that a caller with a good reason can raise it.
///
/// ```
/// use tracefx_pt2::{Limits, LoadOptions};
/// let options = LoadOptions { limits: Limits { entries: 100, ..Limits::default() }, ..LoadOptions::default() };
/// assert_eq!(options.limits.entries, 100);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole archive.
    pub archive_bytes: u64,
    /// Bytes of a file whose length nobody knows before it ends: a pipe, a device, or what a server sends.
    pub stream_bytes: u64,
    /// Entries of one zip directory.
    pub entries: u64,
    /// Bytes of one zip directory.
    pub directory_bytes: u64,
    /// Bytes of one entry after it was inflated.
    pub inflated_bytes: u64,
    /// How many times larger an inflated entry may be than its compressed bytes.
    pub inflate_ratio: u64,
    /// Bytes of one JSON document.
    pub json_bytes: u64,
    /// How deep JSON may nest. The parser's own bound is 127, so a larger number has no effect.
    pub json_depth: u64,
    /// Nodes of a program, those of its sub-graphs included.
    pub nodes: u64,
    /// Arguments of one node, the elements of its lists included.
    pub node_args: u64,
    /// Bytes of one name.
    pub name_bytes: u64,
    /// Dimensions of a tensor.
    pub rank: u64,
    /// How deep sub-graphs may nest.
    pub subgraph_depth: u64,
    /// Symbolic expressions: their length, depth and symbols.
    pub expression: tracefx_sym::Limits,
    /// Values that one pickle may make.
    pub pickle_values: u64,
    /// Entries of one pickle's stack.
    pub pickle_stack: u64,
    /// Entries of one pickle's memo.
    pub pickle_memo: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        const GIB: u64 = 1 << 30;
        let wide = cfg!(target_pointer_width = "64");
        Limits {
            archive_bytes: if wide { 64 * GIB } else { 4 * GIB },
            stream_bytes: GIB,
            entries: 65_536,
            directory_bytes: 32 * MIB,
            inflated_bytes: if wide { 4 * GIB } else { GIB },
            inflate_ratio: 100,
            json_bytes: if wide { 512 * MIB } else { 64 * MIB },
            json_depth: 127,
            nodes: 1_000_000,
            node_args: 65_536,
            name_bytes: 4_096,
            rank: 64,
            subgraph_depth: 32,
            expression: tracefx_sym::Limits::default(),
            pickle_values: 1_000_000,
            pickle_stack: 100_000,
            pickle_memo: 1_000_000,
        }
    }
}

impl Limits {
    /// The names that [`Limits::set`] knows.
    pub const NAMES: &[&str] = &[
        "archive_bytes",
        "stream_bytes",
        "entries",
        "directory_bytes",
        "inflated_bytes",
        "inflate_ratio",
        "json_bytes",
        "json_depth",
        "nodes",
        "node_args",
        "name_bytes",
        "rank",
        "subgraph_depth",
        "pickle_values",
        "pickle_stack",
        "pickle_memo",
    ];

    /// Changes the limit of this name, as options outside Rust do.
    ///
    /// # Errors
    /// `InvalidOption` where there is no limit of this name.
    pub fn set(&mut self, name: &str, value: u64) -> Result<()> {
        let field = match name {
            "archive_bytes" => &mut self.archive_bytes,
            "stream_bytes" => &mut self.stream_bytes,
            "entries" => &mut self.entries,
            "directory_bytes" => &mut self.directory_bytes,
            "inflated_bytes" => &mut self.inflated_bytes,
            "inflate_ratio" => &mut self.inflate_ratio,
            "json_bytes" => &mut self.json_bytes,
            "json_depth" => &mut self.json_depth,
            "nodes" => &mut self.nodes,
            "node_args" => &mut self.node_args,
            "name_bytes" => &mut self.name_bytes,
            "rank" => &mut self.rank,
            "subgraph_depth" => &mut self.subgraph_depth,
            "pickle_values" => &mut self.pickle_values,
            "pickle_stack" => &mut self.pickle_stack,
            "pickle_memo" => &mut self.pickle_memo,
            _ => {
                return Err(Diagnostic::new(Code::InvalidOption, format!("there is no limit `{name}`"))
                    .help(format!("the limits are the fields of `Limits`: {}", Limits::NAMES.join(", "))));
            }
        };
        *field = value;
        Ok(())
    }

    /// Refuses a value above one of these limits; `name` is the name of the field.
    ///
    /// # Errors
    /// `LimitExceeded`, with the name and both numbers.
    pub fn check(name: &'static str, limit: u64, value: u64) -> Result<()> {
        if value <= limit { Ok(()) } else { Err(exceeded(name, limit, format!("{value}"))) }
    }
}

/// The refusal of something above a limit whose exact size may be unknown.
pub(crate) fn exceeded(name: &'static str, limit: u64, value: String) -> Diagnostic {
    Diagnostic::new(Code::LimitExceeded, format!("the limit `{name}` is {limit}, but the file asks for {value}"))
        .help(format!("if you trust the file, load it with a larger `Limits::{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_set_by_its_name() {
        for name in Limits::NAMES {
            let mut limits = Limits::default();
            limits.set(name, 3).unwrap();
            assert!(format!("{limits:?}").contains(&format!("{name}: 3,")) || *name == "pickle_memo");
            assert_ne!(limits, Limits::default());
        }
        assert!(Limits::default().set("nobody", 3).unwrap_err().to_string().contains("pickle_memo"));
    }

    #[test]
    fn an_exceeded_limit_is_named_with_both_numbers() {
        let error = Limits::check("rank", 64, 65).unwrap_err();
        assert_eq!(error.code(), Code::LimitExceeded);
        assert_eq!(error.message(), "the limit `rank` is 64, but the file asks for 65");
        assert!(Limits::check("rank", 64, 64).is_ok());
    }
}
