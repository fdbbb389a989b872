//! The form in which PyTorch saves expressions: sympy's `srepr`.

use crate::expr::{Call, Expr};
use crate::float::FloatRef;
use crate::int::IntRef;
use crate::poly::{Atom, Factor, Term};
use crate::print::{Zeros, float_text};
use crate::{SymBool, SymFloat, SymInt, Symbol, order};
use std::fmt::{self, Formatter, Write};

macro_rules! srepr {
    ($($type:ty, $write:ident;)+) => {
        $(impl $type {
            /// The expression as PyTorch saves it; [`Parser`](crate::Parser) reads it back. An invalid expression has no
            /// such form: it is printed as [`Display`](fmt::Display) shows it, which is not read back.
            pub fn srepr(&self) -> String {
                Srepr(|f: &mut Formatter<'_>| $write(f, self)).to_string()
            }
        })+
    };
}

srepr! {
    Expr, write_expr;
    SymInt, write_int;
    SymFloat, write_float;
    SymBool, write_bool;
}

struct Srepr<F>(F);

impl<F: Fn(&mut Formatter<'_>) -> fmt::Result> fmt::Display for Srepr<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0(f)
    }
}

fn write_expr(f: &mut Formatter<'_>, expr: &Expr) -> fmt::Result {
    match expr {
        Expr::Int(it) => write_int(f, it),
        Expr::Float(it) => write_float(f, it),
        Expr::Bool(it) => write_bool(f, it),
    }
}

fn write_int(f: &mut Formatter<'_>, int: &SymInt) -> fmt::Result {
    match int.view() {
        IntRef::Int(it) => write!(f, "Integer({it})"),
        IntRef::Invalid(_) => write!(f, "{int}"),
        IntRef::Poly(poly) => match &*poly.terms {
            [term] => write_term(f, term),
            terms => {
                f.write_str("Add(")?;
                write_items(f, order::shown_terms(terms), write_term)?;
                f.write_char(')')
            }
        },
    }
}

fn write_float(f: &mut Formatter<'_>, float: &SymFloat) -> fmt::Result {
    match float.view() {
        FloatRef::Const(it) if it.is_finite() => {
            write!(f, "Float('{}', precision=53)", float_text(it, 17, Zeros::Strip))
        }
        FloatRef::Const(it) => f.write_str(&float_text(it, 17, Zeros::Strip)),
        FloatRef::Rational(numerator, denominator) => write!(f, "Rational({numerator}, {denominator})"),
        FloatRef::Symbol(it) => write_symbol(f, it),
        FloatRef::Call(it) => write_call(f, it),
        FloatRef::Invalid(_) => write!(f, "{float}"),
    }
}

fn write_bool(f: &mut Formatter<'_>, bool: &SymBool) -> fmt::Result {
    match bool {
        SymBool::Const(it) => write!(f, "{it}"),
        SymBool::Call(it) => write_call(f, &it.0),
        SymBool::Invalid(_) => write!(f, "{bool}"),
    }
}

fn write_symbol(f: &mut Formatter<'_>, symbol: &Symbol) -> fmt::Result {
    let assumptions = symbol.assumptions();
    write!(f, "Symbol('{}'", symbol.name())?;
    for (name, holds) in [
        ("positive", assumptions.positive),
        ("nonnegative", assumptions.nonnegative),
        ("integer", assumptions.integer),
        ("real", assumptions.real),
    ] {
        if holds {
            write!(f, ", {name}=True")?;
        }
    }
    f.write_char(')')
}

fn write_term(f: &mut Formatter<'_>, term: &Term) -> fmt::Result {
    match (term.coeff, term.factors.as_slice()) {
        (coeff, []) => write!(f, "Integer({coeff})"),
        (1, [factor]) => write_factor(f, factor),
        (coeff, factors) => {
            f.write_str("Mul(")?;
            if coeff < 0 {
                // sympy takes the sign out.
                f.write_str("Integer(-1), ")?;
            }
            if coeff.unsigned_abs() != 1 {
                write!(f, "Integer({}), ", coeff.unsigned_abs())?;
            }
            write_items(f, factors.iter(), write_factor)?;
            f.write_char(')')
        }
    }
}

fn write_factor(f: &mut Formatter<'_>, factor: &Factor) -> fmt::Result {
    let write_atom = |f: &mut Formatter<'_>| match &factor.atom {
        Atom::Symbol(it) => write_symbol(f, it),
        Atom::Call(it) => write_call(f, it),
    };
    if factor.power == 1 {
        return write_atom(f);
    }
    f.write_str("Pow(")?;
    write_atom(f)?;
    write!(f, ", Integer({}))", factor.power)
}

fn write_call(f: &mut Formatter<'_>, call: &Call) -> fmt::Result {
    write!(f, "{}(", call.func.name())?;
    write_items(f, call.args.iter(), write_expr)?;
    f.write_char(')')
}

fn write_items<'a, T: 'a>(
    f: &mut Formatter<'_>,
    items: impl Iterator<Item = &'a T>,
    write: impl Fn(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in items.enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        write(f, item)?;
    }
    Ok(())
}
