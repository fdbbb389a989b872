//! A graph of Python's functions and methods as the operators that they are.

use crate::control_flow::results_of_graphs;
use crate::evaluate::{Evaluate, Kwargs, Results};
use crate::evaluation::Evaluation;
use crate::functions;
use crate::higher_order::{Operand, Operands, RunGraph};
use crate::walk::walk;
use std::cell::RefCell;
use tracefx_core::{Code, Device, Diagnostic, Result, Tensor};
use tracefx_ir::{GraphModule, NodeId, Str, TensorMeta};
use tracefx_ops::{ArgType, Args, Builder, Propagation, Registry, Symbols, TensorRef, Traced, Value};
use tracefx_sym::SymBool;

/// Where the operators of a graph go.
pub trait Tracer: Builder {
    /// What stands for a tensor that a module holds.
    ///
    /// # Errors
    /// `NotImplemented` where modules may hold none.
    fn attribute(&mut self, tensor: &Tensor) -> Result<TensorRef>;

    /// Is told of the node whose operators come next.
    fn enter(&mut self, _: &GraphModule, _: NodeId) {}

    /// Takes a condition to hold: `torch._check`.
    ///
    /// # Errors
    /// `NotImplemented` where nobody keeps conditions; `AssertionFailed` where it does not hold.
    fn check(&mut self, _: &SymBool, _: Option<Str>) -> Result<()> {
        Err(Diagnostic::new(Code::NotImplemented, "torch._check is there in programs that are exported"))
    }

    /// Whether `wrap_with_set_grad_enabled` stays a call of a graph. Without gradients it is what its graph is.
    fn keeps_grad_mode(&self) -> bool {
        true
    }

    /// What writes the graphs of control flow; nothing where there may be none.
    fn graphs(&mut self) -> Option<&mut dyn GraphTracer> {
        None
    }
}

/// Writes graphs of control flow, and calls of operators that take them.
pub trait GraphTracer {
    /// Begins a graph with inputs of which this is known, and gives what stands for them. All that is called goes into it,
    /// until it ends. The inputs are called as the nodes of `operands` are, where these are given.
    ///
    /// # Errors
    /// `NotImplemented` for an operand that is no value of a graph.
    fn begin(&mut self, inputs: &[Value<TensorMeta>], operands: Option<&[Traced]>) -> Result<Vec<Traced>>;

    /// Ends the graph, which gives this. Gives what is known of that.
    ///
    /// # Errors
    /// `NotImplemented` for a result that no graph gives.
    fn end(&mut self, result: &Traced) -> Result<Value<TensorMeta>>;

    /// Calls an operator on the graphs that have ended: each stands where an operand is `None`. What they use from around
    /// them is added to the last operand where that is a list, else behind it. Gives the results, of which this is known.
    ///
    /// # Errors
    /// `NotImplemented` for an operand that is no value of a graph.
    fn call(&mut self, name: &str, operands: &[Option<Traced>], results: &Value<TensorMeta>) -> Result<Traced>;
}

/// Runs a graph with a tracer in the place of kernels, so that what `torch.fx` traced becomes calls of operators. Functions
/// and methods of Python go to the overloads that they call in PyTorch; modules that are called are walked through, and
/// graphs of control flow become graphs of operators.
///
/// # Errors
/// `InputCount` where the graph does not take these arguments; `NotImplemented` for functions that are no operators, and
/// for operators that take graphs where the tracer writes none; else what the tracer refuses. The error names the node.
pub fn lower<T: Tracer>(
    module: &GraphModule,
    shapes: Propagation<'_>,
    tracer: &mut T,
    args: &[Traced],
) -> Result<Traced> {
    walk(module, &mut Evaluation::new(Lowering { shapes, tracer: &RefCell::new(tracer) }), args)
}

struct Lowering<'a, 'b, T> {
    shapes: Propagation<'a>,
    tracer: &'a RefCell<&'b mut T>,
}

impl<T> Clone for Lowering<'_, '_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Lowering<'_, '_, T> {}

impl<T: Tracer> Lowering<'_, '_, T> {
    fn record(&self, name: &str, args: &[Traced], kwargs: &Kwargs<TensorRef>) -> Results<TensorRef> {
        let kwargs: Vec<(&str, Traced)> = kwargs.iter().map(|(key, it)| (&**key, it.clone())).collect();
        self.tracer.borrow_mut().call(name, args, &kwargs)
    }

    fn with_graphs<R>(
        &self,
        operands: &Operands<'_, TensorRef>,
        act: impl FnOnce(&mut dyn GraphTracer) -> Result<R>,
    ) -> Result<R> {
        match self.tracer.borrow_mut().graphs() {
            Some(graphs) => act(graphs),
            None => Err(operands.unknown()),
        }
    }

    /// An operand without what only the tracer knows of it.
    fn known<'o>(&self, operand: &Operand<'o, TensorRef>) -> Operand<'o, TensorMeta> {
        match operand {
            Operand::Value(it) => Operand::Value(it.map(&mut |it| self.meta_of(*it))),
            Operand::Module(it) => Operand::Module(it),
        }
    }

    /// `torch._check(condition, message)`, as the name says; nothing for another function.
    fn check(&self, name: &str, args: &[Traced]) -> Option<Result<Vec<Traced>>> {
        if name != "torch._check" {
            return None;
        }
        let condition = match args.first() {
            Some(Value::Bool(it)) => SymBool::Const(*it),
            Some(Value::SymBool(it)) => it.clone(),
            other => {
                let kind = other.map_or("nothing", Value::kind_name);
                let what = format!("torch._check takes a condition on sizes, and was given a {kind}");
                return Some(Err(Diagnostic::new(Code::InvalidArgument, what)));
            }
        };
        let message = if let Some(Value::Str(it)) = args.get(1) { Some(it.clone()) } else { None };
        Some(self.tracer.borrow_mut().check(&condition, message).map(|()| Vec::new()))
    }

    fn meta_of(&self, tensor: TensorRef) -> TensorMeta {
        self.tracer.borrow().meta(tensor).clone()
    }
}

