//! Blocked products. The left side is read where it lies, in rows; the right side is laid out in panels, which are as wide
//! as a tile of the result that fits the registers, a block of rows at a time, so that a panel stays in the cache. What
//! follows a product ([`Epilogue`]) is done to a tile before it leaves the registers.
//!
//! Each element of a result is a sum in one order, given by the number of its terms alone: neither the threads nor the
//! sizes of the matrices around it change its bits; but where the right side are integers ([`quantized`](crate::gemm::quantized)).

use crate::gemm::output_view::{BlockRows, OutputView};
use crate::gemm::{Extent, GemmElement, MatrixView, Start};
#[cfg(target_family = "wasm")]
use crate::numeric::isa::AddProducts;
use crate::numeric::isa::{Isa, Level, Work, prefetch_to_second_level};
use crate::numeric::{parallel, scratch};
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use tracefx_core::Result;
use tracefx_core::allocate::filled;

/// The right side of a product: whatever can be laid out in panels.
pub(crate) trait RhsColumns<T>: Sync {
    /// Writes `panel[p][j]`: the element in row `rows.start + p` and column `first + j`, for `n` columns. The other columns
    /// of the panel may hold anything.
    fn pack<const N: usize>(&self, rows: Range<usize>, first: usize, n: usize, panel: &mut [[T; N]]);
}

impl<T: GemmElement> RhsColumns<T> for MatrixView<'_, T> {
    #[inline(always)]
    fn pack<const N: usize>(&self, rows: Range<usize>, first: usize, n: usize, panel: &mut [[T; N]]) {
        if self.col == 1 {
            for (p, to) in rows.zip(panel) {
                let from = &self.data[p * self.row + first..][..n];
                match from.first_chunk::<N>() {
                    Some(from) => *to = *from,
                    None => to[..n].copy_from_slice(from),
                }
            }
        } else if self.row == 1 {
            // Some rows at a time, so that neither what is read nor what is written leaves the cache on the way.
            for (at, panel) in panel.chunks_mut(TURNED).enumerate() {
                for j in 0..n {
                    let from = &self.data[(first + j) * self.col + rows.start + at * TURNED..][..panel.len()];
                    match (from.as_array::<TURNED>(), panel.as_mut_array::<TURNED>()) {
                        // A fixed number of stores; a loop becomes scattering instructions, which are slower.
                        (Some(from), Some(to)) => (0..TURNED).for_each(|p| to[p][j] = from[p]),
                        _ => panel.iter_mut().zip(from).for_each(|(to, &from)| to[j] = from),
                    }
                }
            }
        } else {
            for (p, to) in rows.zip(panel) {
                let from = |j: usize| self.data[p * self.row + (first + j) * self.col];
                to[..n].iter_mut().enumerate().for_each(|(j, to)| *to = from(j));
            }
        }
    }
}

/// The left side of a product: whatever has rows whose elements lie in contiguous runs, the same ones in each row.
pub(crate) trait LhsRows<T>: Copy + Sync {
    /// Where a row begins.
    fn start(&self, row: usize) -> usize;

    /// Where the elements from `depth` on lie, seen from the start of their row, and how many of them lie side by side.
    fn run(&self, depth: usize) -> (usize, usize);

    /// All elements.
    fn data(&self) -> &[T];

    /// Whether rows of `k` elements, so many of them, lie in the elements.
    fn has(&self, n_rows: usize, k: usize) -> bool;
}

/// Only of matrices whose rows are contiguous, which [`LhsRows::has`] says.
impl<T: GemmElement> LhsRows<T> for MatrixView<'_, T> {
    #[inline(always)]
    fn start(&self, row: usize) -> usize {
        row * self.row
    }

    #[inline(always)]
    fn run(&self, depth: usize) -> (usize, usize) {
        (depth, usize::MAX - depth)
    }

    #[inline(always)]
    fn data(&self) -> &[T] {
        self.data
    }

    fn has(&self, n_rows: usize, k: usize) -> bool {
        self.col == 1 && n_rows.saturating_sub(1) * self.row + k <= self.data.len()
    }
}

/// What is done to the elements of a product once their sums are complete.
pub(crate) trait Epilogue<T>: Sync {
    /// What becomes of elements of row `i` from column `j` on, on their way from the registers.
    fn apply<const N: usize>(&self, i: usize, j: usize, sums: [T; N]) -> [T; N];

