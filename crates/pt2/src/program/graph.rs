//! Graphs of the schema, rebuilt as FX graphs node by node, exactly as PyTorch's loader does.

use super::names::Names;
use super::values::{Values, device};
use crate::limits::Limits;
use crate::schema::{
    self, Argument, ArgumentKind, NamedArgument, OptionalTensorArgument, SymBoolArgument, SymFloatArgument,
    SymIntArgument, TensorArgument,
};
use indexmap::IndexMap;
use std::collections::{HashMap, HashSet};
use tracefx_core::{Code, Complex64, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, Str, Val, name_of_target};
use tracefx_ops::{Registry, Schema};
use tracefx_sym::{SymInt, Symbol};

/// What the graphs of one program share.
pub(super) struct Builder<'a> {
    limits: &'a Limits,
    registry: &'a Registry,
    values: Values<'a>,
    nodes_left: u64,
    depth: u64,
}

/// One graph under construction; a sub-graph has a scope of its own.
struct Scope<'a> {
    schema: &'a schema::Graph,
    graph: Graph,
    /// The node of each value that the file names.
    nodes: HashMap<&'a str, NodeId>,
    names: Names<'a>,
    subgraphs: IndexMap<&'a str, (&'a schema::Graph, GraphModule)>,
}

/// How PyTorch's loader treats a target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetKind {
    /// Python's operators on symbolic numbers: all arguments are positional.
    SymOp,
    /// A higher-order operator: unnamed arguments are positional.
    HigherOrder,
    /// A plain Python function: as a higher-order operator.
    Function,
    /// An operator with a schema, or a target that nobody knows.
    Operator,
}

impl TargetKind {
    /// The kind of a target as files have it.
    pub(crate) fn of(target: &str) -> Self {
        let is_sym = target.starts_with("_operator.") || target.starts_with("math.");
        if is_sym || target.starts_with("torch.sym_") || target == "torch.ops.aten.item.default" {
            TargetKind::SymOp
        } else if target.starts_with("torch.ops.higher_order.") {
            TargetKind::HigherOrder
        } else if target.starts_with("torch.") && !target.starts_with("torch.ops.") {
            TargetKind::Function
        } else {
            TargetKind::Operator
        }
    }
}

/// The key of a note that an operator which is not registered has: the names of the parameters of its positional arguments,
/// a JSON list. Nothing else knows them when the program is saved.
pub(crate) const ARG_NAMES: &str = "arg_names";

type Entries = IndexMap<Str, Str>;
type Kwargs = Vec<(Str, Arg)>;

impl<'a> Builder<'a> {
    pub(super) fn new(limits: &'a Limits, registry: &'a Registry) -> Self {
        Builder { limits, registry, values: Values::new(limits), nodes_left: limits.nodes, depth: 0 }
    }

    /// The symbol of this name, as the program's expressions declare it.
    pub(super) fn symbol(&self, name: &str) -> Symbol {
        self.values.symbol(name)
    }

    /// Rebuilds a graph. `constant_names` are the names of its constant inputs, by position.
    pub(super) fn module(
        &mut self,
        schema: &'a schema::Graph,
        constant_names: &HashMap<usize, &str>,
    ) -> Result<GraphModule> {
        Limits::check("subgraph_depth", self.limits.subgraph_depth, self.depth)?;
        let n_nodes = schema.nodes.len() as u64;
        self.nodes_left = self
            .nodes_left
            .checked_sub(n_nodes)
            .ok_or_else(|| crate::limits::exceeded("nodes", self.limits.nodes, format!("{n_nodes} more")))?;
        let mut scope = Scope {
            schema,
            graph: Graph::new(),
            nodes: HashMap::new(),
            names: Names::new(value_names(schema)),
            subgraphs: IndexMap::new(),
        };
        for (at, input) in schema.inputs.iter().enumerate() {
            self.input(&mut scope, at, input, constant_names)?;
        }
        for node in &schema.nodes {
            self.node(&mut scope, node).map_err(|error| {
                let error = error.op(&*node.target);
                match node.name.as_deref().or_else(|| node.outputs.iter().find_map(value_name)) {
                    Some(name) => error.node(name),
                    None => error,
                }
            })?;
        }
        self.output(&mut scope).map_err(|error| error.node("output"))?;
        let mut module = GraphModule::new(scope.graph);
        for (name, (_, subgraph)) in scope.subgraphs {
            module.attributes.insert(name.into(), Attribute::Module(Box::new(subgraph)));
        }
        Ok(module)
    }

