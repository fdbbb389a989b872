//! Convolutions of each channel by itself. Vectors lie along the channels. One cache line of channels after the other: some rows of
//! the image are copied with their padding to a plane for each vector, where neighbours lie side by side and in the first-level
//! cache; the sums of several points stay in registers, and results are finished before the next channels come.

use crate::fused::convolution::Geometry;
use crate::fused::epilogue::{Folded, Tail};
use crate::fused::padding::PaddedLayout;
use crate::gemm::GemmElement;
use crate::gemm::blocked::Epilogue;
use crate::gemm::output_view::BlockRows;
use crate::numeric::isa::{Isa, Level, Work};
use crate::numeric::{parallel, scratch};
use std::ops::Range;
use tracefx_core::Result;
use tracefx_core::allocate::collected;

/// The points of a row that are summed up together: two groups of these, or one where no more are left.
const GROUP: usize = 4;

/// The channels whose planes are filled together: a cache line of them.
const LINE: usize = 16;

/// The elements of the planes of a line, beside which its results stay in the first-level cache.
const PLANES: usize = 1 << 13;

/// Multiplications that are worth a thread.
const SHARED: usize = 1 << 19;

/// A convolution whose filters read one channel each.
pub(super) struct Depthwise {
    geometry: Geometry,
    level: Level,
    /// The filters of a channel.
    n_planes: usize,
    /// The pixels of a row with its padding, so many that the last points can be summed up with some that are not there.
    width: usize,
    /// `[C / V, multiplier, KH, KW, V]` for vectors of `V` channels.
    weight: Vec<f32>,
    /// `[C / V, multiplier, V]`.
    bias: Vec<f32>,
}

/// The channels of a vector.
struct Lanes;

impl Work for Lanes {
    type Output = usize;

    #[inline(always)]
    fn run<I: Isa>(self) -> usize {
        I::WIDTH / size_of::<f32>()
    }
}

impl Depthwise {
    /// Packs filters `[C * multiplier, 1, KH, KW]`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn new(geometry: Geometry, weight: &[f32], folded: &Folded) -> Result<Self> {
        let (n_taps, n_channels, n_planes) = (geometry.n_taps(), geometry.channels, geometry.n_out());
        let level = Level::best();
        let lanes = level.run(Lanes);
        let n_vectors = n_channels.div_ceil(lanes) * n_planes;
        // The filter of a lane of a vector, where there is one.
        let filter = |vector: usize, lane: usize| {
            let channel = vector / n_planes * lanes + lane;
            (channel < n_channels).then_some(channel * n_planes + vector % n_planes)
        };
        let number = |at: usize| {
            let (vector, tap) = (at / lanes / n_taps, at / lanes % n_taps);
            filter(vector, at % lanes).map_or(0.0, |it| weight[it * n_taps + tap])
        };
        let weight = collected((0..n_vectors * n_taps * lanes).map(number))?;
        let bias = (0..n_vectors * lanes).map(|at| filter(at / lanes, at % lanes).map_or(0.0, |it| folded.bias(it)));
        let points = geometry.points[1].next_multiple_of(2 * GROUP) - 1;
        let width = points * geometry.stride[1] + geometry.span(1);
        Ok(Depthwise { geometry, level, n_planes, width, weight, bias: collected(bias)? })
    }

    /// Whether a convolution can be computed so: a filter reads one channel, and padding makes no image much larger.
    pub(super) fn is_for(it: &Geometry) -> bool {
        it.n_in() == 1 && it.groups > 1 && PaddedLayout::of(it).is_some()
    }

    /// The rows of points that are computed at a time: as many as see what fits the cache, or so many that few rows are seen twice.
    fn n_rows(&self) -> usize {
        let it = &self.geometry;
        let n_seen = (PLANES / (self.width * LINE)).max(4 * it.span(0));
        ((n_seen - it.span(0)) / it.stride[0] + 1).min(it.points[0])
    }

    /// The elements of the planes that [`Depthwise::sum`] fills for so many rows of points.
    pub(super) fn planes_len(&self, n_rows: usize) -> usize {
        (n_rows - 1) * self.plane(self.geometry.stride[0]) + self.plane(self.geometry.span(0))
    }

    /// The elements of so many rows of the planes of a line.
    fn plane(&self, n_rows: usize) -> usize {
        n_rows * self.width * LINE
    }

    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn run(&self, input: &[f32], tail: Tail<'_>, out: &mut [f32]) -> Result<()> {
        let it = &self.geometry;
        let row = it.points[1] * it.filters;
        // The same bits come of any parts.
        let most = if parallel::n_threads() == 1 { usize::MAX } else { (SHARED / (row * it.n_taps())).max(1) };
        let n_rows = self.n_rows().min(most);
        parallel::try_parts_mut(out, n_rows * row, |first, out| {
            scratch::with::<f32, _>(self.planes_len(n_rows), |planes| {
                let (mut first, mut left) = (first / row, out);
                // Rows of several images may be in a part.
                while !left.is_empty() {
                    let (image, y) = (first / it.points[0], first % it.points[0]);
                    let n = (left.len() / row).min(it.points[0] - y);
                    let (out, rest) = left.split_at_mut(n * row);
                    let image = &input[image * it.image_len()..][..it.image_len()];
                    self.sum(image, 0, y, tail.from(first * it.points[1], 0), planes, out);
                    (first, left) = (first + n, rest);
                }
                Ok(())
            })
        })
    }

    /// Computes rows of points from row `y` on, of an image of which `rows` are those from `first` on, with planes of
    /// [`Depthwise::planes_len`].
    pub(super) fn sum(
        &self,
        rows: &[f32],
        first: usize,
        y: usize,
        tail: Tail<'_>,
        planes: &mut [f32],
        out: &mut [f32],
    ) {
        let it = &self.geometry;
        let n_rows = out.len() / (it.points[1] * it.filters);
        let seen = y * it.stride[0]..(y + n_rows - 1) * it.stride[0] + it.span(0);
        let lanes = self.level.run(Lanes);
        for channel in (0..it.channels).step_by(LINE) {
            let channels = channel..it.channels.min(channel + LINE);
            let vectors = channel / lanes..channels.end.div_ceil(lanes);
            self.level.run(Copy { depthwise: self, rows, first, seen: seen.clone(), vectors: vectors.clone(), planes });
            self.level.run(Points { depthwise: self, planes, n_seen: seen.len(), vectors, tail, out });
            if tail.is_unfinished() {
                let filters = channels.start * self.n_planes..channels.end * self.n_planes;
                tail.finish(BlockRows::columns(out, it.filters, filters));
            }
        }
    }
}

