//! What guards say of expressions that are more than a symbol.

use std::collections::HashMap;
use tracefx_sym::{Expr, Func, ShapeEnv, SymBool, SymInt, ValueRange};

/// Bounds of expressions, and numbers that they are not.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts(HashMap<SymInt, Fact>);

#[derive(Clone, Debug, Default)]
struct Fact {
    range: ValueRange,
    excluded: Vec<i64>,
}

/// A relation of an expression without a constant, whose first term is positive, to a number.
pub(super) struct Relation {
    pub(super) expr: SymInt,
    /// One of `Eq`, `Ne`, `Le` and `Ge`.
    pub(super) func: Func,
    pub(super) value: i64,
}

impl Relation {
    /// The relation in this form; nothing for what is none, or leaves 64 bits.
    pub(super) fn of(condition: &SymBool) -> Option<Relation> {
        let SymBool::Call(call) = condition else { return None };
        let [Expr::Int(a), Expr::Int(b)] = call.args() else { return None };
        let difference = a - b;
        difference.invalid().is_none().then_some(())?;
        let summands = difference.summands();
        let constant = summands.iter().find(|it| it.factors.is_empty()).map_or(0, |it| it.coefficient);
        let is_negative = summands.first()?.coefficient < 0;
        let (expr, value) = (difference - constant, constant.checked_neg()?);
        let (func, value) = match call.func() {
            func @ (Func::Eq | Func::Ne | Func::Le | Func::Ge) => (func, value),
            Func::Lt => (Func::Le, value.checked_sub(1)?),
            Func::Gt => (Func::Ge, value.checked_add(1)?),
            _ => return None,
        };
        if !is_negative {
            return Some(Relation { expr, func, value });
        }
        let func = match func {
            Func::Le => Func::Ge,
            Func::Ge => Func::Le,
            other => other,
        };
        Some(Relation { expr: -expr, func, value: value.checked_neg()? })
    }

    /// The values that the expression may have.
    pub(super) fn range(&self) -> ValueRange {
        match self.func {
            Func::Eq => ValueRange::exactly(self.value),
            Func::Le => ValueRange { min: None, max: Some(self.value) },
            Func::Ge => ValueRange::at_least(self.value),
            _ => ValueRange::UNBOUNDED,
        }
    }
}

impl Facts {
    /// Remembers a relation that holds.
    pub(super) fn add(&mut self, relation: &Relation) {
        let fact = self.0.entry(relation.expr.clone()).or_default();
        if relation.func == Func::Ne {
            fact.excluded.push(relation.value);
        } else {
            fact.range = fact.range.intersect(&relation.range());
        }
    }

    /// Whether a relation follows from these and the ranges of symbols.
    pub(super) fn decide(&self, env: &ShapeEnv, relation: &Relation) -> Option<bool> {
        let fact = self.0.get(&relation.expr);
        let known = env.bounds(&relation.expr);
        let range = fact.map_or(known, |it| it.range.intersect(&known));
        let value = relation.value;
        let at_least = |bound: i64| range.min.is_some_and(|it| it >= bound);
        let at_most = |bound: i64| range.max.is_some_and(|it| it <= bound);
        let excluded = fact.is_some_and(|it| it.excluded.contains(&value)) || !range.contains(value);
        let is_equal = if excluded { Some(false) } else { (at_least(value) && at_most(value)).then_some(true) };
        match relation.func {
            Func::Eq => is_equal,
            Func::Ne => is_equal.map(|it| !it),
            Func::Le if at_most(value) => Some(true),
            Func::Le => range.min.is_some_and(|it| it > value).then_some(false),
            Func::Ge if at_least(value) => Some(true),
            Func::Ge => range.max.is_some_and(|it| it < value).then_some(false),
            _ => None,
        }
    }

    /// The same of expressions in which something stands for symbols.
    pub(super) fn substitute(&mut self, replace: &dyn Fn(&SymInt) -> SymInt) {
        for (expr, fact) in std::mem::take(&mut self.0) {
            let bounds = [fact.range.min.map(|it| (Func::Ge, it)), fact.range.max.map(|it| (Func::Le, it))];
            let excluded = fact.excluded.iter().map(|it| (Func::Ne, *it));
            let expr = replace(&expr);
            for (func, value) in bounds.into_iter().flatten().chain(excluded) {
                let value = SymInt::from(value);
                let condition = match func {
                    Func::Ge => SymBool::ge(&expr, &value),
                    Func::Le => SymBool::le(&expr, &value),
                    _ => SymBool::ne(&expr, &value),
                };
                if let Some(relation) = Relation::of(&condition) {
                    self.add(&relation);
                }
            }
        }
    }
}
