//! Products in float32 whose right side are integers with a scale, in eight bits or in four: a panel at a time becomes numbers in the
//! first-level cache, or, where there are few rows, its integers are multiplied and the sums of a group scaled. Which it is, and so the last bits of
//! a row, the number of rows decides.

use crate::gemm::blocked::{BlockedGemm, Epilogue, LhsRows, block_depth, panel_width, with_tile};
use crate::gemm::narrow::NarrowColumns;
use crate::gemm::{GemmElement, MatrixView};
use crate::numeric::isa::{Isa, Level, Work, prefetch_to_second_level};
use crate::numeric::map::convert_all;
use crate::numeric::parallel;
use std::array::from_fn;
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use tracefx_core::allocate::filled;
use tracefx_core::{DType, Element, Result, bf16, f16};

/// The most columns of a panel.
const WIDEST: usize = 32;

/// What an integer `q` stands for: `(q - zero) * scale + shift`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Affine {
    pub(crate) zero: f32,
    pub(crate) scale: f32,
    pub(crate) shift: f32,
}

/// The right side of products, in panels of integers.
pub(crate) struct QuantizedRhs {
    level: Level,
    n: usize,
    k: usize,
    group_size: usize,
    /// What numbers are rounded to.
    rounding: Option<DType>,
    /// Whether something is added to numbers.
    has_shifts: bool,
    integers: Integers,
    /// Of each panel and each group of rows, what is subtracted (integers, and [`ABOVE`]), the factors, and what is added, a number for each column.
    numbers: Vec<f32>,
}

/// Panels of integers, a row of a panel behind the other.
enum Integers {
    Bytes(Vec<u8>),
    /// Two rows in a byte, the first of which is in the lower bits.
    Nibbles(Vec<u8>),
}

impl QuantizedRhs {
    /// Lays out `k` rows of `n` columns: `integer` gives the integer of -128 to 255 in a row and a column, and `affine` what those of a group of
    /// rows in a column stand for, rounded to a dtype of numbers where one is given. Integers take four bits each where they are no further apart.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no room for them.
    pub(crate) fn new(
        level: Level,
        [n, k]: [usize; 2],
        group_size: usize,
        rounding: Option<DType>,
        integer: impl Fn(usize, usize) -> i32 + Sync,
        affine: impl Fn(usize, usize) -> Affine + Sync,
    ) -> Result<Self> {
        let width = panel_width::<f32>(level);
        let (n_cols, n_groups) = (n.next_multiple_of(width), k.div_ceil(group_size));
        let (least, most) = (AtomicI32::new(i32::MAX), AtomicI32::new(i32::MIN));
        parallel::for_each(n.div_ceil(width), |at| {
            let columns = at * width..n.min((at + 1) * width);
            let all = columns.flat_map(|col| (0..k).map(move |row| (row, col)));
            let (own_least, own_most) = all.fold((i32::MAX, i32::MIN), |(least, most), (row, col)| {
                let it = integer(row, col);
                (least.min(it), most.max(it))
            });
            least.fetch_min(own_least, Relaxed);
            most.fetch_max(own_most, Relaxed);
        });
        let (least, most) = (least.into_inner(), most.into_inner());
        let is_narrow = least <= most && most - least < 16;
        // What is subtracted so that they fit.
        let offset = match is_narrow {
            true => least,
            false if most > 127 => 0,
            false => -128,
        };
        let fill = |rows: Range<usize>, first: usize, put: &mut dyn FnMut(usize, usize, i32)| {
            for col in first..n.min(first + width) {
                rows.clone().for_each(|row| put(row - rows.start, col - first, integer(row, col) - offset));
            }
        };
        let depth = block_depth::<f32>();
        let panels = Panels { n_cols, k, depth };
        let integers = if is_narrow {
            let mut nibbles = filled(0u8, panels.room(2))?;
            parallel::parts_mut(&mut nibbles, (n_cols * depth / 2).max(1), |at, block| {
                panels.each(at * 2, width, 2, block, |rows, first, panel| {
                    fill(rows, first, &mut |row, col, it| panel[row / 2 * width + col] |= (it as u8) << (row % 2 * 4));
                });
            });
            Integers::Nibbles(nibbles)
        } else {
            let mut bytes = filled(0u8, panels.room(1))?;
            parallel::parts_mut(&mut bytes, (n_cols * depth).max(1), |at, block| {
                panels.each(at, width, 1, block, |rows, first, panel| {
                    fill(rows, first, &mut |row, col, it| panel[row * width + col] = it as u8);
                });
            });
            Integers::Bytes(bytes)
        };
        let mut has_shifts = false;
        let mut numbers = filled(0.0, n_cols.saturating_mul(n_groups).saturating_mul(3))?;
        for (at, numbers) in numbers.chunks_exact_mut(3 * width).enumerate() {
            let (first, group) = (at / n_groups * width, at % n_groups);
            for col in first..n.min(first + width) {
                let Affine { zero, scale, shift } = affine(group, col);
                let whole = if zero.is_finite() { zero.floor() } else { zero };
                // Integers alone are subtracted without an error.
                let shift = if whole == zero { shift } else { shift - (zero - whole) * scale };
                has_shifts |= shift != 0.0;
                for (at, it) in [whole - offset as f32 + ABOVE, scale, shift].into_iter().enumerate() {
                    numbers[at * width + col - first] = it;
                }
            }
        }
        Ok(QuantizedRhs { level, n, k, group_size, rounding, has_shifts, integers, numbers })
    }

