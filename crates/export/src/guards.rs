//! [`ProgramGuards`]: what a program checks of its sizes, and what it says of them, for the validator of guards.

use crate::{ExportedProgram, InputChecker};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::propagate_node;
use tracefx_ir::{Arg, Graph, GraphModule, Node, NodeId, Opcode, Str, TensorMeta, Val};
use tracefx_ops::{Propagation, Registry, Symbols, Value};
use tracefx_sym::{Expr, Parser, ShapeEnv, SymBool, SymInt, Symbol, SymbolKind, ValueRange};
use tracefx_types::{TranslationValidator, bisect};

/// The guards of a program in two parts. What is checked is the range of each symbol of an input, the guards on inputs, and
/// what nodes assert when the program runs. What is said is the range of each other symbol and of each expression, and the
/// sizes that nodes are noted to give, where the operator by itself gives others.
///
/// A program whose passes kept its notes and assertions validates: what is said follows from what is checked.
///
/// ```
/// # fn check(program: tracefx_export::ExportedProgram) -> tracefx_core::Result<()> {
/// let guards = program.guards(tracefx_ops::registry())?;
/// assert_eq!(guards.validator()?.validate()?, tracefx_types::Validation::Valid);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProgramGuards {
    /// The symbols, those of inputs with their ranges.
    pub ranges: BTreeMap<Symbol, ValueRange>,
    /// What is checked: the target expressions.
    pub checked: Vec<ProgramGuard>,
    /// What is said: the source expressions.
    pub said: Vec<ProgramGuard>,
}

/// A condition on sizes, and the node that it is of.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramGuard {
    /// The condition.
    pub expr: SymBool,
    /// The node that asserts it, or is noted to give it; nothing for ranges and guards on inputs.
    pub node: Option<Str>,
}

impl ProgramGuards {
    /// A validator of these guards.
    ///
    /// # Errors
    /// `VerifyFailed` where a guard has a symbol that is not among those with a range.
    pub fn validator(&self) -> Result<TranslationValidator> {
        let mut res = self.checking()?;
        self.said.iter().try_for_each(|it| res.add_source_expr(it.expr.clone()))?;
        Ok(res)
    }

    /// A validator that knows what is checked, and is asked nothing.
    fn checking(&self) -> Result<TranslationValidator> {
        let mut res = TranslationValidator::default();
        self.ranges.iter().for_each(|(symbol, range)| res.add_var(symbol, *range));
        self.checked.iter().try_for_each(|it| res.add_target_expr(it.expr.clone()))?;
        Ok(res)
    }

    /// The first thing that is said and does not follow from what is checked, with the failure.
    ///
    /// # Errors
    /// As [`ProgramGuards::validator`].
    pub fn bisect(&self) -> Result<Option<(&ProgramGuard, Diagnostic)>> {
        let pairs: Vec<_> = self.said.iter().map(|it| (it.expr.clone(), SymBool::from(true))).collect();
        let found = bisect(&self.checking()?, &pairs)?;
        Ok(found.map(|(at, failure)| (&self.said[at], failure)))
    }

    /// As JSON: what TypeScript makes its own validator of.
    pub fn to_json(&self) -> Json {
        let ranges: serde_json::Map<String, Json> =
            self.ranges.iter().map(|(symbol, range)| (symbol.to_string(), json!([range.min, range.max]))).collect();
        let exprs = |guards: &[ProgramGuard]| -> Vec<Json> {
            guards.iter().map(|it| json!([it.expr.to_string(), it.node.as_deref()])).collect()
        };
        json!({ "ranges": ranges, "target": exprs(&self.checked), "source": exprs(&self.said) })
    }

    fn check(&mut self, expr: SymBool, node: Option<&Str>) {
        add(&mut self.checked, expr, node);
    }

    fn say(&mut self, expr: SymBool, node: Option<&Str>) {
        add(&mut self.said, expr, node);
    }
}

fn add(guards: &mut Vec<ProgramGuard>, expr: SymBool, node: Option<&Str>) {
    if expr.as_bool() != Some(true) {
        guards.push(ProgramGuard { expr, node: node.cloned() });
    }
}

impl ExportedProgram {
    /// The ranges of the symbols.
    fn shape_env(&self) -> Result<ShapeEnv> {
        let mut env = ShapeEnv::new();
        let mut parser = Parser::default();
        for (symbol, range) in &self.range_constraints {
            if parser.parse(symbol.name())?.as_int().is_some_and(|it| it.as_symbol().is_some()) {
                env.constrain(symbol, *range).map_err(|it| Diagnostic::new(Code::GraphInvalid, it.to_string()))?;
            }
        }
        Ok(env)
    }

    /// What is known of the symbols, where the values of all nodes are computed anew.
    pub(crate) fn symbols(&self) -> Result<Symbols> {
        Ok(Symbols::new(self.shape_env()?))
    }

    /// What is known of the symbols, where single nodes are computed from what is noted of the others: a new symbol has a
    /// number behind those of the notes.
    ///
    /// # Errors
    /// `GraphInvalid` where range constraints contradict each other; else what a [`Parser`] refuses.
    pub fn noted_symbols(&self) -> Result<Symbols> {
        let mut env = self.shape_env()?;
        let mut known = BTreeSet::new();
        self.module.modules().into_iter().for_each(|(_, it)| note_symbols(it, &mut known));
        for symbol in known.iter().filter(|it| matches!(it.kind(), SymbolKind::Unbacked | SymbolKind::UnbackedFloat)) {
            // A range without bounds contradicts nothing.
            drop(env.constrain(symbol, ValueRange::UNBOUNDED));
        }
        Ok(Symbols::new(env))
    }

