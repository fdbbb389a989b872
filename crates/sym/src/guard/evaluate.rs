//! The value of a guard for inputs.

use super::{Condition, GuardError, InputSource, InputValue};
use crate::Func;
use crate::eval::{self, Value};
use crate::syntax::{Binary, Relation, Unary};

impl InputValue {
    /// What Python's `bool` says of it.
    pub(super) fn is_true(&self) -> bool {
        match self {
            InputValue::Int(it) => *it != 0,
            InputValue::Float(it) => *it != 0.0,
            InputValue::Bool(it) => *it,
            InputValue::Str(it) => !it.is_empty(),
            InputValue::None => false,
        }
    }

    fn number(&self, taker: &'static str) -> Result<Value, GuardError> {
        match self {
            InputValue::Int(it) => Ok(Value::Int(*it)),
            InputValue::Float(it) => Ok(Value::Float(*it)),
            // Python's True is the number 1.
            InputValue::Bool(it) => Ok(Value::Int((*it).into())),
            InputValue::Str(_) | InputValue::None => Err(GuardError::Kind(taker)),
        }
    }
}

impl From<Value> for InputValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Int(it) => InputValue::Int(it),
            Value::Float(it) => InputValue::Float(it),
            Value::Bool(it) => InputValue::Bool(it),
        }
    }
}

impl Condition {
    pub(super) fn eval(&self, inputs: &dyn Fn(&InputSource) -> Option<InputValue>) -> Result<InputValue, GuardError> {
        match self {
            Condition::Value(it) => Ok(it.clone()),
            Condition::Input(it) => inputs(it).ok_or_else(|| GuardError::Missing(it.clone())),
            Condition::Unary(operator, operand) => {
                let operand = operand.eval(inputs)?;
                match operator {
                    Unary::Not => Ok(InputValue::Bool(!operand.is_true())),
                    Unary::Plus => Ok(operand.number("+")?.into()),
                    Unary::Minus => Ok(eval::apply(Func::Mul, &[Value::Int(-1), operand.number("-")?])?.into()),
                    Unary::Invert => Err(GuardError::Kind("~")),
                }
            }
            Condition::Chain(first, rest) => {
                let mut result = first.eval(inputs)?;
                for (operator, operand) in rest {
                    let operand = operand.eval(inputs)?;
                    let name = operator.symbol();
                    result = arithmetic(*operator, result.number(name)?, operand.number(name)?)?.into();
                }
                Ok(result)
            }
            Condition::Power(base, exponent) => {
                let args = [base.eval(inputs)?.number("**")?, exponent.eval(inputs)?.number("**")?];
                Ok(eval::apply(Func::Pow, &args)?.into())
            }
            Condition::Call(builtin, args) => {
                let args =
                    args.iter().map(|it| it.eval(inputs)?.number(builtin.name)).collect::<Result<Vec<_>, _>>()?;
                Ok(eval::apply(builtin.func, &args)?.into())
            }
            Condition::Compare(first, rest) => {
                let mut left = first.eval(inputs)?;
                for (relation, right) in rest {
                    let right = right.eval(inputs)?;
                    if !compare(*relation, &left, &right)? {
                        return Ok(InputValue::Bool(false));
                    }
                    left = right;
                }
                Ok(InputValue::Bool(true))
            }
            Condition::And(parts) => {
                for part in parts {
                    if !part.eval(inputs)?.is_true() {
                        return Ok(InputValue::Bool(false));
                    }
                }
                Ok(InputValue::Bool(true))
            }
            Condition::Or(parts) => {
                for part in parts {
                    if part.eval(inputs)?.is_true() {
                        return Ok(InputValue::Bool(true));
                    }
                }
                Ok(InputValue::Bool(false))
            }
        }
    }

    pub(super) fn visit_sources(&self, visit: &mut dyn FnMut(&InputSource)) {
        match self {
            Condition::Value(_) => {}
            Condition::Input(it) => visit(it),
            Condition::Unary(_, it) => it.visit_sources(visit),
            Condition::Chain(first, rest) => {
                first.visit_sources(visit);
                rest.iter().for_each(|(_, it)| it.visit_sources(visit));
            }
            Condition::Power(base, exponent) => {
                base.visit_sources(visit);
                exponent.visit_sources(visit);
            }
            Condition::Compare(first, rest) => {
                first.visit_sources(visit);
                rest.iter().for_each(|(_, it)| it.visit_sources(visit));
            }
            Condition::Call(_, parts) | Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().for_each(|it| it.visit_sources(visit));
            }
        }
    }
}

fn arithmetic(operator: Binary, a: Value, b: Value) -> Result<Value, GuardError> {
    let both_ints = matches!((a, b), (Value::Int(_), Value::Int(_)));
    let func = match operator {
        Binary::Add => Func::Add,
        Binary::Sub => return Ok(eval::apply(Func::Add, &[a, eval::apply(Func::Mul, &[Value::Int(-1), b])?])?),
        Binary::Mul => Func::Mul,
        Binary::TrueDiv if both_ints => Func::IntTrueDiv,
        Binary::TrueDiv => Func::FloatTrueDiv,
        Binary::FloorDiv => Func::FloorDiv,
        Binary::Mod => Func::PythonMod,
        Binary::And | Binary::Or | Binary::LShift | Binary::RShift => return Err(GuardError::Kind(operator.symbol())),
    };
    Ok(eval::apply(func, &[a, b])?)
}

fn compare(relation: Relation, left: &InputValue, right: &InputValue) -> Result<bool, GuardError> {
    let func = relation.func();
    match (left, right, relation) {
        (InputValue::Str(_) | InputValue::None, _, Relation::Eq)
        | (_, InputValue::Str(_) | InputValue::None, Relation::Eq) => Ok(left == right),
        (InputValue::Str(_) | InputValue::None, _, Relation::Ne)
        | (_, InputValue::Str(_) | InputValue::None, Relation::Ne) => Ok(left != right),
        (_, _, _) => {
            let name = relation.symbol();
            Ok(eval::holds(func, eval::compare(left.number(name)?, right.number(name)?)))
        }
    }
}
