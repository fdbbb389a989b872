//! The order of keys, and of the places where they stand.
//!
//! A key moves into the upper bits of a word whose lower ones are its place. So equal keys stay in their order, no two words
//! are equal, and one sort of words does for every dtype and every kernel: quicksort without branches on the order of two
//! words, down to blocks for a sorting network (Knuth, The Art of Computer Programming, volume 3, 5.3.4); or, where keys are
//! of a few digits, those are counted. Natively the sort of the standard library is faster than this quicksort; in
//! WebAssembly it is built small, since each comparison that it is given would take up to 17 kB, and that makes it slow.

use crate::sort::introsort;
use tracefx_core::Result;
use tracefx_core::allocate::{reserve, resize};

/// The length of a block that the network sorts.
const N_BLOCK: usize = 16;

/// Finds the order of one list after the other, in the same memory.
#[derive(Default)]
pub(crate) struct Sorter {
    words: Vec<u64>,
    other: Vec<u64>,
    counts: Vec<usize>,
}

impl Sorter {
    /// The places of the keys, from that of the least one to that of the greatest, and of equal ones in order.
    pub(crate) fn places(&mut self, keys: &[u64]) -> Result<impl ExactSizeIterator<Item = usize> + '_> {
        let n_place_bits = keys.len().next_power_of_two().trailing_zeros();
        let differing = differing(keys);
        let end = 64 - differing.leading_zeros();
        let low = differing.trailing_zeros().min(end);
        // The bits below do not fit beside the place.
        let start = low.max(end.saturating_sub(64 - n_place_bits));
        self.words.clear();
        reserve(&mut self.words, keys.len())?;
        self.words.extend(keys.iter().zip(0..).map(|(key, at): (_, u64)| key >> start << n_place_bits | at));
        self.sort(n_place_bits, end - start)?;
        let place = move |word: &u64| (word & ((1 << n_place_bits) - 1)) as usize;
        if start > low {
            settle(&mut self.words, |word| (keys[place(word)], *word));
        }
        Ok(self.words.iter().map(place))
    }

    /// The place of the key that is the `nth` in order.
    pub(crate) fn nth(&mut self, keys: &[u64], nth: usize) -> Result<usize> {
        let rest = &mut self.words;
        rest.clear();
        reserve(rest, keys.len())?;
        rest.extend_from_slice(keys);
        let mut at = nth;
        let key = loop {
            let differing = differing(rest);
            if differing == 0 {
                break rest[0];
            }
            if rest.len() <= N_BLOCK {
                sort_block(rest);
                break rest[at];
            }
            let shift = (64 - differing.leading_zeros()).saturating_sub(8);
            let digit = |key: u64| (key >> shift) as u8;
            let mut counts = [0; 256];
            rest.iter().for_each(|&it| counts[usize::from(digit(it))] += 1);
            let mut picked = 0;
            while at >= counts[usize::from(picked)] {
                at -= counts[usize::from(picked)];
                picked += 1;
            }
            // Without a branch, which would be as hard to foresee as the keys.
            let mut n_kept = 0;
            for at in 0..rest.len() {
                let key = rest[at];
                rest[n_kept] = key;
                n_kept += usize::from(digit(key) == picked);
            }
            rest.truncate(n_kept);
        };
        let n_before = keys.iter().filter(|it| **it < key).count();
        let mut equal = (0..keys.len()).filter(|&at| keys[at] == key);
        Ok(equal.nth(nth - n_before).expect("an element of that key was the nth"))
    }

    /// Sorts words that all differ, of which those with the same `n_bits` bits from `low` on are in order.
    fn sort(&mut self, low: u32, n_bits: u32) -> Result<()> {
        let n = self.words.len();
        if self.words.is_sorted() {
            return Ok(());
        }
        if self.words.is_sorted_by(|a, b| a > b) {
            self.words.reverse();
            return Ok(());
        }
        // More digits than the first cache has lines take longer than their number saves, until there is more to move than
        // the second one holds.
        let n_digits = n_bits.div_ceil(if n < 1 << 14 { 9 } else { 12 });
        if n_digits > 4 || n < 256 {
            if cfg!(target_family = "wasm") {
                quicksort(&mut self.words, 2 * n.ilog2());
            } else {
                self.words.sort_unstable();
            }
            return Ok(());
        }
        let width = n_bits.div_ceil(n_digits);
        self.counts.clear();
        resize(&mut self.counts, 1 << width, 0)?;
        resize(&mut self.other, n, 0)?;
        for number in 0..n_digits {
            distribute(&self.words, &mut self.other, &mut self.counts, low + number * width);
            std::mem::swap(&mut self.words, &mut self.other);
        }
        Ok(())
    }
}

