use crate::Executor;
use crate::autocast::wrap_with_autocast;
use crate::functionalized;
use crate::functions;
use crate::higher_order::{self, Operand, Operands, RunGraph};
use crate::run::{LOOP_STEPS, Run, Running, Watch};
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_ir::{Arg, Attribute, FakeTensor, Graph, GraphModule, NodeId, Opcode, Str, TensorMeta};
use tracefx_ops::{Op, Registry, Symbols, Value};

/// What the nodes of a graph do: compute at once, or say what is known of the results.
pub(crate) trait Evaluate: Copy {
    /// What a tensor is.
    type Tensor: Clone;

    /// The operators.
    fn registry(&self) -> &Registry;

    /// What is known of symbols in sizes; nothing where all sizes are numbers.
    fn symbols(&self) -> Option<&Symbols> {
        None
    }

    /// Calls an operator and gives back its results, one per result of the schema.
    fn call(&self, name: &str, args: &[Value<Self::Tensor>], kwargs: &Kwargs<Self::Tensor>) -> Results<Self::Tensor>;

    /// Calls a method of a value and gives back its results. Exported programs have none.
    fn call_method(&self, name: &str, _: &[Value<Self::Tensor>], _: &Kwargs<Self::Tensor>) -> Results<Self::Tensor> {
        let what = format!("calling the method {name} of a value is not implemented");
        Err(Diagnostic::new(Code::NotImplemented, what).help("export the program, so that it calls operators"))
    }

    /// A tensor that the module holds.
    fn attribute(&self, tensor: &Tensor) -> Result<Self::Tensor>;

    /// A tensor that the module stands for and whose data is elsewhere.
    fn fake(&self, tensor: &FakeTensor) -> Result<Self::Tensor> {
        let sizes = tensor.meta.sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let what = format!("the data of a tensor of sizes [{sizes}] is not here");
        Err(Diagnostic::new(Code::AttributeMissing, what).help("only shapes can be computed without data"))
    }

    /// What is known of a tensor without its data.
    fn meta(&self, tensor: &Self::Tensor) -> TensorMeta;

    /// Calls an operator that takes graphs, by its name after `torch.ops.higher_order.`.
    fn call_higher_order(&self, name: &str, operands: &[Operand<'_, Self::Tensor>]) -> Result<Value<Self::Tensor>> {
        let operands = Operands { name, operands };
        if name == "wrap_with_autocast" {
            return wrap_with_autocast(*self, *self, &operands);
        }
        self.control_flow(&operands, &mut |module, inputs| Walk { module, evaluate: *self }.run(inputs))
    }

    /// What control flow gives, where `run` gives what its graphs give.
    fn control_flow(
        &self,
        operands: &Operands<'_, Self::Tensor>,
        run: &mut RunGraph<'_, Self::Tensor>,
    ) -> Result<Value<Self::Tensor>>;

    /// Is told which node comes next.
    fn enter(&self, _: &GraphModule, _: NodeId) {}

    /// Is told what a node gave.
    fn note(&self, _: &GraphModule, _: NodeId, _: &Value<Self::Tensor>) {}
}

pub(crate) type Kwargs<T> = [(Str, Value<T>)];
pub(crate) type Results<T> = Result<Vec<Value<T>>>;

impl Evaluate for Running<'_> {
    type Tensor = Tensor;

    fn registry(&self) -> &Registry {
        self.executor.registry
    }

    fn call(&self, name: &str, args: &[Value<Tensor>], kwargs: &Kwargs<Tensor>) -> Results<Tensor> {
        functions::call(self.executor, name, args, kwargs)
    }

    fn call_method(&self, name: &str, args: &[Value<Tensor>], kwargs: &Kwargs<Tensor>) -> Results<Tensor> {
        functions::call_method(self.executor, name, args, kwargs)
    }

    fn attribute(&self, tensor: &Tensor) -> Result<Tensor> {
        Ok(tensor.clone())
    }

    fn meta(&self, tensor: &Tensor) -> TensorMeta {
        TensorMeta::of(tensor)
    }

