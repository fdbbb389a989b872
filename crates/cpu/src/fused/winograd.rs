//! Convolutions with 3×3 taps by Winograd's minimal filtering F(4×4, 3×3): sixteen points of a tile take 36 multiplications
//! for each channel and filter instead of 144 (A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016).
//!
//! With `d` the 6×6 pixels that a tile sees and `g` a filter, the points are `Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A`. What stands between
//! the transforms is a product of matrices over the channels, tiles by filters, for each of the 36 places. The matrices are
//! those of polynomials that are interpolated at 0, ±a, ±b and ∞. With the usual points a = 1 and b = 2 the result loses
//! three binary digits; with a = 1/√2 and b = √2, which are as far from one on either side, it loses one at most.
//!
//! The largest error that random images and filters showed, of 4 to 256 channels, is 10 ε of the sum of the magnitudes of a
//! point's terms, where that of a plain sum is 3 ε. It belongs to the tile rather than to the point: a pixel that is larger
//! than its neighbours by many orders of magnitude, or infinite, is felt by all points of its tile.

use crate::fused::convolution::Geometry;
use crate::fused::epilogue::{Folded, Tail};
use crate::gemm::blocked::{Epilogue, PackedRhs};
use crate::gemm::{Extent, MatrixView, MatrixViewMut, Start, gemm_packed};
use crate::numeric::isa::{Isa, Level, Work};
use crate::numeric::{parallel, scratch};
use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};
use std::ops::Range;
use tracefx_core::Result;
use tracefx_core::allocate::{filled, try_collected};

/// The points of a tile in a dimension, the pixels that they see, and the places of a transformed tile.
const TILE: usize = 4;
const SEEN: usize = TILE + 2;
const PLACES: usize = SEEN * SEEN;

/// The channels that are transformed together.
const CHANNELS: usize = 32;

/// The elements of a block of transformed tiles before and behind the product, which stay in a second-level cache.
const BLOCK: usize = 1 << 18;

/// The tiles that a block has even so where there are many channels, because all filters are read for each block.
const LEAST: usize = 48;

/// The fewest tiles that are worth reading the filters, which are four times as large as before.
const FEW: usize = 12;

/// A convolution whose filters are transformed.
pub(super) struct Winograd {
    geometry: Geometry,
    /// The tiles of an image.
    tiles: [usize; 2],
    /// The rows of tiles, of all images, in a block. Those of an image are whole blocks, or a block is of whole images.
    n_rows: usize,
    /// The filters of each place, `[C, O]`.
    filters: Vec<PackedRhs<f32>>,
}

impl Winograd {
    /// Whether a convolution can be computed so and is worth it.
    pub(super) fn is_for(it: &Geometry) -> bool {
        let is_small = it.kernel == [3; 2] && it.stride == [1; 2] && it.dilation == [1; 2] && it.groups == 1;
        // Tiles at the lower and right edges have points that are not there.
        let n_tiles = it.n_images * it.points[0].div_ceil(TILE) * it.points[1].div_ceil(TILE);
        let is_full = 4 * it.n_images * it.n_points() >= 3 * n_tiles * TILE * TILE;
        is_small && is_full && n_tiles >= FEW && it.channels >= CHANNELS && it.filters >= CHANNELS
    }

