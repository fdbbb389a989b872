//! Verifiers of one's own: `torch._export.verifier.Verifier` to be derived from.

use super::{Dialect, graph, signature};
use crate::ExportedProgram;
use tracefx_core::Result;
use tracefx_ir::{GraphModule, Opcode};
use tracefx_ops::Registry;

/// Rules of a dialect of one's own, on top of those of one that is known.
pub trait Verifier {
    /// The name of the dialect.
    fn dialect(&self) -> &str;

    /// The dialect whose rules hold, too.
    fn base(&self) -> Dialect {
        Dialect::Aten
    }

    /// Refuses functions that the dialect does not have, by their qualified names.
    ///
    /// # Errors
    /// What is wrong with the function.
    fn check_valid_op(&self, _op: &str) -> Result<()> {
        Ok(())
    }

    /// Looks at each graph as a whole.
    ///
    /// # Errors
    /// What is wrong with the graph.
    fn check_additional(&self, _module: &GraphModule) -> Result<()> {
        Ok(())
    }
}

impl ExportedProgram {
    /// Holds the program to the rules of a verifier, whatever verifiers it names itself: `Verifier.check(ep)`.
    ///
    /// ```
    /// use tracefx_core::{Code, Diagnostic, Result};
    /// use tracefx_export::{ExportedProgram, GraphSignature, Verifier};
    /// use tracefx_ir::{Arg, Graph, GraphModule};
    ///
    /// struct Edge;
    ///
    /// impl Verifier for Edge {
    ///     fn dialect(&self) -> &str {
    ///         "EDGE"
    ///     }
    ///
    ///     fn check_valid_op(&self, op: &str) -> Result<()> {
    ///         let what = || Diagnostic::new(Code::SpecViolation, format!("{op} is not an edge operator"));
    ///         if op == "torch.ops.aten.relu.default" { Ok(()) } else { Err(what()) }
    ///     }
    /// }
    ///
    /// let mut graph = Graph::new();
    /// let zeros = graph.call_function("torch.ops.aten.zeros.default", vec![Arg::List(vec![])], vec![]);
    /// graph.meta_mut(zeros).val = Some(tracefx_ir::Val::None);
    /// graph.output(Arg::Tuple(vec![]));
    /// let program = ExportedProgram::new(GraphModule::new(graph), GraphSignature::default());
    /// program.validate()?;
    /// assert!(program.check_by(&Edge, tracefx_ops::registry()).unwrap_err().message().contains("is not an edge operator"));
    /// # Ok::<(), Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// As [`ExportedProgram::validate`] for the rules of the base, then what the verifier refuses, with the node.
    pub fn check_by(&self, verifier: &dyn Verifier, registry: &Registry) -> Result<()> {
        let base = graph::check(self, verifier.base(), registry).into_iter().chain(signature::check(self));
        if let Some(problem) = base.into_iter().next() {
            return Err(problem);
        }
        for (_, module) in self.module.modules() {
            for id in module.graph.nodes() {
                let node = module.graph.node(id);
                if node.op() == Opcode::CallFunction {
                    verifier.check_valid_op(node.target()).map_err(|problem| problem.node(&**node.name()))?;
                }
            }
            verifier.check_additional(module)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GraphSignature;
    use tracefx_core::Code;
    use tracefx_ir::{Arg, Graph, Val};
    use tracefx_ops::{CustomOp, registry};

    struct Mine;

    impl Verifier for Mine {
        fn dialect(&self) -> &str {
            "MINE"
        }
    }

    #[test]
    fn what_an_operator_of_ones_own_writes_to_is_seen() {
        let mut graph = Graph::new();
        let call = graph.call_function("torch.ops.mine.write_.default", vec![Arg::None], vec![]);
        graph.meta_mut(call).val = Some(Val::None);
        graph.output(Arg::Tuple(vec![]));
        let program = ExportedProgram::new(GraphModule::new(graph), GraphSignature::default());
        program.check_by(&Mine, registry()).unwrap();
        let mut operators = registry().clone();
        operators.define(CustomOp::new("mine::write_(Tensor(a!)? x) -> ()").unwrap()).unwrap();
        assert_eq!(program.check_by(&Mine, &operators).unwrap_err().code(), Code::SpecViolation);
    }
}
