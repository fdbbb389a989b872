//! Convolutions and products with what follows them: a batch normalisation, a residual, an activation. Finds them; what is made of
//! them is for [`layout`](crate::layout) and [`products`](crate::products) to say.

use crate::uses::{Uses, any_within};
use rustc_hash::FxHashSet;
use tracefx_core::DType;
use tracefx_plan::{Action, Activation, BatchNorm, Buffer, Epilogue, Operand, Plan, TensorId};

/// An operator with what follows it, which one step can compute in the place of the last.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// The steps, in order.
    pub(crate) steps: Vec<usize>,
    /// What follows the operator. The bias is its own.
    pub(crate) epilogue: Epilogue<TensorId>,
    /// What the last step gives.
    pub(crate) result: TensorId,
}

/// A call, taken apart.
pub(crate) fn call(plan: &Plan, at: usize) -> Option<(&str, &[Operand], &[Operand])> {
    match &plan.steps[at].action {
        Action::Call { op, args, results } => Some((op, args, results)),
        Action::Update { .. } | Action::Fused(_) | Action::Copy { .. } | Action::ControlFlow { .. } => None,
    }
}

/// A tensor of an argument.
pub(crate) fn tensor(operand: Option<&Operand>) -> Option<TensorId> {
    if let Some(Operand::Tensor(id)) = operand { Some(*id) } else { None }
}

/// An optional tensor of an argument: nothing where it is something else.
pub(crate) fn optional(operand: Option<&Operand>) -> Option<Option<TensorId>> {
    match operand {
        Some(Operand::Tensor(id)) => Some(Some(*id)),
        Some(Operand::None) => Some(None),
        _ => None,
    }
}

/// A number of an argument.
pub(crate) fn number(operand: Option<&Operand>) -> Option<f64> {
    match operand {
        Some(Operand::Int(it)) => Some(*it as f64),
        Some(Operand::Float(it)) => Some(*it),
        _ => None,
    }
}

/// Whether this is a tensor of the program that no step writes, of this dtype and with these sizes.
pub(crate) fn is_weight(plan: &Plan, uses: &Uses, id: TensorId, dtype: DType, sizes: Option<&[usize]>) -> bool {
    let view = plan.tensor(id);
    let is_constant = matches!(plan.buffer(view.buffer), Buffer::Constant(_));
    is_constant
        && uses.buffer(view.buffer).writers.is_empty()
        && view.dtype == dtype
        && view.known().is_some_and(|it| sizes.is_none_or(|sizes| it.sizes[..] == *sizes))
}

/// The sizes of a row-major tensor of float32 whose sizes are numbers.
pub(crate) fn dense_sizes(plan: &Plan, id: TensorId) -> Option<Vec<usize>> {
    dense_sizes_of(plan, id, DType::Float32)
}

/// As [`dense_sizes`], of this dtype.
pub(crate) fn dense_sizes_of(plan: &Plan, id: TensorId, dtype: DType) -> Option<Vec<usize>> {
    let view = plan.tensor(id);
    let extent = view.known().filter(|it| view.dtype == dtype && it.is_row_major())?;
    Some(extent.sizes.to_vec())
}

impl Chain {
    /// The operator at `at`, which gives `result`, with the steps behind it that one step can take. A convolution tells its channels,
    /// which can be normalised. Steps that are `taken` are not looked at.
    pub(crate) fn behind(
        plan: &Plan,
        uses: &Uses,
        taken: &FxHashSet<usize>,
        at: usize,
        result: TensorId,
        bias: Option<TensorId>,
        norm_channels: Option<usize>,
    ) -> Chain {
        let epilogue = Epilogue { bias, ..Epilogue::none() };
        let mut chain = Chain { steps: vec![at], epilogue, result };
        while let Some(next) = uses.only_reader(plan, chain.result).filter(|it| !taken.contains(it)) {
            if !chain.take(plan, uses, next, norm_channels) {
                break;
            }
        }
        chain
    }

    /// The place of the step that computes all.
    pub(crate) fn last(&self) -> usize {
        self.steps[self.steps.len() - 1]
    }

