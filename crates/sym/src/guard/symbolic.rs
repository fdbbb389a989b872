//! A guard in terms of symbols.

use super::{Condition, Guard, GuardError, InputSource, InputValue};
use crate::syntax::{Binary, Relation, Unary};
use crate::{Expr, Func, SymBool, SymFloat, SymInt, call};

impl Guard {
    /// The condition in terms of the symbols that stand for the sizes of inputs. `inputs` answers what the guard asks.
    ///
    /// ```
    /// use tracefx_sym::{Guard, Limits, SymInt, Symbol};
    /// let guard = Guard::parse("2*L['x'].size()[0] <= 8", &Limits::default()).unwrap();
    /// let rows = SymInt::from(Symbol::size("s0"));
    /// assert_eq!(guard.symbolic(&|_| Some(rows.clone().into())).unwrap().to_string(), "2*s0 <= 8");
    /// ```
    ///
    /// # Errors
    ///
    /// If the inputs lack something that it asks for, or it says something that symbols do not, of strings for instance.
    pub fn symbolic(&self, inputs: &dyn Fn(&InputSource) -> Option<Expr>) -> Result<SymBool, GuardError> {
        truth(self.0.symbolic(inputs)?)
    }
}

impl Condition {
    fn symbolic(&self, inputs: &dyn Fn(&InputSource) -> Option<Expr>) -> Result<Expr, GuardError> {
        let all = |parts: &[Condition]| parts.iter().map(|it| it.symbolic(inputs)).collect::<Result<Vec<_>, _>>();
        match self {
            Condition::Value(InputValue::Int(it)) => Ok(SymInt::from(*it).into()),
            Condition::Value(InputValue::Float(it)) => Ok(SymFloat::from(*it).into()),
            Condition::Value(InputValue::Bool(it)) => Ok(SymBool::Const(*it).into()),
            Condition::Value(InputValue::Str(_) | InputValue::None) => Err(GuardError::Kind("an expression of sizes")),
            Condition::Input(it) => inputs(it).ok_or_else(|| GuardError::Missing(it.clone())),
            Condition::Unary(operator, operand) => {
                let operand = operand.symbolic(inputs)?;
                match operator {
                    Unary::Not => apply(Func::Not, vec![truth(operand)?.into()]),
                    Unary::Plus => Ok(operand),
                    Unary::Minus => apply(Func::Mul, vec![SymInt::from(-1).into(), operand]),
                    Unary::Invert => Err(GuardError::Kind("~")),
                }
            }
            Condition::Chain(first, rest) => {
                let mut result = first.symbolic(inputs)?;
                for (operator, operand) in rest {
                    result = arithmetic(*operator, result, operand.symbolic(inputs)?)?;
                }
                Ok(result)
            }
            Condition::Power(base, exponent) => {
                apply(Func::Pow, vec![base.symbolic(inputs)?, exponent.symbolic(inputs)?])
            }
            Condition::Call(builtin, args) => apply(builtin.func, all(args)?),
            Condition::Compare(first, rest) => {
                let mut left = first.symbolic(inputs)?;
                let mut parts = Vec::with_capacity(rest.len());
                for (relation, right) in rest {
                    let right = right.symbolic(inputs)?;
                    parts.push(compare(*relation, left, right.clone())?);
                    left = right;
                }
                joined(Func::And, parts)
            }
            Condition::And(parts) => joined(Func::And, all(parts)?),
            Condition::Or(parts) => joined(Func::Or, all(parts)?),
        }
    }
}

fn apply(func: Func, args: Vec<Expr>) -> Result<Expr, GuardError> {
    call(func, args).map_err(|_| GuardError::Kind(func.name()))
}

fn truth(expr: Expr) -> Result<SymBool, GuardError> {
    match expr {
        Expr::Bool(it) => Ok(it),
        number @ (Expr::Int(_) | Expr::Float(_)) => match apply(Func::Ne, vec![number, SymInt::ZERO.into()])? {
            Expr::Bool(it) => Ok(it),
            Expr::Int(_) | Expr::Float(_) => Err(GuardError::Kind("a condition")),
        },
    }
}

fn joined(func: Func, parts: Vec<Expr>) -> Result<Expr, GuardError> {
    let mut parts = parts.into_iter().map(|it| Ok(truth(it)?.into())).collect::<Result<Vec<Expr>, GuardError>>()?;
    if parts.len() == 1 { Ok(parts.remove(0)) } else { apply(func, parts) }
}

fn arithmetic(operator: Binary, a: Expr, b: Expr) -> Result<Expr, GuardError> {
    let both_ints = matches!((&a, &b), (Expr::Int(_), Expr::Int(_)));
    let func = match operator {
        Binary::Add => Func::Add,
        Binary::Sub => return apply(Func::Add, vec![a, apply(Func::Mul, vec![SymInt::from(-1).into(), b])?]),
        Binary::Mul => Func::Mul,
        Binary::TrueDiv if both_ints => Func::IntTrueDiv,
        Binary::TrueDiv => Func::FloatTrueDiv,
        Binary::FloorDiv => Func::FloorDiv,
        Binary::Mod => Func::PythonMod,
        Binary::And | Binary::Or | Binary::LShift | Binary::RShift => return Err(GuardError::Kind(operator.symbol())),
    };
    apply(func, vec![a, b])
}

fn compare(relation: Relation, a: Expr, b: Expr) -> Result<Expr, GuardError> {
    apply(relation.func(), vec![a, b])
}
