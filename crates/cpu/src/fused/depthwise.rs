//! Convolutions of each channel by itself. Vectors lie along the channels. Rows of the image are copied with their padding as
//! the taps get there, to a plane for each vector, where neighbours lie side by side; the sums of several points stay in
//! registers, and results are written in the order of memory.

use crate::fused::convolution::Geometry;
use crate::fused::epilogue::{Folded, Tail};
use crate::fused::padding::PaddedLayout;
use crate::gemm::GemmElement;
use crate::gemm::blocked::Epilogue;
use crate::numeric::isa::{Isa, Level, Work};
use crate::numeric::{parallel, scratch};
use std::ops::Range;
use tracefx_core::Result;
use tracefx_core::allocate::collected;

/// The points of a row that are summed up together: two groups of these, or one where no more are left.
const GROUP: usize = 4;

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

    /// The elements of so many rows of [`Planes`].
    pub(super) fn planes_len(&self, n_rows: usize) -> usize {
        n_rows * self.width * self.geometry.channels.next_multiple_of(self.level.run(Lanes))
    }

    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn run(&self, input: &[f32], tail: Tail<'_>, out: &mut [f32]) -> Result<()> {
        let it = &self.geometry;
        let row = it.points[1] * it.filters;
        let n_rows = (SHARED / (row * it.n_taps())).clamp(1, it.points[0]);
        let n_seen = (n_rows - 1) * it.stride[0] + it.span(0);
        parallel::try_parts_mut(out, n_rows * row, |first, out| {
            scratch::with::<f32, _>(self.planes_len(n_seen), |padded| {
                let (mut first, mut left) = (first / row, out);
                // Rows of several images may be in a part.
                while !left.is_empty() {
                    let (image, y) = (first / it.points[0], first % it.points[0]);
                    let n = (left.len() / row).min(it.points[0] - y);
                    let (out, rest) = left.split_at_mut(n * row);
                    let image = &input[image * it.image_len()..][..it.image_len()];
                    self.rows(image, y, tail.from(first * it.points[1], 0), padded, out);
                    (first, left) = (first + n, rest);
                }
                Ok(())
            })
        })
    }

    /// Computes rows of points of an image from row `y` on. Rows of the image come to the planes as the taps get there.
    fn rows(&self, image: &[f32], y: usize, tail: Tail<'_>, padded: &mut [f32], out: &mut [f32]) {
        let it = &self.geometry;
        let row = it.points[1] * it.filters;
        let reach = |y: usize| y * it.stride[0] + it.span(0);
        let mut planes = Planes::new(self, padded);
        let mut missing = planes.advance(y * it.stride[0]..reach(y + out.len() / row - 1));
        for (at, out) in out.chunks_exact_mut(row).enumerate() {
            planes.fill(missing.start..reach(y + at), 0, image);
            missing.start = reach(y + at);
            planes.sum(y + at, tail.from(at * it.points[1], 0), out);
        }
    }
}

/// Rows of an image with its padding, of each vector of channels a plane.
pub(super) struct Planes<'a> {
    depthwise: &'a Depthwise,
    padded: &'a mut [f32],
    /// The elements of a plane, all of whose pixels have as many of them as a vector.
    plane: usize,
    /// The rows of the padded image that are there.
    rows: Range<usize>,
}

impl<'a> Planes<'a> {
    /// Planes with no rows yet, in memory of [`Depthwise::planes_len`].
    pub(super) fn new(depthwise: &'a Depthwise, padded: &'a mut [f32]) -> Self {
        let lanes = depthwise.level.run(Lanes);
        let plane = padded.len() / depthwise.geometry.channels.div_ceil(lanes);
        Planes { depthwise, padded, plane, rows: 0..0 }
    }

    /// Makes room for these rows, none of which lies before those that are there, and says which ones are missing.
    pub(super) fn advance(&mut self, rows: Range<usize>) -> Range<usize> {
        let kept = self.rows.end.saturating_sub(rows.start);
        if kept > 0 && rows.start > self.rows.start {
            let row = self.depthwise.width * self.depthwise.level.run(Lanes);
            let (from, end) = ((rows.start - self.rows.start) * row, self.rows.len() * row);
            self.padded.chunks_exact_mut(self.plane).for_each(|it| it.copy_within(from..end, 0));
        }
        let missing = rows.start + kept..rows.end;
        self.rows = rows;
        missing
    }

