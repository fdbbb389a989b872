//! What shape rules are asked with: calls on tensors, without the data.

use tracefx_core::{Diagnostic, Result, Tensor};
use tracefx_ir::TensorMeta;
use tracefx_ops::Args;

/// What is known of the arguments of a call without their data.
pub(crate) fn without_data<'a>(args: &Args<'a, Tensor>) -> Result<Args<'a, TensorMeta>> {
    let metas = args.values.iter().map(|it| it.try_map(&mut |it| Ok::<_, Diagnostic>(TensorMeta::of(it))));
    Ok(Args::new(args.op, metas.collect::<Result<_>>()?))
}
