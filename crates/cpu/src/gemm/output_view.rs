//! The matrix that a product writes, block by block, from several threads at a time. That no two of them write one element
//! is for the products to hold.

use std::marker::PhantomData;
use std::ops::Range;
use tracefx_core::allocate::with_room;
use tracefx_core::{Dims, Result};

/// A matrix to write: the element in row `i` and column `j` is at `i * row + j * col`.
pub(crate) struct OutputView<'a, T> {
    data: *mut T,
    n_rows: usize,
    n_cols: usize,
    row: usize,
    col: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: a target is a mutable borrow of elements that may be sent; who shares it writes each element from one thread
// only, as `row` and `element` ask for.
unsafe impl<T: Send> Sync for OutputView<'_, T> {}

// SAFETY: as a mutable borrow of elements that may be sent.
unsafe impl<T: Send> Send for OutputView<'_, T> {}

impl<'a, T> OutputView<'a, T> {
    /// A matrix in these elements, with the strides of its rows and columns.
    ///
    /// # Panics
    /// When the matrix leaves the elements, or two of its elements lie in one place.
    pub(crate) fn new(data: &'a mut [T], [n_rows, n_cols]: [usize; 2], [row, col]: [usize; 2]) -> Self {
        assert!(n_rows > 0 && n_cols > 0, "a target has elements");
        assert!((n_rows - 1) * row + (n_cols - 1) * col < data.len(), "the target lies in its elements");
        let is_apart = |outer: usize, n_inner: usize, inner: usize| inner > 0 && outer > (n_inner - 1) * inner;
        assert!(
            n_rows == 1 && (n_cols == 1 || col > 0)
                || n_cols == 1 && row > 0
                || is_apart(row, n_cols, col)
                || is_apart(col, n_rows, row),
            "no two elements of the target lie in one place"
        );
        OutputView { data: data.as_mut_ptr(), n_rows, n_cols, row, col, borrow: PhantomData }
    }

    /// The matrices of a tensor, the last two dimensions of which are rows and columns, in blocks of `n_rows` rows. The blocks
    /// of a matrix are in order, and so are the matrices, by their row-major numbers.
    ///
    /// # Errors
    /// `OutOfMemory`.
    ///
    /// # Panics
    /// When the tensor leaves the elements, or two of its elements lie in one place.
    pub(crate) fn blocks(data: &'a mut [T], sizes: &[usize], strides: &[usize], n_rows: usize) -> Result<Vec<Self>> {
        let ([batch @ .., m, n], [outer @ .., row, col]) = (sizes, strides) else {
            unreachable!("a tensor of matrices has two dimensions")
        };
        let mut dims: Dims = (0..sizes.len()).filter(|&dim| sizes[dim] > 1).collect();
        let (mut reach, is_empty) = (0, sizes.contains(&0));
        while let Some(at) = (0..dims.len()).min_by_key(|&at| strides[dims[at]]) {
            let dim = dims.remove(at);
            assert!(is_empty || strides[dim] > reach, "no two elements of the target lie in one place");
            reach += (sizes[dim] - 1) * strides[dim];
        }
        assert!(is_empty || reach < data.len(), "the target lies in its elements");
        let n_matrices: usize = batch.iter().product();
        let mut res = with_room(n_matrices * m.div_ceil(n_rows.max(1)))?;
        for matrix in 0..n_matrices {
            let (mut rest, mut start) = (matrix, 0);
            for (size, stride) in batch.iter().zip(outer).rev() {
                start += rest % size * stride;
                rest /= size;
            }
            for first in (0..*m).step_by(n_rows.max(1)) {
                // What is empty begins where its elements do.
                let start = if is_empty { 0 } else { start + first * row };
                let data = data.as_mut_ptr().wrapping_add(start);
                let n_rows = n_rows.min(m - first);
                res.push(OutputView { data, n_rows, n_cols: *n, row: *row, col: *col, borrow: PhantomData });
            }
        }
        Ok(res)
    }

    /// The same elements with rows for columns.
    pub(crate) fn transposed(self) -> Self {
        OutputView { n_rows: self.n_cols, n_cols: self.n_rows, row: self.col, col: self.row, ..self }
    }

    /// Whether the elements of a row lie side by side.
    pub(super) fn has_dense_rows(&self) -> bool {
        self.col == 1 || self.n_cols == 1
    }

    /// Some columns of a row.
    ///
    /// # Safety
    /// Nothing else may use these elements for as long as the slice lives.
    ///
    /// # Panics
    /// When the columns lie outside, or not side by side.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "the caller promises that these elements are its own")]
    pub(crate) unsafe fn row(&self, i: usize, cols: Range<usize>) -> &mut [T] {
        assert!(i < self.n_rows && cols.start <= cols.end && cols.end <= self.n_cols && self.has_dense_rows());
        // SAFETY: `new` has checked that the matrix lies in the elements it borrows; the caller has them to itself.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(i * self.row + cols.start), cols.len()) }
    }

