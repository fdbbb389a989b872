//! The visitor of a graph that is decomposed: each call is written into a new graph, by the operators that it is made of.
//!
//! It decides what a node becomes; how an operator is decomposed and what becomes of writes is left to [`Functional`].

use super::finished;
use super::functional::Functional;
use super::no_grad::NoGrad;
use super::vmap::is_elementwise;
use std::collections::{HashMap, HashSet};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_exec::{Env, NodeVisitor, Slot, predispatched, walk};
use tracefx_ir::{Arg, Attribute, GraphModule, Meta, Node, NodeId, Opcode, Str, TensorMeta, Val};
use tracefx_ops::{Builder, Infer, TensorRef, Traced, Value, bind};

/// The inputs of a graph by name.
pub(super) type Inputs = Vec<(Str, Traced)>;

/// Decomposes a graph.
pub(super) struct Decomposer<'f, 'a> {
    pub(super) functional: &'f mut Functional<'a>,
    /// What the new module holds: sub-graphs, decomposed.
    pub(super) attributes: Vec<(Str, Attribute)>,
    /// Under which name it holds a sub-graph of the old one, by the address of that, which does not move, and by the dtype
    /// of the autocast under which it is called.
    graphs: HashMap<(usize, Option<DType>), Str>,
    /// Nodes of the old graph whose names are to be followed.
    pub(super) watched: HashSet<Str>,
    /// What gradients have to know of these sub-graphs.
    pub(super) no_grad: HashMap<Str, NoGrad>,
    /// What gives in the new graph what these gave, as far as they were found.
    pub(super) followed: HashMap<Str, NodeId>,
}

impl<'f, 'a> Decomposer<'f, 'a> {
    pub(super) fn new(functional: &'f mut Functional<'a>) -> Self {
        Decomposer {
            functional,
            attributes: Vec::new(),
            graphs: HashMap::new(),
            no_grad: HashMap::new(),
            watched: HashSet::new(),
            followed: HashMap::new(),
        }
    }

