//! Which nodes do something besides giving a value: `torch.fx.Node.is_impure`.

use crate::effects::is_known_writer;
use crate::in_place::is_in_place_name;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Node, Opcode};
use tracefx_ops::{Registry, Tags};

/// Functions that are no operators of the registry and have an effect, by qualified name: what PyTorch keeps in
/// `torch.fx.node._side_effectful_functions`, and where vmap regions begin and end, which PyTorch drops.
pub const SIDE_EFFECT_FUNCTIONS: &[&str] = &[
    "operator.setitem",
    "torch._C._set_grad_enabled",
    "torch._assert",
    "torch._assert_async",
    "torch._functorch.predispatch._enter_dual_level",
    "torch._functorch.predispatch._exit_dual_level",
    "torch._functorch.predispatch._jvp_decrement_nesting",
    "torch._functorch.predispatch._jvp_increment_nesting",
    "torch._functorch.predispatch._vmap_decrement_nesting",
    "torch._functorch.predispatch._vmap_increment_nesting",
    "torch._functorch.predispatch.lazy_load_decompositions",
    "torch.amp._enter_autocast",
    "torch.amp._exit_autocast",
    "torch.amp.autocast_mode._enter_autocast",
    "torch.amp.autocast_mode._exit_autocast",
    "torch.autograd.grad_mode._enter_inference_mode",
    "torch.autograd.grad_mode._exit_inference_mode",
    "torch.ops.profiler._record_function_enter",
    "torch.ops.profiler._record_function_enter.default",
    "torch.ops.profiler._record_function_enter_new",
    "torch.ops.profiler._record_function_enter_new.default",
    "torch.ops.profiler._record_function_exit",
    "torch.ops.profiler._record_function_exit._RecordFunction",
];

/// Functions of the module `torch` that draw from the global random generator, as PyTorch lists them. Others that do, such
/// as `torch.dropout`, it takes for pure.
pub const RANDOM_FUNCTIONS: &[&str] = &[
    "torch.bernoulli",
    "torch.multinomial",
    "torch.normal",
    "torch.poisson",
    "torch.rand",
    "torch.rand_like",
    "torch.randint",
    "torch.randint_like",
    "torch.randn",
    "torch.randn_like",
    "torch.randperm",
];

/// What PyTorch takes for pure although it changes its first argument, or writes to the screen.
const CHANGES: &[&str] = &["builtins.print", "operator.delitem", "torch.manual_seed", "torch.random.manual_seed"];

/// How strictly nodes are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impurity {
    /// Whether operators that draw from a random generator are impure.
    pub random: bool,
    /// Whether what PyTorch takes for pure although it has an effect is impure: Python's operators in place
    /// (`operator.iadd`), functions and methods in place (`add_`), modules and called graphs that write to what they take,
    /// `print`, batch norms that write their statistics.
    pub strict: bool,
}

impl Default for Impurity {
    fn default() -> Self {
        Impurity { random: true, strict: false }
    }
}

impl Impurity {
    /// Whether a node of this graph does something besides giving a value. A called module does where it says so
    /// (`is_impure` in its notes); inputs and outputs always do. The owner has what the graph reads and calls.
    pub fn is_impure(self, node: &Node, graph: &Graph, owner: &GraphModule, registry: &Registry) -> bool {
        if self.strict && is_known_writer(node, graph, owner, registry) {
            return true;
        }
        match node.op() {
            Opcode::Placeholder | Opcode::Output => true,
            Opcode::GetAttr | Opcode::CallMethod => false,
            Opcode::CallFunction => self.is_impure_function(node, registry),
            Opcode::CallModule => match owner.attribute(node.target()) {
                Ok(Attribute::Module(it)) => it.meta.get("is_impure").is_some_and(|it| &**it == "true"),
                Ok(Attribute::Tensor { .. } | Attribute::Fake { .. }) | Err(_) => false,
            },
        }
    }

    fn is_impure_function(self, node: &Node, registry: &Registry) -> bool {
        let target = &**node.target();
        if SIDE_EFFECT_FUNCTIONS.contains(&target) {
            return true;
        }
        if let Some(name) = target.strip_prefix("torch.ops.higher_order.") {
            // Only the operator that the wrapper stands for can have an effect.
            return name.starts_with("auto_functionalized")
                && matches!(node.args().first(), Some(Arg::Op(inner)) if has_effect(inner, registry));
        }
        let Some(operator) = target.strip_prefix("torch.ops.") else {
            let is_random = self.random && RANDOM_FUNCTIONS.contains(&target);
            return is_random || (self.strict && CHANGES.contains(&target));
        };
        // PyTorch looks a name without overload up under `default`, which operators with named overloads do not have.
        let named = registry.get(operator).or_else(|| registry.get(&format!("{operator}.default")));
        let Some(op) = named else { return is_known_to_write(operator) };
        op.def.tags.has(Tags::SIDE_EFFECT)
            || op.schema.args.iter().any(|it| it.is_mutated)
            || (self.random && op.def.tags.has(Tags::RANDOM))
    }
}

fn has_effect(target: &str, registry: &Registry) -> bool {
    SIDE_EFFECT_FUNCTIONS.contains(&target) || registry.get(target).is_some_and(|it| it.def.tags.has(Tags::SIDE_EFFECT))
}

/// Whether an operator that the registry does not have writes to an argument: by PyTorch's rules for names.
fn is_known_to_write(operator: &str) -> bool {
    let mut parts = operator.splitn(3, '.').skip(1);
    let (Some(name), Some(overload)) = (parts.next(), parts.next()) else { return false };
    is_in_place_name(name) || overload == "out" || overload.starts_with("out_") || overload.ends_with("_out")
}
