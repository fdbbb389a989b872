//! Convolutions of each channel by itself. Vectors lie along the channels, which are side by side in memory, and registers
//! hold the sums of several points of a row. Taps in the padding are left out: above and below for a whole row of points,
//! and at both ends of a row for each point.

use crate::fused::convolution::Geometry;
use crate::fused::epilogue::{Folded, Tail};
use crate::gemm::GemmElement;
use crate::gemm::blocked::Epilogue;
use crate::numeric::isa::{self, Isa, Work};
use crate::numeric::parallel;
use std::ops::Range;
use tracefx_core::Result;
use tracefx_core::allocate::collected;

/// The most points of a row that are summed up together, and how many where fewer are left.
const MANY: usize = 8;
const SOME: usize = 4;

/// A convolution whose filters read one channel each; of each channel, so many.
pub(super) struct Depthwise {
    geometry: Geometry,
    /// The filters of a channel lie in other planes: `[multiplier, KH, KW, C]`.
    weight: Vec<f32>,
    /// What their sums start from, `[multiplier, C]`.
    bias: Vec<f32>,
}

impl Depthwise {
    /// Packs filters `[C * multiplier, 1, KH, KW]`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn new(geometry: Geometry, weight: &[f32], folded: &Folded) -> Result<Self> {
        let (n_taps, n_channels, n_out) = (geometry.n_taps(), geometry.channels, geometry.n_out());
        let filter = |plane: usize, channel: usize| channel * n_out + plane;
        let element = |at: usize| {
            let (plane, tap) = (at / n_channels / n_taps, at / n_channels % n_taps);
            weight[filter(plane, at % n_channels) * n_taps + tap]
        };
        let weight = collected((0..weight.len()).map(element))?;
        let bias = (0..geometry.filters).map(|at| folded.bias(filter(at / n_channels, at % n_channels)));
        Ok(Depthwise { geometry, weight, bias: collected(bias)? })
    }

    pub(super) fn run(&self, input: &[f32], tail: Tail<'_>, out: &mut [f32]) {
        let row = self.geometry.points[1] * self.geometry.filters;
        let n_rows = (parallel::GRAIN / (row * self.geometry.n_taps())).max(1);
        parallel::parts_mut(out, n_rows * row, |first, out| {
            isa::run(Rows { depthwise: self, input, tail, first: first / row, out });
        });
    }
}

/// Some rows of points, from the `first` one of all images on.
struct Rows<'a> {
    depthwise: &'a Depthwise,
    input: &'a [f32],
    tail: Tail<'a>,
    first: usize,
    out: &'a mut [f32],
}

impl Work for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let row = self.depthwise.geometry.points[1] * self.depthwise.geometry.filters;
        for (at, out) in self.out.chunks_exact_mut(row).enumerate() {
            let row = Row::new(self.depthwise, self.input, self.tail, self.first + at);
            match I::WIDTH {
                64 => row.fill::<I, 16, 64>(out),
                32 => row.fill::<I, 8, 32>(out),
                _ => row.fill::<I, 4, 16>(out),
            }
            self.tail.finish(out);
        }
    }
}

/// A row of points.
struct Row<'a> {
    depthwise: &'a Depthwise,
    /// The image.
    image: &'a [f32],
    tail: Tail<'a>,
    /// The first point, of all.
    point: usize,
    /// The row of the padded image that its first taps see.
    y: usize,
    /// The taps that lie in the image.
    taps: Range<usize>,
}

impl<'a> Row<'a> {
    #[inline(always)]
    fn new(depthwise: &'a Depthwise, input: &'a [f32], tail: Tail<'a>, row: usize) -> Self {
        let it = &depthwise.geometry;
        let image = &input[row / it.points[0] * it.image_len()..][..it.image_len()];
        let y = row % it.points[0] * it.stride[0];
        Row { depthwise, image, tail, point: row * it.points[1], y, taps: it.taps_inside(0, y) }
    }

