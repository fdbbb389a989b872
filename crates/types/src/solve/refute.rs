//! Elimination: whether linear constraints have no solution in integers. Exact for equalities, and for inequalities up to
//! the difference between rational and integer solutions, so what it refutes is refuted.

use super::linear::{Linear, gcd};

/// More inequalities than this are not combined.
const MAX_INEQUALITIES: usize = 300;

/// Constraints: each expression is 0, or at most 0.
#[derive(Clone, Debug, Default)]
pub(super) struct System {
    pub(super) zero: Vec<Linear>,
    pub(super) at_most_zero: Vec<Linear>,
}

/// The system cannot be solved.
struct Refuted;

impl System {
    pub(super) fn refute(mut self) -> bool {
        self.solve_equalities().is_err() || self.eliminate().is_err()
    }

    /// Puts what equalities say of a variable in its place.
    fn solve_equalities(&mut self) -> Result<(), Refuted> {
        while let Some(equality) = self.zero.pop() {
            let divisor = equality.divisor();
            if divisor == 0 {
                if equality.constant != 0 {
                    return Err(Refuted);
                }
                continue;
            }
            if equality.constant % divisor != 0 {
                return Err(Refuted);
            }
            let terms = equality.terms.iter().map(|(var, it)| (*var, it / divisor)).collect();
            let equality = Linear { terms, constant: equality.constant / divisor };
            let Some(&(var, coefficient)) = equality.terms.iter().find(|it| it.1.abs() == 1) else {
                // Without a coefficient of 1 it is kept as two inequalities.
                self.at_most_zero.extend(equality.combined(-1, &Linear::default(), 0));
                self.at_most_zero.push(equality);
                continue;
            };
            for list in [&mut self.zero, &mut self.at_most_zero] {
                // An expression that grows too large is forgotten; less is known then, nothing wrong.
                let put = |it: &Linear| match it.terms.iter().find(|term| term.0 == var) {
                    Some(&(_, own)) => it.combined(1, &equality, -own * coefficient),
                    None => Some(it.clone()),
                };
                *list = list.iter().filter_map(put).collect();
            }
        }
        Ok(())
    }

    /// Fourier's and Motzkin's: pairs of a lower and an upper bound of a variable, until no variable is left.
    fn eliminate(&mut self) -> Result<(), Refuted> {
        loop {
            self.tighten()?;
            let mut counts: Vec<(usize, usize, usize)> = Vec::new();
            for (var, coefficient) in self.at_most_zero.iter().flat_map(|it| &it.terms) {
                let at = counts.binary_search_by_key(var, |it| it.0).unwrap_or_else(|at| {
                    counts.insert(at, (*var, 0, 0));
                    at
                });
                if *coefficient > 0 { counts[at].1 += 1 } else { counts[at].2 += 1 }
            }
            let Some(&(var, n_upper, n_lower)) = counts.iter().min_by_key(|it| it.1 * it.2) else { return Ok(()) };
            if n_upper * n_lower + self.at_most_zero.len() > MAX_INEQUALITIES {
                return Ok(());
            }
            let coefficient = |it: &Linear| it.terms.iter().find(|term| term.0 == var).map_or(0, |term| term.1);
            let (with, mut rest): (Vec<Linear>, Vec<Linear>) =
                std::mem::take(&mut self.at_most_zero).into_iter().partition(|it| coefficient(it) != 0);
            for upper in with.iter().filter(|it| coefficient(it) > 0) {
                for lower in with.iter().filter(|it| coefficient(it) < 0) {
                    rest.extend(upper.combined(-coefficient(lower), lower, coefficient(upper)));
                }
            }
            self.at_most_zero = rest;
        }
    }

    /// Divides by what the coefficients share; the constant is rounded, for the variables are integers.
    fn tighten(&mut self) -> Result<(), Refuted> {
        for it in &mut self.at_most_zero {
            let divisor = it.terms.iter().fold(0, |acc, term| gcd(acc, term.1.abs()));
            if divisor > 1 {
                it.terms.iter_mut().for_each(|term| term.1 /= divisor);
                it.constant = -(-it.constant).div_euclid(divisor);
            }
            if divisor == 0 && it.constant > 0 {
                return Err(Refuted);
            }
        }
        self.at_most_zero.retain(|it| !it.terms.is_empty());
        self.at_most_zero.sort_by(|a, b| a.terms.cmp(&b.terms).then(b.constant.cmp(&a.constant)));
        self.at_most_zero.dedup_by(|next, kept| next.terms == kept.terms);
        Ok(())
    }
}
