//! Copies between strided regions, for elements of any dtype.

use crate::Dims;
use smallvec::SmallVec;

/// One side of a copy: bytes, the position of the first element and how far a step along each dimension goes, both in
/// elements.
#[derive(Debug)]
pub struct Region<'a, B> {
    /// Where the elements are.
    pub bytes: B,
    /// The position of the first one.
    pub offset: usize,
    /// One stride for each size.
    pub strides: &'a [usize],
}

/// Copies the elements of these sizes from one region to another one. Elements are of 1, 2, 4, 8 or 16 bytes.
///
/// Dimensions are walked in the order in which they lie in the memory that is written. Where the innermost one has no
/// gaps on either side it is copied as a whole, and where the sides have different innermost dimensions, square tiles
/// are transposed, so that every cache line is read and written once.
///
/// # Panics
/// When a position lies outside its bytes.
pub fn copy_strided(element_size: usize, sizes: &[usize], from: Region<'_, &[u8]>, to: Region<'_, &mut [u8]>) {
    assert!(from.strides.len() == sizes.len() && to.strides.len() == sizes.len(), "there is a stride for each size");
    if sizes.contains(&0) {
        return;
    }
    match element_size {
        1 => copy::<u8>(sizes, from, to),
        2 => copy::<u16>(sizes, from, to),
        4 => copy::<u32>(sizes, from, to),
        8 => copy::<u64>(sizes, from, to),
        16 => copy::<[u64; 2]>(sizes, from, to),
        other => panic!("no element has {other} bytes"),
    }
}

fn copy<T: bytemuck::Pod>(sizes: &[usize], from: Region<'_, &[u8]>, to: Region<'_, &mut [u8]>) {
    let whole = |len: usize| len / size_of::<T>() * size_of::<T>();
    let elements: &[T] = bytemuck::cast_slice(&from.bytes[..whole(from.bytes.len())]);
    let end = whole(to.bytes.len());
    let target: &mut [T] = bytemuck::cast_slice_mut(&mut to.bytes[..end]);
    let mut dims = folded(sizes, from.strides, to.strides);
    let inner = dims.pop().unwrap_or(Dim { size: 1, from: 1, to: 1 });
    let crossing = dims.iter().position(|it| it.from == 1 && it.size >= 4);
    if inner.to == 1
        && inner.from != 1
        && inner.size >= 2
        && let Some(at) = crossing
    {
        let other = dims.remove(at);
        return each(&dims, from.offset, to.offset, &mut |at, to_at| {
            transpose(&elements[at..], &mut target[to_at..], other, inner);
        });
    }
    each(&dims, from.offset, to.offset, &mut |at, to_at| run(&elements[at..], &mut target[to_at..], inner));
}

/// A dimension of both sides.
#[derive(Clone, Copy, Debug)]
struct Dim {
    size: usize,
    from: usize,
    to: usize,
}

/// The dimensions from the outermost of the written side to its innermost, as few as the strides allow.
fn folded(sizes: &[usize], from: &[usize], to: &[usize]) -> SmallVec<[Dim; 6]> {
    let mut dims: SmallVec<[Dim; 6]> = (0..sizes.len())
        .map(|it| Dim { size: sizes[it], from: from[it], to: to[it] })
        .filter(|it| it.size != 1)
        .collect();
    dims.sort_by_key(|it| std::cmp::Reverse((it.to, it.from)));
    let mut res: SmallVec<[Dim; 6]> = SmallVec::new();
    for dim in dims {
        match res.last_mut() {
            Some(last) if last.from == dim.from * dim.size && last.to == dim.to * dim.size => {
                *last = Dim { size: last.size * dim.size, ..dim };
            }
            Some(_) | None => res.push(dim),
        }
    }
    res
}

/// Calls `body` with the position on both sides of each index of these dimensions.
fn each(dims: &[Dim], mut at: usize, mut to_at: usize, body: &mut dyn FnMut(usize, usize)) {
    let mut index: Dims = smallvec::smallvec![0; dims.len()];
    for _ in 0..dims.iter().map(|it| it.size).product() {
        body(at, to_at);
        for (i, dim) in index.iter_mut().zip(dims).rev() {
            *i += 1;
            (at, to_at) = (at + dim.from, to_at + dim.to);
            if *i < dim.size {
                break;
            }
            (at, to_at) = (at - dim.from * dim.size, to_at - dim.to * dim.size);
            *i = 0;
        }
    }
}

/// Copies along one dimension.
fn run<T: Copy>(from: &[T], to: &mut [T], dim: Dim) {
    match (dim.from, dim.to) {
        (1, 1) => to[..dim.size].copy_from_slice(&from[..dim.size]),
        (0, 1) => to[..dim.size].fill(from[0]),
        (step, 1) => to[..dim.size].iter_mut().zip(from.iter().step_by(step)).for_each(|(to, from)| *to = *from),
        (step, to_step) => (0..dim.size).for_each(|i| to[i * to_step] = from[i * step]),
    }
}

