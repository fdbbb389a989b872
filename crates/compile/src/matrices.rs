//! Batches of matrices as lists of dimensions: how the same elements lie in other memory, and how several batches are one.

use tracefx_core::contiguous_strides;
use tracefx_plan::{Extent, Plan, TensorId, TensorView};

/// A size and a stride.
type Dim = (usize, usize);

/// A batch of matrices in a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Matrices {
    /// A tensor of the buffer.
    pub(crate) of: TensorId,
    pub(crate) batch: Vec<Dim>,
    pub(crate) rows: Dim,
    pub(crate) columns: Dim,
    offset: usize,
}

impl Matrices {
    /// Those of a tensor whose sizes are numbers.
    pub(crate) fn of(plan: &Plan, id: TensorId) -> Option<Self> {
        let Extent { sizes, strides, offset } = plan.tensor(id).known()?;
        let mut batch: Vec<Dim> = sizes.into_iter().zip(strides).collect();
        let (columns, rows) = (batch.pop()?, batch.pop()?);
        Some(Matrices { of: id, batch, rows, columns, offset })
    }

    /// Those of a tensor that broadcasts to a batch of matrices of these sizes.
    pub(crate) fn expanded(plan: &Plan, id: TensorId, batch: &[usize], matrix: [usize; 2]) -> Option<Self> {
        let Extent { sizes, strides, offset } = plan.tensor(id).known()?;
        let all = [batch, &matrix].concat();
        let missing = all.len().checked_sub(sizes.len())?;
        let own = std::iter::repeat_n((1, 0), missing).chain(sizes.into_iter().zip(strides));
        let dim = |(size, (own, stride)): (usize, Dim)| match own {
            _ if own == size => Some((size, stride)),
            1 => Some((size, 0)),
            _ => None,
        };
        let mut batch: Vec<Dim> = all.into_iter().zip(own).map(dim).collect::<Option<_>>()?;
        let (columns, rows) = (batch.pop()?, batch.pop()?);
        Some(Matrices { of: id, batch, rows, columns, offset })
    }

    /// With rows for columns.
    pub(crate) fn transposed(self) -> Self {
        Matrices { rows: self.columns, columns: self.rows, ..self }
    }

    /// The sizes of the batch.
    pub(crate) fn batch_sizes(&self) -> Vec<usize> {
        self.batch.iter().map(|it| it.0).collect()
    }

    /// The same elements in memory that is copied to or from where these are: `here` and `there` are the two sides of the copy, of which
    /// `here` has no gaps. Nothing where rows or columns have no single stride there.
    pub(crate) fn moved(&self, here: &Extent, there: &Extent, of: TensorId) -> Option<Self> {
        if here.sizes.contains(&0) {
            return None;
        }
        // Of both sides, the one that is row-major can be seen in the sizes of the other.
        let row_major = |it: &Extent, sizes: &tracefx_core::Dims| Extent {
            sizes: sizes.clone(),
            strides: contiguous_strides(sizes),
            offset: it.offset,
        };
        let n_elements = |it: &Extent| it.sizes.iter().product::<usize>();
        let (here, there) = match here.sizes == there.sizes {
            true => (here.clone(), there.clone()),
            false if n_elements(here) != n_elements(there) => return None,
            false if here.is_row_major() => (row_major(here, &there.sizes), there.clone()),
            false if there.is_row_major() => (here.clone(), row_major(there, &here.sizes)),
            false => return None,
        };
        let strides = here.strides.iter().zip(&there.strides);
        let mut dims: Vec<(usize, usize, usize)> =
            here.sizes.iter().zip(strides).filter(|(size, _)| **size != 1).map(|(a, (b, c))| (*a, *b, *c)).collect();
        dims.sort_unstable_by_key(|it| it.1);
        let mut reach = 1;
        for (size, stride, _) in &dims {
            if *stride != reach {
                return None;
            }
            reach *= size;
        }
        let mut rest = self.offset.checked_sub(here.offset)?;
        let mut offset = there.offset;
        // The largest index in each dimension.
        let mut last = Vec::new();
        for (size, _, to) in &dims {
            last.push(rest % size);
            offset += rest % size * to;
            rest /= size;
        }
        let mut place = |(mut size, mut stride): Dim| {
            let mut res: Vec<Dim> = Vec::new();
            while size > 1 {
                if stride == 0 {
                    res.push((size, 0));
                    break;
                }
                let dim = dims.iter().rposition(|it| it.1 <= stride)?;
                let (n, from, to) = dims[dim];
                let (factor, is_whole) = (stride / from, stride % from == 0);
                let taken = size.min(n / factor);
                if !is_whole || taken < 2 || size % taken != 0 {
                    return None;
                }
                last[dim] += (taken - 1) * factor;
                res.push((taken, to * factor));
                (size, stride) = (size / taken, stride * taken);
            }
            res.reverse();
            res.dedup_by(|inner, outer| {
                let is_one = outer.1 == inner.0 * inner.1;
                if is_one {
                    *outer = (outer.0 * inner.0, inner.1);
                }
                is_one
            });
            Some(res)
        };
        let batch = self.batch.iter().map(|it| place(*it)).collect::<Option<Vec<_>>>()?.concat();
        let mut single = |it: Dim| match place(it)?[..] {
            [] => Some((it.0, 1)),
            [dim] => Some(dim),
            _ => None,
        };
        let (rows, columns) = (single(self.rows)?, single(self.columns)?);
        // No index goes on in the next dimension.
        let is_inside = rest == 0 && last.iter().zip(&dims).all(|(last, dim)| *last < dim.0);
        is_inside.then_some(Matrices { of, batch, rows, columns, offset })
    }

