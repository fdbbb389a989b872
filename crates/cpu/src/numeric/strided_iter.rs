//! The way through several strided tensors at once: how sizes broadcast, and which dimensions fold into one. What is done
//! with the elements of a row is for [`map`](super::map) and the reductions to say.

use smallvec::SmallVec;
use tracefx_core::{Dims, Tensor};

/// A strided tensor as a [`StridedIter`] sees it.
#[derive(Clone, Copy)]
pub(crate) struct StridedLayout<'a> {
    pub(crate) sizes: &'a [usize],
    pub(crate) strides: &'a [usize],
    pub(crate) offset: usize,
}

impl<'a> StridedLayout<'a> {
    pub(crate) fn new(tensor: &'a Tensor) -> Self {
        StridedLayout { sizes: tensor.sizes(), strides: tensor.strides(), offset: tensor.offset() }
    }
}

/// The way through several strided tensors at once, in the row-major order of the sizes that they broadcast to.
pub(crate) struct StridedIter {
    /// The sizes, as few as the strides allow; the last is the length of a row. Never empty.
    sizes: Dims,
    /// For each tensor its position at the start, and one stride per size.
    tensors: SmallVec<[(usize, Dims); 3]>,
}

impl StridedIter {
    /// A walk over tensors that broadcast to these sizes.
    pub(crate) fn new(sizes: &[usize], tensors: &[StridedLayout<'_>]) -> Self {
        let mut walk =
            StridedIter { sizes: Dims::new(), tensors: tensors.iter().map(|it| (it.offset, Dims::new())).collect() };
        for (dim, &size) in sizes.iter().enumerate() {
            if size == 1 {
                continue;
            }
            let strides: SmallVec<[usize; 3]> = tensors
                .iter()
                .map(|it| match (dim + it.sizes.len()).checked_sub(sizes.len()) {
                    Some(own) if it.sizes[own] != 1 => it.strides[own],
                    Some(_) | None => 0,
                })
                .collect();
            // Two dimensions are one where every tensor goes through them without a jump.
            let folds = walk
                .tensors
                .iter()
                .zip(&strides)
                .all(|((_, outer), &inner)| outer.last().is_some_and(|&outer| outer == inner * size));
            match walk.sizes.last_mut() {
                Some(last) if folds => {
                    *last *= size;
                    for ((_, of_tensor), stride) in walk.tensors.iter_mut().zip(strides) {
                        *of_tensor.last_mut().expect("there is a stride for every size") = stride;
                    }
                }
                Some(_) | None => {
                    walk.sizes.push(size);
                    walk.tensors.iter_mut().zip(strides).for_each(|((_, of_tensor), stride)| of_tensor.push(stride));
                }
            }
        }
        if walk.sizes.is_empty() {
            walk.sizes.push(1);
            walk.tensors.iter_mut().for_each(|(_, strides)| strides.push(0));
        }
        walk
    }

    /// The number of elements in a row.
    pub(crate) fn row_len(&self) -> usize {
        self.sizes[self.sizes.len() - 1]
    }

    /// How far apart the elements of a row lie in this tensor.
    pub(crate) fn row_stride(&self, tensor: usize) -> usize {
        self.tensors[tensor].1[self.sizes.len() - 1]
    }

    /// Whether the elements of this tensor lie in the order of the walk without gaps.
    pub(crate) fn is_linear(&self, tensor: usize) -> bool {
        let mut expected = 1;
        self.sizes.iter().zip(&self.tensors[tensor].1).rev().all(|(size, stride)| {
            let is_next = *stride == expected;
            expected *= size;
            is_next
        })
    }

    /// Where the element of this row-major number is. There must be one.
    pub(crate) fn cursor(&self, number: usize) -> Cursor {
        let outer = self.sizes.len() - 1;
        let mut row = number / self.row_len();
        let mut res = Cursor {
            index: smallvec::smallvec![0; outer],
            at: self.tensors.iter().map(|(offset, _)| *offset).collect(),
            column: number % self.row_len(),
        };
        for dim in (0..outer).rev() {
            res.index[dim] = row % self.sizes[dim];
            row /= self.sizes[dim];
            res.at.iter_mut().zip(&self.tensors).for_each(|(at, (_, strides))| *at += strides[dim] * res.index[dim]);
        }
        res
    }

    /// Goes on by `n` elements.
    pub(crate) fn advance(&self, cursor: &mut Cursor, n: usize) {
        cursor.column += n;
        while cursor.column >= self.row_len() {
            cursor.column -= self.row_len();
            self.next_row(cursor);
        }
    }

    /// Goes on to the next row, from the last one to the first.
    fn next_row(&self, cursor: &mut Cursor) {
        for dim in (0..cursor.index.len()).rev() {
            let (size, strides) = (self.sizes[dim], self.tensors.iter().map(|(_, strides)| strides[dim]));
            cursor.index[dim] += 1;
            if cursor.index[dim] < size {
                cursor.at.iter_mut().zip(strides).for_each(|(at, stride)| *at += stride);
                return;
            }
            cursor.index[dim] = 0;
            cursor.at.iter_mut().zip(strides).for_each(|(at, stride)| *at -= stride * (size - 1));
        }
    }

    /// The number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.sizes[..self.sizes.len() - 1].iter().product()
    }

    /// Where a row, of which there are elements, starts in each tensor.
    pub(crate) fn row_start(&self, row: usize) -> SmallVec<[usize; 3]> {
        self.cursor(row * self.row_len()).at
    }
}

/// A place on a [`StridedIter`].
#[derive(Clone)]
pub(crate) struct Cursor {
    /// The index of the row in the outer dimensions.
    index: Dims,
    /// Where the row starts in each tensor.
    pub(crate) at: SmallVec<[usize; 3]>,
    /// The number of elements of the row that come before.
    pub(crate) column: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sizes: &[usize], tensors: &[StridedLayout<'_>]) -> (usize, Vec<Vec<usize>>) {
        let walk = StridedIter::new(sizes, tensors);
        let n_rows = if walk.row_len() == 0 { 0 } else { walk.n_rows() };
        (walk.row_len(), (0..n_rows).map(|row| walk.row_start(row).to_vec()).collect())
    }

    #[test]
    fn contiguous_tensors_are_one_row() {
        let it = StridedLayout { sizes: &[2, 3, 4], strides: &[12, 4, 1], offset: 5 };
        assert_eq!(rows(&[2, 3, 4], &[it, it]), (24, vec![vec![5, 5]]));
    }

    #[test]
    fn a_broadcast_tensor_starts_again_at_each_row() {
        let whole = StridedLayout { sizes: &[2, 3], strides: &[3, 1], offset: 0 };
        let row = StridedLayout { sizes: &[3], strides: &[1], offset: 7 };
        assert_eq!(rows(&[2, 3], &[whole, row]), (3, vec![vec![0, 7], vec![3, 7]]));
    }

    #[test]
    fn sizes_of_one_and_no_sizes_walk_once() {
        let it = StridedLayout { sizes: &[1, 1], strides: &[9, 9], offset: 2 };
        assert_eq!(rows(&[1, 1], &[it]), (1, vec![vec![2]]));
        assert_eq!(rows(&[], &[StridedLayout { sizes: &[], strides: &[], offset: 4 }]), (1, vec![vec![4]]));
    }

    #[test]
    fn an_empty_size_walks_nowhere() {
        let it = StridedLayout { sizes: &[2, 0], strides: &[1, 1], offset: 99 };
        assert_eq!(rows(&[2, 0], &[it]).1, Vec::<Vec<usize>>::new());
    }
}
