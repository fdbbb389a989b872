//! What PyTorch's constructor does with the parts of a program.

use crate::{ExportedProgram, GraphSignature};
use std::collections::HashMap;
use tracefx_core::Result;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, Str};
use tracefx_ops::{Registry, registry};
use tracefx_rewrite::PassResult;

impl ExportedProgram {
    /// The program as PyTorch's constructor leaves it: reads of the same item of a result are one node, and
    /// [`ExportedProgram::validate`] finds nothing.
    ///
    /// # Errors
    /// As [`ExportedProgram::validate`].
    pub fn checked(self) -> Result<Self> {
        self.checked_in(registry())
    }

    /// As [`ExportedProgram::checked`], with operators of one's own.
    ///
    /// # Errors
    /// As there.
    pub fn checked_in(mut self, registry: &Registry) -> Result<Self> {
        self.merge_getitems()?;
        self.validate_in(registry)?;
        Ok(self)
    }

    /// The same program with another graph and its signature: PyTorch's `ExportedProgram._update`. State, constants,
    /// constraints and the call graph stay; the result is [`checked`](ExportedProgram::checked).
    ///
    /// # Errors
    /// As [`ExportedProgram::validate`].
    pub fn update(&self, module: GraphModule, signature: GraphSignature, registry: &Registry) -> Result<Self> {
        ExportedProgram { module, signature, ..self.clone() }.checked_in(registry)
    }

    /// Makes one node of all that read the same item of the same result, as exporting a call twice leaves them. The
    /// signature and the call graph follow.
    ///
    /// # Errors
    /// As the edits of a graph.
    pub fn merge_getitems(&mut self) -> Result<()> {
        let merged = merge_in(&mut self.module.graph)?;
        let calls = self.module_call_graph.iter_mut().filter_map(|it| it.signature.as_mut());
        let args = calls.flat_map(|it| it.inputs.iter_mut().chain(&mut it.outputs));
        let results = self.signature.output_specs.iter_mut().map(|it| &mut it.arg);
        for arg in args.chain(results) {
            if let Some(new) = merged.get(arg.name()) {
                *arg = arg.renamed(new.clone());
            }
        }
        merge_getitems(&mut self.module).map(drop)
    }
}

/// Makes one node of all that read the same item of the same result, by its number or name, in a module and the graphs
/// inside it; says whether there were any.
///
/// # Errors
/// As the edits of a graph.
pub fn merge_getitems(module: &mut GraphModule) -> Result<PassResult> {
    let mut modified = !merge_in(&mut module.graph)?.is_empty();
    let mut rest: Vec<&mut Attribute> = module.attributes.values_mut().collect();
    while let Some(attribute) = rest.pop() {
        if let Attribute::Module(child) = attribute {
            modified |= !merge_in(&mut child.graph)?.is_empty();
            rest.extend(child.attributes.values_mut());
        }
    }
    Ok(PassResult::new(modified))
}

/// The names that are gone, each with the one that stands for it.
fn merge_in(graph: &mut Graph) -> Result<HashMap<Str, Str>> {
    let reads: Vec<NodeId> = graph.find_nodes(Opcode::CallFunction, "operator.getitem").collect();
    let (mut seen, mut merged) = (HashMap::new(), HashMap::new());
    for read in reads {
        // A source that was merged itself is replaced already.
        let [Arg::Node(source), index] = graph.node(read).args() else { continue };
        // What another index takes from a tensor may be a copy, and a write may stand between two of them.
        if !matches!(index, Arg::Int(_) | Arg::Str(_)) {
            continue;
        }
        let first = *seen.entry((*source, format!("{index:?}"))).or_insert(read);
        if first != read {
            graph.replace_all_uses_with(read, first, &mut |_, _| true)?;
            merged.insert(graph.node(read).name().clone(), graph.node(first).name().clone());
            graph.erase_node(read)?;
        }
    }
    Ok(merged)
}
