//! Symbols of a program that is being exported: questions become guards, and guards say more of symbols.

use super::facts::{Facts, Relation};
use super::{Symbols, Value};
use std::collections::BTreeMap;
use tracefx_core::{Code, Diagnostic};
use tracefx_ir::{Str, TensorMeta};
use tracefx_sym::Value as Known;
use tracefx_sym::{Expr, Func, IntFactor, ShapeEnv, SymBool, SymInt, Symbol, SymbolKind, ValueRange};

/// A condition on the sizes of inputs that was taken to hold because it does for the examples.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeGuard {
    /// The condition.
    pub expr: SymBool,
    /// Where the user's code asked, as far as the host said so.
    pub place: Option<Str>,
}

/// A condition on unbacked symbols, which the program has to assert.
#[derive(Clone, Debug, PartialEq)]
pub struct DeferredAssertion {
    /// The condition.
    pub condition: SymBool,
    /// What the user wants to be told.
    pub message: Option<Str>,
}

/// What is known of the symbols besides their ranges.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints {
    values: BTreeMap<Symbol, i64>,
    replacements: BTreeMap<Symbol, SymInt>,
    guards: Vec<ShapeGuard>,
    assertions: Vec<DeferredAssertion>,
    facts: Facts,
    place: Option<Str>,
    /// Where symbols became numbers.
    specialized: BTreeMap<Symbol, Option<Str>>,
    /// The last question that only the data could answer.
    undecided: Option<SymBool>,
}

impl Hints {
    pub(super) fn new(values: BTreeMap<Symbol, i64>) -> Self {
        Hints { values, ..Hints::default() }
    }

    fn replace(&self, expr: &SymBool) -> SymBool {
        expr.substitute(&|it| self.replacements.get(it).cloned())
    }

    pub(super) fn known(&self, env: &ShapeEnv, condition: &SymBool) -> Option<bool> {
        let condition = self.replace(condition);
        if let Some(it) = env.decide(&condition) {
            return Some(it);
        }
        if let SymBool::Call(call) = &condition
            && matches!(call.func(), Func::And | Func::Or | Func::Not)
        {
            return self.connective(env, call.func(), call.args());
        }
        self.facts.decide(env, &Relation::of(&condition)?)
    }

    fn connective(&self, env: &ShapeEnv, func: Func, args: &[Expr]) -> Option<bool> {
        let part = |it: &Expr| if let Expr::Bool(it) = it { self.known(env, it) } else { None };
        let deciding = func == Func::Or;
        match func {
            Func::Not => part(args.first()?).map(|it| !it),
            _ if args.iter().any(|it| part(it) == Some(deciding)) => Some(deciding),
            _ => args.iter().all(|it| part(it) == Some(!deciding)).then_some(!deciding),
        }
    }

    pub(super) fn decide(&mut self, env: &mut ShapeEnv, condition: &SymBool) -> Option<bool> {
        if let Some(it) = self.known(env, condition) {
            return Some(it);
        }
        let condition = self.replace(condition);
        let Some(answer) = self.hint(&condition.clone().into()) else {
            self.undecided = Some(condition);
            return None;
        };
        let Known::Bool(answer) = answer else { return None };
        let guard = if answer { condition } else { !condition };
        self.guards.push(ShapeGuard { expr: guard.clone(), place: self.place.clone() });
        self.learn(env, &guard);
        Some(answer)
    }

    pub(super) fn assume(&mut self, env: &mut ShapeEnv, condition: &SymBool) -> bool {
        if let Some(it) = self.known(env, condition) {
            return it;
        }
        let condition = self.replace(condition);
        if self.hint(&condition.clone().into()).is_some() {
            return self.decide(env, &condition) == Some(true);
        }
        self.learn(env, &condition);
        true
    }

    /// The value for the examples; nothing where the data decides.
    fn hint(&self, expr: &Expr) -> Option<Known> {
        expr.eval(&|it| self.values.get(it).map(|it| Known::Int(*it))).ok()
    }

