//! Kernels of connectionist temporal classification: the passes of aten/src/ATen/native/LossCTC.cpp.

use crate::numeric::dense::{Dense, fill};
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::map::cast;
use crate::numeric::number::{Number, Real};
use crate::numeric::strided::Strided;
use tracefx_core::allocate::{copied, filled, try_collected, with_room};
use tracefx_core::{DType, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Value};

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten._ctc_loss.default", Kernel::Make(forward)),
    ("aten._ctc_loss.Tensor", Kernel::Make(forward)),
    ("aten._ctc_loss_backward.default", Kernel::Fill(backward)),
    ("aten._ctc_loss_backward.Tensor", Kernel::Fill(backward)),
    ("aten.ctc_loss.IntList", Kernel::Fill(loss)),
    ("aten.ctc_loss.Tensor", Kernel::Fill(loss)),
];

/// The sequences of a batch.
struct Sequences {
    input_lengths: Vec<usize>,
    /// The labels of each item.
    targets: Vec<Vec<usize>>,
    n_steps: usize,
    n_labels: usize,
    blank: usize,
}

fn ints(tensor: &Tensor) -> Result<Vec<i64>> {
    let dense = Dense::new(&cast(tensor, DType::Int64)?)?;
    copied(&dense.read::<i64>())
}

impl Sequences {
    /// Reads them from the arguments: the logarithms of probabilities stand at `first`, and three more behind them.
    fn new(args: &Args<'_, Tensor>, first: usize, blank: i64) -> Result<Self> {
        let (log_probs, targets) = (args.tensor(first)?, args.tensor(first + 1)?);
        let (n_steps, n_batch, n_labels) = match log_probs.sizes() {
            [n_steps, n_labels] => (*n_steps, 1, *n_labels),
            [n_steps, n_batch, n_labels] => (*n_steps, *n_batch, *n_labels),
            _ => unreachable!("the shape rule asks for two or three dimensions"),
        };
        let lengths = |index: usize, most: usize| -> Result<Vec<usize>> {
            let name = &args.op.schema.args[index].name;
            let given = match &args.values[index] {
                Value::Tensor(it) => ints(it)?,
                _ => args.ints(index)?,
            };
            if given.len() != n_batch {
                return Err(
                    args.invalid(format!("{name} must be of size batch_size: {} instead of {n_batch}", given.len()))
                );
            }
            try_collected(given.iter().map(|&it| {
                usize::try_from(it).ok().filter(|it| *it <= most).ok_or_else(|| {
                    args.invalid(format!("Expected {name} to have values from 0 to {most}, but got value {it}"))
                })
            }))
        };
        let labels = ints(targets)?;
        let is_padded = targets.rank() == 2;
        let n_columns = if is_padded { targets.sizes()[1] } else { labels.len() };
        let (input_lengths, target_lengths) = (lengths(first + 2, n_steps)?, lengths(first + 3, n_columns)?);
        if is_padded && targets.sizes()[0] != n_batch {
            return Err(args.bad_shape(format!("targets has {} rows for a batch of {n_batch}", targets.sizes()[0])));
        }
        let total: usize = target_lengths.iter().sum();
        if targets.rank() > 2 || (!is_padded && total != labels.len()) {
            return Err(args.bad_shape(format!("targets holds {} labels but target_lengths say {total}", labels.len())));
        }
        let mut start = 0;
        let mut all = with_room(n_batch)?;
        for (item, &length) in target_lengths.iter().enumerate() {
            let at = if is_padded { item * n_columns } else { start };
            start += length;
            let label = |&it: &i64| {
                usize::try_from(it)
                    .ok()
                    .filter(|it| *it < n_labels)
                    .ok_or_else(|| args.invalid(format!("label {it} is not below the number of labels, {n_labels}")))
            };
            all.push(try_collected(labels[at..at + length].iter().map(label))?);
        }
        Ok(Sequences { input_lengths, targets: all, n_steps, n_labels, blank: blank as usize })
    }

    /// The number of forward variables of a step: a blank between any two labels, in front, and behind.
    fn width(&self) -> usize {
        2 * self.targets.iter().map(Vec::len).max().unwrap_or(0) + 1
    }

