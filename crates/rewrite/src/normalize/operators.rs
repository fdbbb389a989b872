//! Functions of `torch` in the spelling of Python's operators.

use super::{AnnotateOptions, AnnotateTypesWithSchema};
use crate::{Pass, PassResult};
use tracefx_core::Result;
use tracefx_ir::{GraphModule, NodeId, Opcode};

/// The functions of `torch` that are operators of Python.
const OPERATORS: &[(&str, &str)] = &[
    ("torch.add", "operator.add"),
    ("torch.mul", "operator.mul"),
    ("torch.sub", "operator.sub"),
    ("torch.div", "operator.truediv"),
    ("torch.floor_divide", "operator.floordiv"),
    ("torch.remainder", "operator.mod"),
    ("torch.eq", "operator.eq"),
    ("torch.ne", "operator.ne"),
    ("torch.lt", "operator.lt"),
    ("torch.le", "operator.le"),
    ("torch.gt", "operator.gt"),
    ("torch.ge", "operator.ge"),
];

/// Spells calls of `torch.add` and its like with two positional arguments as Python's operators:
/// `torch.fx.experimental.normalize.NormalizeOperators`, in place. Annotates types as well, as PyTorch's pass does.
///
/// Unlike PyTorch's pass, it leaves calls with keyword arguments (`alpha`, `rounding_mode`) alone, which an operator would
/// lose.
#[derive(Clone, Copy, Debug, Default)]
pub struct NormalizeOperators {
    /// What is annotated.
    pub annotate: AnnotateOptions,
}

impl Pass for NormalizeOperators {
    fn name(&self) -> &str {
        "NormalizeOperators"
    }

    fn call(&self, module: &mut GraphModule) -> Result<PassResult> {
        let mut modified = AnnotateTypesWithSchema(self.annotate).call(module)?.modified;
        let nodes: Vec<NodeId> = module.graph.nodes().collect();
        for id in nodes {
            let node = module.graph.node(id);
            if node.op() != Opcode::CallFunction || node.args().len() != 2 || !node.kwargs().is_empty() {
                continue;
            }
            if let Some((_, operator)) = OPERATORS.iter().find(|(it, _)| *it == &**node.target()) {
                let val = node.meta.val.clone();
                module.graph.set_target(id, operator)?;
                module.graph.meta_mut(id).val = val;
                modified = true;
            }
        }
        Ok(PassResult::new(modified))
    }
}
