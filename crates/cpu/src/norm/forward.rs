//! Kernels of normalisation. Statistics are taken in two passes and in float64, so that a large mean does not cost
//! precision.

use crate::gemm::GemmElement;
use crate::numeric::dispatch::with_float;
use crate::numeric::float::{Float, rounding};
use crate::numeric::isa::{self, Isa, Work};
use crate::numeric::parallel::{self, GRAIN};
use crate::numeric::strided::{Strided, fill_float, try_fill_float};
use crate::reduce::reduction::sum_of;
use tracefx_core::allocate::{collected, copied, filled, with_room};
use tracefx_core::{Diagnostic, Result, Tensor};
use tracefx_exec::{Kernel, assign};
use tracefx_ops::Args;
use tracefx_plan::NormStatistic;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.native_batch_norm.default", Kernel::Fill(batch_norm_in_place)),
    ("aten._native_batch_norm_legit.default", Kernel::Fill(batch_norm_in_place)),
    ("aten._native_batch_norm_legit.no_stats", Kernel::Fill(batch_norm_no_stats)),
    ("aten._native_batch_norm_legit_no_training.default", Kernel::Overwrite(batch_norm_eval)),
    ("aten._native_batch_norm_legit_functional.default", Kernel::Fill(batch_norm_functional)),
    ("aten._batch_norm_with_update.default", Kernel::Fill(batch_norm_with_update)),
    ("aten._batch_norm_no_update.default", Kernel::Overwrite(batch_norm_eval)),
    ("aten.native_layer_norm.default", Kernel::Overwrite(native_layer_norm)),
    ("aten.native_group_norm.default", Kernel::Overwrite(native_group_norm)),
    ("aten.rms_norm.default", Kernel::Overwrite(rms_norm)),
];

/// The mean of some slices together and the sum of the squared distances from it.
fn moments<'a, A: Float>(slices: impl Iterator<Item = &'a [A]> + Clone) -> (f64, f64) {
    let n: usize = slices.clone().map(<[A]>::len).sum();
    let mean = slices.clone().map(|it| sum_of(it, A::to_f64)).sum::<f64>() / n as f64;
    let squared = |it: A| (it.to_f64() - mean) * (it.to_f64() - mean);
    (mean, slices.map(|it| sum_of(it, squared)).sum())
}

/// An optional parameter as float64.
pub(crate) fn parameter(tensor: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
    tensor.map(|it| copied(&Strided::<f64>::dense(it)?.data()[..it.numel()])).transpose()
}

/// Scales and shifts a row.
struct Affine<'a, A> {
    out: &'a mut [A],
    data: &'a [A],
    scale: A,
    shift: A,
}