    /// Transforms filters `[O, C, 3, 3]`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn new(geometry: Geometry, weight: &[f32]) -> Result<Self> {
        let (n_channels, n_filters) = (geometry.channels, geometry.filters);
        // A column for each filter, one after the other, for each place.
        let mut places = filled(0.0, PLACES * n_channels * n_filters)?;
        for (at, filter) in weight.as_chunks::<9>().0.iter().enumerate() {
            for (place, it) in transformed_filter(filter).iter().flatten().enumerate() {
                places[place * n_channels * n_filters + at] = *it as f32;
            }
        }
        let pack = |columns: &[f32]| {
            let columns = MatrixView { data: columns, row: 1, col: n_channels };
            PackedRhs::new(Level::of_fast_steps(), n_filters, n_channels, &columns)
        };
        let filters = try_collected(places.chunks_exact(n_channels * n_filters).map(pack))?;
        let tiles = geometry.points.map(|it| it.div_ceil(TILE));
        let n_most = (BLOCK / PLACES / (n_channels + n_filters)).max(LEAST).div_ceil(tiles[1]);
        let n_rows = match n_most / tiles[0] {
            0 => tiles[0].div_ceil(tiles[0].div_ceil(n_most)),
            n_images => n_images.min(geometry.n_images) * tiles[0],
        };
        Ok(Winograd { geometry, tiles, n_rows, filters })
    }

    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn run(&self, input: &[f32], folded: &Folded, tail: Tail<'_>, out: &mut [f32]) -> Result<()> {
        let it = &self.geometry;
        let row = it.points[1] * it.filters;
        let n_images = (self.n_rows / self.tiles[0]).max(1);
        // Rows of points of a block within an image, or of whole images.
        let n_points = if self.n_rows < self.tiles[0] { self.n_rows * TILE } else { n_images * it.points[0] };
        let mut first = 0;
        for out in out.chunks_mut(n_images * it.points[0] * row) {
            let images = first..first + out.len() / (it.points[0] * row);
            parallel::try_parts_mut(out, n_points * row, |at, out| {
                let rows = at / row / TILE..(at + out.len()).div_ceil(row).div_ceil(TILE);
                let rows = if images.len() == 1 { rows } else { 0..self.tiles[0] };
                self.block(input, images.clone(), rows, folded, tail, out)
            })?;
            first = images.end;
        }
        Ok(())
    }

    /// Computes some rows of tiles of some images, all of them where there are several images.
    fn block(
        &self,
        input: &[f32],
        images: Range<usize>,
        rows: Range<usize>,
        folded: &Folded,
        tail: Tail<'_>,
        out: &mut [f32],
    ) -> Result<()> {
        let it = &self.geometry;
        let (n_channels, n_filters, level) = (it.channels, it.filters, Level::best());
        let n_tiles = images.len() * rows.len() * self.tiles[1];
        let tile = |at: usize| {
            let (row, x) = (at / self.tiles[1], at % self.tiles[1]);
            (images.start + row / rows.len(), [(rows.start + row % rows.len()) * TILE, x * TILE])
        };
        scratch::with::<f32, _>(PLACES * n_tiles * n_channels, |pixels| {
            for at in 0..n_tiles {
                let (image, first) = tile(at);
                let image = &input[image * it.image_len()..][..it.image_len()];
                level.run(TransformPixels { geometry: it, image, first, at, n_tiles, to: pixels });
            }
            scratch::with::<f32, _>(PLACES * n_tiles * n_filters, |sums| {
                let pixels = &*pixels;
                parallel::try_parts_mut(sums, n_tiles * n_filters, |first, sums| {
                    let place = first / (n_tiles * n_filters);
                    let size = Extent { m: n_tiles, n: n_filters, k: n_channels };
                    let lhs = &pixels[place * n_tiles * n_channels..][..n_tiles * n_channels];
                    let lhs = MatrixView { data: lhs, row: n_channels, col: 1 };
                    let sums = MatrixViewMut { data: sums, row: n_filters };
                    gemm_packed(size, sums, lhs, &self.filters[place], Start::Zero)
                })?;
                // The first point of the block, of all.
                let (image, [y, _]) = tile(0);
                let start = image * it.n_points() + y * it.points[1];
                for at in 0..n_tiles {
                    let (image, first) = tile(at);
                    let point = image * it.n_points() + first[0] * it.points[1] + first[1] - start;
                    let tail = tail.from(start, 0);
                    level.run(TransformSums { geometry: it, sums, at, n_tiles, first, point, folded, tail, out });
                }
                Ok(())
            })
        })
    }
}

const A: f32 = FRAC_1_SQRT_2;
const B: f32 = SQRT_2;

