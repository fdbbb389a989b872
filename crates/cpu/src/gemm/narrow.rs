//! Products in float32 whose right side stays in fewer bits in memory, which is what a product of few rows reads: a token
//! of a language model reads each weight once. A panel at a time is widened into the first-level cache, and then multiplied as
//! any other. Here are those in float16 and bfloat16; [`quantized`](crate::gemm::quantized) has those in integers.

use crate::gemm::MatrixView;
use crate::gemm::blocked::{BlockedGemm, Epilogue, LhsRows, Panels, ROWS, block_depth, panel_width};
use crate::numeric::isa::{Level, prefetch_to_second_level, widen_halves};
use crate::numeric::map::convert_all;
use crate::numeric::parallel;
use bytemuck::cast_slice;
use std::ops::Range;
use tracefx_core::allocate::filled;
use tracefx_core::{DType, Element, Result};

/// The most elements of a panel: as many as the widest tile has columns, in a block of rows.
const MOST: usize = 32 * 256;

/// The rows of a panel that are laid out at a time, so that neither what is read nor what is written leaves the cache on the way.
const TURNED: usize = 16;

/// The right side of products, laid out in panels of some rows of some columns, as wide and as deep as those of
/// [`PackedRhs`](crate::gemm::blocked::PackedRhs).
pub(crate) trait NarrowColumns: Sync + Sized {
    /// The instructions that it is laid out for.
    fn level(&self) -> Level;

    /// The columns and the rows.
    fn sizes(&self) -> [usize; 2];

    /// Writes the panel of these rows, which are a block, from the column `first` on.
    fn widen(&self, rows: Range<usize>, first: usize, panel: &mut [f32]);

    /// Asks for the panel of these rows from the column `first` on.
    fn prefetch(&self, rows: Range<usize>, first: usize);

    /// Computes a product with it.
    fn run<E: Epilogue<f32>>(gemm: &BlockedGemm<'_, f32, MatrixView<'_, f32>, Self, E>) {
        gemm.run_narrow();
    }
}

/// The right side of products, laid out as [`PackedRhs`](crate::gemm::blocked::PackedRhs) lays it out, in its own dtype.
pub(crate) struct NarrowRhs<S> {
    level: Level,
    n: usize,
    k: usize,
    panels: Vec<S>,
}

impl<S: Element> NarrowRhs<S> {
    /// Lays out `k` rows of `n` columns.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no room for them.
    pub(crate) fn new(level: Level, n: usize, k: usize, rhs: MatrixView<'_, S>) -> Result<Self> {
        let width = panel_width::<f32>(level);
        let (n_cols, depth) = (n.next_multiple_of(width), block_depth::<f32>());
        let mut panels = filled(S::zeroed(), n_cols * k)?;
        parallel::parts_mut(&mut panels, (n_cols * depth).max(1), |at, block| {
            let first = at / n_cols;
            for (at, panel) in block.chunks_mut(width * depth.min(k - first)).enumerate() {
                for (step, rows) in panel.chunks_mut(width * TURNED).enumerate() {
                    let (row, col) = (first + step * TURNED, at * width);
                    for j in 0..width.min(n - col) {
                        let from = |i: usize| rhs.data[(row + i) * rhs.row + (col + j) * rhs.col];
                        rows.iter_mut().skip(j).step_by(width).enumerate().for_each(|(i, to)| *to = from(i));
                    }
                }
            }
        });
        Ok(NarrowRhs { level, n, k, panels })
    }
}

impl<S: Element> NarrowRhs<S> {
    /// The panel of these rows from the column `first` on.
    fn panel(&self, rows: &Range<usize>, first: usize) -> &[S] {
        let width = panel_width::<f32>(self.level);
        let n_cols = self.n.next_multiple_of(width);
        &self.panels[rows.start * n_cols + first * rows.len()..][..width * rows.len()]
    }
}

impl<S: Element> NarrowColumns for NarrowRhs<S> {
    fn level(&self) -> Level {
        self.level
    }

    fn sizes(&self) -> [usize; 2] {
        [self.n, self.k]
    }

    fn widen(&self, rows: Range<usize>, first: usize, panel: &mut [f32]) {
        widen(self.panel(&rows, first), panel);
    }

    fn prefetch(&self, rows: Range<usize>, first: usize) {
        self.panel(&rows, first).chunks(32).for_each(|it| prefetch_to_second_level(cast_slice(it)));
    }
}

impl<L: LhsRows<f32>, C: NarrowColumns, E: Epilogue<f32>> BlockedGemm<'_, f32, L, C, E> {
    /// As [`BlockedGemm::run_packed`].
    ///
    /// # Panics
    /// When the right side has other rows or columns.
    pub(super) fn run_narrow(&self) {
        assert!(self.lhs.has(self.size.m, self.size.k), "the left side lies in rows");
        let is_alike = [self.size.n, self.size.k] == self.rhs.sizes() && self.level == self.rhs.level();
        assert!(is_alike, "the right side is laid out for this");
        self.share(&|rows, cols| self.narrow_part(rows, cols));
    }

    /// Some rows of the left side with some columns, which begin a panel.
    fn narrow_part(&self, rows: Range<usize>, cols: Range<usize>) {
        let (width, depth) = (panel_width::<f32>(self.level), block_depth::<f32>());
        let mut wide = [0.0; MOST];
        for first in rows.clone().step_by(ROWS) {
            let rows = first..rows.end.min(first + ROWS);
            for first in (0..self.size.k).step_by(depth) {
                let depth = first..self.size.k.min(first + depth);
                for first in cols.clone().step_by(width) {
                    let wide = &mut wide[..width * depth.len()];
                    if first + width < cols.end {
                        self.rhs.prefetch(depth.clone(), first + width);
                    }
                    self.rhs.widen(depth.clone(), first, wide);
                    let cols = first..cols.end.min(first + width);
                    self.multiply(rows.clone(), cols, depth.clone(), Panels::new(depth.len(), wide));
                }
            }
        }
    }
}

/// Widens elements that lie one behind the other.
fn widen<S: Element>(from: &[S], to: &mut [f32]) {
    let n = if S::DTYPE == DType::Float16 { widen_halves(cast_slice(from), to) } else { 0 };
    convert_all(&from[n..], &mut to[n..]);
}
