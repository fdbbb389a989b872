//! Copies for what could not be a view. Whether it could is for the shape rule to say.

use crate::numeric::strided_copy::{Offsets, gather_places};
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

pub(super) const KERNELS: &[(&str, Kernel)] = &[("aten.reshape.default", Kernel::Fill(reshape))];

fn reshape(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let base = args.tensor(0)?;
    let flat = results[0].as_strided(base.sizes(), &tracefx_core::contiguous_strides(base.sizes()), 0)?;
    gather_places(base, &Offsets::of(base), &flat);
    Ok(())
}