    /// Changes them once more when a panel is through: what takes too many instructions to stand in every tile.
    fn finish(&self, rows: BlockRows<'_, T>);

    /// Whether there is something to finish.
    fn is_unfinished(&self) -> bool;
}

/// Nothing.
impl<T> Epilogue<T> for () {
    #[inline(always)]
    fn apply<const N: usize>(&self, _: usize, _: usize, sums: [T; N]) -> [T; N] {
        sums
    }

    #[inline(always)]
    fn finish(&self, _: BlockRows<'_, T>) {}

    #[inline(always)]
    fn is_unfinished(&self) -> bool {
        false
    }
}

/// The rows of a panel that are written at a time where the right side lies in columns.
const TURNED: usize = 16;

/// The bytes of the right side's rows in a block: a panel of them fills half of the smallest first-level cache.
const DEPTH: usize = 1024;

/// The rows of the left side that are multiplied with a panel before the next one: a block of them, and of the right side,
/// fill half of a small second-level cache.
pub(crate) const ROWS: usize = 144;

/// The columns of the right side in a block, in panels.
const MOST_PANELS: usize = 16;

/// Multiplications that are worth a thread.
const SHARED: u64 = 1 << 17;

/// What is computed: `target = epilogue(start + lhs * rhs)`.
pub(crate) struct BlockedGemm<'a, T, L, C, E> {
    pub(crate) level: Level,
    pub(crate) size: Extent,
    pub(crate) target: OutputView<'a, T>,
    pub(crate) lhs: L,
    pub(crate) rhs: &'a C,
    pub(crate) start: Start<'a, T>,
    pub(crate) epilogue: E,
}

impl<T: GemmElement, L: LhsRows<T>, C: RhsColumns<T>, E: Epilogue<T>> BlockedGemm<'_, T, L, C, E> {
    /// Computes it, on as many threads as there are and the sizes are worth.
    ///
    /// # Errors
    /// `OutOfMemory` where the right side cannot be laid out.
    pub(crate) fn run(&self) -> Result<()> {
        let Extent { m, n, k } = self.size;
        assert!(self.lhs.has(m, k), "the left side lies in rows");
        let [height, width] = self.level.run(TileShape(PhantomData::<T>));
        let n_panels = n.div_ceil(width);
        if self.size.n_terms() <= SHARED {
            (0..n)
                .step_by(MOST_PANELS * width)
                .try_for_each(|first| self.columns(first..n.min(first + MOST_PANELS * width)))
        } else if n_panels >= 8 || m < 8 * height {
            let n_cols = panels_of_a_part(self.size, n_panels) * width;
            parallel::try_for_each(n.div_ceil(n_cols), |part| self.columns(part * n_cols..n.min((part + 1) * n_cols)))
        } else {
            self.in_rows(n_panels * width, m.div_ceil(8).next_multiple_of(height).max(4 * height))
        }
    }

    /// One part with its own columns.
    fn columns(&self, cols: Range<usize>) -> Result<()> {
        let Extent { m, k, .. } = self.size;
        let width = panel_width::<T>(self.level);
        let (n_cols, depth) = (cols.len().next_multiple_of(width), block_depth::<T>());
        scratch::with::<T, _>(n_cols * depth.min(k), |packed| {
            for first in (0..k).step_by(depth) {
                let depth = first..k.min(first + depth);
                let packed = &mut packed[..n_cols * depth.len()];
                self.level.run(Pack { rhs: self.rhs, cols: cols.clone(), depth: depth.clone(), packed });
                self.multiply(0..m, cols.clone(), depth.clone(), Panels::new(depth.len(), packed));
            }
            Ok(())
        })
    }

    /// Lays out all columns, `n_cols` with those that fill the last panel, and shares the rows.
    fn in_rows(&self, n_cols: usize, n_rows: usize) -> Result<()> {
        let Extent { m, n, k } = self.size;
        let depth = block_depth::<T>();
        let block = |at: usize| at * depth..k.min((at + 1) * depth);
        scratch::with::<T, _>(n_cols * k, |packed| {
            parallel::parts_mut(packed, n_cols * depth, |at, packed| {
                self.level.run(Pack { rhs: self.rhs, cols: 0..n, depth: block(at / (n_cols * depth)), packed });
            });
            let packed = &*packed;
            parallel::for_each(m.div_ceil(n_rows), |part| {
                let rows = part * n_rows..m.min((part + 1) * n_rows);
                for (at, packed) in packed.chunks(n_cols * depth).enumerate() {
                    self.multiply(rows.clone(), 0..n, block(at), Panels::new(block(at).len(), packed));
                }
            });
            Ok(())
        })
    }
}

