//! Random numbers: the Mersenne twister as PyTorch seeds, draws and saves it. Which operator draws how many is the kernels'.

use crate::{Code, Diagnostic, Result};
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};

const N: usize = 624;
const M: usize = 397;
/// How many bytes PyTorch writes for the state of a generator: the seed, two flags, the place in the state, the state as
/// 64-bit words, and what is left of the last pair of normally distributed numbers.
const N_STATE_BYTES: usize = 5056;

/// A source of random numbers: PyTorch's generator for the CPU, bit by bit. The same seed gives the same numbers in the
/// same order, and the state has the bytes of `torch.get_rng_state()`.
///
/// ```
/// use tracefx_core::Generator;
///
/// let mut generator = Generator::new(0);
/// assert_eq!((generator.random(), generator.random()), (2357136044, 2546248239));
/// ```
#[derive(Clone, Debug)]
pub struct Generator {
    seed: u64,
    state: [u32; N],
    next: usize,
    /// How many numbers may be taken before the state is made anew, plus one.
    left: usize,
    normal: Option<f64>,
}

thread_local! {
    static DEFAULT: RefCell<Generator> = RefCell::new(Generator::new(RandomState::new().hash_one(N)));
}

/// Gives `f` the generator that random operators of this thread draw from: `torch.default_generator`. Until it is seeded
/// its numbers differ from run to run.
///
/// ```
/// use tracefx_core::with_default_generator;
///
/// with_default_generator(|it| it.manual_seed(7));
/// assert_eq!(with_default_generator(|it| it.initial_seed()), 7);
/// ```
///
/// # Panics
/// When `f` asks for it once more.
pub fn with_default_generator<R>(f: impl FnOnce(&mut Generator) -> R) -> R {
    DEFAULT.with(|it| f(&mut it.borrow_mut()))
}

