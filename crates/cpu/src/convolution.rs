//! The kernel of `convolution`: patches of the input are laid out as columns, block by block, and multiplied with the
//! weight. A weight of one point needs no columns, and a convolution of each channel by itself needs no product.

use crate::product::{Extent, Matrix, MatrixMut, Product, with_product};
use std::ops::Range;
use tracefx_core::{Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[("aten.convolution.default", Kernel::Fill(convolution))];

/// The elements that a block of columns has at most, so that it stays in the cache.
pub(crate) const BLOCK: usize = 1 << 16;

/// A convolution with three spatial dimensions; those that it lacks have size one.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) n_batch: usize,
    pub(crate) groups: usize,
    /// Channels per group of the side that is read.
    pub(crate) n_in: usize,
    /// Channels per group of the side that is written.
    pub(crate) n_out: usize,
    /// The side with the patches: the input, or the result of a transposed convolution.
    pub(crate) image: [usize; 3],
    /// The side with one point per patch.
    pub(crate) points: [usize; 3],
    pub(crate) kernel: [usize; 3],
    pub(crate) stride: [usize; 3],
    pub(crate) padding: [usize; 3],
    pub(crate) dilation: [usize; 3],
}

pub(crate) fn volume(sizes: [usize; 3]) -> usize {
    sizes.iter().product()
}

fn convolution(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_product!(dtype, T => run::<T>(args, &out[0]),
        else Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)))
}

fn run<T: Product>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (input, weight) = (args.tensor(0)?.contiguous()?, args.tensor(1)?.contiguous()?);
    let bias = args.opt_tensor(2)?.map(Tensor::contiguous).transpose()?;
    let is_transposed = args.bool(6)?;
    let (stride, padding, dilation) = (args.ints(3)?, args.ints(4)?, args.ints(5)?);
    let groups = args.int(8)? as usize;
    let shape = Shape::new(&input, &weight, out, groups, is_transposed, [&stride, &padding, &dilation]);
    let (input, weight) = (T::read(&input)?, T::read(&weight)?);
    let bias = bias.as_ref().map(T::read).transpose()?;
    let side = |sizes: [usize; 3], channels: usize| volume(sizes) * channels;
    T::write(out, |out| {
        let (read, written) = if is_transposed { (shape.points, shape.image) } else { (shape.image, shape.points) };
        let (n_read, n_written) = (side(read, shape.n_in), side(written, shape.n_out));
        let n_weight = shape.n_in * shape.n_out * volume(shape.kernel);
        if let Some(bias) = bias.as_ref().filter(|_| n_written > 0) {
            for (at, channel) in out.chunks_exact_mut(volume(written)).enumerate() {
                channel.fill(bias.data()[at % (shape.groups * shape.n_out)]);
            }
        }
        if n_read == 0 || n_written == 0 || n_weight == 0 {
            return;
        }
        let mut columns = Vec::new();
        for (at, (from, to)) in input.data().chunks(n_read).zip(out.chunks_mut(n_written)).enumerate() {
            if at == shape.n_batch * shape.groups {
                break;
            }
            let weight = &weight.data()[at % shape.groups * n_weight..][..n_weight];
            if is_transposed {
                backwards(&shape, from, weight, to, &mut columns);
            } else {
                forwards(&shape, from, weight, to, &mut columns);
            }
        }
    });
    Ok(())
}

impl Shape {
    /// A convolution of `input` to `output`, by stride, padding and dilation.
    pub(crate) fn new(
        input: &Tensor,
        weight: &Tensor,
        output: &Tensor,
        groups: usize,
        is_transposed: bool,
        [stride, padding, dilation]: [&[i64]; 3],
    ) -> Self {
        let n_dims = weight.rank() - 2;
        let padded = |sizes: &[usize], value: usize| {
            let mut res = [value; 3];
            res[3 - n_dims..].copy_from_slice(sizes);
            res
        };
        // A single value counts for all dimensions.
        let option = |values: &[i64], value: usize| {
            let values: Vec<usize> = (0..n_dims).map(|dim| values[dim.min(values.len() - 1)] as usize).collect();
            padded(&values, value)
        };
        let (read, written) = (padded(&input.sizes()[2..], 1), padded(&output.sizes()[2..], 1));
        Shape {
            n_batch: input.sizes()[0],
            groups,
            n_in: input.sizes()[1] / groups,
            n_out: output.sizes()[1] / groups,
            image: if is_transposed { written } else { read },
            points: if is_transposed { read } else { written },
            kernel: padded(&weight.sizes()[2..], 1),
            stride: option(stride, 1),
            padding: option(padding, 0),
            dilation: option(dilation, 1),
        }
    }

    /// Whether each patch is the point itself.
    fn is_pointwise(&self) -> bool {
        self.kernel == [1; 3] && self.stride == [1; 3] && self.padding == [0; 3]
    }

    /// The place in the image of tap `tap` of point `point`, or `None` in the padding.
    fn place(&self, dim: usize, point: usize, tap: usize) -> Option<usize> {
        (point * self.stride[dim] + tap * self.dilation[dim])
            .checked_sub(self.padding[dim])
            .filter(|&it| it < self.image[dim])
    }

    /// The points of a row whose tap `tap` lies in the image.
    fn inside(&self, tap: usize) -> Range<usize> {
        let shift = tap * self.dilation[2];
        let first = self.padding[2].saturating_sub(shift).div_ceil(self.stride[2]);
        let end = (self.image[2] + self.padding[2]).saturating_sub(shift).div_ceil(self.stride[2]);
        first.min(self.points[2])..end.min(self.points[2])
    }

