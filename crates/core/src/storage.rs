//! The bytes of tensors: who shares them, who may write, and when a lazy clone takes memory of its own. What the bytes mean is
//! the tensor's.

use crate::{Element, Result, allocate, recycle};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

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
///
/// A [lazy clone](Storage::lazy_clone) is another storage with the same content, which takes memory of its own when one
/// of both is written to.
#[derive(Clone)]
pub struct Storage(Arc<Shared>);

struct Shared {
    blocks: RwLock<Blocks>,
    /// Changes under the lock of the blocks.
    len: AtomicUsize,
    /// Another number whenever the content may be another one.
    version: AtomicU64,
}

impl Shared {
    fn take(&mut self) -> Blocks {
        let blocks = self.blocks.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        std::mem::replace(blocks, Blocks::Own(Vec::new()))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        match self.take() {
            Blocks::Own(own) => recycle::give(own),
            Blocks::Lent(lent) => recycle::give(Arc::into_inner(lent).unwrap_or_default()),
            Blocks::Foreign(_) => {}
        }
    }
}

/// Where the bytes of a storage are.
enum Blocks {
    Own(Vec<Block>),
    /// Lazy clones look at them as well, or did, so that nobody may write to them.
    Lent(Arc<Vec<Block>>),
    /// They are somebody else's, such as an array of Python's, and are read alone.
    Foreign(Arc<Owner>),
}

/// Who has bytes that are not of the engine's memory.
type Owner = dyn AsRef<[u8]> + Send + Sync;

impl Blocks {
    /// The bytes, and what fills the last block.
    fn bytes(&self) -> &[u8] {
        match self {
            Blocks::Own(own) => bytemuck::cast_slice(own),
            Blocks::Lent(lent) => bytemuck::cast_slice(lent),
            Blocks::Foreign(owner) => (**owner).as_ref(),
        }
    }

    /// The bytes for as long as nobody writes to them.
    fn lend(&mut self) -> Self {
        if let Blocks::Own(own) = self {
            *self = Blocks::Lent(Arc::new(std::mem::take(own)));
        }
        self.lent().expect("bytes that are not its own alone are lent")
    }

    /// The same, where they are lent already.
    fn lent(&self) -> Option<Self> {
        match self {
            Blocks::Own(_) => None,
            Blocks::Lent(lent) => Some(Blocks::Lent(Arc::clone(lent))),
            Blocks::Foreign(owner) => Some(Blocks::Foreign(Arc::clone(owner))),
        }
    }

    /// The bytes to be written to: a copy where others look at them, with room for `n_blocks`.
    fn materialize(&mut self, n_blocks: usize) -> Result<&mut Vec<Block>> {
        if let Blocks::Lent(lent) = self {
            let own = match Arc::get_mut(lent) {
                Some(only) => std::mem::take(only),
                None => {
                    let n_blocks = n_blocks.max(lent.len());
                    let mut own = recycle::take(n_blocks).unwrap_or_default();
                    own.clear();
                    allocate::reserve(&mut own, n_blocks)?;
                    own.extend_from_slice(lent);
                    own
                }
            };
            *self = Blocks::Own(own);
        }
        if let Blocks::Foreign(owner) = self {
            let copy = Storage::from_bytes((**owner).as_ref())?;
            *self = copy.replace(Blocks::Own(Vec::new()), 0).0;
        }
        Ok(self.own())
    }

    fn own(&mut self) -> &mut Vec<Block> {
        match self {
            Blocks::Own(own) => own,
            Blocks::Lent(_) | Blocks::Foreign(_) => {
                unreachable!("the bytes are materialized before they are written to")
            }
        }
    }
}

/// Read access to the bytes of a [`Storage`].
pub struct StorageRead<'a> {
    guard: RwLockReadGuard<'a, Blocks>,
    len: usize,
}

/// Write access to the bytes of a [`Storage`].
pub struct StorageWrite<'a> {
    guard: RwLockWriteGuard<'a, Blocks>,
    len: usize,
}

impl Storage {
    /// A storage of `len` zero bytes.
    ///
    /// # Errors
    /// `OutOfMemory` when the allocator refuses; nothing is lost then.
    pub fn zeroed(len: usize) -> Result<Self> {
        Ok(Self::of(allocate::filled(bytemuck::Zeroable::zeroed(), len.div_ceil(16))?, len))
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
        Self::with(Blocks::Own(blocks), len)
    }

    fn with(blocks: Blocks, len: usize) -> Self {
        Storage(Arc::new(Shared {
            blocks: RwLock::new(blocks),
            len: AtomicUsize::new(len),
            version: AtomicU64::new(0),
        }))
    }

