//! Kernels of the gradients of normalisation. With `x` normalised to `y = (x - mean) * inverse` over `n` elements, the
//! gradient `g` of `y` makes that of `x`: `inverse * (g - (sum(g) + y * sum(g * y)) / n)`; `g * y` and `g` add up to those
//! of the weight and the bias. Sums are in float64.

use crate::norm::forward::parameter;
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::strided::{Strided, fill_float, try_fill_float};
use tracefx_core::allocate::{collected, filled, with_room};
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Value};

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.native_layer_norm_backward.default", Kernel::Fill(native_layer_norm)),
    ("aten.native_group_norm_backward.default", Kernel::Fill(native_group_norm)),
    ("aten.native_batch_norm_backward.default", Kernel::Fill(native_batch_norm)),
];

/// By what some elements were normalised.
#[derive(Clone, Copy)]
struct Stat {
    mean: f64,
    inverse: f64,
}

/// `sum(g)` and `sum(g * y)`, each in eight partial sums.
fn sums<A: Float>(grad: &[A], input: &[A], stat: Stat) -> [f64; 2] {
    let mut lanes = [[0.0; 8]; 2];
    for (grad, input) in grad.chunks(8).zip(input.chunks(8)) {
        for (at, (grad, input)) in grad.iter().zip(input).enumerate() {
            let grad = grad.to_f64();
            lanes[0][at] += grad;
            lanes[1][at] += grad * (input.to_f64() - stat.mean);
        }
    }
    [lanes[0].iter().sum(), lanes[1].iter().sum::<f64>() * stat.inverse]
}

/// Fills in the gradient of the input: `means` are those of `g` and `g * y`, where `g` is `grad` times the weight.
fn spread<A: Float>(out: &mut [A], grad: &[A], input: &[A], stat: Stat, weight: f64, means: [f64; 2]) {
    let (mean, scale) = (A::of(stat.mean), A::of(weight * stat.inverse));
    let (slope, shift) = (A::of(means[1] * stat.inverse * stat.inverse), A::of(means[0] * stat.inverse));
    for (out, (&grad, &input)) in out.iter_mut().zip(grad.iter().zip(input)) {
        *out = grad * scale - (input - mean) * slope - shift;
    }
}

/// The results of the call in the places of the gradients of input, weight and bias; `None` where there is none.
fn by_place<'a>(
    args: &Args<'_, Tensor>,
    mask: usize,
    has: [bool; 3],
    out: &'a [Tensor],
) -> Result<[Option<&'a Tensor>; 3]> {
    let mut results = out.iter();
    let mut res = [None; 3];
    for ((place, is_wanted), has) in res.iter_mut().zip(args.list(mask)?).zip(has) {
        *place = if has && matches!(is_wanted, Value::Bool(true)) { results.next() } else { None };
    }
    Ok(res)
}

fn store(out: Option<&Tensor>, values: &[f64]) -> Result<()> {
    out.map_or(Ok(()), |out| fill_float::<f64, _>(out, |out| out.copy_from_slice(values)))
}

/// Gives `fill` the elements of the gradient of the input, or of scratch space where nobody asks for it.
fn fill_input<A: Float>(out: Option<&Tensor>, len: usize, fill: impl FnOnce(&mut [A]) -> Result<()>) -> Result<()> {
    match out {
        Some(out) => try_fill_float::<A, _>(out, fill),
        None => fill(&mut filled(A::ZERO, len)?),
    }
}

/// The means and inverses at these positions.
fn stats(args: &Args<'_, Tensor>, at: [usize; 2]) -> Result<Vec<Stat>> {
    let [means, inverses] = at.map(|index| parameter(args.opt_tensor(index)?));
    let pairs = means?.into_iter().flatten().zip(inverses?.into_iter().flatten());
    collected(pairs.map(|(mean, inverse)| Stat { mean, inverse }))
}

fn native_layer_norm(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = args.tensor(1)?.dtype();
    with_float!(dtype, &args.op.name, A => layer_norm::<A>(args, out))
}

fn layer_norm<A: Float>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (grad, input) = (Strided::<A>::dense(args.tensor(0)?)?, Strided::<A>::dense(args.tensor(1)?)?);
    let len = args.tensor(1)?.numel();
    let [of_input, of_weight, of_bias] = by_place(args, 7, [true, !args.is_none(5), !args.is_none(6)], out)?;
    let n: usize = args.ints(2)?.iter().product::<i64>() as usize;
    let weight = args.opt_tensor(5)?.map(Strided::<A>::dense).transpose()?;
    let (mut weights, mut biases) = (filled(0.0, n)?, filled(0.0, n)?);
    let mut weighted = with_room(if weight.is_some() { n } else { 0 })?;
    let stats = stats(args, [3, 4])?;
    fill_input::<A>(of_input, len, |out| {
        if n == 0 {
            return Ok(());
        }
        for (row, (out, &stat)) in out.chunks_exact_mut(n).zip(&stats).enumerate() {
            let (grad, input) = (&grad.data()[row * n..][..n], &input.data()[row * n..][..n]);
            // As in PyTorch, one fused step from the input to what it was normalised to.
            let shift = A::of(-stat.inverse * stat.mean).to_f64();
            for (at, (grad, input)) in grad.iter().zip(input).enumerate() {
                weights[at] += grad.to_f64() * (input.to_f64() * stat.inverse + shift);
                biases[at] += grad.to_f64();
            }
            let grad = match &weight {
                None => grad,
                Some(weight) => {
                    weighted.clear();
                    weighted.extend(grad.iter().zip(weight.data()).map(|(&grad, &weight)| grad * weight));
                    &weighted
                }
            };
            let means = sums(grad, input, stat).map(|it| it / n as f64);
            spread(out, grad, input, stat, 1.0, means);
        }
        Ok(())
    })?;
    store(of_weight, &weights)?;
    store(of_bias, &biases)
}

