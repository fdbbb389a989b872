//! Kernels that order elements along a dimension.
//!
//! All of them work on keys: 64-bit integers in the order of the elements, whatever the dtype is.

use crate::numeric::dense::{Dense, fill, fill_bits};
use crate::numeric::dispatch::{with_bits, with_element};
use crate::numeric::parallel::{self, GRAIN};
use crate::numeric::strided_copy::bits;
use crate::sort::introsort::{nth_element, partial_sort, sort as unstable_sort};
use crate::sort::order::Sorter;
use tracefx_core::allocate::{collected, filled, with_room};
use tracefx_core::{DType, DTypeKind, Diagnostic, Element, Result, Scalar, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, normalize_dim};

pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.kthvalue.default", Kernel::Fill(kthvalue)),
    ("aten.median.default", Kernel::Fill(|args, results| whole_median(args, results, false))),
    ("aten.median.dim", Kernel::Fill(|args, results| median(args, results, false))),
    ("aten.mode.default", Kernel::Fill(mode)),
    ("aten.nanmedian.default", Kernel::Fill(|args, results| whole_median(args, results, true))),
    ("aten.nanmedian.dim", Kernel::Fill(|args, results| median(args, results, true))),
    ("aten.sort.default", Kernel::Fill(|args, results| sort(args, results, 1))),
    ("aten.sort.stable", Kernel::Fill(|args, results| sort(args, results, 2))),
    ("aten.topk.default", Kernel::Fill(topk)),
];

/// The places of numbers, the least first or the largest, as [`f64::total_cmp`] compares them, and equal ones in order.
pub(crate) fn places_in_order(numbers: &[f64], is_descending: bool) -> Result<Vec<usize>> {
    let turn = if is_descending { u64::MAX } else { 0 };
    let keys: Vec<u64> = collected(numbers.iter().map(|&it| number_key(it) ^ turn))?;
    collected(Sorter::default().places(&keys)?)
}

/// The key of a NaN: it comes after everything else. No other float has it, and integers have no NaN.
pub(crate) const NAN: u64 = u64::MAX;

const SIGN: u64 = 1 << 63;