/// The panels of a part where the columns are shared.
fn panels_of_a_part(size: Extent, n_panels: usize) -> usize {
    n_panels.div_ceil((size.n_terms() / SHARED).clamp(1, 8) as usize).min(MOST_PANELS)
}

/// The right side of products, laid out once: all panels of a block of its rows, then those of the next block.
pub(crate) struct PackedRhs<T, P = Vec<T>> {
    level: Level,
    n: usize,
    k: usize,
    panels: P,
    element: PhantomData<T>,
}

impl<T: GemmElement> PackedRhs<T> {
    /// Lays out `k` rows of `n` columns.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no room for them.
    pub(crate) fn new<C: RhsColumns<T>>(level: Level, n: usize, k: usize, rhs: &C) -> Result<Self> {
        let mut panels = filled(T::ZERO, Self::room(level, n, k))?;
        PackedRhs::within(level, n, k, rhs, &mut panels);
        Ok(PackedRhs { level, n, k, panels, element: PhantomData })
    }

    /// The elements of the panels of `k` rows of `n` columns.
    pub(crate) fn room(level: Level, n: usize, k: usize) -> usize {
        n.next_multiple_of(panel_width::<T>(level)) * k
    }
}

impl<T, P> PackedRhs<T, P> {
    /// The instructions that it is laid out for.
    pub(super) fn level(&self) -> Level {
        self.level
    }
}

impl<'a, T: GemmElement> PackedRhs<T, &'a [T]> {
    /// Lays out `k` rows of `n` columns in these elements, of which there are as many as [`PackedRhs::room`] says.
    pub(crate) fn within<C: RhsColumns<T>>(level: Level, n: usize, k: usize, rhs: &C, panels: &'a mut [T]) -> Self {
        let width = panel_width::<T>(level);
        let (n_cols, block) = (n.next_multiple_of(width), block_depth::<T>());
        parallel::parts_mut(panels, (n_cols * block).max(1), |at, packed| {
            let first = at / n_cols;
            level.run(Pack { rhs, cols: 0..n, depth: first..k.min(first + block), packed });
        });
        PackedRhs { level, n, k, panels, element: PhantomData }
    }
}

impl<T: GemmElement, L: LhsRows<T>, P: Deref<Target = [T]> + Sync, E: Epilogue<T>>
    BlockedGemm<'_, T, L, PackedRhs<T, P>, E>
{
    /// As [`Self::run`], on panels that are there already, of at least so many rows and columns.
    ///
    /// # Panics
    /// When they have fewer.
    pub(crate) fn run_packed(&self) {
        let Extent { m, n, k } = self.size;
        assert!(self.lhs.has(m, k), "the left side lies in rows");
        assert!(
            n <= self.rhs.n && k <= self.rhs.k && self.level == self.rhs.level,
            "the right side is laid out for this"
        );
        self.share(&|rows, cols| self.part(rows, cols));
    }

    /// Some rows of the left side with some columns, which begin a panel. A block of rows is complete before the next one
    /// begins, so that its sums stay in the cache.
    fn part(&self, rows: Range<usize>, cols: Range<usize>) {
        let width = panel_width::<T>(self.level);
        let n_cols = self.rhs.n.next_multiple_of(width);
        let n_rows = |first: usize| block_depth::<T>().min(self.rhs.k - first);
        let panels = |first: usize, cols: Range<usize>| {
            let block = &self.rhs.panels[first * n_cols..][..n_cols * n_rows(first)];
            &block[cols.start * n_rows(first)..][..cols.len().next_multiple_of(width) * n_rows(first)]
        };
        for first in rows.clone().step_by(ROWS) {
            let rows = first..rows.end.min(first + ROWS);
            let is_last = rows.end == self.size.m;
            for first in (0..self.size.k).step_by(block_depth::<T>()) {
                let depth = first..self.size.k.min(first + n_rows(first));
                let next = if depth.end < self.size.k { depth.end } else { 0 };
                // The columns may end within a panel, and the next part begins with the panel behind it.
                let after = if next == 0 && is_last { cols.end.next_multiple_of(width) } else { cols.start };
                let after = panels(next, after..n_cols.min(after + width));
                let packed = panels(first, cols.clone());
                self.multiply(rows.clone(), cols.clone(), depth, Panels { n_rows: n_rows(first), packed, after });
            }
        }
    }
}