    fn input(
        &mut self,
        scope: &mut Scope<'a>,
        at: usize,
        input: &'a Argument,
        constant_names: &HashMap<usize, &str>,
    ) -> Result<()> {
        if let Some(name) = value_name(input) {
            self.check_name(name)?;
            scope.names.note(name);
            let node = scope.graph.create_named_node(Opcode::Placeholder, name, vec![], vec![], name)?;
            return self.define(scope, name, node);
        }
        let val = match input {
            Argument::None(_) => Some(Val::None),
            Argument::Int(it) => Some(Val::Int(SymInt::from(*it))),
            Argument::Float(it) => Some(Val::Float(it.0.into())),
            Argument::Bool(it) => Some(Val::Bool((*it).into())),
            Argument::String(_) => None,
            _ => return Err(invalid(format!("input {at} is neither a value nor a constant"))),
        };
        let target =
            constant_names.get(&at).filter(|it| !it.is_empty()).map_or(format!("arg{at}"), |it| it.to_string());
        self.check_name(&target)?;
        let name = scope.names.generate(&target);
        let node = scope.graph.create_named_node(Opcode::Placeholder, &target, vec![], vec![], &name)?;
        scope.graph.meta_mut(node).val = val;
        Ok(())
    }

    fn node(&mut self, scope: &mut Scope<'a>, node: &'a schema::Node) -> Result<()> {
        self.check_name(&node.target)?;
        let kind = TargetKind::of(&node.target);
        let mut entries: Entries =
            node.metadata.iter().map(|(key, text)| ((&**key).into(), (&**text).into())).collect();
        let shared = shared_entries(&entries);
        let (args, kwargs) = self.arguments(scope, node, kind, &shared)?;
        if kind == TargetKind::Operator && self.registry.get(&node.target).is_none() && !args.is_empty() {
            let names = node.inputs.iter().map(|it| &*it.name).take(args.len()).collect::<Vec<_>>();
            entries.insert(ARG_NAMES.into(), serde_json::json!(names).to_string().into());
        }
        let target = match node.target.strip_prefix("_operator.") {
            Some(name) => format!("operator.{name}"),
            None => node.target.clone(),
        };
        let result = Results::of(node, kind)?;
        let asked = node.name.as_deref().or(match result {
            Results::Value(name) => Some(name),
            Results::None | Results::Unnamed | Results::Parts(_) => None,
        });
        let default_name = || name_of_target(Opcode::CallFunction, &target);
        let name = match result {
            Results::Value(name) => {
                self.check_name(name)?;
                scope.names.note(asked.unwrap_or(name));
                name.to_string()
            }
            // PyTorch renames these after it made them.
            Results::None => {
                scope.names.generate(asked.unwrap_or(&default_name()));
                scope.names.generate(&format!("{}_unused", default_name()))
            }
            Results::Unnamed | Results::Parts(_) => scope.names.generate(asked.unwrap_or(&default_name())),
        };
        let id = scope.graph.create_named_node(Opcode::CallFunction, &target, args, kwargs, &name)?;
        match result {
            Results::Value(name) => self.define(scope, name, id)?,
            Results::None => scope.graph.meta_mut(id).val = Some(Val::None),
            Results::Unnamed => {}
            Results::Parts(parts) => {
                let val = self.parts(scope, id, &parts, &shared, true)?;
                scope.graph.meta_mut(id).val = Some(val);
            }
        }
        scope.graph.meta_mut(id).entries = entries;
        Ok(())
    }