    /// The bytes of all integers.
    #[cfg(test)]
    pub(crate) fn n_bytes(&self) -> usize {
        match &self.integers {
            Integers::Bytes(it) => it.len(),
            Integers::Nibbles(it) => it.len(),
        }
    }

    /// The bytes that are read of a panel.
    fn panel(&self, rows: &Range<usize>, first: usize) -> &[u8] {
        let width = panel_width::<f32>(self.level);
        let n_cols = self.n.next_multiple_of(width);
        let (bytes, per_byte): (&[u8], usize) = match &self.integers {
            Integers::Bytes(it) => (it, 1),
            Integers::Nibbles(it) => (it, 2),
        };
        let n_rows = rows.len().div_ceil(per_byte);
        &bytes[rows.start / per_byte * n_cols + first * n_rows..][..width * n_rows]
    }
}

/// How panels lie one behind the other.
#[derive(Clone, Copy)]
struct Panels {
    n_cols: usize,
    k: usize,
    /// The rows of a block.
    depth: usize,
}

impl Panels {
    /// The bytes of all panels, with so many rows in a byte. Only the last block may have an odd number of rows.
    fn room(self, per_byte: usize) -> usize {
        self.n_cols.saturating_mul(self.k.div_ceil(per_byte))
    }

    /// Visits the panels of a block whose first element is the one at `at`: its rows, its first column and its bytes.
    fn each<T>(
        self,
        at: usize,
        width: usize,
        per_byte: usize,
        block: &mut [T],
        mut visit: impl FnMut(Range<usize>, usize, &mut [T]),
    ) {
        let first = at / self.n_cols;
        let rows = first..self.k.min(first + self.depth);
        let n_bytes = width * rows.len().div_ceil(per_byte);
        for (at, panel) in block.chunks_exact_mut(n_bytes.max(1)).enumerate() {
            visit(rows.clone(), at * width, panel);
        }
    }
}

impl NarrowColumns for QuantizedRhs {
    fn level(&self) -> Level {
        self.level
    }

    fn sizes(&self) -> [usize; 2] {
        [self.n, self.k]
    }

    fn widen(&self, rows: Range<usize>, first: usize, panel: &mut [f32]) {
        self.level.run(Widen { rhs: self, rows, first, panel });
        match self.rounding {
            Some(DType::Float16) => round::<f16>(panel),
            Some(DType::BFloat16) => round::<bf16>(panel),
            _ => {}
        }
    }

