//! The names of symbols: PyTorch numbers a size by a hash of where it comes from.

use std::collections::BTreeSet;

/// The numbers that are taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(BTreeSet<u32>);

impl Names {
    /// The name of the symbol of this source: the SHA-256 of its text, of which PyTorch takes the last two decimal digits, or
    /// the next number that is free.
    pub(super) fn name(&mut self, source: &str) -> String {
        let mut number = sha256(source.as_bytes()).iter().fold(0, |rest, byte| (rest * 256 + u32::from(*byte)) % 100);
        while !self.0.insert(number) {
            number += 1;
        }
        format!("s{number}")
    }
}

/// SHA-256 (FIPS 180-4).
fn sha256(bytes: &[u8]) -> [u8; 32] {
    let primes: Vec<u64> =
        (2u64..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).take(64).collect();
    let mut state: [u32; 8] = std::array::from_fn(|at| root_fraction(primes[at], 2));
    let keys: [u32; 64] = std::array::from_fn(|at| root_fraction(primes[at], 3));
    let mut message = bytes.to_vec();
    message.push(0x80);
    message.resize((bytes.len() + 9).next_multiple_of(64) - 8, 0);
    message.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in message.chunks_exact(64) {
        let mut words = [0u32; 64];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        for at in 16..64 {
            let (a, b) = (words[at - 15], words[at - 2]);
            let low = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let high = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            words[at] = words[at - 16].wrapping_add(low).wrapping_add(words[at - 7]).wrapping_add(high);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for at in 0..64 {
            let chosen = e & f ^ !e & g;
            let mixed = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let first = h.wrapping_add(mixed).wrapping_add(chosen).wrapping_add(keys[at]).wrapping_add(words[at]);
            let majority = a & b ^ a & c ^ b & c;
            let second = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(majority);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
        }
        for (old, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *old = old.wrapping_add(new);
        }
    }
    let mut res = [0; 32];
    for (bytes, word) in res.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    res
}

/// The first 32 bits behind the point of a square or cubic root: the largest `r` with `r**degree <= n * 2**(32*degree)`.
fn root_fraction(n: u64, degree: u32) -> u32 {
    let power_fits = |root: u128| {
        let wanted = u128::from(n) << (32 * degree);
        (0..degree).try_fold(1u128, |product, _| product.checked_mul(root)).is_some_and(|it| it <= wanted)
    };
    let root = (0..38).rev().fold(0u128, |root, bit| if power_fits(root | 1 << bit) { root | 1 << bit } else { root });
    root as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_numbered_as_in_pytorch() {
        let mut names = Names::default();
        let given = ["L['x'].size()[0]", "L['y'].size()[0]", "L['x'].size()[1]"].map(|it| names.name(it));
        assert_eq!(given, ["s77", "s17", "s27"]);
        assert_eq!(names.name("L['x'].size()[0]"), "s78");
    }
}
