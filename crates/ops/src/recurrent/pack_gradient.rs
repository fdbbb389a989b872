//! Gradients of packed sequences: what packs and what pads take each other's gradients back. Their results have sizes that the data decides,
//! which are those of the argument here.

use crate::core::gradients::{Backward, Expr};
use tracefx_core::Result;

pub(crate) fn pack(it: &Backward<'_>) -> Result<Vec<Expr>> {
    let step_dim = usize::from(it.args.bool(2)?);
    let n_steps = &it.sizes(0)?[step_dim];
    let padded = [it.grad(), it.result(1), it.arg(2), 0.0.into(), n_steps.into()];
    Ok(vec![Expr::aten("_pad_packed_sequence", padded).reshape(it.sizes(0)?)])
}

pub(crate) fn unpack(it: &Backward<'_>) -> Result<Vec<Expr>> {
    Ok(vec![Expr::aten("_pack_padded_sequence", [it.grad(), it.result(1), it.arg(2)]).reshape(it.sizes(0)?)])
}
