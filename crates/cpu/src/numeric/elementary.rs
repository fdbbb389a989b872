//! Elementary functions in a form that becomes vector code: polynomials without branches or calls.
//!
//! Those of float32 are within two units in the last place for every argument, the sigmoid within three: the polynomials are of the Cephes library
//! (<https://netlib.org/cephes>), but for that of the exponential, and the error function is that of N. Juffa. Those of float64 are the
//! standard library's.

#![allow(clippy::excessive_precision, reason = "the coefficients stand here as in their source")]

use crate::gemm::GemmElement;
use crate::numeric::isa::Isa;

/// How a product with a sum behind it is rounded.
pub(crate) trait Rounding {
    /// `a * b + c`.
    fn mul_add(a: f32, b: f32, c: f32) -> f32;
}

/// After each step, so that the results are equal to the last bit on all machines.
pub(crate) struct Stepwise;

impl Rounding for Stepwise {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
}

/// As seldom as the instructions allow, as products of matrices round: for what follows such a product in one step.
impl<I: Isa> Rounding for I {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        GemmElement::mul_add::<I>(a, b, c)
    }
}

/// The polynomial of the Cephes library for what is left of `ln(1 + x)` after its first terms, the highest power first.
pub(crate) const LN: [f32; 9] = [
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
];

/// Functions of floats, under names that do not hide those of the standard library.
pub(crate) trait Elementary: Sized {
    fn exp(self) -> Self;
    /// `exp(x) + addend`, of an addend about as large as one: an exponential below the normal numbers counts as zero, and one above
    /// 2<sup>127.5</sup> as infinite.
    fn exp_plus<R: Rounding>(self, addend: Self) -> Self;
    /// `exp(x) - 1`.
    fn exp_m1(self) -> Self;
    fn ln(self) -> Self;
    /// `ln(1 + x)`.
    fn ln_1p(self) -> Self;
    fn tanh<R: Rounding>(self) -> Self;
    fn erf<R: Rounding>(self) -> Self;
    /// `1 / (1 + exp(-x))`.
    fn sigmoid<R: Rounding>(self) -> Self;
    /// `ln(1 + exp(x))`.
    fn softplus(self) -> Self;
}

impl Elementary for f64 {
    #[inline(always)]
    fn exp(self) -> Self {
        f64::exp(self)
    }

    #[inline(always)]
    fn exp_plus<R: Rounding>(self, addend: Self) -> Self {
        f64::exp(self) + addend
    }

    #[inline(always)]
    fn exp_m1(self) -> Self {
        f64::exp_m1(self)
    }

    #[inline(always)]
    fn ln(self) -> Self {
        f64::ln(self)
    }

    #[inline(always)]
    fn ln_1p(self) -> Self {
        f64::ln_1p(self)
    }

    #[inline(always)]
    fn tanh<R: Rounding>(self) -> Self {
        f64::tanh(self)
    }

    #[inline(always)]
    fn erf<R: Rounding>(self) -> Self {
        libm::erf(self)
    }

    #[inline(always)]
    fn sigmoid<R: Rounding>(self) -> Self {
        1.0 / (1.0 + (-self).exp())
    }

    #[inline(always)]
    fn softplus(self) -> Self {
        self.max(0.0) + (-self.abs()).exp().ln_1p()
    }
}

impl Elementary for f32 {
    #[inline(always)]
    fn exp(self) -> Self {
        // Beyond these, the result is infinite or zero; a NaN goes through.
        let it = if self > 89.0 { 89.0 } else { self };
        let it = if it < -104.0 { -104.0 } else { it };
        let (slope, rest, shifted) = exp_parts::<Stepwise>(it);
        let [half, other] = powers(shifted);
        (slope * rest + 1.0) * half * other
    }

    #[inline(always)]
    fn exp_plus<R: Rounding>(self, addend: Self) -> Self {
        let it = if self > 89.0 { 89.0 } else { self };
        let it = if it < -88.0 { -88.0 } else { it };
        let (slope, rest, shifted) = exp_parts::<R>(it);
        // Of the numbers up to 128, the last digits are the exponent of a float: that of zero and of infinity at the ends.
        let power = f32::from_bits(shifted.to_bits() << 23);
        R::mul_add(R::mul_add(slope, rest, 1.0), power, addend)
    }

    #[inline(always)]
    fn exp_m1(self) -> Self {
        // The exponential of a larger one is itself, for one is too small to be taken from it.
        let it = if self > 80.0 { 80.0 } else { self };
        let it = if it < -104.0 { -104.0 } else { it };
        let (slope, rest, shifted) = exp_parts::<Stepwise>(it);
        let [half, other] = powers(shifted);
        let scale = half * other;
        let result = if self > 80.0 { Elementary::exp(self) } else { slope * rest * scale + (scale - 1.0) };
        // A zero keeps its sign.
        if self == 0.0 { self } else { result }
    }

