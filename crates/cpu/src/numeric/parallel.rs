//! Work in parts that may run at the same time, on the threads of the pool. Kernels cannot tell whether they do.
//!
//! Who calls decides what the parts are: from the sizes alone, or from [`n_threads`] too where the bits of a result are the same
//! whatever the parts are. So no result depends on the number of threads, and work that is too small to share is one part, which costs no more than a call. A body must not ask for a storage's guard:
//! it works on slices that its caller has.

use crate::numeric::thread_pool;
use std::sync::OnceLock;
use tracefx_core::allocate::{collected, try_collected};
use tracefx_core::{Diagnostic, Result};

/// Elements that are worth a part of their own where each takes a few instructions.
pub(crate) const GRAIN: usize = 1 << 15;

/// What `body` gives for every number below `n`, in order: partial results, to be combined in this order.
///
/// # Errors
/// The first error of a body, or `OutOfMemory` where there is no room for the results.
pub(crate) fn map<R: Send>(n: usize, body: impl Fn(usize) -> Result<R> + Sync + Send) -> Result<Vec<R>> {
    let mut res: Vec<Option<Result<R>>> = collected(std::iter::repeat_with(|| None).take(n))?;
    parts_mut(&mut res, 1, |at, it| it[0] = Some(body(at)));
    try_collected(res.into_iter().map(|it| it.expect("every part gives something")))
}

/// As [`for_each`], for bodies that may fail: the error of one of those that did.
pub(crate) fn try_for_each(n: usize, body: impl Fn(usize) -> Result<()> + Sync + Send) -> Result<()> {
    let problem = OnceLock::new();
    for_each(n, |at| note(body(at), &problem));
    problem.into_inner().map_or(Ok(()), Err)
}

/// As [`parts_mut`], for bodies that may fail: the error of one of those that did.
///
/// # Panics
/// When `len` is zero.
pub(crate) fn try_parts_mut<T: Send>(
    items: &mut [T],
    len: usize,
    body: impl Fn(usize, &mut [T]) -> Result<()> + Sync + Send,
) -> Result<()> {
    let problem = OnceLock::new();
    parts_mut(items, len, |at, part| note(body(at, part), &problem));
    problem.into_inner().map_or(Ok(()), Err)
}

fn note(result: Result<()>, problem: &OnceLock<Diagnostic>) {
    if let Err(error) = result {
        let _ = problem.set(error);
    }
}

/// Calls `body` for every number below `n`.
pub(crate) fn for_each(n: usize, body: impl Fn(usize) + Sync + Send) {
    thread_pool::parallel_for(n, &body);
}

/// Calls `body` with the place of each part of `items` and the part; parts have `len` elements, the last one perhaps
/// fewer.
///
/// # Panics
/// When `len` is zero.
pub(crate) fn parts_mut<T: Send>(items: &mut [T], len: usize, body: impl Fn(usize, &mut [T]) + Sync + Send) {
    thread_pool::share_parts(items, len, &body);
}

/// How many parts run at the same time: for who gives the same bits whatever the parts are.
pub(crate) fn n_threads() -> usize {
    thread_pool::get_num_threads()
}

/// The elements of a part of about [`GRAIN`] elements that ends where a row ends.
pub(crate) fn whole_rows(row: usize) -> usize {
    (GRAIN / row.max(1)).max(1) * row.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_comes_once_and_in_its_place() {
        for (n, len) in [(0, 3), (1, 3), (3, 3), (10, 3), (1000, 7)] {
            let mut items = vec![0; n];
            parts_mut(&mut items, len, |at, part| {
                assert!(part.len() == len || at + part.len() == n);
                part.iter_mut().enumerate().for_each(|(i, it)| *it += at + i + 1);
            });
            assert_eq!(items, (1..=n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parts_end_where_rows_end() {
        assert_eq!(whole_rows(1000) % 1000, 0);
        assert_eq!(whole_rows(GRAIN * 3), GRAIN * 3);
        assert_eq!(whole_rows(0), GRAIN);
    }
}