    /// A storage that holds a copy of these bytes.
    ///
    /// # Errors
    /// `OutOfMemory` when the allocator refuses.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let storage = Self::unfilled(bytes.len())?;
        storage.write()?.bytes_mut().copy_from_slice(bytes);
        Ok(storage)
    }

    /// A storage of bytes that are somebody else's, such as a mapped file or an array of another library. They are read where they
    /// are, and let go with the last storage that looks at them; who writes to the storage writes to a copy. Bytes that do not begin
    /// at a multiple of 16 are copied at once.
    ///
    /// ```
    /// use tracefx_core::{DType, Storage, Tensor};
    ///
    /// let mapped: &'static [u8] = &[1, 2, 3, 4];
    /// let tensor = Tensor::view_of(Storage::from_owner(mapped)?, DType::UInt8, &[2, 2], &[1, 2], 0)?;
    /// assert_eq!(tensor.to_vec::<u8>()?, [1, 3, 2, 4]);
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// `OutOfMemory` when there is no room for that copy.
    pub fn from_owner(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Self> {
        let bytes = owner.as_ref();
        let len = bytes.len();
        if !bytes.as_ptr().addr().is_multiple_of(align_of::<Block>()) {
            return Self::from_bytes(bytes);
        }
        Ok(Self::with(Blocks::Foreign(Arc::new(owner)), len))
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.0.len.load(Ordering::Acquire)
    }

    /// A number that is another one after somebody wrote to the bytes: what was computed of them is still right where it is the
    /// same.
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
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
        let n_blocks = len.div_ceil(16);
        if len > guard.bytes().len() {
            let blocks = guard.materialize(n_blocks)?;
            allocate::resize(blocks, n_blocks, bytemuck::Zeroable::zeroed())?;
        }
        self.0.len.fetch_max(len, Ordering::Release);
        Ok(())
    }

    /// Another storage with the same content, which costs nothing until one of both is written to, and then a copy:
    /// PyTorch's `_lazy_clone`. Changes of one are not seen by the other.
    pub fn lazy_clone(&self) -> Self {
        let (blocks, len) = self.lend();
        Self::with(blocks, len)
    }

    /// Replaces the content by that of another storage, which is moved where nobody else has that storage, and lent as
    /// [`Storage::lazy_clone`] does otherwise, or copied while somebody holds a guard of it, for whom this does not wait. Tensors of
    /// this storage see it.
    ///
    /// # Errors
    /// `OutOfMemory` when there is no room for that copy.
    pub fn adopt(&self, other: Storage) -> Result<()> {
        let (blocks, len) = match Arc::try_unwrap(other.0) {
            Ok(mut only) => (only.take(), *only.len.get_mut()),
            Err(shared) => Storage(shared).lend_or_copy()?,
        };
        self.replace(blocks, len);
        Ok(())
    }

    /// Moves the content to a storage of its own. This one is empty then, whatever tensors of it there are.
    pub fn take(&self) -> Self {
        let (blocks, len) = self.replace(Blocks::Own(Vec::new()), 0);
        Self::with(blocks, len)
    }

    fn replace(&self, blocks: Blocks, len: usize) -> (Blocks, usize) {
        let mut guard = self.0.blocks.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.0.version.fetch_add(1, Ordering::Release);
        (std::mem::replace(&mut *guard, blocks), self.0.len.swap(len, Ordering::AcqRel))
    }

    /// The bytes for as long as nobody writes to them, and how many they are, where they are lent already.
    fn lent(&self) -> Option<(Blocks, usize)> {
        let blocks = self.0.blocks.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        blocks.lent().map(|it| (it, self.len()))
    }

    /// As [`Storage::lend`]; a copy where somebody holds a guard, who may wait for this thread.
    fn lend_or_copy(&self) -> Result<(Blocks, usize)> {
        if let Some(lent) = self.lent() {
            return Ok(lent);
        }
        let mut guard = match self.0.blocks.try_write() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let copy = Storage::from_bytes(self.read().bytes())?;
                return Ok(copy.replace(Blocks::Own(Vec::new()), 0));
            }
        };
        Ok((guard.lend(), self.len()))
    }

    /// The bytes for as long as nobody writes to them, and how many they are.
    fn lend(&self) -> (Blocks, usize) {
        if let Some(lent) = self.lent() {
            return lent;
        }
        let mut guard = self.0.blocks.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        (guard.lend(), self.len())
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

    /// Write access; waits for readers and writers in other threads. Where lazy clones look at the bytes, they are copied
    /// first.
    ///
    /// # Errors
    /// `OutOfMemory` when there is no room for that copy.
    pub fn write(&self) -> Result<StorageWrite<'_>> {
        let mut guard = self.0.blocks.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        guard.materialize(0)?;
        self.0.version.fetch_add(1, Ordering::Release);
        Ok(StorageWrite { guard, len: self.len() })
    }
}

