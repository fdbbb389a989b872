//! Elementary functions of complex numbers, in float64.
//!
//! Where infinities, NaN and signed zeros lead is said by annex G of the C standard, which PyTorch's functions follow too; between
//! them the inverse functions are those of W. Kahan, "Branch cuts for complex elementary functions" (1987), which lose
//! no digits near their branch points.

use crate::numeric::field::{Complex, Field};
use crate::numeric::map::{Source, map1, map2, map3};
use crate::numeric::number::Number;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LN_10, PI};
use tracefx_core::Result;
use tracefx_exec::Target;

/// Computes `out[i] = f(a[i])`.
pub(crate) fn complex1(
    a: &Source,
    out: Target<'_>,
    f: impl Fn(Complex) -> Complex + Send + Sync + 'static,
) -> Result<()> {
    map1::<[f64; 2], [f64; 2]>(a, out, move |a| f(a.into()).into())
}

/// Computes `out[i] = f(a[i], b[i])`.
pub(crate) fn complex2(
    a: &Source,
    b: &Source,
    out: Target<'_>,
    f: impl Fn(Complex, Complex) -> Complex + Send + Sync + 'static,
) -> Result<()> {
    map2::<[f64; 2], [f64; 2]>(a, b, out, move |a, b| f(a.into(), b.into()).into())
}

/// Computes `out[i] = f(a[i], b[i], c[i])`.
pub(crate) fn complex3(
    [a, b, c]: [&Source; 3],
    out: Target<'_>,
    f: impl Fn(Complex, Complex, Complex) -> Complex + Send + Sync + 'static,
) -> Result<()> {
    map3::<[f64; 2], [f64; 2]>(a, b, c, out, move |a, b, c| f(a.into(), b.into(), c.into()).into())
}

impl From<[f64; 2]> for Complex {
    fn from([re, im]: [f64; 2]) -> Self {
        Complex { re, im }
    }
}

impl From<Complex> for [f64; 2] {
    fn from(it: Complex) -> Self {
        [it.re, it.im]
    }
}

/// Beyond this, `cosh(x)` and `sinh(x)` are half of `exp(|x|)` to the last bit.
const FAR: f64 = 22.0;
/// Beyond this, squares overflow.
const HUGE: f64 = 1e150;

impl Complex {
    pub(crate) const fn new(re: f64, im: f64) -> Self {
        Complex { re, im }
    }

