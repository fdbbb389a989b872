//! The graph that is being written: calls of operators go in, nodes come out.

use indexmap::IndexMap;
use std::collections::{HashMap, HashSet};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Graph, InsertPoint, Meta, Node, NodeId, Opcode, Str, TensorMeta, Val, name_of_target};
use tracefx_ops::{Args, Op, Output, Registry, Tags, Value};
use tracefx_sym::{Compute, Expr, Func, SymInt, Symbol, SymbolKind};

/// A tensor of the new graph, as in `torch.fx`: it stands for what a node gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Proxy(usize);

type Kwargs = Vec<(Str, Arg)>;

/// What is known of a value.
struct Written {
    node: NodeId,
    meta: TensorMeta,
}

/// Writes nodes.
pub(crate) struct Recorder {
    graph: Graph,
    values: Vec<Written>,
    /// The nodes that hold symbolic numbers.
    numbers: HashMap<Expr, NodeId>,
    last_placeholder: Option<NodeId>,
    /// Where sizes that only the data decides come to be: a tensor, and its dimension.
    decided: HashMap<Symbol, (NodeId, usize)>,
    /// What was noted about the node that is being decomposed.
    pub(crate) notes: IndexMap<Str, Str>,
    /// Which of the nodes that a host gave it is.
    pub(crate) origin: Option<u32>,
    /// The operator and the value of that node, for what is unbacked.
    expected: Option<(Str, Val)>,
    /// Whether gradients flow through the nodes that are written now, as outside of `torch.no_grad()`.
    pub(super) is_grad_enabled: bool,
    /// The nodes through which none flows.
    frozen: HashSet<NodeId>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Recorder {
            graph: Graph::new(),
            values: Vec::new(),
            numbers: HashMap::new(),
            last_placeholder: None,
            decided: HashMap::new(),
            notes: IndexMap::new(),
            origin: None,
            expected: None,
            is_grad_enabled: true,
            frozen: HashSet::new(),
        }
    }

    /// The graph, once its output is there.
    pub(crate) fn finish(self) -> Graph {
        self.graph
    }

    /// The nodes that were written while no gradient flows.
    pub(super) fn take_frozen(&mut self) -> HashSet<NodeId> {
        std::mem::take(&mut self.frozen)
    }

    pub(crate) fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }

    pub(crate) fn node(&self, it: Proxy) -> NodeId {
        self.values[it.0].node
    }

    pub(crate) fn name(&self, it: NodeId) -> Str {
        self.graph.node(it).name().clone()
    }

    pub(crate) fn val(&self, it: NodeId) -> Option<Val> {
        self.graph.node(it).meta.val.clone()
    }

    pub(crate) fn meta(&self, it: Proxy) -> &TensorMeta {
        &self.values[it.0].meta
    }

    /// An input of the graph, under exactly this name.
    pub(crate) fn placeholder(&mut self, name: &str, target: &str, default: Vec<Arg>, meta: Meta) -> Result<NodeId> {
        let node = self.graph.create_named_node(Opcode::Placeholder, target, default, Vec::new(), name)?;
        *self.graph.meta_mut(node) = meta;
        self.last_placeholder = Some(node);
        Ok(node)
    }

    /// An input of the graph, under a free name close to this one.
    pub(crate) fn input(&mut self, name: &str, val: Val) -> Result<NodeId> {
        let node = self.graph.placeholder(name);
        let name = self.name(node);
        self.graph.set_target(node, &name)?;
        self.graph.meta_mut(node).val = Some(val);
        self.last_placeholder = Some(node);
        Ok(node)
    }

    /// Writes a call of a function of Python that gives a symbolic number, where no node gives it yet.
    pub(crate) fn compute(&mut self, number: Expr, function: &str, args: Vec<Value<Proxy>>) -> Result<()> {
        if self.numbers.contains_key(&number) {
            return Ok(());
        }
        let args = args.iter().map(|it| self.arg(it)).collect::<Result<_>>()?;
        let node = self.graph.call_function(function, args, Vec::new());
        let val = match &number {
            Expr::Int(it) => Val::Int(it.clone()),
            Expr::Float(it) => Val::Float(it.clone()),
            Expr::Bool(it) => Val::Bool(it.clone()),
        };
        self.note(node, val);
        self.numbers.insert(number, node);
        Ok(())
    }

    /// Whether a number can be computed from what the graph has.
    pub(crate) fn can_compute(&self, number: &Expr) -> bool {
        if self.numbers.contains_key(number) {
            return true;
        }
        let is_size = |it: &SymInt| self.values.iter().any(|written| written.meta.sizes.contains(it));
        match number {
            Expr::Int(it) if is_size(it) => true,
            Expr::Int(_) => number.symbols().into_iter().all(|it| {
                let it = SymInt::from(it);
                self.numbers.contains_key(&it.clone().into()) || is_size(&it)
            }),
            Expr::Float(_) | Expr::Bool(_) => number.symbols().is_empty(),
        }
    }

    /// What the node of this value is, to go on with.
    pub(crate) fn value_of(&mut self, node: NodeId, val: &Val) -> Value<Proxy> {
        match val {
            Val::None => Value::None,
            Val::Tensor(meta) => self.tensor(node, meta.clone()),
            Val::Int(it) => self.number(node, it.clone().into()),
            Val::Float(it) => self.number(node, it.clone().into()),
            Val::Bool(it) => self.number(node, it.clone().into()),
            Val::Seq { items, .. } => {
                Value::List(items.iter().enumerate().map(|(at, it)| self.item(node, at, it)).collect())
            }
        }
    }

    fn tensor(&mut self, node: NodeId, meta: TensorMeta) -> Value<Proxy> {
        self.values.push(Written { node, meta });
        Value::Tensor(Proxy(self.values.len() - 1))
    }

    /// A number, which is known as what this node gives where it is symbolic.
    fn number(&mut self, node: NodeId, expr: Expr) -> Value<Proxy> {
        let value = Value::from(expr.clone());
        if value.as_scalar().is_none() {
            self.numbers.entry(expr).or_insert(node);
        }
        value
    }

    /// One of the results of a node.
    fn item(&mut self, node: NodeId, at: usize, val: &Val) -> Value<Proxy> {
        if let Val::None = val {
            return Value::None;
        }
        let args = vec![Arg::Node(node), Arg::Int(at as i64)];
        let item = self.graph.call_function("operator.getitem", args, Vec::new());
        self.note(item, val.clone());
        self.value_of(item, val)
    }

    /// Writes the nodes that follow with what was noted about this one.
    pub(super) fn follow(&mut self, node: &Node) {
        let meta = &node.meta;
        self.notes = meta.entries.clone();
        self.origin = meta.origin;
        let op = node.target().strip_prefix("torch.ops.").unwrap_or_default();
        self.expected = meta.val.clone().map(|val| (op.into(), val));
    }

    /// Writes the nodes that follow without notes.
    pub(super) fn follow_none(&mut self) {
        self.notes.clear();
        (self.origin, self.expected) = (None, None);
    }

    fn note(&mut self, node: NodeId, val: Val) {
        if !self.is_grad_enabled {
            self.frozen.insert(node);
        }
        *self.graph.meta_mut(node) = Meta { val: Some(val), entries: self.notes.clone(), origin: self.origin };
    }

    /// Writes a node that is no operator of the registry, or not to be looked into.
    pub(crate) fn copy(
        &mut self,
        target: &str,
        args: Vec<Arg>,
        kwargs: Kwargs,
        val: Option<Val>,
    ) -> Result<(NodeId, Value<Proxy>)> {
        let name = match target.strip_prefix("torch.ops.") {
            // What takes graphs has no overloads.
            Some(op) => op.strip_prefix("higher_order.").map_or_else(|| name_of_packet(op), Into::into),
            None => name_of_target(Opcode::CallFunction, target).into_owned(),
        };
        let node = self.graph.create_node(Opcode::CallFunction, target, args, kwargs, Some(&name))?;
        let val = val.unwrap_or(Val::None);
        self.note(node, val.clone());
        Ok((node, self.value_of(node, &val)))
    }

    pub(crate) fn get_attr(&mut self, path: &str) -> NodeId {
        let node = self.graph.get_attr(path);
        if let Some(stack) = self.notes.get("nn_module_stack") {
            self.graph.meta_mut(node).entries.insert("nn_module_stack".into(), stack.clone());
        }
        node
    }

    /// Writes a call of an operator whose results the shape rule has told.
    pub(crate) fn record(&mut self, args: &Args<'_, Proxy>, outputs: &[Output]) -> Result<Vec<Value<Proxy>>> {
        let op = args.op;
        let (positional, kwargs) = self.written(args)?;
        let vals: Vec<Val> = outputs.iter().map(|it| self.val_of(args, it)).collect::<Result<_>>()?;
        let val = match <[Val; 1]>::try_from(vals) {
            Ok([val]) => val,
            Err(vals) if vals.is_empty() => Val::None,
            Err(items) => Val::Seq { items, is_tuple: true },
        };
        let target = format!("torch.ops.{}", op.name);
        let name = name_of_packet(&op.name);
        let node = self.graph.create_node(Opcode::CallFunction, &target, positional, kwargs, Some(&name))?;
        self.note(node, val.clone());
        let value = self.value_of(node, &val);
        let values = match value {
            Value::List(items) if outputs.len() > 1 => items,
            _ if outputs.is_empty() => Vec::new(),
            single => vec![single],
        };
        for (value, output) in values.iter().zip(outputs) {
            if let (Value::Tensor(it), Output::Unknown(_)) = (value, output) {
                self.note_decided(*it);
            }
        }
        Ok(values)
    }

    fn note_decided(&mut self, it: Proxy) {
        let Written { node, meta } = &self.values[it.0];
        for (dim, size) in meta.sizes.iter().enumerate() {
            if let Some(symbol) = size.as_symbol().filter(|it| is_decided_by_data(it)) {
                self.decided.entry(symbol.clone()).or_insert((*node, dim));
            }
        }
    }

    /// The arguments as PyTorch's dispatcher hands them on: without those at the end that are the defaults.
    fn written(&mut self, args: &Args<'_, Proxy>) -> Result<(Vec<Arg>, Kwargs)> {
        let (n_given, named) = args.written();
        let positional = args.values[..n_given].iter().map(|it| self.arg(it)).collect::<Result<_>>()?;
        let specs = &args.op.schema.args;
        let kwargs = named.into_iter().map(|at| Ok((specs[at].name.as_str().into(), self.arg(&args.values[at])?)));
        let kwargs = kwargs.collect::<Result<_>>()?;
        Ok((positional, kwargs))
    }

    /// A value as an argument of a node.
    pub(crate) fn arg(&mut self, value: &Value<Proxy>) -> Result<Arg> {
        Ok(match value {
            Value::None => Arg::None,
            Value::Bool(it) => Arg::Bool(*it),
            Value::Int(it) => self.int(it)?,
            Value::Float(it) => Arg::Float(*it),
            Value::Complex(it) => Arg::Complex(*it),
            Value::Str(it) => Arg::Str(it.clone()),
            Value::DType(it) => Arg::DType(*it),
            Value::Device(it) => Arg::Device(it.clone()),
            Value::Layout(it) => Arg::Layout(*it),
            Value::MemoryFormat(it) => Arg::MemoryFormat(*it),
            Value::SymBool(_) | Value::SymFloat(_) => {
                let expr = value.as_expr().expect("it is a number");
                let node = self.numbers.get(&expr).copied().ok_or_else(|| self.refuse(&format!("{expr:?}")))?;
                Arg::Node(node)
            }
            Value::Tensor(it) => Arg::Node(self.node(*it)),
            Value::List(items) => Arg::List(items.iter().map(|it| self.arg(it)).collect::<Result<_>>()?),
        })
    }

    pub(crate) fn val_of(&mut self, args: &Args<'_, Proxy>, output: &Output) -> Result<Val> {
        Ok(match output {
            Output::Tensor(meta) | Output::View { meta, .. } => Val::Tensor(meta.clone()),
            Output::Same(arg) => self.val_of_value(args, &args.values[*arg])?,
            Output::List(items) => {
                let items = items.iter().map(|it| self.val_of(args, it)).collect::<Result<_>>()?;
                Val::Seq { items, is_tuple: false }
            }
            Output::Value(value) => {
                self.val_of_value(args, &value.try_map(&mut |_| Err(args.unsupported("a tensor as a plain value")))?)?
            }
            // A program that was exported knows of its numbers and sizes already.
            Output::Unknown(value) => match (&self.expected, value, value.as_expr()) {
                (Some((op, val @ Val::Tensor(known))), Value::Tensor(meta), _)
                    if may_be(meta, known) || (**op == *args.op.name && is_like(meta, known)) =>
                {
                    val.clone()
                }
                // What a call is decomposed to may have another dtype and other dimensions, of the size that only the data tells.
                (Some((_, known)), Value::Tensor(meta), _) => Val::Tensor(self.with_size_of(meta, known)),
                (None, Value::Tensor(meta), _) => Val::Tensor(meta.clone()),
                (Some((_, val @ Val::Int(_))), _, Some(Expr::Int(_)))
                | (Some((_, val @ Val::Float(_))), _, Some(Expr::Float(_)))
                | (Some((_, val @ Val::Bool(_))), _, Some(Expr::Bool(_))) => val.clone(),
                (_, number, _) => self.val_of_value(
                    args,
                    &number.try_map(&mut |_| Err(args.unsupported("a tensor as a plain value")))?,
                )?,
            },
        })
    }

    /// The tensor with the size that the data decides named as in the value of the node that is decomposed, where each has one.
    fn with_size_of(&self, meta: &TensorMeta, known: &Val) -> TensorMeta {
        let is_written = |it: &Symbol| self.can_compute(&SymInt::from(it.clone()).into());
        let new =
            decided_sizes(&Val::Tensor(meta.clone())).into_iter().filter(|it| !is_written(it)).collect::<Vec<_>>();
        let mut old = Vec::from_iter(decided_sizes(known));
        if old.len() > 1 {
            old.retain(|it| !is_written(it));
        }
        let mut res = meta.clone();
        if let ([new], [old]) = (&new[..], &old[..]) {
            let renamed = |it: &Symbol| (it == new).then(|| SymInt::from(old.clone()));
            for number in res.sizes.iter_mut().chain(&mut res.strides) {
                *number = number.substitute(&renamed);
            }
        }
        res
    }

    fn val_of_value(&self, args: &Args<'_, Proxy>, value: &Value<Proxy>) -> Result<Val> {
        match (value, value.as_expr()) {
            (Value::Tensor(it), _) => Ok(Val::Tensor(self.meta(*it).clone())),
            (Value::None, _) => Ok(Val::None),
            (_, Some(Expr::Int(it))) => Ok(Val::Int(it)),
            (_, Some(Expr::Float(it))) => Ok(Val::Float(it)),
            (_, Some(Expr::Bool(it))) => Ok(Val::Bool(it)),
            (other, None) => Err(args.unsupported(format!("a {} as the value of a node", other.kind_name()))),
        }
    }

    /// The node of a symbolic int, or the number.
    fn int(&mut self, value: &SymInt) -> Result<Arg> {
        if let Some(known) = value.as_int() {
            return Ok(Arg::Int(known));
        }
        if let Some(node) = self.numbers.get(&Expr::from(value.clone())) {
            return Ok(Arg::Node(*node));
        }
        if let Some(node) = self.size_of_input(value)? {
            return Ok(Arg::Node(node));
        }
        Ok(value.compute(self)?.0)
    }

    /// A node with a step of the computation of sizes.
    fn step(&mut self, target: &str, a: Size, b: Size, value: SymInt) -> Result<Size> {
        if let Some(node) = self.numbers.get(&Expr::from(value.clone())) {
            return Ok((Arg::Node(*node), value));
        }
        let node = self.graph.call_function(target, vec![a.0, b.0], Vec::new());
        self.note(node, Val::Int(value.clone()));
        self.numbers.insert(value.clone().into(), node);
        Ok((Arg::Node(node), value))
    }

    /// Reads a size from an input that has it, unless it comes to be within the graph: such an input is known later than that.
    fn size_of_input(&mut self, value: &SymInt) -> Result<Option<NodeId>> {
        if value.symbols().iter().any(|it| self.decided.contains_key(it)) {
            return Ok(None);
        }
        let is_input = |it: &&Written| self.graph.node(it.node).op() == Opcode::Placeholder;
        let has = |it: &Written| Some((it.node, it.meta.sizes.iter().position(|it| it == value)?));
        let found = self.values.iter().filter(is_input).find_map(has);
        found.map(|(tensor, dim)| self.read_size(tensor, dim, value)).transpose()
    }

    /// Reads a size right after the tensor, or after all inputs, so that all that follows can use it.
    fn read_size(&mut self, tensor: NodeId, dim: usize, value: &SymInt) -> Result<NodeId> {
        if let Some(node) = self.numbers.get(&Expr::from(value.clone())) {
            return Ok(*node);
        }
        let is_input = self.graph.node(tensor).op() == Opcode::Placeholder;
        let after = self.last_placeholder.filter(|_| is_input).unwrap_or(tensor);
        let before = self.graph.set_insert_point(InsertPoint::After(after))?;
        let args = vec![Arg::Node(tensor), Arg::Int(dim as i64)];
        let target = "torch.ops.aten.sym_size.int";
        let node = self.graph.create_node(Opcode::CallFunction, target, args, Vec::new(), Some("sym_size_int"))?;
        self.graph.set_insert_point(before)?;
        self.graph.meta_mut(node).val = Some(Val::Int(value.clone()));
        if is_input {
            self.last_placeholder = Some(node);
        }
        self.numbers.insert(value.clone().into(), node);
        Ok(node)
    }
}