impl StorageRead<'_> {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.guard.bytes()[..self.len]
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
        &mut bytemuck::cast_slice_mut(self.guard.own())[..self.len]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lazy_clone_takes_memory_when_one_of_both_is_written_to() {
        let address = |it: &Storage| it.read().bytes().as_ptr();
        let first = Storage::from_bytes(&[7; 40]).unwrap();
        let start = address(&first);
        let [second, third] = [first.lazy_clone(), first.lazy_clone()];
        assert!([&second, &third].iter().all(|it| address(it) == start && it.len() == 40 && it.id() != first.id()));
        second.write().unwrap().bytes_mut()[39] = 1;
        assert_eq!(
            (second.read().bytes()[39], first.read().bytes(), third.read().bytes()),
            (1, &[7; 40][..], &[7; 40][..])
        );
        first.write().unwrap().bytes_mut()[0] = 2;
        assert_eq!((first.read().bytes()[0], third.read().bytes()), (2, &[7; 40][..]));
        // Nobody else is left, so that nothing is copied.
        third.write().unwrap().bytes_mut()[0] = 3;
        assert_eq!((address(&third), third.read().bytes()[0]), (start, 3));
    }

    #[test]
    fn content_is_moved_where_nobody_else_has_it_and_lent_otherwise() {
        let address = |it: &Storage| it.read().bytes().as_ptr();
        let (own, kept) = (Storage::zeroed(0).unwrap(), Storage::from_bytes(&[7; 40]).unwrap());
        let start = address(&kept);
        own.adopt(kept.clone()).unwrap();
        assert_eq!((address(&own), own.len(), kept.read().bytes()), (start, 40, &[7; 40][..]));
        own.write().unwrap().bytes_mut()[0] = 1;
        assert_eq!((own.read().bytes()[0], kept.read().bytes()[0]), (1, 7));
        // What is let go is written to where it is.
        own.adopt(kept.clone()).unwrap();
        drop(own.take());
        kept.write().unwrap().bytes_mut()[0] = 2;
        assert_eq!((address(&kept), own.len()), (start, 0));
        // Who reads it in the meantime is not waited for.
        let guard = kept.read();
        own.adopt(kept.clone()).unwrap();
        assert_eq!((own.read().bytes(), address(&own) == start), (guard.bytes(), false));
        drop(guard);
        own.adopt(kept).unwrap();
        assert_eq!((address(&own), own.read().bytes()[0]), (start, 2));
        let (taken, version) = (own.take(), own.version());
        assert_eq!((address(&taken), taken.len(), own.len(), own.read().bytes()), (start, 40, 0, &[][..]));
        own.adopt(taken).unwrap();
        assert!(own.version() > version);
    }

    #[test]
    fn a_lazy_clone_grows_alone() {
        let first = Storage::from_bytes(&[7; 5]).unwrap();
        let second = first.lazy_clone();
        second.grow(40).unwrap();
        assert_eq!(second.read().bytes(), [&[7; 5][..], &[0; 35]].concat());
        assert_eq!(first.read().bytes(), [7; 5]);
        // There is room in the last block, which nobody writes to.
        let third = first.lazy_clone();
        third.grow(16).unwrap();
        assert_eq!((first.len(), third.read().bytes()), (5, &[&[7; 5][..], &[0; 11]].concat()[..]));
    }

    /// Who has bytes at a multiple of 16.
    #[repr(align(16))]
    struct Lender([u8; 64]);

    struct Handle(Arc<Lender>);

    impl AsRef<[u8]> for Handle {
        fn as_ref(&self) -> &[u8] {
            &self.0.0[..40]
        }
    }

    #[test]
    fn bytes_of_others_are_read_where_they_are_and_written_to_in_a_copy() {
        let address = |it: &Storage| it.read().bytes().as_ptr();
        let lender = Arc::new(Lender([7; 64]));
        let first = Storage::from_owner(Handle(Arc::clone(&lender))).unwrap();
        let second = first.lazy_clone();
        first.grow(40).unwrap();
        assert_eq!([address(&first), address(&second)], [lender.0.as_ptr(); 2]);
        let version = first.version();
        first.write().unwrap().bytes_mut()[39] = 1;
        first.grow(50).unwrap();
        assert_eq!(first.read().bytes(), [&[7; 39][..], &[1], &[0; 10]].concat());
        assert!(first.version() > version && lender.0 == [7; 64] && address(&second) == lender.0.as_ptr());
        drop(second);
        assert_eq!(Arc::strong_count(&lender), 1, "who lent the bytes has them back");
    }

    #[test]
    fn bytes_of_others_that_are_not_aligned_are_copied() {
        static BYTES: Lender = Lender([5; 64]);
        let storage = Storage::from_owner(&BYTES.0[1..]).unwrap();
        assert_ne!(storage.read().bytes().as_ptr(), BYTES.0[1..].as_ptr());
        assert_eq!(storage.read().bytes(), [5; 63]);
    }
}