    /// The symbol in a place of the labels with blanks between them.
    fn symbol(&self, target: &[usize], place: usize) -> usize {
        if place.is_multiple_of(2) { self.blank } else { target[place / 2] }
    }

    /// The logarithms of the forward variables, and the negative log-likelihood of each item.
    fn run<A: Float>(&self, log_probs: &[A]) -> Result<(Vec<A>, Vec<A>)> {
        let (n_batch, width) = (self.targets.len(), self.width());
        let minus_infinity = A::LOWEST;
        let mut alphas = filled(minus_infinity, n_batch * self.n_steps * width)?;
        let mut losses = with_room(n_batch)?;
        for (item, (target, &n_steps)) in self.targets.iter().zip(&self.input_lengths).enumerate() {
            let n = 2 * target.len() + 1;
            let symbol = |s: usize| self.symbol(target, s);
            let log_prob = |t: usize, s: usize| log_probs[(t * n_batch + item) * self.n_labels + symbol(s)];
            let alpha = &mut alphas[item * self.n_steps * width..][..self.n_steps * width];
            for t in 0..n_steps {
                let (before, now) = alpha.split_at_mut(t * width);
                for s in 0..if t == 0 { n.min(2) } else { n } {
                    now[s] = log_prob(t, s);
                    if t == 0 {
                        continue;
                    }
                    let before = &before[(t - 1) * width..];
                    // From the same symbol, from the one before, and from the label before across a blank.
                    let mut from = [before[s], minus_infinity, minus_infinity];
                    if s > 0 {
                        from[1] = before[s - 1];
                    }
                    if s > 1 && symbol(s - 2) != symbol(s) {
                        from[2] = before[s - 2];
                    }
                    now[s] = log_sum(&from) + now[s];
                }
            }
            let last = |s: usize| alpha[(n_steps - 1) * width + s];
            losses.push(match (n_steps, target.len()) {
                (0, 0) => A::ZERO,
                (0, _) => A::HIGHEST,
                (_, 0) => -last(0),
                (_, length) => -log_sum(&[last(2 * length), last(2 * length - 1)]),
            });
        }
        Ok((alphas, losses))
    }
}

/// What the backward pass knows of the forward pass: the logarithms of the probabilities, the negative log-likelihoods,
/// and the logarithms of the forward variables, `width` of them a step.
struct Forward<'a, A> {
    log_probs: &'a [A],
    losses: &'a [A],
    alphas: &'a [A],
    width: usize,
}

impl Sequences {
    /// The gradient of the logarithms of the probabilities of one item. Those behind its last step have none.
    fn pull_back<A: Float>(&self, forward: &Forward<'_, A>, item: usize, grad: A, to: &mut [A]) -> Result<()> {
        let (target, n_steps) = (&self.targets[item], self.input_lengths[item]);
        let (n, loss) = (2 * target.len() + 1, forward.losses[item]);
        let at = |t: usize, label: usize| (t * self.targets.len() + item) * self.n_labels + label;
        let (mut after, mut beta) = (filled(A::LOWEST, n)?, filled(A::LOWEST, n)?);
        // By label: the logarithm of the probability of all alignments in which it stands at this step.
        let mut through = filled(A::LOWEST, self.n_labels)?;
        for t in (0..n_steps).rev() {
            through.fill(A::LOWEST);
            for s in (0..n).rev() {
                let label = self.symbol(target, s);
                let log_prob = forward.log_probs[at(t, label)];
                beta[s] = if t + 1 == n_steps {
                    // An alignment ends with the last label or with the blank behind it.
                    if s + 2 >= n { log_prob } else { A::LOWEST }
                } else {
                    let next = |place: usize| after.get(place).copied().unwrap_or(A::LOWEST);
                    let skips = s + 2 < n && self.symbol(target, s + 2) != label;
                    log_sum(&[next(s), next(s + 1), if skips { next(s + 2) } else { A::LOWEST }]) + log_prob
                };
                let alpha = forward.alphas[(item * self.n_steps + t) * forward.width + s];
                through[label] = log_sum(&[through[label], alpha + beta[s]]);
            }
            for (label, &through) in through.iter().enumerate() {
                let log_prob = forward.log_probs[at(t, label)];
                to[at(t, label)] = (log_prob.exp() - (through + loss - log_prob).exp()) * grad;
            }
            std::mem::swap(&mut after, &mut beta);
        }
        Ok(())
    }
}

