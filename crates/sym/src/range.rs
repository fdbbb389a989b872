//! Ranges of integers, and arithmetic on them that never claims too much.

use std::fmt;

/// The values that an integer may have, both ends included; `None` is no bound.
///
/// ```
/// use tracefx_sym::ValueRange;
/// let batch = ValueRange { min: Some(2), max: None };
/// assert!(batch.contains(2) && !batch.contains(1));
/// assert_eq!(batch.to_string(), "[2, int_oo]");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ValueRange {
    /// The smallest value.
    pub min: Option<i64>,
    /// The largest value.
    pub max: Option<i64>,
}

impl ValueRange {
    /// No bounds.
    pub const UNBOUNDED: ValueRange = ValueRange { min: None, max: None };

    /// The range of one value.
    pub const fn exactly(value: i64) -> Self {
        ValueRange { min: Some(value), max: Some(value) }
    }

    /// The range of the values from `min` to `max`.
    pub const fn between(min: i64, max: i64) -> Self {
        ValueRange { min: Some(min), max: Some(max) }
    }

    /// The range from `min` on.
    pub const fn at_least(min: i64) -> Self {
        ValueRange { min: Some(min), max: None }
    }

    /// Whether the value is in it.
    pub fn contains(&self, value: i64) -> bool {
        self.min.is_none_or(|it| it <= value) && self.max.is_none_or(|it| value <= it)
    }

    /// Whether no value is in it.
    pub fn is_empty(&self) -> bool {
        matches!((self.min, self.max), (Some(min), Some(max)) if min > max)
    }

    /// The values that are in both.
    pub fn intersect(&self, other: &ValueRange) -> ValueRange {
        ValueRange {
            min: self.min.max(other.min),
            max: match (self.max, other.max) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }
}

impl fmt::Display for ValueRange {
    /// As PyTorch writes its ranges: `[0, int_oo]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.min {
            Some(it) => write!(f, "[{it}, ")?,
            None => f.write_str("[-int_oo, ")?,
        }
        match self.max {
            Some(it) => write!(f, "{it}]"),
            None => f.write_str("int_oo]"),
        }
    }
}

/// An end of an interval. The order of the variants is the order of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    NegInf,
    Finite(i128),
    PosInf,
}

use Bound::{Finite, NegInf, PosInf};

impl Bound {
    fn negate(self) -> Bound {
        match self {
            NegInf => PosInf,
            Finite(it) => it.checked_neg().map_or(PosInf, Finite),
            PosInf => NegInf,
        }
    }

    /// The product; an infinite bound stands for values that are finite, so zero times it is zero.
    fn times(self, other: Bound) -> Bound {
        if self == Finite(0) || other == Finite(0) {
            return Finite(0);
        }
        if let (Finite(a), Finite(b)) = (self, other)
            && let Some(product) = a.checked_mul(b)
        {
            return Finite(product);
        }
        if (self < Finite(0)) == (other < Finite(0)) { PosInf } else { NegInf }
    }

    /// The floor of the quotient by a bound of at least 1.
    fn floor_div(self, divisor: Bound) -> Bound {
        match (self, divisor) {
            (Finite(a), Finite(b)) => Finite(a.div_euclid(b)),
            (Finite(0..), _) => Finite(0),
            (Finite(_), _) => Finite(-1),
            (infinite, _) => infinite,
        }
    }
}

/// A non-empty interval of unbounded integers, wide enough that its arithmetic never has to be wrong: what leaves 128
/// bits is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    lo: Bound,
    hi: Bound,
}

impl Interval {
    pub(crate) const ALL: Interval = Interval { lo: NegInf, hi: PosInf };

    /// An end that overflowed to its own side says less than it could, but nothing wrong.
    fn new(lo: Bound, hi: Bound) -> Interval {
        Interval {
            lo: if lo == PosInf { Finite(i128::MAX) } else { lo },
            hi: if hi == NegInf { Finite(i128::MIN) } else { hi },
        }
    }

    pub(crate) fn exactly(value: i128) -> Interval {
        Interval { lo: Finite(value), hi: Finite(value) }
    }

    pub(crate) fn at_least(value: i128) -> Interval {
        Interval { lo: Finite(value), hi: PosInf }
    }

    pub(crate) fn between(lo: i128, hi: i128) -> Interval {
        Interval { lo: Finite(lo), hi: Finite(hi) }
    }

    pub(crate) fn lo(self) -> Option<i128> {
        if let Finite(it) = self.lo { Some(it) } else { None }
    }

    pub(crate) fn hi(self) -> Option<i128> {
        if let Finite(it) = self.hi { Some(it) } else { None }
    }

