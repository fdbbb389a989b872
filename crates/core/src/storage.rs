use crate::{Diagnostic, Element, Result, recycle};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Sixteen bytes with the alignment of the largest element, so that a storage can be viewed as any element type.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(16))]
pub(crate) struct Block([u8; 16]);

impl Block {
    pub(crate) const fn of(bytes: [u8; 16]) -> Self {
        Block(bytes)
    }

    pub(crate) const fn bytes_mut(&mut self) -> &mut [u8; 16] {
        &mut self.0
    }

    /// What debug builds put into memory that nobody has written yet: no number that a kernel would give.
    #[cfg(debug_assertions)]
    pub(crate) const UNWRITTEN: Block = Block([0xFB; 16]);
}

/// Bytes that tensors share; a clone is another handle on the same bytes.
///
/// Reads and writes go through guards, so that two tensors of one storage can be used from two threads. A thread that
/// holds a guard must not ask for another one of the same storage unless both only read.
#[derive(Clone)]
pub struct Storage(Arc<Shared>);

struct Shared {
    blocks: RwLock<Vec<Block>>,
    /// Changes under the lock of the blocks, and only upwards.
    len: AtomicUsize,
}

impl Drop for Shared {
    fn drop(&mut self) {
        recycle::give(std::mem::take(self.blocks.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())));
    }
}

/// Read access to the bytes of a [`Storage`].
pub struct StorageRead<'a> {
    guard: RwLockReadGuard<'a, Vec<Block>>,
    len: usize,
}

/// Write access to the bytes of a [`Storage`].
pub struct StorageWrite<'a> {
    guard: RwLockWriteGuard<'a, Vec<Block>>,
    len: usize,
}

impl Storage {
    /// A storage of `len` zero bytes.
    ///
    /// # Errors
    /// `OutOfMemory` when the allocator refuses; nothing is lost then.
    pub fn zeroed(len: usize) -> Result<Self> {
        let n_blocks = len.div_ceil(16);
        let mut blocks: Vec<Block> = Vec::new();
        blocks.try_reserve_exact(n_blocks).map_err(|_| Diagnostic::out_of_memory(len))?;
        blocks.resize(n_blocks, bytemuck::Zeroable::zeroed());
        Ok(Self::of(blocks, len))
    }

    /// A storage of `len` bytes that hold anything, for who writes all of them: memory of a storage that is gone, which
    /// costs nothing, or zeros.
    ///
    /// # Errors
    /// `OutOfMemory` when the allocator refuses; nothing is lost then.
    pub fn unfilled(len: usize) -> Result<Self> {
        match recycle::take(len.div_ceil(16)) {
            Some(mut blocks) => {
                // What lies behind the end is zero when the storage grows.
                blocks.last_mut().into_iter().for_each(|it| *it = bytemuck::Zeroable::zeroed());
                Ok(Self::of(blocks, len))
            }
            None => Self::zeroed(len),
        }
    }

    pub(crate) fn of(blocks: Vec<Block>, len: usize) -> Self {
        Storage(Arc::new(Shared { blocks: RwLock::new(blocks), len: AtomicUsize::new(len) }))
    }

    /// A storage that holds a copy of these bytes.
    ///
    /// # Errors
    /// `OutOfMemory` when the allocator refuses.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let storage = Self::unfilled(bytes.len())?;
        storage.write().bytes_mut().copy_from_slice(bytes);
        Ok(storage)
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.0.len.load(Ordering::Acquire)
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the storage at least this long; new bytes are zero, and every handle sees them.
    ///
    /// # Errors
    /// `OutOfMemory` when the allocator refuses; nothing is lost then.
    pub fn grow(&self, len: usize) -> Result<()> {
        let mut guard = self.0.blocks.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let more = len.div_ceil(16).saturating_sub(guard.len());
        guard.try_reserve_exact(more).map_err(|_| Diagnostic::out_of_memory(len))?;
        let n_blocks = guard.len() + more;
        guard.resize(n_blocks, bytemuck::Zeroable::zeroed());
        self.0.len.fetch_max(len, Ordering::Release);
        Ok(())
    }

    /// Whether both handles are of the same bytes.
    pub fn is_same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that is the same for two handles exactly when they share their bytes, for as long as one of them lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Read access; waits for a writer in another thread.
    pub fn read(&self) -> StorageRead<'_> {
        // A panic while writing leaves wrong numbers at worst, never invalid ones, so a poisoned lock is still usable.
        let guard = self.0.blocks.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        StorageRead { guard, len: self.len() }
    }

    /// Write access; waits for readers and writers in other threads.
    pub fn write(&self) -> StorageWrite<'_> {
        let guard = self.0.blocks.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        StorageWrite { guard, len: self.len() }
    }
}

impl StorageRead<'_> {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.guard)[..self.len]
    }

    /// The bytes as elements; a last partial element is left out.
    pub fn elements<T: Element>(&self) -> &[T] {
        let n = self.len / size_of::<T>();
        bytemuck::cast_slice(&self.bytes()[..n * size_of::<T>()])
    }
}

impl StorageWrite<'_> {
    /// The bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.guard)[..self.len]
    }

    /// The bytes as elements; a last partial element is left out.
    pub fn elements_mut<T: Element>(&mut self) -> &mut [T] {
        let n = self.len / size_of::<T>();
        bytemuck::cast_slice_mut(&mut self.bytes_mut()[..n * size_of::<T>()])
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes)", self.len())
    }
}