    /// Notes what follows of a condition that holds: PyTorch's `_maybe_guard_rel`.
    fn learn(&mut self, env: &mut ShapeEnv, condition: &SymBool) {
        if let SymBool::Call(call) = condition
            && call.func() == Func::And
        {
            for part in call.args() {
                if let Expr::Bool(part) = part {
                    self.learn(env, part);
                }
            }
            return;
        }
        let Some(relation) = Relation::of(condition) else { return };
        self.facts.add(&relation);
        if relation.func == Func::Ne || on_both_sides(condition) {
            return;
        }
        self.refine(env, &relation.expr, relation.range());
        if relation.func == Func::Eq {
            self.unify(env, &relation);
        }
    }

    /// Narrows the ranges of the symbols in an expression whose values are in `range`.
    fn refine(&mut self, env: &mut ShapeEnv, expr: &SymInt, range: ValueRange) {
        if let Some((numerator, divisor)) = quotient(expr) {
            // The quotient is at most `max` where the numerator is below the next multiple.
            let min = range.min.and_then(|it| it.checked_mul(divisor));
            let max = range.max.and_then(|it| it.checked_add(1)?.checked_mul(divisor)?.checked_sub(1));
            return self.refine(env, &numerator, ValueRange { min, max });
        }
        for symbol in expr.symbols() {
            let Some((factor, rest)) = linear_in(expr, &symbol) else { continue };
            let others = env.bounds(&rest);
            let low = range.min.zip(others.max).and_then(|(a, b)| a.checked_sub(b));
            let high = range.max.zip(others.min).and_then(|(a, b)| a.checked_sub(b));
            let (low, high) = if factor > 0 { (low, high) } else { (high, low) };
            let up = |it: i64| i64::try_from(-(-i128::from(it)).div_euclid(i128::from(factor.abs()))).ok();
            let down = |it: i64| i64::try_from(i128::from(it).div_euclid(i128::from(factor.abs()))).ok();
            let signed = |it: i64| it.checked_mul(factor.signum());
            let (min, max) = (low.and_then(signed).and_then(up), high.and_then(signed).and_then(down));
            self.narrow(env, &symbol, ValueRange { min, max });
        }
    }

    fn narrow(&mut self, env: &mut ShapeEnv, symbol: &Symbol, range: ValueRange) {
        // A range that leaves nothing is a contradiction, which whoever asks for the condition sees.
        if env.constrain(symbol, range).is_ok()
            && let ValueRange { min: Some(min), max: Some(max) } = env.range(symbol)
            && min == max
        {
            self.set_replacement(env, symbol, &SymInt::from(min));
        }
    }

    /// Solves an equality for one of its symbols: the one with the largest hint, and of equals the last by name.
    fn unify(&mut self, env: &mut ShapeEnv, relation: &Relation) {
        let has_call = |it: &SymInt| {
            it.summands().iter().flat_map(|it| &it.factors).any(|(it, _)| matches!(it, IntFactor::Call(..)))
        };
        if has_call(&relation.expr) {
            return;
        }
        let is_unbacked = |it: &Symbol| !self.values.contains_key(it);
        let key = |it: &Symbol| (self.values.get(it).copied().unwrap_or(i64::MAX), it.name().to_string());
        let Some(symbol) = relation.expr.symbols().into_iter().max_by_key(key) else { return };
        let Some((factor @ (1 | -1), rest)) = linear_in(&relation.expr, &symbol) else { return };
        let target = (SymInt::from(relation.value) - rest) * factor;
        if target.symbols().iter().any(is_unbacked) {
            return;
        }
        self.set_replacement(env, &symbol, &target);
    }

