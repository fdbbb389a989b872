//! Sampling of images at the places that a grid names.

use crate::conv;
use crate::core::decompositions::Call;
use crate::image::gradient;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, contiguous};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite(
        "aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool \
             align_corners) -> Tensor",
        grid_sampler,
    )
    .doc("Samples images or volumes at the places of a grid, in coordinates from -1 to 1."),
    OpDef::new(
        "aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool \
             align_corners) -> Tensor",
        grid_sampler_2d,
    )
    .vjp(gradient::grid_sampler_2d)
    .doc(
        "Samples images at the places of a grid: 0 bilinear, 1 nearest, 2 bicubic; outside 0 zeros, 1 border, 2 \
         reflection.",
    )
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool \
             align_corners) -> Tensor",
        grid_sampler_3d,
    )
    .vjp(gradient::grid_sampler_3d)
    .doc(
        "Samples volumes at the places of a grid: 0 trilinear, 1 nearest; outside 0 zeros, 1 border, 2 \
         reflection.",
    )
    .tolerance(Tol::Default),
    OpDef::new("aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", affine_grid)
        .decompose(conv::decompose::affine_grid)
        .doc("The grid of an affine map for each item.")
        .tolerance(Tol::Default),
    OpDef::new(
        "aten::grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, \
             int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
        |args| sampler_backward(args, 2),
    )
    .doc("The gradients of the images, where the mask asks for them, and of the grid of `grid_sampler_2d`.")
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, \
             int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
        |args| sampler_backward(args, 3),
    )
    .doc("The gradients of the volumes, where the mask asks for them, and of the grid of `grid_sampler_3d`.")
    .tolerance(Tol::Default),
];

/// The result of sampling with the arguments from `at` on.
fn sampler(args: &Args<'_, TensorMeta>, at: usize, n_dims: usize) -> Result<TensorMeta> {
    let (input, grid) = (args.tensor(at)?, args.tensor(at + 1)?);
    let show = |it: &[SymInt]| it.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ");
    let fits = input.sizes.len() == n_dims + 2
        && grid.sizes.len() == n_dims + 2
        && !args.differ(&input.sizes[0], &grid.sizes[0])
        && !args.differ(&grid.sizes[n_dims + 1], &SymInt::from(n_dims));
    if !fits {
        return Err(args.bad_shape(format!(
            "grid_sampler(): expected grid and input to have same batch size and {} dimensions, with {n_dims} \
             coordinates per place, but got input with sizes [{}] and grid with sizes [{}]",
            n_dims + 2,
            show(&input.sizes),
            show(&grid.sizes)
        )));
    }
    if input.sizes[2..].contains(&SymInt::from(0)) {
        return Err(args.bad_shape("grid_sampler(): expected input to have non-empty spatial dimensions"));
    }
    if grid.dtype != input.dtype {
        let what = format!(
            "grid_sampler(): expected input and grid to have same dtype, but input has {} and grid has {}",
            input.dtype.name(),
            grid.dtype.name()
        );
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    let n_modes = if n_dims == 2 { 3 } else { 2 };
    let (mode, padding) = (args.int(at + 2)?, args.int(at + 3)?);
    if !(0..n_modes).contains(&mode) || !(0..3).contains(&padding) {
        let what =
            format!("grid_sampler(): no interpolation mode {mode} with padding mode {padding} for {n_dims}D grids");
        return Err(args.invalid(what));
    }
    let mut sizes = input.sizes[..2].to_vec();
    sizes.extend_from_slice(&grid.sizes[1..=n_dims]);
    Ok(TensorMeta::contiguous(input.dtype, sizes))
}

fn grid_sampler_2d(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![Output::Tensor(sampler(args, 0, 2)?)])
}

fn grid_sampler_3d(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![Output::Tensor(sampler(args, 0, 3)?)])
}

fn sampler_backward(args: &Args<'_, TensorMeta>, n_dims: usize) -> Result<Vec<Output>> {
    let (grad, result) = (args.tensor(0)?, sampler(args, 1, n_dims)?);
    if !args.agree(&grad.sizes, &result.sizes) || grad.dtype != result.dtype {
        return Err(args.bad_shape("the gradient should be of the sizes and of the dtype of the samples"));
    }
    let like =
        |index: usize| args.tensor(index).map(|it| Output::Tensor(TensorMeta::contiguous(it.dtype, it.sizes.clone())));
    // As in PyTorch, the gradient of the grid comes with the other one, whatever the mask says.
    let wants_input = matches!(args.list(6)?.first(), Some(Value::Bool(true)));
    Ok(vec![if wants_input { like(1)? } else { Output::Value(Value::None) }, like(2)?])
}

fn affine_grid(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (theta, size) = (args.tensor(0)?, args.sym_ints(1)?);
    let n_dims = size.len().saturating_sub(2);
    let rows = SymInt::from(n_dims);
    if !(2..=3).contains(&n_dims) || !args.agree(&theta.sizes, &[size[0].clone(), rows.clone(), &rows + 1]) {
        return Err(args.bad_shape(
            "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) sizes and a matrix of that rank per item",
        ));
    }
    let mut sizes = vec![size[0].clone()];
    sizes.extend_from_slice(&size[2..]);
    sizes.push(rows);
    Ok(contiguous(theta.dtype, sizes))
}

fn grid_sampler(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let is_volume = cx.meta(*args.tensor(0)?).sizes.len() == 5;
    let op = if is_volume { "grid_sampler_3d" } else { "grid_sampler_2d" };
    Ok(vec![cx.aten(op, &args.values)?])
}