    /// Makes the `getitem` nodes for the parts of a result, which files leave out.
    fn parts(
        &mut self,
        scope: &mut Scope<'a>,
        source: NodeId,
        parts: &[Part<'a>],
        entries: &Entries,
        is_tuple: bool,
    ) -> Result<Val> {
        let mut items = Vec::with_capacity(parts.len());
        for (at, part) in parts.iter().enumerate() {
            let args = vec![Arg::Node(source), Arg::Int(at as i64)];
            let create = |scope: &mut Scope<'a>, name: &str| {
                let id = scope.graph.create_named_node(Opcode::CallFunction, "operator.getitem", args, vec![], name)?;
                scope.graph.meta_mut(id).entries = entries.clone();
                Ok::<_, Diagnostic>(id)
            };
            match part {
                Part::Value(name) => {
                    self.check_name(name)?;
                    scope.names.note(name);
                    let id = create(scope, name)?;
                    self.define(scope, name, id)?;
                    items.push(scope.graph.node(id).meta.val.clone().unwrap_or(Val::None));
                }
                Part::None => {
                    let name = scope.names.generate("as_none");
                    let id = create(scope, &name)?;
                    scope.graph.meta_mut(id).val = Some(Val::None);
                    items.push(Val::None);
                }
                Part::List(parts) => {
                    let name = scope.names.generate("getitem");
                    let id = create(scope, &name)?;
                    let val = self.parts(scope, id, parts, entries, false)?;
                    scope.graph.meta_mut(id).val = Some(val.clone());
                    items.push(val);
                }
            }
        }
        Ok(Val::Seq { items, is_tuple })
    }

    fn output(&mut self, scope: &mut Scope<'a>) -> Result<()> {
        let outputs = &scope.schema.outputs;
        let result = outputs.iter().map(|it| self.argument(scope, it, &Entries::new())).collect::<Result<Vec<_>>>()?;
        let result = match (scope.schema.is_single_tensor_return, &result[..]) {
            (true, [Arg::Node(node)]) => Arg::Node(*node),
            (true, _) => return Err(invalid("the graph is to return one tensor, but has other outputs")),
            (false, _) => Arg::Tuple(result),
        };
        let name = scope.names.generate("output");
        let id = scope.graph.create_named_node(Opcode::Output, "output", vec![result], vec![], &name)?;
        let val_of = |arg: &Arg| match arg {
            Arg::Node(node) => scope.graph.node(*node).meta.val.clone(),
            Arg::Int(it) => Some(Val::Int(SymInt::from(*it))),
            Arg::Float(it) => Some(Val::Float((*it).into())),
            Arg::Bool(it) => Some(Val::Bool((*it).into())),
            _ => None,
        };
        let val = match &scope.graph.node(id).args()[0] {
            Arg::Tuple(items) => {
                let items = items.iter().map(|it| val_of(it).unwrap_or(Val::None)).collect();
                Some(Val::Seq { items, is_tuple: true })
            }
            one => val_of(one),
        };
        scope.graph.meta_mut(id).val = val;
        Ok(())
    }

    /// Binds a name of the file to its node, with what is known of the value.
    fn define(&mut self, scope: &mut Scope<'a>, name: &'a str, node: NodeId) -> Result<()> {
        scope.graph.meta_mut(node).val = self.values.val(scope.schema, name).map_err(|error| error.node(name))?;
        if scope.nodes.insert(name, node).is_some() {
            return Err(invalid(format!("the name `{name}` is given twice")).node(name));
        }
        Ok(())
    }

    fn arguments(
        &mut self,
        scope: &mut Scope<'a>,
        node: &'a schema::Node,
        kind: TargetKind,
        entries: &Entries,
    ) -> Result<(Vec<Arg>, Kwargs)> {
        let elements =
            node.inputs.iter().map(|it| &it.arg).chain(&node.outputs).map(|it| 1 + list_len(it)).sum::<u64>();
        Limits::check("node_args", self.limits.node_args, elements)?;
        let mut values = Vec::with_capacity(node.inputs.len());
        for NamedArgument { name, arg, .. } in &node.inputs {
            self.check_name(name)?;
            values.push(self.argument(scope, arg, entries)?);
        }
        match (kind, self.registry.get(node.target.strip_prefix('_').unwrap_or(&node.target))) {
            (TargetKind::Operator, Some(op)) => by_name(&op.schema, &node.inputs, values),
            (TargetKind::SymOp, Some(op)) => {
                let n_required = op.schema.args.iter().filter(|it| it.default.is_none()).count();
                if !(n_required..=op.schema.args.len()).contains(&values.len()) {
                    let what = format!("the operator has {n_required} arguments, and {} are given", values.len());
                    return Err(invalid(what).note(format!("the operator is `{}`", op.schema)));
                }
                in_order(kind, &node.inputs, values)
            }
            _ => in_order(kind, &node.inputs, values),
        }
    }

