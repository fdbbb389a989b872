//! The way through a graph: its nodes in order, with the values that they give.
//!
//! The walk decides which nodes are visited, in which order and with which values, when a value is dropped, what an item of a
//! result is, and how the region of a vmap is run. A [`NodeVisitor`] decides what a node gives.

use crate::run::Watch;
use crate::vmap::{predispatched, vmap_region};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Opcode, Str};
use tracefx_ops::Value;

/// How deep regions of a vmap lie in each other at most: a file must not be able to keep its reader for ever.
const MAX_DEPTH: usize = 8;

/// What a node has become.
#[derive(Clone)]
pub enum Slot<'g, T> {
    /// A value.
    Value(Value<T>),
    /// A graph that the module holds.
    Module(&'g GraphModule),
}

/// What the nodes of a graph have become, as far as they were visited and something uses them still.
#[derive(Clone)]
pub struct Env<'g, T> {
    graph: &'g Graph,
    slots: Vec<Option<Slot<'g, T>>>,
}

impl<'g, T: Clone> Env<'g, T> {
    fn new(graph: &'g Graph) -> Self {
        Env { graph, slots: vec![None; graph.id_bound()] }
    }

    fn bind(&mut self, id: NodeId, slot: Slot<'g, T>) {
        if !self.graph.users(id).is_empty() {
            self.slots[id.index()] = Some(slot);
        }
    }

    /// Gives a node that has a value another one.
    pub(crate) fn rebind(&mut self, id: NodeId, value: &Value<T>) {
        if let Some(slot) = &mut self.slots[id.index()] {
            *slot = Slot::Value(value.clone());
        }
    }

    /// The graph that an argument is, and the path at which the module holds it.
    pub fn module(&self, arg: &Arg) -> Option<(&'g GraphModule, &'g Str)> {
        let id = arg.as_node()?;
        match self.slots[id.index()] {
            Some(Slot::Module(module)) => Some((module, self.graph.node(id).target())),
            Some(Slot::Value(_)) | None => None,
        }
    }

    /// The value of an argument.
    ///
    /// # Errors
    /// `NotImplemented` where it is a graph, or no kind of value; `GraphInvalid` where its node was not visited yet.
    pub fn value(&self, arg: &Arg) -> Result<Value<T>> {
        Value::of_arg(arg, &mut |arg| {
            let Some(node) = arg.as_node() else {
                let what = format!("the argument {} is not implemented", self.graph.format_arg(arg));
                return Err(Diagnostic::new(Code::NotImplemented, what));
            };
            let name = self.graph.node(node).name();
            match &self.slots[node.index()] {
                Some(Slot::Value(value)) => Ok(value.clone()),
                Some(Slot::Module(module)) => {
                    let what = format!("{name} is a {} and not a value that an operator takes", module.class_name);
                    Err(Diagnostic::new(Code::NotImplemented, what))
                }
                None => Err(Diagnostic::new(Code::GraphInvalid, format!("{name} is used before it is defined"))),
            }
        })
    }

    /// The values of arguments.
    ///
    /// # Errors
    /// As [`Env::value`].
    pub fn values(&self, args: &[Arg]) -> Result<Vec<Value<T>>> {
        args.iter().map(|it| self.value(it)).collect()
    }

    /// The values of the keyword arguments of a node.
    ///
    /// # Errors
    /// As [`Env::value`].
    pub fn kwargs(&self, id: NodeId) -> Result<Vec<(Str, Value<T>)>> {
        self.graph.node(id).kwargs().iter().map(|(key, it)| Ok((key.clone(), self.value(it)?))).collect()
    }
}

