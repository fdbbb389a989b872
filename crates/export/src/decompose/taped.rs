//! A graph that is run with a tape over the builder, so that gradients can go back through it.

use super::decomposer::{Decomposer, without_graphs};
use super::functional::Functional;
use super::higher_order_call::HigherOrderCall;
use super::no_grad::NoGrad;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::{Env, NodeVisitor, Slot, walk};
use tracefx_ir::{GraphModule, NodeId, Str};
use tracefx_ops::{Builder, Tape, TensorRef, Traced, Value, Vjp};

/// A graph whose operators are those that gradients are recorded of, as it is run.
pub(super) struct Taped<'f, 'a> {
    pub(super) graph: &'f GraphModule,
    pub(super) no_grad: &'f NoGrad,
    pub(super) tape: Tape<'a, Functional<'a>>,
    /// The new module, without its graph.
    pub(super) module: GraphModule,
    /// The calls of operators that take graphs through which gradients flow, by their numbers on the tape.
    pub(super) calls: Vec<HigherOrderCall<'f>>,
    /// What was given by the nodes that others take the place of where no gradient flows.
    hidden: Vec<(Str, Traced)>,
}

impl<'f, 'a> Taped<'f, 'a> {
    pub(super) fn new(graph: &'f GraphModule, no_grad: &'f NoGrad, functional: Functional<'a>) -> Self {
        let shapes = functional.shapes;
        let (registry, symbols) = (shapes.registry(), shapes.symbols());
        Taped {
            graph,
            no_grad,
            tape: Tape::within(registry, functional, symbols),
            module: without_graphs(graph),
            calls: Vec::new(),
            hidden: Vec::new(),
        }
    }

    /// Runs the graph; gives what it returns.
    pub(super) fn run(&mut self, inputs: &[Traced]) -> Result<Vec<Traced>> {
        let results = walk(self.graph, self, inputs)?;
        self.refuse_hidden_writes()?;
        Ok(if let Value::List(items) = results { items } else { vec![results] })
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
    fn refuse_hidden_writes(&self) -> Result<()> {
        let Some((hidden, _)) = self.hidden.iter().find(|(_, it)| self.tape.is_tracked(it)) else { return Ok(()) };
        let what = "a write under torch.no_grad() to a tensor that requires a gradient is not implemented";
        Err(Diagnostic::new(Code::NotImplemented, what).node(&**hidden))
    }

    /// A node that is no operator: a number, or control flow.
    fn call_other(&mut self, id: NodeId, env: &mut Env<'f, TensorRef>) -> Result<Traced> {
        let node = self.graph.graph.node(id);
        let mut decomposer = Decomposer::new(self.tape.builder());
        let result = decomposer.call(self.graph, id, env)?;
        self.module.attributes.extend(decomposer.attributes);
        if self.no_grad.frozen.contains(node.name()) {
            return Ok(result);
        }
        let is_tracked = |it: &Traced| self.tape.is_tracked(it);
        let mut is_any_tracked = false;
        node.for_each_input(&mut |it| is_any_tracked |= env.value(&it.into()).is_ok_and(|it| is_tracked(&it)));
        if is_any_tracked {
            let call = HigherOrderCall::read(node, env, &result, self.no_grad, &is_tracked)?;
            self.tape.record_other(call.operands.clone(), call.results.clone());
            self.calls.push(call);
        }
        Ok(result)
    }
}

impl<'f> NodeVisitor<'f> for Taped<'f, '_> {
    type Tensor = TensorRef;

    fn get_attr(&mut self, module: &'f GraphModule, node: NodeId) -> Result<Slot<'f, TensorRef>> {
        Decomposer::new(self.tape.builder()).get_attr(module, node)
    }

    fn call(&mut self, module: &'f GraphModule, id: NodeId, env: &mut Env<'f, TensorRef>) -> Result<Traced> {
        let node = module.graph.node(id);
        let op = self.tape.builder().shapes.registry().get(node.target());
        let Some(op) = op.filter(|_| node.target().starts_with("torch.ops.")) else {
            return self.call_other(id, env);
        };
        self.tape.builder().recorder.follow(node);
        let (args, kwargs) = (env.values(node.args())?, env.kwargs(id)?);
        let kwargs: Vec<(&str, Traced)> = kwargs.iter().map(|(key, it)| (&**key, it.clone())).collect();
        let is_constant = self.no_grad.frozen.contains(node.name()) || matches!(op.def.vjp, Some(Vjp::None));
        let mut results = if is_constant {
            let results = self.tape.builder().call(&op.name, &args, &kwargs)?;
            // Decomposed, it may be an argument itself; the result is another tensor, which has no gradient.
            results.iter().map(|it| self.detached(it)).collect::<Result<_>>()?
        } else {
            self.tape.call(&op.name, &args, &kwargs)?
        };
        Ok(if op.schema.returns.len() == 1 { results.swap_remove(0) } else { Value::List(results) })
    }

    fn call_operator(&mut self, name: &str, args: &[Traced]) -> Result<Traced> {
        Ok(self.tape.call(name, args, &[])?.swap_remove(0))
    }

    fn note(&mut self, module: &'f GraphModule, node: NodeId, value: &Traced) -> Result<()> {
        let name = module.graph.node(node).name();
        if self.no_grad.hidden_writes.contains(name) {
            self.hidden.push((name.clone(), value.clone()));
        }
        Ok(())
    }
}
