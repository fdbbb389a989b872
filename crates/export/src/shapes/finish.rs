//! The end of an export: PyTorch's `produce_guards`, its constraint solver, and the ranges of symbols.

use super::fixes::{Fixes, Suggestion};
use super::print::Sources;
use super::solve::DimConstraints;
use super::{DeferredAssertion, Dim, DimSpec, Dimension, ShapeSession, violation};
use std::collections::{BTreeMap, BTreeSet};
use tracefx_core::Result;
use tracefx_ops::{ShapeGuard, Symbols};
use tracefx_sym::{Expr, SymBool, SymInt, Symbol, ValueRange};

/// What came out of an export.
#[derive(Clone, Debug)]
pub struct ShapeResult {
    /// The values that sizes of inputs and symbols may have.
    pub range_constraints: Vec<(SymInt, ValueRange)>,
    /// The conditions on inputs as Python expressions.
    pub guards: Vec<String>,
    /// What the program has to assert when it runs, in the order in which it became known.
    pub assertions: Vec<DeferredAssertion>,
}

/// What the guards break of what the user said.
#[derive(Default)]
struct Violations {
    messages: Vec<String>,
    names: BTreeSet<String>,
    places: Vec<String>,
}

impl Violations {
    fn add(&mut self, name: &str, message: String) {
        self.names.insert(name.to_string());
        self.messages.push(format!("  - {message}"));
    }
}

/// What the sizes became.
pub(super) struct Outcome {
    /// What each dimension is in terms of the symbols that are left.
    pub(super) exprs: Vec<SymInt>,
    /// The dimensions that are a symbol alone, in the order of the inputs.
    of_symbol: Vec<(Symbol, Vec<usize>)>,
}

impl Outcome {
    fn first(&self, symbol: &Symbol) -> Option<usize> {
        self.of_symbol.iter().find(|(it, _)| it == symbol)?.1.first().copied()
    }
}

impl Dimension {
    /// What messages call it: as the user does, else where it comes from.
    fn debug_name(&self) -> String {
        self.named().map_or_else(|| self.source.clone(), Dim::display_name)
    }

    fn named(&self) -> Option<&Dim> {
        if let DimSpec::Named(dim) = &self.spec { Some(dim) } else { None }
    }

    fn is_relaxed(&self) -> bool {
        matches!(self.spec, DimSpec::Auto(_) | DimSpec::Dynamic(_))
    }

    /// What the user said that it is.
    fn said(&self) -> SymInt {
        self.named().map_or_else(|| Symbol::integer(self.source.as_str()).into(), Dim::expr)
    }

    /// It with the range that the user gave it, as messages show it.
    fn with_range(&self) -> String {
        let (name, source) = (self.debug_name(), &self.source);
        let range = self.named().and_then(|it| it.own_range().ok()).unwrap_or_default();
        let shown = match (range.min.filter(|it| *it > 2), range.max) {
            (Some(min), Some(max)) => format!(" {min} <= {name} <= {max}"),
            (None, Some(max)) => format!(" {name} <= {max}"),
            (Some(min), None) => format!(" {min} <= {name}"),
            (None, None) => String::new(),
        };
        format!("{name} = {source} in the specified range{shown}")
    }
}

impl ShapeSession {
    /// Compares what became of the sizes with what the user said.
    ///
    /// # Errors
    /// `ConstraintViolation` where that is not the same, in PyTorch's words and with suggestions; the notes say which lines
    /// of the user's made it so.
    pub fn finish(&mut self) -> Result<ShapeResult> {
        self.hold_equalities()?;
        let outcome = self.outcome();
        let sources = self.sources();
        let mut violations = Violations::default();
        let mut constraints = DimConstraints::new(&self.hints);
        self.compare_sizes(&outcome, &mut violations);
        self.compare_guards(&outcome, &sources, &mut constraints, &mut violations);
        self.compare_ranges(&outcome, &sources, &mut constraints, &mut violations);
        self.refuse(&outcome, constraints, violations)?;
        let range_constraints = self.range_constraints(&outcome)?;
        let is_source = |it: &Symbol| sources.0.contains_key(it);
        let guards = self.symbols.guards().into_iter().map(|it| it.expr);
        let guards = guards.filter(|it| Expr::Bool(it.clone()).symbols().iter().all(is_source));
        Ok(ShapeResult {
            range_constraints,
            guards: guards.map(|it| sources.condition(&it)).collect(),
            assertions: self.symbols.assertions(),
        })
    }

