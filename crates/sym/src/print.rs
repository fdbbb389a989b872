//! Printing: `Display` is what Python's `str` gives for the sizes of a PyTorch program.

use crate::expr::{Call, Expr};
use crate::float::FloatRef;
use crate::func::precedence;
use crate::int::IntRef;
use crate::poly::{Atom, Factor, Term};
use crate::{Func, SymBool, SymFloat, SymInt, order};
use std::fmt::{self, Display, Formatter, Write};

impl Display for SymInt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.view() {
            IntRef::Int(it) => it.fmt(f),
            IntRef::Poly(poly) => write_sum(f, &poly.terms),
            IntRef::Invalid(it) => write!(f, "<{}>", it.reason()),
        }
    }
}

impl Display for SymFloat {
    /// A number alone has 15 digits, as sympy prints it; inside of an expression it has no trailing zeros.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.view() {
            FloatRef::Const(it) => f.write_str(&float_text(it, 15, Zeros::Keep)),
            FloatRef::Rational(..) | FloatRef::Symbol(_) | FloatRef::Call(_) | FloatRef::Invalid(_) => {
                write_float(f, self)
            }
        }
    }
}

impl Display for SymBool {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SymBool::Const(it) => f.write_str(if *it { "True" } else { "False" }),
            SymBool::Call(it) => write_call(f, &it.0),
            SymBool::Invalid(it) => write!(f, "<{}>", it.reason()),
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Int(it) => it.fmt(f),
            Expr::Float(it) => it.fmt(f),
            Expr::Bool(it) => it.fmt(f),
        }
    }
}

macro_rules! debug_is_display {
    ($($type:ty),+) => {
        $(impl fmt::Debug for $type {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                Display::fmt(self, f)
            }
        })+
    };
}

debug_is_display!(SymInt, SymFloat, SymBool, Expr);

impl fmt::Debug for crate::BoolCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_call(f, &self.0)
    }
}

fn write_sum(f: &mut Formatter<'_>, terms: &[Term]) -> fmt::Result {
    for (at, term) in order::shown_terms(terms).enumerate() {
        match (at, term.coeff < 0) {
            (0, true) => f.write_str("-")?,
            (0, false) => {}
            (_, true) => f.write_str(" - ")?,
            (_, false) => f.write_str(" + ")?,
        }
        // A call that binds less than a sum, such as `(s0//2)`, is put in parentheses in front of the other terms, too.
        let alone = terms.len() == 1 && term.coeff > 0;
        let level = if alone { 0 } else { precedence::ADD };
        write_product(f, term.coeff.unsigned_abs(), &term.factors, level)?;
    }
    Ok(())
}

/// A product; `level` is what stands around it.
fn write_product(f: &mut Formatter<'_>, coeff: u64, factors: &[Factor], level: u32) -> fmt::Result {
    if coeff == 1 {
        if let [factor] = factors {
            // sympy prints a lone factor under a minus as a factor, and puts a term in parentheses that binds less.
            return write_enclosed(f, factor_precedence(factor) < level, |f| write_factor(f, factor));
        }
    } else {
        write!(f, "{coeff}")?;
    }
    for (at, factor) in factors.iter().enumerate() {
        if at > 0 || coeff != 1 {
            f.write_char('*')?;
        }
        write_enclosed(f, factor_precedence(factor) <= precedence::MUL, |f| write_factor(f, factor))?;
    }
    if coeff == 1 && factors.is_empty() {
        f.write_char('1')?;
    }
    Ok(())
}

fn factor_precedence(factor: &Factor) -> u32 {
    match &factor.atom {
        Atom::Call(call) if factor.power == 1 => call.func.precedence(),
        Atom::Symbol(_) if factor.power == 1 => precedence::ATOM,
        Atom::Call(_) | Atom::Symbol(_) => precedence::POW,
    }
}

fn write_factor(f: &mut Formatter<'_>, factor: &Factor) -> fmt::Result {
    let (enclosed, power) = match &factor.atom {
        Atom::Call(call) => (factor.power > 1 && call.func.precedence() <= precedence::POW, factor.power),
        Atom::Symbol(_) => (false, factor.power),
    };
    write_enclosed(f, enclosed, |f| match &factor.atom {
        Atom::Symbol(it) => f.write_str(it.name()),
        Atom::Call(it) => write_call(f, it),
    })?;
    if power > 1 { write!(f, "**{power}") } else { Ok(()) }
}

