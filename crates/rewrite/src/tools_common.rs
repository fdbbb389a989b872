//! What passes ask of nodes: `torch.fx.passes.tools_common`.

use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{GraphModule, NodeId, Opcode};

/// The name of a function or class for tables of supported operators: `get_acc_ops_name`. What is in a module of acc_ops loses
/// the rest of its path, and `torch._ops` is called by its public name.
///
/// ```
/// use tracefx_rewrite::get_acc_ops_name;
///
/// assert_eq!(get_acc_ops_name("glow.fb.fx.acc_ops.acc_ops.linear"), "acc_ops.linear");
/// assert_eq!(get_acc_ops_name("torch._ops.aten.relu"), "torch.ops.aten.relu");
/// assert_eq!(get_acc_ops_name("relu"), "relu");
/// ```
pub fn get_acc_ops_name(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((path, last)) if path.contains("acc_ops") => format!("acc_ops.{last}"),
        Some((path, last)) => format!("{}.{last}", path.replace("torch._ops", "torch.ops")),
        None => name.into(),
    }
}

/// What a node calls: the qualified name of a function, the name of a method, the class of a module: `get_node_target`.
///
/// # Errors
/// `PassFailed` where the node calls nothing; `AttributeMissing` where the module that it calls is not there.
pub fn get_node_target(module: &GraphModule, node: NodeId) -> Result<String> {
    let node = module.graph.node(node);
    match node.op() {
        Opcode::CallFunction => Ok(get_acc_ops_name(node.target())),
        Opcode::CallMethod => Ok(node.target().to_string()),
        Opcode::CallModule => Ok(get_acc_ops_name(&module.submodule(node.target())?.class_name)),
        Opcode::Placeholder | Opcode::GetAttr | Opcode::Output => {
            let what = format!("expected a node that calls something, found {}", node.op().name());
            Err(Diagnostic::new(Code::PassFailed, what).node(&**node.name()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ir::{Attribute, Graph};

    #[test]
    fn a_node_has_the_name_of_what_it_calls() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let function = graph.call_function("fx2trt.acc_ops.relu", vec![x.into()], vec![]);
        let method = graph.create_node(Opcode::CallMethod, "relu", vec![function.into()], vec![], None).unwrap();
        let call = graph.create_node(Opcode::CallModule, "net", vec![method.into()], vec![], None).unwrap();
        graph.output(call.into());
        let mut module = GraphModule::new(graph);
        let mut leaf = GraphModule::new(Graph::new());
        leaf.class_name = "Linear".into();
        module.set_attribute("net", Attribute::Module(Box::new(leaf)));
        let names = [function, method, call].map(|it| get_node_target(&module, it).unwrap());
        assert_eq!(names, ["acc_ops.relu", "relu", "Linear"]);
        assert_eq!(get_node_target(&module, x).unwrap_err().code(), Code::PassFailed);
    }
}