/// `G g Gᵀ`.
fn transformed_filter(filter: &[f32; 9]) -> [[f64; SEEN]; SEEN] {
    let (a, b) = (std::f64::consts::FRAC_1_SQRT_2, std::f64::consts::SQRT_2);
    let transformed = |[x, y, z]: [f64; 3]| {
        // The squares of the points are 1/2 and 2, and the denominators are the products of the differences of points.
        let (a, b) = ((x + z / 2.0, a * y), (x + z * 2.0, b * y));
        let (of_a, of_b) = (-2.0 / 3.0, 1.0 / 6.0);
        [x, of_a * (a.0 + a.1), of_a * (a.0 - a.1), of_b * (b.0 + b.1), of_b * (b.0 - b.1), z]
    };
    let columns = [0, 1, 2].map(|j| transformed([0, 1, 2].map(|i| f64::from(filter[3 * i + j]))));
    std::array::from_fn(|i| transformed(columns.map(|it| it[i])))
}

/// `Bᵀ d` for a column of each channel.
#[inline(always)]
fn transform_pixels(d: [&[f32; CHANNELS]; SEEN], to: &mut [[f32; CHANNELS]; SEEN]) {
    for c in 0..CHANNELS {
        let d: [f32; SEEN] = [d[0][c], d[1][c], d[2][c], d[3][c], d[4][c], d[5][c]];
        let (even_a, odd_a) = (d[4] - 2.0 * d[2], A * (d[3] - 2.0 * d[1]));
        let (even_b, odd_b) = (d[4] - 0.5 * d[2], B * (d[3] - 0.5 * d[1]));
        to[0][c] = d[0] - 2.5 * d[2] + d[4];
        to[1][c] = even_a + odd_a;
        to[2][c] = even_a - odd_a;
        to[3][c] = even_b + odd_b;
        to[4][c] = even_b - odd_b;
        to[5][c] = d[1] - 2.5 * d[3] + d[5];
    }
}

/// `Aᵀ m` for a column of each filter.
#[inline(always)]
fn transform_sums(m: [&[f32; CHANNELS]; SEEN], to: &mut [[f32; CHANNELS]; TILE]) {
    for c in 0..CHANNELS {
        let m: [f32; SEEN] = [m[0][c], m[1][c], m[2][c], m[3][c], m[4][c], m[5][c]];
        let (even_a, odd_a) = (m[1] + m[2], A * (m[1] - m[2]));
        let (even_b, odd_b) = (m[3] + m[4], B * (m[3] - m[4]));
        to[0][c] = m[0] + even_a + even_b;
        to[1][c] = odd_a + odd_b;
        to[2][c] = 0.5 * even_a + 2.0 * even_b;
        to[3][c] = 0.5 * odd_a + 2.0 * odd_b + m[5];
    }
}

/// Some channels of a row that has at least one of them; zeros where it ends.
#[inline(always)]
fn channels(row: &[f32], first: usize) -> [f32; CHANNELS] {
    let row = &row[first..];
    match row.first_chunk::<CHANNELS>() {
        Some(it) => *it,
        None => {
            let mut res = [0.0; CHANNELS];
            res[..row.len()].copy_from_slice(row);
            res
        }
    }
}

/// Writes the channels of a row that are there.
#[inline(always)]
fn set_channels(row: &mut [f32], first: usize, from: &[f32; CHANNELS]) {
    let row = &mut row[first..];
    match row.first_chunk_mut::<CHANNELS>() {
        Some(it) => *it = *from,
        None => {
            let n = row.len();
            row.copy_from_slice(&from[..n]);
        }
    }
}

/// Writes `Bᵀ d B` of a tile to its row of each place.
struct TransformPixels<'a> {
    geometry: &'a Geometry,
    image: &'a [f32],
    /// The first point of the tile.
    first: [usize; 2],
    /// Which tile it is, and of how many.
    at: usize,
    n_tiles: usize,
    to: &'a mut [f32],
}