impl<T: Tracer> Evaluate for Lowering<'_, '_, T> {
    type Tensor = TensorRef;

    fn registry(&self) -> &Registry {
        self.shapes.registry()
    }

    fn symbols(&self) -> Option<&Symbols> {
        Some(self.shapes.symbols())
    }

    fn enter(&self, module: &GraphModule, node: NodeId) {
        self.tracer.borrow_mut().enter(module, node);
    }

    fn call_function(&self, name: &str, args: &[Traced], kwargs: &Kwargs<TensorRef>) -> Results<TensorRef> {
        self.check(name, args).unwrap_or_else(|| functions::call(*self, name, args, kwargs))
    }

    fn call_method(&self, name: &str, args: &[Traced], kwargs: &Kwargs<TensorRef>) -> Results<TensorRef> {
        // Python gives the tensor back without asking an operator.
        if let (true, [Value::Tensor(it)], []) = (name == "contiguous", args, kwargs) {
            let meta = self.meta_of(*it);
            if meta.strides == TensorMeta::contiguous(meta.dtype, meta.sizes.clone()).strides {
                return Ok(args.to_vec());
            }
        }
        functions::call_method(*self, name, args, kwargs)
    }

    fn call_operator(&self, name: &str, args: &[Traced], kwargs: &Kwargs<TensorRef>) -> Results<TensorRef> {
        self.record(name, args, kwargs)
    }

    fn call_overload(&self, packet: &str, args: &[Traced], kwargs: &Kwargs<TensorRef>) -> Results<TensorRef> {
        let mut bound = self.shapes.registry().resolve(packet, args, kwargs, &|_| None)?;
        name_place_of_factory(&mut bound);
        let (positional, named) = bound.parted();
        self.record(&bound.op.name, positional, &named)
    }

    /// PyTorch makes a tensor of the number that gives way to the dtype of the other; a node has no such tensors.
    fn on_the_left(&self, number: &Traced, tensor: &TensorRef) -> Result<[Traced; 2]> {
        let own = self.meta_of(*tensor).dtype;
        let dtype = match number.as_scalar() {
            Some(it) if it.kind() <= own.kind() => own,
            Some(it) => it.default_dtype(),
            None => own,
        };
        let left = self.record(
            "aten.scalar_tensor.default",
            std::slice::from_ref(number),
            &[("dtype".into(), Value::DType(dtype))],
        )?;
        let left = left.into_iter().next().unwrap_or(Value::None);
        Ok([left, Value::Tensor(*tensor)])
    }

    fn attribute(&self, tensor: &Tensor) -> Result<TensorRef> {
        self.tracer.borrow_mut().attribute(tensor)
    }

    fn meta(&self, tensor: &TensorRef) -> TensorMeta {
        self.meta_of(*tensor)
    }

    /// What autocast casts is cast where the graphs are run, so that the new one runs as it does without it.
    fn control_flow(&self, operands: &Operands<'_, TensorRef>, run: &mut RunGraph<'_, TensorRef>) -> Result<Traced> {
        let name = operands.name;
        if name == "wrap_with_set_grad_enabled" && !self.tracer.borrow().keeps_grad_mode() {
            return run(operands.module(1)?, &operands.values(2)?);
        }
        let metas: Vec<Operand<'_, TensorMeta>> = operands.operands.iter().map(|it| self.known(it)).collect();
        let named_after = match name {
            "cond" => Some(operands.list(3)?.to_vec()),
            "map_impl" => Some([operands.list(1)?, operands.list(2)?].concat()),
            "wrap_with_set_grad_enabled" => Some(operands.values(2)?),
            _ => None,
        };
        let mut trace = |module: &GraphModule, inputs: &[Value<TensorMeta>]| {
            let inputs = self.with_graphs(operands, |it| it.begin(inputs, named_after.as_deref()))?;
            let result = run(module, &inputs)?;
            self.with_graphs(operands, |it| it.end(&result))
        };
        let results = results_of_graphs(self.shapes, &Operands { name, operands: &metas }, &mut trace)?;
        let given: Vec<Option<Traced>> = operands
            .operands
            .iter()
            .map(|it| match it {
                Operand::Value(it) => Some(it.clone()),
                Operand::Module(_) => None,
            })
            .collect();
        self.with_graphs(operands, |it| it.call(name, &given, &results))
    }
}

/// Python's functions that make tensors say where, and that the memory is not pinned, whether asked to or not.
fn name_place_of_factory(call: &mut Args<'_, TensorRef>) {
    let specs = &call.op.schema.args;
    let Some(pinned) = specs.iter().position(|it| it.name == "pin_memory") else { return };
    let is_factory = !specs.iter().any(|it| it.ty == ArgType::Tensor);
    if let Value::None = call.values[pinned] {
        call.values[pinned] = Value::Bool(false);
    }
    if let Some(device) = specs.iter().position(|it| it.name == "device").filter(|_| is_factory)
        && let Value::None = call.values[device]
    {
        call.values[device] = Value::Device(Device::cpu());
    }
}
