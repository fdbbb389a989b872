//! Programs and graph modules as PyTorch prints them: Python, for people to read.

mod code;
mod origin;

pub use code::readable;

use crate::ExportedProgram;
use std::fmt;

impl fmt::Display for ExportedProgram {
    /// PyTorch's `str(exported_program)`: code with what is known of each value, the signature, and the ranges.
    ///
    /// ```
    /// use tracefx_export::{ExportedProgram, GraphSignature};
    /// use tracefx_ir::{Arg, Graph, GraphModule};
    ///
    /// let mut graph = Graph::new();
    /// graph.output(Arg::Tuple(vec![]));
    /// let program = ExportedProgram::new(GraphModule::new(graph), GraphSignature::default());
    /// assert!(program.to_string().starts_with(
    ///     "ExportedProgram:
    ///     class GraphModule(torch.nn.Module):
    ///         def forward(self):
    ///             return ()
    /// "
    /// ));
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indented = |text: String| text.replace('\n', "\n    ");
        let code = indented(readable(&self.module, &self.module.class_name));
        // The space before the signature is PyTorch 2.13's.
        let signature = indented(self.signature.to_string());
        let ranges = self.range_constraints.iter().map(|(symbol, range)| format!("{symbol}: VR{range}"));
        let ranges: Vec<String> = ranges.collect();
        write!(
            f,
            "ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {{{}}}\n",
            ranges.join(", ")
        )
    }
}