impl<T: GemmElement, L: LhsRows<T>, C: Sync, E: Epilogue<T>> BlockedGemm<'_, T, L, C, E> {
    /// Has `part` compute rows and columns, which begin a panel, on as many threads as there are and the sizes are worth.
    pub(super) fn share(&self, part: &(dyn Fn(Range<usize>, Range<usize>) + Sync)) {
        let Extent { m, n, .. } = self.size;
        let [height, width] = self.level.run(TileShape(PhantomData::<T>));
        let n_panels = n.div_ceil(width);
        if self.size.n_terms() <= SHARED {
            part(0..m, 0..n);
        } else if n_panels >= 8 || m < 8 * height {
            let n_cols = panels_of_a_part(self.size, n_panels) * width;
            parallel::for_each(n.div_ceil(n_cols), |at| part(0..m, at * n_cols..n.min((at + 1) * n_cols)));
        } else {
            let n_rows = m.div_ceil(8).next_multiple_of(height).max(4 * height);
            parallel::for_each(m.div_ceil(n_rows), |at| part(at * n_rows..m.min((at + 1) * n_rows), 0..n));
        }
    }

    /// Multiplies some rows with panels.
    pub(super) fn multiply(&self, rows: Range<usize>, cols: Range<usize>, depth: Range<usize>, panels: Panels<'_, T>) {
        let (target, lhs, start) = (&self.target, self.lhs, self.start.at(depth.start));
        // An epilogue follows the last terms alone.
        let epilogue = (depth.end == self.size.k).then_some(&self.epilogue);
        self.level.run(Multiply {
            #[cfg(target_family = "wasm")]
            relaxed: self.level.relaxed(),
            target,
            lhs,
            start,
            epilogue,
            rows,
            cols,
            depth,
            panels,
        });
    }
}

impl<L: LhsRows<f32>, C: Sync, E: Epilogue<f32>> BlockedGemm<'_, f32, L, C, E> {
    /// Writes complete sums of row `i`, of columns that begin a panel, with what follows them.
    pub(super) fn finish_row(&self, i: usize, cols: Range<usize>, sums: &[f32]) {
        // What a row of a single one gives is the panel itself.
        self.level.run(Multiply {
            #[cfg(target_family = "wasm")]
            relaxed: None,
            target: &self.target,
            lhs: MatrixView { data: &[1.0], row: 0, col: 1 },
            start: self.start,
            epilogue: Some(&self.epilogue),
            rows: i..i + 1,
            cols,
            depth: 0..1,
            panels: Panels::new(1, sums),
        });
    }
}

/// Panels of some columns of the right side, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Panels<'a, T> {
    /// The rows of each; a product takes the first of them.
    n_rows: usize,
    packed: &'a [T],
    /// The panel that is read after these, if it is known.
    after: &'a [T],
}

impl<'a, T> Panels<'a, T> {
    /// Panels of so many rows.
    pub(super) fn new(n_rows: usize, packed: &'a [T]) -> Self {
        Panels { n_rows, packed, after: &[] }
    }
}

/// The rows of a block of the right side.
pub(super) fn block_depth<T>() -> usize {
    (DEPTH / size_of::<T>()).min(256)
}

/// The columns of a panel.
pub(super) fn panel_width<T: GemmElement>(level: Level) -> usize {
    let [_, width] = level.run(TileShape(PhantomData::<T>));
    width
}

