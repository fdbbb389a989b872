//! Reductions. Each result is a function of a lane: the elements that it reduces, as one slice.
//!
//! Sums are pairwise over blocks of running sums in float64, in an order that depends on the length alone; so they are at
//! least as exact as PyTorch's and the same on every machine and for every number of threads.

#![allow(
    clippy::useless_conversion,
    reason = "the same code serves float32, whose conversion to float64 does something"
)]

use crate::numeric::dispatch::{with_element, with_float, with_number, with_real};
use crate::numeric::elementary::Elementary;
use crate::numeric::isa::{self, Isa, Work};
use crate::numeric::map::{cast, convert_all, store};
use crate::numeric::number::{Number, Real};
use crate::numeric::parallel::{self, GRAIN};
use crate::numeric::strided_iter::{StridedIter, StridedLayout};
use std::ops::Range;
use tracefx_core::allocate::{filled, with_room};
use tracefx_core::{Bool8, DType, Dims, Element, Region, Result, StorageRead, Tensor, copy_strided};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, reduced_dims};

const SUM: Kernel = Kernel::Overwrite(|args, outs| sum(args, outs, |it| it));
const PROD: Kernel = Kernel::Overwrite(prod);
const MEAN: Kernel = Kernel::Overwrite(mean);
const MAX: Kernel = Kernel::Overwrite(|args, outs| extremum(args, &outs[0], true));
const MIN: Kernel = Kernel::Overwrite(|args, outs| extremum(args, &outs[0], false));
const ANY: Kernel = Kernel::Overwrite(|args, outs| question(args, outs, true));
const ALL: Kernel = Kernel::Overwrite(|args, outs| question(args, outs, false));
const COUNT: Kernel = Kernel::Overwrite(count);
const VAR: Kernel = Kernel::Overwrite(|args, outs| var(args, outs, |it| it));
const STD: Kernel = Kernel::Overwrite(|args, outs| var(args, outs, f64::sqrt));
const NORM: Kernel = Kernel::Overwrite(norm);

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.sum.default", SUM),
    ("aten.sum.dim_IntList", SUM),
    ("aten.nansum.default", Kernel::Overwrite(|args, outs| sum(args, outs, |it| if it.is_nan() { 0.0 } else { it }))),
    ("aten.prod.default", PROD),
    ("aten.prod.dim_int", PROD),
    ("aten.mean.default", MEAN),
    ("aten.mean.dim", MEAN),
    ("aten.amax.default", MAX),
    ("aten.amin.default", MIN),
    ("aten.max.default", MAX),
    ("aten.min.default", MIN),
    (
        "aten.aminmax.default",
        Kernel::Overwrite(|args, outs| {
            extremum(args, &outs[0], false)?;
            extremum(args, &outs[1], true)
        }),
    ),
    ("aten.max.dim", Kernel::Overwrite(|args, outs| with_index(args, Some(&outs[0]), &outs[1], true))),
    ("aten.min.dim", Kernel::Overwrite(|args, outs| with_index(args, Some(&outs[0]), &outs[1], false))),
    ("aten.argmax.default", Kernel::Overwrite(|args, outs| with_index(args, None, &outs[0], true))),
    ("aten.argmin.default", Kernel::Overwrite(|args, outs| with_index(args, None, &outs[0], false))),
    ("aten.any.default", ANY),
    ("aten.any.dim", ANY),
    ("aten.any.dims", ANY),
    ("aten.all.default", ALL),
    ("aten.all.dim", ALL),
    ("aten.all.dims", ALL),
    ("aten.count_nonzero.default", COUNT),
    ("aten.count_nonzero.dim_IntList", COUNT),
    ("aten.var.default", VAR),
    ("aten.var.dim", VAR),
    ("aten.var.correction", VAR),
    ("aten.std.default", STD),
    ("aten.std.dim", STD),
    ("aten.std.correction", STD),
    ("aten.var_mean.default", VAR),
    ("aten.var_mean.dim", VAR),
    ("aten.var_mean.correction", VAR),
    ("aten.std_mean.default", STD),
    ("aten.std_mean.dim", STD),
    ("aten.std_mean.correction", STD),
    ("aten.linalg_vector_norm.default", NORM),
    ("aten.norm.Scalar", NORM),
    ("aten.norm.ScalarOpt_dim", NORM),
    ("aten.norm.ScalarOpt_dim_dtype", NORM),
    ("aten.norm.ScalarOpt_dtype", NORM),
    ("aten.logsumexp.default", Kernel::Overwrite(logsumexp)),
];

