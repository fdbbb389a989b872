//! Kernels that write, add or otherwise combine elements where indices say, in the order of the indices. What one is and
//! how it is checked is for [`gather`](super::gather) to say.

use crate::index::gather::{Wrap, indices, position};
use crate::numeric::dense::{change, change_bits, fill_bits};
use crate::numeric::dispatch::{with_bits, with_element};
use crate::numeric::map::cast;
use crate::numeric::number::Number;
use crate::numeric::strided_copy::{Axis, Offsets, bits, copy, copy_first, gather_places, updating, zip};
use crate::sort::sorting::{NAN, keys};
use tracefx_core::allocate::{collected, filled, try_collected, with_room};
use tracefx_core::{Code, DType, Diagnostic, Element, Result, Tensor, contiguous_strides};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, normalize_dim};

pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.index_add.default", updating!(index_add)),
    ("aten.index_copy.default", updating!(index_copy)),
    ("aten.index_fill.int_Scalar", updating!(index_fill)),
    ("aten.index_fill.int_Tensor", updating!(index_fill)),
    ("aten.index_reduce.default", Kernel::Fill(index_reduce)),
    ("aten.put.default", Kernel::Fill(put)),
    ("aten.scatter.reduce", Kernel::Fill(|args, results| scatter_new(args, results, named(args.str(4)?)))),
    ("aten.scatter.src", updating!(|args, target| scatter(args, target, None))),
    ("aten.scatter.value", updating!(|args, target| scatter(args, target, None))),
    ("aten.scatter.value_reduce", Kernel::Fill(|args, results| scatter_new(args, results, named(args.str(4)?)))),
    ("aten.scatter_add.default", updating!(|args, target| scatter(args, target, Some(Reduce::Sum)))),
    ("aten.scatter_reduce.two", Kernel::Fill(|args, results| scatter_new(args, results, named(args.str(4)?)))),
];

/// How elements that meet in one place are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduce {
    Sum,
    Product,
    Mean,
    Largest,
    Smallest,
}

fn named(reduce: &str) -> Option<Reduce> {
    Some(match reduce {
        "sum" | "add" => Reduce::Sum,
        "prod" | "multiply" => Reduce::Product,
        "mean" => Reduce::Mean,
        "amax" => Reduce::Largest,
        "amin" => Reduce::Smallest,
        _ => return None,
    })
}

/// Where each element goes in a result: along one dimension to `index`, of which there is one for each
/// element, and else to its own position. A 0-d tensor counts as having one dimension.
fn targets(result: &Tensor, sizes: &[usize], dim: usize, index: &[i64]) -> Result<Vec<usize>> {
    let strides = result.strides();
    let (size, stride) = (result.sizes().get(dim).copied().unwrap_or(1), strides.get(dim).copied().unwrap_or(1));
    let (row_len, step) = match sizes.last() {
        Some(&it) => (it, if dim + 1 == sizes.len() { 0 } else { strides[sizes.len() - 1] }),
        None => (1, 0),
    };
    let lead = sizes.len().saturating_sub(1);
    let mut at = vec![0usize; lead];
    let mut start = result.offset();
    let mut res = with_room(index.len())?;
    for row in index.chunks(row_len.max(1)) {
        for (column, &it) in row.iter().enumerate() {
            res.push(start + column * step + position(it, dim, size, Wrap::No)? * stride);
        }
        for outer in (0..lead).rev() {
            let stride = if outer == dim { 0 } else { strides[outer] };
            at[outer] += 1;
            start += stride;
            if at[outer] < sizes[outer] {
                break;
            }
            start -= stride * sizes[outer];
            at[outer] = 0;
        }
    }
    Ok(res)
}

fn scatter_new(args: &Args<'_, Tensor>, results: &[Tensor], reduce: Option<Reduce>) -> Result<()> {
    copy_first(args, &results[0])?;
    scatter(args, &results[0], reduce)
}

