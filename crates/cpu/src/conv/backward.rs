//! The gradients of a convolution. That of the input is the transposed convolution, that of the weight a product with
//! the columns of the patches, and that of the bias a sum.

use crate::conv::forward::{backwards, forwards, gather};
use crate::conv::shape::{BLOCK, Shape, volume};
use crate::gemm::{Extent, GemmElement, MatrixView, MatrixViewMut, Start, gemm};
use crate::numeric::dispatch::with_gemm_element;
use tracefx_core::allocate::resize;
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Value};

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[("aten.convolution_backward.default", Kernel::Fill(gradients))];

fn gradients(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    with_gemm_element!(dtype, &args.op.name, T => run::<T>(args, out))
}

fn run<T: GemmElement>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let row_major = |index: usize| args.tensor(index)?.contiguous();
    let (grad, input, weight) = (row_major(0)?, row_major(1)?, row_major(2)?);
    let (is_transposed, groups) = (args.bool(7)?, args.int(9)? as usize);
    let options = [4, 5, 6].map(|index| args.ints(index));
    let [stride, padding, dilation] = options;
    let shape = Shape::new(&input, &weight, &grad, groups, is_transposed, [&stride?, &padding?, &dilation?]);
    let (grad, input, weight) = (T::read(&grad)?, T::read(&input)?, T::read(&weight)?);
    let mut out = out.iter();
    let mask: Vec<bool> = args.list(10)?.iter().map(|it| matches!(it, Value::Bool(true))).collect();
    // What the convolution read and what it wrote, per group.
    let (read, written) = if is_transposed { (shape.points, shape.image) } else { (shape.image, shape.points) };
    let (n_read, n_written) = (volume(read) * shape.n_in, volume(written) * shape.n_out);
    let n_weight = shape.n_in * shape.n_out * volume(shape.kernel);
    let n_groups = if n_read == 0 || n_written == 0 { 0 } else { shape.n_batch * groups };
    let (grad, input, weight) = (grad.data(), input.data(), weight.data());
    let mut columns = Vec::new();
    if let Some(out) = mask[0].then(|| out.next()).flatten() {
        // The gradient goes the other way through the same patches.
        let mirrored = Shape { n_in: shape.n_out, n_out: shape.n_in, ..shape };
        T::write(out, |out| {
            for at in 0..n_groups {
                let (from, to) = (&grad[at * n_written..][..n_written], &mut out[at * n_read..][..n_read]);
                let weight = &weight[at % groups * n_weight..][..n_weight];
                if is_transposed {
                    forwards(&mirrored, from, weight, Start::Zero, to)?;
                } else {
                    backwards(&mirrored, from, weight, to)?;
                }
            }
            Ok(())
        })?;
    }
    if let Some(out) = mask[1].then(|| out.next()).flatten() {
        T::write(out, |out| {
            for at in 0..n_groups {
                let (grad, input) = (&grad[at * n_written..][..n_written], &input[at * n_read..][..n_read]);
                let to = &mut out[at % groups * n_weight..][..n_weight];
                let (image, points) = if is_transposed { (grad, input) } else { (input, grad) };
                weight_gradient(&shape, is_transposed, image, points, to, &mut columns)?;
            }
            Ok(())
        })?;
    }
    if let Some(out) = mask[2].then(|| out.next()).flatten() {
        let n_channels = groups * shape.n_out;
        T::write(out, |out| {
            for (at, plane) in grad.chunks_exact(volume(written).max(1)).take(n_groups * shape.n_out).enumerate() {
                let sum = plane.iter().fold(T::ZERO, |sum, &it| sum.add(it));
                out[at % n_channels] = out[at % n_channels].add(sum);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Adds the products of the points' channels with the columns of the image's patches.
fn weight_gradient<T: GemmElement>(
    shape: &Shape,
    is_transposed: bool,
    image: &[T],
    points: &[T],
    to: &mut [T],
    columns: &mut Vec<T>,
) -> Result<()> {
    let (n_points, n_taps) = (volume(shape.points), volume(shape.kernel));
    let (image_channels, point_channels) =
        if is_transposed { (shape.n_out, shape.n_in) } else { (shape.n_in, shape.n_out) };
    let n_columns = image_channels * n_taps;
    let n_rows = shape.points[0] * shape.points[1];
    let step = (BLOCK / (n_columns * shape.points[2]).max(1)).max(1);
    for first_row in (0..n_rows).step_by(step) {
        let rows = first_row..(first_row + step).min(n_rows);
        let (first, n_block) = (rows.start * shape.points[2], rows.len() * shape.points[2]);
        columns.clear();
        resize(columns, n_columns * n_block, T::ZERO)?;
        for (image, columns) in image.chunks_exact(volume(shape.image)).zip(columns.chunks_exact_mut(n_taps * n_block))
        {
            shape.taps(|tap, at| gather(shape, image, at, rows.clone(), &mut columns[tap * n_block..][..n_block]));
        }
        let size = Extent { m: point_channels, n: n_columns, k: n_block };
        let lhs = MatrixView { data: &points[first..], row: n_points, col: 1 };
        let rhs = MatrixView { data: columns, row: 1, col: n_block };
        gemm(size, MatrixViewMut { data: to, row: n_columns }, lhs, rhs, Start::Kept)?;
    }
    Ok(())
}
