//! Calls that switch how all that comes after them computes: autocast, gradients, vmap.

use tracefx_ir::{Node, Opcode};

pub(crate) const ENTER_AUTOCAST: &str = "torch.amp.autocast_mode._enter_autocast";
pub(crate) const EXIT_AUTOCAST: &str = "torch.amp.autocast_mode._exit_autocast";
pub(crate) const SET_GRAD_ENABLED: &str = "torch._C._set_grad_enabled";

/// What switches autocast, gradients or vmap for all that comes after it, by qualified name.
pub const SWITCHES: &[&str] = &[
    SET_GRAD_ENABLED,
    "torch._functorch.predispatch._vmap_decrement_nesting",
    "torch._functorch.predispatch._vmap_increment_nesting",
    ENTER_AUTOCAST,
    EXIT_AUTOCAST,
];

/// Whether a node is a call of one of [`SWITCHES`].
pub(crate) fn is_switch(node: &Node) -> bool {
    node.op() == Opcode::CallFunction && SWITCHES.contains(&&**node.target())
}
