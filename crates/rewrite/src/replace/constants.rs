//! Constants of a replacement whose names the module has for others.
//!
//! Names that a user chose are FX's: what the module has under one stays, and the replacement uses it. The names of constants
//! that a trace finds in a function are chosen by nobody, and the first constant of any trace has the same one.

use super::references;
use rustc_hash::FxHashMap;
use tracefx_core::Result;
use tracefx_ir::{Attribute, GraphModule, Opcode, Str, TensorKind};

/// How a trace names the constants that it finds, before their numbers.
const PREFIX: &str = "_tensor_constant";

/// Names for the constants of replacements that are put into one module.
pub(super) struct ConstantNames<'m> {
    module: &'m GraphModule,
    /// What the replacements so far bring along.
    brought: FxHashMap<Str, Attribute>,
}

impl<'m> ConstantNames<'m> {
    pub(super) fn new(module: &'m GraphModule) -> Self {
        ConstantNames { module, brought: FxHashMap::default() }
    }

    /// The replacement with names of its own for its constants, where they need other names.
    ///
    /// # Errors
    /// Those of [`tracefx_ir::Graph::set_target`].
    pub(super) fn distinct(&mut self, replacement: &GraphModule) -> Result<Option<GraphModule>> {
        let mut names: FxHashMap<Str, Str> = FxHashMap::default();
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
    fn name(&self, wanted: &Str, constant: &Attribute, replacement: &GraphModule) -> Str {
        let there = |name: &str| self.module.attributes.get(name).or_else(|| self.brought.get(name));
        if there(wanted).is_none_or(|it| is_same(it, constant)) {
            return wanted.clone();
        }
        let known = self.module.attributes.iter().chain(&self.brought);
        if let Some((name, _)) = known.into_iter().find(|(name, it)| name.starts_with(PREFIX) && is_same(it, constant))
        {
            return name.clone();
        }
        let is_free = |name: &String| there(name).is_none() && !replacement.attributes.contains_key(name.as_str());
        (0..).map(|it| format!("{PREFIX}{it}")).find(is_free).map_or_else(|| wanted.clone(), Str::from)
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