    pub(crate) fn plus(self, other: Interval) -> Interval {
        let lo = match (self.lo, other.lo) {
            (Finite(a), Finite(b)) => a.checked_add(b).map_or(if a < 0 { NegInf } else { PosInf }, Finite),
            (_, _) => NegInf,
        };
        let hi = match (self.hi, other.hi) {
            (Finite(a), Finite(b)) => a.checked_add(b).map_or(if a < 0 { NegInf } else { PosInf }, Finite),
            (_, _) => PosInf,
        };
        Interval::new(lo, hi)
    }

    pub(crate) fn negate(self) -> Interval {
        Interval::new(self.hi.negate(), self.lo.negate())
    }

    pub(crate) fn times(self, other: Interval) -> Interval {
        let corners =
            [self.lo.times(other.lo), self.lo.times(other.hi), self.hi.times(other.lo), self.hi.times(other.hi)];
        let [first, rest @ ..] = corners;
        let (lo, hi) = rest.into_iter().fold((first, first), |(lo, hi), it| (lo.min(it), hi.max(it)));
        Interval::new(lo, hi)
    }

    pub(crate) fn pow(self, power: u32) -> Interval {
        if power.is_multiple_of(2) && self.lo < Finite(0) {
            // An even power is that of the size.
            let largest = self.hi.max(self.lo.negate());
            let smallest = if self.hi < Finite(0) { self.hi.negate() } else { Finite(0) };
            return Interval::new(smallest, largest).pow(power);
        }
        // Powers are monotone here.
        let power_of = |base: Bound| {
            let mut product = Finite(1);
            for _ in 0..power {
                let next = product.times(base);
                let alternates = base < Finite(0);
                if next == product && !alternates {
                    break;
                }
                product = next;
                if alternates && matches!(product, NegInf | PosInf) {
                    // An odd power of a negative number.
                    return NegInf;
                }
                if base == Finite(-1) {
                    return base;
                }
            }
            product
        };
        Interval::new(power_of(self.lo), power_of(self.hi))
    }

    pub(crate) fn floor_div(self, divisor: Interval) -> Interval {
        let by_positive = |a: Interval, b: Interval| {
            let lo = a.lo.floor_div(if a.lo >= Finite(0) { b.hi } else { b.lo });
            let hi = a.hi.floor_div(if a.hi >= Finite(0) { b.lo } else { b.hi });
            Interval::new(lo, hi)
        };
        self.by_sign(divisor, |it| by_positive(self, it), |it| by_positive(self.negate(), it.negate()))
    }

    pub(crate) fn modulo(self, divisor: Interval) -> Interval {
        let by_positive = |a: Interval, b: Interval| {
            if a.lo >= Finite(0) && a.hi < b.lo {
                return a;
            }
            let below = match b.hi {
                Finite(it) => Finite(it.saturating_sub(1)),
                infinite => infinite,
            };
            Interval { lo: Finite(0), hi: if a.lo >= Finite(0) { below.min(a.hi) } else { below } }
        };
        self.by_sign(divisor, |it| by_positive(self, it), |it| by_positive(self.negate(), it.negate()).negate())
    }

    /// The results for the positive and for the negative divisors; there is none for zero.
    fn by_sign(
        self,
        divisor: Interval,
        positive: impl Fn(Interval) -> Interval,
        negative: impl Fn(Interval) -> Interval,
    ) -> Interval {
        let above = (divisor.hi >= Finite(1)).then(|| positive(Interval { lo: divisor.lo.max(Finite(1)), ..divisor }));
        let below =
            (divisor.lo <= Finite(-1)).then(|| negative(Interval { hi: divisor.hi.min(Finite(-1)), ..divisor }));
        match (above, below) {
            (Some(a), Some(b)) => a.union(b),
            (Some(it), None) | (None, Some(it)) => it,
            (None, None) => Interval::ALL,
        }
    }

    pub(crate) fn max(self, other: Interval) -> Interval {
        Interval { lo: self.lo.max(other.lo), hi: self.hi.max(other.hi) }
    }

    pub(crate) fn min(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.min(other.hi) }
    }

    pub(crate) fn union(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// From the lower end of this one to the upper end of the other.
    pub(crate) fn ends_with(self, other: Interval) -> Interval {
        Interval { lo: self.lo, hi: other.hi }
    }

    /// The values in both; the first alone if there are none, which happens only if the assumptions contradict each other.
    pub(crate) fn intersect(self, other: Interval) -> Interval {
        let both = Interval { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) };
        if both.lo > both.hi { self } else { both }
    }
}

impl From<ValueRange> for Interval {
    fn from(range: ValueRange) -> Self {
        Interval {
            lo: range.min.map_or(NegInf, |it| Finite(it.into())),
            hi: range.max.map_or(PosInf, |it| Finite(it.into())),
        }
    }
}

impl From<Interval> for ValueRange {
    /// An end that an i64 cannot have is no bound of it.
    fn from(interval: Interval) -> Self {
        ValueRange {
            min: interval.lo().and_then(|it| i64::try_from(it).ok()),
            max: interval.hi().and_then(|it| i64::try_from(it).ok()),
        }
    }
}
