//! A graph of Python's functions and methods as the operators that they are.

use crate::functions::{self, Operators};
use crate::higher_order::{Operand, Operands};
use crate::interpreter::{Evaluate, Kwargs, Results, Walk};
use std::cell::RefCell;
use tracefx_core::{Result, Tensor};
use tracefx_ir::{GraphModule, NodeId, TensorMeta};
use tracefx_ops::{Builder, Registry, TensorRef, Traced, Value};

/// Where the operators of a graph go.
pub trait Tracer: Builder {
    /// What stands for a tensor that a module holds.
    ///
    /// # Errors
    /// `NotImplemented` where modules may hold none.
    fn attribute(&mut self, tensor: &Tensor) -> Result<TensorRef>;

    /// Is told of the node whose operators come next.
    fn enter(&mut self, _: &GraphModule, _: NodeId) {}
}

/// Runs a graph with a tracer in the place of kernels, so that what `torch.fx` traced becomes calls of operators. Functions
/// and methods of Python go to the overloads that they call in PyTorch; modules that are called are walked through.
///
/// # Errors
/// `InputCount` where the graph does not take these arguments; `NotImplemented` for functions that are no operators, and
/// for operators that take graphs; else what the tracer refuses. The error names the node.
pub fn lower<T: Tracer>(module: &GraphModule, registry: &Registry, tracer: &mut T, args: &[Traced]) -> Result<Traced> {
    Walk { module, evaluate: Lowering { registry, tracer: &RefCell::new(tracer) } }.run(args)
}

struct Lowering<'a, 'b, T> {
    registry: &'a Registry,
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

    fn meta_of(&self, tensor: TensorRef) -> TensorMeta {
        self.tracer.borrow().meta(tensor).clone()
    }
}

impl<T: Tracer> Evaluate for Lowering<'_, '_, T> {
    type Tensor = TensorRef;

    fn registry(&self) -> &Registry {
        self.registry
    }

    fn enter(&self, module: &GraphModule, node: NodeId) {
        self.tracer.borrow_mut().enter(module, node);
    }

    fn call(&self, name: &str, args: &[Traced], kwargs: &Kwargs<TensorRef>) -> Results<TensorRef> {
        functions::call(*self, name, args, kwargs)
    }

    fn call_method(&self, name: &str, args: &[Traced], kwargs: &Kwargs<TensorRef>) -> Results<TensorRef> {
        functions::call_method(*self, name, args, kwargs)
    }

    fn attribute(&self, tensor: &Tensor) -> Result<TensorRef> {
        self.tracer.borrow_mut().attribute(tensor)
    }

    fn meta(&self, tensor: &TensorRef) -> TensorMeta {
        self.meta_of(*tensor)
    }

    fn call_higher_order(&self, name: &str, operands: &[Operand<'_, TensorRef>]) -> Result<Traced> {
        Err(Operands { name, operands }.unknown())
    }
}

impl<T: Tracer> Operators for Lowering<'_, '_, T> {
    type Tensor = TensorRef;

    fn registry(&self) -> &Registry {
        self.registry
    }

    fn call(&self, name: &str, args: &[Traced], kwargs: &Kwargs<TensorRef>) -> Results<TensorRef> {
        self.record(name, args, kwargs)
    }

    fn resolve(&self, name: &str, args: &[Traced], kwargs: &Kwargs<TensorRef>) -> Results<TensorRef> {
        let bound = self.registry.resolve(name, args, kwargs, &|_| None)?;
        let n_positional = bound.op.schema.args.iter().take_while(|it| !it.is_kwarg_only).count();
        let (positional, named) = bound.values.split_at(n_positional);
        let names = bound.op.schema.args[n_positional..].iter().map(|it| it.name.as_str().into());
        self.record(&bound.op.name, positional, &names.zip(named.iter().cloned()).collect::<Vec<_>>())
    }

    fn meta(&self, tensor: &TensorRef) -> TensorMeta {
        self.meta_of(*tensor)
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
}
