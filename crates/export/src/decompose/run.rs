//! The old graph, run node by node by a builder.

use super::finished;
use super::functional::Functional;
use super::seen::Seen;
use std::collections::{HashMap, HashSet};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_exec::vmap_region;
use tracefx_ir::{Arg, Attribute, GraphModule, Meta, Node, NodeId, Opcode, Str, TensorMeta, Val};
use tracefx_ops::{Infer, Traced, Value, bind};

/// What a node has become.
#[derive(Clone)]
pub(super) enum Slot<'g> {
    Value(Traced),
    /// A sub-graph, and the name under which the module holds it.
    Module(&'g GraphModule, Str),
}

/// The inputs of a graph by name.
pub(super) type Inputs = Vec<(Str, Traced)>;

pub(super) struct Run<'f, 'a> {
    pub(super) functional: &'f mut Functional<'a>,
    /// What the new module holds: sub-graphs, taken apart.
    pub(super) attributes: Vec<(Str, Attribute)>,
    /// Under which name it holds a sub-graph of the old one, by the address of that, which does not move, and by the dtype
    /// of the autocast under which it is called.
    graphs: HashMap<(usize, Option<DType>), Str>,
    /// Nodes of the old graph whose names are to be followed.
    pub(super) watched: HashSet<Str>,
    /// What was seen of these sub-graphs.
    pub(super) seen: HashMap<Str, Seen>,
    /// What gives in the new graph what these gave, as far as they were found.
    pub(super) followed: HashMap<Str, NodeId>,
}

impl<'f, 'a> Run<'f, 'a> {
    pub(super) fn new(functional: &'f mut Functional<'a>) -> Self {
        Run {
            functional,
            attributes: Vec::new(),
            graphs: HashMap::new(),
            seen: HashMap::new(),
            watched: HashSet::new(),
            followed: HashMap::new(),
        }
    }

    /// Runs a graph; gives back the module without its graph, what the graph returns, and its inputs.
    pub(super) fn graph(&mut self, module: &GraphModule) -> Result<(GraphModule, Vec<Traced>, Inputs)> {
        let inputs = self.inputs(module)?;
        let values = inputs.iter().map(|(_, it)| it.clone()).collect();
        let results = match self.run(module, values)? {
            Value::List(items) => items,
            single => vec![single],
        };
        let mut res = without_graphs(module);
        res.attributes.extend(std::mem::take(&mut self.attributes));
        Ok((res, results, inputs))
    }

    /// Writes the inputs that a graph has.
    pub(super) fn inputs(&mut self, module: &GraphModule) -> Result<Inputs> {
        let graph = &module.graph;
        let mut inputs = Vec::new();
        for id in graph.nodes().filter(|&it| graph.node(it).op() == Opcode::Placeholder) {
            inputs.push(self.input(graph.node(id))?);
        }
        Ok(inputs)
    }

    /// Writes an input that a graph has.
    pub(super) fn input(&mut self, node: &Node) -> Result<(Str, Traced)> {
        let default = node.args().to_vec();
        let new = self.functional.recorder.placeholder(node.name(), node.target(), default, node.meta.clone())?;
        let value = match &node.meta.val {
            Some(val) => self.functional.recorder.value_of(new, val),
            None => Value::None,
        };
        Ok((node.name().clone(), self.functional.wrapped(&value)))
    }

    fn run(&mut self, module: &GraphModule, inputs: Vec<Traced>) -> Result<Traced> {
        let graph = &module.graph;
        let mut env: Vec<Option<Slot<'_>>> = vec![None; graph.id_bound()];
        let mut inputs = inputs.into_iter();
        let nodes: Vec<NodeId> = graph.nodes().collect();
        // The graphs that are inlined have names of their own.
        let watched = std::mem::take(&mut self.watched);
        let mut at = 0;
        while at < nodes.len() {
            let id = nodes[at];
            let node = graph.node(id);
            let n_batched = vmap_region(graph, &nodes[at..]);
            if n_batched > 0 {
                let region = &nodes[at..at + n_batched];
                self.vmap_region(module, region, &mut env).map_err(|problem| problem.node(&**node.name()))?;
                at += n_batched;
                continue;
            }
            at += 1;
            let fail = |problem: Diagnostic| problem.node(&**node.name());
            let slot = match node.op() {
                Opcode::Placeholder => {
                    let missing = || Diagnostic::new(Code::InputCount, "the graph takes more inputs than are given");
                    Slot::Value(inputs.next().ok_or_else(missing).map_err(fail)?)
                }
                Opcode::GetAttr => self.get_attr(module, node).map_err(fail)?,
                Opcode::CallFunction => Slot::Value(self.call(node, &env).map_err(fail)?),
                Opcode::CallModule | Opcode::CallMethod => {
                    let what = format!("taking a {} node apart is not implemented", node.op());
                    return Err(fail(Diagnostic::new(Code::NotImplemented, what)));
                }
                Opcode::Output => return value(node.args().first().unwrap_or(&Arg::None), &env).map_err(fail),
            };
            if let Slot::Value(value) = &slot
                && watched.contains(node.name())
            {
                self.follow(node.name(), value).map_err(fail)?;
            }
            env[id.index()] = Some(slot);
        }
        Err(Diagnostic::new(Code::GraphInvalid, "the graph has no output"))
    }

