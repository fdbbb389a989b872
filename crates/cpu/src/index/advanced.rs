//! Kernels that index with several tensors at once. Negative indices and bounds are [`gather`](super::gather)'s to check,
//! and an index by mask is left to the decomposition, which makes positions of it.

use crate::index::gather::{Wrap, indices, position};
use crate::numeric::dense::change;
use crate::numeric::dispatch::with_element;
use crate::numeric::number::Number;
use crate::numeric::strided_copy::{Axis, Offsets, copy, gather_places, updating, zip};
use tracefx_core::allocate::filled;
use tracefx_core::{DType, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

pub(super) const KERNELS: &[(&str, Kernel)] =
    &[("aten.index.Tensor", Kernel::Fill(index)), ("aten.index_put.default", updating!(index_put))];

/// What indices select of a tensor: its sizes and places with all indexed dimensions as one, in whose order the result
/// has them.
struct Selection {
    sizes: Vec<usize>,
    places: Offsets,
    /// The sizes that the indices broadcast to, which the one dimension stands for.
    broadcast: Vec<usize>,
    /// The position of that dimension.
    lead: usize,
}

impl Selection {
    /// # Errors
    /// `IndexOutOfRange` where an index is; `NotImplemented` for masks, which are decomposed.
    fn new(args: &Args<'_, Tensor>, base: &Tensor) -> Result<Self> {
        let given = args.opt_tensors(1)?;
        if given.iter().flatten().any(|it| matches!(it.dtype(), DType::Bool | DType::UInt8)) {
            return Err(args.unsupported("an index by mask is made of positions first"));
        }
        let mut broadcast: Vec<usize> = Vec::new();
        for index in given.iter().flatten() {
            let lead = index.rank().saturating_sub(broadcast.len());
            broadcast.splice(0..0, std::iter::repeat_n(1, lead));
            let skipped = broadcast.len() - index.rank();
            for (size, own) in broadcast[skipped..].iter_mut().zip(index.sizes()) {
                *size = if *size == 1 { *own } else { *size };
            }
        }
        let is_empty = (0..base.rank()).any(|dim| base.sizes()[dim] == 0) || broadcast.contains(&0);
        let mut at = filled(0usize, broadcast.iter().product())?;
        for (dim, index) in given.iter().enumerate() {
            let Some(index) = index.filter(|_| !is_empty) else { continue };
            let (size, stride) = (base.sizes()[dim], base.strides()[dim]);
            let mut strides = vec![0; broadcast.len()];
            let skipped = broadcast.len() - index.rank();
            for (own, (&size, &stride)) in index.sizes().iter().zip(index.strides()).enumerate() {
                strides[skipped + own] = if size == 1 { 0 } else { stride };
            }
            let spread = index.as_strided(&broadcast, &strides, index.offset())?;
            for (at, it) in at.iter_mut().zip(indices(&spread)?) {
                *at += position(it, dim, size, Wrap::Yes)? * stride;
            }
        }
        let is_indexed = |dim: usize| given.get(dim).is_some_and(Option::is_some);
        let first = (0..base.rank()).find(|&dim| is_indexed(dim)).unwrap_or(0);
        let is_adjacent = (first..first + given.iter().flatten().count()).all(is_indexed);
        let lead = if is_adjacent { first } else { 0 };
        let rest = || (0..base.rank()).filter(|&dim| !is_indexed(dim));
        let mut sizes: Vec<usize> = rest().map(|dim| base.sizes()[dim]).collect();
        let mut axes: Vec<Axis> = rest().map(|dim| Axis::Step(base.strides()[dim])).collect();
        sizes.insert(lead, at.len());
        axes.insert(lead, Axis::At(at));
        Ok(Selection { sizes, places: Offsets { start: base.offset(), axes }, broadcast, lead })
    }
}

fn index(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let base = args.tensor(0)?;
    let selection = Selection::new(args, base)?;
    let strides = tracefx_core::contiguous_strides(&selection.sizes);
    gather_places(base, &selection.places, &results[0].as_strided(&selection.sizes, &strides, 0)?);
    Ok(())
}

fn index_put(args: &Args<'_, Tensor>, target: &Tensor) -> Result<()> {
    let values = args.tensor(2)?;
    let selection = Selection::new(args, target)?;
    // The values stretched to all selected places, with the dimensions of the indices apart.
    let mut sizes = selection.sizes.clone();
    sizes.splice(selection.lead..=selection.lead, selection.broadcast.iter().copied());
    let skipped = sizes.len() - values.rank();
    let stride = |dim: usize| match dim.checked_sub(skipped) {
        Some(own) if values.sizes()[own] != 1 => values.strides()[own],
        Some(_) | None => 0,
    };
    let strides: Vec<usize> = (0..sizes.len()).map(stride).collect();
    let spread = values.as_strided(&sizes, &strides, values.offset())?.contiguous()?;
    let from = Offsets::new(spread.offset(), &tracefx_core::contiguous_strides(&selection.sizes));
    if !args.bool(3)? {
        copy(&selection.sizes, (&spread, &from), (target, &selection.places));
        return Ok(());
    }
    with_element!(target.dtype(), "index_put", T => {
        let guard = spread.storage().read();
        change::<T, _>(target, |out| {
            let add = |to: &mut T, from: T| *to = to.add(from);
            zip(&selection.sizes, (guard.elements::<T>(), &from), (out, &selection.places), add);
        });
        Ok(())
    })
}
