//! Reductions. Each result is a function of a lane: the elements that it reduces, as one slice.
//!
//! Sums are pairwise over blocks of eight running sums in float64, in an order that depends on the length alone; so they
//! are at least as exact as PyTorch's and the same on every machine.

#![allow(
    clippy::useless_conversion,
    reason = "the same code serves float32, whose conversion to float64 does something"
)]

use crate::map::{Strided, Walk, cast, gather, store};
use crate::number::{Number, Real, with_float, with_number, with_real};
use crate::unary::refuse;
use tracefx_core::{Bool8, DType, Diagnostic, Dims, Element, Result, StorageRead, Tensor, with_element};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, reduced_dims};

const SUM: Kernel = Kernel::Fill(|args, outs| sum(args, outs, |it| it));
const PROD: Kernel = Kernel::Fill(prod);
const MEAN: Kernel = Kernel::Fill(mean);
const MAX: Kernel = Kernel::Fill(|args, outs| extremum(args, &outs[0], true));
const MIN: Kernel = Kernel::Fill(|args, outs| extremum(args, &outs[0], false));
const ANY: Kernel = Kernel::Fill(|args, outs| question(args, outs, true));
const ALL: Kernel = Kernel::Fill(|args, outs| question(args, outs, false));
const COUNT: Kernel = Kernel::Fill(count);
const VAR: Kernel = Kernel::Fill(|args, outs| var(args, outs, |it| it));
const STD: Kernel = Kernel::Fill(|args, outs| var(args, outs, f64::sqrt));
const NORM: Kernel = Kernel::Fill(norm);

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.sum.default", SUM),
    ("aten.sum.dim_IntList", SUM),
    ("aten.nansum.default", Kernel::Fill(|args, outs| sum(args, outs, |it| if it.is_nan() { 0.0 } else { it }))),
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
        Kernel::Fill(|args, outs| {
            extremum(args, &outs[0], false)?;
            extremum(args, &outs[1], true)
        }),
    ),
    ("aten.max.dim", Kernel::Fill(|args, outs| with_index(args, Some(&outs[0]), &outs[1], true))),
    ("aten.min.dim", Kernel::Fill(|args, outs| with_index(args, Some(&outs[0]), &outs[1], false))),
    ("aten.argmax.default", Kernel::Fill(|args, outs| with_index(args, None, &outs[0], true))),
    ("aten.argmin.default", Kernel::Fill(|args, outs| with_index(args, None, &outs[0], false))),
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
    ("aten.logsumexp.default", Kernel::Fill(logsumexp)),
];

/// Gives `body` each lane with its number, in the row-major order of the dimensions that are not reduced.
///
/// # Errors
/// `OutOfMemory` when a lane has to be gathered and cannot be.
pub(crate) fn for_each_lane<F: Element>(
    tensor: &Tensor,
    is_reduced: &[bool],
    body: &mut dyn FnMut(usize, &[F]),
) -> Result<()> {
    let part = |of: &[usize], reduced: bool| -> Dims {
        of.iter().zip(is_reduced).filter(|&(_, &it)| it == reduced).map(|(&it, _)| it).collect()
    };
    let (outer_sizes, inner_sizes) = (part(tensor.sizes(), false), part(tensor.sizes(), true));
    let (outer_strides, inner_strides) = (part(tensor.strides(), false), part(tensor.strides(), true));
    let outer = Strided { sizes: &outer_sizes, strides: &outer_strides, offset: tensor.offset() };
    let inner = Strided { sizes: &inner_sizes, strides: &inner_strides, offset: 0 };
    let (outer, inner) = (Walk::new(&outer_sizes, &[outer]), Walk::new(&inner_sizes, &[inner]));
    let n: usize = inner_sizes.iter().product();
    let (row_len, row_stride) = (inner.row_len(), inner.row_stride(0));
    let is_direct = tensor.dtype() == F::DTYPE && n > 0 && row_len == n && row_stride == 1;
    let load: fn(&StorageRead<'_>, usize, usize, &mut [F]) = with_element!(tensor.dtype(), T => {
        |from, at, stride, to| gather(from.elements::<T>(), at, stride, to)
    }, else return Err(Diagnostic::unsupported_dtype(tensor.dtype(), "a reduction")));
    let guard = tensor.storage().read();
    let mut lane: Vec<F> = Vec::new();
    if !is_direct {
        lane.try_reserve_exact(n).map_err(|_| Diagnostic::out_of_memory(n.saturating_mul(size_of::<F>())))?;
        lane.resize(n, F::zeroed());
    }
    let mut number = 0;
    outer.for_each_row(&mut |_, at| {
        for i in 0..outer.row_len() {
            let start = at[0] + i * outer.row_stride(0);
            if is_direct {
                body(number, &guard.elements::<F>()[start..start + n]);
            } else {
                inner.for_each_row(&mut |row, from| {
                    load(&guard, start + from[0], row_stride, &mut lane[row * row_len..][..row_len]);
                    Ok(())
                })?;
                body(number, &lane);
            }
            number += 1;
        }
        Ok(())
    })
}

