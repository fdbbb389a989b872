//! Kernels of normalisation. Statistics are taken in two passes and in float64, so that a large mean does not cost
//! precision.

use crate::real::{Real, Strided, fill_real, rounding, with_real};
use tracefx_core::{Diagnostic, Result, Tensor};
use tracefx_exec::{Kernel, assign};
use tracefx_ops::Args;

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.native_batch_norm.default", Kernel::Fill(batch_norm_in_place)),
    ("aten._native_batch_norm_legit.default", Kernel::Fill(batch_norm_in_place)),
    ("aten._native_batch_norm_legit.no_stats", Kernel::Fill(batch_norm_no_stats)),
    ("aten._native_batch_norm_legit_no_training.default", Kernel::Fill(batch_norm_eval)),
    ("aten._native_batch_norm_legit_functional.default", Kernel::Fill(batch_norm_functional)),
    ("aten._batch_norm_with_update.default", Kernel::Fill(batch_norm_with_update)),
    ("aten._batch_norm_no_update.default", Kernel::Fill(batch_norm_eval)),
    ("aten.native_layer_norm.default", Kernel::Fill(native_layer_norm)),
    ("aten.native_group_norm.default", Kernel::Fill(native_group_norm)),
    ("aten.rms_norm.default", Kernel::Fill(rms_norm)),
];

