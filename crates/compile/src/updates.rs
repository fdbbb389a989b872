//! Updates: an operator that gives a tensor with some elements changed changes them in the place where they are, where nobody looks at the
//! tensor as it was. A key-value cache is written to where the new keys and values belong, and never copied.
//!
//! Two things can follow such an operator. The program copies its result to where the tensor was: operators in place do so at once, and
//! functionalised programs at their end. Up to there all steps may read the result in the place of the tensor. Or nobody uses the tensor any
//! more, and its memory becomes that of the result. A view that is written back to what it is a view of is copied to the view, so that
//! what computed it can write there in turn.

use crate::in_place::is_given;
use crate::uses::{Uses, any_within};
use rustc_hash::FxHashMap;
use std::ops::Range;
use tracefx_exec::{Kernel, Kernels, view_of};
use tracefx_ops::Registry;
use tracefx_plan::{Action, Buffer, BufferId, Operand, Plan, TensorId, TensorView};

/// The operators that write a tensor to a view of another, and those that make the view, with what stands behind the two tensors.
const SCATTERS: [(&str, &str); 3] = [
    ("aten.diagonal_scatter.default", "aten.diagonal.default"),
    ("aten.select_scatter.default", "aten.select.int"),
    ("aten.slice_scatter.default", "aten.slice.Tensor"),
];

/// Lets operators change their first arguments where these need not be kept.
pub(crate) fn in_place(plan: &mut Plan, registry: &Registry, kernels: &Kernels) {
    // What writes to a view comes before what writes the view back.
    for at in (0..plan.steps.len()).rev() {
        let Some(update) = Update::of(plan, at, kernels) else { continue };
        let uses = Uses::of(plan, registry);
        if let Some(back) = update.copied_back(plan, &uses) {
            update.moves_until(plan, &uses, back);
        } else if update.is_last(plan, &uses) {
            update.replaces(plan);
        } else {
            continue;
        }
        update.rewrite(plan, registry);
    }
}

/// A call that gives its first argument with some elements changed.
struct Update {
    /// The step.
    at: usize,
    /// The first argument, whose elements lie in places of their own.
    target: TensorId,
    /// The result, which is as large.
    result: TensorId,
}

impl Update {
    fn of(plan: &Plan, at: usize, kernels: &Kernels) -> Option<Self> {
        let Action::Call { op, args, results } = &plan.steps[at].action else { return None };
        let (Some(&Operand::Tensor(target)), &[Operand::Tensor(result)]) = (args.first(), &results[..]) else {
            return None;
        };
        let (old, new) = (plan.tensor(target), plan.tensor(result));
        let is_like = old.sizes == new.sizes && old.dtype == new.dtype;
        let is_apart = old.known().is_some_and(|it| it.is_apart());
        let updates = matches!(kernels.get(op), Some(Kernel::Update { .. }));
        (updates && is_like && is_apart).then_some(Update { at, target, result })
    }

    /// The step that copies the result to where the tensor is, if until then nobody uses what was there.
    fn copied_back(&self, plan: &Plan, uses: &Uses) -> Option<usize> {
        let (old, new) = (plan.tensor(self.target), plan.tensor(self.result));
        let is_back = |it: &usize| match plan.steps[*it].action {
            Action::Copy { from, to } => is_same(plan.tensor(from), new) && is_same(plan.tensor(to), old),
            _ => false,
        };
        let readers = &uses.buffer(new.buffer).readers;
        let back = readers.iter().copied().filter(|it| *it > self.at).find(is_back)?;
        let (between, used) = (self.at + 1..back, uses.buffer(old.buffer));
        let is_free = !any_within(&used.readers, between.clone()) && !any_within(&used.writers, between.clone());
        (is_free && self.can_move_within(plan, between)).then_some(back)
    }

    fn can_move_within(&self, plan: &Plan, steps: Range<usize>) -> bool {
        let mut res = true;
        plan.steps[steps].iter().for_each(|it| it.action.for_each_tensor(&mut |it| res &= self.can_move(plan, it)));
        res
    }

    /// Whether nobody uses the tensor any more, which is the whole of memory of the plan.
    fn is_last(&self, plan: &Plan, uses: &Uses) -> bool {
        let old = plan.tensor(self.target);
        let used = uses.buffer(old.buffer);
        let is_own = matches!(plan.buffer(old.buffer), Buffer::Scratch) && !used.is_outer;
        let is_last = used.readers.iter().chain(&used.writers).all(|it| *it <= self.at);
        let is_whole = old.offset.as_int() == Some(0) && old.known().is_some_and(|it| it.is_row_major());
        let span = old.known().and_then(|it| it.span(old.dtype));
        is_own && is_last && is_whole && plan.buffer_sizes()[old.buffer.0 as usize] == span
    }

    /// Whether what looks at the result can look at the tensor in its place, or looks at something else.
    fn can_move(&self, plan: &Plan, id: TensorId) -> bool {
        let (old, new, view) = (plan.tensor(self.target), plan.tensor(self.result), plan.tensor(id));
        let is_dense = old.known().is_some_and(|it| it.is_row_major());
        // Offsets count elements.
        let is_counted = view.dtype == old.dtype || old.offset.as_int() == Some(0);
        view.buffer != new.buffer || is_same(view, new) || is_dense && is_counted
    }

