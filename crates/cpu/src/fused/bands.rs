//! A depthwise convolution with the pointwise ones before it and behind it, some rows of points at a time, so that what lies
//! between them stays in the cache. Each number is the same sum as when the convolutions follow each other whole.

use crate::fused::convolution::{Geometry, folded_weight, four};
use crate::fused::depthwise::Depthwise;
use crate::fused::epilogue::{Folded, Tail};
use crate::fused::product::Packed;
use crate::gemm::MatrixView;
use crate::numeric::{parallel, scratch};
use std::ops::Range;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_plan::{Activation, ConvolutionLayer};

/// The elements of the rows that the depthwise convolution sees at a time: they and what is made of them fit a second-level
/// cache.
const SEEN: usize = 1 << 16;

/// The convolutions, with their filters packed.
pub(super) struct Bands {
    /// The channels of the images.
    channels: usize,
    expand: Option<Pointwise>,
    geometry: Geometry,
    depthwise: Depthwise,
    activation: Activation,
    project: Option<Pointwise>,
    /// The rows of points that are computed at a time.
    n_rows: usize,
}

/// A convolution of each pixel.
struct Pointwise {
    weight: Packed,
    folded: Folded,
    channels: usize,
    filters: usize,
    activation: Activation,
}

impl Pointwise {
    fn new(layer: &ConvolutionLayer<Tensor>) -> Result<Self> {
        let (folded, weight) = folded_weight(layer)?;
        let [filters, channels] = [0, 1].map(|dim| layer.weight.sizes()[dim]);
        let weight = Packed::new(&weight, filters, channels)?;
        Ok(Pointwise { weight, folded, channels, filters, activation: layer.epilogue.activation })
    }

    fn run(&self, input: &[f32], tail: Tail<'_>, out: &mut [f32]) {
        let lhs = MatrixView { data: input, row: self.channels, col: 1 };
        self.weight.multiply(out.len() / self.filters, lhs, &self.folded, 0, tail, out);
    }
}

impl Bands {
    /// Packs the filters of a depthwise convolution with at most one pointwise one on either side.
    ///
    /// # Errors
    /// `NotImplemented` for others; `OutOfMemory`.
    pub(super) fn new(images: [usize; 4], layers: &[ConvolutionLayer<Tensor>]) -> Result<Self> {
        let is_depthwise = |it: &ConvolutionLayer<Tensor>| it.is_depthwise(it.weight.sizes());
        let is_pointwise = |it: &ConvolutionLayer<Tensor>| it.is_pointwise(it.weight.sizes());
        let (expand, depthwise, project) = match layers {
            [expand, depthwise, project] => (Some(expand), depthwise, Some(project)),
            [expand, depthwise] if is_depthwise(depthwise) => (Some(expand), depthwise, None),
            [depthwise, project] => (None, depthwise, Some(project)),
            _ => return Err(not_these()),
        };
        if !is_depthwise(depthwise) || !expand.into_iter().chain(project).all(is_pointwise) {
            return Err(not_these());
        }
        let [n, h, w, channels] = images;
        let hidden = expand.map_or(channels, |it| it.weight.sizes()[0]);
        let geometry = Geometry::new([n, h, w, hidden], four(depthwise.weight.sizes()), depthwise.window());
        if !Depthwise::is_for(&geometry) {
            return Err(not_these());
        }
        let (folded, weight) = folded_weight(depthwise)?;
        let most = (SEEN / (w * hidden).max(1)).saturating_sub(geometry.span(0)) / geometry.stride[0] + 1;
        Ok(Bands {
            channels,
            expand: expand.map(Pointwise::new).transpose()?,
            depthwise: Depthwise::new(geometry, &weight, &folded)?,
            activation: depthwise.epilogue.activation,
            project: project.map(Pointwise::new).transpose()?,
            n_rows: most.min(geometry.points[0]).max(1),
            geometry,
        })
    }

    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn run(&self, input: &[f32], tail: Tail<'_>, out: &mut [f32]) -> Result<()> {
        let it = &self.geometry;
        let row = it.points[1] * tail.n_channels();
        let part = self.rows_of_a_part(parallel::n_threads()).max(self.n_rows);
        parallel::try_parts_mut(out, part * row, |first, out| {
            let (mut first, mut left) = (first / row, out);
            while !left.is_empty() {
                let (image, y) = (first / it.points[0], first % it.points[0]);
                let n = (left.len() / row).min(it.points[0] - y);
                let (out, rest) = left.split_at_mut(n * row);
                let len = it.image[0] * it.image[1] * self.channels;
                self.rows(&input[image * len..][..len], y, tail.from(first * it.points[1], 0), out)?;
                (first, left) = (first + n, rest);
            }
            Ok(())
        })
    }

