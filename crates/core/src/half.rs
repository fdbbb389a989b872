//! Conversions of half-precision floats without branches, so that loops over them become vector code.

/// A float16 as the float32 that it is.
#[inline]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let size = u32::from(bits & 0x7fff);
    // The exponents differ by 112. A product moves the subnormal numbers as well.
    let moved = f32::from_bits(size << 13) * f32::from_bits((127 + 112) << 23);
    let no_number = if size >= 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(moved.to_bits() | no_number | u32::from(bits & 0x8000) << 16)
}

/// The nearest float16, of two equally near ones the even one.
#[inline]
pub(crate) fn f32_to_f16(it: f32) -> u16 {
    let sign = it.to_bits() & 0x8000_0000;
    let size = it.to_bits() ^ sign;
    // Adding a number whose last digit is the last one of a subnormal float16 rounds there.
    const MAGIC: u32 = (127 - 15 + 23 - 10 + 1) << 23;
    let small = (f32::from_bits(size) + f32::from_bits(MAGIC)).to_bits().wrapping_sub(MAGIC);
    let normal = size.wrapping_sub(112 << 23).wrapping_add(0xfff + (size >> 13 & 1)) >> 13;
    let no_number = if size > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let bits = if size < 113 << 23 { small } else { normal };
    let bits = if size >= 143 << 23 { no_number } else { bits };
    (bits | sign >> 16) as u16
}

/// The nearest bfloat16, of two equally near ones the even one.
#[inline]
pub(crate) fn f32_to_bf16(it: f32) -> u16 {
    let bits = it.to_bits();
    let nearest = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    (if it.is_nan() { bits >> 16 | 0x40 } else { nearest }) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};
    use proptest::prelude::*;

    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    #[test]
    fn every_half_is_itself() {
        for bits in 0..=u16::MAX {
            assert!(same(f16_to_f32(bits), f16::from_bits(bits).to_f32()), "{bits:#x}");
            for neighbour in -1..=1 {
                // Just above and below each half, and each tie, are where rounding may go wrong.
                for wide in [f16_to_f32(bits), f32::from_bits(u32::from(bits) << 16)] {
                    for tie in [0, 0x1000, 0x8000] {
                        check(f32::from_bits((wide.to_bits() ^ tie).wrapping_add_signed(neighbour)));
                    }
                }
            }
        }
    }

    #[track_caller]
    fn check(it: f32) {
        let (to_f16, to_bf16) = (f16::from_bits(f32_to_f16(it)), bf16::from_bits(f32_to_bf16(it)));
        assert!(same(to_f16.to_f32(), f16::from_f32_const(it).to_f32()), "{it:e} is not {to_f16:e}");
        assert!(same(to_bf16.to_f32(), bf16::from_f32(it).to_f32()), "{it:e} is not {to_bf16:e}");
    }

    proptest! {
        #[test]
        fn floats_round_to_the_nearest_half(bits: u32) {
            check(f32::from_bits(bits));
        }
    }
}
