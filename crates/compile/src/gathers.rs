//! Elements at positions of one dimension: embeddings, selections, and what is indexed by one tensor of positions.

use crate::epilogue::{call, tensor};
use tracefx_core::DType;
use tracefx_plan::{Action, Fused, Gather, Operand, Plan, TensorId};

/// Puts them into one step each.
pub(crate) fn gathers(plan: &mut Plan) {
    for at in 0..plan.steps.len() {
        if let Some(gather) = gather(plan, at) {
            plan.steps[at].action = Action::Fused(Fused::Gather(gather));
        }
    }
}

fn gather(plan: &Plan, at: usize) -> Option<Gather<TensorId>> {
    let (op, args, results) = call(plan, at)?;
    let (input, result) = (tensor(args.first())?, tensor(results.first())?);
    let rank = plan.tensor(input).known()?.sizes.len();
    let (dim, index, is_wrapped) = match op {
        "aten.embedding.default" => (0, tensor(args.get(1))?, false),
        "aten.index_select.default" => {
            let Some(Operand::Int(dim)) = args.get(1) else { return None };
            let dim = if *dim < 0 { dim + rank as i64 } else { *dim };
            let index = tensor(args.get(2))?;
            // A position without dimensions is one of a dimension, which the result has.
            let has_dimension = plan.tensor(index).sizes.len() == 1;
            (usize::try_from(dim).ok().filter(|_| has_dimension)?, index, false)
        }
        "aten.index.Tensor" => {
            let Some(Operand::List(indices)) = args.get(1) else { return None };
            let (dim, index) = indices.iter().enumerate().find(|(_, it)| **it != Operand::None)?;
            let is_only = indices[dim + 1..].iter().all(|it| *it == Operand::None);
            (dim, tensor(Some(index)).filter(|_| is_only)?, true)
        }
        _ => return None,
    };
    let view = plan.tensor(index);
    let is_index = matches!(view.dtype, DType::Int32 | DType::Int64) && view.is_known();
    let is_known = dim < rank && plan.tensor(result).is_known();
    (is_index && is_known).then(|| Gather { op: op.into(), input, dim, index, is_wrapped, result })
}