    /// What is checked and said of sizes. It takes time linear in the graph.
    ///
    /// # Errors
    /// As [`InputChecker::new`].
    pub fn guards(&self, registry: &Registry) -> Result<ProgramGuards> {
        let checker = InputChecker::new(self)?;
        let inputs = checker.symbols();
        let mut res = ProgramGuards::default();
        let mut parser = Parser::default();
        let by_kind = ShapeEnv::new();
        for symbol in &inputs {
            res.ranges.insert(symbol.clone(), by_kind.range(symbol));
        }
        for (symbol, range) in &self.range_constraints {
            let Some(expr) = parser.parse(symbol.name())?.as_int().cloned() else { continue };
            let is_input = expr.as_symbol().is_some_and(|it| inputs.contains(it));
            for bound in bounds(&expr, *range) {
                if is_input { res.check(bound, None) } else { res.say(bound, None) }
            }
        }
        checker.symbolic_guards().into_iter().for_each(|it| res.check(it, None));
        let mut known = inputs.clone();
        note_symbols(&self.module, &mut known);
        let module = &self.module;
        let graph = &module.graph;
        let symbols = self.noted_symbols()?;
        let shapes = Propagation::new(registry, &symbols);
        let given = |id: NodeId| propagate_node(module, id, shapes)?.ok();
        for id in graph.nodes().filter(|id| graph.node(*id).op() == Opcode::CallFunction) {
            let node = graph.node(id);
            let name = Some(node.name());
            match &**node.target() {
                "torch.ops.aten._assert_scalar.default" | "torch._assert" => {
                    let condition = node.args().first().and_then(|it| condition(it, &given));
                    condition.into_iter().for_each(|it| res.check(it, name));
                }
                "torch.ops.aten.sym_constrain_range.default"
                | "torch.ops.aten.sym_constrain_range_for_size.default" => {
                    constrained(graph, node).into_iter().for_each(|it| res.check(it, name));
                }
                _ => {
                    let Some(noted) = &node.meta.val else { continue };
                    let Some(given) = given(id) else { continue };
                    let mut equalities = Vec::new();
                    equal(&given, noted, &mut equalities);
                    for it in equalities {
                        // What the data decides has a new symbol each time that it is asked for.
                        let is_known = |it: &Symbol| known.contains(it);
                        if Expr::Bool(it.clone()).symbols().iter().all(is_known) {
                            res.say(it, name);
                        }
                    }
                }
            }
        }
        if res.checked.is_empty() {
            // A validator that is told of no check has nothing to prove, and here something may be said all the same.
            res.checked.push(ProgramGuard { expr: true.into(), node: None });
        }
        for guard in res.checked.iter().chain(&res.said) {
            for symbol in Expr::Bool(guard.expr.clone()).symbols() {
                res.ranges.entry(symbol).or_insert(ValueRange::UNBOUNDED);
            }
        }
        Ok(res)
    }
}

/// Adds the symbols of what is noted of a module's nodes.
fn note_symbols(module: &GraphModule, found: &mut BTreeSet<Symbol>) {
    for val in module.graph.nodes().filter_map(|id| module.graph.node(id).meta.val.as_ref()) {
        val.for_each_symbol(&mut |it| found.extend([it.clone()]));
    }
}

/// What an assertion is of, in terms of the sizes that went into it: a note of it may say that it always holds.
fn condition(arg: &Arg, given: &dyn Fn(NodeId) -> Option<Value<TensorMeta>>) -> Option<SymBool> {
    match arg {
        Arg::Node(id) => match given(*id)? {
            Value::SymBool(it) => Some(it),
            Value::Bool(it) => Some(it.into()),
            _ => None,
        },
        Arg::Bool(it) => Some((*it).into()),
        _ => None,
    }
}

fn bounds(expr: &SymInt, range: ValueRange) -> Vec<SymBool> {
    let min = range.min.map(|it| SymBool::ge(expr, &it.into()));
    let max = range.max.map(|it| SymBool::le(expr, &it.into()));
    min.into_iter().chain(max).collect()
}

/// What `sym_constrain_range` holds its argument to.
fn constrained(graph: &Graph, node: &Node) -> Vec<SymBool> {
    let Some(Arg::Node(size)) = node.args().first() else { return Vec::new() };
    let Some(Val::Int(size)) = &graph.node(*size).meta.val else { return Vec::new() };
    let int = |name| if let Some(Arg::Int(it)) = node.kwarg(name) { Some(*it) } else { None };
    let is_size = node.target().ends_with("for_size.default");
    bounds(size, ValueRange { min: int("min").or(is_size.then_some(0)), max: int("max") })
}

/// The equalities of sizes under which a value is what is noted of it.
fn equal(given: &Value<TensorMeta>, noted: &Val, found: &mut Vec<SymBool>) {
    match (given, noted) {
        (Value::Tensor(given), Val::Tensor(noted)) if given.sizes.len() == noted.sizes.len() => {
            found.extend(given.sizes.iter().zip(&noted.sizes).map(|(a, b)| SymBool::eq(a, b)));
        }
        (Value::Int(given), Val::Int(noted)) => found.push(SymBool::eq(given, noted)),
        (Value::SymBool(given), Val::Bool(noted)) => match noted.as_bool() {
            Some(true) => found.push(given.clone()),
            Some(false) => found.push(!given.clone()),
            None => {}
        },
        (Value::List(given), Val::Seq { items, .. }) if given.len() == items.len() => {
            given.iter().zip(items).for_each(|(a, b)| equal(a, b, found));
        }
        _ => {}
    }
}