/// What nodes give, as [`walk`] asks it.
pub trait NodeVisitor<'g> {
    /// What a tensor is.
    type Tensor: Clone;

    /// Over how many examples a vmap runs at most.
    const MAX_EXAMPLES: i64 = 1 << 20;

    /// Is told which node comes next.
    fn enter(&mut self, _: &'g GraphModule, _: NodeId) {}

    /// What a module holds: a graph, or a tensor.
    ///
    /// # Errors
    /// `AttributeMissing` where it holds nothing of this name.
    fn get_attr(&mut self, module: &'g GraphModule, node: NodeId) -> Result<Slot<'g, Self::Tensor>>;

    /// What a call gives.
    ///
    /// # Errors
    /// What the call refuses.
    fn call(
        &mut self,
        module: &'g GraphModule,
        node: NodeId,
        env: &mut Env<'g, Self::Tensor>,
    ) -> Result<Value<Self::Tensor>>;

    /// What an operator gives that the walk itself calls: a vmap takes slices, and stacks results.
    ///
    /// # Errors
    /// What the operator refuses.
    fn call_operator(&mut self, name: &str, args: &[Value<Self::Tensor>]) -> Result<Value<Self::Tensor>>;

    /// Whether the region of a vmap with these nodes inside is run on all examples at once.
    ///
    /// # Errors
    /// `NotImplemented` where it is not run at all.
    fn is_batched(&self, _: &GraphModule, _: &[NodeId]) -> Result<bool> {
        Ok(false)
    }

    /// Is told what a node gave; of what a vmap runs for each example, what it gave for the first.
    ///
    /// # Errors
    /// What the visitor refuses to keep.
    fn note(&mut self, _: &'g GraphModule, _: NodeId, _: &Value<Self::Tensor>) -> Result<()> {
        Ok(())
    }
}

/// Visits the nodes of a graph in order, on these inputs, one per placeholder, and gives what the graph returns. A value is
/// dropped after its last user, and an error names the node where it happened.
///
/// # Errors
/// `InputCount` where an input without a default is missing or one is too many; else what a node refuses.
pub fn walk<'g, V: NodeVisitor<'g>>(
    module: &'g GraphModule,
    visitor: &mut V,
    inputs: &[Value<V::Tensor>],
) -> Result<Value<V::Tensor>> {
    walk_watched(module, visitor, inputs, &mut |_, _| Ok(()))
}

pub(crate) fn walk_watched<'g, V: NodeVisitor<'g>>(
    module: &'g GraphModule,
    visitor: &mut V,
    inputs: &[Value<V::Tensor>],
    watch: &mut Watch<'_>,
) -> Result<Value<V::Tensor>> {
    let graph = &module.graph;
    let last_users = last_users(graph);
    let mut env = Env::new(graph);
    let mut inputs = inputs.iter();
    let nodes: Vec<NodeId> = graph.nodes().collect();
    let mut at = 0;
    while at < nodes.len() {
        watch(at, nodes.len())?;
        let (id, first) = (nodes[at], at);
        let node = graph.node(id);
        let fail = |problem: Diagnostic| problem.node(&**node.name());
        let n_batched = vmap_region(graph, &nodes[at..]);
        at += n_batched.max(1);
        if n_batched > 0 {
            run_region(module, visitor, &nodes[first..at], &mut env, 1).map_err(fail)?;
        } else {
            visitor.enter(module, id);
            let slot = match node.op() {
                Opcode::Placeholder => match (inputs.next(), node.args().first()) {
                    (Some(input), _) => Ok(Slot::Value(input.clone())),
                    (None, Some(default)) => env.value(default).map(Slot::Value),
                    (None, None) => {
                        let name = node.target();
                        let what =
                            format!("Expected positional argument for parameter {name}, but one was not passed in!");
                        Err(Diagnostic::new(Code::InputCount, what))
                    }
                },
                Opcode::Output => env.value(node.args().first().unwrap_or(&Arg::None)).map(Slot::Value),
                _ => visit(module, visitor, id, &mut env),
            };
            let slot = slot.map_err(fail)?;
            if let Slot::Value(value) = &slot {
                visitor.note(module, id, value).map_err(fail)?;
            }
            if node.op() == Opcode::Output {
                let extra = inputs.count();
                return match slot {
                    Slot::Value(value) if extra == 0 => Ok(value),
                    Slot::Value(_) => Err(Diagnostic::new(Code::InputCount, format!("{extra} inputs too many"))),
                    Slot::Module(_) => Err(Diagnostic::new(Code::GraphInvalid, "the graph returns a module")),
                };
            }
            env.bind(id, slot);
        }
        for &id in &nodes[first..at] {
            graph.node(id).for_each_input(&mut |input| {
                if last_users[input.index()] == Some(id) {
                    env.slots[input.index()] = None;
                }
            });
        }
    }
    Err(Diagnostic::new(Code::GraphInvalid, "the graph has no output"))
}

/// What a node becomes that is neither an input nor the output.
fn visit<'g, V: NodeVisitor<'g>>(
    module: &'g GraphModule,
    visitor: &mut V,
    id: NodeId,
    env: &mut Env<'g, V::Tensor>,
) -> Result<Slot<'g, V::Tensor>> {
    let node = module.graph.node(id);
    match node.op() {
        Opcode::GetAttr => visitor.get_attr(module, id),
        Opcode::CallFunction if &**node.target() == "operator.getitem" => {
            get_item(&env.values(node.args())?).map(Slot::Value)
        }
        // It makes rules for batches known, of which none is needed here.
        Opcode::CallFunction if predispatched(node) == Some("lazy_load_decompositions") => Ok(Slot::Value(Value::None)),
        Opcode::CallFunction | Opcode::CallModule | Opcode::CallMethod => {
            visitor.call(module, id, env).map(Slot::Value)
        }
        Opcode::Placeholder | Opcode::Output => {
            Err(Diagnostic::new(Code::GraphInvalid, "an input or output of the graph within a vmap"))
        }
    }
}

