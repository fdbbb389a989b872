//! Depthwise convolutions with the pointwise ones before and behind them: one step, where the images between them are so large
//! that they would leave the cache before they are read.

use crate::uses::Uses;
use std::ops::Range;
use std::sync::Arc;
use tracefx_ops::Registry;
use tracefx_plan::{Action, Buffer, Convolution, ConvolutionLayer, Fused, Plan, Step, TensorId};

/// The elements of images that do not stay in the second-level cache beside all else.
const LARGE: usize = 1 << 17;

/// The widest kernel whose rows are computed in bands.
const WIDEST: usize = 7;

/// Joins them.
pub(crate) fn join(plan: &mut Plan, registry: &Registry) {
    let uses = Uses::of(plan, registry);
    let mut found: Vec<Range<usize>> = Vec::new();
    for at in 0..plan.steps.len() {
        if !layer(plan, at).is_some_and(|it| is_banded(plan, it)) {
            continue;
        }
        let taken = found.last().map_or(0, |it| it.end);
        let is_pointwise = |at: usize| layer(plan, at).is_some_and(|it| it.is_pointwise(&sizes(plan, it.weight)));
        let is_large = |at: usize| n_elements(plan, at) >= LARGE;
        let first = if at > taken && is_pointwise(at - 1) && flows(plan, &uses, at - 1) && is_large(at - 1) {
            at - 1
        } else {
            at
        };
        // Where rows are computed in bands anyway, what is behind them finds them in the cache.
        let is_followed = is_pointwise(at + 1) && flows(plan, &uses, at) && (first < at || is_large(at));
        let end = if is_followed { at + 2 } else { at + 1 };
        if end - first > 1 {
            found.push(first..end);
        }
    }
    for range in found.into_iter().rev() {
        let steps = plan.steps[range.clone()].iter();
        let convolutions = steps.filter_map(|it| match &it.action {
            Action::Fused(Fused::Convolution(convolution)) => Some((Arc::clone(&it.node), convolution.clone())),
            _ => None,
        });
        let joined = convolutions.reduce(|(_, before), (node, it)| {
            (node, Convolution { layers: [before.layers, it.layers].concat(), result: it.result, ..before })
        });
        let step = joined.map(|(node, it)| Step { node, action: Action::Fused(Fused::Convolution(it)) });
        plan.steps.splice(range, step);
    }
}

/// The convolution of a step that has one, and no more.
fn layer(plan: &Plan, at: usize) -> Option<&ConvolutionLayer<TensorId>> {
    match convolution(plan, at)?.layers.as_slice() {
        [layer] => Some(layer),
        _ => None,
    }
}

fn convolution(plan: &Plan, at: usize) -> Option<&Convolution<TensorId>> {
    match plan.steps.get(at).map(|it| &it.action) {
        Some(Action::Fused(Fused::Convolution(it))) => Some(it),
        _ => None,
    }
}

/// Whether it is a depthwise convolution of the usual kind.
fn is_banded(plan: &Plan, it: &ConvolutionLayer<TensorId>) -> bool {
    let weight = sizes(plan, it.weight);
    let fits = |dim: usize| it.padding[dim] < weight[2 + dim] && it.stride[dim] <= weight[2 + dim];
    let is_usual = weight.len() == 4 && weight[2..].iter().all(|&it| it <= WIDEST) && fits(0) && fits(1);
    is_usual && it.is_depthwise(&weight) && it.dilation == [1; 2]
}

/// The elements of an image that the convolution at `at` gives.
fn n_elements(plan: &Plan, at: usize) -> usize {
    convolution(plan, at).map_or(0, |it| sizes(plan, it.result).iter().skip(1).product())
}

/// Whether the images that the convolution at `at` gives are read by the next one alone.
fn flows(plan: &Plan, uses: &Uses, at: usize) -> bool {
    let (Some(from), Some(to)) = (convolution(plan, at), convolution(plan, at + 1)) else { return false };
    let view = plan.tensor(from.result);
    let used = uses.buffer(view.buffer);
    let is_inner = matches!(plan.buffer(view.buffer), Buffer::Scratch) && !used.is_outer;
    let is_only = used.writers[..] == [at] && used.readers[..] == [at + 1] && plan.tensor(to.input) == view;
    let is_whole = from.layers.iter().all(|it| it.epilogue.residual.is_none());
    is_inner && is_only && is_whole
}

fn sizes(plan: &Plan, id: TensorId) -> Vec<usize> {
    plan.tensor(id).known().map(|it| it.sizes.to_vec()).unwrap_or_default()
}