    /// Fills rows with those of an image, of which `image` has the ones from `first` on.
    pub(super) fn fill(&mut self, rows: Range<usize>, first: usize, image: &[f32]) {
        let (it, level) = (&self.depthwise.geometry, self.depthwise.level);
        let len = it.image[1] * it.channels;
        for row in rows {
            let y = row.checked_sub(it.padding[0]).filter(|&y| y < it.image[0]);
            level.run(Copy {
                depthwise: self.depthwise,
                from: y.map(|y| &image[(y - first) * len..][..len]),
                padded: self.padded,
                plane: self.plane,
                to: (row - self.rows.start) * self.depthwise.width,
            });
        }
    }

    /// Computes rows of points from row `first` on, all of whose taps are there.
    pub(super) fn sum(&self, first: usize, tail: Tail<'_>, out: &mut [f32]) {
        let Planes { depthwise, plane, .. } = *self;
        let it = &depthwise.geometry;
        for (at, out) in out.chunks_exact_mut(it.points[1] * it.filters).enumerate() {
            let first = ((first + at) * it.stride[0] - self.rows.start) * depthwise.width;
            let tail = tail.from(at * it.points[1], 0);
            depthwise.level.run(Row { depthwise, padded: self.padded, plane, first, tail, out });
            tail.finish(out.into());
        }
    }
}

/// Copies a row of the padded image to a row of each plane.
struct Copy<'a> {
    depthwise: &'a Depthwise,
    /// The row of the image, or nothing in the padding.
    from: Option<&'a [f32]>,
    padded: &'a mut [f32],
    plane: usize,
    /// The pixel where the row begins in a plane.
    to: usize,
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
        let it = &self.depthwise.geometry;
        for (at, plane) in self.padded.chunks_exact_mut(self.plane).enumerate() {
            let to = &mut plane.as_chunks_mut::<V>().0[self.to..][..self.depthwise.width];
            let Some(from) = self.from else {
                to.fill([0.0; V]);
                continue;
            };
            let (before, to) = to.split_at_mut(it.padding[1].min(to.len()));
            before.fill([0.0; V]);
            let (to, after) = to.split_at_mut(it.image[1].min(to.len()));
            after.fill([0.0; V]);
            let channels = at * V..it.channels.min((at + 1) * V);
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

/// A row of points.
struct Row<'a> {
    depthwise: &'a Depthwise,
    padded: &'a [f32],
    plane: usize,
    /// The pixel of a plane where the first taps of the row lie.
    first: usize,
    tail: Tail<'a>,
    out: &'a mut [f32],
}

impl Work for Row<'_> {
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

impl Row<'_> {
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
        let Row { depthwise, padded, plane, first, tail, out } = self;
        let it = &depthwise.geometry;
        let (n_planes, n_taps, n_filters, n_points) = (depthwise.n_planes, it.n_taps(), it.filters, it.points[1]);
        let (weights, biases) = (depthwise.weight.as_chunks::<V>().0, depthwise.bias.as_chunks::<V>().0);
        let taps =
            Taps { kernel: it.kernel, steps: [it.dilation[0] * depthwise.width, it.dilation[1]], stride: it.stride[1] };
        for vector in 0..it.channels.div_ceil(V) {
            let rows = &padded[vector * plane..][..plane].as_chunks::<V>().0[first..];
            let n_lanes = V.min(it.channels - vector * V);
            for plane in 0..n_planes {
                let filters = vector * n_planes + plane;
                let weight = &weights[filters * n_taps..][..n_taps];
                let store = Store { tail, n_filters, first: vector * V * n_planes + plane, step: n_planes, n_lanes };
                let mut x = 0;
                while x < n_points {
                    let rows = &rows[x * taps.stride..];
                    let n = n_points - x;
                    if n > GROUP {
                        taps.sum::<I, V, S, K, 2>(rows, weight, biases[filters], |sums| store.store(x, n, sums, out));
                        x += 2 * GROUP;
                    } else {
                        taps.sum::<I, V, S, K, 1>(rows, weight, biases[filters], |sums| store.store(x, n, sums, out));
                        x += GROUP;
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