    fn prefetch(&self, rows: Range<usize>, first: usize) {
        prefetch_to_second_level(self.panel(&rows, first));
    }

    fn run<E: Epilogue<f32>>(gemm: &BlockedGemm<'_, f32, MatrixView<'_, f32>, Self, E>) {
        gemm.run_quantized();
    }
}

/// Rounds numbers to those of another dtype.
fn round<S: Element>(numbers: &mut [f32]) {
    let mut narrow = [S::zeroed(); 64];
    for numbers in numbers.chunks_mut(narrow.len()) {
        let narrow = &mut narrow[..numbers.len()];
        convert_all(numbers, narrow);
        convert_all(narrow, numbers);
    }
}

/// So many rows or fewer are multiplied with the integers themselves, and the sums of a group are scaled: what a panel of numbers costs is not
/// shared by enough of them.
const FEW: usize = 4;

impl<E: Epilogue<f32>> BlockedGemm<'_, f32, MatrixView<'_, f32>, QuantizedRhs, E> {
    /// As [`BlockedGemm::run_packed`].
    ///
    /// # Panics
    /// When the right side has other rows or columns.
    fn run_quantized(&self) {
        let m = self.size.m;
        if m > FEW || self.rhs.rounding.is_some() || self.rhs.has_shifts {
            return self.run_narrow();
        }
        assert!(self.lhs.has(m, self.size.k), "the left side lies in rows");
        let is_alike = [self.size.n, self.size.k] == self.rhs.sizes() && self.level == self.rhs.level;
        assert!(is_alike, "the right side is laid out for this");
        self.share(&|rows, cols| match rows.len() {
            1 => self.few_rows::<1>(rows.start, cols),
            2 => self.few_rows::<2>(rows.start, cols),
            3 => self.few_rows::<3>(rows.start, cols),
            FEW => self.few_rows::<FEW>(rows.start, cols),
            n => unreachable!("{n} rows are not few"),
        });
    }

    /// `M` rows from `top` on with some columns, which begin a panel.
    fn few_rows<const M: usize>(&self, top: usize, cols: Range<usize>) {
        let width = panel_width::<f32>(self.level);
        let rows: [&[f32]; M] = from_fn(|it| &self.lhs.data[(top + it) * self.lhs.row..][..self.size.k]);
        let mut sums = [0.0; FEW * WIDEST];
        for first in cols.clone().step_by(width) {
            self.level.run(Dots { rhs: self.rhs, rows, first, sums: &mut sums[..M * width] });
            for (at, sums) in sums[..M * width].chunks_exact(width).enumerate() {
                self.finish_row(top + at, first..cols.end.min(first + width), sums);
            }
        }
    }
}

/// Adds up the products of a few rows with the columns of a panel: `sums[i * width + j]`.
struct Dots<'a, const M: usize> {
    rhs: &'a QuantizedRhs,
    rows: [&'a [f32]; M],
    first: usize,
    sums: &'a mut [f32],
}

impl<const M: usize> Work for Dots<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        with_tile!(I, f32, |_M, N, _H| self.dots::<I, N>());
    }
}

