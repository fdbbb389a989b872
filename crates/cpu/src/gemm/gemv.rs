//! Products with few rows or columns, which read the large side once and where it lies. How few they are is decided here
//! ([`THIN`]).

use crate::gemm::output_view::OutputView;
use crate::gemm::{Extent, GemmElement, MatrixView, Start};
use crate::numeric::isa::{Isa, Level, Work};
use crate::numeric::{parallel, scratch};
use std::ops::Range;
use tracefx_core::Result;

/// The most rows or columns of a thin side.
pub(super) const THIN: usize = 3;

/// The elements of the large side that are worth a thread.
const SHARED: usize = 1 << 16;

/// The product of a left side with contiguous rows and a right side with at most [`THIN`] columns: scalar products.
pub(super) fn dots<T: GemmElement>(
    level: Level,
    Extent { m, n, k }: Extent,
    target: &OutputView<'_, T>,
    lhs: MatrixView<'_, T>,
    rhs: MatrixView<'_, T>,
    start: Start<'_, T>,
) -> Result<()> {
    scratch::with::<T, _>(n * k, |columns| {
        for (j, column) in columns.chunks_exact_mut(k).enumerate() {
            let from = rhs.data[j * rhs.col..].iter().step_by(rhs.row.max(1));
            match rhs.row {
                0 => column.fill(rhs.data[j * rhs.col]),
                _ => column.iter_mut().zip(from).for_each(|(to, &from)| *to = from),
            }
        }
        let columns = &*columns;
        let step = (SHARED / k).max(1);
        parallel::for_each(m.div_ceil(step), |part| {
            for i in part * step..((part + 1) * step).min(m) {
                let row = &lhs.data[i * lhs.row..][..k];
                for (j, column) in columns.chunks_exact(k).enumerate() {
                    let sum = level.run(Dot { row, column });
                    // SAFETY: each row belongs to one part.
                    let to = unsafe { target.element(i, j) };
                    *to = start.of(i, j, *to).add(sum);
                }
            }
        });
        Ok(())
    })
}

struct Dot<'a, T> {
    row: &'a [T],
    column: &'a [T],
}

impl<T: GemmElement> Work for Dot<'_, T> {
    type Output = T;

    #[inline(always)]
    fn run<I: Isa>(self) -> T {
        // The same sums on every machine.
        const LANES: usize = 32;
        let mut sums = [T::ZERO; LANES];
        let ((rows, row_rest), (columns, column_rest)) =
            (self.row.as_chunks::<LANES>(), self.column.as_chunks::<LANES>());
        for (row, column) in rows.iter().zip(columns) {
            for lane in 0..LANES {
                sums[lane] = row[lane].mul_add::<I>(column[lane], sums[lane]);
            }
        }
        let rest = row_rest.iter().zip(column_rest).fold(T::ZERO, |sum, (&a, &b)| a.mul_add::<I>(b, sum));
        sums.iter().fold(rest, |sum, &lane| sum.add(lane))
    }
}

/// The product of a left side with at most [`THIN`] rows and a right side with contiguous rows: sums of scaled rows.
pub(super) fn axpys<T: GemmElement>(
    level: Level,
    Extent { m, n, k }: Extent,
    target: &OutputView<'_, T>,
    lhs: MatrixView<'_, T>,
    rhs: MatrixView<'_, T>,
    start: Start<'_, T>,
) -> Result<()> {
    // Rows are read in pieces as long as there is work for: short ones, far from each other, cost more than the sums.
    let width = if n * k <= SHARED { n } else { n.div_ceil(8).next_multiple_of(64).max(256) };
    parallel::try_for_each(n.div_ceil(width), |part| {
        let cols = part * width..((part + 1) * width).min(n);
        scratch::with::<T, _>(cols.len(), |sums| {
            for i in 0..m {
                sums.fill(T::ZERO);
                level.run(Axpys { lhs: &lhs, i, rhs: &rhs, k, cols: cols.clone(), sums });
                for (j, &sum) in cols.clone().zip(&*sums) {
                    // SAFETY: each column belongs to one part.
                    let to = unsafe { target.element(i, j) };
                    *to = start.of(i, j, *to).add(sum);
                }
            }
            Ok(())
        })
    })
}

struct Axpys<'a, T> {
    lhs: &'a MatrixView<'a, T>,
    i: usize,
    rhs: &'a MatrixView<'a, T>,
    k: usize,
    cols: Range<usize>,
    sums: &'a mut [T],
}

impl<T: GemmElement> Work for Axpys<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let factor = |p: usize| self.lhs.data[self.i * self.lhs.row + p * self.lhs.col];
        let row = |p: usize| &self.rhs.data[p * self.rhs.row + self.cols.start..][..self.cols.len()];
        let whole = self.k / 4 * 4;
        for p in (0..whole).step_by(4) {
            let factors: [T; 4] = std::array::from_fn(|at| factor(p + at));
            let rows: [&[T]; 4] = std::array::from_fn(|at| row(p + at));
            let rows = rows.map(|it| &it[..self.sums.len()]);
            for (j, sum) in self.sums.iter_mut().enumerate() {
                *sum = (0..4).fold(*sum, |sum, at| factors[at].mul_add::<I>(rows[at][j], sum));
            }
        }
        for p in whole..self.k {
            let factor = factor(p);
            self.sums.iter_mut().zip(row(p)).for_each(|(sum, &it)| *sum = factor.mul_add::<I>(it, *sum));
        }
    }
}
