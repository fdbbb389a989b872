//! Numbers as Python has them, and how Python prints them.

use crate::{DType, DTypeKind};
use std::fmt;

/// A complex number of two float64.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Complex64 {
    /// The real part.
    pub re: f64,
    /// The imaginary part.
    pub im: f64,
}

/// One number, as Python has them: `bool`, `int`, `float` and `complex` are different things.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A Python `bool`.
    Bool(bool),
    /// A Python `int` that fits 64 bits.
    Int(i64),
    /// A Python `float`.
    Float(f64),
    /// A Python `complex`.
    Complex(Complex64),
}

impl Scalar {
    /// The kind that takes part in type promotion.
    pub const fn kind(self) -> DTypeKind {
        match self {
            Scalar::Bool(_) => DTypeKind::Bool,
            Scalar::Int(_) => DTypeKind::Int,
            Scalar::Float(_) => DTypeKind::Float,
            Scalar::Complex(_) => DTypeKind::Complex,
        }
    }

    /// The dtype that PyTorch gives to a tensor made of this number alone.
    pub const fn default_dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::Int64,
            Scalar::Float(_) => DType::Float32,
            Scalar::Complex(_) => DType::Complex64,
        }
    }

    /// The number as a float64; of a complex number, the real part.
    pub const fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(it) => it as u8 as f64,
            Scalar::Int(it) => it as f64,
            Scalar::Float(it) => it,
            Scalar::Complex(it) => it.re,
        }
    }

    /// The number as an int64; floats truncate towards zero and saturate.
    pub const fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(it) => it as i64,
            Scalar::Int(it) => it,
            Scalar::Float(it) => it as i64,
            Scalar::Complex(it) => it.re as i64,
        }
    }

    /// The number as a complex.
    pub const fn to_complex(self) -> Complex64 {
        match self {
            Scalar::Complex(it) => it,
            Scalar::Bool(_) | Scalar::Int(_) | Scalar::Float(_) => Complex64 { re: self.to_f64(), im: 0.0 },
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(true) => f.write_str("True"),
            Scalar::Bool(false) => f.write_str("False"),
            Scalar::Int(it) => write!(f, "{it}"),
            Scalar::Float(it) => f.write_str(&python_float(*it)),
            // Python omits a real part of positive zero, and writes floats in a complex without a trailing `.0`.
            Scalar::Complex(it) if it.re == 0.0 && it.re.is_sign_positive() => write!(f, "{}j", complex_part(it.im)),
            Scalar::Complex(it) => {
                let im = complex_part(it.im);
                let sign = if im.starts_with('-') { "" } else { "+" };
                write!(f, "({}{sign}{im}j)", complex_part(it.re))
            }
        }
    }
}

fn complex_part(value: f64) -> String {
    let text = python_float(value);
    text.strip_suffix(".0").map(str::to_string).unwrap_or(text)
}

/// A float as Python's `repr` writes it: the shortest digits that read back to the same number.
///
/// ```
/// use tracefx_core::python_float;
/// assert_eq!(python_float(1e-5), "1e-05");
/// assert_eq!(python_float(1.0), "1.0");
/// assert_eq!(python_float(1e16), "1e+16");
/// assert_eq!(python_float(-f64::INFINITY), "-inf");
/// ```
pub fn python_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').expect("the scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is an integer");
    if (-4..16).contains(&exponent) {
        let text = format!("{value}");
        if text.contains('.') { text } else { format!("{text}.0") }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.abs())
    }
}
