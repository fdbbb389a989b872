//! The threads of kernels: a fork-join pool, and how many of its threads work at a time.
//!
//! Who has work opens it for the others and takes parts of it himself, so that it is done even where nobody has time; workers without
//! work look for some before they sleep. Steps of a plan follow each other within microseconds, and to wake a thread takes longer than
//! most steps do. A process that forks has no workers in the child, whose work is done by who has it.
//!
//! WebAssembly starts no threads by itself: a host that has some says how ([`start_workers_by`]), and each of them calls
//! [`run_worker`]. Until a host does, there is one.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;
#[cfg(not(target_family = "wasm"))]
use std::time::Instant;
use tracefx_core::{Code, Diagnostic, Result};

/// So many jobs can be open at a time. Who finds no room does his work alone.
const N_SLOTS: usize = 16;

/// The parts of a job lie in so many ranges at most.
const MAX_RANGES: usize = 32;

/// There are so many workers at most.
const MAX_WORKERS: usize = 256;

/// So long a worker looks for work before it sleeps: longer than the steps between two that are shared.
const SPIN_TIME: Duration = Duration::from_micros(200);

/// So many times a thread that waits looks again at once; after that it lets others go first.
const N_SPINS: usize = 1_000;

/// The environment variable that says how many threads there are, where [`set_num_threads`] does not.
const VARIABLE: &str = "TRACEFX_NUM_THREADS";

/// As [`SPIN_TIME`], in looks, where there is no clock.
#[cfg(target_family = "wasm")]
const N_LOOKS_AWAKE: usize = 100_000;

static POOL: ThreadPool = ThreadPool::new();

/// Not zero once a worker has stopped in the middle of something.
static STOPPED: AtomicU32 = AtomicU32::new(0);

/// The number of threads of the process; zero before it is asked for.
static NUM_THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of threads for what this one calls; zero where that of the process holds.
    static OWN_NUM_THREADS: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread is a worker.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
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

/// Calls `body`, whose kernels use so many threads, at least one. Neither what is called elsewhere at the same time is concerned nor threads
/// that `body` starts.
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

/// Says what starts the workers of kernels where the system does not: it is given the number of a worker, has a thread of the host call
/// [`run_worker`] with it, sooner or later, and says whether it will. Only the first call of a process counts.
pub fn start_workers_by(start: fn(usize) -> bool) {
    // The other one is as good.
    let _ = POOL.start.set(start);
}

/// What a worker does that was started by [`start_workers_by`]: it does not return.
pub fn run_worker(worker: usize) {
    POOL.run_worker(worker);
}

/// A number that a host sets to one when a worker has stopped, as by a trap, and can be waited for no more. Who has work for workers then
/// stops too.
pub fn worker_stopped() -> &'static AtomicU32 {
    &STOPPED
}

/// Stops where a worker has, which may be waited for in vain.
fn stop_with_workers() {
    if STOPPED.load(Ordering::Relaxed) != 0 {
        std::process::abort();
    }
}

/// Calls `body` for every number below `n`, on the threads of kernels, and returns when all calls have: `at::parallel_for`. Who calls
/// does what the other threads have no time for.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let sum = AtomicUsize::new(0);
/// tracefx_cpu::parallel_for(100, &|it| _ = sum.fetch_add(it, Ordering::Relaxed));
/// assert_eq!(sum.into_inner(), 4950);
/// ```
///
/// # Panics
/// As the body does.
pub fn parallel_for(n: usize, body: &(dyn Fn(usize) + Sync)) {
    POOL.share(n, body);
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
    parallel_for(n_items.div_ceil(len), &|part| {
        let at = part * len;
        let n = len.min(n_items - at);
        // SAFETY: The part lies within `items`, which is borrowed until all are done, and each part comes once.
        body(at, unsafe { std::slice::from_raw_parts_mut(start.get().add(at), n) });
    });
}

