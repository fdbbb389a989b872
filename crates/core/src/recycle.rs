//! Memory of storages that are gone, for those that come: a program allocates the same sizes in every call.
//!
//! A thread keeps buffers by the power of two below their size, a few of each, so that looking for one takes the same time
//! however many storages came and went.

use crate::storage::Block;
use std::cell::RefCell;

/// The bytes that a thread keeps at most.
const MOST: usize = 1 << 26;

/// Smaller memory is left to the allocator.
const LEAST: usize = 1 << 12;

/// The buffers of one class that a thread keeps at most.
const MOST_OF_A_CLASS: usize = 32;

#[derive(Default)]
struct Kept {
    /// By the logarithm of their length, rounded down.
    classes: Vec<Vec<Vec<Block>>>,
    n_bytes: usize,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::new(Kept::default());
}

fn size(buffer: &Vec<Block>) -> usize {
    buffer.capacity() * size_of::<Block>()
}

impl Kept {
    /// The smallest buffer of this class that has `n_blocks`, and not twice as many.
    fn take(&mut self, class: usize, n_blocks: usize) -> Option<Vec<Block>> {
        let buffers = self.classes.get_mut(class)?;
        let fits = |it: &&Vec<Block>| (n_blocks..=n_blocks.saturating_mul(2)).contains(&it.len());
        let (at, _) = buffers.iter().enumerate().filter(|(_, it)| fits(it)).min_by_key(|(_, it)| it.len())?;
        let buffer = buffers.swap_remove(at);
        self.n_bytes -= size(&buffer);
        Some(buffer)
    }

    fn give(&mut self, buffer: Vec<Block>) {
        let size = size(&buffer);
        let Some(class) = buffer.len().checked_ilog2().map(|it| it as usize) else { return };
        if size < LEAST || self.n_bytes + size > MOST {
            return;
        }
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Vec::new);
        }
        let buffers = &mut self.classes[class];
        if buffers.len() < MOST_OF_A_CLASS {
            self.n_bytes += size;
            buffers.push(buffer);
        }
    }
}

/// Memory of this many blocks, which hold anything, if there is some that is not much larger.
pub(crate) fn take(n_blocks: usize) -> Option<Vec<Block>> {
    let class = n_blocks.checked_ilog2()? as usize;
    let take = |kept: &mut Kept| {
        let mut buffer = kept.take(class, n_blocks).or_else(|| kept.take(class + 1, n_blocks))?;
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
    let _ = KEPT.try_with(|kept| kept.borrow_mut().give(buffer));
}

/// Gives all memory that this thread keeps back to the allocator, and says whether there was any.
pub(crate) fn purge() -> bool {
    KEPT.try_with(|kept| std::mem::take(&mut *kept.borrow_mut()).n_bytes > 0).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Storage, Tensor};

    #[test]
    fn memory_comes_back_and_zeros_are_zeros() {
        let first = Storage::zeroed(1 << 16).unwrap();
        first.write().unwrap().bytes_mut().fill(7);
        let address = first.read().bytes().as_ptr();
        drop(first);
        let second = Storage::unfilled(1 << 16).unwrap();
        assert_eq!(second.read().bytes().as_ptr(), address);
        second.write().unwrap().bytes_mut().fill(7);
        drop(second);
        assert!(Storage::zeroed(1 << 16).unwrap().read().bytes().iter().all(|&it| it == 0));
        let small = Tensor::unfilled(DType::Int8, &[3, 1]).unwrap();
        assert_eq!((small.sizes(), small.storage().len()), (&[3, 1][..], 3));
    }

    #[test]
    fn what_is_kept_is_bounded_in_number_and_in_bytes() {
        purge();
        (0..18_000).for_each(|_| give(vec![Block::UNWRITTEN; 300]));
        let count = || KEPT.with_borrow(|kept| kept.classes.iter().map(Vec::len).sum::<usize>());
        assert_eq!(count(), MOST_OF_A_CLASS);
        (0..10).for_each(|_| give(vec![Block::UNWRITTEN; (MOST / 4) / 16]));
        assert!(KEPT.with_borrow(|kept| kept.n_bytes) <= MOST && count() == MOST_OF_A_CLASS + 3);
        // A buffer of the next class serves, one that is twice as large does not.
        assert_eq!(take(200).map(|it| it.len()), Some(200));
        assert_eq!(take(299).map(|it| it.len()), Some(299));
        assert!(take(149).is_none() && take(301).is_none());
        assert!(purge() && !purge());
    }
}
