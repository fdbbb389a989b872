//! Which steps read and write each buffer of a plan.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::ops::Range;
use tracefx_ops::{Op, Registry};
use tracefx_plan::{Action, Buffer, BufferId, Operand, Plan, TensorId};

/// The uses of the buffers of a plan, by the numbers of its steps.
#[derive(Debug)]
pub(crate) struct Uses {
    buffers: Vec<BufferUses>,
    /// The steps that write to memory of the program or of whoever runs it, where one buffer may be the memory of another too: one that
    /// is not [alone](Plan::alone).
    pub(crate) outer_writers: Vec<usize>,
}

/// Whether another buffer may be the memory of this one too.
fn may_be_shared(plan: &Plan, id: BufferId) -> bool {
    matches!(plan.buffer(id), Buffer::Input(_) | Buffer::Constant(_)) && !plan.alone.contains(&id)
}

/// Whether one of these steps, which are in order, is among those of a range.
pub(crate) fn any_within(steps: &[usize], range: Range<usize>) -> bool {
    within(steps, range).next().is_some()
}

/// Those of these steps, which are in order, that are among those of a range.
pub(crate) fn within(steps: &[usize], range: Range<usize>) -> impl Iterator<Item = usize> {
    let first = steps.partition_point(|it| *it < range.start);
    steps[first..].iter().copied().take_while(move |it| *it < range.end)
}

/// Takes these steps out of a plan.
pub(crate) fn drop_steps(plan: &mut Plan, dropped: &FxHashSet<usize>) {
    let mut steps = 0..;
    plan.steps.retain(|_| !steps.next().is_some_and(|it| dropped.contains(&it)));
}

/// Of each buffer, whether control flow or a function of the host sees it, which may keep it or write to it.
pub(crate) fn held(plan: &Plan, registry: &Registry) -> Vec<bool> {
    let mut res = vec![false; plan.buffers.len()];
    for step in &plan.steps {
        let is_shared = match &step.action {
            Action::Call { op, .. } => registry.get(op).is_none_or(Op::is_custom),
            Action::ControlFlow { .. } => true,
            Action::Copy { .. } | Action::Fused(_) | Action::Update { .. } => false,
        };
        if is_shared {
            step.action.for_each_tensor(&mut |id| res[plan.tensor(id).buffer.0 as usize] = true);
        }
    }
    res
}

/// The uses of one buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferUses {
    /// The steps that read it, in order, once for each operand.
    pub(crate) readers: SmallVec<[usize; 2]>,
    /// The steps that write to it, in order.
    pub(crate) writers: SmallVec<[usize; 2]>,
    /// Whether the plan gives it, or takes it.
    pub(crate) is_outer: bool,
}

impl Uses {
    /// The uses of all buffers.
    pub(crate) fn of(plan: &Plan, registry: &Registry) -> Self {
        let mut buffers = vec![BufferUses::default(); plan.buffers.len()];
        let buffer = |id: TensorId| plan.tensor(id).buffer.0 as usize;
        for (at, step) in plan.steps.iter().enumerate() {
            match &step.action {
                Action::Call { op, args, results } => {
                    // What its schema does not know writes wherever it can.
                    if registry.get(op).is_none_or(Op::may_write) {
                        args.iter().for_each(|it| it.for_each_tensor(&mut |id| buffers[buffer(id)].writers.push(at)));
                    }
                    args.iter().for_each(|it| it.for_each_tensor(&mut |id| buffers[buffer(id)].readers.push(at)));
                    results.iter().for_each(|it| it.for_each_tensor(&mut |id| buffers[buffer(id)].writers.push(at)));
                }
                Action::Update { args, .. } => {
                    args.iter().for_each(|it| it.for_each_tensor(&mut |id| buffers[buffer(id)].readers.push(at)));
                    args.iter().take(1).for_each(|it| {
                        it.for_each_tensor(&mut |id| buffers[buffer(id)].writers.push(at));
                    });
                }
                Action::Fused(fused) => {
                    fused.for_each_input(&mut |it| buffers[buffer(*it)].readers.push(at));
                    fused.for_each_result(&mut |it| buffers[buffer(*it)].writers.push(at));
                }
                Action::Copy { from, to } => {
                    buffers[buffer(*from)].readers.push(at);
                    buffers[buffer(*to)].writers.push(at);
                }
                Action::ControlFlow { operands, results, .. } => {
                    operands.iter().for_each(|it| it.for_each_tensor(&mut |id| buffers[buffer(id)].readers.push(at)));
                    results.for_each_tensor(&mut |id| buffers[buffer(id)].writers.push(at));
                }
            }
        }
        let mut outer = |it: &Operand| it.for_each_tensor(&mut |id| buffers[buffer(id)].is_outer = true);
        plan.inputs.iter().chain([&plan.output]).for_each(&mut outer);
        for (uses, buffer) in buffers.iter_mut().zip(&plan.buffers) {
            uses.is_outer |= matches!(buffer, Buffer::Input(_) | Buffer::Constant(_));
        }
        let is_shared = |at: &usize| may_be_shared(plan, BufferId(*at as u32));
        let shared = (0..buffers.len()).filter(is_shared);
        let mut outer_writers: Vec<usize> = shared.flat_map(|at| buffers[at].writers.iter().copied()).collect();
        outer_writers.sort_unstable();
        Uses { buffers, outer_writers }
    }

    /// The steps that may write to a buffer.
    pub(crate) fn writers(&self, plan: &Plan, id: BufferId) -> &[usize] {
        if may_be_shared(plan, id) { &self.outer_writers } else { &self.buffer(id).writers }
    }

    /// The only step that reads a tensor of the plan, which one step writes.
    pub(crate) fn only_reader(&self, plan: &Plan, id: TensorId) -> Option<usize> {
        let buffer = plan.tensor(id).buffer;
        let used = self.buffer(buffer);
        let is_inner = matches!(plan.buffer(buffer), Buffer::Scratch) && !used.is_outer && used.writers.len() == 1;
        match used.readers[..] {
            [reader] if is_inner => Some(reader),
            _ => None,
        }
    }

    /// Whether nobody reads a result, which is a tensor.
    pub(crate) fn is_unread(&self, plan: &Plan, result: &Operand) -> bool {
        let Operand::Tensor(id) = result else { return false };
        let used = self.buffer(plan.tensor(*id).buffer);
        !used.is_outer && used.readers.is_empty()
    }

    /// The uses of one buffer.
    pub(crate) fn buffer(&self, id: BufferId) -> &BufferUses {
        &self.buffers[id.0 as usize]
    }
}