type Convert<F> = fn(&[u8], &mut [F]);

/// The lanes of a tensor, in the row-major order of the dimensions that are not reduced, and in parts of several lanes.
struct Lanes<'a, F> {
    guard: StorageRead<'a>,
    outer: StridedIter,
    /// The sizes and strides of a part, whose lanes are one behind the other.
    inner: (Dims, Dims),
    lane_len: usize,
    /// The number of lanes of a part.
    n_part: usize,
    /// The size of a stored element, and how stored ones are converted where they have to be.
    load: (usize, Option<Convert<F>>),
    /// Whether lanes can be borrowed from the storage.
    is_direct: bool,
}

impl<'a, F: Element> Lanes<'a, F> {
    fn new(tensor: &'a Tensor, is_reduced: &[bool]) -> Result<Self> {
        let part = |of: &[usize], reduced: bool| -> Dims {
            of.iter().zip(is_reduced).filter(|&(_, &it)| it == reduced).map(|(&it, _)| it).collect()
        };
        let (outer_sizes, mut sizes) = (part(tensor.sizes(), false), part(tensor.sizes(), true));
        let (outer_strides, mut strides) = (part(tensor.strides(), false), part(tensor.strides(), true));
        let outer = StridedLayout { sizes: &outer_sizes, strides: &outer_strides, offset: tensor.offset() };
        let outer = StridedIter::new(&outer_sizes, &[outer]);
        let lane_len: usize = sizes.iter().product();
        let convert: Convert<F> = with_element!(tensor.dtype(), "a reduction", T => {
            |from, to| convert_all(bytemuck::cast_slice::<u8, T>(from), to)
        });
        let is_own = tensor.dtype() == F::DTYPE;
        let is_direct = is_own && lane_len > 0 && tracefx_core::has_contiguous_strides(&sizes, &strides);
        sizes.insert(0, 0);
        strides.insert(0, outer.row_stride(0));
        Ok(Lanes {
            guard: tensor.storage().read(),
            n_part: (GRAIN / lane_len.max(1)).clamp(1, outer.row_len().max(1)),
            outer,
            inner: (sizes, strides),
            lane_len,
            load: (tensor.dtype().size(), (!is_own).then_some(convert)),
            is_direct,
        })
    }

    /// The number of parts in a row of the dimensions that are not reduced.
    fn parts_per_row(&self) -> usize {
        self.outer.row_len().div_ceil(self.n_part)
    }

    fn n_parts(&self) -> usize {
        self.outer.n_rows() * self.parts_per_row()
    }

    /// Gives `body` each lane of a part with its number.
    ///
    /// # Errors
    /// `OutOfMemory` when the lanes have to be gathered and cannot be.
    fn part(&self, part: usize, body: &mut dyn FnMut(usize, &[F])) -> Result<()> {
        let (row, first) = (part / self.parts_per_row(), part % self.parts_per_row() * self.n_part);
        let n = self.n_part.min(self.outer.row_len() - first);
        let (start, stride) = (self.outer.row_start(row)[0], self.outer.row_stride(0));
        let number = row * self.outer.row_len() + first;
        if self.is_direct {
            for i in 0..n {
                body(number + i, &self.guard.elements::<F>()[start + (first + i) * stride..][..self.lane_len]);
            }
            return Ok(());
        }
        let mut lanes = filled(F::zeroed(), n * self.lane_len)?;
        let mut sizes = self.inner.0.clone();
        sizes[0] = n;
        let strides = tracefx_core::contiguous_strides(&sizes);
        let from = Region { bytes: self.guard.bytes(), offset: start + first * stride, strides: &self.inner.1 };
        let size = self.load.0;
        match self.load.1 {
            None => {
                let to = Region { bytes: bytemuck::cast_slice_mut(&mut lanes), offset: 0, strides: &strides };
                copy_strided(size, &sizes, from, to);
            }
            Some(convert) => {
                // Of the alignment of the largest element.
                let mut stored = filled([0.0f64; 2], (lanes.len() * size).div_ceil(16))?;
                let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut stored)[..lanes.len() * size];
                copy_strided(size, &sizes, from, Region { bytes: &mut *bytes, offset: 0, strides: &strides });
                convert(bytes, &mut lanes);
            }
        }
        (0..n).for_each(|i| body(number + i, &lanes[i * self.lane_len..][..self.lane_len]));
        Ok(())
    }
}

