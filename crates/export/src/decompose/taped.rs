//! A graph that is run with a tape over the builder, so that gradients can go back through it.

use super::functional::Functional;
use super::higher_order_call::HigherOrderCall;
use super::run::{Run, Slot, value, without_graphs};
use super::seen::Seen;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{GraphModule, NodeId, Opcode};
use tracefx_ops::{Builder, Tape, TensorRef, Traced, Value, Vjp};

/// A graph whose operators are those that gradients are recorded of, as it is run.
pub(super) struct Taped<'f, 'a> {
    pub(super) graph: &'f GraphModule,
    pub(super) seen: &'f Seen,
    pub(super) tape: Tape<'a, Functional<'a>>,
    /// The new module, without its graph.
    pub(super) module: GraphModule,
    /// The calls of operators that take graphs through which gradients flow, by their numbers on the tape.
    calls: Vec<HigherOrderCall<'f>>,
}

impl<'f, 'a> Taped<'f, 'a> {
    pub(super) fn new(graph: &'f GraphModule, seen: &'f Seen, functional: Functional<'a>) -> Self {
        let shapes = functional.shapes;
        let (registry, symbols) = (shapes.registry(), shapes.symbols());
        Taped {
            graph,
            seen,
            tape: Tape::within(registry, functional, symbols),
            module: without_graphs(graph),
            calls: Vec::new(),
        }
    }

    /// Runs the graph; gives what it returns.
    pub(super) fn run(&mut self, inputs: Vec<Traced>) -> Result<Vec<Traced>> {
        let graph = &self.graph.graph;
        let mut env: Vec<Option<Slot<'f>>> = vec![None; graph.id_bound()];
        let mut inputs = inputs.into_iter();
        for id in graph.nodes() {
            let node = graph.node(id);
            let fail = |problem: Diagnostic| problem.node(&**node.name());
            let slot = match node.op() {
                Opcode::Placeholder => Slot::Value(inputs.next().unwrap_or(Value::None)),
                Opcode::GetAttr => Run::new(self.tape.builder()).get_attr(self.graph, node).map_err(fail)?,
                Opcode::Output => {
                    self.refuse_hidden_writes(&env)?;
                    return match value(node.args().first().unwrap_or(&tracefx_ir::Arg::None), &env)? {
                        Value::List(items) => Ok(items),
                        single => Ok(vec![single]),
                    };
                }
                Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule => {
                    Slot::Value(self.call(id, &env).map_err(fail)?)
                }
            };
            env[id.index()] = Some(slot);
        }
        Err(Diagnostic::new(Code::GraphInvalid, "the graph has no output"))
    }

    /// Goes back from these tensors with their gradients, and gives those of all tensors that they depend on.
    pub(super) fn pull_back(&mut self, from: &[(TensorRef, TensorRef)]) -> Result<super::Gradients> {
        let Taped { tape, module, calls, .. } = self;
        let gradients = tape.pull_back_with(from, &mut |functional, number, grads| {
            calls[number].pull_back(functional, module, grads)
        })?;
        Ok(gradients.into_iter().collect())
    }

    fn call(&mut self, id: NodeId, env: &[Option<Slot<'f>>]) -> Result<Traced> {
        let node = self.graph.graph.node(id);
        let op = self.tape.builder().shapes.registry().get(node.target());
        let Some(op) = op.filter(|_| node.target().starts_with("torch.ops.")) else {
            return self.call_other(id, env);
        };
        self.tape.builder().recorder.follow(&node.meta);
        let args = node.args().iter().map(|it| value(it, env)).collect::<Result<Vec<_>>>()?;
        let kwargs = node.kwargs().iter().map(|(key, it)| Ok((&**key, value(it, env)?)));
        let kwargs: Vec<(&str, Traced)> = kwargs.collect::<Result<_>>()?;
        let is_constant = self.seen.frozen.contains(node.name()) || matches!(op.def.vjp, Some(Vjp::None));
        let mut results = if is_constant {
            let results = self.tape.builder().call(&op.name, &args, &kwargs)?;
            // Taken apart, it may be an argument itself; the result is another tensor, which has no gradient.
            results.iter().map(|it| self.detached(it)).collect::<Result<_>>()?
        } else {
            self.tape.call(&op.name, &args, &kwargs)?
        };
        Ok(if op.schema.returns.len() == 1 { results.swap_remove(0) } else { Value::List(results) })
    }

    /// A node that is no operator: an item of a result, a number, control flow.
    fn call_other(&mut self, id: NodeId, env: &[Option<Slot<'f>>]) -> Result<Traced> {
        let node = self.graph.graph.node(id);
        let mut run = Run::new(self.tape.builder());
        let result = run.call(node, env)?;
        let attributes = run.attributes;
        self.module.attributes.extend(attributes);
        if &**node.target() == "operator.getitem" || self.seen.frozen.contains(node.name()) {
            return Ok(result);
        }
        let mut is_tracked = false;
        node.for_each_input(&mut |it| {
            is_tracked |= matches!(&env[it.index()], Some(Slot::Value(it)) if self.tape.is_tracked(it));
        });
        if is_tracked {
            let is_tracked = |it: &Traced| self.tape.is_tracked(it);
            let call = HigherOrderCall::read(node, env, &result, self.seen, &is_tracked)?;
            self.tape.record_other(call.operands.clone(), call.results.clone());
            self.calls.push(call);
        }
        Ok(result)
    }

    fn detached(&mut self, result: &Traced) -> Result<Traced> {
        if !self.tape.is_tracked(result) {
            return Ok(result.clone());
        }
        let functional = self.tape.builder();
        let current = functional.current(result)?;
        Ok(functional.wrapped(&current))
    }

    /// What is written under `torch.no_grad()` keeps the gradient that it had, which a graph of values cannot say.
    fn refuse_hidden_writes(&self, env: &[Option<Slot<'f>>]) -> Result<()> {
        let graph = &self.graph.graph;
        let is_hidden = |it: &NodeId| self.seen.hidden_writes.contains(graph.node(*it).name());
        let hidden = graph.nodes().filter(is_hidden).find(|it| {
            let value = env[it.index()].as_ref();
            matches!(value, Some(Slot::Value(it)) if self.tape.is_tracked(it))
        });
        let Some(hidden) = hidden else { return Ok(()) };
        let what = "a write under torch.no_grad() to a tensor that requires a gradient is not implemented";
        Err(Diagnostic::new(Code::NotImplemented, what).node(&**graph.node(hidden).name()))
    }
}