    fn is_zero(self) -> bool {
        self.re == 0.0 && self.im == 0.0
    }

    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }

    /// The number turned by a right angle, `i * z`, and back.
    fn turned(self) -> Self {
        Complex::new(-self.im, self.re)
    }

    fn turned_back(self) -> Self {
        Complex::new(self.im, -self.re)
    }

    fn scaled(self, by: f64) -> Self {
        Complex::new(self.re * by, self.im * by)
    }

    pub(crate) fn exp(self) -> Self {
        let Complex { re, im } = self;
        if im == 0.0 {
            return Complex::new(re.exp(), im);
        }
        if !im.is_finite() && re.is_infinite() {
            return if re > 0.0 { Complex::new(re, f64::NAN) } else { Complex::new(0.0, 0f64.copysign(im)) };
        }
        let (sin, cos) = im.sin_cos();
        // In two steps, for the exponential may overflow where the product does not.
        let half = (re / 2.0).exp();
        Complex::new(half * cos * half, half * sin * half)
    }

    pub(crate) fn exp_m1(self) -> Self {
        let Complex { re, im } = self;
        let sin = (im / 2.0).sin();
        Complex::new(re.exp_m1() * im.cos() - 2.0 * sin * sin, re.exp() * im.sin())
    }

    pub(crate) fn ln(self) -> Self {
        Complex::new(ln_abs(self), self.im.atan2(self.re))
    }

    pub(crate) fn exp2(self) -> Self {
        self.scaled(LN_2).exp()
    }

    pub(crate) fn log10(self) -> Self {
        self.ln().scaled(1.0 / LN_10)
    }

    pub(crate) fn log2(self) -> Self {
        self.ln().scaled(1.0 / LN_2)
    }

    /// `ln(1 + z)`.
    pub(crate) fn ln_1p(self) -> Self {
        let Complex { re, im } = self;
        if self.abs() < 0.5 {
            return Complex::new(0.5 * (2.0 * re + re * re + im * im).ln_1p(), im.atan2(re + 1.0));
        }
        if re.is_nan() || im.is_nan() {
            return Complex::new(f64::NAN, f64::NAN);
        }
        Complex::new(re + 1.0, im).ln()
    }

    /// The root whose real part is not negative.
    pub(crate) fn sqrt(self) -> Self {
        let Complex { re, im } = self;
        if im.is_infinite() {
            return Complex::new(f64::INFINITY, im);
        }
        if re.is_infinite() {
            let other = if im.is_nan() { im } else { 0.0 };
            return match re > 0.0 {
                true => Complex::new(re, other.copysign(im)),
                false => Complex::new(other, f64::INFINITY.copysign(im)),
            };
        }
        let largest = re.abs().max(im.abs());
        // An even power of two keeps what is computed away from the ends.
        let (scale, root) = if largest > 1e300 {
            (0.25, 2.0)
        } else if largest < 1e-290 {
            (2f64.powi(120), 2f64.powi(-60))
        } else {
            (1.0, 1.0)
        };
        let Complex { re, im } = self.scaled(scale);
        let half = ((re.hypot(im) + re.abs()) / 2.0).sqrt();
        if half == 0.0 {
            Complex::new(0.0, im)
        } else if re >= 0.0 {
            Complex::new(half * root, im / (2.0 * half) * root)
        } else {
            Complex::new(im.abs() / (2.0 * half) * root, half.copysign(im) * root)
        }
    }

    pub(crate) fn sinh(self) -> Self {
        let Complex { re, im } = self;
        if im == 0.0 {
            return Complex::new(re.sinh(), im);
        }
        if !im.is_finite() {
            let re = if re == 0.0 || re.is_infinite() { re.abs() } else { f64::NAN };
            return Complex::new(re, f64::NAN);
        }
        let (sin, cos) = im.sin_cos();
        let [sinh, cosh] = hyperbolic(re);
        Complex::new(sinh.of(cos), cosh.of(sin))
    }

    pub(crate) fn cosh(self) -> Self {
        let Complex { re, im } = self;
        if im == 0.0 {
            return Complex::new(re.cosh(), if re.is_nan() { im } else { im * 1f64.copysign(re) });
        }
        if !im.is_finite() {
            let re_of = if re.is_infinite() { f64::INFINITY } else { f64::NAN };
            return Complex::new(re_of, if re == 0.0 { re } else { f64::NAN });
        }
        let (sin, cos) = im.sin_cos();
        let [sinh, cosh] = hyperbolic(re);
        Complex::new(cosh.of(cos), if re == 0.0 { re * sin } else { sinh.of(sin) })
    }

    pub(crate) fn tanh(self) -> Self {
        let Complex { re, im } = self;
        if re.is_infinite() {
            let sign = if im.is_finite() && im.abs() > 1.0 { (im.sin() * im.cos()).signum() } else { im };
            return Complex::new(1f64.copysign(re), 0f64.copysign(sign));
        }
        if im == 0.0 {
            return Complex::new(re.tanh(), im);
        }
        if !im.is_finite() {
            return Complex::new(if re == 0.0 { re } else { f64::NAN }, f64::NAN);
        }
        let (sin, cos) = im.sin_cos();
        if re.abs() > FAR {
            return Complex::new(1f64.copysign(re), 4.0 * sin * cos * (-2.0 * re.abs()).exp());
        }
        let (tan, sinh) = (sin / cos, re.sinh());
        let scale = 1.0 + tan * tan;
        let below = 1.0 + scale * sinh * sinh;
        Complex::new(scale * (1.0 + sinh * sinh).sqrt() * sinh / below, tan / below)
    }

    // With `sin z = i sinh(-iz)`, NaN has the sign that it has in PyTorch.
    pub(crate) fn sin(self) -> Self {
        self.turned_back().sinh().turned()
    }

    pub(crate) fn cos(self) -> Self {
        self.turned().cosh()
    }

    pub(crate) fn tan(self) -> Self {
        self.turned().tanh().turned_back()
    }

    pub(crate) fn asinh(self) -> Self {
        let Complex { re, im } = self;
        if im.is_infinite() {
            let angle = if re.is_infinite() { FRAC_PI_4 } else { FRAC_PI_2 };
            let im_of = if re.is_nan() { re } else { angle.copysign(im) };
            return Complex::new(f64::INFINITY.copysign(re), im_of);
        }
        if !re.is_finite() {
            let is_known = if re.is_nan() { im == 0.0 } else { im.is_finite() };
            return Complex::new(re, if is_known { 0f64.copysign(im) } else { f64::NAN });
        }
        if im.is_nan() {
            return Complex::new(im, im);
        }
        if re.abs() > HUGE || im.abs() > HUGE {
            return Complex::new(ln_twice_abs(self).copysign(re), im.atan2(re.abs()));
        }
        let (a, b) = (Complex::new(1.0 + im, -re).sqrt(), Complex::new(1.0 - im, re).sqrt());
        Complex::new((a.re * b.im - b.re * a.im).asinh(), im.atan2(a.re * b.re - a.im * b.im))
    }

    pub(crate) fn acosh(self) -> Self {
        let Complex { re, im } = self;
        if im.is_infinite() {
            let angle = match re.is_infinite() {
                true if re < 0.0 => PI - FRAC_PI_4,
                true => FRAC_PI_4,
                false => FRAC_PI_2,
            };
            return Complex::new(f64::INFINITY, if re.is_nan() { re } else { angle.copysign(im) });
        }
        if re.is_infinite() {
            let angle = if re < 0.0 { PI } else { 0.0 };
            return Complex::new(f64::INFINITY, if im.is_nan() { im } else { angle.copysign(im) });
        }
        if re == 0.0 && im.is_nan() {
            return Complex::new(im, FRAC_PI_2);
        }
        if re.abs() > HUGE || im.abs() > HUGE {
            return Complex::new(ln_twice_abs(self), im.atan2(re));
        }
        let (a, b) = (Complex::new(re - 1.0, im).sqrt(), Complex::new(re + 1.0, im).sqrt());
        Complex::new((a.re * b.re + a.im * b.im).asinh(), 2.0 * a.im.atan2(b.re))
    }

    pub(crate) fn atanh(self) -> Self {
        let Complex { re, im } = self;
        if im.is_infinite() {
            return Complex::new(0f64.copysign(re), FRAC_PI_2.copysign(im));
        }
        if re.is_infinite() || (re == 0.0 && im.is_nan()) {
            return Complex::new(0f64.copysign(re), if im.is_nan() { im } else { FRAC_PI_2.copysign(im) });
        }
        let (x, below) = (re.abs(), (1.0 - re.abs()) * (1.0 - re.abs()) + im * im);
        let angle = (2.0 * im).atan2((1.0 - x) * (1.0 + x) - im * im) / 2.0;
        Complex::new((0.25 * (4.0 * x / below).ln_1p()).copysign(re), angle)
    }

    pub(crate) fn asin(self) -> Self {
        let Complex { re, im } = self;
        if re.is_nan() || im.is_nan() {
            return match (re == 0.0, re.is_infinite() || im.is_infinite()) {
                (true, _) => self,
                (false, true) => Complex::new(f64::NAN, f64::INFINITY.copysign(im)),
                (false, false) => Complex::new(f64::NAN, f64::NAN),
            };
        }
        self.turned().asinh().turned_back()
    }

    pub(crate) fn acos(self) -> Self {
        let Complex { re, im } = self;
        if !self.is_finite() || self.is_zero() {
            let Complex { re, im } = self.asin();
            return Complex::new(FRAC_PI_2 - re, -im);
        }
        if re.abs() > HUGE || im.abs() > HUGE {
            return Complex::new(im.abs().atan2(re), -ln_twice_abs(self).copysign(im));
        }
        let (a, b) = (Complex::new(1.0 - re, -im).sqrt(), Complex::new(1.0 + re, im).sqrt());
        Complex::new(2.0 * a.re.atan2(b.re), (b.re * a.im - b.im * a.re).asinh())
    }

    pub(crate) fn atan(self) -> Self {
        self.turned().atanh().turned_back()
    }

    pub(crate) fn reciprocal(self) -> Self {
        Complex::ONE / self
    }

    /// `1 / (1 + exp(-z))`.
    pub(crate) fn sigmoid(self) -> Self {
        (Complex::ONE + (-self).exp()).reciprocal()
    }

    /// `sin(pi z) / (pi z)`.
    pub(crate) fn sinc(self) -> Self {
        let product = self.scaled(PI);
        if self.is_zero() { Complex::ONE } else { product.sin() / product }
    }

    /// This number to that power: `exp(power * ln(z))`.
    pub(crate) fn pow(self, power: Self) -> Self {
        (power * self.ln()).exp()
    }
}