/// A size in the new graph, and what it is.
type Size = (Arg, SymInt);

impl Compute for Recorder {
    type Value = Size;
    type Error = Diagnostic;

    fn number(&mut self, value: i64) -> Result<Size> {
        Ok((Arg::Int(value), SymInt::from(value)))
    }

    /// Reads the symbol from the first tensor that has it as a size, or else a multiple of it.
    fn symbol(&mut self, symbol: &Symbol) -> Result<Size> {
        let value = SymInt::from(symbol.clone());
        if let Some(node) = self.numbers.get(&Expr::from(value.clone())) {
            return Ok((Arg::Node(*node), value));
        }
        if let Some((tensor, dim)) = self.decided.get(symbol).copied() {
            return Ok((Arg::Node(self.read_size(tensor, dim, &value)?), value));
        }
        let find = |has: &dyn Fn(&SymInt) -> bool| {
            self.values.iter().find_map(|it| Some((it.node, it.meta.sizes.iter().position(has)?)))
        };
        if let Some((tensor, dim)) = find(&|it| *it == value) {
            return Ok((Arg::Node(self.read_size(tensor, dim, &value)?), value));
        }
        let factor = |size: &SymInt| size.floor_div(&value).as_int().filter(|it| size == &(&value * *it));
        let Some((tensor, dim)) = find(&|it| factor(it).is_some()) else { return Err(self.refuse(symbol.name())) };
        let written = self.values.iter().find(|it| it.node == tensor).expect("it was found there");
        let multiple = written.meta.sizes[dim].clone();
        let factor = factor(&multiple).expect("it was found to be one");
        let node = self.read_size(tensor, dim, &multiple)?;
        let factor = (Arg::Int(factor), SymInt::from(factor));
        self.step("operator.floordiv", (Arg::Node(node), multiple), factor, value)
    }

