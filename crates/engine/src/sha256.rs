//! SHA-256 (FIPS 180-4) of bytes that come piece by piece, which the Web's cryptography does not offer.

/// The first 32 bits of the fractions of the square roots of the first 8 primes.
const INITIAL: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// The first 32 bits of the fractions of the cube roots of the first 64 primes.
#[rustfmt::skip]
const ROUND: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

pub(crate) struct Sha256 {
    state: [u32; 8],
    /// Bytes that do not fill a block yet.
    begun: Vec<u8>,
    len: u64,
}

impl Sha256 {
    pub(crate) fn new() -> Self {
        Sha256 { state: INITIAL, begun: Vec::with_capacity(64), len: 0 }
    }

    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        self.len += bytes.len() as u64;
        if !self.begun.is_empty() {
            let (mine, rest) = bytes.split_at(bytes.len().min(64 - self.begun.len()));
            self.begun.extend(mine);
            bytes = rest;
            let Some((block, _)) = self.begun.split_first_chunk::<64>() else { return };
            compress(&mut self.state, block);
            self.begun.clear();
        }
        let (blocks, rest) = bytes.as_chunks::<64>();
        blocks.iter().for_each(|it| compress(&mut self.state, it));
        self.begun.extend(rest);
    }

    pub(crate) fn finish(mut self) -> [u8; 32] {
        let bits = self.len * 8;
        let n_zeros = (64 + 55 - self.begun.len()) % 64;
        let padding = [&[0x80][..], &[0; 63][..n_zeros], &bits.to_be_bytes()].concat();
        self.update(&padding);
        let mut res = [0; 32];
        for (bytes, word) in res.as_chunks_mut::<4>().0.iter_mut().zip(self.state) {
            *bytes = word.to_be_bytes();
        }
        res
    }
}

fn compress(state: &mut [u32; 8], block: &[u8; 64]) {
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..64 {
        let (w15, w2) = (words[at - 15], words[at - 2]);
        let s0 = w15.rotate_right(7) ^ w15.rotate_right(18) ^ (w15 >> 3);
        let s1 = w2.rotate_right(17) ^ w2.rotate_right(19) ^ (w2 >> 10);
        words[at] = words[at - 16].wrapping_add(s0).wrapping_add(words[at - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, round) in words.iter().zip(ROUND) {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = (e & f) ^ (!e & g);
        let t1 = h.wrapping_add(s1).wrapping_add(chosen).wrapping_add(round).wrapping_add(*word);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
        (d, c, b, a) = (c, b, a, t1.wrapping_add(s0.wrapping_add(majority)));
    }
    for (word, more) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(pieces: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
        let mut sha = Sha256::new();
        pieces.into_iter().for_each(|it| sha.update(it.as_ref()));
        sha.finish().iter().map(|it| format!("{it:02x}")).collect()
    }

    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(hash([""]), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(hash(["abc"]), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let long = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hash([long]), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        let million = vec![b'a'; 1_000_000];
        assert_eq!(hash([million]), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }

    #[test]
    fn it_does_not_matter_how_bytes_are_cut() {
        for len in 0..200usize {
            let bytes: Vec<u8> = (0..len).map(|it| it as u8).collect();
            for size in [1, 7, 63, 64, 65] {
                assert_eq!(hash(bytes.chunks(size)), hash([&bytes]), "{len} bytes in pieces of {size}");
            }
        }
    }
}
