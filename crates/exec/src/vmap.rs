//! Programs that were exported with a `torch.vmap` inside: a region of nodes that sees one example at a time.
//!
//! Such a region begins and ends with calls of `torch._functorch.predispatch`. What it takes from outside it takes as a
//! slice, and what it gives is stacked. Its operators have no rules for batches, so that the region runs once for each
//! example, as PyTorch defines it.

use tracefx_ir::{Graph, Node, NodeId};

/// The name of the function of `torch._functorch.predispatch` that a node calls.
pub fn predispatched(node: &Node) -> Option<&str> {
    node.target().strip_prefix("torch._functorch.predispatch.")
}

/// How many nodes belong to the region that begins with the first of these; none where none begins.
pub(crate) fn vmap_region(graph: &Graph, nodes: &[NodeId]) -> usize {
    let mut depth = 0;
    for (at, &id) in nodes.iter().enumerate() {
        match predispatched(graph.node(id)) {
            Some("_vmap_increment_nesting") => depth += 1,
            Some("_vmap_decrement_nesting") => depth -= 1,
            Some(_) | None => {}
        }
        if depth <= 0 {
            return if at == 0 { 0 } else { at + 1 };
        }
    }
    0
}