    fn add(&mut self, a: Size, b: Size) -> Result<Size> {
        let value = &a.1 + &b.1;
        self.step("operator.add", a, b, value)
    }

    fn mul(&mut self, a: Size, b: Size) -> Result<Size> {
        let value = &a.1 * &b.1;
        self.step("operator.mul", a, b, value)
    }

    fn call(&mut self, func: Func, args: Vec<Size>) -> Result<Size> {
        let mut args = args.into_iter();
        let first = args.next().ok_or_else(|| self.refuse(func.name()))?;
        args.try_fold(first, |a, b| {
            let (target, value) = match func {
                Func::FloorDiv => ("operator.floordiv", a.1.floor_div(&b.1)),
                Func::Mod | Func::PythonMod => ("operator.mod", a.1.modulo(&b.1)),
                Func::Max => ("torch.sym_max", a.1.max(&b.1)),
                Func::Min => ("torch.sym_min", a.1.min(&b.1)),
                other => return Err(self.refuse(other.name())),
            };
            self.step(target, a, b, value)
        })
    }

    fn refuse(&mut self, what: &str) -> Diagnostic {
        Diagnostic::new(
            Code::NotImplemented,
            format!("a size of the program, `{what}`, cannot be computed in its graph"),
        )
    }
}

/// The name of nodes that call this operator: its own, without the overload, and one such as `__and__` without underscores.
fn name_of_packet(op: &str) -> String {
    let packet = op.rsplit_once('.').map_or(op, |(packet, _)| packet);
    let name = packet.rsplit_once('.').map_or(packet, |(_, name)| name);
    if let Some(name) = name.strip_prefix("__").and_then(|it| it.strip_suffix("__")) {
        return name.to_owned();
    }
    name_of_target(Opcode::CallFunction, &format!("torch.ops.{packet}")).into_owned()
}

