//! Passes over programs: `ExportedProgram._transform_do_not_use`.

use crate::{Argument, ExportedProgram, GraphSignature};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, GraphModule, NodeId, Opcode, Str};
use tracefx_ops::Registry;
use tracefx_rewrite::PassManager;

impl ExportedProgram {
    /// The program that passes make of this one. Nodes that they leave alone keep their names and what is noted of them;
    /// inputs and results may get other names, which the signature follows, but not another number or order. What comes out
    /// is held to the rules of the program's dialects ([`ExportedProgram::checked`]). Where nothing changes this is a copy.
    ///
    /// ```
    /// use tracefx_export::{ExportedProgram, GraphSignature};
    /// use tracefx_ir::{Arg, Graph, GraphModule};
    /// use tracefx_rewrite::{CsePass, PassManager};
    ///
    /// let mut graph = Graph::new();
    /// graph.output(Arg::Tuple(vec![]));
    /// let program = ExportedProgram::new(GraphModule::new(graph), GraphSignature::default());
    /// let mut passes = PassManager::new();
    /// passes.add_pass(CsePass::new(tracefx_ops::registry()));
    /// assert_eq!(program.transform(&mut passes, tracefx_ops::registry())?.to_string(), program.to_string());
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// What a pass refuses; `PassFailed` where a pass changes the number of inputs or results; else as
    /// [`ExportedProgram::validate`].
    pub fn transform(&self, passes: &mut PassManager<'_>, registry: &Registry) -> Result<Self> {
        let mut module = self.module.clone();
        if !passes.run(&mut module)?.modified {
            return Ok(self.clone());
        }
        let signature = followed(&self.signature, &module)?;
        let mut res = ExportedProgram { module, signature, ..self.clone() };
        res.module.meta.extend(self.module.meta.iter().map(|(key, it)| (key.clone(), it.clone())));
        res.checked_in(registry)
    }
}

/// The signature with the names that inputs and results have now.
pub(crate) fn followed(signature: &GraphSignature, module: &GraphModule) -> Result<GraphSignature> {
    let (graph, mut res) = (&module.graph, signature.clone());
    let is_input = |it: &NodeId| graph.node(*it).op() == Opcode::Placeholder;
    let inputs: Vec<&Str> = graph.nodes().take_while(is_input).map(|it| graph.node(it).name()).collect();
    if inputs.len() != res.input_specs.len() {
        return Err(changed("inputs", inputs.len(), res.input_specs.len()));
    }
    for (spec, name) in res.input_specs.iter_mut().zip(inputs) {
        rename(&mut spec.arg, name);
    }
    let last = graph.last().filter(|it| graph.node(*it).op() == Opcode::Output);
    let results = match last.map(|it| graph.node(it).args()) {
        Some([Arg::Tuple(items) | Arg::List(items)]) => items,
        Some(_) | None => return Err(changed("outputs", 0, res.output_specs.len())),
    };
    if results.len() != res.output_specs.len() {
        return Err(changed("outputs", results.len(), res.output_specs.len()));
    }
    for (spec, result) in res.output_specs.iter_mut().zip(results) {
        if let Arg::Node(node) = result {
            rename(&mut spec.arg, graph.node(*node).name());
        }
    }
    Ok(res)
}

/// Constants and custom objects keep their names, as in PyTorch.
fn rename(arg: &mut Argument, name: &Str) {
    if !matches!(arg, Argument::Constant { .. } | Argument::CustomObj { .. }) {
        *arg = arg.renamed(name.clone());
    }
}

fn changed(what: &str, now: usize, before: usize) -> Diagnostic {
    let text = format!("Number of {what} changed after transformation: there are {now}, and there were {before}");
    Diagnostic::new(Code::PassFailed, text).help("a pass over a program keeps its inputs and results in their order")
}
