//! Kernels that pick elements by position, and what an index is: which dtypes it has, whether it counts from the end, and
//! how one out of range is refused.

use crate::numeric::dense::{Dense, fill_bits};
use crate::numeric::dispatch::{with_bits, with_element};
use crate::numeric::map::{cast, store};
use crate::numeric::parallel;
use crate::numeric::strided_copy::{Axis, Offsets, bits, gather_places};
use crate::numeric::strided_iter::{StridedIter, StridedLayout};
use tracefx_core::allocate::{collected, copied, filled, try_collected};
use tracefx_core::{Code, DType, Diagnostic, Element, Result, Tensor, contiguous_strides};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, normalize_dim};

pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.embedding.default", Kernel::Overwrite(embedding)),
    ("aten.embedding_renorm.default", Kernel::Fill(embedding_renorm)),
    ("aten.gather.default", Kernel::Fill(gather)),
    ("aten.index_select.default", Kernel::Overwrite(index_select)),
    ("aten.take.default", Kernel::Fill(take)),
];

/// The numbers of an integer tensor, in row-major order.
pub(crate) fn indices(tensor: &Tensor) -> Result<Vec<i64>> {
    with_element!(tensor.dtype(), "an index", T => {
        collected(tensor.to_vec::<T>()?.into_iter().map(|it| it.to_scalar().to_i64()))
    })
}

/// Whether an index may count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrap {
    Yes,
    No,
}

/// An index along a dimension of this size as a position.
pub(crate) fn position(index: i64, dim: usize, size: usize, wrap: Wrap) -> Result<usize> {
    let at = if index < 0 && wrap == Wrap::Yes { index + size as i64 } else { index };
    usize::try_from(at).ok().filter(|&at| at < size).ok_or_else(|| {
        let what = format!("index {index} is out of bounds for dimension {dim} with size {size}");
        Diagnostic::new(Code::IndexOutOfRange, what)
    })
}

/// Fills a row-major result with the elements at these positions of a dimension: its sizes are those of the input, with those of the index in the place of the
/// dimension.
///
/// # Errors
/// `IndexOutOfRange`.
pub(crate) fn select(input: &Tensor, dim: usize, index: &Tensor, wrap: Wrap, result: &Tensor) -> Result<()> {
    // As `aten.index` does, which looks at no position where nothing is read.
    if wrap == Wrap::Yes && result.numel() == 0 {
        return Ok(());
    }
    let positions = indices(index)?;
    let mut elements = Offsets::of(input);
    let mut sizes = input.sizes().to_vec();
    // A tensor without dimensions is a row of one element.
    let (size, stride) = sizes.get(dim).map_or((1, 0), |size| (*size, input.strides()[dim]));
    let places = places(&positions, (dim, size), stride, wrap)?;
    if let Some((axis, size)) = elements.axes.get_mut(dim).zip(sizes.get_mut(dim)) {
        *size = places.len();
        *axis = Axis::At(places);
    }
    gather_places(input, &elements, &result.as_strided(&sizes, &contiguous_strides(&sizes), result.offset())?);
    Ok(())
}

/// The places of these positions of a dimension of this size.
fn places(index: &[i64], (dim, size): (usize, usize), stride: usize, wrap: Wrap) -> Result<Vec<usize>> {
    let place = |&it: &i64| match (wrap, usize::try_from(it)) {
        (_, Ok(at)) if at < size => Ok(at * stride),
        (Wrap::Yes, _) => Ok(position(it, dim, size, wrap)? * stride),
        (Wrap::No, _) => {
            let what = format!("index out of range in self: {it} is not in [0, {size})");
            Err(Diagnostic::new(Code::IndexOutOfRange, what))
        }
    };
    try_collected(index.iter().map(place))
}

fn index_select(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let input = args.tensor(0)?;
    let dim = normalize_dim(args, args.int(1)?, input.rank())?;
    select(input, dim, args.tensor(2)?, Wrap::No, &results[0])
}

fn embedding(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    select(args.tensor(0)?, 0, args.tensor(1)?, Wrap::No, &results[0])
}

