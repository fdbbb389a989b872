//! The threads of kernels: a fork-join pool, and how many of its threads work at a time.
//!
//! Who has work opens it for the others and takes parts of it himself, so that it is done even where nobody has time; threads without
//! work look for some before they sleep. Steps of a plan follow each other within microseconds, and to wake a thread takes longer than
//! most steps do.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tracefx_core::{Code, Diagnostic, Result};

/// So much work can be open at a time. Who finds no room does his work alone.
const N_SLOTS: usize = 16;

/// The parts of a job lie in so many ranges at most, of which each thread begins with another.
const MAX_RANGES: usize = 32;

/// So long a thread looks for work before it sleeps: longer than the steps between two that are shared.
const PATIENCE: Duration = Duration::from_micros(200);

/// So many times a thread looks again at once; after that it lets others go first.
const EAGER: usize = 2_000;

/// The environment variable that says how many threads there are, where [`set_num_threads`] does not.
const VARIABLE: &str = "TRACEFX_NUM_THREADS";

static POOL: Pool = Pool {
    slots: [const { Slot::new() }; N_SLOTS],
    published: AtomicUsize::new(0),
    sleeping: AtomicUsize::new(0),
    n_workers: Mutex::new(0),
    bed: Mutex::new(()),
    call: Condvar::new(),
};

/// The number of threads of the process; zero before it is asked for.
static NUM_THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of threads for what this one calls; zero where that of the process holds.
    static OWN_NUM_THREADS: Cell<usize> = const { Cell::new(0) };
}

/// How many threads a kernel uses, as `torch.get_num_threads`: what [`set_num_threads`] or [`with_num_threads`] said, else the environment
/// variable `TRACEFX_NUM_THREADS`, else as many as the process may use. Results do not depend on it.
pub fn get_num_threads() -> usize {
    let of_process = || match NUM_THREADS.load(Ordering::Relaxed) {
        0 => {
            let asked = std::env::var(VARIABLE).ok().and_then(|it| it.trim().parse().ok()).filter(|&it: &usize| it > 0);
            let n = asked.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
            // What was set in the meantime stays.
            NUM_THREADS.compare_exchange(0, n, Ordering::Relaxed, Ordering::Relaxed).err().unwrap_or(n)
        }
        n => n,
    };
    Some(OWN_NUM_THREADS.get()).filter(|&it| it > 0).unwrap_or_else(of_process)
}

/// Sets how many threads a kernel uses, in all of the process, as `torch.set_num_threads`.
///
/// ```
/// tracefx_cpu::set_num_threads(2)?;
/// assert_eq!(tracefx_cpu::get_num_threads(), 2);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `InvalidArgument` for zero.
pub fn set_num_threads(n: usize) -> Result<()> {
    if n == 0 {
        let problem = Diagnostic::new(Code::InvalidArgument, "set_num_threads expects a positive integer");
        return Err(problem.help("one thread is the one that calls"));
    }
    NUM_THREADS.store(n, Ordering::Relaxed);
    Ok(())
}

/// Calls `body`, whose kernels use so many threads, at least one: what is called elsewhere at the same time is not concerned.
///
/// ```
/// let n = tracefx_cpu::with_num_threads(1, tracefx_cpu::get_num_threads);
/// assert_eq!(n, 1);
/// ```
pub fn with_num_threads<R>(n: usize, body: impl FnOnce() -> R) -> R {
    struct Before(usize);
    impl Drop for Before {
        fn drop(&mut self) {
            OWN_NUM_THREADS.set(self.0);
        }
    }
    let _before = Before(OWN_NUM_THREADS.replace(n.max(1)));
    body()
}

/// Calls `body` for every number below `n`, on several threads.
///
/// # Panics
/// As the body does.
pub(super) fn share(n: usize, body: &(dyn Fn(usize) + Sync)) {
    let n_threads = get_num_threads();
    let slot = if n > 1 && n_threads > 1 { POOL.slots.iter().find(|it| it.take()) } else { None };
    let Some(slot) = slot else { return (0..n).for_each(body) };
    let most_guests = (n_threads - 1).min(n - 1);
    POOL.grow(most_guests);
    let job = Job::new(n, body, n_threads);
    let open = slot.open(&job);
    POOL.call(most_guests);
    job.work(0);
    drop(open);
    if let Some(panic) = job.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
        resume_unwind(panic);
    }
}

/// Calls `body` with the place of each part of `items` and the part, on several threads; parts have `len` elements, the last one perhaps
/// fewer.
///
/// # Panics
/// When `len` is zero, and as the body does.
pub(super) fn share_parts<T: Send>(items: &mut [T], len: usize, body: &(dyn Fn(usize, &mut [T]) + Sync)) {
    struct Start<T>(*mut T);
    // SAFETY: Who has it makes disjoint slices of elements that may go to other threads.
    unsafe impl<T: Send> Sync for Start<T> {}
    impl<T> Start<T> {
        fn get(&self) -> *mut T {
            self.0
        }
    }
    let (n_items, start) = (items.len(), Start(items.as_mut_ptr()));
    share(n_items.div_ceil(len), &|part| {
        let at = part * len;
        let n = len.min(n_items - at);
        // SAFETY: The part lies within `items`, which is borrowed until all are done, and each part comes once.
        body(at, unsafe { std::slice::from_raw_parts_mut(start.get().add(at), n) });
    });
}