struct ThreadPool {
    slots: [Slot; N_SLOTS],
    /// How many jobs were opened.
    published: AtomicUsize,
    /// How many workers look for a job.
    searching: AtomicUsize,
    /// How many workers sleep, or are about to.
    sleeping: AtomicUsize,
    n_workers: AtomicUsize,
    /// Whether the system has refused a thread.
    is_full: AtomicBool,
    idle_lock: Mutex<()>,
    wake: Condvar,
    /// What starts workers instead of the system.
    start: OnceLock<fn(usize) -> bool>,
}

/// Work in parts.
struct Job<'a> {
    body: &'a (dyn Fn(usize) + Sync),
    /// The parts.
    n: usize,
    n_ranges: usize,
    /// Of each range, the first part that nobody has begun.
    next: [CachePadded; MAX_RANGES],
    most_helpers: usize,
    /// The threads for what a part shares in turn.
    n_inner_threads: usize,
    /// What helpers panicked with.
    panics: Mutex<Vec<Box<dyn Any + Send>>>,
    /// How many parts were done by who has done with the job.
    n_done: AtomicUsize,
}

/// Helpers have a reference to it.
const _: () = {
    const fn is_shared<T: Sync>() {}
    is_shared::<Job<'static>>();
};

/// A number in a cache line of its own.
#[repr(align(64))]
struct CachePadded(AtomicUsize);

impl<'a> Job<'a> {
    /// A job of at least two parts for at least two threads.
    fn new(n: usize, body: &'a (dyn Fn(usize) + Sync), n_threads: usize) -> Self {
        let n_ranges = n_threads.min(n).min(MAX_RANGES);
        Job {
            body,
            n,
            n_ranges,
            next: std::array::from_fn(|range| CachePadded(AtomicUsize::new(start(range, n, n_ranges)))),
            most_helpers: (n_threads - 1).min(n - 1),
            n_inner_threads: n_threads / n_threads.min(n),
            panics: Mutex::default(),
            n_done: AtomicUsize::new(0),
        }
    }

    /// Does parts until all are begun, those of this range first: neighbours are written by one thread, and of the next job like this one
    /// the same parts. Gives whether there were any.
    fn work(&self, first: usize) -> bool {
        let mut n_done = 0;
        let mut work = || {
            for range in (0..self.n_ranges).map(|it| (first + it) % self.n_ranges) {
                let (CachePadded(next), end) = (&self.next[range], start(range + 1, self.n, self.n_ranges));
                while next.load(Ordering::Relaxed) < end {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= end {
                        break;
                    }
                    (self.body)(at);
                    n_done += 1;
                }
            }
        };
        with_num_threads(self.n_inner_threads, &mut work);
        self.n_done.fetch_add(n_done, Ordering::Relaxed);
        n_done > 0
    }

    /// As [`Job::work`], on a worker, which goes on after a panic. The first range is the owner's.
    fn help(&self, worker: usize) -> bool {
        let done = catch_unwind(AssertUnwindSafe(|| self.work(1 + worker % (self.n_ranges - 1))));
        done.unwrap_or_else(|panic| {
            self.panics.lock().unwrap_or_else(PoisonError::into_inner).push(panic);
            true
        })
    }
}

/// The first part of a range.
fn start(range: usize, n: usize, n_ranges: usize) -> usize {
    n / n_ranges * range + (n % n_ranges).min(range)
}

/// Where one job at a time is open to helpers.
#[repr(align(128))]
struct Slot {
    is_taken: AtomicBool,
    /// Null while no job is open.
    job: AtomicPtr<Job<'static>>,
    /// The workers that look at the job.
    helpers: AtomicUsize,
}

impl Slot {
    const fn new() -> Self {
        Slot { is_taken: AtomicBool::new(false), job: AtomicPtr::new(ptr::null_mut()), helpers: AtomicUsize::new(0) }
    }

    /// Takes it, where nobody has it.
    fn take(&self) -> bool {
        !self.is_taken.load(Ordering::Relaxed) && !self.is_taken.swap(true, Ordering::Acquire)
    }

