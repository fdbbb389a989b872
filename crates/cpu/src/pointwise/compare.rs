//! Comparisons, logic and bits of two numbers. A comparison computes in the dtype that both sides promote to.

use crate::numeric::dispatch::{with_float, with_int, with_number, with_real};
use crate::numeric::field::{self, Complex};
use crate::numeric::map::{Source, map2};
use crate::numeric::number::Number;
use tracefx_core::{Bool8, Result, Tensor};
use tracefx_exec::{Kernel, Target};
use tracefx_ops::{Args, promote};

/// A comparison in the dtype that the two sides promote to.
macro_rules! compare {
    ($with:ident, $f:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = promote(&[args.operand(0)?, args.operand(1)?]);
            let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
            $with!(dtype, &args.op.name, F => map2::<F, Bool8>(&a, &b, out, move |a, b| Bool8::from($f(&a, &b))))
        })
    };
}

/// A logical connection of two questions whether a number is not zero.
macro_rules! logical {
    ($f:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = promote(&[args.operand(0)?, args.operand(1)?]);
            let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
            with_number!(dtype, &args.op.name, F => {
                map2::<F, Bool8>(&a, &b, out, move |a, b| Bool8::from($f(a != F::ZERO, b != F::ZERO)))
            })
        })
    };
}

/// A function of the bits of two integers; its rule refuses other dtypes.
macro_rules! bits {
    ($f:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = out.dtype();
            map2::<i64, i64>(&Source::of(args, 0, dtype)?, &Source::of(args, 1, dtype)?, out, $f)
        })
    };
}

const AND: Kernel = bits!(|a, b| a & b);
const OR: Kernel = bits!(|a, b| a | b);
const XOR: Kernel = bits!(|a, b| a ^ b);
const LEFT_SHIFT: Kernel = Kernel::Pointwise(|args, out| shift(args, out, move |a, n| a << n, |_| 0));
const RIGHT_SHIFT: Kernel = Kernel::Pointwise(|args, out| shift(args, out, move |a, n| a >> n, |a| a >> 63));

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.eq.Tensor", compare!(with_number, PartialEq::eq)),
    ("aten.eq.Scalar", compare!(with_number, PartialEq::eq)),
    ("aten.ne.Tensor", compare!(with_number, PartialEq::ne)),
    ("aten.ne.Scalar", compare!(with_number, PartialEq::ne)),
    ("aten.lt.Tensor", compare!(with_real, PartialOrd::lt)),
    ("aten.lt.Scalar", compare!(with_real, PartialOrd::lt)),
    ("aten.le.Tensor", compare!(with_real, PartialOrd::le)),
    ("aten.le.Scalar", compare!(with_real, PartialOrd::le)),
    ("aten.gt.Tensor", compare!(with_real, PartialOrd::gt)),
    ("aten.gt.Scalar", compare!(with_real, PartialOrd::gt)),
    ("aten.ge.Tensor", compare!(with_real, PartialOrd::ge)),
    ("aten.ge.Scalar", compare!(with_real, PartialOrd::ge)),
    ("aten.logical_and.default", logical!(|a, b| a & b)),
    ("aten.logical_or.default", logical!(|a, b| a | b)),
    ("aten.logical_xor.default", logical!(|a, b| a ^ b)),
    ("aten.bitwise_and.Tensor", AND),
    ("aten.bitwise_and.Scalar", AND),
    ("aten.bitwise_and.Scalar_Tensor", AND),
    ("aten.__and__.Tensor", AND),
    ("aten.__and__.Scalar", AND),
    ("aten.bitwise_or.Tensor", OR),
    ("aten.bitwise_or.Scalar", OR),
    ("aten.bitwise_or.Scalar_Tensor", OR),
    ("aten.__or__.Tensor", OR),
    ("aten.__or__.Scalar", OR),
    ("aten.bitwise_xor.Tensor", XOR),
    ("aten.bitwise_xor.Scalar", XOR),
    ("aten.bitwise_xor.Scalar_Tensor", XOR),
    ("aten.__xor__.Tensor", XOR),
    ("aten.__xor__.Scalar", XOR),
    ("aten.bitwise_left_shift.Tensor", LEFT_SHIFT),
    ("aten.bitwise_left_shift.Tensor_Scalar", LEFT_SHIFT),
    ("aten.bitwise_left_shift.Scalar_Tensor", LEFT_SHIFT),
    ("aten.__lshift__.Tensor", LEFT_SHIFT),
    ("aten.__lshift__.Scalar", LEFT_SHIFT),
    ("aten.bitwise_right_shift.Tensor", RIGHT_SHIFT),
    ("aten.bitwise_right_shift.Tensor_Scalar", RIGHT_SHIFT),
    ("aten.bitwise_right_shift.Scalar_Tensor", RIGHT_SHIFT),
    ("aten.__rshift__.Tensor", RIGHT_SHIFT),
    ("aten.__rshift__.Scalar", RIGHT_SHIFT),
    ("aten.isclose.default", Kernel::Pointwise(isclose)),
];

/// Shifts by as many places as the dtype has bits, or by fewer than none, move all bits out.
fn shift(
    args: &Args<'_, Tensor>,
    out: Target<'_>,
    by: impl Fn(i64, i64) -> i64 + Send + Sync + 'static,
    all_out: impl Fn(i64) -> i64 + Send + Sync + 'static,
) -> Result<()> {
    let dtype = out.dtype();
    let bits = 8 * dtype.size() as i64;
    let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    map2::<i64, i64>(&a, &b, out, move |a, n| if (0..bits).contains(&n) { by(a, n) } else { all_out(a) })
}

fn isclose(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    let (rtol, atol, equal_nan) = (args.float(2)?, args.float(3)?, args.bool(4)?);
    if dtype.is_complex() {
        return map2::<[f64; 2], Bool8>(&a, &b, out, move |a, b| {
            let (a, b) = (Complex::from(a), Complex::from(b));
            let distance = field::Field::abs(a - b);
            let is_nan = |it: Complex| it.re.is_nan() || it.im.is_nan();
            let is_near = distance <= atol + rtol * field::Field::abs(b) && distance.is_finite();
            Bool8::from(a == b || is_near || (equal_nan && is_nan(a) && is_nan(b)))
        });
    }
    with_float!(dtype, F => map2::<F, Bool8>(&a, &b, out, move |a, b| {
        let is_near = (a - b).abs() <= (atol as F + (rtol as F * b).abs()) && (a - b).is_finite();
        Bool8::from(a == b || is_near || (equal_nan && a.is_nan() && b.is_nan()))
    }), else with_int!(dtype, &args.op.name, F => map2::<F, Bool8>(&a, &b, out, move |a, b| {
        let allowed = atol + (rtol * b as f64).abs();
        Bool8::from(a == b || a.wrapping_sub(b).wrapping_abs() as f64 <= allowed)
    })))
}
