//! What must hold of sizes, checked where a graph runs: `torch.fx.passes.runtime_assert`.

mod lower;
#[cfg(test)]
mod tests;

use crate::fuser::replace_uses;
use lower::{Lowering, is_lowered, plain, val_of};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, GraphModule, InsertPoint, Meta, Node, NodeId, Opcode, Val};
use tracefx_sym::{Expr, Func, SymBool, SymInt, Symbol, SymbolKind, ValueRange};
use ts_rs::TS;

const ASSERT: &str = "torch.ops.aten._assert_scalar.default";
/// What users write, which becomes [`ASSERT`].
const USER_ASSERTS: &[&str] = &["torch._check", "torch._assert_scalar"];
const CONSTRAIN: &[&str] =
    &["torch.ops.aten.sym_constrain_range.default", "torch.ops.aten.sym_constrain_range_for_size.default"];

/// What is known of the sizes that a graph finds out when it runs: what PyTorch's `ShapeEnv` remembers.
#[derive(Clone, Debug, Default)]
pub struct DeferredAsserts {
    /// The values that symbols may have, as [`ExportedProgram`] keeps them in its `range_constraints`.
    ///
    /// [`ExportedProgram`]: https://pytorch.org/docs/stable/export.html#torch.export.ExportedProgram
    pub ranges: FxHashMap<Symbol, ValueRange>,
    /// What else holds: `deferred_runtime_asserts`.
    pub asserts: Vec<SymBool>,
}

/// What [`insert_deferred_runtime_asserts`] did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct InsertedAsserts {
    /// Whether the graph was changed.
    pub modified: bool,
    /// The conditions that are not checked, since no node gives one of their symbols or no function computes them.
    pub skipped: Vec<String>,
}

/// Inserts checks of what must hold of sizes that only the data decides, behind the nodes that give them:
/// `insert_deferred_runtime_asserts`. A symbol with a range is checked against its ends, then what was asserted is, in nodes
/// that compute it from sizes. Sizes of intermediate tensors that follow from those of inputs are computed from these, equal
/// ones are computed once, and checks that repeat others go. The values of the nodes must be known (`meta.val`).
///
/// Checks that are there already stay where they are, so a second run changes nothing; PyTorch makes them anew.
///
/// # Errors
/// None of a graph that is well formed.
///
/// # Example
/// ```
/// use tracefx_ir::{Graph, GraphModule, Val};
/// use tracefx_rewrite::{DeferredAsserts, insert_deferred_runtime_asserts};
/// use tracefx_sym::{SymInt, Symbol, ValueRange};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let n = graph.call_function("torch.ops.aten.item.default", vec![x.into()], vec![]);
/// let u0 = Symbol::integer("u0");
/// graph.meta_mut(n).val = Some(Val::Int(SymInt::from(u0.clone())));
/// graph.output(n.into());
/// let mut module = GraphModule::new(graph);
///
/// let mut known = DeferredAsserts::default();
/// known.ranges.insert(u0, ValueRange::at_least(2));
/// assert!(insert_deferred_runtime_asserts(&mut module, &known)?.modified);
/// let text = module.graph.to_string();
/// assert!(text.contains("Runtime assertion failed for expression u0 >= 2 on node 'ge'"), "{text}");
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
pub fn insert_deferred_runtime_asserts(module: &mut GraphModule, known: &DeferredAsserts) -> Result<InsertedAsserts> {
    let mut waiting = FxHashMap::<Option<Symbol>, Vec<SymBool>>::default();
    for assert in &known.asserts {
        waiting.entry(last_unbacked(assert)).or_default().push(assert.clone());
    }
    let graph = &mut module.graph;
    let checks = checks_of(graph);
    let asserted = checks.keys().cloned().collect();
    let mut inserter = Inserter {
        graph,
        ranges: &known.ranges,
        lowering: Lowering::default(),
        waiting,
        checks,
        asserted,
        constrained: FxHashSet::default(),
        bound: Vec::new(),
        moved: FxHashSet::default(),
        modified: false,
        skipped: Vec::new(),
    };
    inserter.run()?;
    let Inserter { waiting, modified, mut skipped, .. } = inserter;
    skipped.extend(waiting.into_values().flatten().map(|it| it.to_string()));
    skipped.sort();
    Ok(InsertedAsserts { modified, skipped })
}