    /// Calls `body` while a job is open, waits until the helpers have done what they began, and gives the slot up.
    fn open(&self, job: &Job<'_>, body: impl FnOnce()) {
        struct Open<'a>(&'a Slot);
        impl Drop for Open<'_> {
            fn drop(&mut self) {
                let Open(slot) = self;
                slot.job.store(ptr::null_mut(), Ordering::SeqCst);
                let mut backoff = Backoff::new();
                while slot.helpers.load(Ordering::SeqCst) > 0 {
                    stop_with_workers();
                    if !backoff.goes_on() {
                        thread::sleep(SPIN_TIME / 4);
                    }
                }
                slot.is_taken.store(false, Ordering::Release);
            }
        }
        let _open = Open(self);
        self.job.store(ptr::from_ref(job).cast::<Job<'static>>().cast_mut(), Ordering::SeqCst);
        body();
    }

    /// Helps with the job, if there is one. Gives whether there was something to do.
    fn help(&self, worker: usize) -> bool {
        struct Counted<'a>(&'a AtomicUsize);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Release);
            }
        }
        let before = self.helpers.fetch_add(1, Ordering::SeqCst);
        let _counted = Counted(&self.helpers);
        let job = self.job.load(Ordering::SeqCst);
        // SAFETY: The owner of a job clears the pointer and then waits until there are no helpers, before the job goes. This one was
        // counted before it read the pointer, and all four operations are in one total order: it reads null, or a job whose owner, this
        // one or the next, sees it counted.
        let job = unsafe { job.as_ref() };
        job.is_some_and(|it| before < it.most_helpers && it.help(worker))
    }
}

/// A thread that waits for others, awake.
struct Backoff {
    n_looks: usize,
    #[cfg(not(target_family = "wasm"))]
    since: Instant,
}

impl Backoff {
    fn new() -> Self {
        Backoff {
            n_looks: 0,
            #[cfg(not(target_family = "wasm"))]
            since: Instant::now(),
        }
    }

    /// Lets a moment pass. Gives whether waiting awake is still worth it.
    fn goes_on(&mut self) -> bool {
        self.n_looks += 1;
        if self.n_looks < N_SPINS {
            std::hint::spin_loop();
            return true;
        }
        #[cfg(not(target_family = "wasm"))]
        {
            thread::yield_now();
            self.since.elapsed() < SPIN_TIME
        }
        #[cfg(target_family = "wasm")]
        {
            self.n_looks < N_LOOKS_AWAKE
        }
    }
}

impl ThreadPool {
    const fn new() -> Self {
        ThreadPool {
            slots: [const { Slot::new() }; N_SLOTS],
            published: AtomicUsize::new(0),
            searching: AtomicUsize::new(0),
            sleeping: AtomicUsize::new(0),
            n_workers: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            idle_lock: Mutex::new(()),
            wake: Condvar::new(),
            start: OnceLock::new(),
        }
    }

    fn share(&'static self, n: usize, body: &(dyn Fn(usize) + Sync)) {
        let n_threads = get_num_threads();
        if n < 2 || n_threads < 2 {
            return (0..n).for_each(body);
        }
        stop_with_workers();
        let job = Job::new(n, body, n_threads);
        self.grow(job.most_helpers);
        let Some(slot) = self.slots.iter().find(|it| it.take()) else { return (0..n).for_each(body) };
        slot.open(&job, || {
            self.publish(job.most_helpers);
            job.work(0);
        });
        if let Some(panic) = job.panics.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().next() {
            resume_unwind(panic);
        }
        // An exception of the host goes through frames without a trace, and its thread is lost.
        if job.n_done.into_inner() != n {
            STOPPED.store(1, Ordering::Relaxed);
            stop_with_workers();
        }
    }