    /// The rows of points that a thread computes without a pause. The same bits come of any, but a part expands the rows at its edges that
    /// the next one expands, too: two parts for each thread, or one where these would be many.
    fn rows_of_a_part(&self, n_threads: usize) -> usize {
        let it = &self.geometry;
        let n_rows = it.n_images * it.points[0];
        if n_threads == 1 {
            return n_rows;
        }
        let n_twice = if self.expand.is_some() { it.span(0).saturating_sub(it.stride[0]) } else { 0 };
        let part = n_rows.div_ceil(2 * n_threads);
        if part * it.stride[0] < 4 * n_twice { n_rows.div_ceil(n_threads) } else { part }
    }

    /// Computes rows of points of an image from row `y` on.
    fn rows(&self, image: &[f32], y: usize, tail: Tail<'_>, out: &mut [f32]) -> Result<()> {
        let it = &self.geometry;
        let (n_points, row) = (it.points[1], it.points[1] * tail.n_channels());
        let n_seen = (self.n_rows - 1) * it.stride[0] + it.span(0);
        let n_hidden = self.expand.as_ref().map_or(0, |_| n_seen * it.image[1] * it.channels);
        let n_sums = self.project.as_ref().map_or(0, |_| self.n_rows * n_points * it.filters);
        scratch::with::<f32, _>(self.depthwise.planes_len(self.n_rows), |planes| {
            scratch::with::<f32, _>(n_hidden, |hidden| {
                scratch::with::<f32, _>(n_sums, |sums| {
                    let mut kept = 0..0;
                    for (at, out) in out.chunks_mut(self.n_rows * row).enumerate() {
                        let (first, n) = (at * self.n_rows, out.len() / row);
                        let seen = match &self.expand {
                            None => image,
                            Some(expand) => {
                                self.see(expand, image, y + first, n, &mut kept, hidden);
                                &*hidden
                            }
                        };
                        let tail = tail.from(first * n_points, 0);
                        match &self.project {
                            None => self.depthwise.sum(seen, kept.start, y + first, tail, planes, out),
                            Some(project) => {
                                let sums = &mut sums[..n * n_points * it.filters];
                                let inner = Tail::new(None, it.filters, self.activation);
                                self.depthwise.sum(seen, kept.start, y + first, inner, planes, sums);
                                project.run(sums, tail, out);
                            }
                        }
                    }
                    Ok(())
                })
            })
        })
    }

    /// Has `hidden` hold the rows of what the first convolution makes of the image that `n` rows of points from `y` on see, of
    /// which it holds those `kept`.
    fn see(&self, expand: &Pointwise, image: &[f32], y: usize, n: usize, kept: &mut Range<usize>, hidden: &mut [f32]) {
        let it = &self.geometry;
        let within = |row: usize| row.saturating_sub(it.padding[0]).min(it.image[0]);
        let seen = within(y * it.stride[0])..within((y + n - 1) * it.stride[0] + it.span(0));
        let (row, n_kept) = (it.image[1] * it.channels, kept.end.saturating_sub(seen.start));
        if n_kept > 0 {
            hidden.copy_within((seen.start - kept.start) * row..kept.len() * row, 0);
        }
        let new = &image[(seen.start + n_kept) * it.image[1] * self.channels..seen.end * it.image[1] * self.channels];
        let hidden = &mut hidden[n_kept * row..seen.len() * row];
        expand.run(new, Tail::new(None, it.channels, expand.activation), hidden);
        *kept = seen;
    }
}

fn not_these() -> Diagnostic {
    let what = "convolutions in bands are a depthwise one beside pointwise ones";
    Diagnostic::new(Code::NotImplemented, what)
}
