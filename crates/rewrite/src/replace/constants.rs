//! Constants of a replacement whose names the module has for others.
//!
//! Names that a user chose are FX's: what the module has under one stays, and the replacement uses it. The names of constants
//! that a trace finds in a function are chosen by nobody, and the first constant of any trace has the same one.

use super::references;
use crate::effects::{Memory, memory};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use tracefx_core::Result;
use tracefx_ir::{Attribute, GraphModule, Opcode, Str, TensorKind};

/// How a trace names the constants that it finds, before their numbers.
const PREFIX: &str = "_tensor_constant";

/// Names for the constants of replacements that are put into one module.
pub(super) struct ConstantNames<'m> {
    module: &'m GraphModule,
    /// What the replacements so far bring along.
    brought: FxHashMap<Str, Attribute>,
    /// What constants of these memories are called, in the module and in the replacements so far.
    names: FxHashMap<Memory, Vec<Str>>,
    /// From which number on names may be free.
    next: u64,
}

impl<'m> ConstantNames<'m> {
    pub(super) fn new(module: &'m GraphModule) -> Self {
        let mut names: FxHashMap<Memory, Vec<Str>> = FxHashMap::default();
        for (name, attribute) in module.attributes.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            if let Some(memory) = memory(attribute) {
                names.entry(memory).or_default().push(name.clone());
            }
        }
        ConstantNames { module, brought: FxHashMap::default(), names, next: 0 }
    }

    /// The replacement with names of its own for its constants, where they need other names.
    ///
    /// # Errors
    /// Those of [`tracefx_ir::Graph::set_target`].
    pub(super) fn distinct(&mut self, replacement: &GraphModule) -> Result<Option<GraphModule>> {
        let mut names: IndexMap<Str, Str, FxBuildHasher> = IndexMap::default();
        for id in references(&replacement.graph) {
            let node = replacement.graph.node(id);
            let name = node.target();
            if node.op() != Opcode::GetAttr || !name.starts_with(PREFIX) || names.contains_key(&**name) {
                continue;
            }
            let Ok(constant @ (Attribute::Tensor { kind, .. } | Attribute::Fake { kind, .. })) =
                replacement.attribute(name)
            else {
                continue;
            };
            if *kind == TensorKind::Constant {
                let chosen = self.name(name, constant, replacement);
                if let Some(memory) = memory(constant) {
                    self.names.entry(memory).or_default().push(chosen.clone());
                }
                self.brought.insert(chosen.clone(), constant.clone());
                names.insert(name.clone(), chosen);
            }
        }
        if names.iter().all(|(name, chosen)| name == chosen) {
            return Ok(None);
        }
        let mut res = replacement.clone();
        for id in references(&replacement.graph) {
            if let Some(chosen) = names.get(&**replacement.graph.node(id).target()) {
                let val = res.graph.node(id).meta.val.clone();
                res.graph.set_target(id, chosen)?;
                res.graph.meta_mut(id).val = val;
            }
        }
        for (name, chosen) in &names {
            res.set_attribute(chosen, replacement.attribute(name)?.clone());
        }
        Ok(Some(res))
    }

    /// The name that the constant has, or one that is free.
    fn name(&mut self, wanted: &Str, constant: &Attribute, replacement: &GraphModule) -> Str {
        let (module, brought) = (self.module, &self.brought);
        let there = |name: &str| module.attributes.get(name).or_else(|| brought.get(name));
        if there(wanted).is_none_or(|it| is_same(it, constant)) {
            return wanted.clone();
        }
        let same_memory = memory(constant).and_then(|it| self.names.get(&it)).into_iter().flatten();
        if let Some(name) = same_memory.into_iter().find(|it| there(it).is_some_and(|it| is_same(it, constant))) {
            return name.clone();
        }
        loop {
            let name = format!("{PREFIX}{}", self.next);
            self.next += 1;
            if there(&name).is_none() && !replacement.attributes.contains_key(name.as_str()) {
                return name.into();
            }
        }
    }
}

/// Whether these are the same tensor, and not only equal ones.
fn is_same(a: &Attribute, b: &Attribute) -> bool {
    match (a, b) {
        (Attribute::Tensor { tensor: a, .. }, Attribute::Tensor { tensor: b, .. }) => a.is_same_view(b),
        (Attribute::Fake { tensor: a, .. }, Attribute::Fake { tensor: b, .. }) => a.id == b.id,
        _ => false,
    }
}