    /// Starts workers until there are so many, or the system refuses one. Where a host starts them it is not asked by a worker, which it does
    /// not know.
    fn grow(&'static self, n: usize) {
        if IS_WORKER.get() && self.start.get().is_some() {
            return;
        }
        let n = n.min(MAX_WORKERS);
        while self.n_workers.load(Ordering::Relaxed) < n && !self.is_full.load(Ordering::Relaxed) {
            let worker = self.n_workers.fetch_add(1, Ordering::Relaxed);
            let is_started = match self.start.get() {
                Some(start) => start(worker),
                None => {
                    let name = format!("tracefx-{worker}");
                    thread::Builder::new().name(name).spawn(move || self.run_worker(worker)).is_ok()
                }
            };
            if !is_started {
                self.n_workers.fetch_sub(1, Ordering::Relaxed);
                self.is_full.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Says that a job is open for so many helpers. Those who sleep are woken where too few look for one.
    fn publish(&self, n: usize) {
        self.published.fetch_add(1, Ordering::SeqCst);
        let sleeping = self.sleeping.load(Ordering::SeqCst);
        let wanted = n.saturating_sub(self.searching.load(Ordering::SeqCst)).min(sleeping);
        if wanted > 0 {
            let _idle = self.idle_lock.lock().unwrap_or_else(PoisonError::into_inner);
            (0..wanted).for_each(|_| self.wake.notify_one());
        }
    }

    fn run_worker(&self, worker: usize) {
        IS_WORKER.set(true);
        self.searching.fetch_add(1, Ordering::SeqCst);
        loop {
            // A job that wants no more helpers is no reason to stay awake.
            let mut backoff = Backoff::new();
            loop {
                let published = self.published.load(Ordering::SeqCst);
                let is_same = || self.published.load(Ordering::SeqCst) == published;
                if self.slots.iter().any(|it| self.help(it, worker)) {
                    break;
                }
                let mut is_awake = true;
                while is_same() && is_awake {
                    is_awake = backoff.goes_on();
                }
                if is_awake {
                    continue;
                }
                let mut idle = self.idle_lock.lock().unwrap_or_else(PoisonError::into_inner);
                self.sleeping.fetch_add(1, Ordering::SeqCst);
                self.searching.fetch_sub(1, Ordering::SeqCst);
                while is_same() {
                    idle = self.wake.wait(idle).unwrap_or_else(PoisonError::into_inner);
                }
                self.searching.fetch_add(1, Ordering::SeqCst);
                self.sleeping.fetch_sub(1, Ordering::SeqCst);
                break;
            }
        }
    }

    /// As [`Slot::help`]. Who helps looks for nothing else.
    fn help(&self, slot: &Slot, worker: usize) -> bool {
        if slot.job.load(Ordering::Relaxed).is_null() {
            return false;
        }
        self.searching.fetch_sub(1, Ordering::SeqCst);
        let any = slot.help(worker);
        self.searching.fetch_add(1, Ordering::SeqCst);
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// A pool of a test's own, whose workers nobody else keeps busy.
    fn pool() -> &'static ThreadPool {
        Box::leak(Box::new(ThreadPool::new()))
    }

    #[test]
    fn every_part_is_done_once() {
        let pool = pool();
        for n_threads in [1, 2, 3, 8] {
            for n in [0, 1, 2, 3, 7, 64, 1000] {
                let counts: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                with_num_threads(n_threads, || pool.share(n, &|at| _ = counts[at].fetch_add(1, Ordering::Relaxed)));
                assert!(counts.iter().all(|it| it.load(Ordering::Relaxed) == 1), "{n} parts on {n_threads} threads");
            }
        }
    }

    #[test]
    fn no_more_threads_than_asked_for_work() {
        for n_threads in [1, 2, 3, 4] {
            let pool = pool();
            with_num_threads(8, || pool.share(8, &|_| {}));
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            with_num_threads(n_threads, || {
                pool.share(30, &|_| {
                    assert_eq!(get_num_threads(), 1);
                    // What a part shares is no reason for more.
                    pool.share(4, &|_| {
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        now.fetch_sub(1, Ordering::SeqCst);
                    });
                });
                pool.share(2, &|_| assert_eq!(get_num_threads(), (n_threads / 2).max(1)));
                assert_eq!(get_num_threads(), n_threads);
            });
            assert!(most.into_inner() <= n_threads);
        }
    }

    /// Two parts that are done at the same time: each waits for the other.
    fn meet(pool: &'static ThreadPool) {
        let barrier = std::sync::Barrier::new(2);
        with_num_threads(2, || pool.share(2, &|_| _ = barrier.wait()));
    }

    #[test]
    fn workers_that_sleep_are_woken() {
        let pool = pool();
        for _ in 0..5 {
            meet(pool);
            while pool.sleeping.load(Ordering::SeqCst) < 1 {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn workers_who_are_not_wanted_go_to_sleep() {
        let pool = pool();
        with_num_threads(5, || pool.share(5, &|_| {}));
        while pool.sleeping.load(Ordering::SeqCst) < 3 {
            meet(pool);
        }
    }

    #[test]
    fn jobs_of_many_threads_and_jobs_within_jobs_are_all_done() {
        let (pool, sum) = (pool(), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..24 {
                scope.spawn(|| {
                    with_num_threads(4, || {
                        for _ in 0..50 {
                            pool.share(5, &|outer| {
                                pool.share(7, &|inner| {
                                    _ = sum.fetch_add((outer * 7 + inner) as u64, Ordering::Relaxed)
                                });
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
        let (pool, mut values) = (pool(), vec![0u64; 1 << 12]);
        for round in 1..200 {
            let places: Vec<Mutex<&mut [u64]>> = values.chunks_mut(64).map(Mutex::new).collect();
            with_num_threads(4, || pool.share(64, &|at| places[at].lock().unwrap().iter_mut().for_each(|it| *it += 1)));
            drop(places);
            assert!(values.iter().all(|it| *it == round));
        }
    }

    #[test]
    fn a_panic_comes_to_who_shared_and_the_threads_go_on() {
        let pool = pool();
        for at in [0, 17, 63] {
            let done = AtomicUsize::new(0);
            let run = || {
                pool.share(64, &|it| {
                    thread::yield_now();
                    assert!(it != at, "part {at}");
                    done.fetch_add(1, Ordering::Relaxed);
                });
            };
            let panic = catch_unwind(AssertUnwindSafe(|| with_num_threads(3, run))).unwrap_err();
            assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some(&*format!("part {at}")));
        }
        let done = AtomicUsize::new(0);
        with_num_threads(3, || pool.share(64, &|_| _ = done.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(done.into_inner(), 64);
    }

    #[test]
    fn what_starts_workers_may_start_none_or_start_them_later() {
        for start in [|_| false, |_| true] as [fn(usize) -> bool; 2] {
            let (pool, done) = (pool(), AtomicUsize::new(0));
            pool.start.set(start).unwrap();
            with_num_threads(4, || pool.share(64, &|_| _ = done.fetch_add(1, Ordering::Relaxed)));
            assert_eq!(done.into_inner(), 64);
            assert_eq!(pool.is_full.load(Ordering::Relaxed), !start(0));
            thread::spawn(|| pool.run_worker(0));
            meet(pool);
        }
    }

    #[test]
    fn workers_of_a_host_ask_for_no_others() {
        static ASKED: Mutex<Vec<bool>> = Mutex::new(Vec::new());
        fn start(worker: usize) -> bool {
            ASKED.lock().unwrap().push(IS_WORKER.get());
            worker == 0
        }
        let (pool, barrier) = (pool(), std::sync::Barrier::new(2));
        pool.start.set(start).unwrap();
        thread::spawn(|| pool.run_worker(0));
        let share_in_turn = |_| {
            barrier.wait();
            if IS_WORKER.get() {
                with_num_threads(8, || pool.share(8, &|_| {}));
            }
        };
        with_num_threads(2, || pool.share(2, &share_in_turn));
        assert_eq!((&**ASKED.lock().unwrap(), pool.is_full.load(Ordering::Relaxed)), (&[false][..], false));
    }

    #[test]
    fn no_threads_are_refused() {
        assert_eq!(set_num_threads(0).unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(with_num_threads(0, get_num_threads), 1);
    }
}
