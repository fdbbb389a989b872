//! Matrices as the kernels of linear algebra see them, row by row, in float64 or in complex numbers of it: how they are
//! read, stored and multiplied. Products that have to be fast are [`gemm`](crate::gemm)'s.

use crate::numeric::dense::{Dense, fill};
use crate::numeric::field::Field;
use crate::numeric::map::{cast_into, store};
use tracefx_core::allocate::{copied, filled, try_collected, with_room};
use tracefx_core::{Diagnostic, Element, Result, Tensor};
use tracefx_ops::Args;

/// A matrix, row by row.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Matrix<T = f64> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) data: Vec<T>,
}

impl<T: Field> Matrix<T> {
    pub(crate) fn zeros(rows: usize, cols: usize) -> Result<Self> {
        let n = rows.checked_mul(cols).ok_or_else(|| Diagnostic::out_of_memory(usize::MAX))?;
        Ok(Matrix { rows, cols, data: filled(T::ZERO, n)? })
    }

    pub(crate) fn eye(rows: usize, cols: usize) -> Result<Self> {
        let mut res = Self::zeros(rows, cols)?;
        (0..rows.min(cols)).for_each(|i| res[(i, i)] = T::ONE);
        Ok(res)
    }

    /// The same numbers once more.
    pub(crate) fn copied(&self) -> Result<Self> {
        Ok(Matrix { rows: self.rows, cols: self.cols, data: copied(&self.data)? })
    }

    pub(crate) fn transposed(&self) -> Result<Self> {
        let mut res = Self::zeros(self.cols, self.rows)?;
        for row in 0..self.rows {
            for col in 0..self.cols {
                res[(col, row)] = self[(row, col)];
            }
        }
        Ok(res)
    }

    /// The transpose with its numbers conjugated.
    pub(super) fn adjoint(&self) -> Result<Self> {
        let mut res = self.transposed()?;
        res.data.iter_mut().for_each(|it| *it = it.conj());
        Ok(res)
    }

    pub(crate) fn times(&self, other: &Matrix<T>) -> Result<Self> {
        let mut res = Self::zeros(self.rows, other.cols)?;
        for row in 0..self.rows {
            for k in 0..self.cols {
                let factor = self[(row, k)];
                let (to, from) = (row * other.cols, k * other.cols);
                for col in 0..other.cols {
                    res.data[to + col] += factor * other.data[from + col];
                }
            }
        }
        Ok(res)
    }

    /// Takes `factor` times one row from another.
    pub(crate) fn take(&mut self, factor: T, from: usize, to: usize) {
        for col in 0..self.cols {
            let it = factor * self.data[from * self.cols + col];
            self.data[to * self.cols + col] -= it;
        }
    }

    pub(super) fn swap_rows(&mut self, a: usize, b: usize) {
        for col in 0..self.cols {
            self.data.swap(a * self.cols + col, b * self.cols + col);
        }
    }
}

impl<T> std::ops::Index<(usize, usize)> for Matrix<T> {
    type Output = T;

    fn index(&self, (row, col): (usize, usize)) -> &T {
        &self.data[row * self.cols + col]
    }
}

impl<T> std::ops::IndexMut<(usize, usize)> for Matrix<T> {
    fn index_mut(&mut self, (row, col): (usize, usize)) -> &mut T {
        &mut self.data[row * self.cols + col]
    }
}

/// The numbers of a tensor that is broadcast to these sizes, row by row.
pub(crate) fn numbers<T: Field>(tensor: &Tensor, sizes: &[usize]) -> Result<Vec<T>> {
    let wide = Tensor::zeros(T::Stored::DTYPE, sizes)?;
    cast_into(tensor, &wide)?;
    let wide = Dense::new(&wide)?;
    copied(bytemuck::cast_slice(&wide.read::<T::Stored>()))
}

/// The matrices of a tensor, broadcast to these sizes in front.
pub(super) fn matrices<T: Field>(tensor: &Tensor, lead: &[usize], rows: usize, cols: usize) -> Result<Vec<Matrix<T>>> {
    let numbers = numbers::<T>(tensor, &[lead, &[rows, cols]].concat())?;
    let n: usize = lead.iter().product();
    let data = |i: usize| copied(&numbers[i * rows * cols..(i + 1) * rows * cols]);
    try_collected((0..n).map(|i| Ok(Matrix { rows, cols, data: data(i)? })))
}

/// The matrices of an argument.
pub(super) fn matrices_of<T: Field>(args: &Args<'_, Tensor>, index: usize) -> Result<Vec<Matrix<T>>> {
    let tensor = args.tensor(index)?;
    let (lead, last) = tensor.sizes().split_at(tensor.rank() - 2);
    matrices(tensor, lead, last[0], last[1])
}

/// Fills a result with these numbers.
pub(super) fn store_numbers<T: Field>(numbers: &[T], out: &Tensor) -> Result<()> {
    store::<T::Stored>(bytemuck::cast_slice(numbers), out)
}

/// Fills a result with matrices one behind the other.
pub(super) fn store_all<T: Field>(matrices: &[Matrix<T>], out: &Tensor) -> Result<()> {
    let mut numbers: Vec<T> = with_room(matrices.iter().map(|it| it.data.len()).sum())?;
    matrices.iter().for_each(|it| numbers.extend_from_slice(&it.data));
    store_numbers(&numbers, out)
}

/// Fills an int32 result.
pub(super) fn fill_ints(out: &Tensor, numbers: impl Iterator<Item = i32>) {
    fill::<i32, _>(out, |to| to.iter_mut().zip(numbers).for_each(|(to, it)| *to = it));
}
