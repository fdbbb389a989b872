//! The patches of an image as the columns of a matrix, which products read without it ever being in memory. Which place a
//! tap sees is for [`shape`](super::shape) to say.

use crate::conv::shape::{Shape, volume};
use crate::gemm::GemmElement;
use crate::gemm::blocked::RhsColumns;
use crate::numeric::parallel;
use smallvec::SmallVec;
use std::ops::Range;
use tracefx_core::Result;
use tracefx_core::allocate::with_room;

/// How an image is laid out so that what a tap sees of neighbouring points lies side by side: with its padding, and with
/// the columns that are a stride apart next to each other.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// The sizes of the image with its padding, as far as taps see it; the width is one of a phase.
    sizes: [usize; 3],
    /// The phases of a row: column `x` is the `x / n_phases`-th one of phase `x % n_phases`.
    n_phases: usize,
}

impl Layout {
    /// The layout of a convolution's image, or `None` where the padding or the stride would make it much larger.
    pub(crate) fn of(shape: &Shape) -> Option<Self> {
        let reach = |dim: usize| -> Option<usize> {
            let points = (shape.points[dim] - 1).checked_mul(shape.stride[dim])?;
            points.checked_add((shape.kernel[dim] - 1).checked_mul(shape.dilation[dim])?)?.checked_add(1)
        };
        let n_phases = shape.stride[2];
        let sizes = [reach(0)?, reach(1)?, reach(2)?.div_ceil(n_phases)];
        let res = Layout { sizes, n_phases };
        let len = sizes.iter().try_fold(n_phases, |len, &it| len.checked_mul(it))?;
        (len <= 16 * (volume(shape.image) + volume(shape.points) + 64)).then_some(res)
    }

    /// The elements of a channel.
    pub(crate) fn plane(&self) -> usize {
        self.sizes[0] * self.sizes[1] * self.row()
    }

    fn row(&self) -> usize {
        self.n_phases * self.sizes[2]
    }

    /// Whether the image lies so already.
    pub(super) fn is_image(&self, shape: &Shape) -> bool {
        self.n_phases == 1 && self.sizes == shape.image && shape.padding == [0; 3]
    }

    /// Where the tap of these coordinates lies, seen from a point.
    pub(crate) fn tap(&self, shape: &Shape, [kd, kh, kw]: [usize; 3]) -> usize {
        let x = kw * shape.dilation[2];
        (kd * shape.dilation[0] * self.sizes[1] + kh * shape.dilation[1]) * self.row()
            + x % self.n_phases * self.sizes[2]
            + x / self.n_phases
    }

    /// Where the first point of a row of points lies.
    pub(super) fn point_row(&self, shape: &Shape, row: usize) -> usize {
        let (depth, height) = (row / shape.points[1], row % shape.points[1]);
        (depth * shape.stride[0] * self.sizes[1] + height * shape.stride[1]) * self.row()
    }

    /// Lays out a channel of an image.
    pub(super) fn arrange<T: GemmElement>(&self, shape: &Shape, image: &[T], to: &mut [T]) {
        for (at, to) in to.chunks_exact_mut(self.row()).enumerate() {
            let inside =
                |dim: usize, place: usize| place.checked_sub(shape.padding[dim]).filter(|&it| it < shape.image[dim]);
            let place = [inside(0, at / self.sizes[1]), inside(1, at % self.sizes[1])];
            let [Some(depth), Some(height)] = place else {
                to.fill(T::ZERO);
                continue;
            };
            let from = &image[(depth * shape.image[1] + height) * shape.image[2]..][..shape.image[2]];
            for (phase, to) in to.chunks_exact_mut(self.sizes[2]).enumerate() {
                // Column `x` of the phase is column `x * n_phases + phase - padding` of the image.
                let first = shape.padding[2].saturating_sub(phase).div_ceil(self.n_phases).min(to.len());
                let start = (first * self.n_phases + phase).saturating_sub(shape.padding[2]);
                let from = from.get(start..).unwrap_or(&[]);
                let (before, to) = to.split_at_mut(first);
                before.fill(T::ZERO);
                let n = from.len().div_ceil(self.n_phases).min(to.len());
                let (to, after) = to.split_at_mut(n);
                after.fill(T::ZERO);
                match self.n_phases {
                    1 => to.copy_from_slice(&from[..n]),
                    // Pairs become vector code, which steps do not.
                    2 => {
                        let (pairs, last) = from.as_chunks::<2>();
                        to.iter_mut().zip(pairs).for_each(|(to, &[from, _])| *to = from);
                        if let (Some(to), Some(&from)) = (to.get_mut(pairs.len()), last.first()) {
                            *to = from;
                        }
                    }
                    step => to.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, &from)| *to = from),
                }
            }
        }
    }

    /// Lays out the channels of an image.
    pub(super) fn arrange_all<T: GemmElement>(&self, shape: &Shape, image: &[T], to: &mut [T]) {
        let together = (parallel::GRAIN / self.plane().max(1)).max(1);
        parallel::parts_mut(to, together * self.plane(), |first, to| {
            let images = image.chunks_exact(volume(shape.image)).skip(first / self.plane());
            images.zip(to.chunks_exact_mut(self.plane())).for_each(|(image, to)| self.arrange(shape, image, to));
        });
    }
}

