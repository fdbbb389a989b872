//! What the nodes of a replacement refer to: tensors and modules that come along with it.

use super::{invalid, references};
use rustc_hash::FxHashSet;
use tracefx_core::Result;
use tracefx_ir::{Attribute, GraphModule};

/// Refuses a replacement whose nodes refer to what neither it nor the module has.
pub(super) fn check(module: &GraphModule, replacement: &GraphModule) -> Result<()> {
    for id in references(&replacement.graph) {
        let node = replacement.graph.node(id);
        let path = node.target();
        if module.attribute(path).is_err() && replacement.attribute(path).is_err() {
            let what = format!(
                "Attempted to create a \"{}\" node during subgraph rewriting with target {path}, but the referenced \
                 attribute does not exist in the replacement GraphModule",
                node.op()
            );
            return Err(invalid(what, "give the replacement the attribute").node(&**node.name()));
        }
    }
    Ok(())
}

/// Copies what the replacement refers to. What the module has under the same name stays, as in FX.
pub(super) fn copy(module: &mut GraphModule, replacement: &GraphModule) {
    for id in references(&replacement.graph) {
        let path = replacement.graph.node(id).target();
        if let (Err(_), Ok(attribute)) = (module.attribute(path), replacement.attribute(path)) {
            module.set_attribute(path, attribute.clone());
        }
    }
}

/// Takes out the sub-modules that no node refers to: `torch.fx.GraphModule.delete_all_unused_submodules`.
pub(super) fn delete_unused_submodules(module: &mut GraphModule) {
    // Most modules whose graph is rewritten have none, and a fixpoint asks after each round.
    if !module.attributes.values().any(|it| matches!(it, Attribute::Module(_))) {
        return;
    }
    let mut used: FxHashSet<String> = FxHashSet::default();
    // What is called, or read as a whole, is used with all that it holds.
    let mut whole: FxHashSet<String> = FxHashSet::default();
    for id in references(&module.graph) {
        let path = module.graph.node(id).target();
        used.extend(path.match_indices('.').map(|(at, _)| path[..at].to_owned()));
        if module.submodule(path).is_ok() {
            whole.insert(path.to_string());
        }
    }
    retain(module, "", &used, &whole);
}

fn retain(module: &mut GraphModule, prefix: &str, used: &FxHashSet<String>, whole: &FxHashSet<String>) {
    module.attributes.retain(|name, attribute| {
        let Attribute::Module(child) = attribute else { return true };
        let path = format!("{prefix}{name}");
        if whole.contains(&path) {
            return true;
        }
        if used.contains(&path) {
            retain(child, &format!("{path}."), used, whole);
        }
        used.contains(&path)
    });
}
