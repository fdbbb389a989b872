//! The visitor of a graph that is evaluated: what [`Evaluate`] asks, with autocast, called modules, and operators that are
//! functionalized.

use crate::autocast;
use crate::evaluate::{Evaluate, Kwargs, Results};
use crate::functionalized;
use crate::higher_order::{Operand, Operands};
use crate::walk::{Env, NodeVisitor, Slot, walk};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, Str};
use tracefx_ops::{Op, Value};

/// Visits nodes by what an implementation of [`Evaluate`] gives.
#[derive(Clone, Copy)]
pub(crate) struct Evaluation<E> {
    evaluate: E,
    /// The dtype of autocast, where that is on.
    autocast: Option<DType>,
}

impl<E: Evaluate> Evaluation<E> {
    /// A visitor without autocast.
    pub(crate) fn new(evaluate: E) -> Self {
        Evaluation { evaluate, autocast: None }
    }

    fn op(&self, graph: &Graph, id: NodeId) -> Option<&Op> {
        let node = graph.node(id);
        if node.op() == Opcode::CallFunction { self.evaluate.registry().get(node.target()) } else { None }
    }

    /// Gives the view that a tensor has become in place to every node that stands for this very tensor.
    fn rebind(&self, graph: &Graph, id: NodeId, value: &Value<E::Tensor>, env: &mut Env<'_, E::Tensor>) {
        let tensor = self.tensor_of(graph, id);
        graph.nodes().filter(|&it| self.tensor_of(graph, it) == tensor).for_each(|it| env.rebind(it, value));
    }

    /// The node that made the tensor which this node gives back: what works in place gives its argument back.
    fn tensor_of(&self, graph: &Graph, mut id: NodeId) -> NodeId {
        while self.op(graph, id).is_some_and(Op::returns_self)
            && let Some(this) = graph.node(id).args().first().and_then(Arg::as_node)
        {
            id = this;
        }
        id
    }

    fn call_node<'g>(
        &mut self,
        module: &'g GraphModule,
        id: NodeId,
        env: &Env<'g, E::Tensor>,
    ) -> Result<Value<E::Tensor>> {
        let node = module.graph.node(id);
        let higher_order = node.target().strip_prefix("torch.ops.higher_order.");
        match (node.op(), higher_order) {
            (Opcode::CallModule, _) => {
                let module = module.submodule(node.target())?;
                if module.graph.is_empty() {
                    let what = format!("`{}` is a {} without a graph", node.target(), module.class_name);
                    return Err(
                        Diagnostic::new(Code::NotImplemented, what).help("trace it with the tracer's leaf rule off")
                    );
                }
                let mut args = env.values(node.args())?;
                place_keywords(module, env.kwargs(id)?, &mut args)?;
                walk(module, self, &args)
            }
            (Opcode::CallMethod, _) => {
                self.call_method(node.target(), &env.values(node.args())?, &env.kwargs(id)?).map(single)
            }
            (_, Some(name)) if functionalized::NAMES.contains(&name) => {
                let call = &|name: &str, args: &[_], kwargs: &Kwargs<_>| self.call_function(name, args, kwargs);
                functionalized::call(self.evaluate.registry(), call, name, node.args(), &env.kwargs(id)?)
            }
            (_, Some(name)) => {
                let operand = |it: &Arg| match env.module(it) {
                    Some((module, _)) => Ok(Operand::Module(module)),
                    None => env.value(it).map(Operand::Value),
                };
                let operands = node.args().iter().map(operand).collect::<Result<Vec<_>>>()?;
                self.call_higher_order(&Operands { name, operands: &operands })
            }
            (_, None) => self.call_function(node.target(), &env.values(node.args())?, &env.kwargs(id)?).map(single),
        }
    }

    /// Calls an operator or a function, with autocast where it is on.
    fn call_function(&self, name: &str, args: &[Value<E::Tensor>], kwargs: &Kwargs<E::Tensor>) -> Results<E::Tensor> {
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
        let mut inner = *self;
        if operands.name == "wrap_with_autocast" {
            let (module, inputs) = (operands.module(4)?, operands.values(5)?);
            inner.autocast = autocast::dtype_of(operands, self.autocast)?;
            return walk(module, &mut inner, &inputs);
        }
        self.evaluate.control_flow(operands, &mut |module, inputs| walk(module, &mut inner, inputs))
    }
}

impl<'g, E: Evaluate> NodeVisitor<'g> for Evaluation<E> {
    type Tensor = E::Tensor;

    fn enter(&mut self, module: &'g GraphModule, node: NodeId) {
        self.evaluate.enter(module, node);
    }

    fn get_attr(&mut self, module: &'g GraphModule, node: NodeId) -> Result<Slot<'g, E::Tensor>> {
        Ok(match module.attribute(module.graph.node(node).target())? {
            Attribute::Tensor { tensor, .. } => Slot::Value(Value::Tensor(self.evaluate.attribute(tensor)?)),
            Attribute::Fake { tensor, .. } => Slot::Value(Value::Tensor(self.evaluate.fake(tensor)?)),
            Attribute::Module(module) => Slot::Module(module),
        })
    }

    fn call(
        &mut self,
        module: &'g GraphModule,
        node: NodeId,
        env: &mut Env<'g, E::Tensor>,
    ) -> Result<Value<E::Tensor>> {
        let value = self.call_node(module, node, env)?;
        if self.op(&module.graph, node).is_some_and(Op::reshapes_self) {
            self.rebind(&module.graph, node, &value, env);
        }
        Ok(value)
    }

    fn call_operator(&mut self, name: &str, args: &[Value<E::Tensor>]) -> Result<Value<E::Tensor>> {
        Ok(self.call_function(name, args, &[])?.swap_remove(0))
    }

    fn note(&mut self, module: &'g GraphModule, node: NodeId, value: &Value<E::Tensor>) -> Result<()> {
        self.evaluate.note(module, node, value);
        Ok(())
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
