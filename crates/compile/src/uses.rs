//! Which steps read and write each buffer of a plan.

use std::ops::Range;
use tracefx_ops::{Op, Registry};
use tracefx_plan::{Action, Buffer, BufferId, Operand, Plan, TensorId};

/// The uses of the buffers of a plan, by the numbers of its steps.
#[derive(Debug)]
pub(crate) struct Uses {
    buffers: Vec<BufferUses>,
    /// The steps that write to memory of the program or of whoever runs it, where one buffer may be the memory of another too.
    pub(crate) outer_writers: Vec<usize>,
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

/// The uses of one buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferUses {
    /// The steps that read it, in order, once for each operand.
    pub(crate) readers: Vec<usize>,
    /// The steps that write to it, in order.
    pub(crate) writers: Vec<usize>,
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
                Action::Fused(fused) => {
                    fused.inputs().into_iter().for_each(|it| buffers[buffer(*it)].readers.push(at));
                    fused.results().into_iter().for_each(|it| buffers[buffer(*it)].writers.push(at));
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
        let is_outer = |it: &Buffer| matches!(it, Buffer::Input(_) | Buffer::Constant(_));
        let outer = buffers.iter().zip(&plan.buffers).filter(|(_, buffer)| is_outer(buffer));
        let mut outer_writers: Vec<usize> = outer.flat_map(|(uses, _)| uses.writers.iter().copied()).collect();
        outer_writers.sort_unstable();
        Uses { buffers, outer_writers }
    }

    /// The steps that may write to a buffer.
    pub(crate) fn writers(&self, plan: &Plan, id: BufferId) -> &[usize] {
        match plan.buffer(id) {
            Buffer::Input(_) | Buffer::Constant(_) => &self.outer_writers,
            Buffer::Scratch | Buffer::Result | Buffer::Made => &self.buffer(id).writers,
        }
    }

    /// The uses of one buffer.
    pub(crate) fn buffer(&self, id: BufferId) -> &BufferUses {
        &self.buffers[id.0 as usize]
    }
}