struct Pool {
    slots: [Slot; N_SLOTS],
    /// How many jobs were opened.
    published: AtomicUsize,
    /// How many workers sleep, or are about to.
    sleeping: AtomicUsize,
    n_workers: Mutex<usize>,
    bed: Mutex<()>,
    call: Condvar,
}

/// Work in parts.
struct Job<'a> {
    body: &'a (dyn Fn(usize) + Sync),
    /// The parts.
    n: usize,
    n_ranges: usize,
    /// Of each range, the first part that nobody has begun.
    next: [Place; MAX_RANGES],
    /// The threads for what a part shares in turn.
    n_threads: usize,
    most_guests: usize,
    /// What a guest panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A number in a cache line of its own.
#[repr(align(64))]
struct Place(AtomicUsize);

impl<'a> Job<'a> {
    fn new(n: usize, body: &'a (dyn Fn(usize) + Sync), n_threads: usize) -> Self {
        let n_ranges = n_threads.min(n).min(MAX_RANGES);
        let next = std::array::from_fn(|range| Place(AtomicUsize::new(start(range, n, n_ranges))));
        let most_guests = (n_threads - 1).min(n - 1);
        Job { body, n, n_ranges, next, n_threads, most_guests, panic: Mutex::new(None) }
    }

    /// Does parts until all are begun, those of this range first: neighbours are written by one thread, and of the next job like this one
    /// the same parts. Gives whether there were any.
    fn work(&self, first: usize) -> bool {
        let mut any = false;
        for range in (0..self.n_ranges).map(|it| (first + it) % self.n_ranges) {
            let (Place(next), end) = (&self.next[range], start(range + 1, self.n, self.n_ranges));
            while next.load(Ordering::Relaxed) < end {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= end {
                    break;
                }
                (self.body)(at);
                any = true;
            }
        }
        any
    }

    /// As [`Job::work`], on a worker, which goes on after a panic.
    fn work_as_guest(&self, worker: usize) -> bool {
        OWN_NUM_THREADS.set(self.n_threads);
        let done = catch_unwind(AssertUnwindSafe(|| self.work(worker + 1)));
        done.unwrap_or_else(|panic| {
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
            true
        })
    }
}

/// The first part of a range.
fn start(range: usize, n: usize, n_ranges: usize) -> usize {
    n / n_ranges * range + (n % n_ranges).min(range)
}

/// Where one job at a time is open to guests.
#[repr(align(128))]
struct Slot {
    is_taken: AtomicBool,
    /// Null while no job is open.
    job: AtomicPtr<Job<'static>>,
    /// The threads that look at the job.
    guests: AtomicUsize,
}

impl Slot {
    const fn new() -> Self {
        Slot { is_taken: AtomicBool::new(false), job: AtomicPtr::new(ptr::null_mut()), guests: AtomicUsize::new(0) }
    }

    /// Takes it, where nobody has it.
    fn take(&self) -> bool {
        !self.is_taken.load(Ordering::Relaxed) && !self.is_taken.swap(true, Ordering::Acquire)
    }

    /// Opens a job, until what this gives is dropped.
    fn open<'a>(&'a self, job: &'a Job<'_>) -> Open<'a> {
        self.job.store(ptr::from_ref(job).cast::<Job<'static>>().cast_mut(), Ordering::SeqCst);
        Open(self)
    }

    /// Helps with the job, if there is one. Gives whether there was something to do.
    fn visit(&self, worker: usize) -> bool {
        if self.job.load(Ordering::Relaxed).is_null() {
            return false;
        }
        let before = self.guests.fetch_add(1, Ordering::SeqCst);
        let job = self.job.load(Ordering::SeqCst);
        // SAFETY: The owner of a job clears the pointer and then waits until there are no guests, before the job goes. This guest was
        // counted before it read the pointer, and all four operations are in one total order: either it reads null, or the owner waits.
        let job = unsafe { job.as_ref() };
        let any = job.is_some_and(|it| before < it.most_guests && it.work_as_guest(worker));
        self.guests.fetch_sub(1, Ordering::Release);
        any
    }
}

/// A job that guests may look at.
struct Open<'a>(&'a Slot);

impl Drop for Open<'_> {
    /// Waits until the guests have done what they began.
    fn drop(&mut self) {
        let Open(slot) = self;
        slot.job.store(ptr::null_mut(), Ordering::SeqCst);
        let mut wait = Wait::new();
        while slot.guests.load(Ordering::SeqCst) > 0 {
            if !wait.goes_on() {
                thread::sleep(PATIENCE / 4);
            }
        }
        slot.is_taken.store(false, Ordering::Release);
    }
}

/// A thread that waits for others, awake.
struct Wait {
    n_looks: usize,
    since: Option<Instant>,
}

impl Wait {
    fn new() -> Self {
        Wait { n_looks: 0, since: None }
    }