/// The sum of `of` over the elements, in eight partial sums.
fn sum<A: Real>(data: &[A], of: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let chunks = data.chunks_exact(8);
    let rest: f64 = chunks.remainder().iter().map(|it| of(it.to_f64())).sum();
    for chunk in chunks {
        for (lane, it) in lanes.iter_mut().zip(chunk) {
            *lane += of(it.to_f64());
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// The mean of some slices together and the sum of the squared distances from it.
fn moments<'a, A: Real>(slices: impl Iterator<Item = &'a [A]> + Clone) -> (f64, f64) {
    let n: usize = slices.clone().map(<[A]>::len).sum();
    let mean = slices.clone().map(|it| sum(it, |it| it)).sum::<f64>() / n as f64;
    (mean, slices.map(|it| sum(it, |it| (it - mean) * (it - mean))).sum())
}

/// An optional parameter as float64.
fn parameter(tensor: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
    tensor.map(|it| Ok(Strided::<f64>::dense(it)?.data()[..it.numel()].to_vec())).transpose()
}

struct BatchNorm<'a> {
    running: Option<[&'a Tensor; 2]>,
    is_training: bool,
    momentum: f64,
    eps: f64,
}

impl<'a> BatchNorm<'a> {
    /// Reads the options, of which the momentum is at `momentum`.
    fn new(args: &'a Args<'_, Tensor>, has_running: bool, is_training: bool, momentum: usize) -> Result<Self> {
        let running = match (has_running.then(|| args.opt_tensor(3)).transpose()?, has_running) {
            (Some(Some(mean)), true) => args.opt_tensor(4)?.map(|var| [mean, var]),
            _ => None,
        };
        Ok(BatchNorm { running, is_training, momentum: args.float(momentum)?, eps: args.float(momentum + 1)? })
    }

    /// Normalises and gives the updated running statistics back, in training.
    fn run(&self, args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<Option<[Tensor; 2]>> {
        let dtype = out[0].dtype();
        with_real!(dtype, A => self.compute::<A>(args, out),
            else Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)))
    }

    fn compute<A: Real>(&self, args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<Option<[Tensor; 2]>> {
        let input = args.tensor(0)?;
        let n_channels = input.sizes()[1];
        let n_points: usize = input.sizes()[2..].iter().product();
        let input = Strided::<A>::dense(input)?;
        let data = &input.data()[..out[0].numel()];
        let (weight, bias) = (parameter(args.opt_tensor(1)?)?, parameter(args.opt_tensor(2)?)?);
        let [running_mean, running_var] = match self.running {
            Some([mean, var]) => [parameter(Some(mean))?, parameter(Some(var))?],
            None => [None, None],
        };
        let (mut means, mut vars) = (Vec::new(), Vec::new());
        if self.is_training {
            let channel = |at: usize| {
                data.chunks_exact(n_points.max(1)).skip(at).step_by(n_channels).take(if n_points == 0 {
                    0
                } else {
                    usize::MAX
                })
            };
            (means, vars) = (0..n_channels).map(|at| moments(channel(at))).unzip();
        }
        let n = (data.len() / n_channels.max(1)) as f64;
        // PyTorch normalises by the statistics as it gives them back: rounded to their dtype.
        let round = rounding::<f64>(out[1].dtype());
        let inverse = |var: f64| 1.0 / (var + self.eps).sqrt();
        let stat = |at: usize| match self.is_training {
            true => (round(means[at]), round(inverse(vars[at] / n))),
            false => {
                (running_mean.as_ref().map_or(0.0, |it| it[at]), inverse(running_var.as_ref().map_or(1.0, |it| it[at])))
            }
        };
        let factors: Vec<(A, A)> = (0..n_channels)
            .map(|at| {
                let (mean, inverse) = stat(at);
                let scale = weight.as_ref().map_or(1.0, |it| it[at]) * inverse;
                (A::of(scale), A::of(bias.as_ref().map_or(0.0, |it| it[at]) - mean * scale))
            })
            .collect();
        fill_real::<A, _>(&out[0], |out| {
            if n_points == 0 {
                return;
            }
            let rows = out.chunks_exact_mut(n_points).zip(data.chunks_exact(n_points));
            for (at, (out, data)) in rows.enumerate() {
                let (scale, shift) = factors[at % n_channels];
                out.iter_mut().zip(data).for_each(|(out, &it)| *out = it * scale + shift);
            }
        });
        if !self.is_training {
            return Ok(None);
        }
        fill_real::<f64, _>(&out[1], |out| out.copy_from_slice(&means));
        fill_real::<f64, _>(&out[2], |out| (0..n_channels).for_each(|at| out[at] = inverse(vars[at] / n)));
        let Some([mean, var]) = self.running else { return Ok(None) };
        let updated = |old: &Tensor, values: Option<Vec<f64>>, new: &dyn Fn(usize) -> f64| {
            let res = Tensor::zeros(old.dtype(), old.sizes())?;
            fill_real::<f64, _>(&res, |out| {
                for (at, (out, old)) in out.iter_mut().zip(values.into_iter().flatten()).enumerate() {
                    *out = self.momentum * new(at) + (1.0 - self.momentum) * old;
                }
            });
            Ok::<_, Diagnostic>(res)
        };
        let mean = updated(mean, running_mean, &|at| means[at])?;
        // The running variance is the unbiased one.
        Ok(Some([mean, updated(var, running_var, &|at| vars[at] / (n - 1.0))?]))
    }

    fn run_in_place(&self, args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
        if let (Some(updated), Some(running)) = (self.run(args, out)?, self.running) {
            for (updated, running) in updated.iter().zip(running) {
                assign(running, updated)?;
            }
        }
        Ok(())
    }
}

fn batch_norm_in_place(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    BatchNorm::new(args, true, args.bool(5)?, 6)?.run_in_place(args, out)
}

fn batch_norm_with_update(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    BatchNorm::new(args, true, true, 5)?.run_in_place(args, out)
}

fn batch_norm_no_stats(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    BatchNorm::new(args, false, args.bool(3)?, 4)?.run(args, out).map(drop)
}

fn batch_norm_eval(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    BatchNorm::new(args, true, false, 5)?.run(args, out).map(drop)
}

fn batch_norm_functional(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let updated = BatchNorm::new(args, true, args.bool(5)?, 6)?.run(args, out)?;
    for (at, out) in out[3..].iter().enumerate() {
        match &updated {
            Some(updated) => assign(out, &updated[at])?,
            None => assign(out, args.tensor(3 + at)?)?,
        }
    }
    Ok(())
}

fn native_layer_norm(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_real!(dtype, A => layer_norm::<A>(args, out), else Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)))
}

