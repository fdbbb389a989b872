//! Gradients of single operators, computed at once.

use crate::Executor;
use crate::executor::Eager;
use tracefx_core::allocate::try_collected;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_ir::Str;
use tracefx_ops::{Builder, Infer, Tape, TensorRef, Traced, Value, bind};

/// A call that was made, and the way back from gradients of its results to gradients of its arguments.
pub struct Pullback<'a> {
    tape: Tape<'a, Eager<'a>>,
    args: Vec<Traced>,
    refs: Vec<Traced>,
    results: Vec<Value<Tensor>>,
}

impl<'a> Executor<'a> {
    /// Calls an operator and remembers how gradients go back through the call. What works in place is called as its
    /// functional counterpart: the arguments keep their values.
    ///
    /// # Errors
    /// As [`Executor::call`]; `NotImplemented` where the operator writes to an argument and has no such counterpart.
    pub fn vjp(&self, name: &str, args: &[Value<Tensor>], kwargs: &[(Str, Value<Tensor>)]) -> Result<Pullback<'a>> {
        let op = self.registry.require(name)?;
        let mut bound = bind(op, args, kwargs)?;
        let op = match op.def.infer {
            Infer::InPlaceOf(functional) => self.registry.require(functional)?,
            Infer::Rule(_) | Infer::Composite => op,
        };
        bound.truncate(op.schema.args.len());
        let mut builder = Eager::new(*self);
        let args: Vec<Traced> = bound.iter().map(|it| builder.import(it)).collect::<Result<_>>()?;
        let mut tape = Tape::new(self.registry, builder);
        for arg in &args {
            arg.for_each_tensor(&mut |it| tape.watch(*it));
        }
        let n_positional = op.schema.n_positional();
        let named: Vec<(&str, Traced)> =
            op.schema.args.iter().zip(&args).skip(n_positional).map(|(spec, it)| (&*spec.name, it.clone())).collect();
        let refs = tape.call(&op.name, &args[..n_positional], &named).map_err(|problem| problem.op(&*op.name))?;
        let results = refs.iter().map(|it| tape.builder().export(it)).collect::<Result<_>>()?;
        Ok(Pullback { tape, args, refs, results })
    }
}

impl Pullback<'_> {
    /// What the call gave.
    pub fn results(&self) -> &[Value<Tensor>] {
        &self.results
    }

    /// The gradients of the arguments, one per argument of the schema: a tensor as large and of the same dtype as the
    /// argument, `None` where no gradient flows, and a list of these where the argument is a list.
    ///
    /// `grads` are the gradients of the results, one per result, in the same way. Complex gradients are PyTorch's: the
    /// incoming one times the conjugate of the derivative. A gradient of a result through which none flows, such as the
    /// positions of a maximum, counts for nothing.
    ///
    /// ```
    /// # // The example of a backend: the kernels are in `tracefx-cpu`.
    /// use tracefx_core::Tensor;
    /// use tracefx_exec::Executor;
    /// use tracefx_ops::{Value, registry};
    ///
    /// let executor = Executor::new(registry(), tracefx_cpu::kernels());
    /// let x = Value::Tensor(Tensor::from_slice(&[3.0, 4.0], &[2])?);
    /// let mut square = executor.vjp("aten.square.default", &[x], &[])?;
    /// let ones = Value::Tensor(Tensor::from_slice(&[1.0, 1.0], &[2])?);
    /// let grads = square.pull_back(&[ones])?;
    /// let Value::Tensor(grad) = &grads[0] else { panic!("a gradient is a tensor") };
    /// assert_eq!(grad.to_vec::<f64>()?, [6.0, 8.0]);
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` where the gradients do not fit the results; `NotImplemented`, naming the operator, where the
    /// gradient of an operator is missing; else what the operators refuse that compute the gradients.
    pub fn pull_back(&mut self, grads: &[Value<Tensor>]) -> Result<Vec<Value<Tensor>>> {
        if grads.len() != self.refs.len() {
            let what = format!("{} gradients for {} results", grads.len(), self.refs.len());
            return Err(Diagnostic::new(Code::InvalidArgument, what));
        }
        let mut from = Vec::new();
        for (result, grad) in self.refs.iter().zip(grads) {
            let grad = self.tape.builder().import(grad)?;
            pair(&self.tape, result, &grad, &mut from)?;
        }
        let gradients = self.tape.pull_back(&from)?;
        let find = |it: &TensorRef| Ok::<_, Diagnostic>(gradients.get(it).copied());
        let found: Vec<Value<Option<TensorRef>>> =
            self.args.iter().map(|it| it.try_map(&mut { find })).collect::<Result<_>>()?;
        found.iter().map(|it| only_tensors(self.tape.builder(), it)).collect()
    }
}

fn pair(tape: &impl Builder, result: &Traced, grad: &Traced, from: &mut Vec<(TensorRef, TensorRef)>) -> Result<()> {
    match (result, grad) {
        (_, Value::None) => Ok(()),
        (Value::Tensor(result), Value::Tensor(grad)) => {
            let (result_meta, grad_meta) = (tape.meta(*result), tape.meta(*grad));
            if (result_meta.dtype, &result_meta.sizes) != (grad_meta.dtype, &grad_meta.sizes) {
                let what = "a gradient must have the sizes and the dtype of its result";
                return Err(Diagnostic::new(Code::InvalidArgument, what));
            }
            from.push((*result, *grad));
            Ok(())
        }
        (Value::List(results), Value::List(grads)) if results.len() == grads.len() => {
            results.iter().zip(grads).try_for_each(|(result, grad)| pair(tape, result, grad, from))
        }
        (result, grad) => {
            let what = format!("a {} cannot be the gradient of a {}", grad.kind_name(), result.kind_name());
            Err(Diagnostic::new(Code::InvalidArgument, what))
        }
    }
}

/// The gradients that were found, and `None` for all else.
fn only_tensors(builder: &Eager<'_>, value: &Value<Option<TensorRef>>) -> Result<Value<Tensor>> {
    match value {
        Value::Tensor(Some(it)) => builder.export(&Value::Tensor(*it)),
        Value::List(items) => Ok(Value::List(try_collected(items.iter().map(|it| only_tensors(builder, it)))?)),
        _ => Ok(Value::None),
    }
}
