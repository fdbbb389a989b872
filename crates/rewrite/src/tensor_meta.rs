//! What is known of the tensor that a node gives.

use std::borrow::Cow;
use tracefx_ir::{Attribute, GraphModule, NodeId, Opcode, TensorMeta, Val};

/// What was noted of the tensor that a node gives, or what the attribute is that it reads.
pub(crate) fn tensor_meta_of(module: &GraphModule, id: NodeId) -> Option<Cow<'_, TensorMeta>> {
    let node = module.graph.node(id);
    if let Some(Val::Tensor(meta)) = &node.meta.val {
        return Some(Cow::Borrowed(meta));
    }
    if node.op() != Opcode::GetAttr {
        return None;
    }
    match module.attribute(node.target()).ok()? {
        Attribute::Tensor { tensor, .. } => Some(Cow::Owned(TensorMeta::of(tensor))),
        Attribute::Fake { tensor, .. } => Some(Cow::Borrowed(&tensor.meta)),
        Attribute::Module(_) => None,
    }
}

/// The number of dimensions of that tensor.
pub(crate) fn rank_of(module: &GraphModule, id: NodeId) -> Option<usize> {
    tensor_meta_of(module, id).map(|it| it.sizes.len())
}