impl<const M: usize> Dots<'_, M> {
    #[inline(always)]
    fn dots<I: Isa, const N: usize>(self) {
        let Dots { rhs, rows, first, sums: to } = self;
        let n_groups = rhs.k.div_ceil(rhs.group_size);
        let numbers = &rhs.numbers.as_chunks::<N>().0[first / N * n_groups * 3..];
        let mut totals = [[0.0; N]; M];
        for block in (0..rhs.k).step_by(block_depth::<f32>()) {
            let block = block..rhs.k.min(block + block_depth::<f32>());
            let bytes = rhs.panel(&block, first).as_chunks::<N>().0;
            // What comes when this panel is through.
            let next = if first + N < rhs.n { rhs.panel(&block, first + N).as_chunks::<N>().0 } else { &[] };
            let mut at = block.start;
            while at < block.end {
                let group = at / rhs.group_size;
                let end = block.end.min((group + 1) * rhs.group_size);
                let [zeros, scales] = [0, 1].map(|it| &numbers[group * 3 + it]);
                let own = rows.map(|it| &it[at..end]);
                let sums = match &rhs.integers {
                    Integers::Bytes(_) => {
                        let first = at - block.start;
                        bytes_sums::<I, M, N>(own, &bytes[first..], next.get(first..).unwrap_or_default(), zeros)
                    }
                    Integers::Nibbles(_) => nibble_sums::<I, M, N>(own, [bytes, next], at - block.start, zeros),
                };
                for i in 0..M {
                    for j in 0..N {
                        totals[i][j] = mul_add::<I>(sums[i][j], scales[j], totals[i][j]);
                    }
                }
                at = end;
            }
        }
        to.as_chunks_mut::<N>().0.iter_mut().zip(&totals).for_each(|(to, from)| *to = *from);
    }
}

/// `a * b + c`, with the fewest roundings that the instructions have.
#[inline(always)]
fn mul_add<I: Isa>(a: f32, b: f32, c: f32) -> f32 {
    GemmElement::mul_add::<I>(a, b, c)
}

/// Sums of products of `M` rows with `N` columns: two of each, so that none waits for the other, where the registers hold them.
struct Sums<const M: usize, const N: usize>([[[f32; N]; M]; 2]);

impl<const M: usize, const N: usize> Sums<M, N> {
    #[inline(always)]
    fn new() -> Self {
        Sums([[[0.0; N]; M]; 2])
    }

    /// Adds the products of the elements of a row of integers, seen from what is zero, with those of the left side: to the first or the second of the sums.
    #[inline(always)]
    fn add<I: Isa, const SECOND: bool>(&mut self, rows: &[&[f32]; M], at: usize, integers: [f32; N], zeros: &[f32; N]) {
        let sums = &mut self.0[usize::from(SECOND && M <= 2)];
        for i in 0..M {
            let factor = rows[i][at];
            for j in 0..N {
                sums[i][j] = mul_add::<I>(factor, integers[j] - zeros[j], sums[i][j]);
            }
        }
    }

    #[inline(always)]
    fn all(self) -> [[f32; N]; M] {
        let [mut sums, second] = self.0;
        for i in 0..M {
            for j in 0..N {
                sums[i][j] += second[i][j];
            }
        }
        sums
    }
}

#[inline(always)]
fn bytes_sums<I: Isa, const M: usize, const N: usize>(
    rows: [&[f32]; M],
    bytes: &[[u8; N]],
    next: &[[u8; N]],
    zeros: &[f32; N],
) -> [[f32; N]; M] {
    let n = rows[0].len();
    let rows = rows.map(|it| &it[..n]);
    let mut sums = Sums::new();
    for at in (0..n / 2).map(|it| 2 * it) {
        ask(next, at, 2);
        sums.add::<I, false>(&rows, at, unsigned(&bytes[at]), zeros);
        sums.add::<I, true>(&rows, at + 1, unsigned(&bytes[at + 1]), zeros);
    }
    if n % 2 == 1 {
        sums.add::<I, false>(&rows, n - 1, unsigned(&bytes[n - 1]), zeros);
    }
    sums.all()
}

/// As [`bytes_sums`], of the rows from `first` on of integers in four bits, two of which are in each of `bytes`.
#[inline(always)]
fn nibble_sums<I: Isa, const M: usize, const N: usize>(
    rows: [&[f32]; M],
    [bytes, next]: [&[[u8; N]]; 2],
    first: usize,
    zeros: &[f32; N],
) -> [[f32; N]; M] {
    let n = rows[0].len();
    let rows = rows.map(|it| &it[..n]);
    let mut sums = Sums::new();
    let mut at = first % 2;
    if at == 1 {
        sums.add::<I, true>(&rows, 0, upper(&bytes[first / 2]), zeros);
    }
    while at + 1 < n {
        let both = &bytes[(first + at) / 2];
        ask(next, (first + at) / 2, 1);
        sums.add::<I, false>(&rows, at, lower(both), zeros);
        sums.add::<I, true>(&rows, at + 1, upper(both), zeros);
        at += 2;
    }
    if at < n {
        sums.add::<I, false>(&rows, at, lower(&bytes[(first + at) / 2]), zeros);
    }
    sums.all()
}

