//! Kernels that order elements along a dimension.
//!
//! All of them work on keys: 64-bit integers in the order of the elements, whatever the dtype is.

use crate::numeric::dense::{Dense, fill, fill_bits};
use crate::numeric::dispatch::{with_bits, with_element};
use crate::numeric::parallel::{self, GRAIN};
use crate::numeric::strided_copy::bits;
use crate::sort::introsort::{nth_element, partial_sort, sort as unstable_sort};
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

/// The places of numbers, the least first or the largest, as [`f64::total_cmp`] compares them, and equal ones in order. One sort for
/// all kernels that need no more than this: each kind of comparison is 16 kB of WebAssembly.
pub(crate) fn places_in_order(numbers: &[f64], is_descending: bool) -> Result<Vec<usize>> {
    let mut places = collected(0..numbers.len())?;
    // A stable sort takes memory of its own.
    places.sort_unstable_by(|a, b| {
        let [first, second] = if is_descending { [b, a] } else { [a, b] };
        numbers[*first].total_cmp(&numbers[*second]).then(a.cmp(b))
    });
    Ok(places)
}

/// The key of a NaN: it comes after everything else. No other float has it, and integers have no NaN.
pub(crate) const NAN: u64 = u64::MAX;

/// The elements in row-major order as keys. Equal elements have equal keys, so that both zeros are one.
pub(crate) fn keys(args: &Args<'_, Tensor>, tensor: &Tensor) -> Result<Vec<u64>> {
    const SIGN: u64 = 1 << 63;
    let key = |scalar: Scalar| match scalar {
        Scalar::Bool(it) => it as u64,
        Scalar::Int(it) => it as u64 ^ SIGN,
        Scalar::Float(it) if it.is_nan() => NAN,
        Scalar::Float(it) => {
            let bits = (it + 0.0).to_bits();
            if bits & SIGN == 0 { bits | SIGN } else { !bits }
        }
        Scalar::Complex(_) => 0,
    };
    if tensor.dtype() == DType::UInt64 || tensor.dtype().is_complex() {
        return Err(Diagnostic::unsupported_dtype(tensor.dtype(), &args.op.name));
    }
    let dense = Dense::new(tensor)?;
    with_element!(tensor.dtype(), &args.op.name, T => collected(dense.read::<T>().iter().map(|it| key(it.to_scalar()))))
}

/// The bits beside the key of an element of up to 32 bits in which its place in the line stands while it is sorted.
const N_PLACE_BITS: u32 = 29;

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

/// Fills the values and indices of results whose lines along a dimension are picked from the lines of the input:
/// `pick` is given the keys of a line and writes the positions, in order.
fn fill_picked(
    args: &Args<'_, Tensor>,
    dim: usize,
    results: &[Tensor],
    pick: impl Fn(&[u64], &mut [usize]) -> Result<()> + Sync,
) -> Result<()> {
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
        for (number, picked) in (first / len..).zip(picked.chunks_exact_mut(len)) {
            let (start, _) = lines.starts(number, len);
            line.clear();
            line.extend((0..lines.len).map(|at| keys[start + at * lines.step]));
            pick(&line, picked)?;
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

fn sort(args: &Args<'_, Tensor>, results: &[Tensor], dim: usize) -> Result<()> {
    let descends = args.bool(dim + 1)?;
    let base = args.tensor(0)?;
    let (is_float, is_narrow) = (base.dtype().is_float(), base.dtype().size() <= 4);
    let dim = normalize_dim(args, args.int(dim)?, base.rank())?;
    fill_picked(args, dim, results, |keys, picked| {
        // Upside down, the largest key comes first; elements with the same key stay in their order.
        let turned = |key: u64| if descends { !key } else { key };
        if is_narrow && keys.len() <= 1 << N_PLACE_BITS {
            let packed = keys.iter().zip(0..keys.len() as u64).map(|(&key, at)| {
                // The lower digits of a float32 are all the same, and so are the upper ones of an integer of 32 bits, which
                // is moved so that it is not negative.
                let key = if is_float { turned(key) >> N_PLACE_BITS } else { turned(key).wrapping_add(1 << 33) };
                key << N_PLACE_BITS | at
            });
            let mut packed: Vec<u64> = collected(packed)?;
            packed.sort_unstable();
            let places = packed.iter().map(|it| (it & ((1 << N_PLACE_BITS) - 1)) as usize);
            picked.iter_mut().zip(places).for_each(|(to, place)| *to = place);
            return Ok(());
        }
        let mut order: Vec<(u64, usize)> = collected(keys.iter().map(|&key| turned(key)).zip(0..keys.len()))?;
        order.sort_unstable();
        picked.iter_mut().zip(&order).for_each(|(to, it)| *to = it.1);
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
    fill_picked(args, dim, results, |keys, picked| {
        let mut queue = placed(keys)?;
        if is_largest {
            pick_first(&mut queue, k, is_sorted, &|a, b| a.0 > b.0);
        } else {
            pick_first(&mut queue, k, is_sorted, &|a, b| a.0 < b.0);
        }
        picked.iter_mut().zip(&queue).for_each(|(to, it)| *to = it.1);
        Ok(())
    })
}

/// As `topk_impl_loop` of aten/src/ATen/native/TopKImpl.h: ties fall as they fall there.
fn pick_first(
    queue: &mut [(u64, usize)],
    k: usize,
    is_sorted: bool,
    less: &impl Fn(&(u64, usize), &(u64, usize)) -> bool,
) {
    if k * 64 <= queue.len() {
        partial_sort(queue, k, less);
        return;
    }
    nth_element(queue, k - 1, less);
    if is_sorted {
        unstable_sort(&mut queue[..k - 1], less);
    }
}

fn kthvalue(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let base = args.tensor(0)?;
    if base.dtype() == DType::Bool {
        return Err(Diagnostic::unsupported_dtype(base.dtype(), "kthvalue"));
    }
    let k = args.int(1)? as usize - 1;
    let dim = normalize_dim(args, args.int(2)?, base.rank())?;
    fill_picked(args, dim, results, |keys, picked| {
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
fn median_of(keys: &[u64], is_float: bool, skips_nan: bool) -> Result<usize> {
    let is_nan = |key: &u64| is_float && *key == NAN;
    let n_nan = keys.iter().filter(|it| is_nan(it)).count();
    if !skips_nan && n_nan > 0 {
        return Ok(keys.iter().position(is_nan).unwrap_or(0));
    }
    let mut order: Vec<usize> = collected(0..keys.len())?;
    let nth = (keys.len() - n_nan).saturating_sub(1) / 2;
    // Of equal elements, PyTorch counts the first ones first.
    Ok(*order.select_nth_unstable_by_key(nth, |&at| (keys[at], at)).1)
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
    fill_picked(args, dim, results, |keys, picked| {
        picked[0] = median_of(keys, is_float, skips_nan)?;
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
    let at = median_of(&keys, base.dtype().is_float(), skips_nan)?;
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
    fill_picked(args, dim, results, |keys, picked| {
        let mut items = placed(keys)?;
        unstable_sort(&mut items, &|a, b| a.0 < b.0);
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