struct Inserter<'a> {
    graph: &'a mut Graph,
    ranges: &'a FxHashMap<Symbol, ValueRange>,
    lowering: Lowering,
    /// What is to be checked when this symbol has a node.
    waiting: FxHashMap<Option<Symbol>, Vec<SymBool>>,
    /// The first check of each condition, of those that were there.
    checks: FxHashMap<Expr, NodeId>,
    asserted: FxHashSet<Expr>,
    /// The symbols whose ranges are checked.
    constrained: FxHashSet<Symbol>,
    /// The nodes that give symbols, and whether they were made for that.
    bound: Vec<(NodeId, bool)>,
    /// Nodes that stand before their old places, where they are not to be looked at again.
    moved: FxHashSet<NodeId>,
    modified: bool,
    skipped: Vec<String>,
}

impl Inserter<'_> {
    fn run(&mut self) -> Result<()> {
        let nodes: Vec<NodeId> = self.graph.nodes().collect();
        let Some(first) = nodes.iter().position(|&it| self.graph.node(it).op() != Opcode::Placeholder) else {
            return Ok(());
        };
        let before = self.graph.insert_point();
        self.graph.set_insert_point(InsertPoint::Before(nodes[first]))?;
        for (at, &id) in nodes.iter().enumerate() {
            if at == first {
                self.lowering.notes = Meta::default();
                self.bind_derived(&nodes[..first])?;
                let of_inputs = self.unbacked_of(&nodes[..first]).into_iter().map(Some);
                for symbol in [None].into_iter().chain(of_inputs) {
                    let asserts = self.waiting.remove(&symbol).unwrap_or_default();
                    self.check_all(asserts)?;
                }
            }
            if self.graph.node(id).op() == Opcode::Output {
                break;
            }
            if self.moved.contains(&id) {
                continue;
            }
            // What is read of inputs stands behind all of them.
            if at >= first {
                self.graph.set_insert_point(self.graph.next(id).map_or(InsertPoint::End, InsertPoint::Before))?;
            }
            self.lowering.notes = notes_of(self.graph.node(id));
            self.visit(id, at < first)?;
        }
        // What was computed from a node goes before it.
        for (node, is_new) in std::mem::take(&mut self.bound).into_iter().rev() {
            let is_unused = self.graph.contains(node) && self.graph.users(node).is_empty();
            if is_unused && self.graph.node(node).op() != Opcode::Placeholder {
                self.graph.erase_node(node)?;
                self.modified |= !is_new;
            }
        }
        self.graph.set_insert_point(before)?;
        Ok(())
    }

    fn visit(&mut self, id: NodeId, is_input: bool) -> Result<()> {
        let val = self.graph.node(id).meta.val.clone();
        if is_input {
            if let Some(val) = &val {
                self.bind(id, val, &mut |_| true, &mut Vec::new())?;
            }
            return Ok(());
        }
        if CONSTRAIN.contains(&&**self.graph.node(id).target()) && self.has_range(id) {
            self.modified = true;
            return self.graph.erase_node(id);
        }
        if self.visit_check(id)? {
            return Ok(());
        }
        let mut defined = Vec::new();
        if let Some(val) = &val {
            val.for_each_symbol(&mut |symbol| {
                let is_new = is_unbacked(symbol) && self.lowering.get(&expr_of(symbol)).is_none();
                if is_new && !defined.contains(symbol) {
                    defined.push(symbol.clone());
                }
            });
        }
        if defined.is_empty() && self.merge(id, val.as_ref())? {
            return Ok(());
        }
        if let Some(expr) = val.as_ref().and_then(symbolic) {
            self.lowering.nodes.entry(plain(&expr)).or_insert(id);
        }
        if let Some(val) = val.filter(|_| !defined.is_empty()) {
            let wanted = defined.clone();
            self.bind(id, &val, &mut |it| wanted.contains(it), &mut Vec::new())?;
        }
        for symbol in defined {
            if self.lowering.get(&expr_of(&symbol)).is_none() {
                continue;
            }
            if self.constrained.insert(symbol.clone()) {
                self.check_range(&symbol)?;
            }
            let asserts = self.waiting.remove(&Some(symbol)).unwrap_or_default();
            self.check_all(asserts)?;
        }
        Ok(())
    }

    /// Spells a check as an operator, or takes it away where another one checks the same. Whether there is nothing more to
    /// be done.
    fn visit_check(&mut self, id: NodeId) -> Result<bool> {
        let node = self.graph.node(id);
        let Some(condition) = condition_of(node) else { return Ok(false) };
        let checked = checked_of(self.graph, &condition);
        let is_repeated = checked.as_ref().is_some_and(|it| self.checks.get(&plain(it)) != Some(&id));
        if is_repeated || condition == Arg::Bool(true) {
            self.modified = true;
            self.graph.erase_node(id)?;
            let is_unused =
                |it: &NodeId| self.graph.users(*it).is_empty() && self.graph.node(*it).op() != Opcode::Placeholder;
            if let Some(arg) = condition.as_node().filter(is_unused) {
                let known = checked.as_ref().map(plain).filter(|it| self.lowering.nodes.get(it) == Some(&arg));
                known.map(|it| self.lowering.nodes.remove(&it));
                self.graph.erase_node(arg)?;
            }
        } else if &**node.target() != ASSERT {
            let given = node.args().get(1).or(node.kwarg("message")).or(node.kwarg("assert_msg"));
            let message = match given {
                Some(Arg::Str(text)) => text.to_string(),
                Some(_) | None => message(self.graph, checked.as_ref(), &condition),
            };
            let meta = node.meta.clone();
            let point = self.graph.set_insert_point(InsertPoint::Before(id))?;
            let check = self.graph.call_function(ASSERT, vec![condition, Arg::str(&message)], vec![]);
            *self.graph.meta_mut(check) = meta;
            self.graph.set_insert_point(point)?;
            replace_uses(self.graph, &FxHashMap::from_iter([(id, check)]), &|_| true)?;
            self.graph.erase_node(id)?;
            self.modified = true;
        }
        Ok(true)
    }

    /// Uses another node that has the same value in the place of this one, which goes; of a size that follows from others,
    /// what computes it. Whether that was possible.
    fn merge(&mut self, id: NodeId, val: Option<&Val>) -> Result<bool> {
        let Some(expr) = val.and_then(symbolic) else { return Ok(false) };
        // An input that comes late stays an input.
        if self.graph.node(id).op() == Opcode::Placeholder {
            return Ok(false);
        }
        let is_of_intermediate = self.is_size_of_intermediate(id, &expr);
        let other = match self.lowering.get(&expr) {
            Some(other) => Some(other),
            None if is_of_intermediate && self.has_nodes(&expr) => self.lowering.lower(self.graph, &expr).as_node(),
            None => None,
        };
        let Some(other) = other.filter(|&it| it != id) else { return Ok(false) };
        replace_uses(self.graph, &FxHashMap::from_iter([(id, other)]), &|_| true)?;
        self.graph.erase_node(id)?;
        self.modified = true;
        Ok(true)
    }

    /// Whether a range is known of what the call constrains, which is checked in its place.
    fn has_range(&self, id: NodeId) -> bool {
        let constrained = self.graph.node(id).args().first().and_then(Arg::as_node);
        let expr = constrained.and_then(|it| symbolic(self.graph.node(it).meta.val.as_ref()?));
        matches!(expr, Some(Expr::Int(it)) if it.as_symbol().is_some_and(|it| self.ranges.contains_key(it)))
    }

    fn is_size_of_intermediate(&self, id: NodeId, expr: &Expr) -> bool {
        let is_intermediate = |arg: &Arg| {
            arg.as_node().is_some_and(|it| {
                let node = self.graph.node(it);
                node.op() != Opcode::Placeholder && matches!(node.meta.val, Some(Val::Tensor(_) | Val::Seq { .. }))
            })
        };
        is_lowered(expr) && self.graph.node(id).args().iter().any(is_intermediate)
    }

    fn has_nodes(&self, expr: &Expr) -> bool {
        expr.symbols().iter().all(|it| self.lowering.get(&expr_of(it)).is_some())
    }

    /// Finds or makes nodes that give the symbols that a value is made of, of those that are wanted and have none.
    fn bind(
        &mut self,
        id: NodeId,
        val: &Val,
        wanted: &mut dyn FnMut(&Symbol) -> bool,
        path: &mut Vec<i64>,
    ) -> Result<()> {
        match val {
            Val::Int(it) => self.bind_int(id, it, wanted, path, None),
            Val::Tensor(meta) => {
                for (dim, size) in meta.sizes.iter().enumerate() {
                    self.bind_int(id, size, wanted, path, Some(("torch.ops.aten.sym_size.int", Some(dim))))?;
                }
                for (dim, stride) in meta.strides.iter().enumerate() {
                    self.bind_int(id, stride, wanted, path, Some(("torch.ops.aten.sym_stride.int", Some(dim))))?;
                }
                let offset = ("torch.ops.aten.sym_storage_offset.default", None);
                self.bind_int(id, &meta.storage_offset, wanted, path, Some(offset))
            }
            Val::Seq { items, .. } => {
                for (at, item) in items.iter().enumerate() {
                    path.push(at as i64);
                    self.bind(id, item, wanted, path)?;
                    path.pop();
                }
                Ok(())
            }
            Val::None | Val::Float(_) | Val::Bool(_) => Ok(()),
        }
    }

    fn bind_int(
        &mut self,
        id: NodeId,
        int: &SymInt,
        wanted: &mut dyn FnMut(&Symbol) -> bool,
        path: &[i64],
        read: Option<(&str, Option<usize>)>,
    ) -> Result<()> {
        let Some(symbol) = int.as_symbol().filter(|it| wanted(it)) else { return Ok(()) };
        let expr = expr_of(symbol);
        if self.lowering.get(&expr).is_some() {
            return Ok(());
        }
        let mut node = id;
        for &at in path {
            node = self.read(node, "operator.getitem", vec![Arg::Int(at)], None)?;
        }
        if let Some((target, dim)) = read {
            let rest = dim.map(|it| Arg::Int(it as i64)).into_iter().collect();
            node = self.read(node, target, rest, val_of(&expr))?;
        }
        self.lowering.nodes.insert(expr, node);
        Ok(())
    }

    /// Computes the symbols that are waited for, and stand in sizes of inputs such as `2*s0 + 1` alone.
    fn bind_derived(&mut self, inputs: &[NodeId]) -> Result<()> {
        let wanted: FxHashSet<Symbol> =
            self.waiting.values().flatten().flat_map(|it| Expr::Bool(it.clone()).symbols()).collect();
        for &input in inputs {
            let Some(Val::Tensor(meta)) = self.graph.node(input).meta.val.clone() else { continue };
            for (dim, size) in meta.sizes.iter().enumerate() {
                let Some((symbol, factor, offset)) = linear_of(size) else { continue };
                let expr = expr_of(&symbol);
                if !wanted.contains(&symbol) || self.lowering.get(&expr).is_some() {
                    continue;
                }
                let of = |it: SymInt| val_of(&Expr::Int(it));
                let mut node =
                    self.read(input, "torch.ops.aten.sym_size.int", vec![Arg::Int(dim as i64)], of(size.clone()))?;
                if offset != 0 {
                    node = self.read(node, "operator.sub", vec![Arg::Int(offset)], of(size - offset))?;
                }
                if factor != 1 {
                    node = self.read(node, "operator.floordiv", vec![Arg::Int(factor)], val_of(&expr))?;
                }
                self.lowering.nodes.insert(expr, node);
            }
        }
        Ok(())
    }

    /// The symbols of these inputs that only the data tells.
    fn unbacked_of(&self, inputs: &[NodeId]) -> Vec<Symbol> {
        let mut res = Vec::new();
        for val in inputs.iter().filter_map(|&it| self.graph.node(it).meta.val.as_ref()) {
            val.for_each_symbol(&mut |it| {
                if is_unbacked(it) && !res.contains(it) {
                    res.push(it.clone());
                }
            });
        }
        res
    }

    /// A call that reads something of a node: one that is there, which moves up, or a new one.
    fn read(&mut self, node: NodeId, target: &str, rest: Vec<Arg>, val: Option<Val>) -> Result<NodeId> {
        let args: Vec<Arg> = [Arg::Node(node)].into_iter().chain(rest).collect();
        let is_same = |&it: &NodeId| {
            let user = self.graph.node(it);
            &**user.target() == target && user.args() == args && user.kwargs().is_empty()
        };
        let found = self.graph.users(node).iter().find(is_same);
        let Some(found) = found else {
            let made = self.lowering.emit(self.graph, target, args, val);
            self.bound.push((made, true));
            return Ok(made);
        };
        if let InsertPoint::Before(anchor) = self.graph.insert_point()
            && self.graph.compare(found, anchor).is_ge()
        {
            if found == anchor {
                // It stands here already; what is inserted from now on goes behind it.
                let next = self.graph.next(found).map_or(InsertPoint::End, InsertPoint::Before);
                self.graph.set_insert_point(next)?;
            } else {
                self.graph.move_before(found, anchor)?;
                self.modified = true;
            }
            self.moved.insert(found);
        }
        self.bound.push((found, false));
        Ok(found)
    }

    /// Checks the ends of a symbol's range, where it has some.
    fn check_range(&mut self, symbol: &Symbol) -> Result<()> {
        let Some(range) = self.ranges.get(symbol) else { return Ok(()) };
        let value = SymInt::from(symbol.clone());
        // PyTorch writes "no bound" as this number.
        let max = range.max.filter(|&it| it < i64::MAX - 1);
        let ends = [
            range.min.filter(|&it| it > i64::MIN).map(|it| SymBool::ge(&value, &it.into())),
            max.map(|it| SymBool::le(&value, &it.into())),
        ];
        ends.into_iter().flatten().try_for_each(|it| self.check(it))
    }

    fn check_all(&mut self, asserts: Vec<SymBool>) -> Result<()> {
        for assert in asserts {
            let expr = Expr::Bool(assert.clone());
            let missing = expr.symbols().into_iter().find(|it| self.lowering.get(&expr_of(it)).is_none());
            match missing {
                _ if self.is_checked_by_range(&assert) => {}
                _ if !is_lowered(&expr) => self.skipped.push(assert.to_string()),
                Some(missing) => self.waiting.entry(Some(missing)).or_default().push(assert),
                None => self.check(assert)?,
            }
        }
        Ok(())
    }

    /// Whether this bounds a symbol whose range is checked, and follows from that.
    fn is_checked_by_range(&self, assert: &SymBool) -> bool {
        let SymBool::Call(call) = assert else { return false };
        let [Expr::Int(a), Expr::Int(b)] = call.args() else { return false };
        let (symbol, value, is_left) = match (a.as_symbol(), b.as_int(), a.as_int(), b.as_symbol()) {
            (Some(symbol), Some(value), _, _) => (symbol, value, true),
            (_, _, Some(value), Some(symbol)) => (symbol, value, false),
            _ => return false,
        };
        let Some(range) = self.ranges.get(symbol).filter(|_| self.constrained.contains(symbol)) else { return false };
        match (call.func(), is_left) {
            (Func::Le, true) | (Func::Ge, false) => range.max.is_some_and(|it| it <= value),
            (Func::Ge, true) | (Func::Le, false) => range.min.is_some_and(|it| it >= value),
            (_, _) => false,
        }
    }

    fn check(&mut self, assert: SymBool) -> Result<()> {
        let expr = Expr::Bool(assert);
        if !self.asserted.insert(plain(&expr)) {
            return Ok(());
        }
        let condition = self.lowering.lower(self.graph, &expr);
        if condition == Arg::Bool(true) {
            return Ok(());
        }
        let message = message(self.graph, Some(&expr), &condition);
        self.lowering.emit(self.graph, ASSERT, vec![condition, Arg::str(&message)], None);
        self.modified = true;
        Ok(())
    }
}