fn layer_norm<A: Real>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (weight, bias, eps) = (args.opt_tensor(2)?, args.opt_tensor(3)?, args.float(4)?);
    let n: usize = args.ints(1)?.iter().product::<i64>() as usize;
    let input = Strided::<A>::dense(args.tensor(0)?)?;
    let (weight, bias) = (weight.map(Strided::<A>::dense).transpose()?, bias.map(Strided::<A>::dense).transpose()?);
    let n_rows = out[1].numel();
    let (mut means, mut inverses) = (vec![0.0; n_rows], vec![0.0; n_rows]);
    fill_real::<A, _>(&out[0], |out| {
        for row in 0..n_rows {
            let data = &input.data()[row * n..][..n];
            let (mean, squares) = moments(std::iter::once(data));
            (means[row], inverses[row]) = (mean, 1.0 / (squares / n as f64 + eps).sqrt());
            let (mean, inverse) = (A::of(mean), A::of(inverses[row]));
            let out = &mut out[row * n..][..n];
            out.iter_mut().zip(data).for_each(|(out, &it)| *out = (it - mean) * inverse);
            if let Some(weight) = &weight {
                out.iter_mut().zip(weight.data()).for_each(|(out, &it)| *out *= it);
            }
            if let Some(bias) = &bias {
                out.iter_mut().zip(bias.data()).for_each(|(out, &it)| *out += it);
            }
        }
    });
    fill_real::<f64, _>(&out[1], |out| out.copy_from_slice(&means));
    fill_real::<f64, _>(&out[2], |out| out.copy_from_slice(&inverses));
    Ok(())
}

fn native_group_norm(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_real!(dtype, A => group_norm::<A>(args, out), else Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)))
}

fn group_norm<A: Real>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let input = Strided::<A>::dense(args.tensor(0)?)?;
    let (weight, bias) = (parameter(args.opt_tensor(1)?)?, parameter(args.opt_tensor(2)?)?);
    let (n_channels, n_points) = (args.int(4)? as usize, args.int(5)? as usize);
    let (n_groups, eps) = (args.int(6)? as usize, args.float(7)?);
    let per_group = n_channels / n_groups;
    let n = per_group * n_points;
    let n_rows = out[1].numel();
    let (mut means, mut inverses) = (vec![0.0; n_rows], vec![0.0; n_rows]);
    fill_real::<A, _>(&out[0], |out| {
        for row in 0..n_rows {
            let data = &input.data()[row * n..][..n];
            let (mean, squares) = moments(std::iter::once(data));
            (means[row], inverses[row]) = (mean, 1.0 / (squares / n as f64 + eps).sqrt());
            if n == 0 {
                continue;
            }
            let channels = out[row * n..][..n].chunks_exact_mut(n_points).zip(data.chunks_exact(n_points));
            for (at, (out, data)) in channels.enumerate() {
                let channel = row % n_groups * per_group + at;
                let scale = inverses[row] * weight.as_ref().map_or(1.0, |it| it[channel]);
                let shift = A::of(bias.as_ref().map_or(0.0, |it| it[channel]) - mean * scale);
                let scale = A::of(scale);
                out.iter_mut().zip(data).for_each(|(out, &it)| *out = it * scale + shift);
            }
        }
    });
    fill_real::<f64, _>(&out[1], |out| out.copy_from_slice(&means));
    fill_real::<f64, _>(&out[2], |out| out.copy_from_slice(&inverses));
    Ok(())
}

fn rms_norm(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_real!(dtype, A => rows_by_rms::<A>(args, &out[0]),
        else Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)))
}

fn rows_by_rms<A: Real>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let n: usize = args.ints(1)?.iter().product::<i64>() as usize;
    let eps = args.opt_float(3)?.unwrap_or(A::EPSILON);
    let input = Strided::<A>::dense(args.tensor(0)?)?;
    let weight = args.opt_tensor(2)?.map(Strided::<A>::dense).transpose()?;
    fill_real::<A, _>(out, |out| {
        if n == 0 {
            return;
        }
        for (out, data) in out.chunks_exact_mut(n).zip(input.data().chunks_exact(n)) {
            let factor = A::of(1.0 / (sum(data, |it| it * it) / n as f64 + eps).sqrt());
            out.iter_mut().zip(data).for_each(|(out, &it)| *out = it * factor);
            if let Some(weight) = &weight {
                out.iter_mut().zip(weight.data()).for_each(|(out, &it)| *out *= it);
            }
        }
    });
    Ok(())
}