    /// Runs a graph; gives back the module without its graph, what the graph returns, and its inputs.
    pub(super) fn graph(&mut self, module: &GraphModule) -> Result<(GraphModule, Vec<Traced>, Inputs)> {
        let inputs = self.inputs(module)?;
        let values: Vec<Traced> = inputs.iter().map(|(_, it)| it.clone()).collect();
        let results = match walk(module, self, &values)? {
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

    /// Walks through a graph as part of this one. Its nodes have names of their own.
    fn inlined(&mut self, module: &GraphModule, inputs: &[Traced]) -> Result<Traced> {
        let watched = std::mem::take(&mut self.watched);
        let results = walk(module, self, inputs);
        self.watched = watched;
        results
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

    fn higher_order(&mut self, name: &str, node: &Node, env: &Env<'_, TensorRef>) -> Result<Traced> {
        if name == "wrap_with_set_grad_enabled" {
            let [is_enabled, body, operands @ ..] = node.args() else {
                return Err(Diagnostic::new(Code::GraphInvalid, "a graph and its inputs are missing"));
            };
            let Some((body, _)) = env.module(body) else {
                return Err(Diagnostic::new(Code::GraphInvalid, "the second argument should be a graph"));
            };
            let operands = env.values(operands)?;
            // The graph is as good as its nodes; whether gradients flow is remembered.
            let is_enabled = !matches!(is_enabled, Arg::Bool(false));
            let before = std::mem::replace(&mut self.functional.recorder.is_grad_enabled, is_enabled);
            let results = self.inlined(body, &operands);
            self.functional.recorder.is_grad_enabled = before;
            return results;
        }
        if name == "wrap_with_autocast" {
            return self.autocast(node, env);
        }
        if !HIGHER_ORDER.contains(&name) {
            let what = format!("decomposing the operator higher_order.{name} is not implemented");
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
    fn autocast(&mut self, node: &Node, env: &Env<'_, TensorRef>) -> Result<Traced> {
        let [device, dtype, enabled, _, body, operands @ ..] = node.args() else {
            return Err(Diagnostic::new(Code::GraphInvalid, "a graph and its inputs are missing"));
        };
        let Some((body, _)) = env.module(body) else {
            return Err(Diagnostic::new(Code::GraphInvalid, "the fifth argument should be a graph"));
        };
        let dtype = match (device, enabled, dtype) {
            (Arg::Str(it), _, _) if &**it != "cpu" => self.functional.autocast,
            (_, Arg::Bool(false), _) => None,
            (_, _, Arg::DType(it)) => Some(*it),
            // PyTorch's default for the CPU.
            (_, _, _) => Some(DType::BFloat16),
        };
        let operands = env.values(operands)?;
        let before = std::mem::replace(&mut self.functional.autocast, dtype);
        let results = self.inlined(body, &operands);
        self.functional.autocast = before;
        results
    }

    /// An argument of a higher-order operator: a graph is decomposed.
    fn operand(&mut self, arg: &Arg, env: &Env<'_, TensorRef>) -> Result<Arg> {
        if let Arg::Op(_) = arg {
            return Ok(arg.clone());
        }
        let Some((module, path)) = env.module(arg) else { return self.arg(&env.value(arg)?) };
        let key = (std::ptr::from_ref::<GraphModule>(module) as usize, self.functional.autocast);
        if !self.graphs.contains_key(&key) {
            let mut functional = Functional::new(self.functional.table, self.functional.shapes);
            functional.autocast = self.functional.autocast;
            let mut inner = Decomposer::new(&mut functional);
            let (new, results, inputs) = inner.graph(module)?;
            let graphs = inner.no_grad;
            let is_written = |it: &Traced| matches!(it, Value::Tensor(it) if functional.is_written(*it));
            if let Some((name, _)) = inputs.iter().find(|(_, it)| is_written(it)) {
                let what = format!("the graph `{path}` writes to its input `{name}`");
                return Err(Diagnostic::new(Code::NotImplemented, what));
            }
            let returned = results.iter().map(|it| super::result_arg(&mut functional, it)).collect::<Result<_>>()?;
            let no_grad = NoGrad::of(&mut functional, graphs);
            let new = finished(functional, new, returned, &HashMap::new())?;
            let name = self.free_name(path);
            self.attributes.push((name.clone(), Attribute::Module(Box::new(new))));
            self.no_grad.insert(name.clone(), no_grad);
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

impl<'g> NodeVisitor<'g> for Decomposer<'_, '_> {
    type Tensor = TensorRef;

    /// A region is written once for each example.
    const MAX_EXAMPLES: i64 = 1 << 10;

    fn get_attr(&mut self, module: &'g GraphModule, node: NodeId) -> Result<Slot<'g, TensorRef>> {
        let node = module.graph.node(node);
        Ok(match module.attribute(node.target())? {
            Attribute::Module(child) => Slot::Module(child),
            Attribute::Tensor { tensor, .. } => Slot::Value(self.attribute(node, &TensorMeta::of(tensor))),
            Attribute::Fake { tensor, .. } => Slot::Value(self.attribute(node, &tensor.meta)),
        })
    }

    fn call(&mut self, module: &'g GraphModule, id: NodeId, env: &mut Env<'g, TensorRef>) -> Result<Traced> {
        let node = module.graph.node(id);
        if node.op() != Opcode::CallFunction {
            let what = format!("decomposing a {} node is not implemented", node.op());
            return Err(Diagnostic::new(Code::NotImplemented, what));
        }
        self.functional.recorder.follow(node);
        if let Some(name) = node.target().strip_prefix("torch.ops.higher_order.") {
            return self.higher_order(name, node, env);
        }
        let (args, kwargs) = (env.values(node.args())?, env.kwargs(id)?);
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

    fn call_operator(&mut self, name: &str, args: &[Traced]) -> Result<Traced> {
        Ok(self.functional.call(name, args, &[])?.swap_remove(0))
    }

    /// Where all that a vmap does is done element by element, its nodes work on all examples at once, as in PyTorch.
    fn is_batched(&self, module: &GraphModule, nodes: &[NodeId]) -> Result<bool> {
        let graph = &module.graph;
        if nodes.iter().any(|it| predispatched(graph.node(*it)) == Some("_vmap_increment_nesting")) {
            let what = "decomposing a vmap inside another one is not implemented";
            return Err(Diagnostic::new(Code::NotImplemented, what));
        }
        Ok(is_elementwise(graph, nodes, self.functional.shapes.registry()))
    }

    /// Notes what gives a value now that is followed. Later it may be written to.
    fn note(&mut self, module: &'g GraphModule, node: NodeId, value: &Traced) -> Result<()> {
        let name = module.graph.node(node).name();
        if self.watched.contains(name)
            && let Arg::Node(new) = self.arg(value)?
        {
            self.followed.insert(name.clone(), new);
        }
        Ok(())
    }
}

/// The higher-order operators that stay, with their graphs decomposed where they have any.
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

fn has_tensor(value: &Traced) -> bool {
    let mut res = false;
    value.for_each_tensor(&mut |_| res = true);
    res
}

fn not_an_operator(node: &Node) -> Diagnostic {
    let what = format!("decomposing {}, which is no operator, is not implemented for tensors", node.target());
    Diagnostic::new(Code::NotImplemented, what).help("export the module, whose graph then has operators alone")
}