    fn control_flow(&self, operands: &Operands<'_, Tensor>, run: &mut RunGraph<'_, Tensor>) -> Result<Value<Tensor>> {
        higher_order::call(operands, *self, run)
    }
}

/// Runs a graph node by node: `torch.fx.Interpreter` with tensors for values.
///
/// Each value is dropped after its last user ran. An error names the node where it happened.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter<'a> {
    module: &'a GraphModule,
    executor: Executor<'a>,
}

impl<'a> Interpreter<'a> {
    /// An interpreter of this module.
    pub fn new(module: &'a GraphModule, executor: Executor<'a>) -> Self {
        Interpreter { module, executor }
    }

    /// Runs the graph on these inputs, one per placeholder, and gives back what it returns.
    ///
    /// # Errors
    /// `InputCount` where an input without a default is missing or one is too many; else what a node refuses.
    pub fn run(&self, inputs: &[Value<Tensor>]) -> Result<Value<Tensor>> {
        self.run_watched(inputs, LOOP_STEPS, &mut |_, _| Ok(()))
    }

    /// Runs the graph as [`Interpreter::run`] does. Its loops take at most `loop_steps` steps together, those in sub-graphs
    /// included. `watch` is told before each node of the graph how many were run, and how many there are; and the same again
    /// before each step of a loop. An error of `watch` stops the run.
    ///
    /// # Errors
    /// As there, `LimitExceeded` for loops that take too many steps, and what `watch` gives.
    pub fn run_watched(
        &self,
        inputs: &[Value<Tensor>],
        loop_steps: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Value<Tensor>> {
        let watch: &mut Watch<'_> = &mut |done, all| watch(done, all);
        let run = Run::new(loop_steps, watch);
        let evaluate = Running { executor: self.executor, steps: &run };
        Walk { module: self.module, evaluate }.run_watched(inputs, &mut |done, all| run.enter(done, all))
    }
}

/// One way through a graph, in order.
pub(crate) struct Walk<'a, E> {
    pub(crate) module: &'a GraphModule,
    pub(crate) evaluate: E,
}

/// What a node has become.
#[derive(Clone)]
pub(crate) enum Slot<'a, T> {
    Value(Value<T>),
    Module(&'a GraphModule),
}

impl<'a, E: Evaluate> Walk<'a, E> {
    pub(crate) fn run(&self, inputs: &[Value<E::Tensor>]) -> Result<Value<E::Tensor>> {
        self.run_watched(inputs, &mut |_, _| Ok(()))
    }

    fn run_watched(&self, inputs: &[Value<E::Tensor>], watch: &mut Watch<'_>) -> Result<Value<E::Tensor>> {
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
            let n_batched = self.stretch(&nodes[at..]);
            if n_batched > 0 {
                at += n_batched;
                self.run_stretch(&nodes[first..at], &mut env, 1)?;
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
    pub(crate) fn bind(&self, id: NodeId, slot: Slot<'a, E::Tensor>, env: &mut [Option<Slot<'a, E::Tensor>>]) {
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

    pub(crate) fn run_node(
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
                Walk { module, evaluate: self.evaluate }.run(&args).map(Slot::Value)
            }
            Opcode::CallMethod => {
                let (args, kwargs) = (self.values(node.args(), env)?, self.kwargs(id, env)?);
                self.evaluate.call_method(node.target(), &args, &kwargs).map(single).map(Slot::Value)
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
        if self.predispatched(id) == Some("lazy_load_decompositions") {
            return Ok(Value::None);
        }
        if let Some(name) = node.target().strip_prefix("torch.ops.higher_order.") {
            if functionalized::NAMES.contains(&name) {
                return functionalized::call(self.evaluate, name, node.args(), &self.kwargs(id, env)?);
            }
            let operands = node.args().iter().map(|it| self.operand(it, env)).collect::<Result<Vec<_>>>()?;
            return self.evaluate.call_higher_order(name, &operands);
        }
        let (args, kwargs) = (self.values(node.args(), env)?, self.kwargs(id, env)?);
        self.evaluate.call(node.target(), &args, &kwargs).map(single)
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

    pub(crate) fn values(&self, args: &[Arg], env: &[Option<Slot<'a, E::Tensor>>]) -> Results<E::Tensor> {
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