/// Fills a result with one value for each lane.
fn reduce<F: Element, R: Element>(
    tensor: &Tensor,
    is_reduced: &[bool],
    out: &Tensor,
    f: impl Fn(&[F]) -> R + Sync,
) -> Result<()> {
    let lanes = Lanes::<F>::new(tensor, is_reduced)?;
    let parts = parallel::map(if out.numel() == 0 { 0 } else { lanes.n_parts() }, |part| {
        let mut values = with_room(lanes.n_part)?;
        lanes.part(part, &mut |_, lane| values.push(f(lane))).map(|()| values)
    })?;
    let mut values = with_room(out.numel())?;
    parts.iter().for_each(|part| values.extend_from_slice(part));
    store(&values, out)
}

/// The number of running results of a reduction: a few vectors of the widest registers.
const RUNNING: usize = 32;

/// The sum of `f` of each element.
pub(crate) fn sum_of<F: Copy + Sync>(lane: &[F], f: impl Fn(F) -> f64 + Copy + Sync + Send) -> f64 {
    if lane.len() > GRAIN {
        return sum_of_parts(0..lane.len().div_ceil(GRAIN), &|part| {
            sum_of(&lane[part * GRAIN..][..GRAIN.min(lane.len() - part * GRAIN)], f)
        });
    }
    if lane.len() > SUMMED {
        let (left, right) = lane.split_at(halved(lane.len()));
        return sum_of(left, f) + sum_of(right, f);
    }
    fold(lane, 0.0, |sum, it| sum + f(it), |a, b| a + b)
}

/// The numbers that are summed up one after the other.
const SUMMED: usize = 4096;

/// Where more than [`SUMMED`] numbers are parted.
fn halved(n: usize) -> usize {
    (n / 2).next_multiple_of(SUMMED).min(n - 1)
}

/// The sum of what these parts give, as of a lane of them. It takes no memory that could be missing.
fn sum_of_parts(parts: Range<usize>, part: &(dyn Fn(usize) -> f64 + Sync + Send)) -> f64 {
    if parts.len() > SUMMED {
        let middle = parts.start + halved(parts.len());
        return sum_of_parts(parts.start..middle, part) + sum_of_parts(middle..parts.end, part);
    }
    let mut sums = [0.0; SUMMED];
    let sums = &mut sums[..parts.len()];
    parallel::parts_mut(sums, 1, |at, sum| sum[0] = part(parts.start + at));
    fold(sums, 0.0, |sum, it| sum + it, |a, b| a + b)
}

/// What is left of a lane when `step` takes each element in, in [`RUNNING`] running results that `join` puts together.
#[inline(always)]
pub(crate) fn fold_lane<F: Copy, S: Copy>(
    lane: &[F],
    start: S,
    step: impl Fn(S, F) -> S,
    join: impl Fn(S, S) -> S,
) -> S {
    let mut running = [start; RUNNING];
    let (chunks, rest) = lane.as_chunks::<RUNNING>();
    for chunk in chunks {
        // Made anew rather than changed, which keeps them in registers and makes vector code of the loop.
        running = std::array::from_fn(|i| step(running[i], chunk[i]));
    }
    running.iter_mut().zip(rest).for_each(|(running, &it)| *running = step(*running, it));
    let mut n = RUNNING;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            running[i] = join(running[i], running[i + n]);
        }
    }
    running[0]
}

/// [`fold_lane`] on the widest instruction set.
fn fold<F: Copy, S: Copy>(lane: &[F], start: S, step: impl Fn(S, F) -> S, join: impl Fn(S, S) -> S) -> S {
    isa::run(Fold { lane, start, step, join })
}

struct Fold<'a, F, S, T, J> {
    lane: &'a [F],
    start: S,
    step: T,
    join: J,
}

impl<F: Copy, S: Copy, T: Fn(S, F) -> S, J: Fn(S, S) -> S> Work for Fold<'_, F, S, T, J> {
    type Output = S;

    #[inline(always)]
    fn run<I: Isa>(self) -> S {
        fold_lane(self.lane, self.start, self.step, self.join)
    }
}

/// The tensor in the dtype of the result, which PyTorch converts to first.
fn input(args: &Args<'_, Tensor>, dtype: DType) -> Result<(Tensor, Vec<bool>)> {
    let this = args.tensor(0)?;
    Ok((cast(this, dtype)?, reduced_dims(args, this.rank())?))
}

