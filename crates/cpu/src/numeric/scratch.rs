//! Buffers for the length of a call. A thread keeps a few, so that the next kernel finds its memory in the cache instead
//! of asking for new, zeroed pages.

use bytemuck::{Pod, Zeroable};
use std::cell::RefCell;
use tracefx_core::allocate::filled;
use tracefx_core::{Diagnostic, Result};

/// A cache line; no element is larger or more aligned.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// The bytes that a buffer may have to be kept.
const KEPT: usize = 1 << 23;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Gives `body` a buffer of `len` elements, which hold anything.
///
/// # Errors
/// `OutOfMemory` where there is none, and what `body` gives.
pub(crate) fn with<T: Pod, R>(len: usize, body: impl FnOnce(&mut [T]) -> Result<R>) -> Result<R> {
    let n_bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| Diagnostic::out_of_memory(usize::MAX))?;
    let n_lines = n_bytes.div_ceil(size_of::<Line>());
    let mut lines = BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_default();
    if lines.len() < n_lines {
        // The old buffer goes first, so that the new one may take its place.
        drop(std::mem::take(&mut lines));
        lines = filled(Line::zeroed(), n_lines)?;
    }
    let res = body(&mut bytemuck::cast_slice_mut(&mut lines)[..len]);
    if lines.len() * size_of::<Line>() <= KEPT {
        BUFFERS.with_borrow_mut(|it| it.push(lines));
    }
    res
}

#[cfg(test)]
mod tests {
    #[test]
    fn buffers_of_one_thread_are_apart() {
        super::with::<f32, _>(100, |outer| {
            outer.fill(1.0);
            super::with::<u8, _>(1000, |inner| {
                inner.fill(7);
                Ok(())
            })?;
            assert!(outer.iter().all(|&it| it == 1.0));
            Ok(())
        })
        .unwrap();
    }
}