/// Moves words behind those whose digit from bit `low` on is less. There are as many digits as counts, a power of two.
fn distribute(from: &[u64], to: &mut [u64], counts: &mut [usize], low: u32) {
    let mask = counts.len() - 1;
    let digit = |word: u64| (word >> low) as usize & mask;
    counts.fill(0);
    from.iter().for_each(|&word| counts[digit(word)] += 1);
    let mut sum = 0;
    counts.iter_mut().for_each(|it| (*it, sum) = (sum, sum + *it));
    for &word in from {
        let place = &mut counts[digit(word)];
        to[*place] = word;
        *place += 1;
    }
}

/// Sorts words that all differ. After so many levels their order is hostile, and a sort that no order harms goes on.
fn quicksort(mut words: &mut [u64], mut n_levels: u32) {
    while words.len() > N_BLOCK {
        if n_levels == 0 {
            return introsort::sort(words, &|a, b| a < b);
        }
        n_levels -= 1;
        words.swap(0, pivot(words));
        let first = words[0];
        let rest = &mut words[1..];
        let mut n_less = 0;
        for at in 0..rest.len() {
            let word = rest[at];
            rest.swap(at, n_less);
            n_less += usize::from(word < first);
        }
        words.swap(0, n_less);
        let (less, rest) = words.split_at_mut(n_less);
        quicksort(less, n_levels);
        words = &mut rest[1..];
    }
    sort_block(words);
}

/// Where the median of three words is, or of three medians.
fn pivot(words: &[u64]) -> usize {
    let median = |[a, b, c]: [usize; 3]| {
        let (x, y, z) = (words[a], words[b], words[c]);
        if (x < y) == (y < z) {
            b
        } else if (x < y) == (x < z) {
            c
        } else {
            a
        }
    };
    let last = words.len() - 1;
    if words.len() < 128 {
        return median([0, last / 2, last]);
    }
    median([0, last / 2, last - last / 8].map(|at| median([at, at + last / 16, at + last / 8])))
}

/// The bits in which keys differ from each other.
fn differing(keys: &[u64]) -> u64 {
    keys.iter().fold(0, |bits, key| bits | (key ^ keys[0]))
}

/// Sorts what nearly is: words that were sorted by the upper bits of their keys alone.
fn settle(words: &mut [u64], key: impl Fn(&u64) -> (u64, u64)) {
    let mut n_moved = 0;
    let Some(mut last) = words.first().map(&key) else { return };
    for at in 1..words.len() {
        let (word, its) = (words[at], key(&words[at]));
        if its >= last {
            last = its;
            continue;
        }
        let mut to = at;
        while to > 0 && key(&words[to - 1]) > its {
            words[to] = words[to - 1];
            to -= 1;
        }
        words[to] = word;
        n_moved += at - to;
        if n_moved > words.len() {
            return introsort::sort(words, &|a, b| key(a) < key(b));
        }
    }
}