    /// The start of the image row that tap (`kd`, `kh`) of a row of points sees, or `None` in the padding.
    fn image_row(&self, row: usize, kd: usize, kh: usize) -> Option<usize> {
        let depth = self.place(0, row / self.points[1], kd)?;
        let height = self.place(1, row % self.points[1], kh)?;
        Some((depth * self.image[1] + height) * self.image[2])
    }

    /// The rows of points of each block.
    fn blocks(&self, n_columns: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let n_rows = self.points[0] * self.points[1];
        let step = (BLOCK / (n_columns * self.points[2]).max(1)).max(1);
        (0..n_rows).step_by(step).map(move |first| first..(first + step).min(n_rows))
    }

    /// Calls `visit` for each tap of the kernel: its number, and its three coordinates.
    pub(crate) fn taps(&self, mut visit: impl FnMut(usize, [usize; 3])) {
        let [n_depth, n_height, n_width] = self.kernel;
        for at in 0..n_depth * n_height * n_width {
            visit(at, [at / (n_height * n_width), at / n_width % n_height, at % n_width]);
        }
    }
}

/// One group of one item, from the image to the points.
pub(crate) fn forwards<T: Product>(shape: &Shape, image: &[T], weight: &[T], points: &mut [T], columns: &mut Vec<T>) {
    let (n_points, n_taps) = (volume(shape.points), volume(shape.kernel));
    let n_columns = shape.n_in * n_taps;
    let weight_matrix = Matrix { data: weight, row: n_columns, col: 1 };
    if shape.is_pointwise() {
        let size = Extent { m: shape.n_out, n: n_points, k: shape.n_in };
        let image = Matrix { data: image, row: n_points, col: 1 };
        return T::product(size, MatrixMut { data: points, row: n_points }, weight_matrix, image, true);
    }
    if shape.n_in == 1 {
        for (weight, points) in weight.chunks_exact(n_taps).zip(points.chunks_exact_mut(n_points)) {
            depthwise(shape, image, weight, points);
        }
        return;
    }
    for rows in shape.blocks(n_columns) {
        let (first, n_block) = (rows.start * shape.points[2], rows.len() * shape.points[2]);
        columns.clear();
        columns.resize(n_columns * n_block, T::ZERO);
        for (image, columns) in image.chunks_exact(volume(shape.image)).zip(columns.chunks_exact_mut(n_taps * n_block))
        {
            shape.taps(|tap, at| gather(shape, image, at, rows.clone(), &mut columns[tap * n_block..][..n_block]));
        }
        let size = Extent { m: shape.n_out, n: n_block, k: n_columns };
        let block = Matrix { data: columns, row: n_block, col: 1 };
        T::product(size, MatrixMut { data: &mut points[first..], row: n_points }, weight_matrix, block, true);
    }
}

/// Reads what one tap sees of these rows of points; the padding stays zero.
pub(crate) fn gather<T: Product>(
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

/// One channel with one plane of taps.
fn depthwise<T: Product>(shape: &Shape, image: &[T], weight: &[T], points: &mut [T]) {
    let stride = shape.stride[2];
    for (row, points) in points.chunks_exact_mut(shape.points[2]).enumerate() {
        shape.taps(|tap, [kd, kh, kw]| {
            let inside = shape.inside(kw);
            let Some(start) = shape.image_row(row, kd, kh).filter(|_| !inside.is_empty()) else { return };
            let shift = inside.start * stride + kw * shape.dilation[2] - shape.padding[2];
            let from = &image[start + shift..];
            let to = &mut points[inside];
            if stride == 1 {
                to.iter_mut().zip(from).for_each(|(to, &from)| *to = to.plus(weight[tap].times(from)));
            } else {
                let from = from.iter().step_by(stride);
                to.iter_mut().zip(from).for_each(|(to, &from)| *to = to.plus(weight[tap].times(from)));
            }
        });
    }
}

/// One group of one item of a transposed convolution, from the points to the image.
pub(crate) fn backwards<T: Product>(shape: &Shape, points: &[T], weight: &[T], image: &mut [T], columns: &mut Vec<T>) {
    let (n_points, n_taps) = (volume(shape.points), volume(shape.kernel));
    let n_columns = shape.n_out * n_taps;
    let weight_matrix = Matrix { data: weight, row: 1, col: n_columns };
    for rows in shape.blocks(n_columns) {
        let (first, n_block) = (rows.start * shape.points[2], rows.len() * shape.points[2]);
        columns.clear();
        columns.resize(n_columns * n_block, T::ZERO);
        let size = Extent { m: n_columns, n: n_block, k: shape.n_in };
        let block = Matrix { data: &points[first..], row: n_points, col: 1 };
        T::product(size, MatrixMut { data: columns, row: n_block }, weight_matrix, block, false);
        for (image, columns) in image.chunks_exact_mut(volume(shape.image)).zip(columns.chunks_exact(n_taps * n_block))
        {
            shape.taps(|tap, at| scatter(shape, image, at, rows.clone(), &columns[tap * n_block..][..n_block]));
        }
    }
}

/// Adds one tap of these rows of points to the image; what falls in the padding is dropped.
pub(crate) fn scatter<T: Product>(
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
        to.zip(&column[inside.clone()]).for_each(|(to, &from)| *to = to.plus(from));
    }
}
