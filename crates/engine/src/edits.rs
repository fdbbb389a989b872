//! Programs whose graphs were edited.

use crate::Library;
use tracefx_core::Result;
use tracefx_exec::note_values;
use tracefx_export::ExportedProgram;
use tracefx_ir::GraphModule;
use tracefx_rewrite::{FnPass, PassManager, PassResult};

impl Library {
    /// The program after edits of its graph: what nodes give is noted where an edit left it unknown, the signature has the names that
    /// inputs and results have now, and the rules of the program's dialects hold. It can be saved then.
    ///
    /// ```
    /// use tracefx_core::Tensor;
    /// use tracefx_engine::Library;
    /// use tracefx_ir::{Graph, GraphModule};
    /// use tracefx_ops::Value;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x");
    /// let y = graph.call_function("torch.relu", vec![x.into()], vec![]);
    /// graph.output(y.into());
    /// let library = Library::default();
    /// let x = Value::Tensor(Tensor::from_slice(&[-1.0f32, 2.0], &[2])?);
    /// let mut program = library.export(&GraphModule::new(graph), &[x])?;
    /// let relu = program.module.graph.find("relu").expect("the graph has a relu");
    /// program.module.graph.set_target(relu, "torch.ops.aten.sigmoid.default")?;
    /// assert!(program.clone().checked().is_err(), "what the node gives is not known");
    /// let program = library.settle(&program)?;
    /// assert!(program.module.graph.node(relu).meta.val.is_some());
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// What the shape rule of a node refuses; else as [`ExportedProgram::transform`].
    pub fn settle(&self, program: &ExportedProgram) -> Result<ExportedProgram> {
        let ranges = || program.range_constraints.iter().map(|(symbol, range)| (symbol.clone(), *range));
        let mut passes = PassManager::new();
        passes.add_pass(FnPass::new("settle", |module: &mut GraphModule| {
            match note_values(module, self.registry(), ranges()).into_iter().next() {
                Some(problem) => Err(problem),
                None => Ok(PassResult::new(true)),
            }
        }));
        program.transform(&mut passes, self.registry())
    }
}
