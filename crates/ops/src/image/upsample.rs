//! Resizing of signals, images and volumes. The operators named `.default` have kernels; those named `.vec` take the new
//! sizes or the factors, and are made of them.

use crate::core::decompositions::{Call, size_list};
use crate::core::memory_format::in_format_of;
use crate::image::decompose;
use crate::image::gradient;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

const NEAREST: &str = "Each element is the one nearest to its place in the input, rounding down.";
const NEAREST_EXACT: &str = "Each element is the one whose centre is nearest to its place in the input.";
const LINEAR: &str = "Each element is interpolated linearly between its neighbours in the input.";
const CUBIC: &str = "Each element is interpolated by cubic polynomials.";
const ANTIALIAS: &str =
    "Each element is a mean of the input around its place, weighted by a filter as wide as the step.";

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor", resize)
        .decompose(decompose::nearest)
        .vjp(gradient::nearest1d)
        .doc(NEAREST),
    OpDef::new(
        "aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? \
             scales_w=None) -> Tensor",
        resize,
    )
    .decompose(decompose::nearest)
    .vjp(gradient::nearest2d)
    .doc(NEAREST),
    OpDef::new(
        "aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? \
             scales_h=None, float? scales_w=None) -> Tensor",
        resize,
    )
    .decompose(decompose::nearest)
    .vjp(gradient::nearest3d)
    .doc(NEAREST),
    OpDef::new(
        "aten::_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
        resize,
    )
    .decompose(decompose::nearest_exact)
    .vjp(gradient::nearest_exact1d)
    .doc(NEAREST_EXACT),
    OpDef::new(
        "aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? \
             scales_w=None) -> Tensor",
        resize,
    )
    .decompose(decompose::nearest_exact)
    .vjp(gradient::nearest_exact2d)
    .doc(NEAREST_EXACT),
    OpDef::new(
        "aten::_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? \
             scales_h=None, float? scales_w=None) -> Tensor",
        resize,
    )
    .decompose(decompose::nearest_exact)
    .vjp(gradient::nearest_exact3d)
    .doc(NEAREST_EXACT),
    OpDef::new(
        "aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
        resize,
    )
    .decompose(decompose::linear)
    .vjp(gradient::linear1d)
    .doc(LINEAR)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? \
             scales_h=None, float? scales_w=None) -> Tensor",
        resize,
    )
    .vjp(gradient::bilinear2d)
    .doc(LINEAR)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? \
             scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        resize,
    )
    .decompose(decompose::linear)
    .vjp(gradient::trilinear3d)
    .doc(LINEAR)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, \
             float? scales_w=None) -> Tensor",
        resize,
    )
    .decompose(decompose::bicubic)
    .vjp(gradient::bicubic2d)
    .doc(CUBIC)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? \
             scales_h=None, float? scales_w=None) -> Tensor",
        resize,
    )
    .vjp(gradient::bilinear2d_aa)
    .doc(ANTIALIAS)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? \
             scales_h=None, float? scales_w=None) -> Tensor",
        resize,
    )
    .vjp(gradient::bicubic2d_aa)
    .doc(ANTIALIAS)
    .tolerance(Tol::Default),
    OpDef::composite(
        "aten::upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .doc(NEAREST)
    .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .tags(Tags::CORE)
    .doc(NEAREST)
    .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .doc(NEAREST)
    .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .doc(NEAREST_EXACT)
    .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .doc(NEAREST_EXACT)
    .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .doc(NEAREST_EXACT)
    .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? \
             scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .doc(LINEAR),
    OpDef::composite(
        "aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? \
             scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .tags(Tags::CORE)
    .doc(LINEAR),
    OpDef::composite(
        "aten::upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? \
             scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .doc(LINEAR),
    OpDef::composite(
        "aten::upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? \
             scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .doc(CUBIC),
    OpDef::composite(
        "aten::_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? \
             scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .doc(ANTIALIAS),
    OpDef::composite(
        "aten::_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? \
             scale_factors) -> Tensor",
        by_size_or_factors,
    )
    .doc(ANTIALIAS),
];

fn resize(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (input, size) = (args.tensor(0)?, args.sym_ints(1)?);
    let n_dims = size.len();
    // One factor per dimension comes last in the schema.
    let n_factors = args.op.schema.args.iter().filter(|it| it.name.starts_with("scales")).count();
    if n_dims != n_factors {
        return Err(args.bad_shape(format!("It is expected output_size equals to {n_factors}, but got size {n_dims}")));
    }
    if input.sizes.len() != n_dims + 2 {
        let (expected, got) = (n_dims + 2, input.sizes.len());
        return Err(args.bad_shape(format!("It is expected input_size equals to {expected}, but got size {got}")));
    }
    let is_empty = |it: &SymInt| it.as_int().is_some_and(|it| it <= 0);
    if input.sizes[1..].iter().any(is_empty) || size.iter().any(is_empty) {
        let show = |it: &[SymInt]| it.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ");
        return Err(args.bad_shape(format!(
            "Input and output sizes should be greater than 0, but got input ({}) output ({})",
            show(&input.sizes[1..]),
            show(&size)
        )));
    }
    let sizes = [&input.sizes[..2], &size].concat();
    Ok(vec![Output::Tensor(in_format_of(input, input.dtype, sizes))])
}

fn by_size_or_factors(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let input = *args.tensor(0)?;
    let sizes = cx.meta(input).sizes.get(2..).unwrap_or(&[]).to_vec();
    let factors_at = args.values.len() - 1;
    let factors = args.opt_floats(factors_at)?;
    let size = match (args.is_none(1), &factors) {
        (false, None) => args.sym_ints(1)?,
        (true, Some(factors)) if factors.len() == sizes.len() => {
            sizes.iter().zip(factors).map(|(size, &factor)| scaled(args, size, factor)).collect::<Result<_>>()?
        }
        (true, Some(factors)) => {
            let what = format!("Must specify {} scale factors, but got {}", sizes.len(), factors.len());
            return Err(args.invalid(what));
        }
        (false, Some(_)) | (true, None) => {
            return Err(args.invalid("Must specify exactly one of output_size and scale_factors"));
        }
    };
    let mut call: Vec<Traced> = vec![input.into(), size_list(&size)];
    call.extend(args.values[2..factors_at].iter().cloned());
    for dim in 0..size.len() {
        call.push(factors.as_ref().map_or(Value::None, |it| Value::Float(it[dim])));
    }
    let op = args.op.schema.name.to_string();
    Ok(vec![cx.aten(&op, &call)?])
}

/// A size times a factor, rounded down.
fn scaled(args: &Call<'_>, size: &SymInt, factor: f64) -> Result<SymInt> {
    match size.as_int() {
        Some(size) => Ok(SymInt::from((size as f64 * factor) as i64)),
        None if factor.fract() == 0.0 => Ok(size * factor as i64),
        None => Err(args.unsupported(format!("a size that is not known ({size}) times {factor}"))),
    }
}