    /// Adds the tensor to the plan, where it is not there.
    pub(crate) fn add(&self, plan: &mut Plan) -> TensorId {
        let dims = || self.batch.iter().chain([&self.rows, &self.columns]);
        let view = plan.tensor(self.of);
        let numbers = |it: &mut dyn Iterator<Item = usize>| it.map(|it| (it as i64).into()).collect();
        let added = TensorView {
            sizes: numbers(&mut dims().map(|it| it.0)),
            strides: numbers(&mut dims().map(|it| it.1)),
            offset: (self.offset as i64).into(),
            ..view.clone()
        };
        if added == *view { self.of } else { plan.add_tensor(added) }
    }
}

/// Gives batches of as many matrices the same sizes: dimensions are split until they agree. Nothing where they do not, or where there are no matrices.
pub(crate) fn refine(all: &mut [&mut Vec<Dim>]) -> Option<()> {
    let mut rest: Vec<Vec<Dim>> = all.iter().map(|it| it.iter().copied().filter(|it| it.0 != 1).collect()).collect();
    all.iter_mut().for_each(|it| it.clear());
    while rest.iter().any(|it| !it.is_empty()) {
        let taken = rest.iter().map(|it| it.last().map(|it| it.0)).collect::<Option<Vec<_>>>()?.into_iter().min()?;
        for (dims, done) in rest.iter_mut().zip(&mut *all) {
            let (size, stride) = dims.pop()?;
            if taken == 0 || size % taken != 0 {
                return None;
            }
            done.insert(0, (taken, stride));
            if size > taken {
                dims.push((size / taken, stride * taken));
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrices(batch: &[Dim], rows: Dim, columns: Dim) -> Matrices {
        Matrices { of: TensorId(0), batch: batch.to_vec(), rows, columns, offset: 0 }
    }

    fn extent(sizes: &[usize], strides: &[usize]) -> Extent {
        Extent { sizes: sizes.into(), strides: strides.into(), offset: 0 }
    }

    #[track_caller]
    fn check(from: &Matrices, here: &Extent, there: &Extent, want: Option<(&[Dim], Dim, Dim)>) {
        let got = from.moved(here, there, TensorId(1));
        let got = got.as_ref().map(|it| (&it.batch[..], it.rows, it.columns));
        assert_eq!(got, want);
    }

    #[test]
    fn matrices_are_where_a_copy_has_them() {
        // Eight matrices of a copy of `[2, 4, 5, 3]`, whose rows lay first.
        let eight = matrices(&[(8, 15)], (5, 3), (3, 1));
        let (copy, heads) = (extent(&[2, 4, 5, 3], &[60, 15, 3, 1]), extent(&[2, 4, 5, 3], &[60, 3, 12, 1]));
        check(&eight, &copy, &heads, Some((&[(2, 60), (4, 3)], (5, 12), (3, 1))));
        check(&eight.clone().transposed(), &copy, &heads, Some((&[(2, 60), (4, 3)], (3, 1), (5, 12))));
        // As a reshape, and as what repeats heads.
        check(&eight, &extent(&[8, 5, 3], &[15, 3, 1]), &heads, Some((&[(2, 60), (4, 3)], (5, 12), (3, 1))));
        let shared = extent(&[2, 2, 2, 5, 3], &[30, 3, 0, 6, 1]);
        check(&eight, &copy, &shared, Some((&[(2, 30), (2, 3), (2, 0)], (5, 6), (3, 1))));
        // Columns of four elements are not in rows of three.
        check(&matrices(&[(10, 12)], (3, 4), (4, 1)), &copy, &heads, None);
        // A copy with gaps.
        check(&eight, &extent(&[2, 4, 5, 3], &[80, 20, 4, 1]), &heads, None);
    }

    #[test]
    fn a_part_of_a_copy_begins_where_it_lay() {
        let second = Matrices { offset: 17, ..matrices(&[(2, 60)], (5, 3), (1, 1)) };
        let (copy, heads) = (extent(&[2, 4, 5, 3], &[60, 15, 3, 1]), extent(&[2, 4, 5, 3], &[60, 3, 12, 1]));
        let moved = second.moved(&copy, &heads, TensorId(1)).unwrap();
        assert_eq!((moved.offset, moved.rows), (5, (5, 12)));
        let beyond = Matrices { offset: 17, columns: (3, 1), ..second };
        assert!(beyond.moved(&copy, &heads, TensorId(1)).is_none());
    }

    #[test]
    fn batches_are_split_until_they_agree() {
        let (mut a, mut b, mut c) = (vec![(12, 5)], vec![(1, 9), (2, 100), (6, 0)], vec![(4, 1), (3, 4)]);
        refine(&mut [&mut a, &mut b, &mut c]).unwrap();
        assert_eq!((a, b), (vec![(2, 30), (2, 15), (3, 5)], vec![(2, 100), (2, 0), (3, 0)]));
        assert_eq!(c, [(2, 2), (2, 1), (3, 4)]);
        assert!(refine(&mut [&mut vec![(6, 1)], &mut vec![(4, 1)]]).is_none());
        assert!(refine(&mut [&mut vec![(4, 1)], &mut vec![(2, 1)]]).is_none());
        assert!(refine(&mut [&mut vec![(0, 1)], &mut vec![(0, 1)]]).is_none());
    }
}