/// Sorts up to [`N_BLOCK`] words with Green's network of 60 exchanges.
fn sort_block(words: &mut [u64]) {
    let mut it = [u64::MAX; N_BLOCK];
    it[..words.len()].copy_from_slice(words);
    // A loop over a table of pairs would keep the block in memory.
    macro_rules! exchange {
        ($($a:literal $b:literal),*) => { $((it[$a], it[$b]) = (it[$a].min(it[$b]), it[$a].max(it[$b]));)* };
    }
    exchange!(0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15);
    exchange!(0 2, 4 6, 8 10, 12 14, 1 3, 5 7, 9 11, 13 15);
    exchange!(0 4, 8 12, 1 5, 9 13, 2 6, 10 14, 3 7, 11 15);
    exchange!(0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15);
    exchange!(5 10, 6 9, 3 12, 13 14, 4 8, 7 11, 1 2);
    exchange!(1 4, 7 13, 2 8, 11 14);
    exchange!(2 4, 5 6, 9 10, 11 13, 3 8, 7 12);
    exchange!(6 8, 10 12, 3 5, 7 9);
    exchange!(3 4, 5 6, 7 8, 9 10, 11 12);
    exchange!(6 7, 8 9);
    words.copy_from_slice(&it[..words.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Keys whose bits outside of a mask are those of one number.
    fn keys() -> impl Strategy<Value = Vec<u64>> {
        let mask = prop_oneof![Just(u64::MAX), Just(0), Just(7), Just(7 << 61), Just(1 | 1 << 63), any::<u64>()];
        let n = prop_oneof![0..70usize, 200..300usize, Just(5000), Just(20_000)];
        (n, mask, any::<u64>(), 0..4u8, any::<u64>()).prop_map(|(n, mask, rest, order, seed)| {
            let random =
                |at: u64| (at ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31).wrapping_mul(seed | 1);
            let mut keys: Vec<u64> = (0..n as u64).map(|at| random(at) & mask | rest & !mask).collect();
            match order {
                0 => keys.sort_unstable(),
                1 => keys.sort_unstable_by(|a, b| b.cmp(a)),
                _ => {}
            }
            keys
        })
    }

    fn by_comparing(keys: &[u64]) -> Vec<usize> {
        let mut places: Vec<usize> = (0..keys.len()).collect();
        places.sort_by_key(|&at| keys[at]);
        places
    }

    proptest! {
        #[test]
        fn places_are_those_of_a_stable_sort(lists in prop::collection::vec(keys(), 1..3)) {
            let mut sorter = Sorter::default();
            for keys in lists {
                let expected = by_comparing(&keys);
                prop_assert_eq!(&sorter.places(&keys).unwrap().collect::<Vec<_>>(), &expected);
                for nth in [0, 1, keys.len() / 2, keys.len().saturating_sub(1)] {
                    if let Some(&place) = expected.get(nth) {
                        prop_assert_eq!(sorter.nth(&keys, nth).unwrap(), place);
                    }
                }
            }
        }
    }

    #[test]
    fn quicksort_sorts_words_that_differ_after_any_number_of_levels() {
        for n in [0, 1, 2, N_BLOCK as u64, 17, 127, 128, 5000] {
            for n_levels in [0, 3, 64] {
                let mut words: Vec<u64> = (0..n).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
                quicksort(&mut words, n_levels);
                assert!(words.is_sorted());
            }
        }
    }

    #[test]
    fn keys_that_differ_in_their_lowest_bits_alone_end_in_time() {
        // One far off, so that the others are told apart by bits that do not fit beside the place.
        let n = 50_000;
        let keys: Vec<u64> = (0..n).map(|at| if at == 7 { 1 << 63 } else { n - at }).collect();
        let places: Vec<usize> = Sorter::default().places(&keys).unwrap().collect();
        assert_eq!(places, by_comparing(&keys));
    }

    #[test]
    fn the_network_sorts_every_sequence_of_zeros_and_ones() {
        // Which is the zero-one principle: then it sorts everything.
        for bits in 0..1u64 << N_BLOCK {
            let mut words: Vec<u64> = (0..N_BLOCK).map(|at| bits >> at & 1).collect();
            sort_block(&mut words);
            assert!(words.is_sorted());
        }
    }
}
