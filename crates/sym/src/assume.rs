//! What follows from the assumptions of symbols alone: as much as sympy concludes, so that expressions simplify alike.

use crate::int::IntRef;
use crate::poly::{Atom, Factor, Term};
use crate::{Expr, Func, SymInt};

/// What is known of a sign.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Unknown,
    Nonnegative,
    Positive,
}

impl SymInt {
    /// Whether it is at least 1 by the assumptions of its symbols.
    pub fn is_assumed_positive(&self) -> bool {
        sign(self) == Sign::Positive
    }

    /// Whether it is at least 0 by the assumptions of its symbols.
    pub fn is_assumed_nonnegative(&self) -> bool {
        sign(self) >= Sign::Nonnegative
    }
}

fn sign(int: &SymInt) -> Sign {
    match int.view() {
        IntRef::Int(1..) => Sign::Positive,
        IntRef::Int(0) => Sign::Nonnegative,
        IntRef::Int(_) | IntRef::Invalid(_) => Sign::Unknown,
        IntRef::Poly(poly) => {
            // What the sum is at least: `s0 - 1` is not negative for a positive s0.
            let mut least: i128 = 0;
            for term in &poly.terms {
                if term.factors.is_empty() {
                    least += i128::from(term.coeff);
                    continue;
                }
                match sign_of_term(term) {
                    Sign::Unknown => return Sign::Unknown,
                    Sign::Nonnegative => {}
                    Sign::Positive => least += i128::from(term.coeff),
                }
            }
            match least {
                ..0 => Sign::Unknown,
                0 => Sign::Nonnegative,
                1.. => Sign::Positive,
            }
        }
    }
}

fn sign_of_term(term: &Term) -> Sign {
    if term.coeff <= 0 {
        return Sign::Unknown;
    }
    term.factors.iter().map(sign_of_factor).min().unwrap_or(Sign::Positive)
}

fn sign_of_factor(factor: &Factor) -> Sign {
    let sign = match &factor.atom {
        Atom::Symbol(it) if it.assumptions().positive => Sign::Positive,
        Atom::Symbol(it) if it.assumptions().nonnegative => Sign::Nonnegative,
        Atom::Symbol(_) => Sign::Unknown,
        Atom::Call(call) => match (call.func, &*call.args) {
            (Func::Mod, _) => Sign::Nonnegative,
            (Func::PythonMod, [_, Expr::Int(modulus)]) if modulus.is_assumed_positive() => Sign::Nonnegative,
            (Func::FloorDiv | Func::CleanDiv, [Expr::Int(base), Expr::Int(divisor)])
                if base.is_assumed_nonnegative() && divisor.is_assumed_nonnegative() =>
            {
                Sign::Nonnegative
            }
            (Func::Max, args) => args.iter().filter_map(Expr::as_int).map(sign).max().unwrap_or(Sign::Unknown),
            (Func::Min, args) => args.iter().filter_map(Expr::as_int).map(sign).min().unwrap_or(Sign::Unknown),
            _ => Sign::Unknown,
        },
    };
    if sign == Sign::Unknown && factor.power.is_multiple_of(2) { Sign::Nonnegative } else { sign }
}
