//! Which modules the traced code was in when it made a node: `nn_module_stack`.

use super::tree::{MAX_DEPTH, too_deep};
use tracefx_core::Result;
use tracefx_ir::{Graph, Meta, NodeId, Str};

/// The key that PyTorch gives nodes that passes made outside any module.
const NO_MODULE: &str = "_empty_nn_module_stack_from_metadata_hook";

/// A module that was being called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// The qualified name; empty for the root.
    pub(super) fqn: Str,
    /// The class; none for the root.
    pub(super) ty: Option<Str>,
    /// How often it had been called before.
    pub(super) n_calls: usize,
}

/// The modules of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stack {
    /// It is not known.
    Missing,
    /// Wherever the node before it was.
    Inherited,
    /// The root first, with the keys that tell modules apart whatever they are called.
    Known { levels: Vec<Level>, keys: Vec<Str> },
}

/// The stacks of all nodes, by their ids.
///
/// # Errors
/// `LimitExceeded` where modules are nested too deep.
pub(super) fn stacks_of(graph: &Graph) -> Result<Vec<Stack>> {
    let mut res = vec![Stack::Missing; graph.id_bound()];
    for id in graph.nodes() {
        res[NodeId::index(id)] = stack_of(&graph.node(id).meta)?;
    }
    Ok(res)
}

fn stack_of(meta: &Meta) -> Result<Stack> {
    let Some(text) = meta.get("nn_module_stack").filter(|it| !it.is_empty()) else { return Ok(Stack::Missing) };
    let (mut levels, mut keys): (Vec<Level>, Vec<Str>) = (Vec::new(), Vec::new());
    for entry in text.split(';') {
        let mut parts = entry.splitn(3, ',');
        let (key, fqn) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        // From the first name on that does not go on from the one before it, the names are no stack.
        let plain = |name: &str| name.split('@').next().unwrap_or(name).to_string();
        let previous = levels.last().map(|it| plain(&it.fqn));
        if previous.is_some_and(|it| it.len() >= plain(fqn).len() || !plain(fqn).starts_with(&it)) {
            break;
        }
        let ty = if fqn.is_empty() { None } else { parts.next().map(Into::into) };
        let n_calls = key.rsplit_once('@').and_then(|(_, it)| it.parse().ok()).unwrap_or(0);
        levels.push(Level { fqn: fqn.into(), ty, n_calls });
        keys.push(plain(key).into());
        if levels.len() > MAX_DEPTH {
            return Err(too_deep());
        }
    }
    Ok(if keys.len() == 1 && &*keys[0] == NO_MODULE { Stack::Inherited } else { Stack::Known { levels, keys } })
}
