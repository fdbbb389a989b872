//! What a user says of a dimension.

use std::fmt;
use std::ops::{Add, Mul, Sub};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_sym::{SymInt, Symbol, ValueRange};

/// What is said of one dimension of an input.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DimSpec {
    /// Nothing, or `Dim.STATIC`: it is what it is for the example.
    #[default]
    Static,
    /// This number.
    Size(i64),
    /// `Dim.AUTO`: dynamic unless the module makes it a number.
    Auto(ValueRange),
    /// `Dim.DYNAMIC`: dynamic, and a violation if the module makes it a number.
    Dynamic(ValueRange),
    /// A `Dim`, or what is derived from one.
    Named(Dim),
}

impl DimSpec {
    /// `Dim.AUTO`, whatever the value.
    pub const AUTO: DimSpec = DimSpec::Auto(ValueRange::UNBOUNDED);
    /// `Dim.DYNAMIC`, whatever the value.
    pub const DYNAMIC: DimSpec = DimSpec::Dynamic(ValueRange::UNBOUNDED);
}

impl From<Dim> for DimSpec {
    fn from(it: Dim) -> Self {
        DimSpec::Named(it)
    }
}

/// As Python shows it.
impl fmt::Display for DimSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DimSpec::Static => write!(f, "None"),
            DimSpec::Size(size) => write!(f, "{size}"),
            DimSpec::Auto(range) => write!(f, "DimHint(AUTO{})", bounds(range, None)),
            DimSpec::Dynamic(range) => write!(f, "DimHint(DYNAMIC{})", bounds(range, None)),
            DimSpec::Named(dim) => write!(f, "{dim}"),
        }
    }
}

fn bounds(range: &ValueRange, default: Option<i64>) -> String {
    let min = range.min.filter(|it| Some(*it) != default).map(|it| format!(", min={it}"));
    let max = range.max.map(|it| format!(", max={it}"));
    [min, max].into_iter().flatten().collect()
}

/// A `Dim`, or a multiple of it plus a number.
///
/// ```
/// use tracefx_export::Dim;
/// use tracefx_sym::ValueRange;
/// let batch = Dim::new("batch", ValueRange::between(1, 64));
/// assert_eq!((batch.clone() * 2 + 1).display_name(), "2*batch + 1");
/// assert_eq!(batch.to_string(), "Dim('batch', min=1, max=64)");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dim {
    /// The name of the root.
    pub name: String,
    /// The values that the root may have.
    pub range: ValueRange,
    /// What the root is multiplied with, which is positive.
    pub factor: i64,
    /// What is added.
    pub offset: i64,
}

impl Dim {
    /// A dimension that is not derived.
    pub fn new(name: &str, range: ValueRange) -> Self {
        Dim { name: name.to_string(), range, factor: 1, offset: 0 }
    }

    /// Whether it is derived of another one.
    pub fn is_derived(&self) -> bool {
        (self.factor, self.offset) != (1, 0)
    }

    /// It in terms of a value of its root.
    pub fn of(&self, root: &SymInt) -> SymInt {
        root * self.factor + self.offset
    }

    /// It in terms of a symbol that is called as the root is.
    pub(super) fn expr(&self) -> SymInt {
        self.of(&Symbol::integer(self.name.as_str()).into())
    }

    /// The name, which is the formula of a derived one.
    pub fn display_name(&self) -> String {
        self.expr().to_string()
    }

    /// The values that it may have.
    ///
    /// # Errors
    /// `DynamicShapes` where these are negative or leave 64 bits.
    pub(super) fn own_range(&self) -> Result<ValueRange> {
        let at = |it: i64| it.checked_mul(self.factor)?.checked_add(self.offset);
        let wrong = |what: &str, value: String| {
            let what = format!(
                "Expected derived {what} value of {} to be {value}. Please specify an appropriate {what} value for {} \
                 (currently {}).",
                self.display_name(),
                self.name,
                if what == "min" { self.range.min } else { self.range.max }.unwrap_or_default()
            );
            Diagnostic::new(Code::DynamicShapes, what)
        };
        let min = match self.range.min.map(at) {
            Some(Some(it)) if it >= 0 => Some(it),
            Some(_) => return Err(wrong("min", ">= 0".to_string())),
            None => None,
        };
        let max = match self.range.max.map(at) {
            Some(None) => return Err(wrong("max", format!("<= {}", i64::MAX - 1))),
            found => found.flatten(),
        };
        Ok(ValueRange { min, max })
    }

    /// The value of the root for which it is this number.
    pub(super) fn root_value(&self, value: i64) -> Option<i64> {
        let rest = value.checked_sub(self.offset)?;
        (self.factor > 0 && rest % self.factor == 0).then(|| rest / self.factor)
    }
}

impl Add<i64> for Dim {
    type Output = Dim;

    fn add(self, rhs: i64) -> Dim {
        Dim { offset: self.offset + rhs, ..self }
    }
}

impl Sub<i64> for Dim {
    type Output = Dim;

    fn sub(self, rhs: i64) -> Dim {
        Dim { offset: self.offset - rhs, ..self }
    }
}

impl Mul<i64> for Dim {
    type Output = Dim;

    fn mul(self, rhs: i64) -> Dim {
        Dim { factor: self.factor * rhs, offset: self.offset * rhs, ..self }
    }
}

/// As Python shows it: a derived one as its formula.
impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_derived() {
            return write!(f, "{}", self.display_name());
        }
        let range = ValueRange { min: Some(self.range.min.unwrap_or(0)), ..self.range };
        write!(f, "Dim('{}'{})", self.name, bounds(&range, Some(2)))
    }
}
