//! MD5 (RFC 1321), by which PyTorch chooses the colour of a function. It keeps nothing secret.

const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The digest of a text.
pub(super) fn md5(text: &str) -> [u8; 16] {
    // The message, a one bit, zeros, and the length in bits, to a multiple of 64 bytes.
    let mut message = text.as_bytes().to_vec();
    message.push(0x80);
    message.resize((text.len() + 9).next_multiple_of(64), 0);
    let bits = (text.len() as u64).wrapping_mul(8);
    let end = message.len() - 8;
    message[end..].copy_from_slice(&bits.to_le_bytes());
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in message.chunks_exact(64) {
        add_block(&mut state, block);
    }
    let mut res = [0; 16];
    for (bytes, word) in res.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    res
}

fn add_block(state: &mut [u32; 4], block: &[u8]) {
    let mut words = [0_u32; 16];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().rev().fold(0, |all, &it| all << 8 | u32::from(it));
    }
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64 {
        let (mixed, word) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
            2 => (b ^ c ^ d, (3 * step + 5) % 16),
            _ => (c ^ (b | !d), (7 * step) % 16),
        };
        let sine = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
        let sum = a.wrapping_add(mixed).wrapping_add(sine).wrapping_add(words[word]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4])));
    }
    for (word, more) in state.iter_mut().zip([a, b, c, d]) {
        *word = word.wrapping_add(more);
    }
}

#[cfg(test)]
mod tests {
    use super::md5;

    #[test]
    fn digests_are_those_of_the_standard() {
        let hex = |text: &str| md5(text).iter().map(|it| format!("{it:02x}")).collect::<String>();
        assert_eq!(hex(""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
        let digits = "1234567890".repeat(8);
        assert_eq!(hex(&digits), "57edf4a22be3c955ac49da2e2107b67a");
        assert_eq!(hex(&"a".repeat(56)), "3b0c8ac703f828b04c6c197006d17218");
        assert_eq!(hex(&"a".repeat(63)), "b06521f39153d618550606be297466d5");
        assert_eq!(hex(&"a".repeat(64)), "014842d480b571495a4a0363793f7367");
    }
}
