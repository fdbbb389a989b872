//! Elementary functions in a form that becomes vector code: polynomials without branches or calls.
//!
//! Those of float32 are within two units in the last place for every argument, the sigmoid within three. GELU is so for numbers above
//! zero, and below it is `x` times a number that is within two units in the last place below one. The polynomials are of the Cephes library
//! (<https://netlib.org/cephes>), but for those of exponentials and of the tail of the error function; the error function of small numbers is
//! that of N. Juffa. Those of float64 are the standard library's.

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
    /// `1 + exp(-x)`: an exponential above 2<sup>127.5</sup> counts as infinite. It takes the negative itself, which is an instruction less.
    fn one_plus_exp_neg<R: Rounding>(self) -> Self;
    /// `1 + 2^x`: a power above 2<sup>127.5</sup> counts as infinite.
    fn one_plus_exp2<R: Rounding>(self) -> Self;
    /// `exp(x) - 1`.
    fn exp_m1(self) -> Self;
    fn ln(self) -> Self;
    /// `ln(1 + x)`.
    fn ln_1p(self) -> Self;
    fn tanh<R: Rounding>(self) -> Self;
    fn erf<R: Rounding>(self) -> Self;
    /// `x * (1 + erf(x / sqrt(2))) / 2`.
    fn gelu<R: Rounding>(self) -> Self;
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
    fn one_plus_exp_neg<R: Rounding>(self) -> Self {
        1.0 + f64::exp(-self)
    }

    #[inline(always)]
    fn one_plus_exp2<R: Rounding>(self) -> Self {
        1.0 + f64::exp2(self)
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
    fn gelu<R: Rounding>(self) -> Self {
        0.5 * self * (1.0 + libm::erf(self * std::f64::consts::FRAC_1_SQRT_2))
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
        let (rest, shifted) = exp_parts::<Stepwise>(it, 1.0);
        let [half, other] = powers(shifted);
        (rest + 1.0) * half * other
    }

    #[inline(always)]
    fn one_plus_exp_neg<R: Rounding>(self) -> Self {
        let it = if self < -89.0 { -89.0 } else { self };
        let it = if it > 88.0 { 88.0 } else { it };
        let (rest, shifted) = exp_parts::<R>(it, -1.0);
        R::mul_add(rest + 1.0, power(shifted), 1.0)
    }

    #[inline(always)]
    fn one_plus_exp2<R: Rounding>(self) -> Self {
        let it = if self > 128.0 { 128.0 } else { self };
        let it = if it < -127.0 { -127.0 } else { it };
        let (rest, shifted) = exp2_parts::<R>(it, MAGIC);
        R::mul_add(rest + 1.0, power(shifted), 1.0)
    }

    #[inline(always)]
    fn exp_m1(self) -> Self {
        // The exponential of a larger one is itself, for one is too small to be taken from it.
        let it = if self > 80.0 { 80.0 } else { self };
        let it = if it < -104.0 { -104.0 } else { it };
        let (rest, shifted) = exp_parts::<Stepwise>(it, 1.0);
        let [half, other] = powers(shifted);
        let scale = half * other;
        let result = if self > 80.0 { Elementary::exp(self) } else { rest * scale + (scale - 1.0) };
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
        let large = 1.0 - 2.0 / Elementary::one_plus_exp2::<R>(2.0 * std::f32::consts::LOG2_E * size);
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
        // From here on, the result is one.
        let it = if size > 4.0 { 4.0 } else { size };
        // `1 - erf(x)` is `2^(x * p(x))`. Of all polynomials `p` of its degree, that with the smallest error of the result: 3e-9.
        let log = without_constant::<R, _>(
            it,
            [3.0806314e-4, -4.632931e-3, 3.3006743e-2, -1.5183572e-1, -9.1716605e-1],
            -1.6280968,
        );
        let (rest, shifted) = exp2_parts::<R>(log, MAGIC + MINUS);
        let power = power(shifted);
        let large = R::mul_add(rest, power, 1.0 + power).copysign(self);
        if size <= 0.927734375 { small } else { large }
    }

    #[inline(always)]
    fn gelu<R: Rounding>(self) -> Self {
        // The tail of the normal distribution beyond `x` is `2^(x * p(x) - 1)`, and what is left of one is its other side. By the error
        // function, which is near in its own digits even where it is small, it would take twice as many instructions.
        let size = self.abs();
        // From here on, the power is zero. `rest` is above zero there, so that a negative zero stays one.
        let it = if size > 9.953 { 9.953 } else { size };
        // Of all polynomials `p` of its degree, that with the smallest error of the tail: 8e-9.
        let log = without_constant::<R, _>(
            it,
            [-2.8423185e-6, 3.9464532e-5, -1.865892e-4, -1.3594601e-4, 7.062108e-3, -5.2495245e-2, -4.5920852e-1],
            -1.1511052,
        );
        // One less in the exponent halves it.
        let (rest, shifted) = exp2_parts::<R>(log, MAGIC + MINUS - 1.0);
        let power = power(shifted);
        // The sum of one and this power has all its digits.
        let one = if self.is_sign_negative() { -0.0 } else { 1.0 };
        size * R::mul_add(rest, power, one + power)
    }

    #[inline(always)]
    fn sigmoid<R: Rounding>(self) -> Self {
        1.0 / Elementary::one_plus_exp_neg::<R>(self)
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

/// What is added to that where the power of two that is made of its last digits shall be negative: it ends up in the sign.
const MINUS: f32 = 256.0;

/// `exp(sign * x)` as `(1 + rest) * 2^n`, of a sign that is one or minus one, and numbers for which that is between -104 and 89. The
/// last one given holds `n`: it is `n + MAGIC`.
#[inline(always)]
fn exp_parts<R: Rounding>(x: f32, sign: f32) -> (f32, f32) {
    let shifted = R::mul_add(x, sign * std::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    // What is left of it, times the sign.
    let x = R::mul_add(n, sign * 2.12194440e-4, R::mul_add(n, sign * -0.693359375, x));
    // Of all polynomials of its degree, that with the smallest relative error of the exponential up to half of ln(2): 4e-9.
    let others = [1.3814613e-3, sign * 8.3687101e-3, 4.1668389e-2, sign * 1.6666521e-1, 4.9999994e-1];
    (without_constant::<R, _>(x, others, sign), shifted)
}

/// `2^x` as `(1 + rest) * 2^n`, of numbers between -127 and 128. The last one given is `n + magic`.
#[inline(always)]
fn exp2_parts<R: Rounding>(x: f32, magic: f32) -> (f32, f32) {
    let shifted = x + magic;
    let x = x - (shifted - magic);
    // As above, up to a half: 3e-9.
    let others = [1.5328897e-4, 1.339098e-3, 9.6185e-3, 5.5503596e-2, 2.4022648e-1];
    (without_constant::<R, _>(x, others, 6.931472e-1), shifted)
}

/// `2^n`, of `n + MAGIC`, whose last digits are the exponent of a float: that of zero where `n` is -127, and of infinity where it is 128.
#[inline(always)]
fn power(shifted: f32) -> f32 {
    f32::from_bits(shifted.to_bits() << 23)
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
///
/// It takes two of them at a time, so that half as many steps wait for the one before. Where a product and a sum are two instructions, as in
/// WebAssembly, processors do not see far enough ahead to compute the next vectors in the meantime.
#[inline(always)]
fn polynomial<R: Rounding, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let square = x * x;
    let (first, pairs) = coefficients.as_rchunks::<2>();
    let mut sum = first.first().copied();
    for &[a, b] in pairs {
        let pair = R::mul_add(a, x, b);
        sum = Some(sum.map_or(pair, |it| R::mul_add(it, square, pair)));
    }
    sum.unwrap_or_default()
}

/// `first * x` and the higher powers with the other coefficients, the highest first.
///
/// The sum with the first term is the last one, so that what the others are rounded by hardly counts.
#[inline(always)]
fn without_constant<R: Rounding, const N: usize>(x: f32, others: [f32; N], first: f32) -> f32 {
    R::mul_add(polynomial::<R, _>(x, others), x * x, first * x)
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
        type Output = [f32; 6];

        #[inline(always)]
        fn run<I: Isa>(self) -> [f32; 6] {
            rounded::<I>(self.0)
        }
    }

    #[inline(always)]
    fn rounded<R: Rounding>(x: f32) -> [f32; 6] {
        [
            Elementary::tanh::<R>(x),
            Elementary::erf::<R>(x),
            Elementary::sigmoid::<R>(x),
            Elementary::one_plus_exp_neg::<R>(x),
            Elementary::one_plus_exp2::<R>(x),
            Elementary::gelu::<R>(x),
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
        let exp_neg = if is_large(-wide) { f64::INFINITY } else { (-wide).exp() };
        let exp2 = if wide > 127.5 { f64::INFINITY } else { wide.exp2() };
        let gelu = wide * libm::erfc(-wide * std::f64::consts::FRAC_1_SQRT_2) / 2.0;
        for [tanh, erf, logistic, plus_exp_neg, plus_exp2, linear_unit] in
            Level::all().into_iter().map(|it| it.run(Rounded(x))).chain([rounded::<Stepwise>(x)])
        {
            cases.extend([
                ("tanh", tanh, wide.tanh(), 2.0),
                ("erf", erf, libm::erf(wide), 2.0),
                ("sigmoid", logistic, sigmoid, 3.0),
                ("one_plus_exp_neg", plus_exp_neg, 1.0 + exp_neg, 2.0),
                ("one_plus_exp2", plus_exp2, 1.0 + exp2, 2.0),
            ]);
            if x > 0.0 {
                cases.push(("gelu", linear_unit, gelu, 2.0));
            }
            // In units in the last place below one.
            let share = (f64::from(linear_unit) - gelu).abs() / wide.abs().max(1e-37) * f64::from(1 << 24);
            assert!(share <= 2.0 || !x.is_finite(), "gelu({x:e}) is {linear_unit:e}, and not {gelu:e}");
            assert_eq!(linear_unit.is_nan(), gelu.is_nan(), "gelu({x:e}) is {linear_unit:e}");
            if !linear_unit.is_nan() {
                assert_eq!(linear_unit.is_sign_negative(), x.is_sign_negative(), "the sign of gelu({x:e})");
            }
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
        let others =
            [0.0, 0.624999, 0.625, 0.92773, 0.92774, 0.99999994, 1.0, 1.0000001, 2.0, 4.0, 9.953, 17.0, 80.0, 80.1];
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
