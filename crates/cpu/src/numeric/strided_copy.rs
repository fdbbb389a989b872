//! Copies between strided regions, for elements of any dtype: what all data movement is made of.
//!
//! A copy is described by its sizes and, for both sides, by how far each step along a dimension goes. The steps of a
//! dimension may also be listed one by one, which makes flips, rolls, padding and lookups by index copies like any
//! other.

use crate::numeric::dense::{change_bits, written};
use crate::numeric::dispatch::with_bits;
use crate::numeric::parallel;
use tracefx_core::{Dims, Region, Result, Tensor, contiguous_strides, copy_strided, has_contiguous_strides};
use tracefx_ops::Args;

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

/// Where the elements of one side of a copy are: the first one, and the other ones from there.
#[derive(Clone, Debug)]
pub(crate) struct Offsets {
    pub(crate) start: usize,
    pub(crate) axes: Vec<Axis>,
}

impl Offsets {
    /// Those of strides.
    pub(crate) fn new(start: usize, strides: &[usize]) -> Self {
        Offsets { start, axes: strides.iter().map(|&it| Axis::Step(it)).collect() }
    }

    /// The strides, unless the positions are listed.
    fn strides(&self) -> Option<Dims> {
        let step = |it: &Axis| match it {
            Axis::Step(step) => Some(*step),
            Axis::At(_) => None,
        };
        self.axes.iter().map(step).collect()
    }

    /// Those of all elements of a tensor.
    pub(crate) fn of(tensor: &Tensor) -> Self {
        Self::new(tensor.offset(), tensor.strides())
    }
}

/// Calls `f` for the elements at each of the positions of these sizes, in row-major order: with the one of `to`, to be
/// changed, and the one of `from`.
///
/// # Panics
/// When a position lies outside its slice.
pub(crate) fn zip<T: Copy>(
    sizes: &[usize],
    from: (&[T], &Offsets),
    to: (&mut [T], &Offsets),
    f: impl Fn(&mut T, T) + Copy,
) {
    if sizes.contains(&0) {
        return;
    }
    // The last dimensions that lie without gaps on both sides are one block.
    let (mut block, mut rank) = (1, sizes.len());
    while rank > 0 {
        let is_block = match (&from.1.axes[rank - 1], &to.1.axes[rank - 1]) {
            (Axis::Step(from), Axis::Step(to)) => sizes[rank - 1] == 1 || (*from == block && *to == block),
            (Axis::At(_), _) | (_, Axis::At(_)) => false,
        };
        if !is_block {
            break;
        }
        block *= sizes[rank - 1];
        rank -= 1;
    }
    let walk = ZipLoop { sizes: &sizes[..rank], from: &from.1.axes, to: &to.1.axes, block, f };
    walk.run(0, from.0, from.1.start, to.0, to.1.start);
}

struct ZipLoop<'a, F> {
    sizes: &'a [usize],
    from: &'a [Axis],
    to: &'a [Axis],
    block: usize,
    f: F,
}

impl<F> ZipLoop<'_, F> {
    fn run<T: Copy>(&self, dim: usize, from: &[T], at: usize, to: &mut [T], to_at: usize)
    where
        F: Fn(&mut T, T) + Copy,
    {
        let Some(&size) = self.sizes.get(dim) else {
            let (from, to) = (&from[at..at + self.block], &mut to[to_at..to_at + self.block]);
            to.iter_mut().zip(from).for_each(|(to, from)| (self.f)(to, *from));
            return;
        };
        let is_last = dim + 1 == self.sizes.len() && self.block == 1;
        match (&self.from[dim], &self.to[dim]) {
            // The innermost loops that are common, without an index for each element.
            (Axis::Step(0), Axis::Step(1)) if is_last => {
                let value = from[at];
                to[to_at..to_at + size].iter_mut().for_each(|to| (self.f)(to, value));
            }
            (Axis::Step(step @ 1..), Axis::Step(1)) if is_last => {
                let from = from[at..].iter().step_by(*step);
                to[to_at..to_at + size].iter_mut().zip(from).for_each(|(to, from)| (self.f)(to, *from));
            }
            (Axis::At(places), Axis::Step(1)) if is_last => {
                let to = to[to_at..to_at + size].iter_mut();
                to.zip(places).for_each(|(to, place)| (self.f)(to, from[at + place]));
            }
            (from_axis, to_axis) => {
                let place = |axis: &Axis, i: usize| match axis {
                    Axis::Step(step) => i * step,
                    Axis::At(places) => places[i],
                };
                for i in 0..size {
                    self.run(dim + 1, from, at + place(from_axis, i), to, to_at + place(to_axis, i));
                }
            }
        }
    }
}

