//! Kernels of connectionist temporal classification: the forward pass of aten/src/ATen/native/LossCTC.cpp.

use crate::dense::{Dense, fill};
use crate::map::cast;
use crate::real::{Real, Strided, with_real};
use tracefx_core::{DType, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Value};

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten._ctc_loss.default", Kernel::Make(forward)),
    ("aten._ctc_loss.Tensor", Kernel::Make(forward)),
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
    let res = dense.read::<i64>().to_vec();
    Ok(res)
}

impl Sequences {
    fn new(args: &Args<'_, Tensor>) -> Result<Self> {
        let (log_probs, targets) = (args.tensor(0)?, args.tensor(1)?);
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
            let checked = given.iter().map(|&it| usize::try_from(it).ok().filter(|it| *it <= most).ok_or(it));
            checked.collect::<Result<_, _>>().map_err(|it| {
                args.invalid(format!("Expected {name} to have values from 0 to {most}, but got value {it}"))
            })
        };
        let labels = ints(targets)?;
        let is_padded = targets.rank() == 2;
        let n_columns = if is_padded { targets.sizes()[1] } else { labels.len() };
        let (input_lengths, target_lengths) = (lengths(2, n_steps)?, lengths(3, n_columns)?);
        if is_padded && targets.sizes()[0] != n_batch {
            return Err(args.bad_shape(format!("targets has {} rows for a batch of {n_batch}", targets.sizes()[0])));
        }
        let total: usize = target_lengths.iter().sum();
        if targets.rank() > 2 || (!is_padded && total != labels.len()) {
            return Err(args.bad_shape(format!("targets holds {} labels but target_lengths say {total}", labels.len())));
        }
        let mut start = 0;
        let mut all = Vec::with_capacity(n_batch);
        for (item, &length) in target_lengths.iter().enumerate() {
            let at = if is_padded { item * n_columns } else { start };
            start += length;
            let label = |&it: &i64| {
                usize::try_from(it)
                    .ok()
                    .filter(|it| *it < n_labels)
                    .ok_or_else(|| args.invalid(format!("label {it} is not below the number of labels, {n_labels}")))
            };
            all.push(labels[at..at + length].iter().map(label).collect::<Result<_>>()?);
        }
        Ok(Sequences { input_lengths, targets: all, n_steps, n_labels, blank: args.int(4)? as usize })
    }

    /// The number of forward variables of a step: a blank between any two labels, in front, and behind.
    fn width(&self) -> usize {
        2 * self.targets.iter().map(Vec::len).max().unwrap_or(0) + 1
    }

    /// The logarithms of the forward variables, and the negative log-likelihood of each item.
    fn run<A: Real>(&self, log_probs: &[A]) -> (Vec<A>, Vec<A>) {
        let (n_batch, width) = (self.targets.len(), self.width());
        let minus_infinity = -A::INFINITY;
        let mut alphas = vec![minus_infinity; n_batch * self.n_steps * width];
        let mut losses = Vec::with_capacity(n_batch);
        for (item, (target, &n_steps)) in self.targets.iter().zip(&self.input_lengths).enumerate() {
            let n = 2 * target.len() + 1;
            let symbol = |s: usize| if s.is_multiple_of(2) { self.blank } else { target[s / 2] };
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
                (0, _) => A::INFINITY,
                (_, 0) => -last(0),
                (_, length) => -log_sum(&[last(2 * length), last(2 * length - 1)]),
            });
        }
        (alphas, losses)
    }
}

/// The logarithm of the sum of what these are the logarithms of.
fn log_sum<A: Real>(logs: &[A]) -> A {
    let largest = logs.iter().fold(-A::INFINITY, |largest, &it| if it > largest { it } else { largest });
    // Nothing is subtracted from minus infinity.
    let largest = if largest == -A::INFINITY { A::ZERO } else { largest };
    logs.iter().fold(A::ZERO, |sum, &it| sum + (it - largest).exp()).ln() + largest
}

fn forward(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let sequences = Sequences::new(args)?;
    let (log_probs, n_batch) = (args.tensor(0)?, sequences.targets.len());
    let dtype = log_probs.dtype();
    with_real!(dtype, A => {
        let (alphas, losses) = sequences.run(Strided::<A>::dense(log_probs)?.data());
        let sizes = [n_batch, sequences.n_steps, sequences.width()];
        Ok(vec![
            Value::Tensor(Tensor::from_slice(&losses, &[n_batch])?),
            Value::Tensor(Tensor::from_slice(&alphas, &sizes)?),
        ])
    }, else Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)))
}

fn loss(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let sequences = Sequences::new(args)?;
    let log_probs = args.tensor(0)?;
    let (reduction, is_zeroed) = (args.int(5)?, args.bool(6)?);
    let dtype = log_probs.dtype();
    with_real!(dtype, A => {
        let (_, mut losses) = sequences.run(Strided::<A>::dense(log_probs)?.data());
        if is_zeroed {
            losses.iter_mut().filter(|it| **it == A::INFINITY).for_each(|it| *it = A::ZERO);
        }
        if reduction == 1 {
            let n = A::of(losses.len() as f64);
            let lengths = sequences.targets.iter().map(|it| A::of(it.len().max(1) as f64));
            losses = losses.iter().zip(lengths).map(|(&it, length)| it / length).collect();
            losses = vec![losses.iter().fold(A::ZERO, |sum, &it| sum + it) / n];
        } else if reduction == 2 {
            losses = vec![losses.iter().fold(A::ZERO, |sum, &it| sum + it)];
        }
        fill::<A, _>(&outs[0], |to| to.copy_from_slice(&losses));
        Ok(())
    }, else Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)))
}
