//! The kernel of `convolution`: the product of the weight and the patches of the input. A weight of one point has the
//! input itself for patches, and a convolution of each channel by itself needs no product.

use crate::conv::depthwise::depthwise;
use crate::conv::im2col::{Im2col, Layout, PointwiseColumns};
use crate::conv::shape::{Shape, volume};
use crate::gemm::blocked::{BlockedGemm, RhsColumns};
use crate::gemm::output_view::OutputView;
use crate::gemm::{Extent, GemmElement, MatrixView, MatrixViewMut, Start, gemm};
use crate::numeric::dispatch::with_gemm_element;
use crate::numeric::isa::Level;
use crate::numeric::strided::Strided;
use crate::numeric::{parallel, scratch};
use std::ops::Range;
use tracefx_core::allocate::resize;
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[("aten.convolution.default", Kernel::Overwrite(convolution))];

fn convolution(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_gemm_element!(dtype, &args.op.name, T => run::<T>(args, &out[0]))
}

fn run<T: GemmElement>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (input, weight) = (args.tensor(0)?.contiguous()?, args.tensor(1)?.contiguous()?);
    let bias = args.opt_tensor(2)?.map(Tensor::contiguous).transpose()?;
    let is_transposed = args.bool(6)?;
    let (stride, padding, dilation) = (args.ints(3)?, args.ints(4)?, args.ints(5)?);
    let groups = args.int(8)? as usize;
    let shape = Shape::new(&input, &weight, out, groups, is_transposed, [&stride, &padding, &dilation]);
    let (input, weight) = (T::read(&input)?, T::read(&weight)?);
    let bias = bias.as_ref().map(T::read).transpose()?;
    let bias = bias.as_ref().map_or(&[][..], Strided::data);
    let side = |sizes: [usize; 3], channels: usize| volume(sizes) * channels;
    T::write(out, |out| {
        let (read, written) = if is_transposed { (shape.points, shape.image) } else { (shape.image, shape.points) };
        let (n_read, n_written) = (side(read, shape.n_in), side(written, shape.n_out));
        let n_weight = shape.n_in * shape.n_out * volume(shape.kernel);
        let (n_filters, is_empty) = (shape.groups * shape.n_out, n_read == 0 || n_weight == 0);
        if n_written > 0 && (is_transposed || is_empty) {
            for (at, channel) in out.chunks_exact_mut(volume(written)).enumerate() {
                channel.fill(bias.get(at % n_filters).copied().unwrap_or(T::ZERO));
            }
        }
        if n_written == 0 || is_empty {
            return Ok(());
        }
        let (input, weight) = (&input.data()[..n_read * shape.n_batch * groups], weight.data());
        if let Some(layout) = Layout::of(&shape).filter(|_| shape.n_in == 1 && !is_transposed) {
            return depthwise(Level::best(), &shape, layout, [input, weight, bias], out);
        }
        parallel::try_parts_mut(out, n_written, |first, to| {
            let at = first / n_written;
            let (from, group) = (&input[at * n_read..][..n_read], at % groups);
            let weight = &weight[group * n_weight..][..n_weight];
            if is_transposed {
                backwards(&shape, from, weight, to)
            } else {
                let start = bias.get(group * shape.n_out..(group + 1) * shape.n_out);
                forwards(&shape, from, weight, start.map_or(Start::Zero, Start::Rows), to)
            }
        })
    })
}

/// One group of one item, from the image to the points.
///
/// # Errors
/// `OutOfMemory` where what the product reads cannot be laid out.
pub(super) fn forwards<T: GemmElement>(
    shape: &Shape,
    image: &[T],
    weight: &[T],
    start: Start<'_, T>,
    points: &mut [T],
) -> Result<()> {
    let (n_points, k) = (volume(shape.points), shape.n_in * volume(shape.kernel));
    let size = Extent { m: shape.n_out, n: n_points, k };
    let weight = MatrixView { data: weight, row: k, col: 1 };
    if shape.is_pointwise() {
        let image = MatrixView { data: image, row: n_points, col: 1 };
        return gemm(size, MatrixViewMut { data: points, row: n_points }, weight, image, start);
    }
    let target = OutputView::new(points, [size.m, size.n], [n_points, 1]);
    match Layout::of(shape) {
        Some(layout) if layout.is_image(shape) => {
            multiply(size, target, weight, &Im2col::new(shape, layout, image)?, start)
        }
        Some(layout) => scratch::with::<T, _>(layout.plane() * shape.n_in, |arranged| {
            layout.arrange_all(shape, image, arranged);
            multiply(size, target, weight, &Im2col::new(shape, layout, arranged)?, start)
        }),
        None => multiply(size, target, weight, &PointwiseColumns { shape, image }, start),
    }
}

