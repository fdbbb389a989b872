//! Memory of storages that are gone, for those that come: a program allocates the same sizes in every call.

use crate::storage::Block;
use std::cell::RefCell;

/// The bytes that a thread keeps at most.
const MOST: usize = 1 << 26;

/// Smaller memory is left to the allocator.
const LEAST: usize = 1 << 12;

#[derive(Default)]
struct Kept {
    buffers: Vec<Vec<Block>>,
    n_bytes: usize,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::new(Kept::default());
}

fn size(buffer: &Vec<Block>) -> usize {
    buffer.capacity() * size_of::<Block>()
}

/// Memory of this many blocks, which hold anything, if there is some that is not much larger.
pub(crate) fn take(n_blocks: usize) -> Option<Vec<Block>> {
    let take = |kept: &mut Kept| {
        let fits = |it: &&Vec<Block>| (n_blocks..=n_blocks.saturating_mul(2)).contains(&it.len());
        let (at, _) = kept.buffers.iter().enumerate().filter(|(_, it)| fits(it)).min_by_key(|(_, it)| it.len())?;
        let mut buffer = kept.buffers.swap_remove(at);
        kept.n_bytes -= size(&buffer);
        buffer.truncate(n_blocks);
        // Whoever reads what was never written is found by the tests.
        #[cfg(debug_assertions)]
        buffer.fill(Block::UNWRITTEN);
        Some(buffer)
    };
    KEPT.try_with(|kept| take(&mut kept.borrow_mut())).ok().flatten()
}

/// Keeps memory, unless there is much of it already.
pub(crate) fn give(buffer: Vec<Block>) {
    // A thread that ends keeps nothing.
    let _ = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if size(&buffer) >= LEAST && kept.n_bytes + size(&buffer) <= MOST {
            kept.n_bytes += size(&buffer);
            kept.buffers.push(buffer);
        }
    });
}

#[cfg(test)]
mod tests {
    use crate::{DType, Storage, Tensor};

    #[test]
    fn memory_comes_back_and_zeros_are_zeros() {
        let first = Storage::zeroed(1 << 16).unwrap();
        first.write().bytes_mut().fill(7);
        let address = first.read().bytes().as_ptr();
        drop(first);
        let second = Storage::unfilled(1 << 16).unwrap();
        assert_eq!(second.read().bytes().as_ptr(), address);
        second.write().bytes_mut().fill(7);
        drop(second);
        assert!(Storage::zeroed(1 << 16).unwrap().read().bytes().iter().all(|&it| it == 0));
        let small = Tensor::unfilled(DType::Int8, &[3, 1]).unwrap();
        assert_eq!((small.sizes(), small.storage().len()), (&[3, 1][..], 3));
    }
}
