//! Operators that move elements are copies: clones, and concatenations, each part of which goes to its slice of the result. What a copy gives as its source has it
//! is read there, and not copied.

use crate::epilogue::{call, tensor};
use crate::loops::COPIES;
use crate::uses::{Uses, any_within, drop_steps, held};
use rustc_hash::{FxHashMap, FxHashSet};
use tracefx_core::DType;
use tracefx_ops::Registry;
use tracefx_plan::{Action, Buffer, Extent, Operand, Plan, Step, TensorId, TensorView};
use tracefx_sym::SymInt;

/// Makes copies of the calls that move elements.
pub(crate) fn of_calls(plan: &mut Plan) {
    for step in std::mem::take(&mut plan.steps) {
        plan.steps.push(step);
        let at = plan.steps.len() - 1;
        let Some(moves) = cloned(plan, at).or_else(|| slices(plan, at)) else { continue };
        let node = plan.steps[at].node.clone();
        plan.steps.pop();
        for (from, view) in moves {
            let to = plan.add_tensor(view);
            plan.steps.push(Step { node: node.clone(), action: Action::Copy { from, to } });
        }
    }
}

/// The tensor that a call copies as it is, with the copy.
fn cloned(plan: &Plan, at: usize) -> Option<Vec<(TensorId, TensorView)>> {
    let (op, args, results) = call(plan, at)?;
    let is_reshaped = op == "aten.reshape.default";
    let source = match op {
        "aten.copy.default" => args.get(1),
        op if is_reshaped || COPIES.contains(&op) => args.first(),
        _ => None,
    };
    let (source, result) = (tensor(source)?, plan.tensor(tensor(results.first())?));
    let view = plan.tensor(source);
    // Row-major elements are the same in all sizes.
    let sizes = if is_reshaped { &view.sizes } else { &result.sizes };
    let copy = TensorView::row_major(result.buffer, result.dtype, sizes);
    (view.is_known() && result.is_known() && view.dtype == result.dtype).then(|| vec![(source, copy)])
}

/// The parts of a concatenation of known sizes, each with its slice of the result. Nothing where parts are of several dtypes, or where there is nothing to write.
fn slices(plan: &Plan, at: usize) -> Option<Vec<(TensorId, TensorView)>> {
    let (op, args, results) = call(plan, at)?;
    let (Operand::List(parts), &Operand::Int(dim)) = (args.first()?, args.get(1)?) else { return None };
    let (result, mut rest) = (plan.tensor(tensor(results.first())?), 0);
    let sizes = result.known().filter(|_| op == "aten.cat.default")?.sizes;
    let dim = usize::try_from(if dim < 0 { dim + sizes.len() as i64 } else { dim }).ok()?;
    let mut slices = Vec::new();
    for part in parts {
        let part = tensor(Some(part))?;
        let view = plan.tensor(part);
        let own = view.known().filter(|_| view.dtype == result.dtype)?.sizes;
        if own.contains(&0) {
            continue;
        }
        let slice = TensorView {
            sizes: view.sizes.clone(),
            offset: &result.offset + &(result.strides.get(dim)? * &SymInt::from(rest as i64)),
            ..result.clone()
        };
        let is_slice = own.len() == sizes.len() && (0..own.len()).all(|it| it == dim || own[it] == sizes[it]);
        rest += own.get(dim).filter(|_| is_slice)?;
        slices.push((part, slice));
    }
    (!slices.is_empty() && rest == sizes[dim]).then_some(slices)
}

/// Reads what is copied where it was, if it lies there as it does in the copy and nobody writes to either.
pub(crate) fn read_at_source(plan: &mut Plan, registry: &Registry) {
    let uses = Uses::of(plan, registry);
    let is_held = held(plan, registry);
    // Offsets count elements of one dtype.
    let mut dtypes: Vec<Option<DType>> = vec![None; plan.buffers.len()];
    let mut is_of_several = vec![false; plan.buffers.len()];
    for view in &plan.tensors {
        let buffer = view.buffer.0 as usize;
        is_of_several[buffer] |= *dtypes[buffer].get_or_insert(view.dtype) != view.dtype;
    }
    // Of each buffer that is a copy, the tensor that it is one of. Where that is a copy too, it has been replaced before.
    let mut sources: FxHashMap<usize, TensorId> = FxHashMap::default();
    let mut dropped = FxHashSet::default();
    for at in 0..plan.steps.len() {
        read_views(plan, at, &sources);
        let Action::Copy { from, to } = plan.steps[at].action else { continue };
        let (source, copy) = (plan.tensor(from), plan.tensor(to));
        let buffer = copy.buffer.0 as usize;
        let used = uses.buffer(copy.buffer);
        let is_inner = matches!(plan.buffers[buffer], Buffer::Scratch) && !used.is_outer && !is_of_several[buffer];
        let is_inner = is_inner && !is_held[buffer] && !is_held[source.buffer.0 as usize];
        let is_as_there = source.sizes == copy.sizes && copy.offset.as_int() == Some(0);
        let lies_so = |it: &TensorView| it.known().as_ref().is_some_and(Extent::is_row_major);
        let last = used.readers.last().copied().unwrap_or(at);
        let is_fixed = used.writers.len() == 1 && !any_within(uses.writers(plan, source.buffer), at + 1..last + 1);
        if is_inner && is_as_there && lies_so(source) && lies_so(copy) && is_fixed {
            sources.insert(buffer, from);
            dropped.insert(at);
        }
    }
    drop_steps(plan, &dropped);
}

/// Looks at the sources of copies in the place of the copies.
fn read_views(plan: &mut Plan, at: usize, sources: &FxHashMap<usize, TensorId>) {
    let Plan { steps, tensors, .. } = plan;
    steps[at].action.for_each_tensor_mut(&mut |id| {
        let view = &tensors[id.0 as usize];
        if let Some(from) = sources.get(&(view.buffer.0 as usize)) {
            let source = &tensors[from.0 as usize];
            let moved = TensorView { buffer: source.buffer, offset: &view.offset + &source.offset, ..view.clone() };
            *id = if moved == *source {
                *from
            } else {
                tensors.push(moved);
                TensorId((tensors.len() - 1) as u32)
            };
        }
    });
}