    fn argument(&mut self, scope: &mut Scope<'a>, arg: &'a Argument, entries: &Entries) -> Result<Arg> {
        let tensor = |scope: &Scope<'a>, it: &TensorArgument| scope.value(&it.name);
        let list = |items: Result<Vec<Arg>>| items.map(Arg::List);
        match arg {
            Argument::None(_) => Ok(Arg::None),
            Argument::Tensor(it) => tensor(scope, it),
            Argument::Tensors(them) => list(them.iter().map(|it| tensor(scope, it)).collect()),
            Argument::NestedTensors(lists) => {
                let inner = |them: &Vec<TensorArgument>| list(them.iter().map(|it| tensor(scope, it)).collect());
                list(lists.iter().map(inner).collect())
            }
            Argument::OptionalTensor(it) => scope.optional_tensor(it),
            Argument::OptionalTensors(them) => list(them.iter().map(|it| scope.optional_tensor(it)).collect()),
            Argument::Int(it) => Ok(Arg::Int(*it)),
            Argument::Ints(them) => Ok(Arg::List(them.iter().copied().map(Arg::Int).collect())),
            // Grids of kernels, which are tuples.
            Argument::IntLists(lists) => {
                let inner = |them: &Vec<i64>| Arg::Tuple(them.iter().copied().map(Arg::Int).collect());
                Ok(Arg::List(lists.iter().map(inner).collect()))
            }
            Argument::Float(it) => Ok(Arg::Float(it.0)),
            Argument::Floats(them) => Ok(Arg::List(them.iter().map(|it| Arg::Float(it.0)).collect())),
            Argument::FloatLists(lists) => {
                let inner = |them: &Vec<schema::Float>| Arg::List(them.iter().map(|it| Arg::Float(it.0)).collect());
                Ok(Arg::List(lists.iter().map(inner).collect()))
            }
            Argument::Complex(it) => Ok(Arg::Complex(Complex64 { re: it.real.0, im: it.imag.0 })),
            Argument::String(it) => Ok(Arg::str(it)),
            Argument::Strings(them) => Ok(Arg::List(them.iter().map(|it| Arg::str(it)).collect())),
            Argument::Bool(it) => Ok(Arg::Bool(*it)),
            Argument::Bools(them) => Ok(Arg::List(them.iter().copied().map(Arg::Bool).collect())),
            Argument::SymInt(it) => scope.sym_int(it),
            Argument::SymInts(them) => list(them.iter().map(|it| scope.sym_int(it)).collect()),
            Argument::SymFloat(it) => scope.sym_float(it),
            Argument::SymFloats(them) => list(them.iter().map(|it| scope.sym_float(it)).collect()),
            Argument::SymBool(it) => scope.sym_bool(it),
            Argument::SymBools(them) => list(them.iter().map(|it| scope.sym_bool(it)).collect()),
            Argument::ScalarType(it) => Ok(Arg::DType(it.0)),
            Argument::MemoryFormat(it) => Ok(Arg::MemoryFormat(it.0)),
            Argument::Layout(it) => Ok(Arg::Layout(it.0)),
            Argument::Device(it) => Ok(Arg::Device(device(it))),
            Argument::Operator(it) if is_of_pytorch(it) => Ok(Arg::Op((&**it).into())),
            // To PyTorch, too, an operator that is not registered is no more than its name.
            Argument::Operator(it) => Ok(Arg::str(it)),
            Argument::CustomObj(it) => scope.value(&it.name),
            Argument::StringToArgument(items) => {
                let item =
                    |(key, it): (&'a String, &'a Argument)| Ok(((&**key).into(), self.argument(scope, it, entries)?));
                Ok(Arg::Dict(items.iter().map(item).collect::<Result<_>>()?))
            }
            Argument::Graph(it) => self.subgraph(scope, it, entries),
        }
    }