    /// Guards that dimensions are equal, or derived of each other, as the user said.
    fn hold_equalities(&self) -> Result<()> {
        let mut firsts: Vec<(String, usize)> = Vec::new();
        for (at, it) in self.dimensions.iter().enumerate() {
            let Some(name) = it.named().map(Dim::display_name) else { continue };
            let Some((_, first)) = firsts.iter().find(|(other, _)| *other == name) else {
                firsts.push((name, at));
                continue;
            };
            let first = &self.dimensions[*first];
            if self.symbols.decide(&SymBool::eq(&it.expr, &first.expr)) != Some(true) {
                let (a, b) = (it.value, first.value);
                return Err(violation(format!("{} = {a} is not equal to {} = {b}", it.source, first.source)));
            }
        }
        for it in &self.dimensions {
            let Some(dim) = it.named().filter(|it| it.is_derived()) else { continue };
            let own = firsts.iter().find(|(name, _)| *name == dim.name).map(|(_, at)| &self.dimensions[*at].expr);
            let Some(root) = own.or_else(|| self.roots.get(&dim.name)) else { continue };
            if self.symbols.decide(&SymBool::eq(&it.expr, &dim.of(root))) != Some(true) {
                let value = self.symbols.hint(&root.clone().into()).map_or(String::new(), |it| it.to_string());
                let (source, form, name) = (&it.source, dim.display_name(), &dim.name);
                return Err(violation(format!(
                    "Expected input {source} to be equal to {form}, where {name} = {value}, but got {}",
                    it.value
                )));
            }
        }
        Ok(())
    }

    fn outcome(&self) -> Outcome {
        let exprs: Vec<SymInt> = self.dimensions.iter().map(|it| replaced(&self.symbols, &it.expr)).collect();
        let mut of_symbol: Vec<(Symbol, Vec<usize>)> = Vec::new();
        for (at, expr) in exprs.iter().enumerate() {
            let Some(symbol) = expr.as_symbol() else { continue };
            match of_symbol.iter_mut().find(|(it, _)| it == symbol) {
                Some((_, found)) => found.push(at),
                None => of_symbol.push((symbol.clone(), vec![at])),
            }
        }
        Outcome { exprs, of_symbol }
    }

    /// The sources of symbols, those too that others stand for by now.
    fn sources(&self) -> Sources {
        let source = |it: &Dimension| Some((it.expr.as_symbol()?.clone(), it.source.clone()));
        Sources(self.dimensions.iter().filter_map(source).collect())
    }

    fn strict(&self, outcome: &Outcome, symbol: &Symbol) -> Vec<&Dimension> {
        let of_symbol = outcome.of_symbol.iter().find(|(it, _)| it == symbol);
        let dimensions = of_symbol.into_iter().flat_map(|(_, all)| all).map(|at| &self.dimensions[*at]);
        dimensions.filter(|it| it.named().is_some()).collect()
    }

    /// Whether a size became a number, or got related to another one.
    fn compare_sizes(&self, outcome: &Outcome, violations: &mut Violations) {
        for (it, expr) in self.dimensions.iter().zip(&outcome.exprs) {
            if let Some(value) = expr.as_int() {
                let is_dynamic = matches!(it.spec, DimSpec::Dynamic(_)) && !matches!(value, 0 | 1);
                let is_strict = it.named().is_some_and(|dim| dim.own_range().ok() != Some(ValueRange::exactly(value)));
                if is_dynamic || is_strict {
                    let name = it.debug_name();
                    violations.add(&name, format!(
                        "You marked {name} as dynamic but your code specialized it to be a constant ({value}). If you're \
                         using mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, \
                         replace it with either Dim.STATIC or Dim.AUTO."
                    ));
                    let place = it.expr.as_symbol().and_then(|it| self.symbols.specialized_at(it));
                    violations.places.extend(place.map(|place| format!("{name} became {value} at {place}")));
                }
            }
        }
        for (it, expr) in self.dimensions.iter().zip(&outcome.exprs) {
            let symbols = expr.symbols();
            let ([symbol], Some(_)) = (symbols.as_slice(), it.dim) else { continue };
            let Some(first) = outcome.first(symbol).map(|at| &self.dimensions[at]) else { continue };
            if first.source == it.source || self.strict(outcome, symbol).is_empty() {
                continue;
            }
            let (name, source) = (it.debug_name(), &it.source);
            let (first_name, first_source) = (first.debug_name(), &first.source);
            if expr.as_symbol().is_some() {
                if !it.is_relaxed() && !first.is_relaxed() && it.said() != first.said() {
                    violations.add(
                        &name,
                        format!(
                            "The values of {name} = {source} and {first_name} = {first_source} must always be equal."
                        ),
                    );
                    violations.places.extend(self.place_of(&[it, first]));
                }
            } else if it.said() != expr.substitute(&|other| (other == symbol).then(|| first.said())) {
                let by = Symbol::integer(first_name.as_str());
                let form = expr.substitute(&|other| (other == symbol).then(|| by.clone().into()));
                violations.add(
                    &name,
                    format!(
                        "The values of {name} = {source} must always be related to the values of {first_name} = \
                     {first_source} by {name} = {form}."
                    ),
                );
                violations.places.extend(self.place_of(&[it, first]));
            }
        }
    }