    #[inline(always)]
    fn ln(self) -> Self {
        // Subnormal numbers are made normal.
        let (it, shift) = if self < f32::MIN_POSITIVE { (self * 8388608.0, 23.0) } else { (self, 0.0) };
        // The fraction lies between the root of 1/2 and the root of 2.
        let bits = it.to_bits();
        let exponent = (bits.wrapping_sub(std::f32::consts::FRAC_1_SQRT_2.to_bits()) as i32) >> 23;
        let x = f32::from_bits(bits.wrapping_sub((exponent << 23) as u32)) - 1.0;
        let exponent = exponent as f32 - shift;
        let square = x * x;
        let y = polynomial::<Stepwise, _>(x, LN);
        let y = y * x * square + exponent * -2.12194440e-4 - 0.5 * square;
        let result = x + y + exponent * 0.693359375;
        let result = if self < f32::INFINITY { result } else { self };
        let result = if self == 0.0 { f32::NEG_INFINITY } else { result };
        if self < 0.0 { f32::NAN } else { result }
    }

    #[inline(always)]
    fn ln_1p(self) -> Self {
        let sum = 1.0 + self;
        // What the sum was rounded by.
        let lost = (sum - 1.0) - self;
        let result = Elementary::ln(sum) - lost / sum;
        let result = if sum == 1.0 { self } else { result };
        if self == -1.0 || self == f32::INFINITY { Elementary::ln(sum) } else { result }
    }

    #[inline(always)]
    fn tanh<R: Rounding>(self) -> Self {
        let size = self.abs();
        let square = self * self;
        let y = polynomial::<R, _>(
            square,
            [-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1],
        );
        let small = R::mul_add(y * square, self, self);
        let large = 1.0 - 2.0 / Elementary::exp_plus::<R>(size + size, 1.0);
        // Of a negative zero as well.
        (if size < 0.625 { small } else { large }).copysign(self)
    }

    #[inline(always)]
    fn erf<R: Rounding>(self) -> Self {
        let size = self.abs();
        let square = self * self;
        let y = polynomial::<R, _>(
            square,
            [-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1],
        );
        let small = R::mul_add(y, self, self);
        let y = polynomial::<R, _>(
            size,
            [
                -1.72853470e-5,
                3.83197126e-4,
                -3.88396438e-3,
                2.42546219e-2,
                -1.06777877e-1,
                -6.34846687e-1,
                -1.28717512e-1,
            ],
        );
        let large = Elementary::exp_plus::<R>(R::mul_add(y, size, -size), -1.0).copysign(self);
        if size > 0.927734375 || self.is_nan() { large } else { small }
    }

    #[inline(always)]
    fn sigmoid<R: Rounding>(self) -> Self {
        1.0 / Elementary::exp_plus::<R>(-self, 1.0)
    }

    #[inline(always)]
    fn softplus(self) -> Self {
        let above = if self > 0.0 || self.is_nan() { self } else { 0.0 };
        above + Elementary::ln_1p(Elementary::exp(-self.abs()))
    }
}

/// What is added to a number of moderate size, so that its nearest integer, and the bias of the exponents of float32, are left in
/// the last digits.
const MAGIC: f32 = 12582912.0 + 127.0;

/// `exp(x)` as `(slope * rest + 1) * 2^n`, of numbers between -104 and 89. The last one given holds `n`: it is `n + MAGIC`.
#[inline(always)]
fn exp_parts<R: Rounding>(x: f32) -> (f32, f32, f32) {
    let shifted = R::mul_add(x, std::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let rest = R::mul_add(n, 2.12194440e-4, R::mul_add(n, -0.693359375, x));
    // Of all polynomials of its degree, that with the smallest relative error of `slope * rest + 1` up to half of ln(2): 4e-9.
    const SLOPE: [f32; 6] = [1.3814613e-3, 8.3687101e-3, 4.1668389e-2, 1.6666521e-1, 4.9999994e-1, 1.0];
    (polynomial::<R, _>(rest, SLOPE), rest, shifted)
}

/// Two powers of two whose product is `2^n`, of `n + MAGIC`: one alone has not the range.
#[inline(always)]
fn powers(shifted: f32) -> [f32; 2] {
    let n = shifted.to_bits().wrapping_sub(MAGIC.to_bits()) as i32;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) << 23) as u32);
    [power(n >> 1), power(n.wrapping_sub(n >> 1))]
}

/// `a * b + c`, rounded once unless it is subnormal, where [`f32::mul_add`] may be the call of a function.
///
/// float64 holds the product exactly and its sum with `c` nearly so. Where that sum lies half way between two float32, what
/// it was rounded by decides.
#[inline(always)]
pub(crate) fn fused(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    let added = sum - product;
    let lost = (product - (sum - added)) + (c - added);
    let is_tie = sum.to_bits() & 0x1fff_ffff == 0x1000_0000;
    let away = if (lost > 0.0) == (sum > 0.0) { 1 } else { u64::MAX };
    let nudge = if is_tie && lost != 0.0 { away } else { 0 };
    f64::from_bits(sum.to_bits().wrapping_add(nudge)) as f32
}