    /// Makes the node that reads a sub-graph from the module. The same sub-graph may be given several times.
    fn subgraph(&mut self, scope: &mut Scope<'a>, arg: &'a schema::GraphArgument, entries: &Entries) -> Result<Arg> {
        self.check_name(&arg.name)?;
        match scope.subgraphs.get(&*arg.name) {
            Some((known, _)) if **known == arg.graph => {}
            Some(_) => return Err(invalid(format!("two sub-graphs are called `{}`", arg.name))),
            None => {
                self.depth += 1;
                let module = self.module(&arg.graph, &HashMap::new());
                self.depth -= 1;
                let module = module.map_err(|error| error.note(format!("in the sub-graph `{}`", arg.name)))?;
                scope.subgraphs.insert(&arg.name, (&arg.graph, module));
            }
        }
        let name = scope.names.generate(&arg.name);
        let node = scope.graph.create_named_node(Opcode::GetAttr, &arg.name, vec![], vec![], &name)?;
        scope.graph.meta_mut(node).entries = entries.clone();
        Ok(Arg::Node(node))
    }

    fn check_name(&self, name: &str) -> Result<()> {
        Limits::check("name_bytes", self.limits.name_bytes, name.len() as u64)
    }
}

impl<'a> Scope<'a> {
    fn value(&self, name: &str) -> Result<Arg> {
        self.nodes.get(name).map(|&it| Arg::Node(it)).ok_or_else(|| {
            let is_known = value_names(self.schema).contains(name);
            invalid(format!("the value `{name}` is used before it is computed")).note(if is_known {
                "the nodes are not in topological order, or the graph has a cycle"
            } else {
                "no node of the graph computes it"
            })
        })
    }

    fn optional_tensor(&self, arg: &OptionalTensorArgument) -> Result<Arg> {
        match arg {
            OptionalTensorArgument::Tensor(it) => self.value(&it.name),
            OptionalTensorArgument::None(_) => Ok(Arg::None),
        }
    }

    fn sym_int(&self, arg: &SymIntArgument) -> Result<Arg> {
        match arg {
            SymIntArgument::Name(name) => self.value(name),
            SymIntArgument::Int(it) => Ok(Arg::Int(*it)),
        }
    }

    fn sym_float(&self, arg: &SymFloatArgument) -> Result<Arg> {
        match arg {
            SymFloatArgument::Name(name) => self.value(name),
            SymFloatArgument::Float(it) => Ok(Arg::Float(it.0)),
        }
    }

    fn sym_bool(&self, arg: &SymBoolArgument) -> Result<Arg> {
        match arg {
            SymBoolArgument::Name(name) => self.value(name),
            SymBoolArgument::Bool(it) => Ok(Arg::Bool(*it)),
        }
    }
}

/// The arguments of an operator that has a schema. The names of the file say which parameter each is for, whatever their
/// order, as in PyTorch's loader; an argument is positional where the file says so and all before it are.
fn by_name(schema: &Schema, inputs: &[NamedArgument], values: Vec<Arg>) -> Result<(Vec<Arg>, Kwargs)> {
    let mut given = HashMap::with_capacity(inputs.len());
    for (NamedArgument { name, kind, .. }, value) in inputs.iter().zip(values) {
        if given.insert(&**name, (*kind, value)).is_some() {
            return Err(given_twice(name));
        }
    }
    let (mut args, mut kwargs): (Vec<Arg>, Kwargs) = (Vec::new(), Vec::new());
    let mut has_gap = false;
    for param in &schema.args {
        let Some((kind, value)) = given.remove(&*param.name) else {
            if param.default.is_none() {
                let what = format!("the argument `{}` is missing", param.name);
                return Err(invalid(what).note(format!("the operator is `{schema}`")));
            }
            has_gap = true;
            continue;
        };
        let is_positional = match kind {
            Some(ArgumentKind::Positional) => true,
            Some(ArgumentKind::Keyword) => is_python_keyword(&param.name),
            // Files of PyTorch 2.6 do not say. What has a default is given by name.
            Some(ArgumentKind::Unknown) | None => param.default.is_none() || is_python_keyword(&param.name),
        };
        if is_positional && !has_gap && !param.is_kwarg_only {
            args.push(value);
        } else {
            has_gap = true;
            kwargs.push(((&*param.name).into(), value));
        }
    }
    match inputs.iter().find(|it| given.contains_key(&*it.name)) {
        Some(it) => {
            Err(invalid(format!("the operator has no argument `{}`", it.name))
                .note(format!("the operator is `{schema}`")))
        }
        None => Ok((args, kwargs)),
    }
}