impl<A: GemmElement> Work for Affine<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        self.out.iter_mut().zip(self.data).for_each(|(out, &it)| *out = it.mul_add::<I>(self.scale, self.shift));
    }
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
        with_float!(dtype, &args.op.name, A => self.compute::<A>(args, out))
    }

    fn compute<A: Float + GemmElement>(&self, args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<Option<[Tensor; 2]>> {
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
            (means, vars) = (with_room(n_channels)?, with_room(n_channels)?);
            for (mean, var) in (0..n_channels).map(|at| moments(channel(at))) {
                means.push(mean);
                vars.push(var);
            }
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
        let factors: Vec<(A, A)> = collected((0..n_channels).map(|at| {
            let (mean, inverse) = stat(at);
            let scale = weight.as_ref().map_or(1.0, |it| it[at]) * inverse;
            (A::of(scale), A::of(bias.as_ref().map_or(0.0, |it| it[at]) - mean * scale))
        }))?;
        fill_float::<A, _>(&out[0], |out| {
            if n_points == 0 {
                return;
            }
            parallel::parts_mut(out, parallel::whole_rows(n_points), |first, out| {
                let rows = out.chunks_exact_mut(n_points).zip(data[first..].chunks_exact(n_points));
                for (at, (out, data)) in rows.enumerate() {
                    let (scale, shift) = factors[(first / n_points + at) % n_channels];
                    isa::run(Affine { out, data, scale, shift });
                }
            });
        })?;
        if !self.is_training {
            return Ok(None);
        }
        fill_float::<f64, _>(&out[1], |out| out.copy_from_slice(&means))?;
        fill_float::<f64, _>(&out[2], |out| (0..n_channels).for_each(|at| out[at] = inverse(vars[at] / n)))?;
        let Some([mean, var]) = self.running else { return Ok(None) };
        let updated = |old: &Tensor, values: Option<Vec<f64>>, new: &dyn Fn(usize) -> f64| {
            let res = Tensor::zeros(old.dtype(), old.sizes())?;
            fill_float::<f64, _>(&res, |out| {
                for (at, (out, old)) in out.iter_mut().zip(values.into_iter().flatten()).enumerate() {
                    *out = self.momentum * new(at) + (1.0 - self.momentum) * old;
                }
            })?;
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
    with_float!(dtype, &args.op.name, A => layer_norm::<A>(args, out))
}

fn layer_norm<A: Float>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (weight, bias, eps) = (args.opt_tensor(2)?, args.opt_tensor(3)?, args.float(4)?);
    let n: usize = args.ints(1)?.iter().product::<i64>() as usize;
    let input = Strided::<A>::dense(args.tensor(0)?)?;
    let (weight, bias) = (weight.map(Strided::<A>::dense).transpose()?, bias.map(Strided::<A>::dense).transpose()?);
    let (weight, bias) = (weight.as_ref().map(Strided::data), bias.as_ref().map(Strided::data));
    rows::<A>(out, input.data(), n, eps, &|_, (mean, inverse), out, data| {
        centred(out, data, (mean, inverse), weight, bias);
    })
}

/// Normalises a row by its mean and the inverse of its deviation.
fn centred<A: Float>(out: &mut [A], data: &[A], (mean, inverse): (f64, f64), weight: Option<&[A]>, bias: Option<&[A]>) {
    let (mean, inverse) = (A::of(mean), A::of(inverse));
    isa::run(Scaled { out, data, weight, bias, f: |it| (it - mean) * inverse });
}

/// The mean of a row, and the inverse of its deviation.
fn mean_and_inverse<A: Float>(data: &[A], eps: f64) -> (f64, f64) {
    let (mean, squares) = moments(std::iter::once(data));
    (mean, 1.0 / (squares / data.len() as f64 + eps).sqrt())
}

/// Normalises rows as long as `weight` and `bias`, if there are any, by their statistic.
pub(crate) fn normalise<A: Float>(
    out: &mut [A],
    data: &[A],
    n: usize,
    (statistic, eps): (NormStatistic, f64),
    weight: Option<&[A]>,
    bias: Option<&[A]>,
) {
    if n == 0 {
        return;
    }
    parallel::parts_mut(out, parallel::whole_rows(n), |at, out| {
        for (out, data) in out.chunks_exact_mut(n).zip(data[at..].chunks_exact(n)) {
            match statistic {
                NormStatistic::Variance => centred(out, data, mean_and_inverse(data, eps), weight, bias),
                NormStatistic::MeanSquare => {
                    let squares = sum_of(data, |it| it.to_f64() * it.to_f64());
                    let factor = A::of(1.0 / (squares / n as f64 + eps).sqrt());
                    isa::run(Scaled { out, data, weight, bias, f: |it| it * factor });
                }
            }
        }
    });
}

/// Normalises rows of `n` elements: gives `body` the number of each one, its mean and the inverse of its deviation, and
/// the row itself; and fills the second and third result with these statistics.
fn rows<A: Float>(out: &[Tensor], data: &[A], n: usize, eps: f64, body: &NormaliseRow<'_, A>) -> Result<()> {
    let n_rows = out[1].numel();
    let mut statistics = filled((0.0, 0.0), n_rows)?;
    try_fill_float::<A, _>(&out[0], |out| {
        // A row without elements has statistics as well.
        let empty = std::iter::repeat_with(Default::default).take(if n == 0 { n_rows } else { 0 });
        let rows = out.chunks_exact_mut(n.max(1)).chain(empty).zip(&mut statistics);
        let mut rows = collected(rows.enumerate())?;
        parallel::parts_mut(&mut rows, GRAIN.div_ceil(n.max(1)), |_, part| {
            for (row, (out, statistics)) in part {
                let data = &data[*row * n..][..n];
                **statistics = mean_and_inverse(data, eps);
                body(*row, **statistics, out, data);
            }
        });
        Ok(())
    })?;
    fill_float::<f64, _>(&out[1], |out| out.iter_mut().zip(&statistics).for_each(|(out, it)| *out = it.0))?;
    fill_float::<f64, _>(&out[2], |out| out.iter_mut().zip(&statistics).for_each(|(out, it)| *out = it.1))
}

type NormaliseRow<'a, A> = dyn Fn(usize, (f64, f64), &mut [A], &[A]) + Sync + 'a;

/// A function of each element, times a weight, plus a bias.
struct Scaled<'a, A, F> {
    out: &'a mut [A],
    data: &'a [A],
    weight: Option<&'a [A]>,
    bias: Option<&'a [A]>,
    f: F,
}

