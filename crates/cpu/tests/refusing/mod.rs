//! An allocator that refuses one allocation, and processes of their own for what it may end.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracefx_core::{Code, Diagnostic};

/// Smaller allocations are not refused: lists with an entry for each dimension or result, names, messages, and blocks of a
/// fixed number of elements.
const SMALL: usize = 1 << 14;

/// Neither are lists with an entry for each node of a graph: they are bounded by the bytes of the graph, which were had. A
/// work says how long they may be. Their entries have pointers or lengths, which bytes and the elements of tensors have not.
static LISTS: AtomicUsize = AtomicUsize::new(0);
const LIST_ALIGN: usize = align_of::<usize>();

/// Allocations that are still granted before one is refused; none is while it is `usize::MAX`.
static GRANTED: AtomicUsize = AtomicUsize::new(usize::MAX);
static N_REFUSED: AtomicUsize = AtomicUsize::new(0);

struct Refusing;

fn is_refused(size: usize, align: usize) -> bool {
    if size <= SMALL
        || (align == LIST_ALIGN && size <= LISTS.load(Ordering::Relaxed))
        || GRANTED.load(Ordering::Relaxed) == usize::MAX
    {
        return false;
    }
    // One is refused, and those after it are granted.
    let is_refused = GRANTED.fetch_sub(1, Ordering::Relaxed) == 0;
    if is_refused {
        GRANTED.store(usize::MAX, Ordering::Relaxed);
        N_REFUSED.fetch_add(1, Ordering::Relaxed);
        if std::env::var_os(WHERE).is_some() {
            eprintln!("{size} bytes are refused:\n{}", std::backtrace::Backtrace::force_capture());
        }
    }
    is_refused
}

// SAFETY: every call is passed on to the system's allocator as it came, or refused, which an allocator may do.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size(), layout.align()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size, layout.align()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Set to see where the allocation is that was refused last.
const WHERE: &str = "TRACEFX_WHERE";
/// A part of the names of the works that are done.
const ONLY: &str = "TRACEFX_ONLY";
/// The work that a process of its own begins with.
const START: &str = "TRACEFX_ALLOCATION_START";

/// Something that allocates.
pub(crate) struct Work<'a> {
    pub(crate) name: String,
    /// The longest list with an entry for each node, in bytes.
    pub(crate) lists: usize,
    /// Does it with each of its allocations refused, and tells what is wrong.
    pub(crate) check: Box<dyn Fn() -> Result<(), String> + 'a>,
}

/// Does work with each of its allocations refused, and tells what is wrong. What is prepared is always granted. Where work
/// fails, or gives something else each time, as random numbers are, answers are not compared.
pub(crate) fn refuse_each<P, R>(
    prepare: &dyn Fn() -> P,
    run: &dyn Fn(P) -> Result<R, Diagnostic>,
    bytes: &dyn Fn(&R) -> Vec<u8>,
) -> Result<(), String> {
    // What is made once is there then.
    let (Ok(first), Ok(second)) = (run(prepare()), run(prepare())) else { return Ok(()) };
    let (first, second) = (bytes(&first), bytes(&second));
    for n in 0.. {
        let before = N_REFUSED.load(Ordering::Relaxed);
        let prepared = prepare();
        GRANTED.store(n, Ordering::Relaxed);
        let res = catch_unwind(AssertUnwindSafe(|| run(prepared)));
        GRANTED.store(usize::MAX, Ordering::Relaxed);
        match res {
            Err(_) => return Err(format!("allocation {n} refused: it panics")),
            Ok(Err(problem)) if problem.code() != Code::OutOfMemory => {
                return Err(format!("allocation {n} refused: {problem}"));
            }
            Ok(Ok(answer)) if first == second && bytes(&answer) != first => {
                return Err(format!("allocation {n} refused: another answer"));
            }
            Ok(_) => {}
        }
        if N_REFUSED.load(Ordering::Relaxed) == before {
            break;
        }
    }
    Ok(())
}

/// Does all works in processes of their own, each in that of the one before unless that was ended, and asserts that none is
/// wrong. `test` is the name of the test that calls this, which is what the processes run. Gives how many there were, and how
/// many allocations were refused.
pub(crate) fn check_all(test: &str, works: &dyn Fn() -> Vec<Work<'static>>) -> (usize, usize) {
    let only = std::env::var(ONLY).unwrap_or_default();
    if let Ok(start) = std::env::var(START) {
        let works = works().into_iter().filter(|it| it.name.contains(&only));
        run_from(start.parse().unwrap(), works);
        return (usize::MAX, usize::MAX);
    }
    let (mut start, mut problems, mut n_works, mut n_refused, mut current) = (0, BTreeMap::new(), 0, 0, String::new());
    loop {
        let own = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(START, start.to_string())
            // Parts of a kernel run one after the other, so that allocations are counted in the same order.
            .env("TRACEFX_NUM_THREADS", "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&own.stdout).to_string();
        for line in text.lines() {
            if let Some((at, name)) = line.strip_prefix("at ").and_then(|it| it.split_once(' ')) {
                start = at.parse::<usize>().unwrap() + 1;
                n_works += 1;
                current = name.to_string();
                problems.insert(current.clone(), "it ends the process".to_string());
            } else if let Some(n) = line.strip_prefix("refused ") {
                n_refused += n.parse::<usize>().unwrap();
            } else if line == "right" {
                problems.remove(&current);
            } else if let Some(problem) = line.strip_prefix("wrong ") {
                problems.insert(current.clone(), problem.to_string());
            }
        }
        if text.lines().any(|it| it == "end") {
            break;
        }
        if std::env::var_os(WHERE).is_some() {
            eprintln!("{current}:\n{}", String::from_utf8_lossy(&own.stderr));
        }
        assert!(start > 0, "the process ended before its first work:\n{text}");
    }
    let found: Vec<String> = problems.iter().map(|(name, problem)| format!("{name}: {problem}")).collect();
    assert!(found.is_empty(), "{} works:\n{}", found.len(), found.join("\n"));
    if only.is_empty() { (n_works, n_refused) } else { (usize::MAX, usize::MAX) }
}

/// The works from one on, in this process.
fn run_from(start: usize, works: impl Iterator<Item = Work<'static>>) {
    let mut out = std::io::stdout();
    for (at, work) in works.enumerate().skip(start) {
        // The name stands there before the process may end.
        writeln!(out, "\nat {at} {}", work.name).unwrap();
        out.flush().unwrap();
        LISTS.store(work.lists, Ordering::Relaxed);
        N_REFUSED.store(0, Ordering::Relaxed);
        let problem = (work.check)().err();
        writeln!(out, "\nrefused {}", N_REFUSED.load(Ordering::Relaxed)).unwrap();
        writeln!(out, "\n{}", problem.map_or("right".to_string(), |it| format!("wrong {it}"))).unwrap();
    }
    writeln!(out, "\nend").unwrap();
    out.flush().unwrap();
}
