//! Linear expressions, and intervals of integers.

/// What no bound goes beyond: a bound of this size is none.
pub(super) const INFINITY: i128 = 1 << 100;

/// The numbers from `lo` to `hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) lo: i128,
    pub(super) hi: i128,
}

pub(super) fn clamp(value: Option<i128>, sign: i128) -> i128 {
    value.map_or(INFINITY * sign.signum(), |it| it.clamp(-INFINITY, INFINITY))
}

/// A product in which infinity stays infinite, and zero zero.
pub(super) fn times(a: i128, b: i128) -> i128 {
    let sign = a.signum() * b.signum();
    if sign != 0 && (a.abs() >= INFINITY || b.abs() >= INFINITY) {
        sign * INFINITY
    } else {
        clamp(a.checked_mul(b), sign)
    }
}

/// A sum of bounds of the same side.
pub(super) fn plus(a: i128, b: i128) -> i128 {
    if a.abs() >= INFINITY {
        a
    } else if b.abs() >= INFINITY {
        b
    } else {
        (a + b).clamp(-INFINITY, INFINITY)
    }
}

impl Interval {
    pub(super) const ALL: Interval = Interval { lo: -INFINITY, hi: INFINITY };

    pub(super) fn exactly(value: i128) -> Self {
        Interval { lo: value, hi: value }
    }

    pub(super) fn value(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    pub(super) fn scaled(self, by: i128) -> Self {
        let (a, b) = (times(self.lo, by), times(self.hi, by));
        Interval { lo: a.min(b), hi: a.max(b) }
    }

    pub(super) fn sum(self, other: Interval) -> Self {
        Interval { lo: plus(self.lo, other.lo), hi: plus(self.hi, other.hi) }
    }

    pub(super) fn product(self, other: Interval) -> Self {
        let all =
            [times(self.lo, other.lo), times(self.lo, other.hi), times(self.hi, other.lo), times(self.hi, other.hi)];
        let least = all.iter().copied().min().expect("there are four");
        Interval { lo: least, hi: all.iter().copied().max().expect("there are four") }
    }
}

/// `constant` and the sum of variables with coefficients, which are not 0; variables are in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Linear {
    pub(super) terms: Vec<(usize, i128)>,
    pub(super) constant: i128,
}

/// Coefficients beyond this are not worth reasoning about, and smaller ones never overflow in one step.
const MAX_COEFFICIENT: i128 = 1 << 60;

impl Linear {
    pub(super) fn constant(constant: i128) -> Self {
        Linear { terms: Vec::new(), constant }
    }

    pub(super) fn var(var: usize) -> Self {
        Linear { terms: vec![(var, 1)], constant: 0 }
    }

    pub(super) fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// `self * a + other * b`; nothing where a coefficient grows too large.
    pub(super) fn combined(&self, a: i128, other: &Linear, b: i128) -> Option<Linear> {
        let scaled = |terms: &[(usize, i128)], by: i128| {
            terms.iter().map(|(var, it)| Some((*var, it.checked_mul(by)?))).collect::<Option<Vec<_>>>()
        };
        let mut terms = scaled(&self.terms, a)?;
        terms.extend(scaled(&other.terms, b)?);
        let constant = self.constant.checked_mul(a)?.checked_add(other.constant.checked_mul(b)?)?;
        Linear::of(terms, constant)
    }

    /// The sum of these terms, in which a variable may stand several times.
    pub(super) fn of(mut terms: Vec<(usize, i128)>, constant: i128) -> Option<Linear> {
        terms.sort_unstable_by_key(|it| it.0);
        terms.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        terms.retain(|it| it.1 != 0);
        let fits = terms.iter().all(|it| it.1.abs() <= MAX_COEFFICIENT) && constant.abs() <= MAX_COEFFICIENT;
        fits.then_some(Linear { terms, constant })
    }

    pub(super) fn divisor(&self) -> i128 {
        self.terms.iter().fold(0, |acc, it| gcd(acc, it.1.abs()))
    }
}

pub(super) fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
