//! The names of the nodes of a file, where it leaves them to FX.

use std::collections::HashSet;
use tracefx_ir::Namespace;

/// The names of one graph's nodes.
///
/// A file names most nodes; the others get the names that FX generates, which depend on every name asked for before.
/// So the same names are asked for in the same order as PyTorch's loader does, and a generated name that a later node
/// of the file has is passed over, where PyTorch would give it twice.
pub(super) struct Names<'a> {
    fx: Namespace,
    serialized: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn new(serialized: HashSet<&'a str>) -> Self {
        Names { fx: Namespace::default(), serialized }
    }

    /// Notes that a node of this name was made; it keeps the name as the file has it.
    pub(super) fn note(&mut self, name: &str) {
        self.fx.create_name(name);
    }

    /// A name for a node that the file does not name, or does not name bindingly.
    pub(super) fn generate(&mut self, candidate: &str) -> String {
        loop {
            let name = self.fx.create_name(candidate);
            if !self.serialized.contains(&*name) {
                return name.to_string();
            }
        }
    }
}