/// The arguments of what has no schema, in the order of the file.
fn in_order(kind: TargetKind, inputs: &[NamedArgument], values: Vec<Arg>) -> Result<(Vec<Arg>, Kwargs)> {
    let (mut args, mut kwargs): (Vec<Arg>, Kwargs) = (Vec::new(), Vec::new());
    let mut named = HashSet::new();
    for (NamedArgument { name, arg, kind: given }, value) in inputs.iter().zip(values) {
        let is_positional = match (kind, given) {
            (TargetKind::SymOp, _) | (_, Some(ArgumentKind::Positional)) => true,
            (TargetKind::HigherOrder | TargetKind::Function, _) => name.is_empty(),
            (TargetKind::Operator, Some(ArgumentKind::Keyword)) if !is_python_keyword(name) => false,
            (TargetKind::Operator, _) => is_python_keyword(name) || (kwargs.is_empty() && !is_usually_named(arg)),
        };
        // Positional arguments of an operator have names too; those of the others need none.
        if !named.insert(&**name) && (!is_positional || (kind == TargetKind::Operator && !name.is_empty())) {
            return Err(given_twice(name));
        }
        if is_positional {
            args.push(value);
        } else {
            kwargs.push(((&**name).into(), value));
        }
    }
    Ok((args, kwargs))
}

fn given_twice(name: &str) -> Diagnostic {
    invalid(format!("the argument `{name}` is given twice"))
}

