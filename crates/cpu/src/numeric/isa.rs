//! Instruction sets. A kernel is plain code over slices and small arrays, written once as a [`Work`]; [`run`] holds a copy
//! of it that is compiled for each instruction set, and calls the best one that the machine has. [`Portable`] is what the
//! target always has (on WebAssembly simd128, on ARM NEON) and the oracle of the other ones.
//!
//! Debug builds have nothing else, because each copy takes its time to compile; the tests of this crate compare them all.

use std::sync::OnceLock;

/// An instruction set that code is compiled for.
pub(crate) trait Isa {
    /// The bytes of a vector register.
    const WIDTH: usize;
    /// The number of vector registers.
    const REGISTERS: usize;
    /// Whether `mul_add` is one instruction; elsewhere it is a slow call of a function.
    const FUSES: bool;
}

/// What every machine of the target has.
pub(crate) struct Portable;

impl Isa for Portable {
    const WIDTH: usize = 16;
    const REGISTERS: usize = if cfg!(target_arch = "aarch64") { 32 } else { 16 };
    const FUSES: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));
}

/// Code that is compiled for each instruction set.
///
/// `run` and all that it calls must be `#[inline(always)]`: what is not inlined is compiled for [`Portable`] alone.
pub(crate) trait Work {
    /// What it gives back.
    type Output;

    /// Does the work with the instructions of `I`.
    fn run<I: Isa>(self) -> Self::Output;
}

/// Sums of products of small integers. They come in words of 32 bits: two integers of 16 bits, or four of eight.
pub(crate) trait Dots: Isa {
    /// A vector of sums, or of as many words.
    type Words: Copy;
    /// How many they are.
    const LANES: usize = Self::WIDTH / 4;
    /// Whether a word is four bytes, of which those of the single word are unsigned and the others signed.
    const BYTES: bool;

    /// Sums of nothing.
    fn zeros() -> Self::Words;

    /// Sums with the products of a word and the words of a vector, each integer with that in its place. A sum wraps.
    fn dot(sums: Self::Words, word: u32, words: Self::Words) -> Self::Words;

    /// The first words as a vector.
    ///
    /// # Panics
    /// When there are fewer.
    fn load(words: &[u32]) -> Self::Words;

    /// Writes the sums to the first places.
    ///
    /// # Panics
    /// When there are fewer.
    fn store(sums: Self::Words, to: &mut [i32]);
}

/// [`Work`] that computes [`Dots`].
pub(crate) trait DotWork {
    /// What it gives back.
    type Output;

    /// Does the work with the instructions of `I`.
    fn run<I: Dots>(self) -> Self::Output;
}

impl Dots for Portable {
    type Words = [u32; 4];
    const BYTES: bool = false;

    #[inline(always)]
    fn zeros() -> [u32; 4] {
        [0; 4]
    }

    #[cfg(not(target_family = "wasm"))]
    #[inline(always)]
    fn dot(sums: [u32; 4], word: u32, words: [u32; 4]) -> [u32; 4] {
        let halves = |it: u32| [i32::from(it as i16), it as i32 >> 16];
        let [low, high] = halves(word);
        let mut res = sums;
        for at in 0..4 {
            let [a, b] = halves(words[at]);
            res[at] = res[at].wrapping_add((low * a + high * b) as u32);
        }
        res
    }

    #[cfg(target_family = "wasm")]
    #[inline(always)]
    fn dot(sums: [u32; 4], word: u32, words: [u32; 4]) -> [u32; 4] {
        use core::arch::wasm32::{i32x4_add, i32x4_dot_i16x8, u32x4, u32x4_extract_lane, u32x4_splat};
        let vector = |[a, b, c, d]: [u32; 4]| u32x4(a, b, c, d);
        let res = i32x4_add(vector(sums), i32x4_dot_i16x8(u32x4_splat(word), vector(words)));
        [
            u32x4_extract_lane::<0>(res),
            u32x4_extract_lane::<1>(res),
            u32x4_extract_lane::<2>(res),
            u32x4_extract_lane::<3>(res),
        ]
    }

    #[inline(always)]
    fn load(words: &[u32]) -> [u32; 4] {
        *words.first_chunk().expect("a vector of words")
    }

    #[inline(always)]
    fn store(sums: [u32; 4], to: &mut [i32]) {
        *to.first_chunk_mut().expect("places for a vector") = sums.map(|it| it as i32);
    }
}

