//! Kernels that reorder elements along dimensions.

use crate::strided::{Axis, Places, gather_places};
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, normalize_dim};

pub(crate) const KERNELS: &[(&str, Kernel)] = &[("aten.flip.default", Kernel::Fill(flip))];

fn flip(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let base = args.tensor(0)?;
    let mut places = Places::of(base);
    for dim in args.ints(1)? {
        let dim = normalize_dim(args, dim, base.rank())?;
        if let Some(axis) = places.axes.get_mut(dim) {
            *axis = Axis::At((0..base.sizes()[dim]).rev().map(|at| at * base.strides()[dim]).collect());
        }
    }
    gather_places(base, &places, &results[0]);
    Ok(())
}