/// The polynomial with these coefficients, the highest power first.
#[inline(always)]
fn polynomial<R: Rounding, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[0];
    for &coefficient in &coefficients[1..] {
        sum = R::mul_add(sum, x, coefficient);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::isa::{Level, Work};
    use proptest::prelude::*;

    /// How far a float32 is from a float64, in units in its last place.
    fn distance(got: f32, expected: f64) -> f64 {
        let nearest = expected as f32;
        if got == nearest || (got.is_nan() && nearest.is_nan()) {
            return 0.0;
        }
        let size = nearest.abs().clamp(f32::MIN_POSITIVE, f32::MAX);
        let unit = f64::from(f32::from_bits(size.to_bits() + 1)) - f64::from(size);
        (f64::from(got) - expected).abs() / unit.abs()
    }

    /// The functions that take part in what follows a product, with the instructions of a level.
    struct Rounded(f32);

    impl Work for Rounded {
        type Output = [f32; 4];

        #[inline(always)]
        fn run<I: Isa>(self) -> [f32; 4] {
            rounded::<I>(self.0)
        }
    }

    #[inline(always)]
    fn rounded<R: Rounding>(x: f32) -> [f32; 4] {
        [
            Elementary::tanh::<R>(x),
            Elementary::erf::<R>(x),
            Elementary::sigmoid::<R>(x),
            Elementary::exp_plus::<R>(x, 1.0),
        ]
    }

    #[track_caller]
    fn check(x: f32) {
        let wide = f64::from(x);
        let mut cases = vec![
            ("exp", Elementary::exp(x), wide.exp(), 1.5),
            ("exp_m1", Elementary::exp_m1(x), wide.exp_m1(), 2.0),
            ("ln", Elementary::ln(x), wide.ln(), 1.5),
            ("ln_1p", Elementary::ln_1p(x), wide.ln_1p(), 2.0),
            ("softplus", Elementary::softplus(x), Elementary::softplus(wide), 2.0),
        ];
        // The exponential of a large number is infinite already.
        let is_large = |it: f64| it * std::f64::consts::LOG2_E > 127.5;
        let sigmoid = if is_large(-wide) { 0.0 } else { 1.0 / (1.0 + (-wide).exp()) };
        let exp_plus = if is_large(wide) { f64::INFINITY } else { wide.exp() + 1.0 };
        for [tanh, erf, logistic, plus] in
            Level::all().into_iter().map(|it| it.run(Rounded(x))).chain([rounded::<Stepwise>(x)])
        {
            cases.extend([
                ("tanh", tanh, wide.tanh(), 2.0),
                ("erf", erf, libm::erf(wide), 2.0),
                ("sigmoid", logistic, sigmoid, 3.0),
                ("exp_plus", plus, exp_plus, 2.0),
            ]);
        }
        for (name, got, expected, allowed) in cases {
            let distance = distance(got, expected);
            assert!(distance <= allowed, "{name}({x:e}) is {got:e}, {distance:.2} from {expected:e}");
            if expected == 0.0 && x == 0.0 {
                assert_eq!(got.is_sign_negative(), expected.is_sign_negative(), "the sign of {name}({x})");
            }
        }
    }

    #[test]
    fn special_values() {
        let subnormal = [1e-45, 1e-40, f32::MIN_POSITIVE, 1e-30, 5.9604645e-8];
        let large = [88.0, 88.72283, 88.72284, 89.0, 103.9, 104.0, 150.0, 1e30, f32::MAX, f32::INFINITY];
        let others = [0.0, 0.624999, 0.625, 0.92773, 0.92774, 0.99999994, 1.0, 1.0000001, 2.0, 17.0, 80.0, 80.1];
        for x in subnormal.into_iter().chain(large).chain(others) {
            check(x);
            check(-x);
        }
        check(f32::NAN);
    }

    proptest! {
        #![proptest_config(crate::agreement::config(20_000))]

        #[test]
        fn a_fused_product_and_sum_rounds_once(a: f32, b: f32, c: f32, tie in 0..1u32 << 24, near in -1e3f32..1e3) {
            // The last of them is a sum that lies near the middle between two float32.
            let tie = (1.0 + (tie * 2 + 1) as f32 / (1 << 25) as f32, 1.0 + f32::EPSILON, near * f32::EPSILON);
            for (a, b, c) in [(a, b, c), (a, b, 1.0), (near, near, c), (near, tie.0, near), tie] {
                let (got, expected) = (fused(a, b, c), a.mul_add(b, c));
                prop_assert!(got == expected || expected.is_subnormal() || (got.is_nan() && expected.is_nan()));
            }
        }

        #[test]
        fn results_are_near_those_of_float64(bits: u32, near in -12f32..12.0) {
            check(f32::from_bits(bits));
            check(near);
        }
    }
}