fn sum(args: &Args<'_, Tensor>, outs: &[Tensor], f: impl Fn(f64) -> f64 + Copy + Sync + Send) -> Result<()> {
    let dtype = outs[0].dtype();
    let (this, is_reduced) = input(args, dtype)?;
    if dtype.is_complex() {
        return reduce::<[f64; 2], _>(&this, &is_reduced, &outs[0], |lane| {
            [sum_of(lane, |it| it[0]), sum_of(lane, |it| it[1])]
        });
    }
    if !dtype.is_float() {
        // A wrapping sum is the same in every order; any non-zero sum is true.
        return reduce::<i64, i64>(&this, &is_reduced, &outs[0], |lane| {
            fold(lane, 0, i64::wrapping_add, i64::wrapping_add)
        });
    }
    with_float!(dtype, &args.op.name, F => reduce::<F, f64>(&this, &is_reduced, &outs[0], |lane| sum_of(lane, |it| f(it.into()))))
}

fn prod(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_float!(dtype, F => {
        reduce::<F, f64>(&this, &is_reduced, &outs[0], |lane| lane.iter().map(|&it| f64::from(it)).product())
    }, else with_number!(dtype, &args.op.name, F => {
        reduce::<F, F>(&this, &is_reduced, &outs[0], |lane| lane.iter().fold(F::ONE, |product, &it| product.mul(it)))
    }))
}

fn mean(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let (this, is_reduced) = input(args, dtype)?;
    if dtype.is_complex() {
        return reduce::<[f64; 2], _>(&this, &is_reduced, &outs[0], |lane| {
            let n = lane.len() as f64;
            [sum_of(lane, |it| it[0]) / n, sum_of(lane, |it| it[1]) / n]
        });
    }
    with_float!(dtype, &args.op.name, F => reduce::<F, f64>(&this, &is_reduced, &outs[0], mean_of))
}

fn mean_of<F: Copy + Sync + Into<f64>>(lane: &[F]) -> f64 {
    sum_of(lane, Into::into) / lane.len() as f64
}

fn extremum(args: &Args<'_, Tensor>, out: &Tensor, largest: bool) -> Result<()> {
    let dtype = out.dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_real!(dtype, &args.op.name, F => if largest {
        reduce::<F, F>(&this, &is_reduced, out, |lane| fold(lane, F::LOWEST, F::larger, F::larger))
    } else {
        reduce::<F, F>(&this, &is_reduced, out, |lane| fold(lane, F::HIGHEST, F::smaller, F::smaller))
    })
}

/// The first of the largest or smallest elements; a NaN comes before all others.
fn position_of<F: Real>(lane: &[F], largest: bool) -> usize {
    let best = if largest {
        fold(lane, F::LOWEST, F::larger, F::larger)
    } else {
        fold(lane, F::HIGHEST, F::smaller, F::smaller)
    };
    let is_best = |it: F| it == best || (it.is_nan() && best.is_nan());
    let holds = |chunk: &[F]| fold(chunk, false, |found, it| found | is_best(it), |a, b| a | b);
    // Found among many at once, then one by one.
    let chunk = lane.chunks(256).position(holds).unwrap_or(0) * 256;
    chunk + lane[chunk..].iter().position(|&it| is_best(it)).unwrap_or(0)
}

fn with_index(args: &Args<'_, Tensor>, values: Option<&Tensor>, indices: &Tensor, largest: bool) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_real!(dtype, &args.op.name, F => {
        if let Some(values) = values {
            reduce::<F, F>(&this, &is_reduced, values, |lane| lane[position_of(lane, largest)])?;
        }
        reduce::<F, i64>(&this, &is_reduced, indices, |lane| position_of(lane, largest) as i64)
    })
}

/// Whether one element is not zero, which `true` decides, or whether none is zero, which `false` decides.
fn question(args: &Args<'_, Tensor>, outs: &[Tensor], decisive: bool) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_number!(dtype, &args.op.name, F => reduce::<F, Bool8>(&this, &is_reduced, &outs[0], |lane| {
        let decides = |chunk: &[F]| fold(chunk, false, |found, it| found | ((it != F::ZERO) == decisive), |a, b| a | b);
        Bool8::from(lane.chunks(1024).any(decides) == decisive)
    }))
}

fn count(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_number!(dtype, &args.op.name, F => reduce::<F, i64>(&this, &is_reduced, &outs[0], |lane| {
        fold(lane, 0, |count, it| count + i64::from(it != F::ZERO), |a, b| a + b)
    }))
}

