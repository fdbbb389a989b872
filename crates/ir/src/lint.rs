//! Whether a graph is well formed, and with its module whether what it refers to is there. What it computes is not looked at.

use crate::{Attribute, Graph, GraphModule, NodeId, Opcode};
use rustc_hash::{FxBuildHasher, FxHashSet};
use tracefx_core::{Code, Diagnostic};

impl Graph {
    /// Everything that is wrong with the graph, in order: uses before the definition, names given twice, and with a
    /// module, attributes that are not there. An empty list means that the graph is well formed.
    ///
    /// As in FX, several outputs, no output, and inputs after calls are well formed.
    pub fn lint(&self, owner: Option<&GraphModule>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let mut names = FxHashSet::with_capacity_and_hasher(self.len(), FxBuildHasher);
        let mut defined = vec![false; self.id_bound()];
        for id in self.nodes() {
            let node = self.node(id);
            let mut problem =
                |what: String| problems.push(Diagnostic::new(Code::GraphInvalid, what).node(&**node.name()));
            if !names.insert(&**node.name()) {
                problem(format!("Node redefined name {}!", node.name()));
            }
            let is_sound = |input: NodeId| self.contains(input) && defined[input.index()];
            let mut are_sound = true;
            node.for_each_input(&mut |input| are_sound &= is_sound(input));
            let unsound = if are_sound { Vec::new() } else { node.all_input_nodes() };
            for input in unsound {
                if !self.contains(input) {
                    problem(format!("Node '{}' uses a node that was erased", node.name()));
                } else if !defined[input.index()] {
                    problem(format!(
                        "Argument '{}' of Node '{}' was used before it has been defined! Please check that Nodes in the graph are topologically ordered",
                        self.node(input).name(),
                        node.name()
                    ));
                }
            }
            defined[id.index()] = true;
            if let Some(owner) = owner {
                problems.extend(self.lint_target(id, owner));
            }
        }
        problems
    }

    fn lint_target(&self, id: NodeId, owner: &GraphModule) -> Option<Diagnostic> {
        let node = self.node(id);
        let (name, target) = (node.name(), node.target());
        let what = match (node.op(), owner.attribute(target)) {
            (Opcode::GetAttr | Opcode::CallModule, Err(_)) => {
                format!("Node {name} target {target} references nonexistent attribute {target}")
            }
            (Opcode::CallModule, Ok(Attribute::Tensor { .. } | Attribute::Fake { .. })) => {
                format!("Node {name} target {target} does not reference an nn.Module")
            }
            (Opcode::GetAttr, Ok(_)) | (Opcode::CallModule, Ok(Attribute::Module(_))) => return None,
            (Opcode::Placeholder | Opcode::CallFunction | Opcode::CallMethod | Opcode::Output, _) => return None,
        };
        Some(Diagnostic::new(Code::AttributeMissing, what).node(&**name))
    }
}