/// Copies rows of the padded image to the planes of some vectors.
struct Copy<'a> {
    depthwise: &'a Depthwise,
    /// Rows of the image.
    rows: &'a [f32],
    /// The row of the image that is the first of these.
    first: usize,
    /// The rows of the padded image that are copied.
    seen: Range<usize>,
    vectors: Range<usize>,
    planes: &'a mut [f32],
}

impl Work for Copy<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        match I::WIDTH {
            64 => self.copy::<16>(),
            32 => self.copy::<8>(),
            _ => self.copy::<4>(),
        }
    }
}

impl Copy<'_> {
    #[inline(always)]
    fn copy<const V: usize>(self) {
        let (it, width) = (&self.depthwise.geometry, self.depthwise.width);
        let (planes, len) = (self.planes.as_chunks_mut::<V>().0, it.image[1] * it.channels);
        for (row, padded) in self.seen.clone().enumerate() {
            let y = padded.checked_sub(it.padding[0]).filter(|&y| y < it.image[0]);
            for (at, vector) in self.vectors.clone().enumerate() {
                let to = &mut planes[(at * self.seen.len() + row) * width..][..width];
                let Some(y) = y else {
                    to.fill([0.0; V]);
                    continue;
                };
                let from = &self.rows[(y - self.first) * len..][..len];
                let (before, to) = to.split_at_mut(it.padding[1].min(width));
                before.fill([0.0; V]);
                let (to, after) = to.split_at_mut(it.image[1].min(to.len()));
                after.fill([0.0; V]);
                let channels = vector * V..it.channels.min((vector + 1) * V);
                for (to, from) in to.iter_mut().zip(from.chunks_exact(it.channels)) {
                    let from = &from[channels.clone()];
                    match from.first_chunk::<V>() {
                        Some(from) => *to = *from,
                        None => {
                            *to = [0.0; V];
                            to[..from.len()].copy_from_slice(from);
                        }
                    }
                }
            }
        }
    }
}

/// Rows of points, in some vectors of channels.
struct Points<'a> {
    depthwise: &'a Depthwise,
    /// The planes of these vectors.
    planes: &'a [f32],
    /// The rows of a plane.
    n_seen: usize,
    vectors: Range<usize>,
    tail: Tail<'a>,
    /// The rows, with all channels.
    out: &'a mut [f32],
}

impl Work for Points<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        match I::WIDTH {
            64 => self.by_kernel::<I, 16>(),
            32 => self.by_kernel::<I, 8>(),
            _ => self.by_kernel::<I, 4>(),
        }
    }
}

