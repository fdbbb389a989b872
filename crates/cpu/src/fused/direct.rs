//! Convolutions as products of their patches with the filters. The patches are never in memory: in a channels-last image
//! with its padding each row of a patch is a run of elements, which lies as far from the first one for every point (an
//! implicit product, as XNNPACK's indirect one without its table of pointers). Where padding or stride would make that
//! image large, blocks of patches are gathered.

use crate::fused::convolution::Geometry;
use crate::fused::epilogue::{Folded, Tail};
use crate::fused::padding::PaddedLayout;
use crate::fused::product::Packed;
use crate::gemm::MatrixView;
use crate::gemm::blocked::{LhsRows, ROWS};
use crate::numeric::isa::{self, Isa, Work};
use crate::numeric::{parallel, scratch};
use tracefx_core::Result;
use tracefx_core::allocate::{collected, try_collected};

/// The elements of the padded images that are convolved together.
const TOGETHER: usize = 1 << 18;

/// The elements of a block of gathered patches.
const GATHERED: usize = 1 << 16;

/// The elements of a block of points whose channels are multiplied first.
const SCALED: usize = 1 << 16;

/// A convolution as a product, for each group.
pub(super) struct Direct {
    geometry: Geometry,
    weights: Vec<Packed>,
    patches: Patches,
}

/// Where patches are.
enum Patches {
    /// Each is a point of the image.
    Points,
    InRuns(Runs),
    Gathered,
}

/// Where the runs of patches lie in padded images.
struct Runs {
    layout: PaddedLayout,
    n_images: usize,
    /// Where the patch of each point of the images begins.
    starts: Vec<usize>,
    /// Where its runs begin, seen from there.
    runs: Vec<usize>,
    /// How long they are.
    len: usize,
}

impl Direct {
    /// Packs filters `[O, C / groups, KH, KW]`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn new(geometry: Geometry, weight: &[f32]) -> Result<Self> {
        let (n_taps, n_in, n_out) = (geometry.n_taps(), geometry.n_in(), geometry.n_out());
        let k = n_taps * n_in;
        let pack = |group: usize| {
            let weight = &weight[group * n_out * k..][..n_out * k];
            // The taps of a filter, and in each its channels, as patches have them.
            let element = |at: usize| weight[at / k * k + at % n_in * n_taps + at % k / n_in];
            Packed::new(&collected((0..n_out * k).map(element))?, n_out, k)
        };
        let weights = try_collected((0..geometry.groups).map(pack))?;
        let patches = if geometry.is_pointwise() && geometry.groups == 1 || k == 0 {
            Patches::Points
        } else {
            match PaddedLayout::of(&geometry) {
                Some(layout) => Patches::InRuns(Runs::new(&geometry, layout)?),
                None => Patches::Gathered,
            }
        };
        Ok(Direct { geometry, weights, patches })
    }

    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn run(&self, input: &[f32], folded: &Folded, tail: Tail<'_>, out: &mut [f32]) -> Result<()> {
        let it = &self.geometry;
        match &self.patches {
            Patches::Points => {
                let lhs = MatrixView { data: input, row: it.channels, col: 1 };
                self.multiply(it.n_images * it.n_points(), &|_| lhs, folded, tail, out);
                Ok(())
            }
            Patches::InRuns(runs) => {
                let blocks = input.chunks(runs.n_images * it.image_len());
                let outs = out.chunks_mut(runs.n_images * it.n_points() * it.filters);
                let mut first = 0;
                for (images, out) in blocks.zip(outs) {
                    let n_rows = out.len() / it.filters;
                    runs.layout.with(it, images, |data| {
                        let group = |at: usize| RunRows { runs, data, first: at * it.n_in() };
                        self.multiply(n_rows, &group, folded, tail.from(first, 0), out);
                        Ok(())
                    })?;
                    first += n_rows;
                }
                Ok(())
            }
            Patches::Gathered => self.run_gathered(input, folded, tail, out),
        }
    }

    /// Convolves each pixel, whose channels are multiplied by those of its image before. Some pixels at a time, so that the products
    /// are read where they are in the cache.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn run_scaled(
        &self,
        input: &[f32],
        scale: &[f32],
        folded: &Folded,
        tail: Tail<'_>,
        out: &mut [f32],
    ) -> Result<()> {
        let it = &self.geometry;
        let n_rows = (SCALED / it.channels.max(1) / ROWS).max(1) * ROWS;
        parallel::try_parts_mut(out, n_rows * it.filters, |first, out| {
            let (first, n_rows) = (first / it.filters, out.len() / it.filters);
            scratch::with::<f32, _>(n_rows * it.channels, |scaled| {
                let from = &input[first * it.channels..][..scaled.len()];
                isa::run(Scale { from, scale, first, n_points: it.n_points(), n_channels: it.channels, to: scaled });
                let lhs = MatrixView { data: &*scaled, row: it.channels, col: 1 };
                self.multiply(n_rows, &|_| lhs, folded, tail.from(first, 0), out);
                Ok(())
            })
        })
    }

    fn multiply<L: LhsRows<f32>>(
        &self,
        n_rows: usize,
        group: &dyn Fn(usize) -> L,
        folded: &Folded,
        tail: Tail<'_>,
        out: &mut [f32],
    ) {
        for (at, weight) in self.weights.iter().enumerate() {
            weight.multiply(n_rows, group(at), folded, at * self.geometry.n_out(), tail, out);
        }
    }

    fn run_gathered(&self, input: &[f32], folded: &Folded, tail: Tail<'_>, out: &mut [f32]) -> Result<()> {
        let it = &self.geometry;
        // The channels of all groups, one group after the other.
        let (k, n_in) = (it.n_taps() * it.n_in(), it.n_in());
        let n_rows = (GATHERED / (k * it.groups)).max(1);
        parallel::try_parts_mut(out, n_rows * it.filters, |first, out| {
            let (first, n_rows) = (first / it.filters, out.len() / it.filters);
            scratch::with::<f32, _>(n_rows * k * it.groups, |patches| {
                for (at, patch) in patches.chunks_exact_mut(k * it.groups).enumerate() {
                    for tap in 0..it.n_taps() {
                        let from = it.pixel(first + at, tap).map(|place| &input[place * it.channels..][..it.channels]);
                        for group in 0..it.groups {
                            let to = &mut patch[group * k + tap * n_in..][..n_in];
                            match from {
                                Some(from) => to.copy_from_slice(&from[group * n_in..][..n_in]),
                                None => to.fill(0.0),
                            }
                        }
                    }
                }
                let group = |at: usize| MatrixView { data: &patches[at * k..], row: k * it.groups, col: 1 };
                self.multiply(n_rows, &group, folded, tail.from(first, 0), out);
                Ok(())
            })
        })
    }
}

