//! The positions of elements that are not zero.

use crate::{Args, OpDef, Output, Tags};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[OpDef::new("aten::nonzero(Tensor self) -> Tensor", unknown)
    .doc("The positions of all elements that are not zero, one row for each.")
    .tags(Tags::CORE.with(Tags::DATA_DEPENDENT_SHAPE))];

fn unknown(_: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![Output::Unknown])
}
