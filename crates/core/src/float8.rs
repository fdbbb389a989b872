//! Floats of eight bits: stored and converted, never computed with. The conversions are PyTorch's
//! (`c10/util/Float8_*.h`), which round to the nearest, ties to even.

use crate::DType;

/// How a dtype of sign, exponent and mantissa lies in eight bits.
struct Layout {
    mantissa_bits: u32,
    bias: i32,
    /// What becomes of what is too large, and of infinities.
    overflow: Overflow,
}

enum Overflow {
    /// The largest number, as in `e4m3fn`, which has no infinities; all bits set are not a number.
    Largest,
    /// Infinity, as in `e5m2`.
    Infinity,
    /// The only code that is not a number, which would be minus zero: there are neither infinities nor a minus zero.
    Unsigned,
}

fn layout(dtype: DType) -> Option<Layout> {
    Some(match dtype {
        DType::Float8E4M3FN => Layout { mantissa_bits: 3, bias: 7, overflow: Overflow::Largest },
        DType::Float8E5M2 => Layout { mantissa_bits: 2, bias: 15, overflow: Overflow::Infinity },
        DType::Float8E4M3FNUZ => Layout { mantissa_bits: 3, bias: 8, overflow: Overflow::Unsigned },
        DType::Float8E5M2FNUZ => Layout { mantissa_bits: 2, bias: 16, overflow: Overflow::Unsigned },
        _ => return None,
    })
}

impl DType {
    /// Whether this is a float of eight bits.
    pub fn is_float8(self) -> bool {
        layout(self).is_some() || self == DType::Float8E8M0FNU
    }
}

/// The number that eight bits of this dtype stand for.
///
/// ```
/// use tracefx_core::{DType, float8_to_f32};
///
/// assert_eq!(float8_to_f32(DType::Float8E4M3FN, 0x7e), 448.0);
/// assert!(float8_to_f32(DType::Float8E4M3FN, 0x7f).is_nan());
/// ```
///
/// # Panics
/// Where the dtype is no float of eight bits.
pub fn float8_to_f32(dtype: DType, bits: u8) -> f32 {
    let Some(Layout { mantissa_bits, bias, overflow }) = layout(dtype) else {
        assert_eq!(dtype, DType::Float8E8M0FNU, "a float of eight bits is converted");
        // A power of two, without sign and mantissa.
        return match bits {
            0 => f32::from_bits(1 << 22),
            0xff => f32::NAN,
            exponent => f32::from_bits(u32::from(exponent) << 23),
        };
    };
    let magnitude = bits & 0x7f;
    let (exponent, mantissa) = (i32::from(magnitude >> mantissa_bits), magnitude & ((1 << mantissa_bits) - 1));
    let is_last = exponent == (0x7f >> mantissa_bits);
    match overflow {
        Overflow::Largest if magnitude == 0x7f => return f32::NAN,
        Overflow::Infinity if is_last && mantissa != 0 => return f32::NAN,
        Overflow::Infinity if is_last => return if bits > 0x7f { f32::NEG_INFINITY } else { f32::INFINITY },
        Overflow::Unsigned if bits == 0x80 => return f32::NAN,
        Overflow::Largest | Overflow::Infinity | Overflow::Unsigned => {}
    }
    let (one, power) = if exponent == 0 { (0, 1 - bias) } else { (1u32 << mantissa_bits, exponent - bias) };
    let value = (one + u32::from(mantissa)) as f32 * 2f32.powi(power - mantissa_bits as i32);
    if bits > 0x7f { -value } else { value }
}

/// The eight bits of this dtype that are nearest to a number.
///
/// ```
/// use tracefx_core::{DType, float8_from_f32};
///
/// assert_eq!(float8_from_f32(DType::Float8E5M2, 1e6), 0x7c);
/// assert_eq!(float8_from_f32(DType::Float8E4M3FN, 1e6), 0x7e);
/// ```
///
/// # Panics
/// Where the dtype is no float of eight bits.
pub fn float8_from_f32(dtype: DType, value: f32) -> u8 {
    let sign = (value.to_bits() >> 24) as u8 & 0x80;
    let bits = value.to_bits() & 0x7fff_ffff;
    let Some(Layout { mantissa_bits, bias, overflow }) = layout(dtype) else {
        assert_eq!(dtype, DType::Float8E8M0FNU, "a float of eight bits is converted");
        return power_of_two(bits);
    };
    // Half of what lies above the last mantissa bit is added, a little less where the last bit is even.
    let dropped = 23 - mantissa_bits;
    let smallest = ((127 - bias + 1) as u32) << 23;
    let code = if bits < smallest {
        // Below the smallest normal number, the sum with a power of two rounds.
        let shift = ((127 - bias + 1 + dropped as i32) as u32) << 23;
        (f32::from_bits(bits) + f32::from_bits(shift)).to_bits() - shift
    } else if bits > f32::INFINITY.to_bits() {
        0x80
    } else {
        let is_odd = (bits >> dropped) & 1;
        let rounded = u64::from(bits) + (1 << (dropped - 1)) - 1 + u64::from(is_odd);
        let code = (rounded >> dropped).saturating_sub((127 - bias as u64) << mantissa_bits);
        u32::try_from(code).unwrap_or(u32::MAX).min(0x80)
    };
    let is_nan = bits > f32::INFINITY.to_bits();
    match overflow {
        Overflow::Largest | Overflow::Infinity if is_nan => sign | 0x7f,
        Overflow::Largest => sign | code.min(0x7e) as u8,
        Overflow::Infinity => sign | code.min(0x7c) as u8,
        Overflow::Unsigned if code >= 0x80 => 0x80,
        Overflow::Unsigned if code == 0 => 0,
        Overflow::Unsigned => sign | code as u8,
    }
}

/// The exponent of the power of two that is nearest to a positive number.
fn power_of_two(bits: u32) -> u8 {
    let exponent = (bits >> 23) as u8;
    let (guard, rest) = (bits & 0x40_0000 != 0, bits & 0x3f_ffff != 0);
    if exponent == 0xff || !guard || !(rest || exponent > 0) { exponent } else { exponent + 1 }
}
