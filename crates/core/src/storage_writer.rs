//! Storages of bytes that arrive in pieces, as from a file.

use crate::storage::Block;
use crate::{Result, Storage, allocate, recycle};

/// Fills a [`Storage`] with bytes that come piece by piece, so that they lie in memory once.
///
/// Memory is reserved at once, so that it need not move, and written as bytes come: a length that lies takes room in the
/// address space and no memory.
///
/// ```
/// use tracefx_core::StorageWriter;
/// let mut writer = StorageWriter::new(5)?;
/// writer.push(&[1, 2, 3]);
/// writer.push(&[4, 5]);
/// assert_eq!(writer.finish().read().bytes(), [1, 2, 3, 4, 5]);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
pub struct StorageWriter {
    blocks: Vec<Block>,
    /// The bytes that were written, of which the last block may have some.
    written: usize,
    len: usize,
}

impl StorageWriter {
    /// A writer of a storage of `len` bytes.
    ///
    /// # Errors
    /// `OutOfMemory` when the allocator refuses.
    pub fn new(len: usize) -> Result<Self> {
        let n_blocks = len.div_ceil(16);
        let blocks = match recycle::take(n_blocks) {
            Some(mut blocks) => {
                blocks.clear();
                blocks
            }
            None => allocate::with_room(n_blocks)?,
        };
        Ok(StorageWriter { blocks, written: 0, len })
    }

    /// The bytes that are still to come.
    pub fn missing(&self) -> usize {
        self.len - self.written
    }

    /// Appends bytes.
    ///
    /// # Panics
    /// When these are more than [`StorageWriter::missing`].
    pub fn push(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.missing(), "a storage is written beyond its end");
        let (begun, mut rest) = (self.written % 16, bytes);
        if begun > 0
            && let Some(last) = self.blocks.last_mut()
        {
            let (fitting, more) = rest.split_at(rest.len().min(16 - begun));
            last.bytes_mut()[begun..begun + fitting.len()].copy_from_slice(fitting);
            rest = more;
        }
        let (whole, partial) = rest.as_chunks::<16>();
        self.blocks.extend(whole.iter().map(|it| Block::of(*it)));
        if !partial.is_empty() {
            let mut last = [0; 16];
            last[..partial.len()].copy_from_slice(partial);
            self.blocks.push(Block::of(last));
        }
        self.written += bytes.len();
    }

    /// The storage.
    ///
    /// # Panics
    /// When bytes are missing.
    pub fn finish(self) -> Storage {
        assert_eq!(self.missing(), 0, "bytes of a storage are missing");
        Storage::of(self.blocks, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_as_they_came_however_they_were_cut() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1003).collect();
        for size in [1, 3, 15, 16, 17, 64, 1003] {
            let mut writer = StorageWriter::new(bytes.len()).unwrap();
            bytes.chunks(size).for_each(|it| writer.push(it));
            assert_eq!(writer.finish().read().bytes(), bytes);
        }
        assert!(StorageWriter::new(0).unwrap().finish().is_empty());
    }

    #[test]
    fn what_lies_behind_the_end_is_zero_when_the_storage_grows() {
        let mut writer = StorageWriter::new(5).unwrap();
        writer.push(&[7; 5]);
        let storage = writer.finish();
        storage.grow(20).unwrap();
        assert_eq!(storage.read().bytes(), [&[7; 5][..], &[0; 15]].concat());
    }
}