/// The variance, or a function of it, and the mean where there are two results.
fn var(args: &Args<'_, Tensor>, outs: &[Tensor], f: impl Fn(f64) -> f64 + Sync) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let (this, is_reduced) = input(args, dtype)?;
    let correction = match (args.position("correction"), args.position("unbiased")) {
        (Some(index), _) => args.opt_float(index)?.unwrap_or(1.0),
        (None, Some(index)) => f64::from(u8::from(args.bool(index)?)),
        (None, None) => 1.0,
    };
    if dtype.is_complex() {
        let mean_of = |lane: &[[f64; 2]]| [0, 1].map(|part| sum_of(lane, |it| it[part]) / lane.len() as f64);
        reduce::<[f64; 2], f64>(&this, &is_reduced, &outs[0], |lane| {
            let [re, im] = mean_of(lane);
            let squares = sum_of(lane, |it| (it[0] - re) * (it[0] - re) + (it[1] - im) * (it[1] - im));
            f(squares / (lane.len() as f64 - correction).max(0.0))
        })?;
        return match outs.get(1) {
            Some(means) => reduce::<[f64; 2], _>(&this, &is_reduced, means, mean_of),
            None => Ok(()),
        };
    }
    with_float!(dtype, &args.op.name, F => {
        reduce::<F, f64>(&this, &is_reduced, &outs[0], |lane| {
            let mean = mean_of(lane);
            let squares = sum_of(lane, |it| {
                let distance = f64::from(it) - mean;
                distance * distance
            });
            f(squares / (lane.len() as f64 - correction).max(0.0))
        })?;
        match outs.get(1) {
            Some(means) => reduce::<F, f64>(&this, &is_reduced, means, mean_of),
            None => Ok(()),
        }
    })
}

fn norm(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let own = args.tensor(0)?.dtype();
    let (this, is_reduced) = input(args, if own.is_complex() { own } else { dtype })?;
    let ord = args.opt_float(1)?.unwrap_or(2.0);
    if own.is_complex() {
        let size = |[re, im]: [f64; 2]| re.hypot(im);
        return reduce::<[f64; 2], f64>(&this, &is_reduced, &outs[0], |lane| norm_of(lane, ord, size));
    }
    with_float!(dtype, &args.op.name, F => reduce::<F, f64>(&this, &is_reduced, &outs[0], |lane| {
        norm_of(lane, ord, |it: F| f64::from(it.abs()))
    }))
}

/// The norm of a lane of numbers with these distances from zero.
#[inline(always)]
fn norm_of<F: Copy + Sync>(lane: &[F], ord: f64, size: impl Fn(F) -> f64 + Copy + Sync + Send) -> f64 {
    if ord == 2.0 {
        sum_of(lane, |it| size(it) * size(it)).sqrt()
    } else if ord == 1.0 {
        sum_of(lane, size)
    } else if ord == 0.0 {
        sum_of(lane, |it| f64::from(u8::from(size(it) != 0.0)))
    } else if ord == f64::INFINITY {
        fold(lane, 0.0, |so_far: f64, it| so_far.larger(size(it)), f64::larger)
    } else if ord == f64::NEG_INFINITY {
        fold(lane, f64::INFINITY, |so_far: f64, it| so_far.smaller(size(it)), f64::smaller)
    } else {
        sum_of(lane, |it| size(it).powf(ord)).powf(1.0 / ord)
    }
}

