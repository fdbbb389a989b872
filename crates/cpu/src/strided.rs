//! Copies between strided regions, for elements of any dtype: what all data movement is made of.
//!
//! A copy is described by its sizes and, for both sides, by how far each step along a dimension goes. On the side that
//! is read, the steps of a dimension may also be listed, which makes flips, rolls, padding and index lookups copies
//! like any other.

use crate::dense::fill_bits;
use tracefx_core::{Result, Tensor};

/// Runs a block with `$T` bound to an unsigned integer as wide as the elements of a dtype: enough to move them.
macro_rules! with_bits {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            _ => {
                type $T = u128;
                $body
            }
        }
    };
}

/// The elements of a storage as unsigned integers of their width.
pub(crate) fn bits<T: bytemuck::Pod>(bytes: &[u8]) -> &[T] {
    bytemuck::cast_slice(&bytes[..bytes.len() / size_of::<T>() * size_of::<T>()])
}

/// How far the positions along one dimension are from the first element, in elements.
#[derive(Clone, Debug)]
pub(crate) enum Axis {
    /// Each position is this far from the one before.
    Step(usize),
    /// Position by position.
    At(Vec<usize>),
}

/// One side of a copy: the first element, and the other ones from there.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) start: usize,
    pub(crate) axes: Vec<Axis>,
}

impl Source {
    /// All elements of a tensor.
    pub(crate) fn of(tensor: &Tensor) -> Self {
        Source { start: tensor.offset(), axes: tensor.strides().iter().map(|&it| Axis::Step(it)).collect() }
    }
}

/// Copies the elements of these sizes from `source` in `from` to the strides from `to_start` on in `to`.
///
/// # Panics
/// When a position lies outside its slice.
pub(crate) fn copy<T: Copy>(
    sizes: &[usize],
    from: &[T],
    source: &Source,
    to: &mut [T],
    to_start: usize,
    to_strides: &[usize],
) {
    if sizes.contains(&0) {
        return;
    }
    // The last dimensions that lie without gaps on both sides move as one block.
    let (mut block, mut rank) = (1, sizes.len());
    while rank > 0 {
        let is_block = match source.axes[rank - 1] {
            Axis::Step(step) => sizes[rank - 1] == 1 || (step == block && to_strides[rank - 1] == block),
            Axis::At(_) => false,
        };
        if !is_block {
            break;
        }
        block *= sizes[rank - 1];
        rank -= 1;
    }
    let walk = Walk { sizes: &sizes[..rank], axes: &source.axes[..rank], to_strides: &to_strides[..rank], block };
    walk.run(0, from, source.start, to, to_start);
}

struct Walk<'a> {
    sizes: &'a [usize],
    axes: &'a [Axis],
    to_strides: &'a [usize],
    block: usize,
}

impl Walk<'_> {
    fn run<T: Copy>(&self, dim: usize, from: &[T], at: usize, to: &mut [T], to_at: usize) {
        let Some(&size) = self.sizes.get(dim) else {
            to[to_at..to_at + self.block].copy_from_slice(&from[at..at + self.block]);
            return;
        };
        let to_stride = self.to_strides[dim];
        let is_last = dim + 1 == self.sizes.len() && self.block == 1;
        match &self.axes[dim] {
            Axis::Step(step) if is_last => {
                let from = from[at..].iter().step_by((*step).max(1)).take(size);
                if *step == 0 {
                    let value = self.first(from);
                    (0..size).for_each(|i| to[to_at + i * to_stride] = value);
                } else if to_stride == 1 {
                    to[to_at..to_at + size].iter_mut().zip(from).for_each(|(to, from)| *to = *from);
                } else {
                    from.enumerate().for_each(|(i, from)| to[to_at + i * to_stride] = *from);
                }
            }
            Axis::At(places) if is_last && to_stride == 1 => {
                to[to_at..to_at + size].iter_mut().zip(places).for_each(|(to, place)| *to = from[at + place]);
            }
            Axis::Step(step) => {
                (0..size).for_each(|i| self.run(dim + 1, from, at + i * step, to, to_at + i * to_stride));
            }
            Axis::At(places) => {
                let places = places.iter().enumerate().take(size);
                places.for_each(|(i, place)| self.run(dim + 1, from, at + place, to, to_at + i * to_stride));
            }
        }
    }

    fn first<'a, T: Copy + 'a>(&self, mut from: impl Iterator<Item = &'a T>) -> T {
        *from.next().expect("a dimension of a copy is not empty")
    }
}

/// Fills a new, row-major result with what `source` finds in the storage of `tensor`.
pub(crate) fn gather_axes(tensor: &Tensor, source: &Source, result: &Tensor) -> Result<()> {
    with_bits!(result.dtype(), T => {
        let guard = tensor.storage().read();
        fill_bits::<T, _>(result, |to| copy(result.sizes(), bits(guard.bytes()), source, to, 0, result.strides()));
    });
    Ok(())
}

/// Copies a tensor into the part of a new, row-major result that starts at `start` and has these strides.
pub(crate) fn copy_into(tensor: &Tensor, result: &Tensor, start: usize, strides: &[usize]) {
    with_bits!(result.dtype(), T => {
        let guard = tensor.storage().read();
        fill_bits::<T, _>(result, |to| copy(tensor.sizes(), bits(guard.bytes()), &Source::of(tensor), to, start, strides));
    });
}
