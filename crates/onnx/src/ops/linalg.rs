//! Linear algebra: ONNX has determinants, and no factorisations.

use super::Rows;
use crate::call::{Call, Results, unsupported};
use tracefx_core::Result;

pub(super) const OPS: Rows = &[("aten._linalg_det.default", det)];

fn det(c: &mut Call<'_, '_>) -> Result<Results> {
    if c.used[1] || c.used[2] {
        return Err(unsupported("ONNX gives determinants without their factors"));
    }
    let x = c.tensor("A")?.x;
    Ok(Results(vec![Some(c.g().math("Det", &[&x])?), None, None]))
}