/// Whether a node must stay though nothing uses it.
pub(crate) fn is_impure(node: &Node, registry: &Registry) -> bool {
    let is_impure = |op: &Op| op.may_write() || op.def.tags.has(Tags::SIDE_EFFECT) || op.def.tags.has(Tags::RANDOM);
    match node.op() {
        Opcode::Placeholder | Opcode::Output => true,
        Opcode::CallFunction => registry.get(node.target()).is_some_and(is_impure),
        Opcode::GetAttr | Opcode::CallMethod | Opcode::CallModule => false,
    }
}

/// Whether a tensor of which a rule tells this may be one that is known, whose sizes by the data have other names.
fn may_be(meta: &TensorMeta, known: &TensorMeta) -> bool {
    let is_decided = |it: &SymInt| it.as_symbol().is_some_and(is_decided_by_data);
    let is_told = |(a, b): (&SymInt, &SymInt)| a == b || (is_decided(a) && is_decided(b));
    is_like(meta, known) && meta.sizes.iter().zip(&known.sizes).all(is_told)
}

/// Whether a tensor has the dtype and the rank of another one.
fn is_like(meta: &TensorMeta, known: &TensorMeta) -> bool {
    meta.dtype == known.dtype && meta.sizes.len() == known.sizes.len()
}

fn is_decided_by_data(it: &Symbol) -> bool {
    it.kind() == SymbolKind::Unbacked
}

/// The sizes of a value that only the data decides.
fn decided_sizes(val: &Val) -> HashSet<Symbol> {
    match val {
        Val::Tensor(meta) => meta.sizes.iter().flat_map(SymInt::symbols).filter(is_decided_by_data).collect(),
        Val::Seq { items, .. } => items.iter().flat_map(decided_sizes).collect(),
        Val::None | Val::Int(_) | Val::Float(_) | Val::Bool(_) => HashSet::new(),
    }
}