    /// Lets a moment pass. Gives whether waiting awake is still worth it.
    fn goes_on(&mut self) -> bool {
        self.n_looks += 1;
        if self.n_looks < EAGER {
            std::hint::spin_loop();
            return true;
        }
        thread::yield_now();
        self.since.get_or_insert_with(Instant::now).elapsed() < PATIENCE
    }
}

impl Pool {
    /// Starts workers until there are so many, or the system refuses.
    fn grow(&'static self, n: usize) {
        let mut n_workers = self.n_workers.lock().unwrap_or_else(PoisonError::into_inner);
        while *n_workers < n {
            let worker = *n_workers;
            if thread::Builder::new().name(format!("tracefx-{worker}")).spawn(move || self.live(worker)).is_err() {
                break;
            }
            *n_workers += 1;
        }
    }

    /// Says that a job is open, to so many who sleep.
    fn call(&self, n: usize) {
        self.published.fetch_add(1, Ordering::SeqCst);
        let sleeping = self.sleeping.load(Ordering::SeqCst);
        if sleeping > 0 {
            let _awake = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
            (0..n.min(sleeping)).for_each(|_| self.call.notify_one());
        }
    }

    /// What a worker does.
    fn live(&self, worker: usize) {
        loop {
            let published = self.published.load(Ordering::SeqCst);
            if self.slots.iter().any(|it| it.visit(worker)) {
                continue;
            }
            let is_same = || self.published.load(Ordering::SeqCst) == published;
            let mut wait = Wait::new();
            while is_same() && wait.goes_on() {}
            if is_same() {
                let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
                self.sleeping.fetch_add(1, Ordering::SeqCst);
                while is_same() {
                    bed = self.call.wait(bed).unwrap_or_else(PoisonError::into_inner);
                }
                self.sleeping.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_part_is_done_once() {
        for n_threads in [1, 2, 3, 8] {
            for n in [0, 1, 2, 3, 7, 64, 1000] {
                let counts: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                with_num_threads(n_threads, || share(n, &|at| _ = counts[at].fetch_add(1, Ordering::Relaxed)));
                assert!(counts.iter().all(|it| it.load(Ordering::Relaxed) == 1), "{n} parts on {n_threads} threads");
            }
        }
    }

    #[test]
    fn no_more_threads_than_asked_for_work() {
        for n_threads in [1, 2, 3] {
            let (seen, now) = (Mutex::new(HashSet::new()), AtomicUsize::new(0));
            let most = AtomicUsize::new(0);
            with_num_threads(n_threads, || {
                share(60, &|_| {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    seen.lock().unwrap().insert(thread::current().id());
                    assert_eq!(get_num_threads(), n_threads);
                    thread::sleep(Duration::from_micros(300));
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            });
            assert!(most.into_inner() <= n_threads);
            assert_eq!(seen.into_inner().unwrap().len() > 1, n_threads > 1);
        }
    }

    #[test]
    fn jobs_of_many_threads_and_jobs_within_jobs_are_all_done() {
        let sum = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..24 {
                scope.spawn(|| {
                    with_num_threads(4, || {
                        for _ in 0..50 {
                            share(5, &|outer| {
                                share(7, &|inner| _ = sum.fetch_add((outer * 7 + inner) as u64, Ordering::Relaxed));
                            });
                        }
                    });
                });
            }
        });
        assert_eq!(sum.into_inner(), 24 * 50 * (0..35).sum::<u64>());
    }

    #[test]
    fn what_parts_wrote_is_there_afterwards() {
        let mut values = vec![0u64; 1 << 12];
        for round in 1..200 {
            let places: Vec<Mutex<&mut [u64]>> = values.chunks_mut(64).map(Mutex::new).collect();
            with_num_threads(4, || share(64, &|at| places[at].lock().unwrap().iter_mut().for_each(|it| *it += 1)));
            drop(places);
            assert!(values.iter().all(|it| *it == round));
        }
    }

    #[test]
    fn a_panic_comes_to_who_shared_and_the_threads_go_on() {
        for at in [0, 17, 63] {
            let done = AtomicUsize::new(0);
            let run = || {
                share(64, &|it| {
                    thread::sleep(Duration::from_micros(50));
                    assert!(it != at, "part {at}");
                    done.fetch_add(1, Ordering::Relaxed);
                });
            };
            let panic = catch_unwind(AssertUnwindSafe(|| with_num_threads(3, run))).unwrap_err();
            assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some(&*format!("part {at}")));
        }
        let done = AtomicUsize::new(0);
        with_num_threads(3, || share(64, &|_| _ = done.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(done.into_inner(), 64);
    }

    #[test]
    fn work_after_a_pause_wakes_who_sleeps() {
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(5));
            let seen = Mutex::new(HashSet::new());
            with_num_threads(2, || {
                share(200, &|_| {
                    seen.lock().unwrap().insert(thread::current().id());
                    thread::sleep(Duration::from_micros(200));
                });
            });
            assert_eq!(seen.into_inner().unwrap().len(), 2);
        }
    }

    #[test]
    fn no_threads_are_refused() {
        assert_eq!(set_num_threads(0).unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(with_num_threads(0, get_num_threads), 1);
    }
}