/// Fills a result with one value for each lane.
fn reduce<F: Element, R: Element>(
    tensor: &Tensor,
    is_reduced: &[bool],
    out: &Tensor,
    f: impl Fn(&[F]) -> R,
) -> Result<()> {
    let mut values = vec![R::zeroed(); out.numel()];
    for_each_lane::<F>(tensor, is_reduced, &mut |number, lane| values[number] = f(lane))?;
    store(&values, out)
}

/// The sum of `f` of each element.
pub(crate) fn sum_of<F: Copy>(lane: &[F], f: impl Fn(F) -> f64 + Copy) -> f64 {
    const BLOCK: usize = 4096;
    if lane.len() > BLOCK {
        let (left, right) = lane.split_at((lane.len() / 2).next_multiple_of(BLOCK).min(lane.len() - 1));
        return sum_of(left, f) + sum_of(right, f);
    }
    let mut sums = [0.0; 8];
    let chunks = lane.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (sum, &it) in sums.iter_mut().zip(chunk) {
            *sum += f(it);
        }
    }
    for (sum, &it) in sums.iter_mut().zip(rest) {
        *sum += f(it);
    }
    ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
}

/// The tensor in the dtype of the result, which PyTorch converts to first.
fn input(args: &Args<'_, Tensor>, dtype: DType) -> Result<(Tensor, Vec<bool>)> {
    let this = args.tensor(0)?;
    Ok((cast(this, dtype)?, reduced_dims(args, this.rank())?))
}

fn sum(args: &Args<'_, Tensor>, outs: &[Tensor], f: impl Fn(f64) -> f64 + Copy) -> Result<()> {
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
            lane.iter().fold(0, |sum, &it| sum.wrapping_add(it))
        });
    }
    with_float!(dtype, F => reduce::<F, f64>(&this, &is_reduced, &outs[0], |lane| sum_of(lane, |it| f(it.into()))),
        else Err(refuse(args, dtype)))
}

fn prod(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_float!(dtype, F => {
        reduce::<F, f64>(&this, &is_reduced, &outs[0], |lane| lane.iter().map(|&it| f64::from(it)).product())
    }, else with_number!(dtype, F => {
        reduce::<F, F>(&this, &is_reduced, &outs[0], |lane| lane.iter().fold(F::ONE, |product, &it| product.mul(it)))
    }, else Err(refuse(args, dtype))))
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
    with_float!(dtype, F => reduce::<F, f64>(&this, &is_reduced, &outs[0], mean_of), else Err(refuse(args, dtype)))
}

fn mean_of<F: Copy + Into<f64>>(lane: &[F]) -> f64 {
    sum_of(lane, Into::into) / lane.len() as f64
}

fn extremum(args: &Args<'_, Tensor>, out: &Tensor, largest: bool) -> Result<()> {
    let dtype = out.dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_real!(dtype, F => if largest {
        reduce::<F, F>(&this, &is_reduced, out, |lane| lane.iter().fold(F::LOWEST, |so_far, &it| so_far.larger(it)))
    } else {
        reduce::<F, F>(&this, &is_reduced, out, |lane| lane.iter().fold(F::HIGHEST, |so_far, &it| so_far.smaller(it)))
    }, else Err(refuse(args, dtype)))
}