/// The logarithm of the sum of what these are the logarithms of.
fn log_sum<A: Float>(logs: &[A]) -> A {
    let largest = logs.iter().fold(A::LOWEST, |largest, &it| if it > largest { it } else { largest });
    // Nothing is subtracted from minus infinity.
    let largest = if largest == A::LOWEST { A::ZERO } else { largest };
    logs.iter().fold(A::ZERO, |sum, &it| sum + (it - largest).exp()).ln() + largest
}

fn forward(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let sequences = Sequences::new(args, 0, args.int(4)?)?;
    let (log_probs, n_batch) = (args.tensor(0)?, sequences.targets.len());
    let dtype = log_probs.dtype();
    with_float!(dtype, &args.op.name, A => {
        let (alphas, losses) = sequences.run(Strided::<A>::dense(log_probs)?.data())?;
        let sizes = [n_batch, sequences.n_steps, sequences.width()];
        Ok(vec![
            Value::Tensor(Tensor::from_slice(&losses, &[n_batch])?),
            Value::Tensor(Tensor::from_slice(&alphas, &sizes)?),
        ])
    })
}

fn loss(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let sequences = Sequences::new(args, 0, args.int(4)?)?;
    let log_probs = args.tensor(0)?;
    let (reduction, is_zeroed) = (args.int(5)?, args.bool(6)?);
    let dtype = log_probs.dtype();
    with_float!(dtype, &args.op.name, A => {
        let (_, mut losses) = sequences.run(Strided::<A>::dense(log_probs)?.data())?;
        if is_zeroed {
            losses.iter_mut().filter(|it| **it == A::HIGHEST).for_each(|it| *it = A::ZERO);
        }
        if reduction == 1 {
            let n = A::of(losses.len() as f64);
            let lengths = sequences.targets.iter().map(|it| A::of(it.len().max(1) as f64));
            losses.iter_mut().zip(lengths).for_each(|(it, length)| *it /= length);
            losses = vec![losses.iter().fold(A::ZERO, |sum, &it| sum + it) / n];
        } else if reduction == 2 {
            losses = vec![losses.iter().fold(A::ZERO, |sum, &it| sum + it)];
        }
        fill::<A, _>(&outs[0], |to| to.copy_from_slice(&losses));
        Ok(())
    })
}

fn backward(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let sequences = Sequences::new(args, 1, args.int(7)?)?;
    let (log_probs, alphas, is_zeroed) = (args.tensor(1)?, args.tensor(6)?, args.bool(8)?);
    let (n_batch, n_steps, dtype) = (sequences.targets.len(), sequences.n_steps, log_probs.dtype());
    let width = match alphas.sizes() {
        [batch, steps, width] if (*batch, *steps) == (n_batch, n_steps) && *width >= sequences.width() => *width,
        sizes => return Err(args.bad_shape(format!("log_alpha of sizes {sizes:?} is of other sequences"))),
    };
    with_float!(dtype, &args.op.name, A => {
        let [grads, log_probs, losses, alphas] =
            [args.tensor(0)?, log_probs, args.tensor(5)?, alphas].map(Strided::<A>::dense);
        let (grads, log_probs, losses, alphas) = (grads?, log_probs?, losses?, alphas?);
        let forward = Forward { log_probs: log_probs.data(), losses: losses.data(), alphas: alphas.data(), width };
        fill::<A, _>(&outs[0], |to| {
            to.fill(A::ZERO);
            for item in 0..n_batch {
                if !(is_zeroed && forward.losses[item] == A::HIGHEST) {
                    sequences.pull_back(&forward, item, grads.data()[item], to)?;
                }
            }
            Ok(())
        })
    })
}
