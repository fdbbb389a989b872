//! Images whose channels are multiplied by a number each (squeeze and excitation), and the pointwise convolution behind them: one step,
//! which multiplies what it has just read.

use crate::epilogue::{call, dense_sizes, tensor};
use crate::uses::{Uses, any_within, drop_steps};
use rustc_hash::FxHashSet;
use tracefx_ops::Registry;
use tracefx_plan::{Action, Buffer, Convolution, Fused, Plan, TensorId};

/// Joins them.
pub(crate) fn join(plan: &mut Plan, registry: &Registry) {
    let uses = Uses::of(plan, registry);
    let mut dropped = FxHashSet::default();
    for at in 0..plan.steps.len() {
        let Some(found) = scaled(plan, &uses, at) else { continue };
        if let Action::Fused(Fused::Convolution(it)) = &mut plan.steps[at].action {
            (it.input, it.scale) = (found.images, Some(found.scale));
            dropped.insert(found.step);
        }
    }
    drop_steps(plan, &dropped);
}

/// A step that multiplies images.
struct Found {
    step: usize,
    images: TensorId,
    scale: TensorId,
}

/// The step that multiplies the images of the convolution at `at`, and of nobody else.
fn scaled(plan: &Plan, uses: &Uses, at: usize) -> Option<Found> {
    let Action::Fused(Fused::Convolution(Convolution { input, scale: None, layers, result })) = &plan.steps[at].action
    else {
        return None;
    };
    let [layer] = &layers[..] else { return None };
    let view = plan.tensor(*input);
    let used = uses.buffer(view.buffer);
    let is_inner = matches!(plan.buffer(view.buffer), Buffer::Scratch) && !used.is_outer;
    let ([step], [reader]) = (&used.writers[..], &used.readers[..]) else { return None };
    let (op, args, results) = call(plan, *step)?;
    let is_whole = plan.tensor(tensor(results.first())?) == view;
    if !is_inner || *reader != at || op != "aten.mul.Tensor" || !is_whole {
        return None;
    }
    let sizes = dense_sizes(plan, *input)?;
    let [n, _, _, c] = sizes[..].try_into().ok()?;
    if !layer.is_pointwise(&plan.tensor(layer.weight).known()?.sizes) {
        return None;
    }
    let pair = [tensor(args.first())?, tensor(args.get(1))?];
    let is = |id: TensorId, sizes: &[usize]| dense_sizes(plan, id).is_some_and(|it| it == sizes);
    let fits = |[images, scale]: [TensorId; 2]| is(images, &sizes) && is(scale, &[n, 1, 1, c]);
    let [images, scale] = [pair, [pair[1], pair[0]]].into_iter().find(|it| fits(*it))?;
    let stays = |id: TensorId| {
        let buffer = plan.tensor(id).buffer;
        buffer != plan.tensor(*result).buffer && !any_within(uses.writers(plan, buffer), step + 1..at)
    };
    (stays(images) && stays(scale)).then_some(Found { step: *step, images, scale })
}
