//! Printing guards as Python's `ast.unparse` does, because PyTorch shows them so.

use super::{Condition, Guard, InputProperty, InputSource, InputValue, PathStep};
use crate::eval::Value;
use crate::syntax::Unary;
use std::fmt::{self, Display, Formatter, Write};

/// How tightly the parts of Python's grammar bind; `ast.unparse` puts in no more parentheses than these need.
mod level {
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 2;
    pub(super) const NOT: u8 = 3;
    pub(super) const COMPARE: u8 = 4;
    pub(super) const UNARY: u8 = 10;
    pub(super) const POWER: u8 = 11;
    pub(super) const ATOM: u8 = 12;
}

impl Condition {
    fn level(&self) -> u8 {
        match self {
            Condition::Or(_) => level::OR,
            Condition::And(_) => level::AND,
            Condition::Unary(Unary::Not, _) => level::NOT,
            Condition::Compare(..) => level::COMPARE,
            Condition::Chain(_, rest) => rest.first().map_or(level::ATOM, |(operator, _)| operator.level()),
            Condition::Unary(..) => level::UNARY,
            Condition::Power(..) => level::POWER,
            Condition::Value(InputValue::Int(..0)) => level::UNARY,
            Condition::Value(_) | Condition::Input(_) | Condition::Call(..) => level::ATOM,
        }
    }

    /// The text, in parentheses if it binds less than `level`.
    fn write(&self, f: &mut Formatter<'_>, level: u8) -> fmt::Result {
        if self.level() >= level {
            return self.write_bare(f);
        }
        f.write_char('(')?;
        self.write_bare(f)?;
        f.write_char(')')
    }

    fn write_bare(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut Formatter<'_>, parts: &[Condition], separator: &str, level: u8| {
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    f.write_str(separator)?;
                }
                part.write(f, level)?;
            }
            Ok(())
        };
        match self {
            Condition::Value(it) => match it {
                InputValue::Int(it) => it.fmt(f),
                InputValue::Float(it) => Value::Float(*it).fmt(f),
                InputValue::Bool(it) => Value::Bool(*it).fmt(f),
                InputValue::Str(it) => write!(f, "'{}'", it.escape_default()),
                InputValue::None => f.write_str("None"),
            },
            Condition::Input(it) => it.fmt(f),
            Condition::Unary(operator, operand) => {
                let (text, level) = match operator {
                    Unary::Minus => ("-", level::UNARY),
                    Unary::Plus => ("+", level::UNARY),
                    Unary::Invert => ("~", level::UNARY),
                    Unary::Not => ("not ", level::NOT),
                };
                f.write_str(text)?;
                operand.write(f, level)
            }
            Condition::Chain(first, rest) => {
                first.write(f, self.level())?;
                for (operator, operand) in rest {
                    write!(f, " {} ", operator.symbol())?;
                    operand.write(f, self.level() + 1)?;
                }
                Ok(())
            }
            Condition::Power(base, exponent) => {
                base.write(f, level::ATOM)?;
                f.write_str(" ** ")?;
                exponent.write(f, level::UNARY)
            }
            Condition::Call(builtin, args) => {
                write!(f, "{}(", builtin.name)?;
                joined(f, args, ", ", 0)?;
                f.write_char(')')
            }
            Condition::Compare(first, rest) => {
                first.write(f, level::COMPARE + 1)?;
                for (relation, operand) in rest {
                    write!(f, " {} ", relation.symbol())?;
                    operand.write(f, level::COMPARE + 1)?;
                }
                Ok(())
            }
            Condition::And(parts) => joined(f, parts, " and ", level::AND + 1),
            Condition::Or(parts) => joined(f, parts, " or ", level::OR + 1),
        }
    }
}

impl Display for Guard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.write(f, 0)
    }
}

impl Display for InputSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for step in &self.path {
            match step {
                PathStep::Index(it) => write!(f, "[{it}]")?,
                PathStep::Key(it) => write!(f, "['{}']", it.escape_default())?,
                PathStep::Field(it) => write!(f, ".{it}")?,
            }
        }
        match self.property {
            InputProperty::Value => Ok(()),
            InputProperty::Size(it) => write!(f, ".size()[{it}]"),
            InputProperty::Stride(it) => write!(f, ".stride()[{it}]"),
            InputProperty::StorageOffset => f.write_str(".storage_offset()"),
        }
    }
}