/// Runs a block with `$M` and `$N` bound to the rows and columns of a tile that the registers of `$I` hold beside a row of
/// the right side and one element of the left side, and `$H` to half of the columns.
macro_rules! with_tile {
    ($I:ident, $T:ident, |$M:ident, $N:ident, $H:ident| $body:expr) => {{
        macro_rules! tile {
            ($m:literal, $n:literal) => {{
                const $M: usize = $m;
                const $N: usize = $n;
                const $H: usize = $n / 2;
                $body
            }};
        }
        match ($I::WIDTH, $I::REGISTERS, size_of::<$T>()) {
            _ if $T::IS_COMPLEX => tile!(2, 4),
            _ if !$T::IS_FLOAT => tile!(4, 8),
            (64, _, 8) => tile!(12, 16),
            (64, ..) => tile!(12, 32),
            (32, _, 8) => tile!(6, 8),
            (32, ..) => tile!(6, 16),
            (_, 32, 8) => tile!(8, 4),
            (_, 32, _) => tile!(8, 8),
            // The compilers of JavaScript engines keep eight sums in registers, and no more.
            (_, _, 8) => tile!(4, 4),
            _ => tile!(4, 8),
        }
    }};
}

pub(super) use with_tile;

/// The rows of a tile at the lower edge, where there are too few for a whole one.
const EDGE: usize = 4;

/// The columns that are written together at the right edge of a wider tile.
const EDGE_COLS: usize = 8;

/// The rows and columns of a tile.
struct TileShape<T>(PhantomData<T>);

impl<T: GemmElement> Work for TileShape<T> {
    type Output = [usize; 2];

    #[inline(always)]
    fn run<I: Isa>(self) -> [usize; 2] {
        with_tile!(I, T, |M, N, _H| [M, N])
    }
}

/// Lays out some columns of the right side: `depth` rows of a panel, then those of the next panel.
struct Pack<'a, T, C> {
    rhs: &'a C,
    cols: Range<usize>,
    depth: Range<usize>,
    packed: &'a mut [T],
}

impl<T: GemmElement, C: RhsColumns<T>> Work for Pack<'_, T, C> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        with_tile!(I, T, |_M, N, _H| {
            let panels = self.packed.as_chunks_mut::<N>().0.chunks_exact_mut(self.depth.len());
            for (at, panel) in panels.enumerate() {
                let first = self.cols.start + at * N;
                self.rhs.pack::<N>(self.depth.clone(), first, (self.cols.end - first).min(N), panel);
            }
        });
    }
}

/// Multiplies some rows of the left side with panels.
struct Multiply<'a, T, L, E> {
    #[cfg(target_family = "wasm")]
    relaxed: Option<AddProducts>,
    target: &'a OutputView<'a, T>,
    lhs: L,
    start: Start<'a, T>,
    epilogue: Option<&'a E>,
    rows: Range<usize>,
    cols: Range<usize>,
    depth: Range<usize>,
    panels: Panels<'a, T>,
}

impl<T: GemmElement, L: LhsRows<T>, E: Epilogue<T>> Work for Multiply<'_, T, L, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        with_tile!(I, T, |M, N, H| self.tiles::<I, M, N, H>());
    }
}