    /// Puts an expression in the place of a symbol, unless that would forget what its range says: PyTorch's
    /// `_set_replacement`.
    fn set_replacement(&mut self, env: &mut ShapeEnv, symbol: &Symbol, target: &SymInt) {
        if self.replacements.contains_key(symbol) || target.symbols().contains(symbol) {
            return;
        }
        let is_within = |inner: ValueRange, outer: ValueRange| inner.intersect(&outer) == inner;
        drop(env.constrain(symbol, env.bounds(target)));
        let range = env.range(symbol);
        if !is_within(env.bounds(target), range) && target.symbols().len() == 1 {
            let constant = target.summands().iter().find(|it| it.factors.is_empty()).map_or(0, |it| it.coefficient);
            let shifted = |it: Option<i64>| it.and_then(|it| it.checked_sub(constant));
            let range = ValueRange { min: shifted(range.min), max: shifted(range.max) };
            self.refine(env, &(target - constant), range);
        }
        if !is_within(env.bounds(target), range) {
            return;
        }
        if target.as_int().is_some() {
            self.specialized.insert(symbol.clone(), self.place.clone());
        }
        let place = |it: &Symbol| (it == symbol).then(|| target.clone());
        for other in self.replacements.values_mut() {
            *other = other.substitute(&place);
        }
        self.replacements.insert(symbol.clone(), target.clone());
        self.facts.substitute(&|it| it.substitute(&place));
    }
}

/// Whether a symbol stands on both sides of a relation. PyTorch does not solve these, and its guards on them are told as such.
fn on_both_sides(condition: &SymBool) -> bool {
    let SymBool::Call(call) = condition else { return false };
    let [a, b] = call.args() else { return false };
    let right = b.symbols();
    a.symbols().iter().any(|it| right.contains(it))
}

/// The numerator and the divisor of an expression that is a floor division by a positive number.
fn quotient(expr: &SymInt) -> Option<(SymInt, i64)> {
    let summands = expr.summands();
    let [summand] = summands.as_slice() else { return None };
    let ([(IntFactor::Call(Func::FloorDiv, args), 1)], 1) = (summand.factors.as_slice(), summand.coefficient) else {
        return None;
    };
    let [Expr::Int(numerator), Expr::Int(divisor)] = args.as_slice() else { return None };
    Some((numerator.clone(), divisor.as_int().filter(|it| *it > 0)?))
}

/// The factor of a symbol and what else an expression is the sum of; nothing where the symbol stands elsewhere too.
fn linear_in(expr: &SymInt, symbol: &Symbol) -> Option<(i64, SymInt)> {
    let alone = [(IntFactor::Symbol(symbol.clone()), 1)];
    let factor = expr.summands().into_iter().find(|it| it.factors == alone)?.coefficient;
    let rest = expr - SymInt::from(symbol.clone()) * factor;
    (!rest.symbols().contains(symbol)).then_some((factor, rest))
}

impl Symbols {
    /// Whether a program is being exported: whether symbols have hints.
    pub fn is_exporting(&self) -> bool {
        self.hints.is_some()
    }

    /// Says where the user's code is; guards remember it.
    pub fn set_place(&self, place: Option<Str>) {
        self.with_hints(|it| it.place = place);
    }

    /// Takes a condition to hold. One on sizes of inputs is a guard; any other the program has to assert. False where it cannot
    /// hold.
    pub fn require(&self, condition: &SymBool, message: Option<Str>) -> bool {
        let is_known = self.known(condition).is_some();
        let holds = self.assume(condition);
        if holds && !is_known && !self.is_backed(&condition.clone().into()) {
            let assertion = DeferredAssertion { condition: condition.clone(), message };
            self.with_hints(|it| it.assertions.push(assertion));
        }
        holds
    }

    /// What the program has to assert, in the order in which it became known.
    pub fn assertions(&self) -> Vec<DeferredAssertion> {
        self.with_hints(|it| it.assertions.clone()).unwrap_or_default()
    }

    /// The guards in the order in which they were made.
    pub fn guards(&self) -> Vec<ShapeGuard> {
        self.with_hints(|it| it.guards.clone()).unwrap_or_default()
    }

    /// What an expression is for the examples; nothing where the data decides.
    pub fn hint(&self, expr: &Expr) -> Option<Known> {
        self.with_hints(|it| it.hint(expr)).flatten()
    }

    /// Whether all symbols of an expression are of inputs.
    pub fn is_backed(&self, expr: &Expr) -> bool {
        let backed = |hints: &mut Hints| expr.symbols().iter().all(|it| hints.values.contains_key(it));
        self.with_hints(backed).unwrap_or_else(|| expr.symbols().iter().all(|it| it.kind() == SymbolKind::Size))
    }