/// An instruction set that the machine has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Level(Set);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Set {
    Portable,
    /// With relaxed SIMD.
    #[cfg(target_family = "wasm")]
    Relaxed,
    #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
    Avx2,
    /// With products of bytes (AVX-VNNI), as processors without AVX-512 have them.
    #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
    Avx2Vnni,
    #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
    Avx512,
    /// With products of bytes (VNNI).
    #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
    Avx512Vnni,
}

#[cfg(test)]
thread_local! {
    /// The level of a thread that has not the best one.
    static FORCED: std::cell::Cell<Option<Level>> = const { std::cell::Cell::new(None) };
}

impl Level {
    /// The best one.
    #[inline]
    pub(crate) fn best() -> Self {
        #[cfg(test)]
        if let Some(level) = FORCED.get() {
            return level;
        }
        // Kernels ask for every block.
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(Self::detect)
    }

    /// The best one for what may be rounded otherwise on each machine: the steps that a plan has with fast precision alone.
    pub(crate) fn of_fast_steps() -> Self {
        #[cfg(target_family = "wasm")]
        if RELAXED.get().is_some() {
            return Level(Set::Relaxed);
        }
        Self::best()
    }

    /// What multiplies with relaxed SIMD, where these instructions are among them.
    #[cfg(target_family = "wasm")]
    pub(crate) fn relaxed(self) -> Option<AddProducts> {
        (self.0 == Set::Relaxed).then(|| *RELAXED.get().expect("a level is only made of what the machine has"))
    }

    fn detect() -> Self {
        #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
        {
            if x86::has_avx512_vnni() {
                return Level(Set::Avx512Vnni);
            }
            if x86::has_avx512() {
                return Level(Set::Avx512);
            }
            if x86::has_avx2_vnni() {
                return Level(Set::Avx2Vnni);
            }
            if x86::has_avx2() {
                return Level(Set::Avx2);
            }
        }
        Level(Set::Portable)
    }

    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            Set::Portable if cfg!(target_family = "wasm") => "simd128",
            #[cfg(target_family = "wasm")]
            Set::Relaxed => "simd128, relaxed",
            Set::Portable if cfg!(target_arch = "aarch64") => "NEON",
            Set::Portable if cfg!(target_arch = "x86_64") => "SSE2",
            Set::Portable => "none",
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx2 => "AVX2",
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx2Vnni => "AVX2 with VNNI",
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx512 => "AVX-512",
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx512Vnni => "AVX-512 with VNNI",
        }
    }

    /// This one, or the best one whose [`Dots`] are not of bytes.
    pub(crate) fn without_bytes(self) -> Self {
        match self.0 {
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx512Vnni => Level(Set::Avx512),
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx2Vnni => Level(Set::Avx2),
            other => Level(other),
        }
    }

    /// All of them, [`Portable`] first.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        let mut res = vec![Level(Set::Portable)];
        #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
        {
            res.extend(x86::has_avx2().then_some(Level(Set::Avx2)));
            res.extend(x86::has_avx2_vnni().then_some(Level(Set::Avx2Vnni)));
            res.extend(x86::has_avx512().then_some(Level(Set::Avx512)));
            res.extend(x86::has_avx512_vnni().then_some(Level(Set::Avx512Vnni)));
        }
        res
    }

    /// What `body` gives on each level, [`Portable`] first: on one thread, to which this level is the best one.
    #[cfg(test)]
    pub(crate) fn on_each<R: Send>(body: impl Fn() -> R + Sync) -> Vec<(Self, R)> {
        let run = |level| {
            let run = || {
                FORCED.set(Some(level));
                crate::with_num_threads(1, &body)
            };
            let res = std::thread::scope(|scope| scope.spawn(run).join());
            (level, res.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        };
        Self::all().into_iter().map(run).collect()
    }

    /// Does the work with these instructions.
    #[inline]
    pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
        match self.0 {
            Set::Portable => work.run::<Portable>(),
            #[cfg(target_family = "wasm")]
            Set::Relaxed => work.run::<Portable>(),
            // SAFETY: a level is only made of what the machine has.
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx2 | Set::Avx2Vnni => unsafe { x86::avx2(work) },
            // SAFETY: as above.
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx512 | Set::Avx512Vnni => unsafe { x86::avx512(work) },
        }
    }

    /// Does the work with these instructions.
    #[inline]
    pub(crate) fn run_dots<W: DotWork>(self, work: W) -> W::Output {
        match self.0 {
            Set::Portable => work.run::<Portable>(),
            #[cfg(target_family = "wasm")]
            Set::Relaxed => work.run::<Portable>(),
            // SAFETY: a level is only made of what the machine has.
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx2 => unsafe { x86::avx2_dots(work) },
            // SAFETY: as above.
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx2Vnni => unsafe { x86::avx2_vnni_dots(work) },
            // SAFETY: as above.
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx512 => unsafe { x86::avx512_dots(work) },
            // SAFETY: as above.
            #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
            Set::Avx512Vnni => unsafe { x86::avx512_vnni_dots(work) },
        }
    }
}