/// Asks for so many rows of the panel that is next, so that they come while this one is multiplied.
#[inline(always)]
fn ask<const N: usize>(next: &[[u8; N]], at: usize, n: usize) {
    if let Some(asked) = next.get(at..at + n) {
        prefetch_to_second_level(asked.as_flattened());
    }
}

/// What numbers of integers are above them: 2^23, from which on the last bit of a number is one. So an integer is what stands in the last bits,
/// and no instruction has to convert it; compilers make no vectors of those for WebAssembly.
const ABOVE: f32 = 8_388_608.0;

#[inline(always)]
fn above(integer: u8) -> f32 {
    f32::from_bits(ABOVE.to_bits() | u32::from(integer))
}

/// The numbers of integers of eight bits, [`ABOVE`] them.
#[inline(always)]
fn unsigned<const N: usize>(bytes: &[u8; N]) -> [f32; N] {
    let mut numbers = [0.0; N];
    for at in 0..N {
        numbers[at] = above(bytes[at]);
    }
    numbers
}

/// Those of the first integers of bytes of two.
#[inline(always)]
fn lower<const N: usize>(bytes: &[u8; N]) -> [f32; N] {
    let mut numbers = [0.0; N];
    for at in 0..N {
        numbers[at] = above(bytes[at] & 15);
    }
    numbers
}

/// Those of the second ones.
#[inline(always)]
fn upper<const N: usize>(bytes: &[u8; N]) -> [f32; N] {
    let mut numbers = [0.0; N];
    for at in 0..N {
        numbers[at] = above(bytes[at] >> 4);
    }
    numbers
}

/// Makes numbers of a panel of integers.
struct Widen<'a> {
    rhs: &'a QuantizedRhs,
    rows: Range<usize>,
    first: usize,
    panel: &'a mut [f32],
}

impl Work for Widen<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        with_tile!(I, f32, |_M, N, _H| self.widen::<I, N>());
    }
}

impl Widen<'_> {
    #[inline(always)]
    fn widen<I: Isa, const N: usize>(self) {
        let Widen { rhs, rows, first, panel } = self;
        let bytes = rhs.panel(&rows, first).as_chunks::<N>().0;
        let n_groups = rhs.k.div_ceil(rhs.group_size);
        let numbers = &rhs.numbers.as_chunks::<N>().0[first / N * n_groups * 3..];
        let mut panel = panel.as_chunks_mut::<N>().0;
        let mut at = 0;
        while at < rows.len() {
            let group = (rows.start + at) / rhs.group_size;
            let end = rows.len().min((group + 1) * rhs.group_size - rows.start);
            let [zeros, scales, shifts] = [0, 1, 2].map(|it| numbers[group * 3 + it]);
            let (own, rest) = panel.split_at_mut(end - at);
            let number = |integer: f32, col: usize| mul_add::<I>(integer - zeros[col], scales[col], shifts[col]);
            match &rhs.integers {
                Integers::Bytes(_) => {
                    for (row, to) in (at..end).zip(own) {
                        // Of rows that it can count, the compiler makes vectors of several rows, which lie apart.
                        let integers = unsigned(&bytes[black_box(row)]);
                        for col in 0..N {
                            to[col] = number(integers[col], col);
                        }
                    }
                }
                Integers::Nibbles(_) => {
                    for (row, to) in (at..end).zip(own) {
                        let both = &bytes[row / 2];
                        let integers = if row % 2 == 0 { lower(both) } else { upper(both) };
                        for col in 0..N {
                            to[col] = number(integers[col], col);
                        }
                    }
                }
            }
            (panel, at) = (rest, end);
        }
    }
}
