//! What depends on nothing that a run is given: positions, masks and other tensors that a program makes of numbers alone. They are
//! computed when the plan is made, and are constants of it.
//!
//! Weights are not looked at: a program may be given others between two runs.

use crate::uses::{Uses, drop_steps, held};
use rustc_hash::FxHashSet;
use tracefx_core::Tensor;
use tracefx_exec::{BoundPlan, Executor, Kernels};
use tracefx_ops::{Op, Registry, Tags, Value};
use tracefx_plan::{Action, Buffer, Operand, Plan, TensorId};

/// The most bytes that a plan keeps of them: a larger mask is made again in each run.
const MAX_BYTES: usize = 4 << 20;

/// Drops the assertions that hold for every run of the plan.
pub(crate) fn without_assertions(plan: &mut Plan) {
    let held = (0..plan.steps.len()).filter(|&at| holds_already(plan, at)).collect();
    drop_steps(plan, &held);
}

/// Computes the steps that depend on nothing, and drops them. Passes that look for such steps come before.
pub(crate) fn fold(plan: &mut Plan, registry: &Registry, kernels: &Kernels) {
    let Folded { steps, kept } = Folded::of(plan, registry);
    if steps.is_empty() {
        return;
    }
    let Some(tensors) = computed(plan, &steps, &kept, registry, kernels) else { return };
    for (id, tensor) in kept.into_iter().zip(tensors) {
        let buffer = plan.tensor(id).buffer;
        plan.buffers[buffer.0 as usize] = Buffer::Constant(tensor.storage().clone());
    }
    drop_steps(plan, &steps);
}

/// Whether a step holds what the sizes and the dtype of its tensor say: the plan is for these.
fn holds_already(plan: &Plan, at: usize) -> bool {
    match &plan.steps[at].action {
        Action::Call { op, args, .. } if &**op == "aten._assert_tensor_metadata.default" => {
            matches!(args.first(), Some(Operand::Tensor(id)) if plan.tensor(*id).is_known())
        }
        _ => false,
    }
}

struct Folded {
    steps: FxHashSet<usize>,
    /// Of their results, those that the other steps read: the tensors that the steps give.
    kept: Vec<TensorId>,
}

impl Folded {
    fn of(plan: &Plan, registry: &Registry) -> Self {
        let (uses, sizes) = (Uses::of(plan, registry), plan.buffer_sizes());
        let is_held = held(plan, registry);
        let (mut steps, mut results) = (FxHashSet::default(), Vec::new());
        let mut is_known = vec![false; plan.buffers.len()];
        let mut left = MAX_BYTES;
        for (at, step) in plan.steps.iter().enumerate() {
            let Action::Call { op, args, results: given } = &step.action else { continue };
            let (true, [Operand::Tensor(result)]) = (registry.get(op).is_some_and(is_pure), &given[..]) else {
                continue;
            };
            let view = plan.tensor(*result);
            let (buffer, used) = (view.buffer.0 as usize, uses.buffer(view.buffer));
            let is_inner = matches!(plan.buffers[buffer], Buffer::Scratch) && !used.is_outer && !is_held[buffer];
            let mut is_constant = is_inner && used.writers.len() == 1 && args.iter().all(|it| !it.has_expr());
            args.iter().for_each(|it| {
                it.for_each_tensor(&mut |id| is_constant &= is_known[plan.tensor(id).buffer.0 as usize]);
            });
            let Some(rest) = sizes[buffer].filter(|_| is_constant).and_then(|it| left.checked_sub(it)) else {
                continue;
            };
            left = rest;
            is_known[buffer] = true;
            steps.insert(at);
            results.push(*result);
        }
        let is_read =
            |it: &TensorId| uses.buffer(plan.tensor(*it).buffer).readers.iter().any(|reader| !steps.contains(reader));
        results.retain(is_read);
        Folded { steps, kept: results }
    }
}

/// Whether an operator gives the same for the same arguments, and does nothing else.
fn is_pure(op: &Op) -> bool {
    let tags = op.def.tags;
    !op.is_custom() && !op.may_write() && !tags.has(Tags::RANDOM) && !tags.has(Tags::SIDE_EFFECT)
}

/// What these steps give; nothing where one of them refuses, which a run will tell.
fn computed(
    plan: &Plan,
    steps: &FxHashSet<usize>,
    kept: &[TensorId],
    registry: &Registry,
    kernels: &Kernels,
) -> Option<Vec<Tensor>> {
    let output = Operand::List(kept.iter().map(|it| Operand::Tensor(*it)).collect());
    let mut part = Plan { output, tensors: plan.tensors.clone(), buffers: plan.buffers.clone(), ..Plan::default() };
    let own = (0..plan.steps.len()).filter(|it| steps.contains(it)).map(|it| plan.steps[it].clone());
    part.steps = own.collect();
    // What a run is given they do not read, and what it gives they do not write.
    let is_outer = |it: &Buffer| matches!(it, Buffer::Input(_) | Buffer::Result);
    part.buffers.iter_mut().filter(|it| is_outer(it)).for_each(|it| *it = Buffer::Scratch);
    for id in kept {
        part.buffers[plan.tensor(*id).buffer.0 as usize] = Buffer::Result;
    }
    let mut bound = BoundPlan::new(part.into(), registry, kernels).ok()?;
    let made = bound.run(Executor::new(registry, kernels), &[], 0, &mut |_, _| Ok(())).ok()?;
    let mut tensors = Vec::new();
    made.for_each_tensor(&mut |it: &Tensor| tensors.push(it.clone()));
    (matches!(made, Value::List(_)) && tensors.len() == kept.len()).then_some(tensors)
}