impl<T: GemmElement, L: LhsRows<T>, E: Epilogue<T>> Multiply<'_, T, L, E> {
    #[inline(always)]
    fn tiles<I: Isa, const M: usize, const N: usize, const H: usize>(&self) {
        for first in self.rows.clone().step_by(ROWS) {
            let rows = first..(first + ROWS).min(self.rows.end);
            let Panels { n_rows, packed, after } = self.panels;
            let mut panels = packed.as_chunks::<N>().0.chunks_exact(n_rows).enumerate().peekable();
            while let Some((at, panel)) = panels.next() {
                let first = self.cols.start + at * N;
                let cols = first..self.cols.end.min(first + N);
                let next = panels.peek().map_or(after.as_chunks::<N>().0, |&(_, next)| next);
                // Narrow tiles for floats alone: each kind of tile takes its time to compile.
                if T::IS_FLOAT && cols.len() <= H {
                    self.panel::<I, M, N, H>(rows.clone(), cols.clone(), panel, next);
                } else {
                    self.panel::<I, M, N, N>(rows.clone(), cols.clone(), panel, next);
                }
                self.finish(rows.clone(), cols);
            }
        }
    }

    /// Finishes what a panel gave, which is still in the cache.
    #[inline(always)]
    fn finish(&self, rows: Range<usize>, cols: Range<usize>) {
        if let Some(epilogue) = self.epilogue
            && epilogue.is_unfinished()
        {
            // SAFETY: as in `store`.
            epilogue.finish(unsafe { self.target.rows(rows, cols) });
        }
    }

    /// Multiplies some rows with the first `W` columns of a panel. Each tile asks for a part of the panel that is next, so that
    /// it comes while they are computed: all at once would be more than memory gives in the time of a tile.
    #[inline(always)]
    fn panel<I: Isa, const M: usize, const N: usize, const W: usize>(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        panel: &[[T; N]],
        next: &[[T; N]],
    ) {
        let mut parts = next.chunks(next.len().div_ceil(rows.len().div_ceil(M).max(1)).max(1));
        let mut i = rows.start;
        while i < rows.end {
            let next = parts.next().unwrap_or_default();
            if T::IS_FLOAT && rows.end - i == 1 {
                self.tile::<I, 1, N, W>(i..rows.end, cols.clone(), panel, next);
                i += 1;
            } else if T::IS_FLOAT && (rows.end - i).next_multiple_of(EDGE) < M {
                self.tile::<I, EDGE, N, W>(i..rows.end.min(i + EDGE), cols.clone(), panel, next);
                i += EDGE;
            } else {
                self.tile::<I, M, N, W>(i..rows.end.min(i + M), cols.clone(), panel, next);
                i += M;
            }
        }
    }

    #[inline(always)]
    fn tile<I: Isa, const M: usize, const N: usize, const W: usize>(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        panel: &[[T; N]],
        next: &[[T; N]],
    ) {
        // A tile at the lower edge repeats the last row, and writes none of the repetitions.
        let mut starts = [0; M];
        for (i, start) in starts.iter_mut().enumerate() {
            *start = self.lhs.start((rows.start + i).min(rows.end - 1));
        }
        let store = |sums: &[[T; W]; M]| {
            if self.target.has_dense_rows() {
                self.store(rows.clone(), cols.clone(), sums);
            } else {
                self.store_columns(rows.clone(), cols.clone(), sums);
            }
        };
        #[cfg(target_family = "wasm")]
        if let Some(relaxed) = self.relaxed
            && let Some(sums) = multiply_relaxed::<T, L, M, N, W>(relaxed, &self.lhs, starts, self.depth.clone(), panel)
        {
            return store(&sums);
        }
        multiply::<T, I, L, M, N, W>(&self.lhs, starts, self.depth.clone(), panel, next, store);
    }

    /// Writes a tile to a target whose rows are dense.
    #[inline(always)]
    fn store<const M: usize, const N: usize>(&self, rows: Range<usize>, cols: Range<usize>, sums: &[[T; N]; M]) {
        let (target, start) = (self.target, self.start);
        for (at, sums) in sums.iter().enumerate() {
            let i = rows.start + at;
            if i >= rows.end {
                break;
            }
            // SAFETY: the parts of a job have other rows or other columns, and a part goes through its tiles in turn.
            let to = unsafe { target.row(i, cols.clone()) };
            match to.first_chunk_mut::<N>() {
                Some(to) => *to = self.ended(i, cols.start, added(to, sums, start, i, cols.start)),
                None => self.store_edge(i, cols.start, to, sums),
            }
        }
    }

    /// Writes a part of a row of a tile, from column `j` on.
    #[inline(always)]
    fn store_edge<const N: usize>(&self, i: usize, j: usize, to: &mut [T], sums: &[T; N]) {
        let n_parts = if N > EDGE_COLS { to.len() / EDGE_COLS } else { 0 };
        let (parts, rest) = to.split_at_mut(n_parts * EDGE_COLS);
        for (at, to) in parts.as_chunks_mut::<EDGE_COLS>().0.iter_mut().enumerate() {
            let sums = sums[at * EDGE_COLS..].first_chunk().expect("a part lies in the row");
            let j = j + at * EDGE_COLS;
            *to = self.ended(i, j, added(to, sums, self.start, i, j));
        }
        for (at, to) in rest.iter_mut().enumerate() {
            let j = j + n_parts * EDGE_COLS + at;
            [*to] = self.ended(i, j, [self.start.of(i, j, *to).add(sums[n_parts * EDGE_COLS + at])]);
        }
    }

    /// As [`Self::store`], for a target whose columns are dense and whose rows are not.
    #[inline(always)]
    fn store_columns<const M: usize, const N: usize>(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        sums: &[[T; N]; M],
    ) {
        for (at, j) in cols.enumerate() {
            // SAFETY: as in `store`.
            let to = unsafe { self.target.column(rows.clone(), j) };
            for ((i, to), sums) in rows.clone().zip(to).zip(sums) {
                [*to] = self.ended(i, j, [self.start.of(i, j, *to).add(sums[at])]);
            }
        }
    }

    /// What the epilogue makes of sums, where they are complete.
    #[inline(always)]
    fn ended<const N: usize>(&self, i: usize, j: usize, sums: [T; N]) -> [T; N] {
        match self.epilogue {
            Some(it) => it.apply(i, j, sums),
            None => sums,
        }
    }
}

