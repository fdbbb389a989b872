use crate::case::{Case, Check};
use crate::compare::same_graph;
use tracefx_core::DType;
use tracefx_export::{Remove, functionalize};
use tracefx_ir::{Opcode, TensorMeta, Val};
use tracefx_ops::registry;

/// Graphs without writes, with views and without. The functions were recorded with one input of two rows of four.
pub(crate) fn check(case: &Case) -> Check {
    let mut module = case.module();
    let inputs: Vec<_> = module.graph.nodes().filter(|&it| module.graph.node(it).op() == Opcode::Placeholder).collect();
    for input in inputs {
        let meta = TensorMeta::contiguous(DType::Float32, vec![2.into(), 4.into()]);
        module.graph.meta_mut(input).val = Some(Val::Tensor(meta));
    }
    for (field, remove) in [("after_mutations_only", Remove::Mutations), ("after", Remove::MutationsAndViews)] {
        let res = functionalize(&module, registry(), remove).map_err(|it| it.to_string())?;
        same_graph(&res.graph, case.get(field), field)?;
    }
    Ok(())
}