fn write_enclosed(
    f: &mut Formatter<'_>,
    enclosed: bool,
    write: impl FnOnce(&mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    if !enclosed {
        return write(f);
    }
    f.write_char('(')?;
    write(f)?;
    f.write_char(')')
}

/// What sympy calls the precedence of an expression.
fn expr_precedence(expr: &Expr) -> u32 {
    match expr {
        Expr::Int(it) => match it.view() {
            IntRef::Int(..0) => precedence::ADD,
            IntRef::Int(_) | IntRef::Invalid(_) => precedence::ATOM,
            IntRef::Poly(poly) => match &*poly.terms {
                [term] if term.coeff < 0 => precedence::ADD,
                [Term { coeff: 1, factors }] if factors.len() == 1 => factor_precedence(&factors[0]),
                [_] => precedence::MUL,
                _ => precedence::ADD,
            },
        },
        Expr::Float(it) => match it.view() {
            FloatRef::Const(it) if it.is_sign_negative() => precedence::ADD,
            FloatRef::Rational(..0, _) => precedence::ADD,
            FloatRef::Rational(..) => precedence::MUL,
            FloatRef::Const(_) | FloatRef::Symbol(_) | FloatRef::Invalid(_) => precedence::ATOM,
            FloatRef::Call(it) => call_precedence(it),
        },
        Expr::Bool(it) => match it {
            SymBool::Call(it) => call_precedence(&it.0),
            SymBool::Const(_) | SymBool::Invalid(_) => precedence::ATOM,
        },
    }
}

fn call_precedence(call: &Call) -> u32 {
    match (call.func, &call.args[0]) {
        (Func::Mul, first) if expr_precedence(first) == precedence::ADD && first.as_value().is_some() => {
            precedence::ADD
        }
        (func, _) => func.precedence(),
    }
}

fn write_expr(f: &mut Formatter<'_>, expr: &Expr) -> fmt::Result {
    match expr {
        Expr::Int(it) => it.fmt(f),
        Expr::Float(it) => write_float(f, it),
        Expr::Bool(it) => it.fmt(f),
    }
}

fn write_float(f: &mut Formatter<'_>, float: &SymFloat) -> fmt::Result {
    match float.view() {
        FloatRef::Const(it) => f.write_str(&float_text(it, 15, Zeros::Strip)),
        FloatRef::Rational(numerator, denominator) => write!(f, "{numerator}/{denominator}"),
        FloatRef::Symbol(it) => f.write_str(it.name()),
        FloatRef::Call(it) => write_call(f, it),
        FloatRef::Invalid(it) => write!(f, "<{}>", it.reason()),
    }
}

/// An argument, in parentheses if it binds no more than `level`.
fn write_operand(f: &mut Formatter<'_>, arg: &Expr, level: u32) -> fmt::Result {
    write_enclosed(f, expr_precedence(arg) <= level, |f| write_expr(f, arg))
}

fn write_operands(f: &mut Formatter<'_>, args: &[Expr], separator: &str, level: u32) -> fmt::Result {
    for (at, arg) in args.iter().enumerate() {
        if at > 0 {
            f.write_str(separator)?;
        }
        write_operand(f, arg, level)?;
    }
    Ok(())
}

fn write_call(f: &mut Formatter<'_>, call: &Call) -> fmt::Result {
    let args = &*call.args;
    match (call.func, args) {
        (Func::FloorDiv | Func::CleanDiv, [base, divisor]) => write_enclosed(f, true, |f| {
            write_operand(f, base, precedence::ATOM - 1)?;
            f.write_str("//")?;
            write_operand(f, divisor, precedence::ATOM - 1)
        }),
        (Func::Pow, [base, exponent]) => {
            write_operand(f, base, precedence::POW)?;
            f.write_str("**")?;
            // Powers group from the right.
            write_operand(f, exponent, precedence::POW - 1)
        }
        (Func::Add, args) => {
            for (at, arg) in args.iter().enumerate() {
                let text = Printed(arg).to_string();
                match (at, text.strip_prefix('-')) {
                    (0, _) => f.write_str(&text)?,
                    (_, Some(size)) => write!(f, " - {size}")?,
                    (_, None) if expr_precedence(arg) < precedence::ADD => write!(f, " + ({text})")?,
                    (_, None) => write!(f, " + {text}")?,
                }
            }
            Ok(())
        }
        (Func::Mul, args) => write_float_product(f, args),
        (Func::And, args) => write_operands(f, args, " & ", precedence::BITWISE_AND),
        (Func::Or, args) => write_operands(f, args, " | ", precedence::BITWISE_OR),
        (Func::Not, [arg]) => {
            f.write_char('~')?;
            write_operand(f, arg, precedence::NOT)
        }
        (Func::Max | Func::Min, args) => {
            let mut args = args.to_vec();
            args.sort_by(order::cmp_exprs);
            write!(f, "{}(", call.func.name())?;
            write_operands(f, &args, ", ", 0)?;
            f.write_char(')')
        }
        (Func::Eq, args) => {
            f.write_str("Eq(")?;
            write_operands(f, args, ", ", 0)?;
            f.write_char(')')
        }
        (Func::Ne, args) => {
            f.write_str("Ne(")?;
            write_operands(f, args, ", ", 0)?;
            f.write_char(')')
        }
        (func, args) => match func.operator() {
            Some(operator) => write_operands(f, args, &format!(" {operator} "), precedence::RELATIONAL),
            None => {
                write!(f, "{}(", func.name())?;
                write_operands(f, args, ", ", 0)?;
                f.write_char(')')
            }
        },
    }
}

/// A product of floats; a fraction in front goes around the rest, as in `3*s0/2`.
fn write_float_product(f: &mut Formatter<'_>, args: &[Expr]) -> fmt::Result {
    let fraction = match &args[0] {
        Expr::Float(it) => match it.view() {
            FloatRef::Rational(numerator, denominator) => Some((numerator, denominator)),
            FloatRef::Const(_) | FloatRef::Symbol(_) | FloatRef::Call(_) | FloatRef::Invalid(_) => None,
        },
        Expr::Int(_) | Expr::Bool(_) => None,
    };
    match (fraction, &args[0]) {
        (Some((numerator, denominator)), _) => {
            match numerator {
                1 => {}
                -1 => f.write_char('-')?,
                _ => write!(f, "{numerator}*")?,
            }
            write_operands(f, &args[1..], "*", precedence::MUL)?;
            write!(f, "/{denominator}")
        }
        // `-1` is a sign, and a negative number needs no parentheses in front.
        (None, Expr::Int(it)) if *it == -1 => {
            f.write_char('-')?;
            write_operands(f, &args[1..], "*", precedence::MUL)
        }
        (None, first) if first.as_value().is_some() => {
            write_expr(f, first)?;
            f.write_char('*')?;
            write_operands(f, &args[1..], "*", precedence::MUL)
        }
        (None, _) => write_operands(f, args, "*", precedence::MUL),
    }
}

/// An expression as it stands inside of another one.
struct Printed<'a>(&'a Expr);

