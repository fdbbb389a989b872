//! Convolutions of each channel by itself. Vectors lie along the channels. Rows of the image are copied with their padding as
//! the taps get there, to a plane for each vector, where neighbours lie side by side; the sums of several points stay in
//! registers, and results are written in the order of memory.

use crate::fused::convolution::Geometry;
use crate::fused::epilogue::{Folded, Tail};
use crate::gemm::GemmElement;
use crate::gemm::blocked::Epilogue;
use crate::numeric::isa::{Isa, Level, Work};
use crate::numeric::{parallel, scratch};
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
        let width = points * geometry.stride[1] + (geometry.kernel[1] - 1) * geometry.dilation[1] + 1;
        Ok(Depthwise { geometry, level, n_planes, width, weight, bias: collected(bias)? })
    }

    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn run(&self, input: &[f32], tail: Tail<'_>, out: &mut [f32]) -> Result<()> {
        let it = &self.geometry;
        let row = it.points[1] * it.filters;
        let n_rows = (SHARED / (row * it.n_taps())).clamp(1, it.points[0]);
        let n_padded = (n_rows - 1) * it.stride[0] + (it.kernel[0] - 1) * it.dilation[0] + 1;
        let lanes = self.level.run(Lanes);
        let len = n_padded * self.width * it.channels.next_multiple_of(lanes);
        parallel::try_parts_mut(out, n_rows * row, |first, out| {
            scratch::with::<f32, _>(len, |padded| {
                let mut first = first / row;
                let mut left = out;
                // Rows of several images may be in a part.
                while !left.is_empty() {
                    let (image, y) = (first / it.points[0], first % it.points[0]);
                    let n = (left.len() / row).min(it.points[0] - y);
                    let (out, rest) = left.split_at_mut(n * row);
                    let image = &input[image * it.image_len()..][..it.image_len()];
                    let tail = tail.from(first * it.points[1], 0);
                    Band { depthwise: self, image, first: y, tail, padded, out }.fill();
                    tail.finish(out);
                    (first, left) = (first + n, rest);
                }
                Ok(())
            })
        })
    }
}

/// Some rows of points of an image.
struct Band<'a> {
    depthwise: &'a Depthwise,
    image: &'a [f32],
    first: usize,
    tail: Tail<'a>,
    padded: &'a mut [f32],
    out: &'a mut [f32],
}

impl Band<'_> {
    fn fill(self) {
        let Band { depthwise, image, first, tail, padded, out } = self;
        let (it, level, width) = (&depthwise.geometry, depthwise.level, depthwise.width);
        let plane = padded.len() / it.channels.div_ceil(level.run(Lanes));
        let mut n_padded = 0;
        for (y, out) in out.chunks_exact_mut(it.points[1] * it.filters).enumerate() {
            let reach = y * it.stride[0] + (it.kernel[0] - 1) * it.dilation[0] + 1;
            while n_padded < reach {
                level.run(Copy {
                    depthwise,
                    image,
                    y: first * it.stride[0] + n_padded,
                    padded,
                    plane,
                    to: n_padded * width,
                });
                n_padded += 1;
            }
            let tail = tail.from(y * it.points[1], 0);
            level.run(Row { depthwise, padded, plane, first: y * it.stride[0] * width, tail, out });
        }
    }
}

/// Copies a row of the padded image to a row of each plane.
struct Copy<'a> {
    depthwise: &'a Depthwise,
    image: &'a [f32],
    y: usize,
    padded: &'a mut [f32],
    /// The elements of a plane, all of whose pixels have `V` of them, and the pixel where the row begins in it.
    plane: usize,
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
        let y = self.y.checked_sub(it.padding[0]).filter(|&y| y < it.image[0]);
        let from = y.map(|y| &self.image[y * it.image[1] * it.channels..][..it.image[1] * it.channels]);
        for (at, plane) in self.padded.chunks_exact_mut(self.plane).enumerate() {
            let to = &mut plane.as_chunks_mut::<V>().0[self.to..][..self.depthwise.width];
            let Some(from) = from else {
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
                    if n_points - x > GROUP {
                        let mut sums = [[[0.0; V]; GROUP]; 2];
                        taps.sum::<I, V, S, K, 2>(rows, weight, biases[filters], &mut sums);
                        store.store(x, &sums.as_flattened()[..(n_points - x).min(2 * GROUP)], out);
                        x += 2 * GROUP;
                    } else {
                        let mut sums = [[[0.0; V]; GROUP]; 1];
                        taps.sum::<I, V, S, K, 1>(rows, weight, biases[filters], &mut sums);
                        store.store(x, &sums.as_flattened()[..n_points - x], out);
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
    /// Writes points from `x` on.
    #[inline(always)]
    fn store<const V: usize>(self, x: usize, sums: &[[f32; V]], out: &mut [f32]) {
        if self.step == 1 && self.n_lanes == V {
            for (at, &sums) in sums.iter().enumerate() {
                let to = &mut out[(x + at) * self.n_filters + self.first..][..V];
                to.copy_from_slice(&self.tail.apply(x + at, self.first, sums));
            }
        } else {
            for (at, sums) in sums.iter().enumerate() {
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
    /// The sums of `H` groups of points whose rows begin here: at a stride of `S`, with `K` columns of the kernel side by side,
    /// or at any and with any where these are zero.
    #[inline(always)]
    fn sum<I: Isa, const V: usize, const S: usize, const K: usize, const H: usize>(
        self,
        rows: &[[f32; V]],
        weight: &[[f32; V]],
        bias: [f32; V],
        res: &mut [[[f32; V]; GROUP]; H],
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
        *res = sums;
    }
}
