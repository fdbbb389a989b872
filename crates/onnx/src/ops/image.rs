//! Images: sizes and grids.

use super::Rows;
use crate::call::{Call, Results, unsupported};
use crate::graph::{Dim, int, text};
use tracefx_core::Result;
use tracefx_ops::Value;

pub(super) const OPS: Rows = &[
    ("aten._upsample_bilinear2d_aa.default", antialiased),
    ("aten.grid_sampler_2d.default", grid_sampler),
    ("aten.upsample_bilinear2d.vec", |c| resized(c, true)),
    ("aten.upsample_nearest2d.vec", |c| resized(c, false)),
];

/// A resize, by sizes or by factors. Factors are what places are computed by, where PyTorch is given those.
fn resized(c: &mut Call<'_, '_>, linear: bool) -> Result<Results> {
    let x = c.tensor("input")?;
    let corners = linear && c.bool("align_corners")?;
    let computed = crate::element::computed_in("Resize", x.x.dtype);
    let wide = c.g().cast(&x, computed)?;
    let mut attributes = vec![text("mode", if linear { "linear" } else { "nearest" })];
    attributes.push(text(
        "coordinate_transformation_mode",
        match (linear, corners) {
            (false, _) => "asymmetric",
            (true, true) => "align_corners",
            (true, false) => "half_pixel",
        },
    ));
    if !linear {
        attributes.push(text("nearest_mode", "floor"));
    }
    let result = match c.arg("scale_factors")? {
        Value::List(factors) => {
            let factors = factors.iter().filter_map(Value::as_scalar).map(|it| it.to_f64() as f32);
            let factors: Vec<f32> = [1.0, 1.0].into_iter().chain(factors).collect();
            let factors = c.g().constant(&tracefx_core::Tensor::from_slice(&factors, &[factors.len()])?)?;
            c.g().node("Resize", &[Some(&wide), None, Some(&factors)], attributes, &[computed]).remove(0)
        }
        _ => {
            let mut sizes: Vec<Dim> = vec![c.size_of(&x, 0), c.size_of(&x, 1)];
            sizes.extend(c.dims("output_size")?);
            let sizes = c.g().dims(&sizes)?;
            c.g().node("Resize", &[Some(&wide), None, None, Some(&sizes)], attributes, &[computed]).remove(0)
        }
    };
    Ok(c.g().cast(&result, x.x.dtype)?.into())
}

/// The sizes say the scale, and factors another one, where PyTorch is given those.
fn antialiased(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    if c.opt_float("scales_h")?.is_some() || c.opt_float("scales_w")?.is_some() {
        return Err(unsupported("an antialiased resize by factors has no translation"));
    }
    let corners = c.bool("align_corners")?;
    let computed = crate::element::computed_in("Resize", x.x.dtype);
    let wide = c.g().cast(&x, computed)?;
    let mut sizes: Vec<Dim> = vec![c.size_of(&x, 0), c.size_of(&x, 1)];
    sizes.extend(c.dims("output_size")?);
    let sizes = c.g().dims(&sizes)?;
    let mode = if corners { "align_corners" } else { "half_pixel" };
    let attributes = vec![
        text("mode", "linear"),
        text("coordinate_transformation_mode", mode),
        int("antialias", 1),
        int("exclude_outside", 1),
    ];
    let result = c.g().node("Resize", &[Some(&wide), None, None, Some(&sizes)], attributes, &[computed]).remove(0);
    Ok(c.g().cast(&result, x.x.dtype)?.into())
}

fn grid_sampler(c: &mut Call<'_, '_>) -> Result<Results> {
    let (x, grid) = (c.tensor("input")?, c.tensor("grid")?);
    let of = |names: &[&'static str], at: i64| names.get(at as usize).copied();
    let mode = of(&["linear", "nearest", "cubic"], c.int("interpolation_mode")?);
    let padding = of(&["zeros", "border", "reflection"], c.int("padding_mode")?);
    let (Some(mode), Some(padding)) = (mode, padding) else {
        return Err(unsupported("this mode of a grid sampler has no translation"));
    };
    let corners = c.bool("align_corners")?;
    let attributes = vec![text("mode", mode), text("padding_mode", padding), int("align_corners", corners.into())];
    Ok(c.g().math_with("GridSample", &[&x, &grid], attributes)?.into())
}
