//! The sizes of a convolution, and which place of an image each tap of each point sees. What is computed of them is for the
//! kernels to say.

use std::ops::Range;
use tracefx_core::Tensor;

/// The elements that a block of columns has at most, so that it stays in the cache, where columns are in memory.
pub(crate) const BLOCK: usize = 1 << 16;

/// A convolution with three spatial dimensions; those that it lacks have size one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
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
    pub(super) fn is_pointwise(&self) -> bool {
        self.kernel == [1; 3] && self.stride == [1; 3] && self.padding == [0; 3]
    }

    /// The place in the image of tap `tap` of point `point`, or `None` in the padding.
    pub(crate) fn place(&self, dim: usize, point: usize, tap: usize) -> Option<usize> {
        (point * self.stride[dim] + tap * self.dilation[dim])
            .checked_sub(self.padding[dim])
            .filter(|&it| it < self.image[dim])
    }

    /// The points of a row whose tap `tap` lies in the image.
    pub(crate) fn inside(&self, tap: usize) -> Range<usize> {
        let shift = tap * self.dilation[2];
        let first = self.padding[2].saturating_sub(shift).div_ceil(self.stride[2]);
        let end = (self.image[2] + self.padding[2]).saturating_sub(shift).div_ceil(self.stride[2]);
        first.min(self.points[2])..end.min(self.points[2])
    }

    /// The start of the image row that tap (`kd`, `kh`) of a row of points sees, or `None` in the padding.
    pub(super) fn image_row(&self, row: usize, kd: usize, kh: usize) -> Option<usize> {
        let depth = self.place(0, row / self.points[1], kd)?;
        let height = self.place(1, row % self.points[1], kh)?;
        Some((depth * self.image[1] + height) * self.image[2])
    }

    /// The rows of points of each block.
    pub(crate) fn blocks(&self, n_columns: usize) -> impl Iterator<Item = Range<usize>> + use<> {
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