/// Copies along two dimensions, of which the first one has no gaps in what is read and the second one none in what is
/// written.
fn transpose<T: bytemuck::Pod>(from: &[T], to: &mut [T], first: Dim, second: Dim) {
    const TILE: usize = 16;
    match (first.to == second.size, second.size) {
        (true, 2) => return interleave::<T, 2>(from, to, first, second),
        (true, 3) => return interleave::<T, 3>(from, to, first, second),
        (true, 4) => return interleave::<T, 4>(from, to, first, second),
        _ => {}
    }
    for j in (0..second.size).step_by(TILE) {
        let width = TILE.min(second.size - j);
        for i in (0..first.size).step_by(TILE) {
            let height = TILE.min(first.size - i);
            let mut tile = [[T::zeroed(); TILE]; TILE];
            if (width, height) == (TILE, TILE) {
                for (line, j) in tile.iter_mut().zip(j..) {
                    line.copy_from_slice(&from[j * second.from + i..][..TILE]);
                }
                for column in 0..TILE {
                    let line: &mut [T] = &mut to[(i + column) * first.to + j..][..TILE];
                    line.iter_mut().zip(&tile).for_each(|(to, line)| *to = line[column]);
                }
            } else {
                for (line, j) in tile[..width].iter_mut().zip(j..) {
                    line[..height].copy_from_slice(&from[j * second.from + i..][..height]);
                }
                for column in 0..height {
                    let line: &mut [T] = &mut to[(i + column) * first.to + j..][..width];
                    line.iter_mut().zip(&tile).for_each(|(to, line)| *to = line[column]);
                }
            }
        }
    }
}

/// As [`transpose`], where `N` elements lie side by side in what is written, such as the colours of pixels.
fn interleave<T: Copy, const N: usize>(from: &[T], to: &mut [T], first: Dim, second: Dim) {
    let rows: [&[T]; N] = std::array::from_fn(|j| &from[j * second.from..][..first.size]);
    let to = &mut to.as_chunks_mut::<N>().0[..first.size];
    for (i, to) in to.iter_mut().enumerate() {
        *to = std::array::from_fn(|j| rows[j][i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sizes, the order of the dimensions in memory on both sides, and gaps behind the innermost ones.
    fn regions() -> impl Strategy<Value = (Vec<usize>, [Vec<usize>; 2])> {
        let sizes = prop::collection::vec(prop_oneof![0..3usize, 3..40usize], 0..4);
        sizes.prop_flat_map(|sizes| {
            let order = Just((0..sizes.len()).collect::<Vec<_>>()).prop_shuffle();
            let side = (order, 1..3usize, any::<bool>()).prop_map({
                let sizes = sizes.clone();
                move |(order, gap, is_stretched)| {
                    let mut strides = vec![0; sizes.len()];
                    let mut stride = gap;
                    for (place, &dim) in order.iter().enumerate() {
                        strides[dim] = if is_stretched && place == 0 { 0 } else { stride };
                        stride *= sizes[dim].max(1);
                    }
                    strides
                }
            });
            (Just(sizes), [side.clone(), side])
        })
    }

    fn check<T: bytemuck::Pod + PartialEq + std::fmt::Debug>(
        sizes: &[usize],
        from: &[usize],
        to: &[usize],
        of: impl Fn(usize) -> T,
    ) {
        let span = |strides: &[usize]| {
            3 + sizes.iter().zip(strides).map(|(n, s)| n.max(&1).saturating_sub(1) * s).sum::<usize>()
        };
        let elements: Vec<T> = (0..span(from)).map(of).collect();
        let mut expected = vec![T::zeroed(); span(to)];
        let n: usize = sizes.iter().product();
        for i in 0..n {
            let (mut rest, mut at, mut to_at) = (i, 2, 1);
            for dim in (0..sizes.len()).rev() {
                let index = rest % sizes[dim];
                rest /= sizes[dim];
                (at, to_at) = (at + index * from[dim], to_at + index * to[dim]);
            }
            expected[to_at] = elements[at];
        }
        let mut got = vec![T::zeroed(); span(to)];
        let from = Region { bytes: bytemuck::cast_slice(&elements), offset: 2, strides: from };
        let to = Region { bytes: bytemuck::cast_slice_mut(&mut got), offset: 1, strides: to };
        copy_strided(size_of::<T>(), sizes, from, to);
        assert_eq!(got, expected);
    }

    #[test]
    fn complex_numbers_lie_at_multiples_of_8_bytes() {
        let words: Vec<u64> = (0..9).collect();
        let mut got = [0u64; 9];
        let from = Region { bytes: bytemuck::cast_slice(&words[1..]), offset: 0, strides: &[2] };
        let to = Region { bytes: bytemuck::cast_slice_mut(&mut got[1..]), offset: 0, strides: &[1] };
        copy_strided(16, &[2], from, to);
        assert_eq!(got, [0, 1, 2, 5, 6, 0, 0, 0, 0]);
        // One of both is no multiple of 16.
        let from = Region { bytes: bytemuck::cast_slice(&words[..8]), offset: 0, strides: &[2] };
        let to = Region { bytes: bytemuck::cast_slice_mut(&mut got[..8]), offset: 0, strides: &[1] };
        copy_strided(16, &[2], from, to);
        assert_eq!(got, [0, 1, 4, 5, 6, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn every_element_comes_to_its_place((sizes, [from, to]) in regions()) {
            // What is written has one place for each element.
            let is_written_once = to.iter().zip(&sizes).all(|(&stride, &size)| stride > 0 || size <= 1);
            prop_assume!(is_written_once);
            check::<u8>(&sizes, &from, &to, |it| (it % 251) as u8 + 1);
            check::<u32>(&sizes, &from, &to, |it| it as u32 + 1);
            check::<[u64; 2]>(&sizes, &from, &to, |it| [it as u64 + 1, it as u64]);
        }
    }
}
