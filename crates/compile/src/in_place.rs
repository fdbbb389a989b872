//! Operators in place compute, and then copy what they have computed to where it belongs. Where that is memory that nothing else looks at, the
//! program can go on with what was computed.

use crate::loops::COPIES;
use crate::uses::{Uses, any_within, drop_steps};
use rustc_hash::{FxHashMap, FxHashSet};
use tracefx_ops::Registry;
use tracefx_plan::{Action, Buffer, BufferId, Operand, Plan, TensorId, TensorView};

/// Drops the copies of results to memory of the plan that they fill.
pub(crate) fn without_copies(plan: &mut Plan, registry: &Registry) {
    let (uses, sizes) = (Uses::of(plan, registry), plan.buffer_sizes());
    let mut moved = Moved::default();
    for mut step in std::mem::take(&mut plan.steps) {
        match step.action {
            Action::Copy { from, to } if can_replace(plan, &uses, &sizes, from, to) => {
                let target = plan.tensor(to).buffer;
                moved.buffers.insert(target, plan.tensor(from).buffer);
            }
            _ => {
                step.action.for_each_tensor_mut(&mut |id| moved.look(&mut plan.tensors, id));
                plan.steps.push(step);
            }
        }
    }
    plan.output.for_each_tensor_mut(&mut |id| moved.look(&mut plan.tensors, id));
    for (BufferId(to), BufferId(from)) in moved.buffers {
        if matches!(plan.buffers[to as usize], Buffer::Result) {
            plan.buffers[from as usize] = Buffer::Result;
            plan.buffers[to as usize] = Buffer::Scratch;
        }
    }
}

/// Copies what a step copies for one other step, which copies it on, from where it was.
pub(crate) fn copy_straight(plan: &mut Plan, registry: &Registry) {
    let uses = Uses::of(plan, registry);
    let mut dropped = FxHashSet::default();
    for at in 0..plan.steps.len() {
        let Action::Copy { from, to } = plan.steps[at].action else { continue };
        let used = uses.buffer(plan.tensor(from).buffer);
        let [writer] = used.writers[..] else { continue };
        let is_only = uses.only_reader(plan, from) == Some(at);
        let Some(source) = copied(plan, writer, from).filter(|_| is_only) else { continue };
        let (buffer, target) = (plan.tensor(source).buffer, plan.tensor(to).buffer);
        let is_fixed = !any_within(uses.writers(plan, buffer), writer + 1..at);
        if is_fixed && plan.tensor(source) == plan.tensor(to) {
            dropped.extend([writer, at]);
            continue;
        }
        // Of two tensors that are given, nobody knows whether they share memory.
        let is_elsewhere = buffer != target && !(is_given(plan, buffer) && is_given(plan, target));
        if is_elsewhere && is_fixed {
            plan.steps[at].action = Action::Copy { from: source, to };
            dropped.insert(writer);
        }
    }
    drop_steps(plan, &dropped);
}

/// The tensor whose elements a call gives as they are, as all of this tensor.
fn copied(plan: &Plan, at: usize, given: TensorId) -> Option<TensorId> {
    let Action::Call { op, args, results } = &plan.steps[at].action else { return None };
    let source = match &**op {
        "aten.copy.default" => args.get(1)?,
        op if COPIES.contains(&op) => args.first()?,
        _ => return None,
    };
    let (&Operand::Tensor(source), &[Operand::Tensor(result)]) = (source, &results[..]) else { return None };
    let is_whole = plan.tensor(result) == plan.tensor(given);
    (is_whole && plan.tensor(source).dtype == plan.tensor(given).dtype).then_some(source)
}

/// Whether a buffer is of the program or of whoever runs it.
pub(crate) fn is_given(plan: &Plan, id: BufferId) -> bool {
    matches!(plan.buffer(id), Buffer::Input(_) | Buffer::Constant(_))
}

/// Whether what is copied can stay where it was computed: nothing else looks at it there, and it is all of where it would go.
fn can_replace(plan: &Plan, uses: &Uses, sizes: &[Option<usize>], from: TensorId, to: TensorId) -> bool {
    let (source, target) = (plan.tensor(from), plan.tensor(to));
    let used = uses.buffer(source.buffer);
    let is_result = matches!(plan.buffer(source.buffer), Buffer::Scratch) && !used.is_outer;
    let is_own = matches!(plan.buffer(target.buffer), Buffer::Scratch | Buffer::Result);
    let is_alone = used.writers.len() == 1 && used.readers.len() == 1;
    let begins = |it: &TensorView| it.offset.as_int() == Some(0) && it.known().is_some_and(|it| it.is_row_major());
    let span = target.known().and_then(|it| it.span(target.dtype));
    let fills = span.is_some_and(|it| sizes[target.buffer.0 as usize] == Some(it));
    is_result && is_own && is_alone && begins(source) && begins(target) && source.sizes == target.sizes && fills
}

/// Which buffers take the place of others from here on.
#[derive(Default)]
struct Moved {
    buffers: FxHashMap<BufferId, BufferId>,
    /// The tensors that look at the new buffers, by those that looked at the old ones.
    views: FxHashMap<(TensorId, BufferId), TensorId>,
}

impl Moved {
    /// Looks at the new buffer.
    fn look(&mut self, tensors: &mut Vec<TensorView>, id: &mut TensorId) {
        let view = &tensors[id.0 as usize];
        if let Some(&buffer) = self.buffers.get(&view.buffer) {
            *id = *self.views.entry((*id, buffer)).or_insert_with(|| {
                tensors.push(TensorView { buffer, ..tensors[id.0 as usize].clone() });
                TensorId((tensors.len() - 1) as u32)
            });
        }
    }
}