fn multiply<T: GemmElement, C: RhsColumns<T>>(
    size: Extent,
    target: OutputView<'_, T>,
    lhs: MatrixView<'_, T>,
    rhs: &C,
    start: Start<'_, T>,
) -> Result<()> {
    BlockedGemm { level: Level::best(), size, target, lhs, rhs, start, epilogue: () }.run()
}

/// Reads what one tap sees of these rows of points; the padding stays zero.
pub(crate) fn gather<T: GemmElement>(
    shape: &Shape,
    image: &[T],
    [kd, kh, kw]: [usize; 3],
    rows: Range<usize>,
    column: &mut [T],
) {
    let (inside, stride) = (shape.inside(kw), shape.stride[2]);
    if inside.is_empty() {
        return;
    }
    let shift = inside.start * stride + kw * shape.dilation[2] - shape.padding[2];
    for (row, column) in rows.zip(column.chunks_exact_mut(shape.points[2])) {
        let Some(start) = shape.image_row(row, kd, kh) else { continue };
        let from = &image[start + shift..];
        let to = &mut column[inside.clone()];
        if stride == 1 {
            to.copy_from_slice(&from[..to.len()]);
        } else {
            to.iter_mut().zip(from.iter().step_by(stride)).for_each(|(to, &from)| *to = from);
        }
    }
}

/// One group of one item of a transposed convolution, from the points to the image.
///
/// # Errors
/// `OutOfMemory` where there is no room for a block of what is added to the image.
pub(super) fn backwards<T: GemmElement>(shape: &Shape, points: &[T], weight: &[T], image: &mut [T]) -> Result<()> {
    let mut columns = Vec::new();
    let (n_points, n_taps) = (volume(shape.points), volume(shape.kernel));
    let n_columns = shape.n_out * n_taps;
    let weight_matrix = MatrixView { data: weight, row: 1, col: n_columns };
    for rows in shape.blocks(n_columns) {
        let (first, n_block) = (rows.start * shape.points[2], rows.len() * shape.points[2]);
        columns.clear();
        resize(&mut columns, n_columns * n_block, T::ZERO)?;
        let size = Extent { m: n_columns, n: n_block, k: shape.n_in };
        let block = MatrixView { data: &points[first..], row: n_points, col: 1 };
        gemm(size, MatrixViewMut { data: &mut columns, row: n_block }, weight_matrix, block, Start::Zero)?;
        for (image, columns) in image.chunks_exact_mut(volume(shape.image)).zip(columns.chunks_exact(n_taps * n_block))
        {
            shape.taps(|tap, at| scatter(shape, image, at, rows.clone(), &columns[tap * n_block..][..n_block]));
        }
    }
    Ok(())
}