fn embedding_renorm(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (table, largest, order) = (args.tensor(0)?, args.float(2)?, args.float(3)?);
    let rows = indices(args.tensor(1)?)?;
    let starts = places(&rows, (0, table.sizes()[0]), table.sizes()[1], Wrap::No)?;
    let mut numbers = copied(&Dense::new(&cast(table, DType::Float64)?)?.read::<f64>())?;
    let mut is_done = filled(false, table.sizes()[0])?;
    for (&row, start) in rows.iter().zip(starts) {
        if std::mem::replace(&mut is_done[row as usize], true) {
            continue;
        }
        let row = &mut numbers[start..start + table.sizes()[1]];
        let sizes = row.iter().map(|it| it.abs());
        let norm = match order {
            0.0 => sizes.filter(|it| *it != 0.0).count() as f64,
            f64::INFINITY => sizes.fold(0.0, f64::max),
            f64::NEG_INFINITY => sizes.fold(f64::INFINITY, f64::min),
            order => sizes.map(|it| it.powf(order)).sum::<f64>().powf(1.0 / order),
        };
        if norm > largest {
            row.iter_mut().for_each(|it| *it *= largest / (norm + 1e-7));
        }
    }
    store(&numbers, &results[0])
}

fn gather(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (base, index, result) = (args.tensor(0)?, args.tensor(2)?, &results[0]);
    let dim = normalize_dim(args, args.int(1)?, base.rank())?;
    let (size, stride) = if base.rank() == 0 { (1, 0) } else { (base.sizes()[dim], base.strides()[dim]) };
    if index.numel() == 0 {
        return Ok(());
    }
    // The part of the tensor that is as large as the index, seen from the first position of the dimension, row by row.
    let mut strides = base.strides().to_vec();
    strides.resize(index.rank(), 0);
    if let Some(stride) = strides.get_mut(dim) {
        *stride = 0;
    }
    let index = cast(index, DType::Int64)?.contiguous()?;
    let guard = index.storage().read();
    let index = &guard.elements::<i64>()[index.offset()..][..index.numel()];
    index.iter().try_for_each(|&it| position(it, dim, size, Wrap::No).map(drop))?;
    let starts = StridedIter::new(
        result.sizes(),
        &[StridedLayout { sizes: result.sizes(), strides: &strides, offset: base.offset() }],
    );
    let (row_len, step) = (starts.row_len(), starts.row_stride(0));
    with_bits!(base.dtype(), T => {
        let guard = base.storage().read();
        let from = bits::<T>(guard.bytes());
        fill_bits::<T, _>(result, |out| parallel::parts_mut(out, parallel::whole_rows(row_len), |at, part| {
            let rows = part.chunks_exact_mut(row_len).zip(index[at..].chunks_exact(row_len));
            for (row, (out, index)) in rows.enumerate() {
                let start = starts.row_start(at / row_len + row)[0];
                let picked = index.iter().enumerate().map(|(i, &it)| from[start + i * step + it as usize * stride]);
                out.iter_mut().zip(picked).for_each(|(out, it)| *out = it);
            }
        }));
    });
    Ok(())
}

/// Fills a row-major result with the elements at these positions of a storage.
fn pick(base: &Tensor, at: Vec<usize>, result: &Tensor) -> Result<()> {
    let line = result.as_strided(&[at.len()], &[1], 0)?;
    gather_places(base, &Offsets { start: 0, axes: vec![Axis::At(at)] }, &line);
    Ok(())
}

fn take(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (base, n) = (args.tensor(0)?, args.tensor(0)?.numel());
    let places: Vec<usize> = collected(base.offsets())?;
    let place = |it: i64| {
        let at = if it < 0 { it + n as i64 } else { it };
        usize::try_from(at).ok().and_then(|at| places.get(at).copied()).ok_or_else(|| {
            let what = format!("out of range: tried to access index {it} on a tensor of {n} elements.");
            Diagnostic::new(Code::IndexOutOfRange, what)
        })
    };
    pick(base, try_collected(indices(args.tensor(1)?)?.into_iter().map(place))?, &results[0])
}