/// Multiplies the channels of points, from point `first` of all images on, by those of their images.
struct Scale<'a> {
    from: &'a [f32],
    scale: &'a [f32],
    first: usize,
    n_points: usize,
    n_channels: usize,
    to: &'a mut [f32],
}

impl Work for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let n = self.n_channels.max(1);
        for (at, (from, to)) in self.from.chunks_exact(n).zip(self.to.chunks_exact_mut(n)).enumerate() {
            let scale = &self.scale[(self.first + at) / self.n_points * n..][..n];
            for ((to, from), scale) in to.iter_mut().zip(from).zip(scale) {
                *to = from * scale;
            }
        }
    }
}

impl Runs {
    fn new(it: &Geometry, layout: PaddedLayout) -> Result<Self> {
        let n_images = (TOGETHER / layout.len(it)).min(it.n_images).max(1);
        let row = layout.width * it.channels;
        let start = |at: usize| {
            let (image, [y, x]) = it.point(at);
            (image * layout.height + y * it.stride[0]) * row + x * it.stride[1] * it.channels
        };
        // The taps of a row lie side by side where no channel of another group lies between them.
        let is_whole = it.groups == 1 && it.dilation[1] == 1;
        let taps = (0..it.n_taps())
            .step_by(if is_whole { it.kernel[1] } else { 1 })
            .map(|tap| tap / it.kernel[1] * it.dilation[0] * row + tap % it.kernel[1] * it.dilation[1] * it.channels);
        let len = it.n_in() * if is_whole { it.kernel[1] } else { 1 };
        Ok(Runs {
            layout,
            n_images,
            starts: collected((0..n_images * it.n_points()).map(start))?,
            runs: collected(taps)?,
            len,
        })
    }
}

/// The patches of padded images in one group.
#[derive(Clone, Copy)]
struct RunRows<'a> {
    runs: &'a Runs,
    data: &'a [f32],
    /// The first channel of the group.
    first: usize,
}

impl LhsRows<f32> for RunRows<'_> {
    #[inline(always)]
    fn start(&self, row: usize) -> usize {
        self.runs.starts[row] + self.first
    }

    #[inline(always)]
    fn run(&self, depth: usize) -> (usize, usize) {
        let (run, at) = (depth / self.runs.len, depth % self.runs.len);
        (self.runs.runs[run] + at, self.runs.len - at)
    }

    #[inline(always)]
    fn data(&self) -> &[f32] {
        self.data
    }

    fn has(&self, n_rows: usize, k: usize) -> bool {
        n_rows <= self.runs.starts.len() && k == self.runs.runs.len() * self.runs.len
    }
}
