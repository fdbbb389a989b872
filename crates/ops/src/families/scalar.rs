//! Arithmetic on sizes: the Python functions and `sym_size` operators of dynamic programs. They need no kernel, for
//! their results follow from the shapes.

use crate::{Args, OpDef, Output, Value, normalize_dim};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] =
    &[OpDef::new("aten::sym_size.int(Tensor self, int dim) -> SymInt", sym_size).doc("The size of one dimension.")];

fn sym_size(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let sizes = &args.tensor(0)?.sizes;
    let dim = normalize_dim(args, args.int(1)?, sizes.len())?;
    let size = sizes.get(dim).ok_or_else(|| args.bad_shape("a 0-d tensor has no sizes"))?;
    Ok(vec![Output::Value(Value::Int(size.clone()))])
}