impl Generator {
    /// A generator with this seed. As in PyTorch, only its lower 32 bits make a difference.
    pub fn new(seed: u64) -> Self {
        let mut res = Generator { seed, state: [0; N], next: 0, left: 1, normal: None };
        res.state[0] = seed as u32;
        for i in 1..N {
            let last = res.state[i - 1];
            res.state[i] = 1812433253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        res
    }

    /// Starts again with this seed.
    pub fn manual_seed(&mut self, seed: u64) {
        *self = Generator::new(seed);
    }

    /// The seed that it started with.
    pub fn initial_seed(&self) -> u64 {
        self.seed
    }

    /// The next 32 bits: a step of the Mersenne Twister.
    pub fn random(&mut self) -> u32 {
        self.left -= 1;
        if self.left == 0 {
            self.renew();
        }
        self.next += 1;
        temper(self.state[self.next - 1])
    }

    /// Fills the slice with as many steps of [`Generator::random`], which is faster than to take them one by one.
    pub fn fill(&mut self, steps: &mut [u32]) {
        let mut rest = steps;
        while !rest.is_empty() {
            if self.left == 1 {
                self.renew();
                self.left = N + 1;
            }
            let n = rest.len().min(self.left - 1);
            let (taken, others) = rest.split_at_mut(n);
            taken.iter_mut().zip(&self.state[self.next..]).for_each(|(to, &it)| *to = temper(it));
            (self.left, self.next) = (self.left - n, self.next + n);
            rest = others;
        }
    }

    /// The next 64 bits, the upper ones first.
    pub fn random64(&mut self) -> u64 {
        let upper = self.random();
        u64::from(upper) << 32 | u64::from(self.random())
    }

    /// A float64 of the interval from 0 to 1, which is without 1.
    pub fn uniform(&mut self) -> f64 {
        (self.random64() & ((1 << 53) - 1)) as f64 / (1u64 << 53) as f64
    }

    /// A float32 of the interval from 0 to 1, which is without 1.
    pub fn uniform_f32(&mut self) -> f32 {
        (self.random() & ((1 << 24) - 1)) as f32 / (1u32 << 24) as f32
    }

    /// A number of the normal distribution with mean 0 and deviation 1, by the method of Box and Muller: numbers come in
    /// pairs, and the second one is kept for the next call.
    pub fn normal(&mut self) -> f64 {
        if let Some(kept) = self.normal.take() {
            return kept;
        }
        let (u1, u2) = (self.uniform(), self.uniform());
        let radius = (-2.0 * (-u2).ln_1p()).sqrt();
        let angle = 2.0 * std::f64::consts::PI * u1;
        self.normal = Some(radius * angle.sin());
        radius * angle.cos()
    }

    fn renew(&mut self) {
        let twist = |a: u32, b: u32| {
            let mixed = (a & 0x8000_0000) | (b & 0x7fff_ffff);
            (mixed >> 1) ^ ((b & 1).wrapping_neg() & 0x9908_b0df)
        };
        let state = &mut self.state;
        for i in 0..N - M {
            state[i] = state[i + M] ^ twist(state[i], state[i + 1]);
        }
        for i in N - M..N - 1 {
            state[i] = state[i + M - N] ^ twist(state[i], state[i + 1]);
        }
        state[N - 1] = state[M - 1] ^ twist(state[N - 1], state[0]);
        (self.left, self.next) = (N, 0);
    }

    /// The state, in the bytes of `torch.get_rng_state()`.
    pub fn state(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(N_STATE_BYTES);
        bytes.extend(self.seed.to_le_bytes());
        bytes.extend((self.left as u32).to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend((self.next as u64).to_le_bytes());
        bytes.extend(self.state.iter().flat_map(|&it| u64::from(it).to_le_bytes()));
        bytes.extend(0f64.to_le_bytes());
        bytes.extend(self.normal.unwrap_or(0.0).to_le_bytes());
        bytes.extend(0f64.to_le_bytes());
        bytes.extend(u32::from(self.normal.is_some()).to_le_bytes());
        bytes.resize(N_STATE_BYTES, 0);
        bytes
    }

    /// Goes on from a state that [`Generator::state`] or PyTorch gave.
    ///
    /// # Errors
    /// `InvalidArgument` where the bytes are no state of such a generator.
    pub fn set_state(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != N_STATE_BYTES {
            let what = format!("RNG state is wrong size: {} bytes instead of {N_STATE_BYTES}", bytes.len());
            return Err(Diagnostic::new(Code::InvalidArgument, what));
        }
        let word = |at: usize| {
            let mut it = [0; 8];
            it.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(it)
        };
        let (left, next) = ((word(8) as u32) as usize, word(16) as usize);
        let is_seeded = (word(8) >> 32) != 0;
        if !is_seeded || !(1..=N).contains(&left) || next > N || (left > 1 && next + left > N + 1) {
            return Err(Diagnostic::new(Code::InvalidArgument, "Invalid mt19937 state"));
        }
        let normals = 24 + 8 * N;
        let mut state = [0; N];
        state.iter_mut().enumerate().for_each(|(i, it)| *it = word(24 + 8 * i) as u32);
        let normal = (word(normals + 24) as u32 != 0).then(|| f64::from_bits(word(normals + 8)));
        *self = Generator { seed: word(0), state, next, left, normal };
        Ok(())
    }
}

/// What makes a number of a word of the state.
#[inline]
fn temper(word: u32) -> u32 {
    let mut it = word;
    it ^= it >> 11;
    it ^= (it << 7) & 0x9d2c_5680;
    it ^= (it << 15) & 0xefc6_0000;
    it ^ (it >> 18)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are those that NumPy's `RandomState(42)` draws, which is seeded in the same way.
    #[test]
    fn numbers_are_those_of_pytorch() {
        let mut generator = Generator::new(42);
        assert_eq!([(); 3].map(|()| generator.random()), [1608637542, 3421126067, 4083286876]);
        let skipped = (0..2000).map(|_| generator.random()).fold(0, |sum: u32, it| sum.wrapping_add(it));
        let mut other = Generator::new(42 + (7 << 32));
        assert_eq!([(); 3].map(|()| other.random()), [1608637542, 3421126067, 4083286876]);
        assert_eq!((0..2000).map(|_| other.random()).fold(0, |sum: u32, it| sum.wrapping_add(it)), skipped);
    }

    #[test]
    fn many_steps_are_as_many_single_ones() {
        let (mut one_by_one, mut at_once) = (Generator::new(1), Generator::new(1));
        for n in [0, 1, 5, 617, 1, 624, 1300, 0, 2] {
            let mut steps = vec![0; n];
            at_once.fill(&mut steps);
            assert_eq!(steps, (0..n).map(|_| one_by_one.random()).collect::<Vec<_>>());
            assert_eq!(at_once.state(), one_by_one.state());
        }
    }

    #[test]
    fn a_state_goes_on_where_it_was_taken() {
        let mut generator = Generator::new(3);
        let _ = (0..700).map(|_| generator.random()).count();
        let _ = generator.normal();
        let state = generator.state();
        assert_eq!(state.len(), N_STATE_BYTES);
        let mut other = Generator::new(9);
        other.set_state(&state).unwrap();
        assert_eq!((other.initial_seed(), other.state()), (3, state));
        let next = |it: &mut Generator| (it.normal(), it.normal(), it.random64());
        assert_eq!(next(&mut other), next(&mut generator));
    }

    #[test]
    fn bytes_that_are_no_state_are_refused() {
        let mut generator = Generator::new(3);
        assert!(generator.set_state(&[0; 12]).is_err());
        assert!(generator.set_state(&[0; N_STATE_BYTES]).is_err());
        let mut far = generator.state();
        far[16..24].copy_from_slice(&600u64.to_le_bytes());
        far[8..12].copy_from_slice(&500u32.to_le_bytes());
        assert!(generator.set_state(&far).is_err(), "it would read behind the state");
        assert_eq!(generator.initial_seed(), 3);
    }

    #[test]
    fn the_default_generator_starts_anew_when_it_is_seeded() {
        let first = with_default_generator(|it| {
            it.manual_seed(5);
            it.random()
        });
        with_default_generator(|it| it.manual_seed(5));
        assert_eq!(with_default_generator(|it| (it.random(), it.initial_seed())), (first, 5));
    }
}
