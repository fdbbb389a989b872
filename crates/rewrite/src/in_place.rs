//! What a call says of itself: that it works in place, or that it does not.

use tracefx_ir::{Arg, Node};
use tracefx_ops::Op;

/// A name by PyTorch's rule for what writes to its first argument: `add_`.
pub(crate) fn is_in_place_name(name: &str) -> bool {
    name.ends_with('_') && !name.ends_with("__")
}

/// The functions of Python's `operator` that change their left operand; `inv`, `invert`, `is_`, `is_not`, `itemgetter`,
/// `index` and `indexOf` change nothing. Sorted.
pub const IN_PLACE_OPERATORS: [&str; 14] = [
    "operator.iadd",
    "operator.iand",
    "operator.iconcat",
    "operator.ifloordiv",
    "operator.ilshift",
    "operator.imatmul",
    "operator.imod",
    "operator.imul",
    "operator.ior",
    "operator.ipow",
    "operator.irshift",
    "operator.isub",
    "operator.itruediv",
    "operator.ixor",
];

pub(crate) fn is_in_place_operator(target: &str) -> bool {
    IN_PLACE_OPERATORS.binary_search(&target).is_ok()
}

/// Whether a call says that it is not for training, and the schema does not say that it writes all the same: a batch
/// normalization writes its statistics in training alone.
pub(crate) fn evaluates(op: &Op, node: &Node) -> bool {
    let args = &op.schema.args;
    let training = args.iter().position(|it| it.name == "training");
    let given = training.and_then(|it| node.args().get(it)).or(node.kwarg("training"));
    given == Some(&Arg::Bool(false)) && !args.iter().any(|it| it.is_mutated)
}
