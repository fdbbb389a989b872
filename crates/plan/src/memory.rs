//! Which buffers share memory: each gets a slot for as long as a step needs it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The steps between which a buffer is needed, and how large it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The first step.
    pub first: usize,
    /// The last step, which is not before the first.
    pub last: usize,
    /// The bytes.
    pub size: usize,
}

/// Slots of memory, and which buffer gets which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// The bytes of each slot.
    pub sizes: Vec<usize>,
    /// The slot of each buffer, in the order of the lifetimes.
    pub of: Vec<usize>,
}

impl Slots {
    /// The bytes of all slots.
    pub fn total(&self) -> usize {
        self.sizes.iter().sum()
    }
}

/// Gives each buffer a slot that no other has in the same step. The largest buffers go first, or those that are needed first,
/// whichever takes less memory (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020: greedy by
/// size and greedy in order for shared objects).
///
/// ```
/// use tracefx_plan::{Lifetime, assign_slots};
/// let chain = [(0, 1, 64), (1, 2, 32), (2, 3, 64)].map(|(first, last, size)| Lifetime { first, last, size });
/// let slots = assign_slots(&chain);
/// assert_eq!((slots.of, slots.sizes), (vec![0, 1, 0], vec![64, 32]));
/// ```
pub fn assign_slots(lifetimes: &[Lifetime]) -> Slots {
    let in_order = in_order(lifetimes);
    if lifetimes.len() > MAX_BY_SIZE {
        return in_order;
    }
    let by_size = by_size(lifetimes);
    if in_order.total() < by_size.total() { in_order } else { by_size }
}

/// Of more buffers, only the order in which they are needed is tried: the other one takes time that grows with the square.
const MAX_BY_SIZE: usize = 4096;

/// Gives each buffer, as it is needed, the free slot that fits it best; where all are smaller, the largest grows.
fn in_order(lifetimes: &[Lifetime]) -> Slots {
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    order.sort_by_key(|&it| (lifetimes[it].first, Reverse(lifetimes[it].size)));
    let mut slots = Slots { sizes: Vec::new(), of: vec![0; lifetimes.len()] };
    let mut free: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut held: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    for at in order {
        let Lifetime { first, last, size } = lifetimes[at];
        while let Some(&Reverse((_, slot))) = held.peek().filter(|it| it.0.0 < first) {
            held.pop();
            free.insert((slots.sizes[slot], slot));
        }
        let found = free.range((size, 0)..).next().or_else(|| free.last()).copied();
        let slot = match found {
            Some(found) => {
                free.remove(&found);
                found.1
            }
            None => {
                slots.sizes.push(0);
                slots.sizes.len() - 1
            }
        };
        slots.sizes[slot] = slots.sizes[slot].max(size);
        held.push(Reverse((last, slot)));
        slots.of[at] = slot;
    }
    slots
}

/// Gives the largest buffer a slot first; the last free slot is the smallest of those that fit.
fn by_size(lifetimes: &[Lifetime]) -> Slots {
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    order.sort_by_key(|&it| (Reverse(lifetimes[it].size), lifetimes[it].first));
    let mut slots = Slots { sizes: Vec::new(), of: vec![0; lifetimes.len()] };
    // The last steps of what a slot holds, by the first steps.
    let mut held: Vec<BTreeMap<usize, usize>> = Vec::new();
    for at in order {
        let Lifetime { first, last, size } = lifetimes[at];
        let is_free =
            |held: &BTreeMap<usize, usize>| held.range(..=last).next_back().is_none_or(|(_, &end)| end < first);
        let slot = held.iter().rposition(is_free).unwrap_or_else(|| {
            held.push(BTreeMap::new());
            slots.sizes.push(size);
            held.len() - 1
        });
        held[slot].insert(first, last);
        slots.of[at] = slot;
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes that are needed in the step that needs most: no assignment takes less.
    fn lower_bound(lifetimes: &[Lifetime]) -> usize {
        let at = |step: usize| {
            let alive = lifetimes.iter().filter(|it| (it.first..=it.last).contains(&step));
            alive.map(|it| it.size).sum()
        };
        lifetimes.iter().map(|it| at(it.first)).max().unwrap_or(0)
    }

    fn lifetime() -> impl Strategy<Value = Lifetime> {
        (0..40usize, 0..12usize, 0..1000usize).prop_map(|(first, more, size)| Lifetime {
            first,
            last: first + more,
            size,
        })
    }

    proptest! {
        #[test]
        fn no_two_buffers_have_a_slot_in_the_same_step(lifetimes in prop::collection::vec(lifetime(), 0..60)) {
            let slots = assign_slots(&lifetimes);
            prop_assert_eq!(slots.of.len(), lifetimes.len());
            for (a, left) in lifetimes.iter().enumerate() {
                prop_assert!(slots.sizes[slots.of[a]] >= left.size);
                for (b, right) in lifetimes.iter().enumerate().skip(a + 1) {
                    let overlap = left.first <= right.last && right.first <= left.last;
                    prop_assert!(!overlap || slots.of[a] != slots.of[b], "{left:?} and {right:?}");
                }
            }
            prop_assert!(slots.total() >= lower_bound(&lifetimes));
        }
    }

    #[test]
    fn a_chain_takes_two_slots() {
        let chain: Vec<Lifetime> = (0..100).map(|it| Lifetime { first: it, last: it + 1, size: 10 + it % 7 }).collect();
        let slots = assign_slots(&chain);
        assert_eq!(slots.sizes.len(), 2);
        assert!(slots.total() <= lower_bound(&chain) * 13 / 10);
    }
}