/// PyTorch's words for a check that fails.
fn message(graph: &Graph, checked: Option<&Expr>, condition: &Arg) -> String {
    let expr = checked.map_or("None".to_owned(), ToString::to_string);
    let name = condition.as_node().map_or_else(|| graph.format_arg(condition), |it| graph.node(it).name().to_string());
    format!("Runtime assertion failed for expression {expr} on node '{name}'")
}

/// The first node that checks each condition.
fn checks_of(graph: &Graph) -> FxHashMap<Expr, NodeId> {
    let mut res = FxHashMap::default();
    for id in graph.nodes() {
        if let Some(checked) = condition_of(graph.node(id)).and_then(|it| checked_of(graph, &it)) {
            res.entry(plain(&checked)).or_insert(id);
        }
    }
    res
}

/// What is known of a condition that is checked.
fn checked_of(graph: &Graph, condition: &Arg) -> Option<Expr> {
    match condition {
        Arg::Bool(it) => Some(Expr::Bool(SymBool::Const(*it))),
        it => symbolic(graph.node(it.as_node()?).meta.val.as_ref()?),
    }
}

/// What a check checks.
fn condition_of(node: &Node) -> Option<Arg> {
    let target = &**node.target();
    let is_check = node.op() == Opcode::CallFunction && (target == ASSERT || USER_ASSERTS.contains(&target));
    let condition = || node.args().first().or(node.kwarg("cond")).or(node.kwarg("self"));
    is_check.then(condition).flatten().cloned()
}