/// Writes to a tensor of any strides; means and extremes to one that is row-major and begins its storage.
fn scatter(args: &Args<'_, Tensor>, result: &Tensor, reduce: Option<Reduce>) -> Result<()> {
    let index = args.tensor(2)?;
    let dim = normalize_dim(args, args.int(1)?, result.rank())?;
    if index.numel() == 0 {
        return Ok(());
    }
    let targets = targets(result, index.sizes(), dim, &indices(index)?)?;
    // Of the source only the part counts that the index covers.
    let source = match args.scalar(3) {
        Ok(value) => Tensor::full(result.dtype(), index.sizes(), value)?,
        Err(_) => {
            let source = args.tensor(3)?;
            let is_single = source.rank() != index.rank();
            let strides = if is_single { contiguous_strides(index.sizes()) } else { source.strides().into() };
            source.as_strided(index.sizes(), &strides, source.offset())?
        }
    };
    // Only `scatter_reduce` has the choice to leave out what was there.
    let includes_self = args.values.len() < 6 || args.bool(5)?;
    write(args, result, &targets, &source.contiguous()?, reduce, includes_self)
}

fn index_reduce(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (base, source, result) = (args.tensor(0)?, args.tensor(3)?, &results[0]);
    let dim = normalize_dim(args, args.int(1)?, base.rank())?;
    gather_places(base, &Offsets::of(base), result);
    if source.numel() == 0 {
        return Ok(());
    }
    let index = indices(args.tensor(2)?)?;
    let step: usize = source.sizes().iter().skip(dim + 1).product();
    let spread: Vec<i64> = collected((0..source.numel()).map(|at| index[at / step % index.len()]))?;
    let targets = targets(result, source.sizes(), dim, &spread)?;
    write(args, result, &targets, &source.contiguous()?, named(args.str(4)?), args.bool(5)?)
}

/// Combines the elements of a contiguous source with those at the targets of the result.
fn write(
    args: &Args<'_, Tensor>,
    result: &Tensor,
    targets: &[usize],
    source: &Tensor,
    reduce: Option<Reduce>,
    includes_self: bool,
) -> Result<()> {
    let (guard, offset) = (source.storage().read(), source.offset());
    let Some(reduce) = reduce else {
        with_bits!(result.dtype(), T => {
            let from = &bits::<T>(guard.bytes())[offset..];
            change_bits::<T, _>(result, |out| targets.iter().zip(from).for_each(|(&at, &it)| out[at] = it));
        });
        return Ok(());
    };
    if let Reduce::Largest | Reduce::Smallest = reduce {
        return write_extremes(args, result, targets, source, reduce == Reduce::Largest, includes_self);
    }
    if reduce == Reduce::Mean && result.dtype() == DType::Bool {
        return Err(Diagnostic::unsupported_dtype(DType::Bool, "a mean"));
    }
    with_element!(result.dtype(), "scatter", T => {
        let from = &guard.elements::<T>()[offset..];
        let n_counted = if reduce == Reduce::Mean { result.numel() } else { 0 };
        let mut counts = filled(includes_self as u32, n_counted)?;
        change::<T, _>(result, |out| {
            if !includes_self {
                let nothing = if reduce == Reduce::Product { T::ONE } else { T::ZERO };
                targets.iter().for_each(|&at| out[at] = nothing);
            }
            for (&at, &it) in targets.iter().zip(from) {
                out[at] = if reduce == Reduce::Product { out[at].mul(it) } else { out[at].add(it) };
            }
            if reduce == Reduce::Mean {
                targets.iter().for_each(|&at| counts[at] += 1);
                out.iter_mut().zip(counts).filter(|it| it.1 > 1).for_each(|(out, n)| *out = out.div_count(n));
            }
        });
        Ok(())
    })
}

