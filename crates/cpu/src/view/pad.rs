//! Kernels that put a border around a tensor, and their gradients. Each but the constant one looks its border up in the tensor.

use crate::numeric::dense::fill;
use crate::numeric::dispatch::with_element;
use crate::numeric::number::Number;
use crate::numeric::strided_copy::{Axis, Offsets, copy, gather_places, zip};
use tracefx_core::allocate::collected;
use tracefx_core::{Diagnostic, Element, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten._pad_circular.default", Kernel::Fill(|args, results| bordered(args, results, circular))),
    ("aten.constant_pad_nd.default", Kernel::Fill(constant)),
    ("aten.reflection_pad1d.default", Kernel::Fill(|args, results| bordered(args, results, reflected))),
    ("aten.reflection_pad2d.default", Kernel::Fill(|args, results| bordered(args, results, reflected))),
    ("aten.reflection_pad3d.default", Kernel::Fill(|args, results| bordered(args, results, reflected))),
    ("aten.replication_pad1d.default", Kernel::Fill(|args, results| bordered(args, results, replicated))),
    ("aten.replication_pad2d.default", Kernel::Fill(|args, results| bordered(args, results, replicated))),
    ("aten.replication_pad3d.default", Kernel::Fill(|args, results| bordered(args, results, replicated))),
    ("aten.reflection_pad1d_backward.default", Kernel::Fill(|args, results| folded(args, results, reflected))),
    ("aten.reflection_pad2d_backward.default", Kernel::Fill(|args, results| folded(args, results, reflected))),
    ("aten.reflection_pad3d_backward.default", Kernel::Fill(|args, results| folded(args, results, reflected))),
    ("aten.replication_pad1d_backward.default", Kernel::Fill(|args, results| folded(args, results, replicated))),
    ("aten.replication_pad2d_backward.default", Kernel::Fill(|args, results| folded(args, results, replicated))),
    ("aten.replication_pad3d_backward.default", Kernel::Fill(|args, results| folded(args, results, replicated))),
];

/// The width of the border before each dimension, from the argument at this position.
fn widths_before(args: &Args<'_, Tensor>, index: usize, rank: usize) -> Result<Vec<i64>> {
    let pad = args.ints(index)?;
    Ok((0..rank).map(|dim| pad.get(2 * (rank - 1 - dim)).copied().unwrap_or(0)).collect())
}

fn constant(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (base, result, value) = (args.tensor(0)?, &results[0], args.scalar(2)?);
    with_element!(result.dtype(), T => {
        let value = T::from_scalar(value);
        fill::<T, _>(result, |out| out.fill(value));
    }, else if value.to_f64() != 0.0 {
        return Err(Diagnostic::unsupported_dtype(result.dtype(), "constant_pad_nd"));
    });
    // What is left of the tensor is where it and the result overlap.
    let (mut sizes, mut from, mut to) = (Vec::new(), base.offset(), 0);
    for (dim, before) in widths_before(args, 1, base.rank())?.into_iter().enumerate() {
        let (size, result_size) = (base.sizes()[dim] as i64, result.sizes()[dim] as i64);
        let (start, end) = ((-before).max(0), size.min(result_size - before));
        sizes.push((end - start).max(0) as usize);
        from += start as usize * base.strides()[dim];
        to += before.max(0) as usize * result.strides()[dim];
    }
    let (from, to) = (Offsets::new(from, base.strides()), Offsets::new(to, result.strides()));
    copy(&sizes, (base, &from), (result, &to));
    Ok(())
}

/// A position outside of a dimension of this size, mirrored at the ends, which are not repeated.
fn reflected(at: i64, size: i64) -> i64 {
    if at < 0 {
        -at
    } else if at >= size {
        2 * (size - 1) - at
    } else {
        at
    }
}

fn replicated(at: i64, size: i64) -> i64 {
    at.clamp(0, size - 1)
}

fn circular(at: i64, size: i64) -> i64 {
    at.rem_euclid(size)
}

fn bordered(args: &Args<'_, Tensor>, results: &[Tensor], inside: fn(i64, i64) -> i64) -> Result<()> {
    let (base, result) = (args.tensor(0)?, &results[0]);
    if result.numel() == 0 {
        return Ok(());
    }
    let before = widths_before(args, 1, base.rank())?;
    gather_places(base, &places(base, result.sizes(), &before, inside)?, result);
    Ok(())
}

/// The places in a tensor that a bordered one of these sizes shows.
fn places(base: &Tensor, sizes: &[usize], before: &[i64], inside: fn(i64, i64) -> i64) -> Result<Offsets> {
    let axis = |(dim, &before): (usize, &i64)| {
        let (size, n) = (base.sizes()[dim] as i64, sizes[dim] as i64);
        if before == 0 && size == n {
            return Ok(Axis::Step(base.strides()[dim]));
        }
        let place = |at: i64| inside(at - before, size) as usize * base.strides()[dim];
        Ok(Axis::At(collected((0..n).map(place))?))
    };
    Ok(Offsets { start: base.offset(), axes: before.iter().enumerate().map(axis).collect::<Result<_>>()? })
}

/// Adds the gradient of a bordered tensor up where its elements are from.
fn folded(args: &Args<'_, Tensor>, results: &[Tensor], inside: fn(i64, i64) -> i64) -> Result<()> {
    let (grad, result) = (args.tensor(0)?, &results[0]);
    let before = widths_before(args, 2, grad.rank())?;
    let to = places(result, grad.sizes(), &before, inside)?;
    with_element!(grad.dtype(), &args.op.name, T => {
        let guard = grad.storage().read();
        let from = (guard.elements::<T>(), &Offsets::of(grad));
        fill::<T, _>(result, |out| zip(grad.sizes(), from, (out, &to), |to, from| *to = to.add(from)));
        Ok(())
    })
}