    /// Notes what gives a value now. Later it may be written to.
    fn follow(&mut self, name: &Str, value: &Traced) -> Result<()> {
        if let Arg::Node(node) = self.arg(value)? {
            self.followed.insert(name.clone(), node);
        }
        Ok(())
    }

    /// What a module holds: a graph, or a tensor.
    pub(super) fn get_attr<'g>(&mut self, module: &'g GraphModule, node: &Node) -> Result<Slot<'g>> {
        Ok(match module.attribute(node.target())? {
            Attribute::Module(child) => Slot::Module(child, node.target().clone()),
            Attribute::Tensor { tensor, .. } => Slot::Value(self.attribute(node, &TensorMeta::of(tensor))),
            Attribute::Fake { tensor, .. } => Slot::Value(self.attribute(node, &tensor.meta)),
        })
    }

    /// A tensor that the module itself holds; what the node says of it goes before what it is. Whoever reads it again reads
    /// what was written to it since.
    fn attribute(&mut self, node: &Node, meta: &TensorMeta) -> Traced {
        if let Some((_, _, known)) = self.functional.held.iter().find(|(path, _, _)| path == node.target()) {
            return known.clone();
        }
        let recorder = &mut self.functional.recorder;
        let new = recorder.get_attr(node.target());
        let val = node.meta.val.clone().unwrap_or_else(|| Val::Tensor(meta.clone()));
        *recorder.graph_mut().meta_mut(new) = Meta { val: Some(val.clone()), ..node.meta.clone() };
        let value = recorder.value_of(new, &val);
        let value = self.functional.wrapped(&value);
        self.functional.held.push((node.target().clone(), new, value.clone()));
        value
    }

    pub(super) fn call(&mut self, node: &Node, env: &[Option<Slot<'_>>]) -> Result<Traced> {
        if &**node.target() == "operator.getitem" {
            return get_item(node, env);
        }
        // It makes rules for batches known, of which none is needed here.
        if &**node.target() == "torch._functorch.predispatch.lazy_load_decompositions" {
            return Ok(Value::None);
        }
        self.functional.recorder.follow(&node.meta);
        if let Some(name) = node.target().strip_prefix("torch.ops.higher_order.") {
            return self.higher_order(name, node, env);
        }
        let args = node.args().iter().map(|it| value(it, env)).collect::<Result<Vec<_>>>()?;
        let kwargs = node.kwargs().iter().map(|(key, it)| Ok((key.clone(), value(it, env)?)));
        let kwargs: Vec<(Str, Traced)> = kwargs.collect::<Result<_>>()?;
        let is_python = !node.target().starts_with("torch.ops.");
        if is_python {
            let takes_tensor = args.iter().chain(kwargs.iter().map(|(_, it)| it)).any(has_tensor);
            // Such a function may give a view, or write, so that no value would be known from then on.
            return if takes_tensor { Err(not_an_operator(node)) } else { self.copy(node, &args, &kwargs) };
        }
        let op = self.functional.shapes.registry().require(node.target())?;
        let bound = self.functional.args(op, bind(op, &args, &kwargs)?);
        let mut results = self.functional.call_bound(&bound).map_err(|problem| problem.op(&*op.name))?;
        let is_single = op.schema.returns.len() == 1 || matches!(op.def.infer, Infer::InPlaceOf(_));
        Ok(if is_single { results.swap_remove(0) } else { Value::List(results) })
    }

    /// The same call in the new graph.
    fn copy(&mut self, node: &Node, args: &[Traced], kwargs: &[(Str, Traced)]) -> Result<Traced> {
        if let Some(Val::Int(known)) = &node.meta.val
            && !known.is_symbolic()
        {
            return Ok(Value::Int(known.clone()));
        }
        let args = args.iter().map(|it| self.arg(it)).collect::<Result<_>>()?;
        let kwargs = kwargs.iter().map(|(key, it)| Ok((key.clone(), self.arg(it)?))).collect::<Result<_>>()?;
        let (_, value) = self.functional.recorder.copy(node.target(), args, kwargs, node.meta.val.clone())?;
        Ok(self.functional.wrapped(&value))
    }

    fn arg(&mut self, value: &Traced) -> Result<Arg> {
        let current = self.functional.current(value)?;
        self.functional.recorder.arg(&current)
    }

    fn higher_order(&mut self, name: &str, node: &Node, env: &[Option<Slot<'_>>]) -> Result<Traced> {
        if name == "wrap_with_set_grad_enabled" {
            let [is_enabled, body, operands @ ..] = node.args() else {
                return Err(Diagnostic::new(Code::GraphInvalid, "a graph and its inputs are missing"));
            };
            let Some(Slot::Module(body, _)) = body.as_node().and_then(|it| env[it.index()].as_ref()) else {
                return Err(Diagnostic::new(Code::GraphInvalid, "the second argument should be a graph"));
            };
            let operands = operands.iter().map(|it| value(it, env)).collect::<Result<_>>()?;
            // The graph is as good as its nodes; whether gradients flow is remembered.
            let is_enabled = !matches!(is_enabled, Arg::Bool(false));
            let before = std::mem::replace(&mut self.functional.recorder.is_grad_enabled, is_enabled);
            let results = self.run(body, operands);
            self.functional.recorder.is_grad_enabled = before;
            return results;
        }
        if name == "wrap_with_autocast" {
            return self.autocast(node, env);
        }
        if !HIGHER_ORDER.contains(&name) {
            let what = format!("taking the operator higher_order.{name} apart is not implemented");
            return Err(Diagnostic::new(Code::NotImplemented, what).op(format!("higher_order.{name}")));
        }
        let args = node.args().iter().map(|it| self.operand(it, env)).collect::<Result<_>>()?;
        let kwargs = node.kwargs().iter().map(|(key, it)| Ok((key.clone(), self.operand(it, env)?)));
        let kwargs = kwargs.collect::<Result<_>>()?;
        let (_, value) = self.functional.recorder.copy(node.target(), args, kwargs, node.meta.val.clone())?;
        Ok(self.functional.wrapped(&value))
    }

    /// `wrap_with_autocast(device, dtype, enabled, cache_enabled, graph, *inputs)`: the nodes of the graph, with casts. That
    /// of another device changes nothing for tensors on the CPU.
    fn autocast(&mut self, node: &Node, env: &[Option<Slot<'_>>]) -> Result<Traced> {
        let [device, dtype, enabled, _, body, operands @ ..] = node.args() else {
            return Err(Diagnostic::new(Code::GraphInvalid, "a graph and its inputs are missing"));
        };
        let Some(Slot::Module(body, _)) = body.as_node().and_then(|it| env[it.index()].as_ref()) else {
            return Err(Diagnostic::new(Code::GraphInvalid, "the fifth argument should be a graph"));
        };
        let dtype = match (device, enabled, dtype) {
            (Arg::Str(it), _, _) if &**it != "cpu" => self.functional.autocast,
            (_, Arg::Bool(false), _) => None,
            (_, _, Arg::DType(it)) => Some(*it),
            // PyTorch's default for the CPU.
            (_, _, _) => Some(DType::BFloat16),
        };
        let operands = operands.iter().map(|it| value(it, env)).collect::<Result<_>>()?;
        let before = std::mem::replace(&mut self.functional.autocast, dtype);
        let results = self.run(body, operands);
        self.functional.autocast = before;
        results
    }

    /// An argument of a higher-order operator: a graph is taken apart.
    fn operand(&mut self, arg: &Arg, env: &[Option<Slot<'_>>]) -> Result<Arg> {
        if let Arg::Op(_) = arg {
            return Ok(arg.clone());
        }
        let Some(Slot::Module(module, path)) = arg.as_node().and_then(|it| env[it.index()].as_ref()) else {
            return self.arg(&value(arg, env)?);
        };
        let key = (std::ptr::from_ref::<GraphModule>(module) as usize, self.functional.autocast);
        if !self.graphs.contains_key(&key) {
            let mut functional = Functional::new(self.functional.table, self.functional.shapes);
            functional.autocast = self.functional.autocast;
            let mut run = Run::new(&mut functional);
            let (new, results, inputs) = run.graph(module)?;
            let graphs = run.seen;
            let is_written = |it: &Traced| matches!(it, Value::Tensor(it) if functional.is_written(*it));
            if let Some((name, _)) = inputs.iter().find(|(_, it)| is_written(it)) {
                let what = format!("the graph `{path}` writes to its input `{name}`");
                return Err(Diagnostic::new(Code::NotImplemented, what));
            }
            let returned = results.iter().map(|it| super::result_arg(&mut functional, it)).collect::<Result<_>>()?;
            let seen = Seen::of(&mut functional, graphs);
            let new = finished(functional, new, returned, &HashMap::new())?;
            let name = self.free_name(path);
            self.attributes.push((name.clone(), Attribute::Module(Box::new(new))));
            self.seen.insert(name.clone(), seen);
            self.graphs.insert(key, name);
        }
        let name = self.graphs[&key].clone();
        Ok(Arg::Node(self.functional.recorder.get_attr(&name)))
    }

    /// The name, or where another graph has it, which was one of another module, the next one with a number.
    fn free_name(&self, path: &Str) -> Str {
        let is_free = |name: &str| self.attributes.iter().all(|(it, _)| &**it != name);
        if is_free(path) {
            return path.clone();
        }
        let stem = path.trim_end_matches(|it: char| it.is_ascii_digit());
        let mut names = (0..).map(|it| format!("{stem}{it}"));
        names.find(|it| is_free(it)).expect("there are more numbers than graphs").into()
    }
}

/// The higher-order operators that stay, with their graphs taken apart where they have any.
const HIGHER_ORDER: &[&str] =
    &["cond", "while_loop", "map_impl", "scan", "auto_functionalized", "auto_functionalized_v2"];

/// The module with the tensors that it holds, and without graphs.
pub(super) fn without_graphs(module: &GraphModule) -> GraphModule {
    let mut res = GraphModule::new(tracefx_ir::Graph::new());
    (res.class_name, res.meta) = (module.class_name.clone(), module.meta.clone());
    for (name, attribute) in &module.attributes {
        if let Attribute::Tensor { .. } | Attribute::Fake { .. } = attribute {
            res.attributes.insert(name.clone(), attribute.clone());
        }
    }
    res
}

/// An argument of the old graph as a value.
pub(super) fn value(arg: &Arg, env: &[Option<Slot<'_>>]) -> Result<Traced> {
    Value::of_arg(arg, &mut |arg| match arg.as_node().map(|node| &env[node.index()]) {
        Some(Some(Slot::Value(it))) => Ok(it.clone()),
        Some(Some(Slot::Module(_, path))) => {
            let what = format!("the graph `{path}` is no value that an operator takes");
            Err(Diagnostic::new(Code::NotImplemented, what))
        }
        Some(None) => Err(Diagnostic::new(Code::GraphInvalid, "a node is used before it is defined")),
        None => Err(Diagnostic::new(Code::NotImplemented, format!("the argument {arg:?} is not implemented"))),
    })
}

fn has_tensor(value: &Traced) -> bool {
    let mut res = false;
    value.for_each_tensor(&mut |_| res = true);
    res
}

fn not_an_operator(node: &Node) -> Diagnostic {
    let what = format!("taking {} apart, which is no operator, is not implemented for tensors", node.target());
    Diagnostic::new(Code::NotImplemented, what).help("export the module, whose graph then has operators alone")
}

/// One of the results of a node.
fn get_item(node: &Node, env: &[Option<Slot<'_>>]) -> Result<Traced> {
    let [list, Arg::Int(index)] = node.args() else {
        return Err(Diagnostic::new(Code::NotImplemented, "operator.getitem is implemented for a list and an int"));
    };
    let Value::List(items) = value(list, env)? else {
        return Err(Diagnostic::new(Code::NotImplemented, "operator.getitem is implemented for a list and an int"));
    };
    let position = if *index < 0 { items.len() as i64 + index } else { *index };
    usize::try_from(position).ok().and_then(|it| items.get(it)).cloned().ok_or_else(|| {
        let what = format!("index {index} is out of range: there are {} items", items.len());
        Diagnostic::new(Code::IndexOutOfRange, what)
    })
}