impl<A: Float, F: Fn(A) -> A> Work for Scaled<'_, A, F> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Scaled { out, data, weight, bias, f } = self;
        match (weight, bias) {
            (Some(weight), Some(bias)) => {
                let parameters = weight.iter().zip(bias);
                let all = out.iter_mut().zip(data).zip(parameters);
                all.for_each(|((out, &it), (&weight, &bias))| *out = f(it) * weight + bias);
            }
            (Some(weight), None) => {
                out.iter_mut().zip(data).zip(weight).for_each(|((out, &it), &weight)| *out = f(it) * weight);
            }
            (None, Some(bias)) => {
                out.iter_mut().zip(data).zip(bias).for_each(|((out, &it), &bias)| *out = f(it) + bias);
            }
            (None, None) => out.iter_mut().zip(data).for_each(|(out, &it)| *out = f(it)),
        }
    }
}

fn native_group_norm(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => group_norm::<A>(args, out))
}

fn group_norm<A: Float>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let input = Strided::<A>::dense(args.tensor(0)?)?;
    let (weight, bias) = (parameter(args.opt_tensor(1)?)?, parameter(args.opt_tensor(2)?)?);
    let (n_channels, n_points) = (args.int(4)? as usize, args.int(5)? as usize);
    let (n_groups, eps) = (args.int(6)? as usize, args.float(7)?);
    let per_group = n_channels / n_groups;
    let n = per_group * n_points;
    rows::<A>(out, input.data(), n, eps, &|row, (mean, inverse), out, data| {
        let channels = out.chunks_exact_mut(n_points.max(1)).zip(data.chunks_exact(n_points.max(1)));
        for (at, (out, data)) in channels.enumerate() {
            let channel = row % n_groups * per_group + at;
            let scale = inverse * weight.as_ref().map_or(1.0, |it| it[channel]);
            let shift = A::of(bias.as_ref().map_or(0.0, |it| it[channel]) - mean * scale);
            let scale = A::of(scale);
            isa::run(Scaled { out, data, weight: None, bias: None, f: |it| it * scale + shift });
        }
    })
}

fn rms_norm(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => rows_by_rms::<A>(args, &out[0]))
}

fn rows_by_rms<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let n: usize = args.ints(1)?.iter().product::<i64>() as usize;
    let eps = args.opt_float(3)?.unwrap_or(A::EPSILON);
    let input = Strided::<A>::dense(args.tensor(0)?)?;
    let weight = args.opt_tensor(2)?.map(Strided::<A>::dense).transpose()?;
    fill_float::<A, _>(out, |out| {
        let weight = weight.as_ref().map(Strided::data);
        normalise(out, input.data(), n, (NormStatistic::MeanSquare, eps), weight, None);
    })
}
