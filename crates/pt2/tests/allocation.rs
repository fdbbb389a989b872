//! No number in a file is a promise of memory: what loading takes is bounded by the bytes that are there.
//!
//! A test of its own binary, because it counts every allocation of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracefx_core::Tensor;
use tracefx_pt2::{ArchiveStream, LoadOptions, Order, SaveOptions, load, load_archive, save};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(layout: Layout) {
    let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: every call is passed on to the system's allocator as it came; counting does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most memory that was taken at once while something is done.
fn peak_of(work: impl FnOnce()) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    PEAK.load(Ordering::Relaxed) - before
}

/// The most memory that was taken at once while loading these bytes.
fn peak(bytes: &[u8]) -> usize {
    peak_of(|| drop(load(bytes, &LoadOptions { allow_deflate: true, ..LoadOptions::default() })))
}

/// A program with 32 MiB of weights is loaded by ranges into no more than that and a little.
fn weights_are_held_once(small: &[u8]) {
    const WEIGHT: usize = 8 << 20;
    let options = LoadOptions::default();
    let mut program = load(small, &options).unwrap();
    let entry = program.state_dict.values().next().unwrap().clone();
    for name in ["w0", "w1", "w2", "w3"] {
        let tensor = Tensor::from_slice(&vec![1.5f32; WEIGHT / 4], &[WEIGHT / 4]).unwrap();
        program.state_dict.insert(name.into(), tracefx_export::StateEntry { tensor, ..entry.clone() });
    }
    let mut file = Vec::new();
    save(&program, &SaveOptions::default(), &mut file).unwrap();
    drop(program);
    let taken = peak_of(|| {
        let tail = file[file.len() - 4096..].to_vec();
        let mut stream = ArchiveStream::new(file.len() as u64, tail, Order::ProgramFirst, &options).unwrap();
        while let Some(wanted) = stream.next_request() {
            let bytes = &file[wanted.range.start as usize..wanted.range.end as usize];
            bytes.chunks(1 << 16).for_each(|it| stream.feed(wanted.id, it).unwrap());
        }
        drop(load_archive(stream.finish().unwrap(), &options).unwrap());
    });
    assert!(taken < 4 * WEIGHT + (1 << 20), "{taken} bytes were taken for {}", 4 * WEIGHT);
}

#[test]
fn loading_takes_memory_for_bytes_and_not_for_numbers() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let names =
        ["programs/tied_and_views", "programs/cond_simple", "programs-compat/2.8.0/cond", "programs-compat/2.6.0/cond"];
    // The registry of operators and the like are made once; they are no matter of the file.
    let mut archives: Vec<Vec<u8>> =
        names.iter().map(|it| std::fs::read(fixtures.join(it).join("model.pt2")).unwrap()).collect();
    for bytes in &archives {
        peak(bytes);
    }
    weights_are_held_once(&archives[0]);

    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for bytes in &mut archives {
        let bound = (64 << 10) + bytes.len() * 8;
        assert!(peak(bytes) <= bound, "an honest archive of {} bytes takes {}", bytes.len(), peak(bytes));
        for _ in 0..4000 {
            // Whole words of large numbers do more harm to a reader that trusts than single bits do.
            let at = random() as usize % (bytes.len() - 8);
            let old: [u8; 8] = bytes[at..at + 8].try_into().unwrap();
            let width = [1, 2, 4, 8][random() as usize % 4];
            let value = [u64::MAX, 0x7fff_ffff_7fff_ffff, random()][random() as usize % 3];
            bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            let taken = peak(bytes);
            assert!(taken <= bound, "{taken} bytes for an archive of {}, changed at {at}", bytes.len());
            bytes[at..at + 8].copy_from_slice(&old);
        }
    }
}