/// Sums that start from what `start` says of this row and of the columns from `j` on.
#[inline(always)]
fn added<T: GemmElement, const N: usize>(
    to: &[T; N],
    sums: &[T; N],
    start: Start<'_, T>,
    i: usize,
    j: usize,
) -> [T; N] {
    // Arrays of their own become vectors; elements that are changed where they lie do not.
    let from = match start {
        Start::Zero => return *sums,
        Start::Kept => *to,
        Start::Rows(rows) => [rows[i]; N],
        Start::Columns(cols) => *cols[j..].first_chunk::<N>().expect("each column has a number"),
    };
    // A loop, since functions of arrays are not always inlined.
    let mut res = from;
    for at in 0..N {
        res[at] = from[at].add(sums[at]);
    }
    res
}

/// Gives the products of some rows, which begin at these places, with the first columns of a panel to `store`, and asks for
/// the panel that is next.
#[inline(always)]
fn multiply<T: GemmElement, I: Isa, L: LhsRows<T>, const M: usize, const N: usize, const W: usize>(
    lhs: &L,
    starts: [usize; M],
    depth: Range<usize>,
    panel: &[[T; N]],
    mut next: &[[T; N]],
    store: impl FnOnce(&[[T; W]; M]),
) {
    // These stay in registers, which takes that no place among them is computed.
    let mut sums = [[T::ZERO; W]; M];
    let (mut panel, mut at) = (&panel[..depth.len()], depth.start);
    while !panel.is_empty() {
        let (place, n) = lhs.run(at);
        let (run, rest) = panel.split_at(n.min(panel.len()));
        let (asked, left) = next.split_at(run.len().min(next.len()));
        // A loop, since functions of arrays are not always inlined.
        let mut rows: [&[T]; M] = [&[]; M];
        for i in 0..M {
            rows[i] = &lhs.data()[starts[i] + place..][..run.len()];
        }
        for (p, &panel) in run.iter().enumerate() {
            if let Some(asked) = asked.get(p) {
                prefetch_to_second_level(bytemuck::cast_slice(asked));
            }
            for i in 0..M {
                // SAFETY: each row has just been cut to the length of the run.
                let factor = unsafe { *rows[i].get_unchecked(p) };
                for j in 0..W {
                    sums[i][j] = factor.mul_add::<I>(panel[j], sums[i][j]);
                }
            }
        }
        (panel, next, at) = (rest, left, at + run.len());
    }
    // Of a copy alone is a place computed.
    let done = sums;
    store(&done);
}

/// As long a run is, so that relaxed SIMD saves more than a call takes.
#[cfg(target_family = "wasm")]
const LEAST_RUN: usize = 64;

/// The products of some rows, which begin at these places, with the first columns of a panel, by relaxed SIMD; nothing where there is none
/// for the type, or runs are short.
#[cfg(target_family = "wasm")]
#[inline(always)]
fn multiply_relaxed<T: GemmElement, L: LhsRows<T>, const M: usize, const N: usize, const W: usize>(
    add_products: AddProducts,
    lhs: &L,
    starts: [usize; M],
    depth: Range<usize>,
    panel: &[[T; N]],
) -> Option<[[T; W]; M]> {
    let mut sums = [[T::ZERO; W]; M];
    let (mut panel, mut at) = (&panel[..depth.len()], depth.start);
    if lhs.run(at).1.min(panel.len()) < LEAST_RUN {
        return None;
    }
    while !panel.is_empty() {
        let (place, n) = lhs.run(at);
        let (run, rest) = panel.split_at(n.min(panel.len()));
        let mut rows: [&[T]; M] = [&[]; M];
        for i in 0..M {
            rows[i] = &lhs.data()[starts[i] + place..][..run.len()];
        }
        if !T::add_products(add_products, &rows, run.as_flattened(), sums.as_flattened_mut()) {
            return None;
        }
        (panel, at) = (rest, at + run.len());
    }
    Some(sums)
}