/// Adds one tap of these rows of points to the image; what falls in the padding is dropped.
pub(crate) fn scatter<T: GemmElement>(
    shape: &Shape,
    image: &mut [T],
    [kd, kh, kw]: [usize; 3],
    rows: Range<usize>,
    column: &[T],
) {
    let (inside, stride) = (shape.inside(kw), shape.stride[2]);
    if inside.is_empty() {
        return;
    }
    let shift = inside.start * stride + kw * shape.dilation[2] - shape.padding[2];
    for (row, column) in rows.zip(column.chunks_exact(shape.points[2])) {
        let Some(start) = shape.image_row(row, kd, kh) else { continue };
        let to = image[start + shift..].iter_mut().step_by(stride);
        to.zip(&column[inside.clone()]).for_each(|(to, &from)| *to = to.add(from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Shapes of all kinds of convolutions, of which some do not fit in a layout.
    fn shape() -> impl Strategy<Value = Shape> {
        let three = |most: usize| [1..=2usize, 1..=most, 1..=most];
        let sizes = (three(19), three(4), [1..=1usize, 1..=3, 1..=40], [0..=1usize, 0..=3, 0..=9], three(3));
        (sizes, 1usize..4, 1usize..4, 1usize..20).prop_filter_map("the kernel fits", |(sizes, groups, n_in, n_out)| {
            let (image, kernel, stride, padding, dilation) = sizes;
            let mut points = [0; 3];
            for dim in 0..3 {
                let room = (image[dim] + 2 * padding[dim]).checked_sub((kernel[dim] - 1) * dilation[dim] + 1)?;
                points[dim] = room / stride[dim] + 1;
            }
            Some(Shape { n_batch: 2, groups, n_in, n_out, image, points, kernel, stride, padding, dilation })
        })
    }

    fn plain(shape: &Shape, image: &[f32], weight: &[f32], bias: &[f32]) -> Vec<f32> {
        let mut res = Vec::new();
        let n_taps = volume(shape.kernel);
        for (weight, bias) in weight.chunks_exact(shape.n_in * n_taps).zip(bias) {
            for at in 0..volume(shape.points) {
                let points = shape.points;
                let point = [at / (points[1] * points[2]), at / points[2] % points[1], at % points[2]];
                let mut sum = *bias;
                for (channel, image) in image.chunks_exact(volume(shape.image)).enumerate() {
                    shape.taps(|tap, taps| {
                        let place = |dim: usize| shape.place(dim, point[dim], taps[dim]);
                        if let (Some(d), Some(h), Some(w)) = (place(0), place(1), place(2)) {
                            let pixel = image[(d * shape.image[1] + h) * shape.image[2] + w];
                            sum += weight[channel * n_taps + tap] * pixel;
                        }
                    });
                }
                res.push(sum);
            }
        }
        res
    }

    fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|at| ((at * 7 + seed) as f32 * 0.37).sin()).collect()
    }

    proptest! {
        #![proptest_config(crate::agreement::config(64))]

        #[test]
        fn convolutions_are_what_the_plain_loop_says(shape in shape()) {
            let image = numbers(shape.n_in * volume(shape.image), 1);
            let weight = numbers(shape.n_out * shape.n_in * volume(shape.kernel), 2);
            let bias = numbers(shape.n_out, 3);
            let want = plain(&shape, &image, &weight, &bias);
            let mut got = vec![f32::NAN; want.len()];
            forwards(&shape, &image, &weight, Start::Rows(&bias), &mut got).unwrap();
            for (got, want) in got.iter().zip(&want) {
                prop_assert!((got - want).abs() < 1e-4, "{got} {want}");
            }
        }

        #[test]
        fn depthwise_convolutions_are_what_the_plain_loop_says(shape in shape()) {
            let shape = Shape { n_in: 1, ..shape };
            let Some(layout) = Layout::of(&shape) else { return Ok(()) };
            let n_channels = shape.n_batch * shape.groups;
            let input = numbers(n_channels * volume(shape.image), 1);
            let n_weight = shape.n_out * volume(shape.kernel);
            let (weight, bias) = (numbers(shape.groups * n_weight, 2), numbers(shape.groups * shape.n_out, 3));
            for level in Level::all() {
                let mut got = vec![f32::NAN; n_channels * shape.n_out * volume(shape.points)];
                depthwise(level, &shape, layout, [&input, &weight, &bias], &mut got).unwrap();
                for (at, got) in got.chunks_exact(shape.n_out * volume(shape.points)).enumerate() {
                    let (image, group) = (&input[at * volume(shape.image)..][..volume(shape.image)], at % shape.groups);
                    let bias = &bias[group * shape.n_out..][..shape.n_out];
                    let want = plain(&shape, image, &weight[group * n_weight..][..n_weight], bias);
                    for (got, want) in got.iter().zip(&want) {
                        prop_assert!((got - want).abs() < 1e-4, "{level:?} {got} {want}");
                    }
                }
            }
        }
    }
}