    /// Some columns of each of some rows.
    ///
    /// # Safety
    /// Nothing else may use these elements for as long as the slices live.
    ///
    /// # Panics
    /// When the rows or columns lie outside, or the columns not side by side.
    pub(crate) unsafe fn rows(&self, rows: Range<usize>, cols: Range<usize>) -> BlockRows<'_, T> {
        assert!(rows.start <= rows.end && rows.end <= self.n_rows);
        assert!(cols.start <= cols.end && cols.end <= self.n_cols && self.has_dense_rows());
        let data = self.data.wrapping_add(rows.start * self.row + cols.start);
        BlockRows { data, n_rows: rows.len(), n_cols: cols.len(), row: self.row, borrow: PhantomData }
    }

    /// Some rows of a column.
    ///
    /// # Safety
    /// Nothing else may use these elements for as long as the slice lives.
    ///
    /// # Panics
    /// When the rows lie outside, or not side by side.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "the caller promises that these elements are its own")]
    pub(crate) unsafe fn column(&self, rows: Range<usize>, j: usize) -> &mut [T] {
        assert!(rows.start <= rows.end && rows.end <= self.n_rows && j < self.n_cols);
        assert!(self.row == 1 || rows.len() <= 1);
        // SAFETY: as in `row`.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(rows.start * self.row + j * self.col), rows.len()) }
    }

    /// One element.
    ///
    /// # Safety
    /// Nothing else may use this element for as long as the reference lives.
    ///
    /// # Panics
    /// When the element lies outside.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "the caller promises that this element is its own")]
    pub(crate) unsafe fn element(&self, i: usize, j: usize) -> &mut T {
        assert!(i < self.n_rows && j < self.n_cols);
        // SAFETY: as in `row`.
        unsafe { &mut *self.data.add(i * self.row + j * self.col) }
    }
}

/// Columns of some rows of a matrix, a slice for each row.
pub(crate) struct BlockRows<'a, T> {
    data: *mut T,
    n_rows: usize,
    n_cols: usize,
    row: usize,
    borrow: PhantomData<&'a mut [T]>,
}

impl<'a, T> BlockRows<'a, T> {
    /// Some columns of all rows of `row` elements.
    ///
    /// # Panics
    /// When a row has no such columns, or no elements.
    pub(crate) fn columns(rows: &'a mut [T], row: usize, cols: Range<usize>) -> Self {
        assert!(cols.start <= cols.end && cols.end <= row, "a row has these columns");
        let data = rows.as_mut_ptr().wrapping_add(cols.start);
        BlockRows { data, n_rows: rows.len() / row, n_cols: cols.len(), row, borrow: PhantomData }
    }
}

impl<'a, T> From<&'a mut [T]> for BlockRows<'a, T> {
    /// A single row.
    fn from(row: &'a mut [T]) -> Self {
        BlockRows { data: row.as_mut_ptr(), n_rows: 1, n_cols: row.len(), row: row.len(), borrow: PhantomData }
    }
}

impl<'a, T> Iterator for BlockRows<'a, T> {
    type Item = &'a mut [T];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a mut [T]> {
        self.n_rows = self.n_rows.checked_sub(1)?;
        // SAFETY: whoever made it has checked that the rows lie in elements that it has to itself; each row is given once,
        // and no two of them share an element.
        let row = unsafe { std::slice::from_raw_parts_mut(self.data, self.n_cols) };
        self.data = self.data.wrapping_add(self.row);
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_where_the_strides_say() {
        let mut data = [0; 6];
        let target = OutputView::new(&mut data, [2, 3], [1, 2]);
        for (i, j) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
            // SAFETY: nothing else uses the target.
            unsafe { *target.element(i, j) = 10 * i + j };
        }
        assert_eq!(data, [0, 10, 1, 11, 2, 12]);
        let target = OutputView::new(&mut data, [2, 2], [3, 1]);
        // SAFETY: nothing else uses the target.
        unsafe { target.row(1, 0..2) }.fill(7);
        assert_eq!(data, [0, 10, 1, 7, 7, 12]);
        let target = OutputView::new(&mut data, [2, 2], [3, 1]);
        // SAFETY: nothing else uses the target.
        unsafe { target.rows(0..2, 1..2) }.enumerate().for_each(|(at, it)| it.fill(20 + at));
        // SAFETY: as above.
        assert_eq!(unsafe { target.rows(1..1, 0..2) }.count(), 0);
        assert_eq!(data, [0, 20, 1, 7, 21, 12]);
        BlockRows::from(&mut data[1..3]).for_each(|it| it.fill(3));
        assert_eq!(data, [0, 3, 3, 7, 21, 12]);
        BlockRows::columns(&mut data, 3, 1..2).enumerate().for_each(|(at, it)| it.fill(at));
        assert_eq!(data, [0, 0, 3, 7, 1, 12]);
    }

    #[test]
    fn blocks_share_no_element() {
        // Two matrices of three rows and two columns, row by row in turns.
        let mut data = [0; 12];
        let blocks = OutputView::blocks(&mut data, &[2, 3, 2], &[2, 4, 1], 2).unwrap();
        for (at, block) in blocks.iter().enumerate() {
            for i in 0..block.n_rows {
                // SAFETY: nothing else uses these elements.
                unsafe { block.row(i, 0..2) }.iter_mut().for_each(|it| *it += at + 1);
            }
        }
        assert_eq!(data, [1, 1, 3, 3, 1, 1, 3, 3, 2, 2, 4, 4]);
        assert_eq!(OutputView::<u8>::blocks(&mut [], &[2, 3, 0], &[9, 9, 9], 2).unwrap().len(), 4);
    }

    #[test]
    #[should_panic(expected = "one place")]
    fn blocks_may_not_overlap() {
        drop(OutputView::blocks(&mut [0; 99], &[2, 3, 2], &[3, 4, 1], 2));
    }

    #[test]
    #[should_panic(expected = "one place")]
    fn elements_may_not_overlap() {
        OutputView::new(&mut [0; 9], [2, 3], [2, 1]);
    }

    #[test]
    #[should_panic(expected = "lies in its elements")]
    fn the_last_element_must_be_there() {
        OutputView::new(&mut [0; 5], [2, 3], [3, 1]);
    }
}
