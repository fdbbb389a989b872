//! The cases of a target that CI runs: its seeds, and bytes made of them, each named by its number.

use crate::Target;
use crate::random::Random;

/// Inputs longer than this cost more than they find, as under libFuzzer.
const MAX_LEN: usize = 65_536;

/// Numbers at which sizes, signs and offsets go wrong.
const NUMBERS: &[u64] =
    &[0, 1, 2, 7, 8, 64, 127, 128, 255, 256, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, 1 << 63, u64::MAX];

/// The inputs of a target by their numbers: first the seeds, then what is made of them.
///
/// ```
/// let cases = tracefx_fuzz::Cases::of(tracefx_fuzz::target("expr").unwrap());
/// assert_eq!(cases.input(12_345), cases.input(12_345));
/// ```
pub struct Cases {
    seeds: Vec<Vec<u8>>,
    /// How many of them CI runs.
    pub len: usize,
}

impl Cases {
    /// The cases of a target.
    ///
    /// # Panics
    /// If a seed cannot be read.
    pub fn of(target: &Target) -> Self {
        let mut seeds = (target.seeds)();
        seeds.retain(|it| it.len() <= MAX_LEN);
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        let len = seeds.len() + target.n_mutations;
        Cases { seeds, len }
    }

    /// The input of a number; there are more than `len`.
    pub fn input(&self, case: usize) -> Vec<u8> {
        if let Some(seed) = self.seeds.get(case) {
            return seed.clone();
        }
        let mut random = Random(case as u64);
        let mut bytes = random.pick(&self.seeds);
        for _ in 0..=random.below(4) {
            self.mutate(&mut bytes, &mut random);
        }
        bytes.truncate(MAX_LEN);
        bytes
    }

    fn mutate(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        let at = random.below(bytes.len() + 1);
        let end = at + random.below((bytes.len() - at).min(64) + 1);
        match random.below(9) {
            0 => bytes.iter_mut().skip(at).take(1).for_each(|it| *it ^= 1 << random.below(8)),
            1 => bytes.iter_mut().skip(at).take(1).for_each(|it| *it = random.number() as u8),
            2 => drop(bytes.drain(at..end)),
            3 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            4 => drop(bytes.splice(at..at, (0..=random.below(8)).map(|_| random.number() as u8).collect::<Vec<u8>>())),
            5 => bytes.truncate(at),
            6 => {
                let number = random.pick(NUMBERS).to_le_bytes();
                let width = random.pick(&[1, 2, 4, 8]);
                bytes.iter_mut().skip(at).zip(&number[..width]).for_each(|(it, byte)| *it = *byte);
            }
            7 => digits(bytes, at, random),
            _ => {
                let other = random.pick(&self.seeds);
                let from = random.below(other.len() + 1);
                let to = from + random.below((other.len() - from).min(256) + 1);
                drop(bytes.splice(at..end, other[from..to].to_vec()));
            }
        }
    }
}

/// Writes another number for the first digits from here on.
fn digits(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|it| at + it) else { return };
    let n_digits = bytes[start..].iter().take_while(|it| it.is_ascii_digit()).count();
    let sign = if random.below(4) == 0 { "-" } else { "" };
    let number = format!("{sign}{}", random.pick(NUMBERS));
    drop(bytes.splice(start..start + n_digits, number.into_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_a_seed_or_made_of_seeds_and_the_same_every_time() {
        let seeds = || vec![b"size 12".to_vec(), b"other".to_vec()];
        let target = Target { name: "test", check: |_| {}, seeds, n_mutations: 500 };
        let (cases, again) = (Cases::of(&target), Cases::of(&target));
        assert_eq!(cases.len, 502);
        assert_eq!([cases.input(0), cases.input(1)], [b"size 12".to_vec(), b"other".to_vec()]);
        let inputs: Vec<_> = (0..cases.len).map(|it| cases.input(it)).collect();
        assert_eq!(inputs, (0..cases.len).map(|it| again.input(it)).collect::<Vec<_>>());
        let different: std::collections::HashSet<_> = inputs.iter().collect();
        assert!(different.len() > 300, "{} of {}", different.len(), cases.len);
        let made = b"size 1099511627776";
        assert!(inputs.iter().any(|it| it == made), "no number became another one");
    }
}
