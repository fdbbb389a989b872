//! The algorithms of the C++ standard library that PyTorch picks elements with.
//!
//! Which of several equal elements `topk` or `mode` give is whatever these algorithms leave in place, and
//! programs are compared with what PyTorch gave; so they are libstdc++'s, comparison by comparison
//! (`bits/stl_algo.h`, `bits/stl_heap.h`).

/// Below this length, insertion sort finishes the work.
const THRESHOLD: usize = 16;

/// `std::sort`.
pub(crate) fn sort<T: Copy>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) {
    if items.len() > 1 {
        let depth = 2 * items.len().ilog2();
        introsort(items, depth, less);
        if items.len() > THRESHOLD {
            insertion_sort(&mut items[..THRESHOLD], less);
            (THRESHOLD..items.len()).for_each(|at| insert(items, at, less));
        } else {
            insertion_sort(items, less);
        }
    }
}

/// `std::nth_element`: puts the element in its place that would be there after sorting, smaller ones before it.
pub(super) fn nth_element<T: Copy>(items: &mut [T], nth: usize, less: &impl Fn(&T, &T) -> bool) {
    if nth >= items.len() {
        return;
    }
    let (mut first, mut last) = (0, items.len());
    let mut depth = 2 * items.len().ilog2();
    while last - first > 3 {
        if depth == 0 {
            heap_select(&mut items[first..last], nth + 1 - first, less);
            items.swap(first, nth);
            return;
        }
        depth -= 1;
        let cut = first + partition(&mut items[first..last], less);
        if cut <= nth {
            first = cut;
        } else {
            last = cut;
        }
    }
    insertion_sort(&mut items[first..last], less);
}

/// `std::partial_sort`: puts the `n` smallest elements in order in front.
pub(super) fn partial_sort<T: Copy>(items: &mut [T], n: usize, less: &impl Fn(&T, &T) -> bool) {
    if n == 0 {
        return;
    }
    heap_select(items, n, less);
    for end in (1..n).rev() {
        pop_heap(items, end, end, less);
    }
}

fn introsort<T: Copy>(items: &mut [T], mut depth: u32, less: &impl Fn(&T, &T) -> bool) {
    let mut last = items.len();
    while last > THRESHOLD {
        if depth == 0 {
            partial_sort(&mut items[..last], last, less);
            return;
        }
        depth -= 1;
        let cut = partition(&mut items[..last], less);
        introsort(&mut items[cut..last], depth, less);
        last = cut;
    }
}

/// Moves the median of three elements to the front and parts the others around it.
fn partition<T: Copy>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) -> usize {
    let (a, b, c) = (1, items.len() / 2, items.len() - 1);
    let is_less = |items: &[T], x: usize, y: usize| less(&items[x], &items[y]);
    let median = if is_less(items, a, b) {
        if is_less(items, b, c) {
            b
        } else if is_less(items, a, c) {
            c
        } else {
            a
        }
    } else if is_less(items, a, c) {
        a
    } else if is_less(items, b, c) {
        c
    } else {
        b
    };
    items.swap(0, median);
    let (mut first, mut last) = (1, items.len());
    loop {
        while is_less(items, first, 0) {
            first += 1;
        }
        last -= 1;
        while is_less(items, 0, last) {
            last -= 1;
        }
        if first >= last {
            return first;
        }
        items.swap(first, last);
        first += 1;
    }
}

fn insertion_sort<T: Copy>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) {
    for at in 1..items.len() {
        if less(&items[at], &items[0]) {
            items[..=at].rotate_right(1);
        } else {
            insert(items, at, less);
        }
    }
}

/// Moves an element forward past all greater ones; there is one that is not greater.
fn insert<T: Copy>(items: &mut [T], mut at: usize, less: &impl Fn(&T, &T) -> bool) {
    let item = items[at];
    while at > 0 && less(&item, &items[at - 1]) {
        items[at] = items[at - 1];
        at -= 1;
    }
    items[at] = item;
}

fn heap_select<T: Copy>(items: &mut [T], middle: usize, less: &impl Fn(&T, &T) -> bool) {
    for parent in (0..middle / 2).rev() {
        let item = items[parent];
        adjust_heap(&mut items[..middle], parent, item, less);
    }
    for at in middle..items.len() {
        if less(&items[at], &items[0]) {
            pop_heap(items, middle, at, less);
        }
    }
}

/// Moves the largest element of the heap to `to` and what was there into the heap.
fn pop_heap<T: Copy>(items: &mut [T], len: usize, to: usize, less: &impl Fn(&T, &T) -> bool) {
    let item = items[to];
    items[to] = items[0];
    adjust_heap(&mut items[..len], 0, item, less);
}

fn adjust_heap<T: Copy>(heap: &mut [T], top: usize, item: T, less: &impl Fn(&T, &T) -> bool) {
    let len = heap.len();
    let (mut hole, mut child) = (top, top);
    while child < (len.max(1) - 1) / 2 {
        child = 2 * (child + 1);
        if less(&heap[child], &heap[child - 1]) {
            child -= 1;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    if len.is_multiple_of(2) && len >= 2 && child == (len - 2) / 2 {
        child = 2 * (child + 1);
        heap[hole] = heap[child - 1];
        hole = child - 1;
    }
    while hole > top && less(&heap[(hole - 1) / 2], &item) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = item;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrambled(n: usize, modulus: u64) -> Vec<(u64, usize)> {
        (0..n)
            .map(|at| ((at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33, at))
            .map(|(x, at)| (x % modulus, at))
            .collect()
    }

    #[test]
    fn every_algorithm_orders_what_it_promises() {
        let less = |a: &(u64, usize), b: &(u64, usize)| a.0 < b.0;
        for n in [0, 1, 2, 3, 5, 16, 17, 40, 1000] {
            let items = scrambled(n, 50);
            let mut sorted: Vec<u64> = items.iter().map(|it| it.0).collect();
            sorted.sort_unstable();
            let keys = |items: &[(u64, usize)]| items.iter().map(|it| it.0).collect::<Vec<_>>();
            let mut copy = items.clone();
            sort(&mut copy, &less);
            assert_eq!(keys(&copy), sorted);
            for k in [0, 1, 2, n / 2, n.saturating_sub(1)] {
                let mut copy = items.clone();
                partial_sort(&mut copy, k.min(n), &less);
                assert_eq!(keys(&copy[..k.min(n)]), sorted[..k.min(n)]);
                let mut copy = items.clone();
                nth_element(&mut copy, k, &less);
                assert_eq!(copy.get(k).map(|it| it.0), sorted.get(k).copied());
                let (before, after) = copy.split_at(k.min(n));
                assert!(before.iter().all(|a| after.iter().all(|b| a.0 <= b.0)));
            }
        }
    }

    #[test]
    fn a_hostile_order_still_ends_in_time() {
        // All equal, and organ pipes: what makes plain quicksort quadratic.
        let less = |a: &u64, b: &u64| a < b;
        let mut items: Vec<u64> = (0..20_000).map(|at: u64| at.min(20_000 - at)).collect();
        sort(&mut items, &less);
        assert!(items.is_sorted());
    }
}
