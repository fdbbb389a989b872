use crate::PassResult;
use tracefx_core::Result;
use tracefx_ir::{Attribute, GraphModule, Node, Opcode, Str};
use tracefx_ops::{Registry, Tags};

/// Erases what nothing uses and has no effect, in the graph of the module and in the graphs of its children that a
/// `get_attr` names: `torch.fx.Graph.eliminate_dead_code`.
///
/// # Errors
/// `GraphInvalid` where a graph is not well formed; nothing is changed then.
pub fn eliminate_dead_code(module: &mut GraphModule, registry: &Registry) -> Result<PassResult> {
    let mut graph = std::mem::take(&mut module.graph);
    let erased = graph.eliminate_dead_code(&|node| is_impure(node, module, registry));
    let names: Vec<Str> = attributes(&graph);
    module.graph = graph;
    let mut modified = erased?;
    for name in names {
        if let Some(Attribute::Module(child)) = module.attributes.get_mut(&name) {
            modified |= eliminate_dead_code(child, registry)?.modified;
        }
    }
    Ok(PassResult { modified })
}

fn attributes(graph: &tracefx_ir::Graph) -> Vec<Str> {
    graph
        .nodes()
        .map(|id| graph.node(id))
        .filter(|it| it.op() == Opcode::GetAttr)
        .map(|it| it.target().clone())
        .collect()
}

fn is_impure(node: &Node, _: &GraphModule, registry: &Registry) -> bool {
    match node.op() {
        Opcode::Placeholder | Opcode::Output => true,
        Opcode::CallFunction => {
            registry.get(node.target()).is_some_and(|it| it.may_write() || it.def.tags.has(Tags::SIDE_EFFECT))
        }
        Opcode::GetAttr | Opcode::CallMethod | Opcode::CallModule => false,
    }
}