/// Asks for these bytes to be brought into the first-level cache.
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    prefetch_lines::<{ std::arch::x86_64::_MM_HINT_T0 }>(bytes);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// Asks for these bytes to be brought into the second-level cache.
#[inline(always)]
pub(crate) fn prefetch_to_second_level(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    prefetch_lines::<{ std::arch::x86_64::_MM_HINT_T1 }>(bytes);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch_lines<const HINT: i32>(bytes: &[u8]) {
    for line in bytes.chunks(64) {
        // SAFETY: every x86-64 processor has the instruction, which reads nothing that the program sees.
        unsafe { std::arch::x86_64::_mm_prefetch::<HINT>(line.as_ptr().cast()) };
    }
}

/// Widens float16, given as bits, by the processor's own instruction where it has one; gives how many elements it did, from the first
/// on. What is not a number is quiet then.
#[inline]
pub(crate) fn widen_halves(from: &[u16], to: &mut [f32]) -> usize {
    #[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
    if Level::best().0 != Set::Portable {
        // SAFETY: a level is only made of what the machine has, and each but the portable one has float16.
        return unsafe { x86::widen_halves(from, to) };
    }
    let _ = (from, to);
    0
}

/// Adds the products of rows of the left side, which are all as long, with a panel of the right side to sums: `sums[i * width + j]` that of
/// `rows[i][p] * panel[p * 8 + j]` over all `p`, where `width` is 4 or 8, and the rows are one or four.
#[cfg(target_family = "wasm")]
pub type AddProducts = fn(rows: &[&[f32]], panel: &[f32], sums: &mut [f32]);

/// What multiplies with relaxed SIMD, where the host has it.
#[cfg(target_family = "wasm")]
static RELAXED: OnceLock<AddProducts> = OnceLock::new();

/// Says that the host has relaxed SIMD, and what multiplies with it. Steps with fast precision take it from now on; what is prepared
/// already stays as it is. It is no instruction set of this crate: LLVM takes relaxed instructions for other ones in all that it compiles together with a
/// function that may have them.
#[cfg(target_family = "wasm")]
pub fn use_relaxed_simd(multiply: AddProducts) {
    // The other one is as good.
    let _ = RELAXED.set(multiply);
}

/// Does the work with the best instructions that the machine has.
#[inline]
pub(crate) fn run<W: Work>(work: W) -> W::Output {
    Level::best().run(work)
}

#[cfg(all(target_arch = "x86_64", any(test, not(debug_assertions))))]
mod x86 {
    use super::{DotWork, Dots, Isa, Work};
    use std::arch::x86_64::*;
    use std::mem::transmute;

    struct Avx2;

    impl Isa for Avx2 {
        const WIDTH: usize = 32;
        const REGISTERS: usize = 16;
        const FUSES: bool = true;
    }

    struct Avx512;

    impl Isa for Avx512 {
        const WIDTH: usize = 64;
        const REGISTERS: usize = 32;
        const FUSES: bool = true;
    }

    struct Avx2Vnni;

    impl Isa for Avx2Vnni {
        const WIDTH: usize = Avx2::WIDTH;
        const REGISTERS: usize = Avx2::REGISTERS;
        const FUSES: bool = Avx2::FUSES;
    }

    struct Avx512Vnni;

    impl Isa for Avx512Vnni {
        const WIDTH: usize = Avx512::WIDTH;
        const REGISTERS: usize = Avx512::REGISTERS;
        const FUSES: bool = Avx512::FUSES;
    }

    /// The products of an instruction set whose vectors are `$words`; `$dot` adds those of a word.
    macro_rules! dots {
        ($isa:ident, $words:ty, $lanes:literal, $bytes:literal, |$sums:ident, $word:ident, $with:ident| $dot:expr) => {
            impl Dots for $isa {
                type Words = $words;
                const BYTES: bool = $bytes;

                #[inline(always)]
                fn zeros() -> $words {
                    // SAFETY: a vector is what its elements are, whose bits may be any.
                    unsafe { transmute([0u32; $lanes]) }
                }

                #[inline(always)]
                fn dot($sums: $words, $word: u32, $with: $words) -> $words {
                    // SAFETY: only a level of this instruction set runs its work, and is only made where the machine has it.
                    unsafe { $dot }
                }

                #[inline(always)]
                fn load(words: &[u32]) -> $words {
                    let words: [u32; $lanes] = *words.first_chunk().expect("a vector of words");
                    // SAFETY: as above.
                    unsafe { transmute(words) }
                }

                #[inline(always)]
                fn store(sums: $words, to: &mut [i32]) {
                    let to: &mut [i32; $lanes] = to.first_chunk_mut().expect("places for a vector");
                    // SAFETY: as above.
                    *to = unsafe { transmute::<$words, [i32; $lanes]>(sums) };
                }
            }
        };
    }
    dots!(Avx2, __m256i, 8, false, |sums, word, words| _mm256_add_epi32(
        sums,
        _mm256_madd_epi16(_mm256_set1_epi32(word as i32), words)
    ));
    dots!(Avx2Vnni, __m256i, 8, true, |sums, word, words| _mm256_dpbusd_avx_epi32(
        sums,
        _mm256_set1_epi32(word as i32),
        words
    ));
    dots!(Avx512, __m512i, 16, false, |sums, word, words| _mm512_add_epi32(
        sums,
        _mm512_madd_epi16(_mm512_set1_epi32(word as i32), words)
    ));
    dots!(Avx512Vnni, __m512i, 16, true, |sums, word, words| _mm512_dpbusd_epi32(
        sums,
        _mm512_set1_epi32(word as i32),
        words
    ));

    pub(super) fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
    }

    pub(super) fn has_avx512() -> bool {
        has_avx2()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
    }

    pub(super) fn has_avx2_vnni() -> bool {
        has_avx2() && is_x86_feature_detected!("avxvnni")
    }

    pub(super) fn has_avx512_vnni() -> bool {
        has_avx512() && is_x86_feature_detected!("avx512vnni")
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2<W: Work>(work: W) -> W::Output {
        work.run::<Avx2>()
    }

    #[target_feature(enable = "f16c")]
    pub(super) fn widen_halves(from: &[u16], to: &mut [f32]) -> usize {
        let (from, to) = (from.as_chunks::<8>().0, to.as_chunks_mut::<8>().0);
        for (from, to) in from.iter().zip(&mut *to) {
            *to = bytemuck::cast(std::arch::x86_64::_mm256_cvtph_ps(bytemuck::cast(*from)));
        }
        8 * from.len().min(to.len())
    }

    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn avx512<W: Work>(work: W) -> W::Output {
        work.run::<Avx512>()
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2_dots<W: DotWork>(work: W) -> W::Output {
        work.run::<Avx2>()
    }

    #[target_feature(enable = "avx2,fma,avxvnni")]
    pub(super) fn avx2_vnni_dots<W: DotWork>(work: W) -> W::Output {
        work.run::<Avx2Vnni>()
    }

    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn avx512_dots<W: DotWork>(work: W) -> W::Output {
        work.run::<Avx512>()
    }

    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    pub(super) fn avx512_vnni_dots<W: DotWork>(work: W) -> W::Output {
        work.run::<Avx512Vnni>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sum<'a>(&'a [i32]);

    impl Work for Sum<'_> {
        type Output = (i32, usize);

        #[inline(always)]
        fn run<I: Isa>(self) -> (i32, usize) {
            (self.0.iter().fold(0, |sum, &it| sum.wrapping_add(it)), I::WIDTH)
        }
    }

    #[test]
    fn every_instruction_set_does_the_same_work() {
        let numbers: Vec<i32> = (0..1003i32).map(|it| it.wrapping_mul(7_654_321)).collect();
        let (want, mut least) = Sum(&numbers).run::<Portable>();
        for level in Level::all() {
            let (got, width) = level.run(Sum(&numbers));
            assert!(got == want && width >= least, "{level:?}");
            least = width;
        }
        assert_eq!(run(Sum(&numbers)), (want, least));
    }

    #[test]
    fn every_half_is_widened_to_itself() {
        let halves: Vec<u16> = (0..=u16::MAX).collect();
        let widened = Level::on_each(|| {
            let mut wide = vec![0.0; halves.len()];
            let n = widen_halves(&halves, &mut wide);
            wide.truncate(n);
            // As many as there are places for.
            assert_eq!(widen_halves(&halves, &mut [0.0; 21]), n.min(16));
            wide
        });
        for (level, wide) in widened {
            assert!(wide.len() == if level == Level(Set::Portable) { 0 } else { halves.len() }, "{level:?}");
            for (&half, it) in halves.iter().zip(wide) {
                let want = tracefx_core::f16::from_bits(half).to_f32();
                assert!(it.to_bits() == want.to_bits() || it.is_nan() && want.is_nan(), "{level:?}: {half:#x}");
            }
        }
    }
}