/// The first of the largest or smallest elements; a NaN comes before all others.
fn position_of<F: Real>(lane: &[F], largest: bool) -> usize {
    let mut best = 0;
    for (i, &it) in lane.iter().enumerate().skip(1) {
        let so_far = lane[best];
        let is_better = if largest { it > so_far } else { it < so_far };
        if !so_far.is_nan() && (is_better || it.is_nan()) {
            best = i;
        }
    }
    best
}

fn with_index(args: &Args<'_, Tensor>, values: Option<&Tensor>, indices: &Tensor, largest: bool) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_real!(dtype, F => {
        if let Some(values) = values {
            reduce::<F, F>(&this, &is_reduced, values, |lane| lane[position_of(lane, largest)])?;
        }
        reduce::<F, i64>(&this, &is_reduced, indices, |lane| position_of(lane, largest) as i64)
    }, else Err(refuse(args, dtype)))
}

/// Whether one element is not zero, which `true` decides, or whether none is zero, which `false` decides.
fn question(args: &Args<'_, Tensor>, outs: &[Tensor], decisive: bool) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_number!(dtype, F => reduce::<F, Bool8>(&this, &is_reduced, &outs[0], |lane| {
        Bool8::from(lane.iter().any(|&it| (it != F::ZERO) == decisive) == decisive)
    }), else Err(refuse(args, dtype)))
}

fn count(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_number!(dtype, F => reduce::<F, i64>(&this, &is_reduced, &outs[0], |lane| {
        lane.iter().filter(|&&it| it != F::ZERO).count() as i64
    }), else Err(refuse(args, dtype)))
}

/// The variance, or a function of it, and the mean where there are two results.
fn var(args: &Args<'_, Tensor>, outs: &[Tensor], f: impl Fn(f64) -> f64) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let (this, is_reduced) = input(args, dtype)?;
    let correction = match (args.position("correction"), args.position("unbiased")) {
        (Some(index), _) => args.opt_float(index)?.unwrap_or(1.0),
        (None, Some(index)) => f64::from(u8::from(args.bool(index)?)),
        (None, None) => 1.0,
    };
    with_float!(dtype, F => {
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
    }, else Err(refuse(args, dtype)))
}

fn norm(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    if args.tensor(0)?.dtype().is_complex() {
        return Err(refuse(args, args.tensor(0)?.dtype()));
    }
    let (this, is_reduced) = input(args, dtype)?;
    let ord = args.opt_float(1)?.unwrap_or(2.0);
    with_float!(dtype, F => reduce::<F, f64>(&this, &is_reduced, &outs[0], |lane| {
        let size = |it: F| f64::from(it.abs());
        if ord == 2.0 {
            sum_of(lane, |it| size(it) * size(it)).sqrt()
        } else if ord == 1.0 {
            sum_of(lane, size)
        } else if ord == 0.0 {
            sum_of(lane, |it| f64::from(u8::from(it != 0.0)))
        } else if ord == f64::INFINITY {
            lane.iter().fold(0.0, |so_far: f64, &it| so_far.larger(size(it)))
        } else if ord == f64::NEG_INFINITY {
            lane.iter().fold(f64::INFINITY, |so_far, &it| so_far.smaller(size(it)))
        } else {
            sum_of(lane, |it| size(it).powf(ord)).powf(1.0 / ord)
        }
    }), else Err(refuse(args, dtype)))
}

fn logsumexp(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let (this, is_reduced) = input(args, dtype)?;
    with_float!(dtype, F => reduce::<F, f64>(&this, &is_reduced, &outs[0], |lane| {
        let largest = lane.iter().fold(f64::NEG_INFINITY, |so_far, &it| so_far.larger(it.into()));
        if largest.is_infinite() {
            return largest;
        }
        sum_of(lane, |it| (f64::from(it) - largest).exp()).ln() + largest
    }), else Err(refuse(args, dtype)))
}
