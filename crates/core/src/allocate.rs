//! Memory whose size an input decides: it is asked for, and an allocator that refuses is an error and not the end of the
//! process.
//!
//! Rust's own `vec!`, `Vec::with_capacity` and `collect` abort where there is no memory. They are for what a rank, a name or
//! a constant bounds, and for lists with an entry for each node, text or tensor of a graph or a file: these are as long as
//! something that is there already. The functions here are for the rest: the elements of tensors, and the bytes of files.

use crate::{Code, Diagnostic, Result, recycle};
use std::io;

/// Makes room for this many more items, and for no others.
///
/// # Errors
/// `OutOfMemory` when the allocator refuses, also after what the thread keeps for later was given back.
pub fn reserve<T>(items: &mut Vec<T>, more: usize) -> Result<()> {
    if items.try_reserve_exact(more).is_ok() || (recycle::purge() && items.try_reserve_exact(more).is_ok()) {
        return Ok(());
    }
    Err(Diagnostic::out_of_memory(items.len().saturating_add(more).saturating_mul(size_of::<T>())))
}

/// An empty vector with room for this many items: `Vec::with_capacity`.
///
/// # Errors
/// `OutOfMemory` when the allocator refuses.
pub fn with_room<T>(n: usize) -> Result<Vec<T>> {
    let mut items = Vec::new();
    reserve(&mut items, n)?;
    Ok(items)
}

/// A vector of this many equal items: `vec![value; n]`.
///
/// # Errors
/// `OutOfMemory` when the allocator refuses.
pub fn filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>> {
    let mut items = with_room(n)?;
    items.resize(n, value);
    Ok(items)
}

/// Makes a vector this long: `Vec::resize`.
///
/// # Errors
/// `OutOfMemory` when the allocator refuses.
pub fn resize<T: Clone>(items: &mut Vec<T>, n: usize, value: T) -> Result<()> {
    reserve(items, n.saturating_sub(items.len()))?;
    items.resize(n, value);
    Ok(())
}

/// A copy of a slice: `to_vec`.
///
/// # Errors
/// `OutOfMemory` when the allocator refuses.
pub fn copied<T: Copy>(slice: &[T]) -> Result<Vec<T>> {
    let mut items = with_room(slice.len())?;
    items.extend_from_slice(slice);
    Ok(items)
}

/// Appends an item: `Vec::push`, for vectors that grow with an input.
///
/// # Errors
/// `OutOfMemory` when the allocator refuses.
pub fn push<T>(items: &mut Vec<T>, item: T) -> Result<()> {
    if items.len() == items.capacity() {
        let more = items.len().max(4);
        reserve(items, more).or_else(|_| reserve(items, 1))?;
    }
    items.push(item);
    Ok(())
}

/// Appends a slice: `Vec::extend_from_slice`, for vectors that grow with an input.
///
/// # Errors
/// `OutOfMemory` when the allocator refuses.
pub fn extend<T: Copy>(items: &mut Vec<T>, slice: &[T]) -> Result<()> {
    if slice.len() > items.capacity() - items.len() {
        reserve(items, slice.len().max(items.len())).or_else(|_| reserve(items, slice.len()))?;
    }
    items.extend_from_slice(slice);
    Ok(())
}

/// Bytes that something writes, as `Vec<u8>` is for [`io::Write`]; where the allocator refuses, writing fails.
///
/// ```
/// use std::io::Write;
/// use tracefx_core::allocate::Written;
/// let mut written = Written::default();
/// write!(written, "{}", 7)?;
/// assert_eq!(written.0, b"7");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Written(pub Vec<u8>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        extend(&mut self.0, bytes).map_err(|problem| io::Error::new(io::ErrorKind::OutOfMemory, problem))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The problem of a reader or writer: `OutOfMemory` where it had no memory, and otherwise what `or_else` makes of it.
pub fn io_problem(problem: io::Error, or_else: impl FnOnce(io::Error) -> Diagnostic) -> Diagnostic {
    if problem.kind() != io::ErrorKind::OutOfMemory {
        return or_else(problem);
    }
    let told = problem.into_inner().and_then(|it| it.downcast::<Diagnostic>().ok());
    told.map_or_else(|| Diagnostic::new(Code::OutOfMemory, "could not allocate memory"), |it| *it)
}

/// The items of an iterator: `collect`.
///
/// ```
/// use tracefx_core::allocate::collected;
/// assert_eq!(collected((0..3).map(|it| it * it))?, [0, 1, 4]);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `OutOfMemory` when the allocator refuses.
pub fn collected<T>(iter: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let mut iter = iter.into_iter();
    let mut items = Vec::new();
    loop {
        let (known, most) = iter.size_hint();
        reserve(&mut items, known)?;
        if most == Some(known) {
            items.extend(iter);
            return Ok(items);
        }
        // So many are taken without a look at the room for each.
        items.extend(iter.by_ref().take(known));
        match iter.next() {
            Some(item) => push(&mut items, item)?,
            None => return Ok(items),
        }
    }
}

/// The items of an iterator of results, or its first error: `collect::<Result<_>>`.
///
/// # Errors
/// That, or `OutOfMemory` when the allocator refuses.
pub fn try_collected<T>(iter: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let iter = iter.into_iter();
    // An iterator that ends at an error says nothing of its length.
    let (_, known) = iter.size_hint();
    let mut items = with_room(known.unwrap_or(0))?;
    for item in iter {
        push(&mut items, item?)?;
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn what_cannot_be_had_is_an_error() {
        let most = isize::MAX as usize;
        assert_eq!(with_room::<u64>(most).unwrap_err().code(), Code::OutOfMemory);
        assert_eq!(filled(0u8, usize::MAX).unwrap_err().code(), Code::OutOfMemory);
        assert_eq!(resize(&mut vec![1u16], most, 0).unwrap_err().code(), Code::OutOfMemory);
        assert_eq!(collected((0..most).map(|it| it as u64)).unwrap_err().code(), Code::OutOfMemory);
        assert_eq!(try_collected((0..most).map(|it| Ok(it as u64))).unwrap_err().code(), Code::OutOfMemory);
    }

    #[test]
    fn all_items_come_whatever_an_iterator_says_of_its_length() {
        let expected: Vec<usize> = (0..100).filter(|it| it % 3 == 0).collect();
        assert_eq!(collected((0..100).filter(|it| it % 3 == 0)).unwrap(), expected);
        assert_eq!(collected((0..40).chain((40..100).filter(|it| it % 2 == 0))).unwrap().len(), 70);
        assert_eq!(try_collected((0..100).filter(|it| it % 3 == 0).map(Ok)).unwrap(), expected);
        assert_eq!(copied(&expected).unwrap(), expected);
        assert_eq!(filled(7, 3).unwrap(), [7; 3]);
        let mut items = vec![1];
        (0..10).for_each(|_| extend(&mut items, &[2, 3]).unwrap());
        assert_eq!((items.len(), &items[19..]), (21, &[2, 3][..]));
    }

    #[test]
    fn a_writer_that_has_no_memory_tells_so() {
        let told = |problem| io_problem(problem, |it| Diagnostic::new(Code::Io, it.to_string())).code();
        let refused = Diagnostic::out_of_memory(7);
        assert_eq!(told(io::Error::new(io::ErrorKind::OutOfMemory, refused)), Code::OutOfMemory);
        assert_eq!(told(io::ErrorKind::OutOfMemory.into()), Code::OutOfMemory);
        assert_eq!(told(io::ErrorKind::BrokenPipe.into()), Code::Io);
    }
}
