//! Elements as they are in memory and on the device, where each is a word or two.

use half::{bf16, f16};
use tracefx_core::DType;

/// The bytes of the device for elements of a dtype.
pub fn widened(bytes: &[u8], dtype: DType, to: &mut [u8]) {
    match dtype.size() {
        1 if dtype == DType::Int8 => words(to, bytes, 1, |it| i32::from(it[0] as i8) as u32),
        1 => words(to, bytes, 1, |it| u32::from(it[0])),
        2 => {
            let bits = |it: &[u8]| u16::from_le_bytes([it[0], it[1]]);
            match dtype {
                DType::Float16 => words(to, bytes, 2, |it| f16::from_bits(bits(it)).to_f32().to_bits()),
                DType::BFloat16 => words(to, bytes, 2, |it| bf16::from_bits(bits(it)).to_f32().to_bits()),
                DType::Int16 => words(to, bytes, 2, |it| i32::from(bits(it) as i16) as u32),
                _ => words(to, bytes, 2, |it| u32::from(bits(it))),
            }
        }
        _ => to.copy_from_slice(bytes),
    }
}

fn words(to: &mut [u8], from: &[u8], size: usize, word: impl Fn(&[u8]) -> u32) {
    for (to, from) in to.chunks_exact_mut(4).zip(from.chunks_exact(size)) {
        to.copy_from_slice(&word(from).to_le_bytes());
    }
}

/// The elements of a dtype that the device holds as these bytes.
pub fn narrowed(bytes: &[u8], dtype: DType, to: &mut [u8]) {
    let word = |it: &[u8]| u32::from_le_bytes([it[0], it[1], it[2], it[3]]);
    match dtype.size() {
        1 => to.iter_mut().zip(bytes.chunks_exact(4)).for_each(|(to, it)| *to = word(it) as u8),
        2 => {
            for (to, it) in to.chunks_exact_mut(2).zip(bytes.chunks_exact(4)) {
                let bits = match dtype {
                    DType::Float16 => f16::from_f32(f32::from_bits(word(it))).to_bits(),
                    DType::BFloat16 => bf16::from_f32(f32::from_bits(word(it))).to_bits(),
                    _ => word(it) as u16,
                };
                to.copy_from_slice(&bits.to_le_bytes());
            }
        }
        _ => to.copy_from_slice(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_back_as_they_were() {
        let bytes: Vec<u8> = (0..=255).collect();
        for &dtype in DType::ALL {
            let Some(words) = crate::words(dtype) else { continue };
            // What is not a number has more than one pattern of bits, which conversions may change.
            let bytes: Vec<u8> = match dtype {
                DType::Float16 | DType::BFloat16 => [0x3c00u16, 0x0001, 0x8001, 0xfbff, 0x7c00, 0x7f7f]
                    .iter()
                    .filter(|it| dtype == DType::BFloat16 || **it <= 0x7c00 || **it >= 0x8000)
                    .flat_map(|it| it.to_le_bytes())
                    .collect(),
                _ => bytes.clone(),
            };
            let n = bytes.len() / dtype.size();
            let (mut wide, mut back) = (vec![0; n * words * 4], vec![0; bytes.len()]);
            widened(&bytes, dtype, &mut wide);
            narrowed(&wide, dtype, &mut back);
            assert_eq!(back, bytes, "{}", dtype.name());
        }
    }
}