/// The largest or smallest of what meets; a NaN is both.
fn write_extremes(
    args: &Args<'_, Tensor>,
    result: &Tensor,
    targets: &[usize],
    source: &Tensor,
    is_largest: bool,
    includes_self: bool,
) -> Result<()> {
    let is_float = result.dtype().is_float();
    // Upside down, the smallest key is the best one too, with NaN before all.
    let rank = |key: u64| match key {
        NAN if is_float => u64::MAX,
        key if is_largest => key,
        key => !key,
    };
    let mut best: Vec<Option<u64>> = collected(keys(args, result)?.into_iter().map(|it| Some(rank(it))))?;
    if !includes_self {
        targets.iter().for_each(|&at| best[at] = None);
    }
    let mut ranks = keys(args, source)?;
    ranks.iter_mut().for_each(|it| *it = rank(*it));
    let (guard, offset) = (source.storage().read(), source.offset());
    with_bits!(result.dtype(), T => {
        let from = &bits::<T>(guard.bytes())[offset..];
        fill_bits::<T, _>(result, |out| {
            for ((&at, &rank), &it) in targets.iter().zip(&ranks).zip(from) {
                if best[at].is_none_or(|best| rank > best) {
                    (best[at], out[at]) = (Some(rank), it);
                }
            }
        });
    });
    Ok(())
}

/// The places of the slices of a result that an index vector names.
fn slices(result: &Tensor, dim: usize, index: &Tensor, wrap: Wrap) -> Result<(Vec<usize>, Offsets)> {
    let mut places = Offsets::of(result);
    let mut sizes = result.sizes().to_vec();
    let index = indices(index)?;
    let (size, stride) = (sizes.get(dim).copied().unwrap_or(1), result.strides().get(dim).copied().unwrap_or(1));
    let at = try_collected(index.iter().map(|&it| Ok(position(it, dim, size, wrap)? * stride)))?;
    if let (Some(axis), Some(size)) = (places.axes.get_mut(dim), sizes.get_mut(dim)) {
        *size = at.len();
        *axis = Axis::At(at);
    } else if at.is_empty() {
        sizes.push(0);
        places.axes.push(Axis::Step(1));
    }
    Ok((sizes, places))
}

fn index_add(args: &Args<'_, Tensor>, result: &Tensor) -> Result<()> {
    let (source, alpha) = (args.tensor(3)?, args.scalar(4)?);
    let dim = normalize_dim(args, args.int(1)?, result.rank())?;
    let (sizes, places) = slices(result, dim, args.tensor(2)?, Wrap::No)?;
    with_element!(result.dtype(), "index_add", T => {
        let (guard, alpha) = (source.storage().read(), T::from_scalar(alpha));
        change::<T, _>(result, |out| {
            let add = |to: &mut T, from: T| *to = to.add(from.mul(alpha));
            zip(&sizes, (guard.elements::<T>(), &Offsets::of(source)), (out, &places), add);
        });
        Ok(())
    })
}

fn index_copy(args: &Args<'_, Tensor>, result: &Tensor) -> Result<()> {
    let source = args.tensor(3)?;
    let dim = normalize_dim(args, args.int(1)?, result.rank())?;
    let (sizes, places) = slices(result, dim, args.tensor(2)?, Wrap::No)?;
    copy(&sizes, (source, &Offsets::of(source)), (result, &places));
    Ok(())
}

fn index_fill(args: &Args<'_, Tensor>, result: &Tensor) -> Result<()> {
    let dim = normalize_dim(args, args.int(1)?, result.rank())?;
    let value = match args.scalar(3) {
        Ok(value) => Tensor::full(result.dtype(), &[], value)?,
        Err(_) => cast(args.tensor(3)?, result.dtype())?,
    };
    let (sizes, places) = slices(result, dim, args.tensor(2)?, Wrap::Yes)?;
    let everywhere = Offsets::new(value.offset(), &vec![0; sizes.len()]);
    copy(&sizes, (&value, &everywhere), (result, &places));
    Ok(())
}

fn put(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (base, source, result) = (args.tensor(0)?, args.tensor(2)?, &results[0]);
    gather_places(base, &Offsets::of(base), result);
    let n = result.numel();
    let target = |it: i64| {
        let at = if it < 0 { it + n as i64 } else { it };
        usize::try_from(at).ok().filter(|&at| at < n).ok_or_else(|| {
            let what = format!("out of range: tried to access index {it} on a tensor of {n} elements.");
            Diagnostic::new(Code::IndexOutOfRange, what)
        })
    };
    let targets = try_collected(indices(args.tensor(1)?)?.into_iter().map(target))?;
    let reduce = args.bool(3)?.then_some(Reduce::Sum);
    write(args, result, &targets, &source.contiguous()?, reduce, true)
}