    /// Fills it, by vectors of `ONE` channels for several points, and by `FOUR` of them for a point alone.
    #[inline(always)]
    fn fill<I: Isa, const ONE: usize, const FOUR: usize>(&self, out: &mut [f32]) {
        let it = &self.depthwise.geometry;
        let (inside, n_channels) = (it.inside_row(), it.channels);
        let whole = 0..it.kernel[1];
        for plane in 0..it.n_out() {
            let mut x = 0;
            while x < it.points[1] {
                let left = if inside.contains(&x) { inside.end - x } else { 0 };
                let n_inside = inside.len();
                // The last points are summed up once more with those before them rather than alone.
                if left > SOME && n_inside >= MANY && n_channels >= ONE {
                    let first = x.min(inside.end - MANY);
                    self.points::<I, MANY, ONE>(plane, first, whole.clone(), out);
                    x = first + MANY;
                } else if left > 1 && n_inside >= SOME && n_channels >= ONE {
                    let first = x.min(inside.end - SOME);
                    self.points::<I, SOME, ONE>(plane, first, whole.clone(), out);
                    x = first + SOME;
                } else {
                    let taps = it.taps_inside(1, x * it.stride[1]);
                    if n_channels >= FOUR {
                        self.points::<I, 1, FOUR>(plane, x, taps, out);
                    } else if n_channels >= ONE {
                        self.points::<I, 1, ONE>(plane, x, taps, out);
                    } else {
                        self.points::<I, 1, 1>(plane, x, taps, out);
                    }
                    x += 1;
                }
            }
        }
    }

    /// Fills all channels of `P` points, of which there are at least `V`. The last vector may begin within the one before.
    #[inline(always)]
    fn points<I: Isa, const P: usize, const V: usize>(
        &self,
        plane: usize,
        x: usize,
        taps: Range<usize>,
        out: &mut [f32],
    ) {
        let it = &self.depthwise.geometry;
        let mut channel = 0;
        while channel < it.channels {
            let first = channel.min(it.channels - V);
            let mut sums = [[0.0; V]; P];
            self.sums::<I, P, V>(plane, x, taps.clone(), first, &mut sums);
            for (at, sums) in sums.iter().enumerate() {
                let (point, to) = (self.point + x + at, &mut out[(x + at) * it.filters..][..it.filters]);
                if it.filters == it.channels {
                    to[first..][..V].copy_from_slice(&self.tail.apply(point, first, *sums));
                } else {
                    for (channel, &sum) in (first..).zip(sums) {
                        let filter = channel * it.n_out() + plane;
                        [to[filter]] = self.tail.apply(point, filter, [sum]);
                    }
                }
            }
            channel = first + V;
        }
    }

    /// The sums of `V` channels of `P` points, all of whose `taps` lie in the image.
    #[inline(always)]
    fn sums<I: Isa, const P: usize, const V: usize>(
        &self,
        plane: usize,
        x: usize,
        taps: Range<usize>,
        channel: usize,
        res: &mut [[f32; V]; P],
    ) {
        let it = &self.depthwise.geometry;
        let n_channels = it.channels;
        let bias = self.depthwise.bias[plane * n_channels + channel..].first_chunk::<V>();
        // These stay in registers, which takes that no place among them is computed.
        let mut sums = [*bias.expect("each filter has a number"); P];
        if self.taps.is_empty() || taps.is_empty() {
            return *res = sums;
        }
        let (down, right) = (it.dilation[0] * it.image[1] * n_channels, it.dilation[1] * n_channels);
        let place = |dim: usize, at: usize, tap: usize| at + tap * it.dilation[dim] - it.padding[dim];
        let (y, left) = (place(0, self.y, self.taps.start), place(1, x * it.stride[1], taps.start));
        let first = (y * it.image[1] + left) * n_channels + channel;
        // All points see as much of the image from their first tap on.
        let span = (self.taps.len() - 1) * down + (taps.len() - 1) * right + V;
        let mut points: [&[f32]; P] = [&[]; P];
        for (at, point) in points.iter_mut().enumerate() {
            *point = &self.image[first + at * it.stride[1] * n_channels..][..span];
        }
        let n_taps = it.n_taps();
        let weight = &self.depthwise.weight[plane * n_taps * n_channels..][..n_taps * n_channels];
        for (row, kh) in self.taps.clone().enumerate() {
            let weight = &weight[(kh * it.kernel[1] + taps.start) * n_channels + channel..];
            for at in 0..taps.len() {
                let weight = *weight[at * n_channels..].first_chunk::<V>().expect("each tap has a number");
                let place = row * down + at * right;
                for i in 0..P {
                    let from = points[i][place..].first_chunk::<V>().expect("each tap lies in the image");
                    for lane in 0..V {
                        sums[i][lane] = GemmElement::mul_add::<I>(from[lane], weight[lane], sums[i][lane]);
                    }
                }
            }
        }
        *res = sums;
    }
}