/// The notes that nodes share with the one that they are inserted for.
fn notes_of(node: &Node) -> Meta {
    let keys = ["stack_trace", "nn_module_stack", "custom"];
    let is_shared = |key: &str| keys.contains(&key);
    let entries = node.meta.entries.iter().filter(|(key, _)| is_shared(key));
    Meta { entries: entries.map(|(key, text)| (key.clone(), text.clone())).collect(), ..Meta::default() }
}

/// The symbolic number that a value is.
fn symbolic(val: &Val) -> Option<Expr> {
    match val {
        Val::Int(it) => it.is_symbolic().then(|| Expr::Int(it.clone())),
        Val::Bool(it @ SymBool::Call(_)) => Some(Expr::Bool(it.clone())),
        Val::Float(_) | Val::Bool(_) | Val::None | Val::Tensor(_) | Val::Seq { .. } => None,
    }
}

fn expr_of(symbol: &Symbol) -> Expr {
    Expr::Int(SymInt::from(symbol.clone()))
}

/// The symbol, the factor and the offset of a size that is `factor * symbol + offset`.
fn linear_of(size: &SymInt) -> Option<(Symbol, i64, i64)> {
    let [symbol] = <[Symbol; 1]>::try_from(size.symbols()).ok()?;
    let at = |value: i64| size.substitute(&|it| (*it == symbol).then(|| value.into())).as_int();
    let offset = at(0)?;
    let factor = at(1)?.checked_sub(offset)?;
    let is_linear = factor > 0 && SymInt::from(symbol.clone()) * factor + offset == *size;
    is_linear.then_some((symbol, factor, offset))
}

fn is_unbacked(symbol: &Symbol) -> bool {
    symbol.kind() == SymbolKind::Unbacked
}

/// The symbol of a condition that the graph finds out last.
fn last_unbacked(assert: &SymBool) -> Option<Symbol> {
    let symbols = Expr::Bool(assert.clone()).symbols().into_iter().filter(is_unbacked);
    symbols.max_by_key(|it| it.name()[1..].parse::<u64>().unwrap_or(u64::MAX))
}
