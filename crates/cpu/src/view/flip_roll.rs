//! Kernels that reverse and rotate elements along dimensions: copies by listed positions of
//! [`strided_copy`](crate::numeric::strided_copy).

use crate::numeric::strided_copy::{Axis, Offsets, copy, gather_places};
use tracefx_core::allocate::collected;
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, normalize_dim};

pub(super) const KERNELS: &[(&str, Kernel)] =
    &[("aten.flip.default", Kernel::Fill(flip)), ("aten.roll.default", Kernel::Fill(roll))];

fn flip(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let base = args.tensor(0)?;
    if base.numel() == 0 {
        return Ok(());
    }
    let mut places = Offsets::of(base);
    for dim in args.ints(1)? {
        let dim = normalize_dim(args, dim, base.rank())?;
        if let Some(axis) = places.axes.get_mut(dim) {
            *axis = Axis::At(collected((0..base.sizes()[dim]).rev().map(|at| at * base.strides()[dim]))?);
        }
    }
    gather_places(base, &places, &results[0]);
    Ok(())
}

fn roll(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (base, shifts, dims) = (args.tensor(0)?, args.ints(1)?, args.ints(2)?);
    if base.numel() == 0 {
        return Ok(());
    }
    if dims.is_empty() {
        // All elements as one line, in two parts.
        let (line, n) = (base.contiguous()?, base.numel());
        let split = shifts[0].rem_euclid(n as i64) as usize;
        for (from, to, n) in [(0, split, n - split), (n - split, 0, split)] {
            copy(&[n], (&line, &Offsets::new(line.offset() + from, &[1])), (&results[0], &Offsets::new(to, &[1])));
        }
        return Ok(());
    }
    let mut total = vec![0i64; base.rank()];
    for (&dim, &shift) in dims.iter().zip(&shifts) {
        let dim = normalize_dim(args, dim, base.rank())?;
        let size = base.sizes()[dim] as i64;
        total[dim] = (total[dim] + shift.rem_euclid(size)) % size;
    }
    let mut places = Offsets::of(base);
    for (dim, axis) in places.axes.iter_mut().enumerate().filter(|it| total[it.0] != 0) {
        let (size, stride) = (base.sizes()[dim], base.strides()[dim]);
        let shift = total[dim] as usize;
        *axis = Axis::At(collected((0..size).map(|at| (at + size - shift) % size * stride))?);
    }
    gather_places(base, &places, &results[0]);
    Ok(())
}
