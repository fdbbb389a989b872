//! The same elements in another order along dimensions.

use super::view::{normalize_dims, repeated};
use crate::elementwise::laid_out;
use crate::{Args, OpDef, Output, Tags};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[OpDef::new("aten::flip(Tensor self, int[] dims) -> Tensor", flip)
    .doc("Dimensions the other way round.")
    .tags(Tags::CORE)];

fn flip(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let dims = normalize_dims(args, &args.ints(1)?, base.sizes.len())?;
    if (1..dims.len()).any(|at| dims[..at].contains(&dims[at])) {
        return Err(args.invalid(format!("dim {} appears multiple times in the list of dims", repeated(&dims))));
    }
    Ok(vec![Output::Tensor(laid_out(base.dtype, base.sizes.clone(), &[base]))])
}
