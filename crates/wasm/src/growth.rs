//! Memory that grows in steps.
//!
//! The allocator of the standard library asks the host for as many pages as an allocation needs, so that a run of many small
//! ones asks with each. The host makes a new `ArrayBuffer` each time, and looks again at all that JavaScript holds: the
//! whole is quadratic. Here memory that has grown is given room for what comes next, a part of its size, at once.
//!
//! The request itself goes first and as it is, and room is asked for behind it: where a request fits it is served, though
//! there be no room any more. Room is free memory of the same allocator, which the next requests are served from, so that
//! memory is larger by one room at most. Another allocator than the standard library's, from a crate, was not taken: it would
//! have to be `unsafe` in as many places to say how memory grows, and every request would trust code that fewer people use.

/// A page of WebAssembly.
const PAGE: usize = 1 << 16;

/// The room that memory of so many pages is given, in bytes: a sixteenth, so that peaks stay near to what is needed.
const fn room(pages: usize) -> usize {
    let part = pages / 16 * PAGE;
    let (least, most) = (1 << 20, 16 << 20);
    if part < least {
        least
    } else if part > most {
        most
    } else {
        part
    }
}

#[cfg(target_arch = "wasm32")]
mod allocator {
    use super::room;
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[global_allocator]
    static ALLOCATOR: Growing = Growing;

    /// The number of pages that memory had when it was given room.
    static KNOWN: AtomicUsize = AtomicUsize::new(0);

    /// The allocator of the standard library, which is given room when memory grows.
    struct Growing;

    impl Growing {
        /// Has the allocator hold a block, and gives it back at once: what it holds it does not return to the host.
        fn make_room(&self) {
            let pages = core::arch::wasm32::memory_size(0);
            if pages == KNOWN.load(Ordering::Relaxed) {
                return;
            }
            let Ok(layout) = Layout::from_size_align(room(pages), 16) else { return };
            // SAFETY: the layout is not of size zero, and the block is given back with the layout that it was taken with.
            unsafe {
                let block = System.alloc(layout);
                // Where there is no room the allocation that led here was served all the same.
                if !block.is_null() {
                    System.dealloc(block, layout);
                }
            }
            KNOWN.store(core::arch::wasm32::memory_size(0), Ordering::Relaxed);
        }
    }

    // SAFETY: all is done by `System`, to which every argument is passed on as it is.
    unsafe impl GlobalAlloc for Growing {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller keeps the contract of `alloc`.
            let res = unsafe { System.alloc(layout) };
            self.make_room();
            res
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller keeps the contract of `alloc_zeroed`.
            let res = unsafe { System.alloc_zeroed(layout) };
            self.make_room();
            res
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: the caller keeps the contract of `realloc`.
            let res = unsafe { System.realloc(block, layout, size) };
            self.make_room();
            res
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: the caller keeps the contract of `dealloc`.
            unsafe { System.dealloc(block, layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_gigabyte_grows_in_few_steps() {
        let (mut pages, mut steps) = (16 << 20 >> 16, 0);
        while pages < (1 << 30) / PAGE {
            pages += room(pages).div_ceil(PAGE);
            steps += 1;
        }
        // Page by page it would be 16,128.
        assert!(steps < 150, "{steps}");
    }

    #[test]
    fn room_is_a_small_part_of_large_memory() {
        assert_eq!(room(0), 1 << 20);
        assert!((1024..65536).all(|pages| room(pages) * 16 <= pages * PAGE));
        assert_eq!(room(65536), 16 << 20);
    }
}