impl Work for TransformPixels<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let it = self.geometry;
        let n_channels = it.channels;
        let pixel = |i: usize, j: usize| -> Option<&[f32]> {
            let place = |dim: usize, at: usize| {
                (self.first[dim] + at).checked_sub(it.padding[dim]).filter(|&at| at < it.image[dim])
            };
            Some(&self.image[(place(0, i)? * it.image[1] + place(1, j)?) * n_channels..][..n_channels])
        };
        for first in (0..n_channels).step_by(CHANNELS) {
            let mut columns = [[[0.0; CHANNELS]; SEEN]; SEEN];
            for (j, column) in columns.iter_mut().enumerate() {
                let mut d = [[0.0; CHANNELS]; SEEN];
                for (i, d) in d.iter_mut().enumerate() {
                    if let Some(pixel) = pixel(i, j) {
                        *d = channels(pixel, first);
                    }
                }
                transform_pixels([&d[0], &d[1], &d[2], &d[3], &d[4], &d[5]], column);
            }
            for i in 0..SEEN {
                let mut row = [[0.0; CHANNELS]; SEEN];
                let [a, b, c, d, e, f] = &columns;
                transform_pixels([&a[i], &b[i], &c[i], &d[i], &e[i], &f[i]], &mut row);
                for (j, row) in row.iter().enumerate() {
                    let to = ((i * SEEN + j) * self.n_tiles + self.at) * n_channels;
                    set_channels(&mut self.to[to..][..n_channels], first, row);
                }
            }
        }
    }
}

/// Writes the points `Aᵀ m A` of a tile, as far as they are there.
struct TransformSums<'a> {
    geometry: &'a Geometry,
    sums: &'a [f32],
    /// Which tile it is, and of how many.
    at: usize,
    n_tiles: usize,
    /// The first point of the tile, in its image and in what is written.
    first: [usize; 2],
    point: usize,
    folded: &'a Folded,
    tail: Tail<'a>,
    out: &'a mut [f32],
}

impl Work for TransformSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let it = self.geometry;
        let n_filters = it.filters;
        let [n_rows, n_columns] = [0, 1].map(|dim| TILE.min(it.points[dim] - self.first[dim]));
        for first in (0..n_filters).step_by(CHANNELS) {
            let mut columns = [[[0.0; CHANNELS]; TILE]; SEEN];
            for (j, column) in columns.iter_mut().enumerate() {
                let mut m = [[0.0; CHANNELS]; SEEN];
                for (i, m) in m.iter_mut().enumerate() {
                    let from = ((i * SEEN + j) * self.n_tiles + self.at) * n_filters;
                    *m = channels(&self.sums[from..][..n_filters], first);
                }
                transform_sums([&m[0], &m[1], &m[2], &m[3], &m[4], &m[5]], column);
            }
            let bias = self.folded.channels::<CHANNELS>(first);
            for i in 0..n_rows {
                let mut row = [[0.0; CHANNELS]; TILE];
                let [a, b, c, d, e, f] = &columns;
                transform_sums([&a[i], &b[i], &c[i], &d[i], &e[i], &f[i]], &mut row);
                for (j, row) in row[..n_columns].iter().enumerate() {
                    let point = self.point + i * it.points[1] + j;
                    let to = &mut self.out[point * n_filters..][..n_filters][first..];
                    let mut sums = *row;
                    sums.iter_mut().zip(&bias).for_each(|(sum, bias)| *sum += bias);
                    match to.first_chunk_mut::<CHANNELS>() {
                        Some(to) => *to = self.tail.apply(point, first, sums),
                        None => {
                            for (at, to) in to.iter_mut().enumerate() {
                                [*to] = self.tail.apply(point, first + at, [sums[at]]);
                            }
                        }
                    }
                }
            }
        }
        for i in 0..n_rows {
            let row = &mut self.out[(self.point + i * it.points[1]) * n_filters..][..n_columns * n_filters];
            self.tail.finish(row.into());
        }
    }
}
