//! What may stand in the graphs of a program.

use super::{Dialect, violation};
use crate::ExportedProgram;
use tracefx_core::Diagnostic;
use tracefx_ir::{Attribute, GraphModule, Node, Opcode, TensorKind};
use tracefx_ops::Registry;

/// Python's own functions that compute with sizes.
const ALLOWED_BUILTIN_OPS: &[&str] = &[
    "operator.getitem",
    "operator.add",
    "operator.mul",
    "operator.sub",
    "operator.truediv",
    "operator.ge",
    "operator.le",
    "operator.gt",
    "operator.lt",
    "operator.eq",
    "operator.ne",
    "operator.floordiv",
    "operator.mod",
    "operator.and_",
    "operator.or_",
    "operator.not_",
    "operator.pow",
    "operator.neg",
    "operator.abs",
    "operator.lshift",
    "operator.rshift",
    "math.ceil",
    "math.floor",
    "math.trunc",
    "builtins.round",
];

/// Functions of PyTorch that are no operators, and are allowed all the same.
const ALLOWED_TORCH_FUNCTIONS: &[&str] = &[
    "torch.autograd.grad_mode.set_grad_enabled",
    "torch.sym_int",
    "torch.sym_float",
    "torch.sym_ite",
    "torch.sym_max",
    "torch.sym_min",
    "torch.sym_not",
    "torch.sym_sqrt",
    "torch.sym_sum",
    "torch.export.custom_ops._call_custom_autograd_function_in_pre_dispatch",
    "torch._C._set_grad_enabled",
    "torch.amp.autocast_mode._enter_autocast",
    "torch.amp.autocast_mode._exit_autocast",
    "torch.fx.experimental.symbolic_shapes.cast_symbool_to_symint_guardless",
    "torch._functorch.predispatch._add_batch_dim",
    "torch._functorch.predispatch._remove_batch_dim",
    "torch._functorch.predispatch._vmap_increment_nesting",
    "torch._functorch.predispatch._vmap_decrement_nesting",
    "torch._functorch.predispatch.lazy_load_decompositions",
    "torch._functorch.predispatch._make_dual",
    "torch._functorch.predispatch._unpack_dual",
    "torch._functorch.predispatch._jvp_increment_nesting",
    "torch._functorch.predispatch._jvp_decrement_nesting",
    "torch._functorch.predispatch._unwrap_for_grad",
    "torch._functorch.predispatch._enter_dual_level",
    "torch._functorch.predispatch._exit_dual_level",
];

/// How a graph module is called in PyTorch's messages.
const GRAPH_MODULE: &str = "<class 'torch.fx.graph_module.GraphModule'>";
const TREE_SPEC: &str = "<class 'torch.utils._pytree.TreeSpec'>";

/// Everything in the graphs that a dialect does not allow, in order.
pub(super) fn check(program: &ExportedProgram, dialect: Dialect, registry: &Registry) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for (path, module) in program.module.modules() {
        // Modules that only hold others have no graph in PyTorch.
        if module.graph.is_empty() {
            continue;
        }
        problems.extend(module.graph.lint(Some(module)));
        for id in module.graph.nodes() {
            let node = module.graph.node(id);
            let problem = match node.op() {
                Opcode::CallModule | Opcode::CallMethod => {
                    Some(format!("call_module is not valid: got a class '{}' ", node.target()))
                }
                Opcode::CallFunction => check_val(node, registry).or_else(|| check_op(node, dialect, registry)),
                Opcode::GetAttr => check_attribute(module, node.target(), path.is_empty()),
                Opcode::Placeholder => check_input(program, node, path.is_empty()),
                Opcode::Output => None,
            };
            problems.extend(problem.map(|it| violation(it).node(&**node.name())));
        }
    }
    problems
}

/// What a call gives has to be known, unless it gives nothing.
fn check_val(node: &Node, registry: &Registry) -> Option<String> {
    let has_no_returns = || registry.get(node.target()).is_some_and(|it| it.schema.returns.is_empty());
    if node.meta.val.is_some() || has_no_returns() || is_unknown_to(registry, node.target()) {
        return None;
    }
    Some(format!("Node.meta {} is missing val field.", node.name()))
}

/// Operators that nothing is known of may give nothing, or a custom object, which no value stands for here; higher-order
/// operators may give tokens.
fn is_unknown_to(registry: &Registry, target: &str) -> bool {
    target.starts_with("torch.ops.") && registry.get(target).is_none()
}

fn check_op(node: &Node, dialect: Dialect, registry: &Registry) -> Option<String> {
    let target = &**node.target();
    if !target.starts_with("torch.ops.") {
        let is_allowed = [ALLOWED_BUILTIN_OPS, ALLOWED_TORCH_FUNCTIONS].iter().any(|it| it.contains(&target));
        return (!is_allowed).then(|| {
            format!(
                "Operator '{target}' is not an allowed operator type: (<class 'torch._ops.OpOverload'>, <class \
                 'torch._ops.HigherOrderOperator'>)\nValid builtin ops: [{}]\nValid torch functions: ({})",
                ALLOWED_BUILTIN_OPS.join(", "),
                ALLOWED_TORCH_FUNCTIONS.join(", ")
            )
        });
    }
    let is_mutable = registry.get(target).is_some_and(|it| it.schema.args.iter().any(|arg| arg.is_mutated));
    let name = target.strip_prefix("torch.ops.").unwrap_or(target);
    (dialect != Dialect::Training && is_mutable).then(|| format!("operator '{name}' is not functional"))
}

/// Attributes are graphs; in the graphs of control flow they may be tensors, too. A missing one is found by `lint`.
fn check_attribute(module: &GraphModule, target: &str, is_top_level: bool) -> Option<String> {
    let class = match module.attribute(target).ok()? {
        Attribute::Module(child) if child.graph.is_empty() => "<class 'torch.nn.modules.module.Module'>",
        Attribute::Module(_) => return None,
        Attribute::Tensor { .. } | Attribute::Fake { .. } if !is_top_level => return None,
        Attribute::Tensor { kind, .. } | Attribute::Fake { kind, .. } => match kind {
            TensorKind::Parameter => "<class 'torch.nn.parameter.Parameter'>",
            TensorKind::Buffer | TensorKind::Constant => "<class 'torch.Tensor'>",
        },
    };
    let tensors = if is_top_level { "" } else { "<class 'torch.nn.parameter.Parameter'>, <class 'torch.Tensor'>, " };
    Some(format!(
        "Invalid get_attr type {class} on target {target}. \nValid get_attr types: ({GRAPH_MODULE}, {tensors}{TREE_SPEC})"
    ))
}

/// Custom objects and tokens have no value that the graph knows, and neither have constants.
fn check_input(program: &ExportedProgram, node: &Node, is_top_level: bool) -> Option<String> {
    use crate::Argument::{Constant, CustomObj, Token};
    let specs = &program.signature.input_specs;
    let is_opaque = is_top_level
        && specs
            .iter()
            .any(|it| matches!(it.arg, Constant { .. } | CustomObj { .. } | Token(_)) && it.arg.name() == node.name());
    (node.meta.val.is_none() && !is_opaque).then(|| format!("Node.meta {} is missing val field.", node.name()))
}