/// Fills a new, row-major result with what is at these places of the storage of `tensor`.
pub(crate) fn gather_places(tensor: &Tensor, places: &Offsets, result: &Tensor) {
    copy(result.sizes(), (tensor, places), (result, &Offsets::of(result)));
}

/// Copies the first argument of a call to a new result.
pub(crate) fn copy_first(args: &Args<'_, Tensor>, result: &Tensor) -> Result<()> {
    let base = args.tensor(0)?;
    gather_places(base, &Offsets::of(base), result);
    Ok(())
}

/// The kernel of an operator whose result differs from its first argument in some elements, by what changes them
/// ([`Kernel::Update`](tracefx_exec::Kernel)).
macro_rules! updating {
    ($update:expr) => {
        tracefx_exec::Kernel::Update {
            fill: |args, results| {
                $crate::numeric::strided_copy::copy_first(args, &results[0])?;
                ($update)(args, &results[0])
            },
            update: $update,
        }
    };
}
pub(crate) use updating;

/// Copies a tensor to these places of another storage.
pub(crate) fn copy_to(tensor: &Tensor, result: &Tensor, places: &Offsets) {
    copy(tensor.sizes(), (tensor, &Offsets::of(tensor)), (result, places));
}

/// Copies the elements of these sizes from places of a tensor to places of another storage.
pub(crate) fn copy(sizes: &[usize], from: (&Tensor, &Offsets), to: (&Tensor, &Offsets)) {
    let guard = from.0.storage().read();
    if let (Some(strides), Some(to_strides)) = (from.1.strides(), to.1.strides()) {
        let size = to.0.dtype().size();
        let mut target = written(to.0);
        let region = Region { bytes: guard.bytes(), offset: from.1.start, strides: &strides };
        if has_contiguous_strides(sizes, &to_strides) {
            let n: usize = sizes.iter().product();
            // An empty copy may start anywhere.
            let start = if n == 0 { 0 } else { to.1.start * size };
            return copy_rows(size, sizes, region, &mut target.bytes_mut()[start..][..n * size]);
        }
        let to = Region { bytes: target.bytes_mut(), offset: to.1.start, strides: &to_strides };
        return copy_strided(size, sizes, region, to);
    }
    with_bits!(to.0.dtype(), T => {
        let elements: &[T] = bits(guard.bytes());
        change_bits::<T, _>(to.0, |out| zip(sizes, (elements, from.1), (out, to.1), |to, from| *to = from));
    });
}

/// Copies to row-major elements, several parts of the outermost dimension at the same time.
fn copy_rows(size: usize, sizes: &[usize], from: Region<'_, &[u8]>, out: &mut [u8]) {
    let lead = sizes.iter().position(|&it| it != 1).unwrap_or(sizes.len());
    let (mut sizes, strides) = (&sizes[lead..], &from.strides[lead..]);
    let n: [usize; 1] = [sizes.iter().product()];
    let mut step = strides.first().copied().unwrap_or(1);
    if has_contiguous_strides(sizes, strides) {
        (sizes, step) = (&n, 1);
    }
    let strides = if sizes.len() == strides.len() { strides } else { &[1] };
    let row: usize = sizes[1..].iter().product();
    parallel::parts_mut(out, parallel::whole_rows(row) * size, |at, part| {
        let mut sizes: Dims = sizes.into();
        sizes[0] = part.len() / (row * size);
        let own = contiguous_strides(&sizes);
        let from = Region { bytes: from.bytes, offset: from.offset + at / (row * size) * step, strides };
        copy_strided(size, &sizes, from, Region { bytes: part, offset: 0, strides: &own });
    });
}