impl Points<'_> {
    /// Strides and widths of kernels of most networks are known where the code is compiled, so that places are as well.
    #[inline(always)]
    fn by_kernel<I: Isa, const V: usize>(self) {
        let it = &self.depthwise.geometry;
        match (it.stride[1], it.kernel[1], it.dilation[1]) {
            (1, 3, 1) => self.fill::<I, V, 1, 3>(),
            (2, 3, 1) => self.fill::<I, V, 2, 3>(),
            (1, 5, 1) => self.fill::<I, V, 1, 5>(),
            (2, 5, 1) => self.fill::<I, V, 2, 5>(),
            _ => self.fill::<I, V, 0, 0>(),
        }
    }

    #[inline(always)]
    fn fill<I: Isa, const V: usize, const S: usize, const K: usize>(self) {
        let Points { depthwise, planes, n_seen, vectors, tail, out } = self;
        let it = &depthwise.geometry;
        let (n_planes, n_taps, n_filters, n_points) = (depthwise.n_planes, it.n_taps(), it.filters, it.points[1]);
        let (weights, biases) = (depthwise.weight.as_chunks::<V>().0, depthwise.bias.as_chunks::<V>().0);
        let (planes, width) = (planes.as_chunks::<V>().0, depthwise.width);
        let taps = Taps { kernel: it.kernel, steps: [it.dilation[0] * width, it.dilation[1]], stride: it.stride[1] };
        for (row, out) in out.chunks_exact_mut(n_points * n_filters).enumerate() {
            let tail = tail.from(row * n_points, 0);
            for (at, vector) in vectors.clone().enumerate() {
                let rows = &planes[at * n_seen * width..][..n_seen * width][row * it.stride[0] * width..];
                let n_lanes = V.min(it.channels - vector * V);
                for plane in 0..n_planes {
                    let filters = vector * n_planes + plane;
                    let weight = &weights[filters * n_taps..][..n_taps];
                    let store =
                        Store { tail, n_filters, first: vector * V * n_planes + plane, step: n_planes, n_lanes };
                    let mut x = 0;
                    while x < n_points {
                        let (rows, n) = (&rows[x * taps.stride..], n_points - x);
                        if n > GROUP {
                            taps.sum::<I, V, S, K, 2>(rows, weight, biases[filters], |sums| {
                                store.store(x, n, sums, out);
                            });
                            x += 2 * GROUP;
                        } else {
                            taps.sum::<I, V, S, K, 1>(rows, weight, biases[filters], |sums| {
                                store.store(x, n, sums, out);
                            });
                            x += GROUP;
                        }
                    }
                }
            }
        }
    }
}

/// Where the filters of a vector of channels are in a point: the first one, how far they are apart, and how many.
#[derive(Clone, Copy)]
struct Store<'a> {
    tail: Tail<'a>,
    n_filters: usize,
    first: usize,
    step: usize,
    n_lanes: usize,
}

impl Store<'_> {
    /// Writes `n` points from `x` on, or as many as there are sums of.
    #[inline(always)]
    fn store<const V: usize, const H: usize>(self, x: usize, n: usize, sums: &[[[f32; V]; GROUP]; H], out: &mut [f32]) {
        if self.step == 1 && self.n_lanes == V {
            // The sums stay in registers: loops of known lengths compute none of their places.
            for (h, sums) in sums.iter().enumerate() {
                for (i, &sums) in sums.iter().enumerate() {
                    let at = h * GROUP + i;
                    if at >= n {
                        return;
                    }
                    let to = &mut out[(x + at) * self.n_filters + self.first..][..V];
                    to.copy_from_slice(&self.tail.apply(x + at, self.first, sums));
                }
            }
        } else {
            let sums = *sums;
            for (at, sums) in sums.as_flattened().iter().take(n).enumerate() {
                for (lane, &sum) in sums[..self.n_lanes].iter().enumerate() {
                    let filter = self.first + lane * self.step;
                    [out[(x + at) * self.n_filters + filter]] = self.tail.apply(x + at, filter, [sum]);
                }
            }
        }
    }
}

/// Where taps lie in padded rows.
#[derive(Clone, Copy)]
struct Taps {
    kernel: [usize; 2],
    /// The pixels between the rows of the kernel, and between its columns.
    steps: [usize; 2],
    stride: usize,
}

impl Taps {
    /// Gives `store` the sums of `H` groups of points whose rows begin here: at a stride of `S`, with `K` columns of the kernel side by
    /// side, or at any and with any where these are zero.
    #[inline(always)]
    fn sum<I: Isa, const V: usize, const S: usize, const K: usize, const H: usize>(
        self,
        rows: &[[f32; V]],
        weight: &[[f32; V]],
        bias: [f32; V],
        store: impl FnOnce(&[[[f32; V]; GROUP]; H]),
    ) {
        let ([n_rows, n_columns], [down, right]) = (self.kernel, self.steps);
        let (stride, n_columns, right) = if K == 0 { (self.stride, n_columns, right) } else { (S, K, 1) };
        // These stay in registers, which takes that no place among them is computed, and loops that are short.
        let mut sums = [[bias; GROUP]; H];
        for kh in 0..n_rows {
            let row = &rows[kh * down..][..(H * GROUP - 1) * stride + (n_columns - 1) * right + 1];
            let weight = &weight[kh * n_columns..][..n_columns];
            for kw in 0..n_columns {
                let weight = weight[kw];
                for h in 0..H {
                    for i in 0..GROUP {
                        let from = row[kw * right + (h * GROUP + i) * stride];
                        for lane in 0..V {
                            sums[h][i][lane] = GemmElement::mul_add::<I>(from[lane], weight[lane], sums[h][i][lane]);
                        }
                    }
                }
            }
        }
        store(&sums);
    }
}