fn native_group_norm(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = args.tensor(1)?.dtype();
    with_float!(dtype, &args.op.name, A => group_norm::<A>(args, out))
}

fn group_norm<A: Float>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (grad, input) = (Strided::<A>::dense(args.tensor(0)?)?, Strided::<A>::dense(args.tensor(1)?)?);
    let len = args.tensor(1)?.numel();
    let [of_input, of_weight, of_bias] = by_place(args, 9, [true; 3], out)?;
    let (n_channels, n_points, n_groups) = (args.int(6)? as usize, args.int(7)? as usize, args.int(8)? as usize);
    let per_group = n_channels / n_groups;
    let n = (per_group * n_points) as f64;
    let weight = parameter(args.opt_tensor(4)?)?;
    let weight = |channel: usize| weight.as_ref().map_or(1.0, |it| it[channel]);
    let (mut weights, mut biases) = (filled(0.0, n_channels)?, filled(0.0, n_channels)?);
    let stats = stats(args, [2, 3])?;
    fill_input::<A>(of_input, len, |out| {
        if len == 0 {
            return Ok(());
        }
        for (row, &stat) in stats.iter().enumerate() {
            let first = row % n_groups * per_group;
            let of_channel = |at: usize| (row * per_group + at) * n_points..(row * per_group + at + 1) * n_points;
            let mut means = [0.0; 2];
            for at in 0..per_group {
                let [of_grad, of_product] = sums(&grad.data()[of_channel(at)], &input.data()[of_channel(at)], stat);
                biases[first + at] += of_grad;
                weights[first + at] += of_product;
                means[0] += weight(first + at) * of_grad / n;
                means[1] += weight(first + at) * of_product / n;
            }
            for at in 0..per_group {
                let (grad, input) = (&grad.data()[of_channel(at)], &input.data()[of_channel(at)]);
                spread(&mut out[of_channel(at)], grad, input, stat, weight(first + at), means);
            }
        }
        Ok(())
    })?;
    store(of_weight, &weights)?;
    store(of_bias, &biases)
}

fn native_batch_norm(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = args.tensor(1)?.dtype();
    with_float!(dtype, &args.op.name, A => batch_norm::<A>(args, out))
}

fn batch_norm<A: Float>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let sizes = args.tensor(1)?.sizes();
    let (n_batch, n_channels, n_points) = (sizes[0], sizes[1], sizes[2..].iter().product::<usize>());
    let (grad, input) = (Strided::<A>::dense(args.tensor(0)?)?, Strided::<A>::dense(args.tensor(1)?)?);
    let [of_input, of_weight, of_bias] = by_place(args, 9, [true; 3], out)?;
    let (is_training, eps) = (args.bool(7)?, args.float(8)?);
    let mut stats = stats(args, if is_training { [5, 6] } else { [3, 4] })?;
    if !is_training {
        // The running statistics hold the variance.
        stats.iter_mut().for_each(|it| it.inverse = 1.0 / (it.inverse + eps).sqrt());
    }
    let weight = parameter(args.opt_tensor(2)?)?;
    let n = (n_batch * n_points) as f64;
    let (mut weights, mut biases) = (filled(0.0, n_channels)?, filled(0.0, n_channels)?);
    fill_input::<A>(of_input, n_batch * n_channels * n_points, |out| {
        for (channel, &stat) in stats.iter().enumerate() {
            let of_item = |item: usize| {
                let first = (item * n_channels + channel) * n_points;
                first..first + n_points
            };
            for item in 0..n_batch {
                let [of_grad, of_product] = sums(&grad.data()[of_item(item)], &input.data()[of_item(item)], stat);
                biases[channel] += of_grad;
                weights[channel] += of_product;
            }
            let weight = weight.as_ref().map_or(1.0, |it| it[channel]);
            let means =
                if is_training { [biases[channel], weights[channel]].map(|it| weight * it / n) } else { [0.0; 2] };
            for item in 0..n_batch {
                let (grad, input) = (&grad.data()[of_item(item)], &input.data()[of_item(item)]);
                spread(&mut out[of_item(item)], grad, input, stat, weight, means);
            }
        }
        Ok(())
    })?;
    store(of_weight, &weights)?;
    store(of_bias, &biases)
}