/// The matrix of patches: a row for each channel and tap, a column for each point.
pub(super) struct Im2col<'a, T> {
    shape: &'a Shape,
    layout: Layout,
    /// The channels, laid out.
    image: &'a [T],
    taps: Vec<usize>,
}

impl<'a, T> Im2col<'a, T> {
    pub(crate) fn new(shape: &'a Shape, layout: Layout, image: &'a [T]) -> Result<Self> {
        let mut taps = with_room(volume(shape.kernel))?;
        shape.taps(|_, at| taps.push(layout.tap(shape, at)));
        Ok(Im2col { shape, layout, image, taps })
    }
}

impl<T: GemmElement> RhsColumns<T> for Im2col<'_, T> {
    #[inline(always)]
    fn pack<const N: usize>(&self, rows: Range<usize>, first: usize, n: usize, panel: &mut [[T; N]]) {
        // The points of a panel lie in a few rows: where they begin in the panel and in the image, and how many they are.
        let width = self.shape.points[2];
        let mut runs: SmallVec<[(usize, usize, usize); 8]> = SmallVec::new();
        let mut point = first;
        while point < first + n {
            let len = (width - point % width).min(first + n - point);
            let place = self.layout.point_row(self.shape, point / width) + point % width;
            runs.push((point - first, place, len));
            point += len;
        }
        let (mut channel, mut tap) = (rows.start / self.taps.len(), rows.start % self.taps.len());
        for p in 0..panel.len() {
            let start = channel * self.layout.plane() + self.taps[tap];
            for &(at, place, len) in &runs {
                let from = &self.image[start + place..];
                let to = &mut panel.as_flattened_mut()[p * N + at..];
                // A run is copied with what follows it, which is overwritten later or means nothing: copies of a fixed
                // length are a few instructions.
                match (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
                    (Some(from), Some(to)) => *to = *from,
                    (None, _) | (_, None) => to[..len].copy_from_slice(&from[..len]),
                }
            }
            tap += 1;
            if tap == self.taps.len() {
                (channel, tap) = (channel + 1, 0);
            }
        }
    }
}

/// The same matrix, read element by element from an image as it is.
pub(super) struct PointwiseColumns<'a, T> {
    pub(crate) shape: &'a Shape,
    pub(crate) image: &'a [T],
}

impl<T: GemmElement> RhsColumns<T> for PointwiseColumns<'_, T> {
    #[inline(always)]
    fn pack<const N: usize>(&self, rows: Range<usize>, first: usize, n: usize, panel: &mut [[T; N]]) {
        let Shape { kernel, points, image, .. } = *self.shape;
        for (row, panel) in rows.zip(panel) {
            let (channel, tap) = (row / volume(kernel), row % volume(kernel));
            let taps = [tap / (kernel[1] * kernel[2]), tap / kernel[2] % kernel[1], tap % kernel[2]];
            for (j, to) in panel[..n].iter_mut().enumerate() {
                let point = first + j;
                let point = [point / (points[1] * points[2]), point / points[2] % points[1], point % points[2]];
                let place = |dim: usize| self.shape.place(dim, point[dim], taps[dim]);
                *to = match (place(0), place(1), place(2)) {
                    (Some(d), Some(h), Some(w)) => {
                        self.image[channel * volume(image) + (d * image[1] + h) * image[2] + w]
                    }
                    _ => T::ZERO,
                };
            }
        }
    }
}
