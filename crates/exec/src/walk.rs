//! One way through a graph: its nodes in order, with the values that they give.

use crate::autocast;
use crate::evaluate::{Evaluate, Kwargs, Results};
use crate::functionalized;
use crate::higher_order::{Operand, Operands};
use crate::run::Watch;
use crate::vmap::{MAX_DEPTH, MAX_EXAMPLES, predispatched, vmap_region};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, Str};
use tracefx_ops::{Op, Value};

/// What the region of a vmap gives: the node, the dimension to stack along, and a value for each example.
type Given<T> = (NodeId, Value<T>, Vec<Value<T>>);

/// One way through a graph, in order.
pub(crate) struct Walk<'a, E> {
    module: &'a GraphModule,
    evaluate: E,
    /// The dtype of autocast, where that is on.
    autocast: Option<DType>,
}

/// What a node has become.
#[derive(Clone)]
enum Slot<'a, T> {
    Value(Value<T>),
    Module(&'a GraphModule),
}

impl<'a, E: Evaluate> Walk<'a, E> {
    /// A way through this graph, without autocast.
    pub(crate) fn new(module: &'a GraphModule, evaluate: E) -> Self {
        Walk { module, evaluate, autocast: None }
    }

    /// The way through a graph that a node of this one calls.
    fn through<'b>(&self, module: &'b GraphModule) -> Walk<'b, E> {
        Walk { module, evaluate: self.evaluate, autocast: self.autocast }
    }

    pub(crate) fn run(&self, inputs: &[Value<E::Tensor>]) -> Result<Value<E::Tensor>> {
        self.run_watched(inputs, &mut |_, _| Ok(()))
    }

    pub(crate) fn run_watched(&self, inputs: &[Value<E::Tensor>], watch: &mut Watch<'_>) -> Result<Value<E::Tensor>> {
        let graph = &self.module.graph;
        let last_users = last_users(graph);
        let mut env: Vec<Option<Slot<'a, E::Tensor>>> = vec![None; graph.id_bound()];
        let mut inputs = inputs.iter();
        let nodes: Vec<NodeId> = graph.nodes().collect();
        let mut at = 0;
        while at < nodes.len() {
            watch(at, nodes.len())?;
            let (id, first) = (nodes[at], at);
            let node = graph.node(id);
            let n_batched = vmap_region(graph, &nodes[at..]);
            if n_batched > 0 {
                at += n_batched;
                self.run_region(&nodes[first..at], &mut env, 1)?;
            } else {
                at += 1;
                self.evaluate.enter(self.module, id);
                let slot = self.run_node(id, &env, &mut inputs).map_err(|problem| problem.node(&**node.name()))?;
                if let Slot::Value(value) = &slot {
                    self.evaluate.note(self.module, id, value);
                }
                if node.op() == Opcode::Output {
                    let extra = inputs.count();
                    return match slot {
                        Slot::Value(value) if extra == 0 => Ok(value),
                        Slot::Value(_) => Err(Diagnostic::new(Code::InputCount, format!("{extra} inputs too many"))),
                        Slot::Module(_) => Err(Diagnostic::new(Code::GraphInvalid, "the graph returns a module")),
                    };
                }
                self.bind(id, slot, &mut env);
            }
            for &id in &nodes[first..at] {
                graph.node(id).for_each_input(&mut |input| {
                    if last_users[input.index()] == Some(id) {
                        env[input.index()] = None;
                    }
                });
            }
        }
        Err(Diagnostic::new(Code::GraphInvalid, "the graph has no output"))
    }

    /// Keeps what a node has become for its users.
    fn bind(&self, id: NodeId, slot: Slot<'a, E::Tensor>, env: &mut [Option<Slot<'a, E::Tensor>>]) {
        if self.op(id).is_some_and(Op::reshapes_self) {
            self.rebind(id, &slot, env);
        }
        if !self.module.graph.users(id).is_empty() {
            env[id.index()] = Some(slot);
        }
    }

    fn op(&self, id: NodeId) -> Option<&Op> {
        let node = self.module.graph.node(id);
        if node.op() == Opcode::CallFunction { self.evaluate.registry().get(node.target()) } else { None }
    }

    /// Gives the view that a tensor has become in place to every node that stands for this very tensor.
    fn rebind(&self, id: NodeId, slot: &Slot<'a, E::Tensor>, env: &mut [Option<Slot<'a, E::Tensor>>]) {
        let tensor = self.tensor_of(id);
        for other in self.module.graph.nodes() {
            if env[other.index()].is_some() && self.tensor_of(other) == tensor {
                env[other.index()] = Some(slot.clone());
            }
        }
    }

    /// The node that made the tensor which this node gives back: what works in place gives its argument back.
    fn tensor_of(&self, mut id: NodeId) -> NodeId {
        while self.op(id).is_some_and(Op::returns_self)
            && let Some(this) = self.module.graph.node(id).args().first().and_then(Arg::as_node)
        {
            id = this;
        }
        id
    }

    fn run_node(
        &self,
        id: NodeId,
        env: &[Option<Slot<'a, E::Tensor>>],
        inputs: &mut std::slice::Iter<'_, Value<E::Tensor>>,
    ) -> Result<Slot<'a, E::Tensor>> {
        let graph = &self.module.graph;
        let node = graph.node(id);
        match node.op() {
            Opcode::Placeholder => match (inputs.next(), node.args().first()) {
                (Some(input), _) => Ok(Slot::Value(input.clone())),
                (None, Some(default)) => self.value(default, env).map(Slot::Value),
                (None, None) => {
                    let what = format!(
                        "Expected positional argument for parameter {}, but one was not passed in!",
                        node.target()
                    );
                    Err(Diagnostic::new(Code::InputCount, what))
                }
            },
            Opcode::GetAttr => Ok(match self.module.attribute(node.target())? {
                Attribute::Tensor { tensor, .. } => Slot::Value(Value::Tensor(self.evaluate.attribute(tensor)?)),
                Attribute::Fake { tensor, .. } => Slot::Value(Value::Tensor(self.evaluate.fake(tensor)?)),
                Attribute::Module(module) => Slot::Module(module),
            }),
            Opcode::CallFunction => self.call_function(id, env).map(Slot::Value),
            Opcode::CallModule => {
                let module = self.module.submodule(node.target())?;
                if module.graph.is_empty() {
                    let what = format!("`{}` is a {} without a graph", node.target(), module.class_name);
                    return Err(
                        Diagnostic::new(Code::NotImplemented, what).help("trace it with the tracer's leaf rule off")
                    );
                }
                let mut args = self.values(node.args(), env)?;
                place_keywords(module, self.kwargs(id, env)?, &mut args)?;
                self.through(module).run(&args).map(Slot::Value)
            }
            Opcode::CallMethod => {
                let (args, kwargs) = (self.values(node.args(), env)?, self.kwargs(id, env)?);
                self.call_method(node.target(), &args, &kwargs).map(single).map(Slot::Value)
            }
            Opcode::Output => self.value(node.args().first().unwrap_or(&Arg::None), env).map(Slot::Value),
        }
    }

    fn call_function(&self, id: NodeId, env: &[Option<Slot<'a, E::Tensor>>]) -> Result<Value<E::Tensor>> {
        let node = self.module.graph.node(id);
        if &**node.target() == "operator.getitem" {
            let args = self.values(node.args(), env)?;
            return get_item(&args);
        }
        // It makes rules for batches known, of which none is needed here.
        if predispatched(node) == Some("lazy_load_decompositions") {
            return Ok(Value::None);
        }
        if let Some(name) = node.target().strip_prefix("torch.ops.higher_order.") {
            if functionalized::NAMES.contains(&name) {
                let kwargs = self.kwargs(id, env)?;
                let registry = self.evaluate.registry();
                let call = &|name: &str, args: &[_], kwargs: &Kwargs<_>| self.call(name, args, kwargs);
                return functionalized::call(registry, call, name, node.args(), &kwargs);
            }
            let operands = node.args().iter().map(|it| self.operand(it, env)).collect::<Result<Vec<_>>>()?;
            return self.call_higher_order(&Operands { name, operands: &operands });
        }
        let (args, kwargs) = (self.values(node.args(), env)?, self.kwargs(id, env)?);
        self.call(node.target(), &args, &kwargs).map(single)
    }

    /// Calls an operator or a function, with autocast where it is on.
    fn call(&self, name: &str, args: &[Value<E::Tensor>], kwargs: &Kwargs<E::Tensor>) -> Results<E::Tensor> {
        match self.autocast {
            Some(low) => autocast::call(self.evaluate, low, name, args, kwargs),
            None => self.evaluate.call_function(name, args, kwargs),
        }
    }

    fn call_method(&self, name: &str, args: &[Value<E::Tensor>], kwargs: &Kwargs<E::Tensor>) -> Results<E::Tensor> {
        if self.autocast.is_some() {
            let what = format!("calling the method {name} of a value is not implemented");
            return Err(
                Diagnostic::new(Code::NotImplemented, what).help("export the program, so that it calls operators")
            );
        }
        self.evaluate.call_method(name, args, kwargs)
    }

    /// Calls an operator that takes graphs.
    fn call_higher_order(&self, operands: &Operands<'_, E::Tensor>) -> Result<Value<E::Tensor>> {
        if operands.name == "wrap_with_autocast" {
            let (module, inputs) = (operands.module(4)?, operands.values(5)?);
            let autocast = autocast::dtype_of(operands, self.autocast)?;
            return Walk { module, evaluate: self.evaluate, autocast }.run(&inputs);
        }
        self.evaluate.control_flow(operands, &mut |module, inputs| self.through(module).run(inputs))
    }

    /// Runs the region of a vmap for each example, and leaves what it gives in `env`.
    ///
    /// # Errors
    /// `NotImplemented` where the examples draw random numbers or are none; `LimitExceeded` where they are too many; else
    /// what a node refuses.
    fn run_region(&self, nodes: &[NodeId], env: &mut [Option<Slot<'a, E::Tensor>>], depth: usize) -> Result<()> {
        let Some((&first, rest)) = nodes.split_first() else { return Ok(()) };
        let graph = &self.module.graph;
        let refuse = |code: Code, what: String| Err(Diagnostic::new(code, what).node(&**graph.node(first).name()));
        let n_examples = match &self.values(graph.node(first).args(), env)?[..] {
            [Value::Int(n), Value::Str(random)] if &**random == "error" => n.as_int().unwrap_or(0),
            _ => return refuse(Code::NotImplemented, "a vmap with random numbers is not implemented".to_string()),
        };
        if n_examples < 1 {
            return refuse(Code::NotImplemented, "a vmap over no example is not implemented".to_string());
        }
        if depth > MAX_DEPTH || n_examples > MAX_EXAMPLES {
            let what = format!(
                "a vmap of depth {depth} over {n_examples} examples exceeds the limits {MAX_DEPTH} and {MAX_EXAMPLES}"
            );
            return refuse(Code::LimitExceeded, what);
        }
        let mut given: Vec<Given<E::Tensor>> = Vec::new();
        for example in 0..n_examples {
            let mut inner = env.to_vec();
            // What a node gives is noted as it is for the first example.
            let note = |id: NodeId, value: &Value<E::Tensor>| {
                if example == 0 {
                    self.evaluate.note(self.module, id, value);
                }
            };
            let mut at = 0;
            while at + 1 < rest.len() {
                let id = rest[at];
                let n_inner = vmap_region(graph, &rest[at..]);
                if n_inner > 0 {
                    self.run_region(&rest[at..at + n_inner], &mut inner, depth + 1)?;
                    at += n_inner;
                    continue;
                }
                at += 1;
                match (predispatched(graph.node(id)), &self.arguments(id, &inner)?[..]) {
                    (Some("_add_batch_dim"), [it, dim, ..]) => {
                        let slice = [it.clone(), dim.clone(), Value::int(example)];
                        let slice = self.call("aten.select.int", &slice, &[])?.swap_remove(0);
                        note(id, &slice);
                        inner[id.index()] = Some(Slot::Value(slice));
                    }
                    (Some("_remove_batch_dim"), [it, _, _, dim]) => match given.iter_mut().find(|(of, ..)| *of == id) {
                        Some((_, _, values)) => values.push(it.clone()),
                        None => given.push((id, dim.clone(), vec![it.clone()])),
                    },
                    _ => {
                        let slot = self.run_node(id, &inner, &mut [].iter())?;
                        if let Slot::Value(value) = &slot {
                            note(id, value);
                        }
                        self.bind(id, slot, &mut inner);
                    }
                }
            }
        }
        for (id, dim, values) in given {
            let stacked = self.call("aten.stack.default", &[Value::List(values), dim], &[])?.swap_remove(0);
            self.evaluate.note(self.module, id, &stacked);
            env[id.index()] = Some(Slot::Value(stacked));
        }
        for id in [Some(&first), rest.last()].into_iter().flatten() {
            self.evaluate.note(self.module, *id, &Value::None);
        }
        Ok(())
    }

    /// The arguments of a call of `torch._functorch.predispatch`; none of another node.
    fn arguments(&self, id: NodeId, env: &[Option<Slot<'a, E::Tensor>>]) -> Results<E::Tensor> {
        let node = self.module.graph.node(id);
        match predispatched(node) {
            Some("_add_batch_dim" | "_remove_batch_dim") => self.values(node.args(), env),
            Some(_) | None => Ok(Vec::new()),
        }
    }

    fn kwargs(&self, id: NodeId, env: &[Option<Slot<'a, E::Tensor>>]) -> Result<Vec<(Str, Value<E::Tensor>)>> {
        let kwargs = self.module.graph.node(id).kwargs().iter();
        kwargs.map(|(key, it)| Ok((key.clone(), self.value(it, env)?))).collect()
    }

    fn operand(&self, arg: &Arg, env: &[Option<Slot<'a, E::Tensor>>]) -> Result<Operand<'a, E::Tensor>> {
        match arg.as_node().and_then(|it| env[it.index()].as_ref()) {
            Some(Slot::Module(module)) => Ok(Operand::Module(module)),
            Some(Slot::Value(_)) | None => self.value(arg, env).map(Operand::Value),
        }
    }

    fn values(&self, args: &[Arg], env: &[Option<Slot<'a, E::Tensor>>]) -> Results<E::Tensor> {
        args.iter().map(|it| self.value(it, env)).collect()
    }

    fn value(&self, arg: &Arg, env: &[Option<Slot<'a, E::Tensor>>]) -> Result<Value<E::Tensor>> {
        Value::of_arg(arg, &mut |arg| {
            let graph = &self.module.graph;
            let Some(node) = arg.as_node() else {
                let what = format!("the argument {} is not implemented", graph.format_arg(arg));
                return Err(Diagnostic::new(Code::NotImplemented, what));
            };
            let name = graph.node(node).name();
            match &env[node.index()] {
                Some(Slot::Value(value)) => Ok(value.clone()),
                Some(Slot::Module(module)) => {
                    let what = format!("{name} is a {} and not a value that an operator takes", module.class_name);
                    Err(Diagnostic::new(Code::NotImplemented, what))
                }
                None => Err(Diagnostic::new(Code::GraphInvalid, format!("{name} is used before it is defined"))),
            }
        })
    }
}

/// Puts keyword arguments where the inputs of these names are, with defaults in between.
fn place_keywords<T: Clone>(
    module: &GraphModule,
    kwargs: Vec<(Str, Value<T>)>,
    args: &mut Vec<Value<T>>,
) -> Result<()> {
    let mut kwargs = kwargs;
    let inputs = module.graph.nodes().map(|it| module.graph.node(it)).filter(|it| it.op() == Opcode::Placeholder);
    for input in inputs.skip(args.len()) {
        if kwargs.is_empty() {
            return Ok(());
        }
        let given = kwargs.iter().position(|(key, _)| key == input.target());
        args.push(match (given, input.args().first()) {
            (Some(at), _) => kwargs.swap_remove(at).1,
            (None, Some(default)) => Value::of_arg(default, &mut |_| {
                Err(Diagnostic::new(Code::GraphInvalid, "a default is a constant").node(&**input.name()))
            })?,
            (None, None) => {
                let what = format!("the input {} is not given", input.target());
                return Err(Diagnostic::new(Code::InputCount, what));
            }
        });
    }
    kwargs.first().map_or(Ok(()), |(key, _)| {
        let what = format!("{} takes no input {key} besides those that are given", module.class_name);
        Err(Diagnostic::new(Code::InputCount, what))
    })
}

/// What a call gives in Python: one result, or several together.
fn single<T>(mut results: Vec<Value<T>>) -> Value<T> {
    match results.len() {
        0 => Value::None,
        1 => results.remove(0),
        _ => Value::List(results),
    }
}

/// For each node its last user.
fn last_users(graph: &Graph) -> Vec<Option<NodeId>> {
    let mut res = vec![None; graph.id_bound()];
    for id in graph.nodes() {
        graph.node(id).for_each_input(&mut |input| res[input.index()] = Some(id));
    }
    res
}

/// Python's `a[i]` on a list or tuple of results.
fn get_item<T: Clone>(args: &[Value<T>]) -> Result<Value<T>> {
    let (Some(Value::List(items)), Some(Value::Int(index))) = (args.first(), args.get(1)) else {
        return Err(Diagnostic::new(Code::NotImplemented, "operator.getitem is implemented for a list and an int"));
    };
    let n = items.len() as i64;
    let position = index.as_int().map(|it| if it < 0 { it + n } else { it });
    position.and_then(|it| usize::try_from(it).ok()).and_then(|it| items.get(it)).cloned().ok_or_else(|| {
        Diagnostic::new(Code::IndexOutOfRange, format!("index {index} is out of range: there are {n} items"))
    })
}