/// Keys of numbers are in the order of [`f64::total_cmp`].
#[inline]
fn number_key(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The key of an element. Equal elements have equal keys, so that both zeros are one.
#[inline]
pub(crate) fn key(element: Scalar) -> u64 {
    match element {
        Scalar::Bool(it) => it as u64,
        Scalar::Int(it) => it as u64 ^ SIGN,
        Scalar::Float(it) if it.is_nan() => NAN,
        Scalar::Float(it) => number_key(it + 0.0),
        Scalar::Complex(_) => 0,
    }
}

/// The elements in row-major order as keys.
pub(crate) fn keys(args: &Args<'_, Tensor>, tensor: &Tensor) -> Result<Vec<u64>> {
    if tensor.dtype() == DType::UInt64 || tensor.dtype().is_complex() {
        return Err(Diagnostic::unsupported_dtype(tensor.dtype(), &args.op.name));
    }
    let dense = Dense::new(tensor)?;
    with_element!(tensor.dtype(), &args.op.name, T => collected(dense.read::<T>().iter().map(|it| key(it.to_scalar()))))
}

/// The lines of a row-major tensor along one dimension.
struct Lines {
    n_outer: usize,
    len: usize,
    step: usize,
}

impl Lines {
    fn new(sizes: &[usize], dim: usize) -> Self {
        Lines {
            n_outer: sizes.iter().take(dim).product(),
            len: sizes.get(dim).copied().unwrap_or(1),
            step: sizes.iter().skip(dim + 1).product(),
        }
    }

    /// Where the line of this number starts in this tensor and, in one whose lines are of `other_len`, its counterpart.
    fn starts(&self, number: usize, other_len: usize) -> (usize, usize) {
        let (outer, inner) = (number / self.step, number % self.step);
        let at = |len: usize| outer * len * self.step + inner;
        (at(self.len), at(other_len))
    }
}

/// Is given the keys of a line, to do with them what it likes, and writes the positions of those it picks, in order.
type Pick<'a> = dyn Fn(&mut Sorter, &mut [u64], &mut [usize]) -> Result<()> + Sync + 'a;

/// Fills the values and indices of results whose lines along a dimension are picked from the lines of the input.
fn fill_picked(args: &Args<'_, Tensor>, dim: usize, results: &[Tensor], pick: &Pick<'_>) -> Result<()> {
    let base = args.tensor(0)?;
    // There may be more empty lines than anyone could go through.
    if results.iter().all(|it| it.numel() == 0) {
        return Ok(());
    }
    let lines = Lines::new(base.sizes(), dim);
    let keys = keys(args, base)?;
    let n_lines = lines.n_outer * lines.step;
    if n_lines == 0 {
        return Ok(());
    }
    let len = results[1].numel() / n_lines;
    if len == 0 {
        return Ok(());
    }
    // Line by line, which is not yet the order of the results.
    let mut picked = filled(0usize, results[1].numel())?;
    let n_part = GRAIN.div_ceil(lines.len.max(1));
    parallel::try_parts_mut(&mut picked, n_part * len, |first, picked| {
        let mut line = with_room(lines.len)?;
        let mut sorter = Sorter::default();
        for (number, picked) in (first / len..).zip(picked.chunks_exact_mut(len)) {
            let (start, _) = lines.starts(number, len);
            line.clear();
            line.extend((0..lines.len).map(|at| keys[start + at * lines.step]));
            pick(&mut sorter, &mut line, picked)?;
        }
        Ok(())
    })?;
    drop(keys);
    fill::<i64, _>(&results[1], |indices| {
        for (number, picked) in picked.chunks_exact(len).enumerate() {
            let (_, to) = lines.starts(number, len);
            picked.iter().enumerate().for_each(|(at, &it)| indices[to + at * lines.step] = it as i64);
        }
    });
    let base = base.contiguous()?;
    let offset = if base.numel() == 0 { 0 } else { base.offset() };
    with_bits!(base.dtype(), T => {
        let guard = base.storage().read();
        let elements = &bits::<T>(guard.bytes())[offset..];
        fill_bits::<T, _>(&results[0], |out| {
            for (number, picked) in picked.chunks_exact(len).enumerate() {
                let (start, to) = lines.starts(number, len);
                let places = picked.iter().enumerate();
                places.for_each(|(at, &it)| out[to + at * lines.step] = elements[start + it * lines.step]);
            }
        });
    });
    Ok(())
}

/// Keys with their places.
fn placed(keys: &[u64]) -> Result<Vec<(u64, usize)>> {
    collected(keys.iter().copied().zip(0..keys.len()))
}

/// Whether the key of the first one is less.
fn is_less(a: &(u64, usize), b: &(u64, usize)) -> bool {
    a.0 < b.0
}

/// Turns keys upside down, so that the largest comes first; elements with the same key stay in their order.
fn turn(keys: &mut [u64]) {
    keys.iter_mut().for_each(|it| *it = !*it);
}

fn sort(args: &Args<'_, Tensor>, results: &[Tensor], dim: usize) -> Result<()> {
    let descends = args.bool(dim + 1)?;
    let dim = normalize_dim(args, args.int(dim)?, args.tensor(0)?.rank())?;
    fill_picked(args, dim, results, &|sorter, keys, picked| {
        if descends {
            turn(keys);
        }
        picked.iter_mut().zip(sorter.places(keys)?).for_each(|(to, place)| *to = place);
        Ok(())
    })
}

fn topk(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let base = args.tensor(0)?;
    if matches!(base.dtype(), DType::Bool | DType::UInt16 | DType::UInt32) {
        return Err(Diagnostic::unsupported_dtype(base.dtype(), "topk"));
    }
    let k = args.int(1)? as usize;
    let dim = normalize_dim(args, args.int(2)?, base.rank())?;
    let (is_largest, is_sorted) = (args.bool(3)?, args.bool(4)?);
    fill_picked(args, dim, results, &|_, keys, picked| {
        if is_largest {
            turn(keys);
        }
        let mut queue = placed(keys)?;
        pick_first(&mut queue, k, is_sorted);
        picked.iter_mut().zip(&queue).for_each(|(to, it)| *to = it.1);
        Ok(())
    })
}

/// As `topk_impl_loop` of aten/src/ATen/native/TopKImpl.h: ties fall as they fall there.
fn pick_first(queue: &mut [(u64, usize)], k: usize, is_sorted: bool) {
    if k * 64 <= queue.len() {
        partial_sort(queue, k, &is_less);
        return;
    }
    nth_element(queue, k - 1, &is_less);
    if is_sorted {
        unstable_sort(&mut queue[..k - 1], &is_less);
    }
}

fn kthvalue(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let base = args.tensor(0)?;
    if base.dtype() == DType::Bool {
        return Err(Diagnostic::unsupported_dtype(base.dtype(), "kthvalue"));
    }
    let k = args.int(1)? as usize - 1;
    let dim = normalize_dim(args, args.int(2)?, base.rank())?;
    fill_picked(args, dim, results, &|_, keys, picked| {
        let mut items = placed(keys)?;
        quick_select(&mut items, k);
        picked[0] = items[k].1;
        Ok(())
    })
}

/// Hoare's selection as PyTorch has it (`quick_select_template` of aten/src/ATen/native/Sorting.cpp), so that ties fall
/// as they fall there.
fn quick_select(items: &mut [(u64, usize)], k: usize) {
    let (mut left, mut right) = (0, items.len() - 1);
    let is_greater = |items: &[(u64, usize)], a: usize, b: usize| items[a].0 > items[b].0;
    loop {
        if right <= left {
            return;
        }
        if right == left + 1 {
            if is_greater(items, left, right) {
                items.swap(left, right);
            }
            return;
        }
        items.swap(left + (right - left) / 2, left + 1);
        for (a, b) in [(left + 1, right), (left, right), (left + 1, left)] {
            if is_greater(items, a, b) {
                items.swap(a, b);
            }
        }
        let (mut i, mut j) = (left + 1, right);
        let pivot = items[left].0;
        loop {
            i += 1;
            while pivot > items[i].0 {
                i += 1;
            }
            j -= 1;
            while items[j].0 > pivot {
                j -= 1;
            }
            if j < i {
                break;
            }
            items.swap(i, j);
        }
        items.swap(left, j);
        if j <= k {
            left = i;
        }
        if j >= k {
            right = j - 1;
        }
    }
}

/// The position of the lower median: of the first NaN where there is one, unless NaNs are left out.
fn median_of(sorter: &mut Sorter, keys: &[u64], is_float: bool, skips_nan: bool) -> Result<usize> {
    let is_nan = |key: &u64| is_float && *key == NAN;
    let n_nan = keys.iter().filter(|it| is_nan(it)).count();
    if !skips_nan && n_nan > 0 {
        return Ok(keys.iter().position(is_nan).unwrap_or(0));
    }
    // Of equal elements, PyTorch counts the first ones first.
    sorter.nth(keys, (keys.len() - n_nan).saturating_sub(1) / 2)
}

fn refuse_bool(args: &Args<'_, Tensor>) -> Result<()> {
    match args.tensor(0)?.dtype() {
        DType::Bool => Err(Diagnostic::unsupported_dtype(DType::Bool, "median")),
        _ => Ok(()),
    }
}

fn median(args: &Args<'_, Tensor>, results: &[Tensor], skips_nan: bool) -> Result<()> {
    refuse_bool(args)?;
    let base = args.tensor(0)?;
    let dim = normalize_dim(args, args.int(1)?, base.rank())?;
    let is_float = base.dtype().is_float();
    fill_picked(args, dim, results, &|sorter, keys, picked| {
        picked[0] = median_of(sorter, keys, is_float, skips_nan)?;
        Ok(())
    })
}

fn whole_median(args: &Args<'_, Tensor>, results: &[Tensor], skips_nan: bool) -> Result<()> {
    let (base, result) = (args.tensor(0)?, &results[0]);
    if base.numel() == 0 {
        // PyTorch converts a NaN, which gives the smallest integers of 32 and 64 bits.
        let nothing = match base.dtype().kind() {
            DTypeKind::Float | DTypeKind::Complex => Scalar::Float(f64::NAN),
            DTypeKind::Bool => Scalar::Bool(true),
            DTypeKind::Int => Scalar::Int(i64::MIN),
        };
        return with_element!(result.dtype(), "median", T => {
            fill::<T, _>(result, |out| out.fill(if size_of::<T>() == 4 && !base.dtype().is_float() {
                T::from_scalar(Scalar::Int(i32::MIN as i64))
            } else {
                T::from_scalar(nothing)
            }));
            Ok(())
        });
    }
    refuse_bool(args)?;
    let keys = keys(args, base)?;
    let at = median_of(&mut Sorter::default(), &keys, base.dtype().is_float(), skips_nan)?;
    let base = base.contiguous()?;
    with_bits!(base.dtype(), T => {
        let guard = base.storage().read();
        fill_bits::<T, _>(result, |out| out[0] = bits::<T>(guard.bytes())[base.offset() + at]);
    });
    Ok(())
}

fn mode(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let base = args.tensor(0)?;
    let dim = normalize_dim(args, args.int(1)?, base.rank())?;
    let is_float = base.dtype().is_float();
    fill_picked(args, dim, results, &|_, keys, picked| {
        let mut items = placed(keys)?;
        unstable_sort(&mut items, &is_less);
        let (mut best, mut best_count, mut count) = (0, 0, 0);
        for (at, item) in items.iter().enumerate() {
            count += 1;
            // A NaN is not equal to another one.
            let goes_on = items.get(at + 1).is_some_and(|next| next.0 == item.0 && !(is_float && item.0 == NAN));
            if !goes_on {
                if count > best_count {
                    (best, best_count) = (item.1, count);
                }
                count = 0;
            }
        }
        picked[0] = best;
        Ok(())
    })
}
