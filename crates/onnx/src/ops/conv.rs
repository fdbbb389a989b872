//! Convolutions.

use super::Rows;
use crate::call::{Call, Results};
use crate::element::computed_in;
use crate::graph::{int, ints};
use tracefx_core::Result;

pub(super) const OPS: Rows = &[("aten.convolution.default", convolution)];

fn convolution(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, weight, bias) = (c.tensor("input")?, c.tensor("weight")?, c.opt_tensor("bias")?);
    let n = weight.rank() - 2;
    let (stride, padding) = (c.spatial("stride", n)?, c.spatial("padding", n)?);
    let (dilation, groups) = (c.spatial("dilation", n)?, c.int("groups")?);
    let transposed = c.bool("transposed")?;
    let op = if transposed { "ConvTranspose" } else { "Conv" };
    // Beginnings of all dimensions, then ends.
    let pads: Vec<i64> = padding.iter().chain(&padding).copied().collect();
    let mut attributes =
        vec![ints("strides", &stride), ints("pads", &pads), ints("dilations", &dilation), int("group", groups)];
    if transposed {
        attributes.push(ints("output_padding", &c.spatial("output_padding", n)?));
    }
    let (dtype, computed) = (x.x.dtype, computed_in(op, x.x.dtype));
    let g = c.g();
    let (wide, weight) = (g.cast(&x, computed)?, g.cast(&weight, computed)?);
    let bias = bias.map(|it| g.cast(&it, computed)).transpose()?;
    let result = g.node(op, &[Some(&wide), Some(&weight), bias.as_ref()], attributes, &[computed]).remove(0);
    Ok(g.cast(&result, dtype)?.into())
}
