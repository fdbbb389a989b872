//! Kernels of patches as columns in memory, `im2col` and `col2im`: the same walk that convolutions make.

use crate::conv::forward::{gather, scatter};
use crate::conv::shape::{Shape, volume};
use crate::gemm::GemmElement;
use crate::numeric::dispatch::with_gemm_element;
use crate::numeric::map::{cast, cast_into};
use tracefx_core::{DType, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] =
    &[("aten.im2col.default", Kernel::Fill(im2col)), ("aten.col2im.default", Kernel::Fill(col2im))];

/// The patches of one channel of an image, by the four options that start at `at`.
fn shape(args: &Args<'_, Tensor>, image: &Tensor, at: usize) -> Result<Shape> {
    let option = |index: usize, first: usize| -> Result<[usize; 3]> {
        let values: Vec<usize> = args.ints(at + index)?.iter().map(|&it| it as usize).collect();
        Ok([first, values[0], values[values.len() - 1]])
    };
    let (kernel, dilation, padding, stride) = (option(0, 1)?, option(1, 1)?, option(2, 0)?, option(3, 1)?);
    let sizes = image.sizes();
    let image = [1, sizes[sizes.len() - 2], sizes[sizes.len() - 1]];
    let count = |dim: usize| (image[dim] + 2 * padding[dim] - dilation[dim] * (kernel[dim] - 1) - 1) / stride[dim] + 1;
    let points = [1, count(1), count(2)];
    Ok(Shape { n_batch: 1, groups: 1, n_in: 1, n_out: 1, image, points, kernel, stride, padding, dilation })
}

fn im2col(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (image, dtype) = (args.tensor(0)?, out[0].dtype());
    if dtype == DType::Bool {
        // Elements are only moved, and zeros and ones are what they are in every dtype.
        let wide = Tensor::zeros(DType::Float32, out[0].sizes())?;
        to_columns::<f32>(args, &cast(image, DType::Float32)?, &wide)?;
        return cast_into(&wide, &out[0]);
    }
    with_gemm_element!(dtype, &args.op.name, T => to_columns::<T>(args, image, &out[0]))
}

fn to_columns<T: GemmElement>(args: &Args<'_, Tensor>, image: &Tensor, out: &Tensor) -> Result<()> {
    let image = image.contiguous()?;
    let shape = shape(args, &image, 1)?;
    let images = T::read(&image)?;
    let (n_points, n_image) = (volume(shape.points), volume(shape.image));
    T::write(out, |out| {
        let channels = out.chunks_exact_mut(volume(shape.kernel) * n_points);
        for (columns, image) in channels.zip(images.data().chunks_exact(n_image)) {
            shape.taps(|tap, at| {
                gather(&shape, image, at, 0..shape.points[1], &mut columns[tap * n_points..][..n_points]);
            });
        }
        Ok(())
    })
}

fn col2im(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_gemm_element!(dtype, &args.op.name, T => to_image::<T>(args, &out[0]))
}

fn to_image<T: GemmElement>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let columns = args.tensor(0)?.contiguous()?;
    let shape = shape(args, out, 2)?;
    let columns = T::read(&columns)?;
    let (n_points, n_image) = (volume(shape.points), volume(shape.image));
    T::write(out, |out| {
        let channels = columns.data().chunks_exact(volume(shape.kernel) * n_points);
        for (image, columns) in out.chunks_exact_mut(n_image).zip(channels) {
            shape.taps(|tap, at| {
                scatter(&shape, image, at, 0..shape.points[1], &columns[tap * n_points..][..n_points]);
            });
        }
        Ok(())
    })
}