    /// The number that a symbolic one is for the examples, from here on; nothing where there are none.
    pub(crate) fn specialize(&self, value: &SymInt) -> Option<i64> {
        let Some(Known::Int(hint)) = self.hint(&value.clone().into()) else { return None };
        self.decide(&SymBool::eq(value, &SymInt::from(hint))).is_some_and(|it| it).then_some(hint)
    }

    /// An expression in terms of the symbols that are left.
    pub fn replace(&self, expr: &Expr) -> Expr {
        self.with_hints(|hints| expr.substitute(&|it| hints.replacements.get(it).cloned()))
            .unwrap_or_else(|| expr.clone())
    }

    /// A value in terms of the symbols that are left.
    pub fn replace_value(&self, value: &Value<TensorMeta>) -> Value<TensorMeta> {
        let has_none = self.with_hints(|it| it.replacements.is_empty()).unwrap_or(true);
        if has_none { value.clone() } else { self.replaced(value) }
    }

    fn replaced(&self, value: &Value<TensorMeta>) -> Value<TensorMeta> {
        let int = |it: &SymInt| match self.replace(&it.clone().into()) {
            Expr::Int(it) => it,
            Expr::Float(_) | Expr::Bool(_) => it.clone(),
        };
        match value {
            Value::Tensor(meta) => Value::Tensor(TensorMeta {
                sizes: meta.sizes.iter().map(int).collect(),
                strides: meta.strides.iter().map(int).collect(),
                storage_offset: int(&meta.storage_offset),
                ..meta.clone()
            }),
            Value::List(items) => Value::List(items.iter().map(|it| self.replaced(it)).collect()),
            other => match other.as_expr() {
                Some(expr) => Value::from(self.replace(&expr)),
                None => other.clone(),
            },
        }
    }

    /// Adds an input's symbol, of which a program has one more than its inputs have sizes: the root of derived dimensions.
    pub fn add_input(&self, symbol: &Symbol, hint: i64, range: ValueRange) {
        self.with_hints(|it| it.values.insert(symbol.clone(), hint));
        drop(self.env.borrow_mut().constrain(symbol, range));
    }

    /// Where the user's code made a number of a symbol.
    pub fn specialized_at(&self, symbol: &Symbol) -> Option<Str> {
        self.with_hints(|it| it.specialized.get(symbol).cloned().flatten()).flatten()
    }

    /// The last question that only the data could have answered, which is forgotten.
    pub fn take_undecided(&self) -> Option<SymBool> {
        self.with_hints(|it| it.undecided.take()).flatten()
    }

    /// For how many symbols others or numbers stand.
    pub(crate) fn n_replaced(&self) -> usize {
        self.with_hints(|it| it.replacements.len()).unwrap_or_default()
    }

    fn with_hints<R>(&self, act: impl FnOnce(&mut Hints) -> R) -> Option<R> {
        self.hints.as_ref().map(|it| act(&mut it.borrow_mut()))
    }
}

impl Symbols {
    /// The refusal of a question that only the data can answer, in PyTorch's words.
    pub fn data_dependent(&self, condition: &SymBool) -> Diagnostic {
        let known = |it: &Symbol| self.with_hints(|hints| hints.values.get(it).map(|it| SymInt::from(*it))).flatten();
        let hinted = condition.substitute(&known);
        let what = format!("Could not guard on data-dependent expression {hinted} (unhinted: {condition})");
        let negated = !condition.clone();
        let checks = [condition, &negated].map(|it| format!("check({it})"));
        let place = self.with_hints(|it| it.place.clone()).flatten();
        let diagnostic = Diagnostic::new(Code::DataDependent, what).help(format!(
            "only a run can tell whether this holds: say before this call which it is, {}, or write what does not ask",
            checks.join(" or ")
        ));
        match place {
            Some(place) => diagnostic.note(format!("Caused by: {place}")),
            None => diagnostic,
        }
    }
}
