//! Products in float32 whose right side are integers with a scale, in eight bits or in four: a panel at a time becomes numbers in the
//! first-level cache.

use crate::gemm::GemmElement;
use crate::gemm::blocked::{block_depth, panel_width, with_tile};
use crate::gemm::narrow::NarrowColumns;
use crate::numeric::isa::{Isa, Level, Work, prefetch_to_second_level};
use crate::numeric::map::convert_all;
use crate::numeric::parallel;
use std::ops::Range;
use tracefx_core::allocate::filled;
use tracefx_core::{DType, Element, Result, bf16, f16};

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
    integers: Integers,
    /// Of each panel and each group of rows, what is subtracted, the factors, and what is added, a number for each column.
    numbers: Vec<f32>,
}

/// Panels of integers, a row of a panel behind the other.
enum Integers {
    Bytes(Vec<i8>),
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
        let all = (0..n).flat_map(|col| (0..k).map(move |row| (row, col)));
        let (least, most) = all.fold((i32::MAX, i32::MIN), |(least, most), (row, col)| {
            let it = integer(row, col);
            (least.min(it), most.max(it))
        });
        let is_narrow = least <= most && most - least < 16;
        // What is subtracted so that they fit.
        let offset = match is_narrow {
            true => least,
            false if most > 127 => 128,
            false => 0,
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
            let mut bytes = filled(0i8, panels.room(1))?;
            parallel::parts_mut(&mut bytes, (n_cols * depth).max(1), |at, block| {
                panels.each(at, width, 1, block, |rows, first, panel| {
                    fill(rows, first, &mut |row, col, it| panel[row * width + col] = it as i8);
                });
            });
            Integers::Bytes(bytes)
        };
        let mut numbers = filled(0.0, n_cols * n_groups * 3)?;
        for (at, numbers) in numbers.chunks_exact_mut(3 * width).enumerate() {
            let (first, group) = (at / n_groups * width, at % n_groups);
            for col in first..n.min(first + width) {
                let Affine { zero, scale, shift } = affine(group, col);
                for (at, it) in [zero - offset as f32, scale, shift].into_iter().enumerate() {
                    numbers[at * width + col - first] = it;
                }
            }
        }
        Ok(QuantizedRhs { level, n, k, group_size, rounding, integers, numbers })
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
            Integers::Bytes(it) => (bytemuck::cast_slice(it), 1),
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
        self.n_cols * self.k.div_ceil(per_byte)
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
            let number =
                |integer: f32, col: usize| GemmElement::mul_add::<I>(integer - zeros[col], scales[col], shifts[col]);
            match &rhs.integers {
                Integers::Bytes(_) => {
                    for (to, from) in own.iter_mut().zip(&bytes[at..]) {
                        for col in 0..N {
                            to[col] = number(f32::from(from[col] as i8), col);
                        }
                    }
                }
                Integers::Nibbles(_) => {
                    for (row, to) in (at..end).zip(own) {
                        let (from, shift) = (&bytes[row / 2], row % 2 * 4);
                        for col in 0..N {
                            to[col] = number(f32::from(from[col] >> shift & 15), col);
                        }
                    }
                }
            }
            (panel, at) = (rest, end);
        }
    }
}