    /// The place of the first guard about all of these.
    fn place_of(&self, dimensions: &[&Dimension]) -> Option<String> {
        let symbols: Vec<&Symbol> = dimensions.iter().filter_map(|it| it.expr.as_symbol()).collect();
        let guards = self.symbols.guards();
        let guard = guards.iter().find(|it| {
            let own = Expr::Bool(it.expr.clone()).symbols();
            symbols.iter().all(|it| own.contains(it))
        })?;
        self.told(guard)
    }

    fn told(&self, guard: &ShapeGuard) -> Option<String> {
        let place = guard.place.as_deref()?;
        Some(format!("{} is asked at {place}", self.sources().condition(&guard.expr)))
    }

    fn compare_guards(
        &self,
        outcome: &Outcome,
        sources: &Sources,
        constraints: &mut DimConstraints<'_>,
        violations: &mut Violations,
    ) {
        let env = self.symbols.env();
        let mut issued: Vec<SymBool> = Vec::new();
        for guard in self.symbols.guards() {
            let Expr::Bool(expr) = self.symbols.replace(&guard.expr.clone().into()) else { continue };
            if env.decide(&expr).is_some() || issued.contains(&expr) {
                continue;
            }
            issued.push(expr.clone());
            let is_trivial = constraints.add(&expr);
            let symbols = Expr::Bool(expr.clone()).symbols();
            let ([symbol], false) = (symbols.as_slice(), is_trivial) else { continue };
            let Some(first) = outcome.first(symbol).map(|at| &self.dimensions[at]) else { continue };
            for it in self.strict(outcome, symbol).into_iter().take(1) {
                let shown = Dimension { spec: it.spec.clone(), ..first.clone() }.with_range();
                let condition = sources.condition(&expr);
                violations.add(
                    &first.debug_name(),
                    format!("Not all values of {shown} satisfy the generated guard {condition}."),
                );
                violations.places.extend(self.told(&guard));
            }
        }
        for it in self.symbols.assertions() {
            if let Expr::Bool(expr) = self.symbols.replace(&it.condition.clone().into())
                && self.symbols.is_backed(&expr.clone().into())
                && env.decide(&expr).is_none()
            {
                constraints.add(&expr);
            }
        }
    }

    fn compare_ranges(
        &self,
        outcome: &Outcome,
        sources: &Sources,
        constraints: &mut DimConstraints<'_>,
        violations: &mut Violations,
    ) {
        let env = self.symbols.env();
        for (symbol, of_symbol) in &outcome.of_symbol {
            let first = &self.dimensions[of_symbol[0]];
            let range = env.declared_range(symbol).unwrap_or_default();
            if of_symbol.iter().any(|at| self.dimensions[*at].dim.is_some()) {
                let expr = SymInt::from(symbol.clone());
                let min = range.min.map(|it| SymBool::ge(&expr, &it.into()));
                let max = range.max.map(|it| SymBool::le(&expr, &it.into()));
                for bound in min.into_iter().chain(max) {
                    constraints.add(&bound);
                }
            }
            for it in self.strict(outcome, symbol).into_iter().take(1) {
                let said = it.named().and_then(|it| it.own_range().ok()).unwrap_or_default();
                let said = said.intersect(&ValueRange::at_least(2));
                if said.intersect(&range) != said {
                    let shown = Dimension { spec: it.spec.clone(), ..first.clone() }.with_range();
                    let condition = sources.range(symbol, range.min, range.max);
                    violations.add(
                        &first.debug_name(),
                        format!("Not all values of {shown} satisfy the generated guard {condition}"),
                    );
                    let guards = self.symbols.guards();
                    let about = |it: &&ShapeGuard| Expr::Bool(it.expr.clone()).symbols().contains(symbol);
                    violations.places.extend(guards.iter().filter(about).filter_map(|it| self.told(it)).take(1));
                }
            }
        }
    }