    /// Takes the step, if it is one that can follow.
    fn take(&mut self, plan: &Plan, uses: &Uses, at: usize, norm_channels: Option<usize>) -> bool {
        let dtype = plan.tensor(self.result).dtype;
        let followed = || {
            let (op, args, results) = call(plan, at)?;
            let result = tensor(results.first())?;
            if self.epilogue.activation != Activation::Identity || is_changed(plan, uses, &self.steps, at) {
                return None;
            }
            let sizes = dense_sizes_of(plan, result, dtype)?;
            // Images stay images: only rows may be seen in other sizes.
            if norm_channels.is_some() && dense_sizes_of(plan, self.result, dtype)? != sizes {
                return None;
            }
            let mut epilogue = self.epilogue.clone();
            match op {
                "aten._native_batch_norm_legit_no_training.default" => {
                    let is_read = |it: &Operand| {
                        let used = tensor(Some(it)).map(|it| uses.buffer(plan.tensor(it).buffer));
                        used.is_none_or(|it| it.is_outer || !it.readers.is_empty())
                    };
                    let norm = batch_norm(args).filter(|_| epilogue.norm.is_none() && epilogue.residual.is_none())?;
                    let parameters = norm.weight.iter().chain(&norm.bias).chain([&norm.mean, &norm.var]);
                    let sizes = [norm_channels.unwrap_or_default()];
                    if !parameters.into_iter().all(|it| is_weight(plan, uses, *it, dtype, Some(&sizes)))
                        || results[1..].iter().any(is_read)
                        || self.seen(plan, args.first())? != dense_sizes_of(plan, self.result, dtype)?
                    {
                        return None;
                    }
                    epilogue.norm = Some(norm);
                }
                "aten.add.Tensor" => {
                    let is_sum = args.get(2) == Some(&Operand::Int(1)) && epilogue.residual.is_none();
                    let (seen, other) = match (self.seen(plan, args.first()), self.seen(plan, args.get(1))) {
                        (Some(seen), None) => (seen, tensor(args.get(1))?),
                        (None, Some(seen)) => (seen, tensor(args.first())?),
                        (_, _) => return None,
                    };
                    let view = plan.tensor(other);
                    let is_like = view.dtype == dtype && view.known()?.sizes[..] == sizes[..];
                    // The residual of a convolution is laid out anew; that of a product is taken as it is.
                    let is_placed = norm_channels.is_some() || dense_sizes_of(plan, other, dtype).is_some();
                    // A number for each column of a product, which has no bias yet.
                    let columns = dense_sizes_of(plan, self.result, dtype)?.pop();
                    let is_bias = norm_channels.is_none()
                        && epilogue.bias.is_none()
                        && sizes.last() == columns.as_ref()
                        && is_weight(plan, uses, other, dtype, columns.as_ref().map(std::slice::from_ref));
                    if !is_sum || seen != sizes || !(is_bias || is_like && is_placed) {
                        return None;
                    }
                    match is_bias {
                        true => epilogue.bias = Some(other),
                        false => epilogue.residual = Some(other),
                    }
                }
                _ => {
                    epilogue.activation =
                        activation_of(op, args).filter(|_| self.seen(plan, args.first()) == Some(sizes))?;
                }
            }
            Some((epilogue, result))
        };
        let Some((epilogue, result)) = followed() else { return false };
        (self.epilogue, self.result) = (epilogue, result);
        self.steps.push(at);
        true
    }

    /// The sizes in which an operand looks at all of what the chain gives; a reader may see it in other sizes than it was given.
    fn seen(&self, plan: &Plan, operand: Option<&Operand>) -> Option<Vec<usize>> {
        let id = tensor(operand).filter(|it| plan.tensor(*it).buffer == plan.tensor(self.result).buffer)?;
        let dtype = plan.tensor(self.result).dtype;
        let n_elements = |sizes: &[usize]| sizes.iter().product::<usize>();
        let whole = n_elements(&dense_sizes_of(plan, self.result, dtype)?);
        dense_sizes_of(plan, id, dtype).filter(|it| n_elements(it) == whole)
    }
}

/// Whether something that one of these steps reads or writes is written between it and step `at`.
pub(crate) fn is_changed(plan: &Plan, uses: &Uses, steps: &[usize], at: usize) -> bool {
    steps.iter().any(|&step| {
        let mut is_changed = false;
        plan.steps[step].action.for_each_tensor(&mut |it| {
            let writers = uses.writers(plan, plan.tensor(it).buffer);
            is_changed |= any_within(writers, step + 1..at);
        });
        is_changed
    })
}

fn batch_norm(args: &[Operand]) -> Option<BatchNorm<TensorId>> {
    let Some(Operand::Float(eps)) = args.get(6) else { return None };
    Some(BatchNorm {
        weight: optional(args.get(1))?,
        bias: optional(args.get(2))?,
        mean: tensor(args.get(3))?,
        var: tensor(args.get(4))?,
        eps: *eps,
    })
}

/// The activation that a pointwise operator is.
pub(crate) fn activation_of(op: &str, args: &[Operand]) -> Option<Activation> {
    let number = |at: usize| match args.get(at) {
        Some(Operand::Int(it)) => Some(*it as f32),
        Some(Operand::Float(it)) => Some(*it as f32).filter(|it| !it.is_nan()),
        _ => None,
    };
    Some(match op {
        "aten.relu.default" => Activation::Clamp { min: 0.0, max: f32::INFINITY },
        "aten.hardtanh.default" => Activation::Clamp { min: number(1)?, max: number(2)? },
        "aten.clamp.default" => {
            let limit =
                |at: usize, none: f32| if args.get(at) == Some(&Operand::None) { Some(none) } else { number(at) };
            Activation::Clamp { min: limit(1, f32::NEG_INFINITY)?, max: limit(2, f32::INFINITY)? }
        }
        "aten.leaky_relu.default" => Activation::LeakyRelu(number(1)?),
        "aten.sigmoid.default" => Activation::Sigmoid,
        "aten.silu.default" => Activation::Silu,
        "aten.hardsigmoid.default" => Activation::HardSigmoid,
        "aten.hardswish.default" => Activation::HardSwish,
        "aten.tanh.default" => Activation::Tanh,
        "aten.gelu.default" => match args.get(1) {
            Some(Operand::Str(it)) if &**it == "none" => Activation::Gelu,
            Some(Operand::Str(it)) if &**it == "tanh" => Activation::GeluTanh,
            _ => return None,
        },
        _ => return None,
    })
}