impl Display for Printed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_expr(f, self.0)
    }
}

/// Whether a printed float keeps the zeros that fill it up to its digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zeros {
    Keep,
    Strip,
}

/// A float with so many significant digits, as mpmath prints it.
pub(crate) fn float_text(value: f64, digits: usize, zeros: Zeros) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "oo" } else { "-oo" }.into();
    }
    if value == 0.0 {
        return match zeros {
            Zeros::Keep => "0",
            Zeros::Strip => "0.0",
        }
        .into();
    }
    let text = format!("{:.*e}", digits - 1, value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mantissa: String = mantissa.chars().filter(|it| *it != '.').collect();
    let sign = if value < 0.0 { "-" } else { "" };
    let fixed = exponent > -(digits as i32 / 3).max(5) && exponent < digits as i32;
    let (mut whole, mut fraction) = if !fixed {
        (mantissa[..1].to_string(), mantissa[1..].to_string())
    } else if exponent < 0 {
        ("0".into(), "0".repeat(exponent.unsigned_abs() as usize - 1) + &mantissa)
    } else {
        let at = exponent as usize + 1;
        (mantissa[..at].to_string(), mantissa[at..].to_string())
    };
    if zeros == Zeros::Strip {
        fraction.truncate(fraction.trim_end_matches('0').len().max(1));
    }
    if fraction.is_empty() {
        fraction.push('0');
    }
    whole.push('.');
    if fixed { format!("{sign}{whole}{fraction}") } else { format!("{sign}{whole}{fraction}e{exponent:+}") }
}