    /// The violations as an error, with what would mend them.
    fn refuse(&self, outcome: &Outcome, constraints: DimConstraints<'_>, violations: Violations) -> Result<()> {
        let solved = constraints.solve();
        let named: Vec<(&Dimension, &SymInt)> =
            self.dimensions.iter().zip(&outcome.exprs).filter(|(it, _)| it.named().is_some()).collect();
        let mut forced: Vec<(String, String, i64)> = Vec::new();
        for (symbol, it) in &solved {
            if let (Some(value), Some(first)) = (it.value, outcome.first(symbol))
                && !self.strict(outcome, symbol).is_empty()
            {
                let first = &self.dimensions[first];
                forced.push((first.debug_name(), first.source.clone(), value));
            }
        }
        if violations.messages.is_empty() && forced.is_empty() {
            return Ok(());
        }
        let mut message = String::new();
        if !violations.messages.is_empty() {
            let names: Vec<&str> = violations.names.iter().map(String::as_str).collect();
            message = format!(
                "Constraints violated ({})! For more information, run with TORCH_LOGS=\"+dynamic\".\n{}",
                names.join(", "),
                violations.messages.join("\n")
            );
        }
        if !named.is_empty() {
            message += &forced_specializations(&mut forced);
            message += &self.suggestions(outcome, &named, &solved);
        }
        Err(violations.places.into_iter().fold(violation(message), |it, place| it.note(place)).help(
            "say of the dynamic sizes what the suggested fixes say, or change the code that asks for more than that",
        ))
    }

    fn suggestions(
        &self,
        outcome: &Outcome,
        named: &[(&Dimension, &SymInt)],
        solved: &BTreeMap<Symbol, super::solve::Solved>,
    ) -> String {
        let mut fixes = Fixes::default();
        for (it, _) in named {
            fixes.know(it.named().into_iter());
            fixes.order.push((it.debug_name(), it.source.clone()));
        }
        let name_of = |symbol: &Symbol| Some(self.dimensions[outcome.first(symbol)?].debug_name());
        let as_number = |it: &Symbol| solved.get(it).and_then(|it| it.value).map(SymInt::from);
        for (it, expr) in named {
            let expr = expr.substitute(&as_number);
            let name = it.debug_name();
            if let Some(value) = expr.as_int() {
                fixes.suggest(&name, Suggestion::exactly(value));
                continue;
            }
            let form = expr.substitute(&|symbol| Some(Symbol::integer(name_of(symbol)?).into()));
            if form.as_symbol().is_none_or(|it| it.name() != name) {
                fixes.suggest(&name, Suggestion::equal(form));
            }
        }
        for (symbol, it) in solved {
            let Some(first) = outcome.first(symbol).map(|at| &self.dimensions[at]) else { continue };
            if first.named().is_none() || it.value.is_some() {
                continue;
            }
            let name = first.debug_name();
            if let Some((factor, rest)) = it.multiple {
                let root = Symbol::integer(format!("_{name}"));
                fixes.suggest(&name, Suggestion::equal(SymInt::from(root) * factor + rest));
            }
            fixes.suggest(&name, Suggestion::between(it.min, it.max));
        }
        fixes.text()
    }
}

fn forced_specializations(forced: &mut [(String, String, i64)]) -> String {
    if forced.is_empty() {
        return String::new();
    }
    forced.sort_by(|a, b| a.1.cmp(&b.1));
    let names: BTreeSet<&str> = forced.iter().map(|it| it.0.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let mut res = format!(
        "Specializations unexpectedly required ({})! For more information, run with TORCH_LOGS=\"+dynamic\".\n",
        names.join(", ")
    );
    for (name, source, value) in forced {
        res += &format!(
            "  - solving the guards generated for {name} = {source} resulted in a specialized value of {value}.\n"
        );
    }
    res
}

fn replaced(symbols: &Symbols, expr: &SymInt) -> SymInt {
    match symbols.replace(&expr.clone().into()) {
        Expr::Int(it) => it,
        Expr::Float(_) | Expr::Bool(_) => expr.clone(),
    }
}