/// What a node gives.
enum Results<'a> {
    /// Nothing, and the file says so: the node is renamed to show that it is unused.
    None,
    /// Nothing.
    Unnamed,
    /// One value, after which the node is named.
    Value(&'a str),
    /// Several values, each of which gets a node.
    Parts(Vec<Part<'a>>),
}

enum Part<'a> {
    Value(&'a str),
    None,
    List(Vec<Part<'a>>),
}

impl<'a> Results<'a> {
    fn of(node: &'a schema::Node, kind: TargetKind) -> Result<Self> {
        let parts = |arguments: &'a [Argument]| arguments.iter().map(Part::of).collect::<Result<Vec<_>>>();
        // Files of PyTorch 2.6 do not say whether a higher-order operator gives a tensor or a tuple of one; there the
        // tuple is written as a list.
        let gives_tuple = kind == TargetKind::HigherOrder && node.is_hop_single_tensor_return == Some(false);
        Ok(match &node.outputs[..] {
            [] => Results::Unnamed,
            [Argument::None(_)] => Results::None,
            [Argument::Tensors(them)] => Results::Parts(them.iter().map(|it| Part::Value(&it.name)).collect()),
            [one] if gives_tuple => Results::Parts(vec![Part::of(one)?]),
            [one] => Results::Value(value_name(one).ok_or_else(|| not_a_result(one))?),
            several => Results::Parts(parts(several)?),
        })
    }
}

impl<'a> Part<'a> {
    fn of(argument: &'a Argument) -> Result<Self> {
        let names = |names: Option<Vec<&'a str>>| {
            let names = names.ok_or_else(|| not_a_result(argument))?;
            Ok(Part::List(names.into_iter().map(Part::Value).collect()))
        };
        match argument {
            Argument::None(_) => Ok(Part::None),
            Argument::Tensors(them) => names(Some(them.iter().map(|it| &*it.name).collect())),
            Argument::SymInts(them) => names(them.iter().map(SymIntArgument::as_name).collect()),
            Argument::SymFloats(them) => names(them.iter().map(SymFloatArgument::as_name).collect()),
            Argument::SymBools(them) => names(them.iter().map(SymBoolArgument::as_name).collect()),
            other => value_name(other).map(Part::Value).ok_or_else(|| not_a_result(other)),
        }
    }
}

fn not_a_result(argument: &Argument) -> Diagnostic {
    let text = format!("{argument:?}");
    invalid(format!("a node gives {}, which is no value", text.chars().take(80).collect::<String>()))
}

/// The name of the value that an argument is, where it is one.
fn value_name(argument: &Argument) -> Option<&str> {
    match argument {
        Argument::Tensor(it) => Some(&it.name),
        Argument::CustomObj(it) => Some(&it.name),
        Argument::SymInt(it) => it.as_name(),
        Argument::SymFloat(it) => it.as_name(),
        Argument::SymBool(it) => it.as_name(),
        _ => None,
    }
}

/// The names of all values that the inputs and nodes of a graph define.
fn value_names(graph: &schema::Graph) -> HashSet<&str> {
    let mut names: HashSet<&str> = HashSet::new();
    for argument in graph.inputs.iter().chain(graph.nodes.iter().flat_map(|it| &it.outputs)) {
        match argument {
            Argument::Tensors(them) => names.extend(them.iter().map(|it| &*it.name)),
            Argument::SymInts(them) => names.extend(them.iter().filter_map(SymIntArgument::as_name)),
            Argument::SymFloats(them) => names.extend(them.iter().filter_map(SymFloatArgument::as_name)),
            Argument::SymBools(them) => names.extend(them.iter().filter_map(SymBoolArgument::as_name)),
            other => names.extend(value_name(other)),
        }
    }
    names
}

/// The number of elements of a list argument, nested ones included.
fn list_len(argument: &Argument) -> u64 {
    let len = match argument {
        Argument::Tensors(them) => them.len(),
        Argument::Ints(them) => them.len(),
        Argument::Floats(them) => them.len(),
        Argument::Strings(them) => them.len(),
        Argument::Bools(them) => them.len(),
        Argument::SymInts(them) => them.len(),
        Argument::SymFloats(them) => them.len(),
        Argument::SymBools(them) => them.len(),
        Argument::OptionalTensors(them) => them.len(),
        Argument::IntLists(lists) => lists.iter().map(|it| it.len() + 1).sum(),
        Argument::FloatLists(lists) => lists.iter().map(|it| it.len() + 1).sum(),
        Argument::NestedTensors(lists) => lists.iter().map(|it| it.len() + 1).sum(),
        Argument::StringToArgument(items) => return items.values().map(|it| 1 + list_len(it)).sum(),
        _ => 0,
    };
    len as u64
}

/// What the nodes that PyTorch makes for a node of the file have from it: the entries that it knows.
fn shared_entries(entries: &Entries) -> Entries {
    const SHARED: [&str; 6] = ["stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom", "from_node"];
    SHARED
        .iter()
        .filter_map(|&key| entries.get_key_value(key))
        .map(|(key, it)| (Str::clone(key), Str::clone(it)))
        .collect()
}

/// Whether the operator is of a namespace that PyTorch itself registers.
fn is_of_pytorch(target: &str) -> bool {
    const NAMESPACES: [&str; 14] = [
        "_c10d_functional",
        "_quantized",
        "aten",
        "c10d",
        "export",
        "higher_order",
        "inductor",
        "mkldnn",
        "onednn",
        "prim",
        "prims",
        "quantized",
        "quantized_decomposed",
        "rngprims",
    ];
    let namespace = target.strip_prefix("torch.ops.").and_then(|it| it.split_once('.')).map(|(namespace, _)| namespace);
    namespace.is_some_and(|it| NAMESPACES.binary_search(&it).is_ok())
}

/// Whether operators take a value like this by name alone, as far as their schemas go.
fn is_usually_named(argument: &Argument) -> bool {
    matches!(argument, Argument::ScalarType(_) | Argument::Layout(_) | Argument::Device(_) | Argument::MemoryFormat(_))
}

fn is_python_keyword(name: &str) -> bool {
    const KEYWORDS: [&str; 35] = [
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
        "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
        "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
    ];
    KEYWORDS.binary_search(&name).is_ok()
}

fn invalid(what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::GraphInvalid, what)
}
