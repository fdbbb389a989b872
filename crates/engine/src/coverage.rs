//! Which operators a program uses, and by what each would run, without running it.

use indexmap::IndexMap;
use serde::Serialize;
use tracefx_exec::Kernels;
use tracefx_ir::{Arg, GraphModule, Node, Opcode};
use tracefx_ops::{ArgType, Infer, Op, Registry, Tags, registry};

/// How the engine runs an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// With a kernel.
    Kernel,
    /// By its shape rule alone: a view, or arithmetic on sizes.
    View,
    /// As a composition of other operators.
    Decomposition,
    /// By the interpreter itself: control flow and `getitem`.
    Interpreter,
    /// Not at all.
    Missing,
}

impl Support {
    /// The name, as reports show it.
    pub const fn name(self) -> &'static str {
        match self {
            Support::Kernel => "kernel",
            Support::View => "view",
            Support::Decomposition => "decomposition",
            Support::Interpreter => "interpreter",
            Support::Missing => "missing",
        }
    }
}

/// An operator that a program uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpUse {
    /// Its qualified name.
    pub target: String,
    /// How many nodes call it, in all graphs of the program.
    pub count: usize,
    /// How the engine runs it.
    pub support: Support,
}

/// The operators that a module and its sub-graphs call, in order of first use.
pub fn coverage(module: &GraphModule) -> Vec<OpUse> {
    coverage_of(module, registry(), tracefx_cpu::kernels())
}

pub(crate) fn coverage_of(module: &GraphModule, registry: &Registry, kernels: &Kernels) -> Vec<OpUse> {
    let mut counts: IndexMap<String, usize> = IndexMap::new();
    for (_, module) in module.modules() {
        for id in module.graph.nodes() {
            let node = module.graph.node(id);
            if matches!(node.op(), Opcode::CallFunction | Opcode::CallMethod) {
                *counts.entry(node.target().to_string()).or_default() += 1;
                // `auto_functionalized` calls the operator that is its first argument.
                if let (Some("higher_order"), Some(Arg::Op(op) | Arg::Str(op))) = (namespace(node), node.args().first())
                {
                    *counts.entry(op.to_string()).or_default() += 1;
                }
            }
        }
    }
    let support = |target: &str| support(target, registry, kernels);
    counts.into_iter().map(|(target, count)| OpUse { support: support(&target), target, count }).collect()
}

/// The namespace of the operator that a node calls.
fn namespace(node: &Node) -> Option<&str> {
    node.target().strip_prefix("torch.ops.")?.split('.').next()
}

fn support(target: &str, registry: &Registry, kernels: &Kernels) -> Support {
    if let Some(name) = target.strip_prefix("torch.ops.higher_order.") {
        return if tracefx_exec::HIGHER_ORDER.contains(&name) { Support::Interpreter } else { Support::Missing };
    }
    if target == "operator.getitem" {
        return Support::Interpreter;
    }
    registry.get(target).map_or(Support::Missing, |op| support_of(op, registry, kernels))
}

/// How the engine runs an operator of the registry.
pub fn op_support(op: &Op) -> Support {
    support_of(op, registry(), tracefx_cpu::kernels())
}

fn support_of(op: &Op, registry: &Registry, kernels: &Kernels) -> Support {
    if kernels.get(&op.name).is_some() || kernels.host(&op.name).is_some() {
        return Support::Kernel;
    }
    match op.def.infer {
        Infer::InPlaceOf(functional) => {
            registry.get(functional).map_or(Support::Missing, |it| support_of(it, registry, kernels))
        }
        Infer::Composite => Support::Decomposition,
        Infer::Rule(_) if op.def.decompose.is_some() => Support::Decomposition,
        Infer::Rule(_) if op.is_custom() => Support::Missing,
        Infer::Rule(_) => {
            let gives_tensors = op.schema.returns.iter().any(|it| holds_tensors(&it.ty));
            if op.def.tags.has(Tags::VIEW) || !gives_tensors { Support::View } else { Support::Missing }
        }
    }
}

fn holds_tensors(ty: &ArgType) -> bool {
    match ty {
        ArgType::Tensor => true,
        ArgType::Optional(inner) | ArgType::List(inner, _) => holds_tensors(inner),
        ArgType::Int
        | ArgType::Float
        | ArgType::Bool
        | ArgType::Scalar
        | ArgType::Complex
        | ArgType::Str
        | ArgType::DType
        | ArgType::Layout
        | ArgType::Device
        | ArgType::MemoryFormat
        | ArgType::Generator
        | ArgType::Any => false,
    }
}