fn logsumexp(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_float!(dtype, &args.op.name, F => reduce::<F, f64>(&this, &is_reduced, &outs[0], |lane| {
        let largest = fold(lane, F::LOWEST, F::larger, F::larger);
        if largest.is_infinite() {
            return largest.into();
        }
        sum_of(lane, |it| f64::from(Elementary::exp(it - largest))).ln() + f64::from(largest)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tracefx_exec::Executor;
    use tracefx_ops::{Value, registry};

    fn numbers(n: usize) -> Vec<f32> {
        (0..n as u32)
            .map(|it| (it.wrapping_mul(2_654_435_761) as f32 / 1e9 - 2.0) * 1.1f32.powi(it as i32 % 60))
            .collect()
    }

    /// No result of these depends on how the work is shared.
    #[cfg(not(target_family = "wasm"))]
    #[test]
    fn results_are_the_same_on_any_number_of_threads() {
        let executor = Executor::new(registry(), crate::kernels());
        let base = Tensor::from_slice(&numbers(300_000), &[500, 600]).unwrap();
        let int = |it| Value::<Tensor>::int(it);
        let calls: [(&str, Vec<Value<Tensor>>); 9] = [
            ("aten.sum.default", vec![]),
            ("aten.sum.dim_IntList", vec![Value::ints(&[0])]),
            ("aten.sum.dim_IntList", vec![Value::ints(&[1])]),
            ("aten.var.default", vec![]),
            ("aten.argmax.default", vec![int(0)]),
            ("aten.cumsum.default", vec![int(0)]),
            ("aten._softmax.default", vec![int(1), Value::Bool(false)]),
            ("aten._log_softmax.default", vec![int(0), Value::Bool(false)]),
            ("aten.native_layer_norm.default", vec![Value::ints(&[600]), Value::None, Value::None, Value::Float(1e-5)]),
        ];
        for (op, others) in calls {
            let args: Vec<_> = std::iter::once(Value::Tensor(base.clone())).chain(others).collect();
            let run = |n_threads: usize| -> Vec<u8> {
                let results = crate::with_num_threads(n_threads, || executor.call(op, &args, &[]).unwrap());
                let Value::Tensor(result) = &results[0] else { panic!("{op} gives a tensor") };
                result.to_bytes().unwrap()
            };
            let alone = run(1);
            assert!(run(2) == alone && run(3) == alone, "{op}");
        }
    }

    proptest! {
        #[test]
        fn instruction_sets_agree(n in 0..300usize, at in any::<prop::sample::Index>(), special: f32) {
            let mut lane = numbers(n);
            if n > 0 {
                lane[at.index(n)] = special;
            }
            let sum = |it: f64, x: f32| it + f64::from(x);
            let portable = Fold { lane: &lane, start: 0.0, step: sum, join: |a, b| a + b }.run::<isa::Portable>();
            let best = fold(&lane, 0.0, sum, |a, b| a + b);
            prop_assert!(best.to_bits() == portable.to_bits() || (best.is_nan() && portable.is_nan()));
            let portable = Fold { lane: &lane, start: f32::LOWEST, step: f32::larger, join: f32::larger };
            let (best, portable) = (fold(&lane, f32::LOWEST, f32::larger, f32::larger), portable.run::<isa::Portable>());
            prop_assert!(best == portable || (best.is_nan() && portable.is_nan()));
            if n > 0 {
                let first = lane.iter().position(|it| it.is_nan()).or_else(|| lane.iter().position(|&it| it == best));
                prop_assert_eq!(position_of(&lane, true), first.unwrap_or(0));
            }
        }

        #[test]
        fn lanes_are_those_of_the_tensor(
            sizes in prop::collection::vec(prop_oneof![0..4usize, Just(35)], 0..4),
            keys: [u8; 3],
            reduced: [bool; 3],
        ) {
            let n: usize = sizes.iter().product();
            let mut order: Vec<usize> = (0..sizes.len()).collect();
            order.sort_by_key(|&dim| keys[dim]);
            let numbers: Vec<i32> = (0..n as i32).collect();
            let tensor = Tensor::from_slice(&numbers, &sizes).unwrap().permuted(&order);
            let is_reduced = &reduced[..sizes.len()];
            let kept: Vec<usize> = (0..sizes.len()).filter(|&it| !is_reduced[it]).collect();
            let out_sizes: Vec<usize> = kept.iter().map(|&it| tensor.sizes()[it]).collect();
            let out = Tensor::zeros(DType::Int64, &out_sizes).unwrap();
            // The position in memory makes an order of the elements show.
            reduce::<i64, i64>(&tensor, is_reduced, &out, |lane| lane.iter().fold(7, |sum, it| sum * 31 % 1_000_003 + it)).unwrap();
            let lanes_last: Vec<usize> = kept.iter().copied().chain((0..sizes.len()).filter(|&it| is_reduced[it])).collect();
            let rows = tensor.permuted(&lanes_last).to_vec::<i32>().unwrap();
            let lane_len = n.checked_div(out.numel()).unwrap_or(0);
            let expected: Vec<i64> = (0..out.numel())
                .map(|row| rows[row * lane_len..][..lane_len].iter().fold(7, |sum, &it| sum * 31 % 1_000_003 + i64::from(it)))
                .collect();
            prop_assert_eq!(out.to_vec::<i64>().unwrap(), expected);
        }
    }
}