/// What the region of a vmap gives: the node, the dimension to stack along, and a value for each example.
type Given<T> = (NodeId, Value<T>, Vec<Value<T>>);

/// Runs the region of a vmap for each example, or on all of them at once, and leaves what it gives in `env`.
///
/// # Errors
/// `NotImplemented` where the examples draw random numbers or are none; `LimitExceeded` where they are too many; else
/// what a node refuses.
fn run_region<'g, V: NodeVisitor<'g>>(
    module: &'g GraphModule,
    visitor: &mut V,
    nodes: &[NodeId],
    env: &mut Env<'g, V::Tensor>,
    depth: usize,
) -> Result<()> {
    let [first, inner @ .., last] = nodes else { return Ok(()) };
    let graph = &module.graph;
    let refuse = |code: Code, what: String| Err(Diagnostic::new(code, what).node(&**graph.node(*first).name()));
    let n_examples = match &env.values(graph.node(*first).args())?[..] {
        [Value::Int(n), Value::Str(random)] if &**random == "error" => n.as_int().unwrap_or(0),
        _ => return refuse(Code::NotImplemented, "a vmap with random numbers is not implemented".to_string()),
    };
    if visitor.is_batched(module, inner)? {
        for &id in inner {
            let node = graph.node(id);
            let slot = match (predispatched(node), node.args()) {
                (Some(_), [it, ..]) => Slot::Value(env.value(it)?),
                (_, _) => visit(module, visitor, id, env)?,
            };
            env.bind(id, slot);
        }
        return Ok(());
    }
    if n_examples < 1 {
        return refuse(Code::NotImplemented, "a vmap over no known number of examples is not implemented".to_string());
    }
    let max_examples = V::MAX_EXAMPLES;
    if depth > MAX_DEPTH || n_examples > max_examples {
        let what = format!(
            "a vmap of depth {depth} over {n_examples} examples exceeds the limits {MAX_DEPTH} and {max_examples}"
        );
        return refuse(Code::LimitExceeded, what);
    }
    let mut given: Vec<Given<V::Tensor>> = Vec::new();
    for example in 0..n_examples {
        let mut own = env.clone();
        let mut at = 0;
        while at < inner.len() {
            let id = inner[at];
            let node = graph.node(id);
            let n_inner = vmap_region(graph, &inner[at..]);
            if n_inner > 0 {
                run_region(module, visitor, &inner[at..at + n_inner], &mut own, depth + 1)?;
                at += n_inner;
                continue;
            }
            at += 1;
            let slot = match (predispatched(node), node.args()) {
                (Some("_add_batch_dim"), [it, dim, ..]) => {
                    let slice = [own.value(it)?, own.value(dim)?, Value::int(example)];
                    Slot::Value(visitor.call_operator("aten.select.int", &slice)?)
                }
                (Some("_remove_batch_dim"), [it, _, _, dim]) => {
                    let it = own.value(it)?;
                    match given.iter_mut().find(|(of, ..)| *of == id) {
                        Some((_, _, values)) => values.push(it),
                        None => given.push((id, own.value(dim)?, vec![it])),
                    }
                    continue;
                }
                (_, _) => visit(module, visitor, id, &mut own)?,
            };
            if let (0, Slot::Value(value)) = (example, &slot) {
                visitor.note(module, id, value)?;
            }
            own.bind(id, slot);
        }
    }
    for (id, dim, values) in given {
        let stacked = visitor.call_operator("aten.stack.default", &[Value::List(values), dim])?;
        visitor.note(module, id, &stacked)?;
        env.bind(id, Slot::Value(stacked));
    }
    visitor.note(module, *first, &Value::None)?;
    visitor.note(module, *last, &Value::None)
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