/// A number that may be too large for a float64: a factor, to be multiplied by the other one twice.
#[derive(Clone, Copy)]
struct Large {
    factor: f64,
    root: f64,
}

impl Large {
    /// Its product with a number.
    fn of(self, other: f64) -> f64 {
        self.factor * other * self.root * self.root
    }
}

/// The hyperbolic sine and cosine.
fn hyperbolic(x: f64) -> [Large; 2] {
    if x.abs() < FAR || x.is_nan() {
        return [x.sinh(), x.cosh()].map(|factor| Large { factor, root: 1.0 });
    }
    let root = (x.abs() / 2.0).exp();
    [Large { factor: 0.5f64.copysign(x), root }, Large { factor: 0.5, root }]
}

/// The logarithm of the distance from zero, to the last digits where that is near one.
fn ln_abs(it: Complex) -> f64 {
    let (a, b) = (it.re.abs().max(it.im.abs()), it.re.abs().min(it.im.abs()));
    if it.re.is_nan() || it.im.is_nan() {
        return it.abs();
    }
    if (0.5..2.0).contains(&a) && b < 2.0 {
        return 0.5 * ((a - 1.0) * (a + 1.0) + b * b).ln_1p();
    }
    if a > HUGE && a.is_finite() { ln_twice_abs(it) - LN_2 } else { it.abs().ln() }
}

/// The logarithm of twice the distance from zero, of a number that is far from it.
fn ln_twice_abs(it: Complex) -> f64 {
    (it.re / 4.0).hypot(it.im / 4.0).ln() + 3.0 * LN_2
}