    /// Lets the steps up to the one that copies the result look at the tensor, and those behind it where nobody writes to the one or the
    /// other as long as the result is used.
    fn moves_until(&self, plan: &mut Plan, uses: &Uses, back: usize) {
        let (old, new) = (plan.tensor(self.target).buffer, plan.tensor(self.result).buffer);
        let (before, after) = (uses.buffer(old), uses.buffer(new));
        let last = after.readers.iter().chain(&after.writers).copied().fold(back, usize::max);
        let behind = back + 1..last + 1;
        let is_written = [before, after].iter().any(|it| any_within(&it.writers, behind.clone()));
        let is_apart = after.is_outer || is_written || !self.can_move_within(plan, behind);
        let end = if is_apart { back } else { last + 1 };
        let mut meets_others = false;
        for step in &plan.steps[self.at + 1..end] {
            step.action.for_each_tensor(&mut |it| {
                let buffer = plan.tensor(it).buffer;
                meets_others |= is_given(plan, buffer) && buffer != old;
            });
        }
        if is_given(plan, old) && meets_others && !plan.alone.contains(&old) {
            plan.alone.push(old);
        }
        self.moves(plan, end);
        if is_apart {
            plan.steps[back].action = Action::Copy { from: self.target, to: self.result };
        } else {
            plan.steps.remove(back);
        }
    }

    /// Gives the memory of the tensor to the result.
    fn replaces(&self, plan: &mut Plan) {
        let (BufferId(old), BufferId(new)) = (plan.tensor(self.target).buffer, plan.tensor(self.result).buffer);
        self.moves(plan, plan.steps.len());
        let mut output = std::mem::replace(&mut plan.output, Operand::None);
        let mut views = FxHashMap::default();
        output.for_each_tensor_mut(&mut |it| self.look(plan, &mut views, it));
        plan.output = output;
        plan.buffers.swap(old as usize, new as usize);
    }

    /// Lets the steps from the next one to this one look at the tensor in the place of the result.
    fn moves(&self, plan: &mut Plan, end: usize) {
        let mut views = FxHashMap::default();
        let mut steps = std::mem::take(&mut plan.steps);
        for step in &mut steps[self.at + 1..end] {
            step.action.for_each_tensor_mut(&mut |it| self.look(plan, &mut views, it));
        }
        plan.steps = steps;
    }

    /// Looks at the tensor in the place of the result.
    fn look(&self, plan: &mut Plan, views: &mut FxHashMap<TensorId, TensorId>, id: &mut TensorId) {
        let (old, new, view) = (plan.tensor(self.target), plan.tensor(self.result), plan.tensor(*id));
        if view.buffer != new.buffer {
            return;
        }
        let moved = match old.known() {
            Some(it) if it.is_row_major() => {
                TensorView { buffer: old.buffer, offset: &view.offset + &old.offset, ..view.clone() }
            }
            _ => old.clone(),
        };
        *id = *views.entry(*id).or_insert_with(|| plan.add_tensor(moved));
    }

    /// Makes the call an update: of a view, a copy where that says the same.
    fn rewrite(&self, plan: &mut Plan, registry: &Registry) {
        let Action::Call { op, args, .. } = &plan.steps[self.at].action else { return };
        plan.steps[self.at].action = match copy_to_view(plan, registry, op, args) {
            Some((from, view)) => Action::Copy { from, to: plan.add_tensor(view) },
            None => Action::Update { op: op.clone(), args: args.clone() },
        };
    }
}

/// The tensor that a call writes to a view of another, and the view.
fn copy_to_view(plan: &Plan, registry: &Registry, op: &str, args: &[Operand]) -> Option<(TensorId, TensorView)> {
    let (_, viewing) = SCATTERS.iter().find(|it| it.0 == op)?;
    let [Operand::Tensor(target), Operand::Tensor(from), rest @ ..] = args else { return None };
    let (old, source) = (plan.tensor(*target), plan.tensor(*from));
    let view = view_of(registry.get(viewing)?, old, rest)?;
    // Of two tensors that are given, nobody knows whether they share memory, and an update asks.
    let is_elsewhere = matches!(plan.buffer(source.buffer), Buffer::Scratch | Buffer::Result);
    let can_be_copied = is_elsewhere && source.buffer != old.buffer && source.dtype == old.dtype;
    (can_be_copied && view.is_known() && source.sizes == view.sizes).then_some((*from, view))
}

/// Whether two tensors look at the same elements: the stride of a single one does not matter.
fn is_same(a: &TensorView, b: &TensorView) -> bool {
    let is_alike = a.buffer == b.buffer && a.dtype == b.dtype && a.sizes == b.sizes && a.offset == b.offset;
    is_alike
        && a.sizes.iter().zip(a.strides.iter().zip(&b.strides)).all(|(size, (a, b))| a == b || size.as_int() == Some(1))
}
