//! Which operators are decomposed: PyTorch's default table, and changes to it. How each is decomposed is its row's in
//! `ops`.

use std::collections::BTreeSet;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ops::{Registry, registry};

/// The operators that [`ExportedProgram::run_decompositions`](crate::ExportedProgram::run_decompositions) decomposes.
///
/// [`default_decompositions`] is PyTorch's table. An operator that is taken out of it stays whole in the result.
///
/// ```
/// use tracefx_export::default_decompositions;
///
/// let mut table = default_decompositions();
/// assert!(table.contains("aten.linear.default"));
/// assert!(table.remove("aten.linear.default"));
/// assert!(table.insert("aten.no_such_operator.default").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecompositionTable {
    ops: BTreeSet<String>,
    registry: Registry,
}

/// The operators that PyTorch decomposes by default: `torch.export.default_decompositions()`.
pub fn default_decompositions() -> DecompositionTable {
    DecompositionTable::default_of(registry())
}

impl DecompositionTable {
    /// The operators of a registry that PyTorch decomposes by default, and the custom ones that have a decomposition.
    pub fn default_of(registry: &Registry) -> Self {
        let mut table = DecompositionTable::empty_of(registry);
        let ops = registry.ops().into_iter().filter(|it| it.is_decomposed());
        table.ops.extend(ops.map(|it| it.name.clone()));
        table
    }

    /// A table of a registry that decomposes none of its operators.
    pub fn empty_of(registry: &Registry) -> Self {
        DecompositionTable { ops: BTreeSet::new(), registry: registry.clone() }
    }

    /// The operators that programs are made of.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Whether the operator of this name is decomposed.
    pub fn contains(&self, op: &str) -> bool {
        self.ops.contains(short(op))
    }

    /// Keeps an operator whole; gives back whether it was decomposed before.
    pub fn remove(&mut self, op: &str) -> bool {
        self.ops.remove(short(op))
    }

    /// Decomposes an operator that is made of others.
    ///
    /// # Errors
    /// `NotImplemented` where there is no such operator, or no decomposition of it.
    pub fn insert(&mut self, op: &str) -> Result<()> {
        let op = self.registry.require(op)?;
        if op.def.decompose.is_none() {
            let what = format!("the operator {} has no decomposition", op.name);
            return Err(Diagnostic::new(Code::NotImplemented, what).op(&*op.name));
        }
        self.ops.insert(op.name.clone());
        Ok(())
    }

    /// The operators by name.
    pub fn ops(&self) -> impl Iterator<Item = &str> {
        self.ops.iter().map(String::as_str)
    }
}

fn short(op: &str) -> &str {
    op.strip_prefix("torch.ops.").unwrap_or(op)
}
