//! Graphs that run under autocast: the operators that [`Autocast`] casts get their tensors in another dtype.

use crate::higher_order::{Operand, Operands, RunGraph};
use crate::interpreter::{Evaluate, Kwargs, Results, Walk};
use tracefx_core::allocate::push;
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::{GraphModule, NodeId, Str, TensorMeta};
use tracefx_ops::{Args, Autocast, Builder, Cx, Registry, Symbols, TensorRef, Traced, Value, bind, is_autocast};

/// `wrap_with_autocast(device, dtype, enabled, cache_enabled, graph, *inputs)`, where `plain` evaluates without autocast. For
/// another device it changes nothing of what `outer` does: tensors are on the CPU.
///
/// # Errors
/// `SchemaMismatch` where the operands are not these; else what the graph refuses.
pub(crate) fn wrap_with_autocast<E, O>(
    plain: E,
    outer: O,
    operands: &Operands<'_, E::Tensor>,
) -> Result<Value<E::Tensor>>
where
    E: Evaluate,
    O: Evaluate<Tensor = E::Tensor>,
{
    let (module, inputs) = (operands.module(4)?, operands.values(5)?);
    if !matches!(operands.value(0)?, Value::Str(it) if &**it == "cpu") {
        return Walk { module, evaluate: outer }.run(&inputs);
    }
    let low = match operands.value(1)? {
        Value::DType(it) => *it,
        // PyTorch's default for the CPU.
        Value::None => DType::BFloat16,
        other => return Err(operands.refuse(format!("operand 1 should be a dtype and is a {}", other.kind_name()))),
    };
    match operands.value(2)? {
        Value::Bool(true) => Walk { module, evaluate: Casting { inner: plain, low } }.run(&inputs),
        _ => Walk { module, evaluate: plain }.run(&inputs),
    }
}

/// What evaluates as `inner` does, with autocast to this dtype.
pub(crate) fn autocast<E: Evaluate>(inner: E, low: DType) -> impl Evaluate<Tensor = E::Tensor> {
    Casting { inner, low }
}

/// Evaluates as another one, with autocast.
#[derive(Clone, Copy)]
struct Casting<E> {
    inner: E,
    low: DType,
}

impl<E: Evaluate> Evaluate for Casting<E> {
    type Tensor = E::Tensor;

    fn registry(&self) -> &Registry {
        self.inner.registry()
    }

    fn symbols(&self) -> Option<&Symbols> {
        self.inner.symbols()
    }

    fn call(&self, name: &str, args: &[Value<E::Tensor>], kwargs: &Kwargs<E::Tensor>) -> Results<E::Tensor> {
        let mut dtypes = Vec::new();
        for value in args.iter().chain(kwargs.iter().map(|(_, it)| it)) {
            value.for_each_tensor(&mut |it| dtypes.push(self.inner.meta(it).dtype));
        }
        let Some(op) = self.registry().get(name) else {
            if dtypes.iter().any(|it| is_autocast(*it)) {
                let what = format!("calling the function {name} of Python under autocast is not implemented");
                return Err(Diagnostic::new(Code::NotImplemented, what)
                    .help("export the module, so that its graph calls operators"));
            }
            return self.inner.call(name, args, kwargs);
        };
        let decompose = match tracefx_ops::autocast(op, self.low, &dtypes) {
            Autocast::Cast(dtype) => {
                let args = args.iter().map(|it| self.cast(it, dtype)).collect::<Result<Vec<_>>>()?;
                let kwargs = kwargs.iter().map(|(key, it)| Ok((key.clone(), self.cast(it, dtype)?)));
                return self.inner.call(name, &args, &kwargs.collect::<Result<Vec<_>>>()?);
            }
            Autocast::Parts => op.def.decompose,
            Autocast::Nothing => None,
        };
        let Some(decompose) = decompose else { return self.inner.call(name, args, kwargs) };
        let mut parts = Parts { evaluate: *self, tensors: Vec::new() };
        let values = bind(op, args, kwargs)?.iter().map(|it| parts.import(it)).collect::<Result<_>>()?;
        let args = match self.inner.symbols() {
            Some(symbols) => Args::within(op, values, symbols),
            None => Args::new(op, values),
        };
        let results = decompose(&mut Cx::new(&mut parts), &args)?;
        results.iter().map(|it| parts.export(it)).collect()
    }

    fn attribute(&self, tensor: &tracefx_core::Tensor) -> Result<E::Tensor> {
        self.inner.attribute(tensor)
    }

    fn fake(&self, tensor: &tracefx_ir::FakeTensor) -> Result<E::Tensor> {
        self.inner.fake(tensor)
    }

    fn meta(&self, tensor: &E::Tensor) -> TensorMeta {
        self.inner.meta(tensor)
    }

    fn call_higher_order(&self, name: &str, operands: &[Operand<'_, E::Tensor>]) -> Result<Value<E::Tensor>> {
        let operands = Operands { name, operands };
        if name == "wrap_with_autocast" {
            return wrap_with_autocast(self.inner, *self, &operands);
        }
        self.control_flow(&operands, &mut |module, inputs| Walk { module, evaluate: *self }.run(inputs))
    }

    fn control_flow(
        &self,
        operands: &Operands<'_, E::Tensor>,
        run: &mut RunGraph<'_, E::Tensor>,
    ) -> Result<Value<E::Tensor>> {
        self.inner.control_flow(operands, run)
    }

    fn enter(&self, module: &GraphModule, node: NodeId) {
        self.inner.enter(module, node);
    }

    fn note(&self, module: &GraphModule, node: NodeId, value: &Value<E::Tensor>) {
        self.inner.note(module, node, value);
    }
}

impl<E: Evaluate> Casting<E> {
    fn cast(&self, value: &Value<E::Tensor>, dtype: DType) -> Result<Value<E::Tensor>> {
        match value {
            Value::Tensor(it) => {
                let own = self.inner.meta(it).dtype;
                if own == dtype || !is_autocast(own) {
                    return Ok(value.clone());
                }
                let args = [value.clone(), Value::DType(dtype)];
                Ok(self.inner.call("aten.to.dtype", &args, &[])?.swap_remove(0))
            }
            Value::List(items) => Ok(Value::List(items.iter().map(|it| self.cast(it, dtype)).collect::<Result<_>>()?)),
            other => Ok(other.clone()),
        }
    }
}

/// A builder that evaluates each call of a decomposition.
struct Parts<E: Evaluate> {
    evaluate: E,
    tensors: Vec<(E::Tensor, TensorMeta)>,
}

impl<E: Evaluate> Parts<E> {
    fn import(&mut self, value: &Value<E::Tensor>) -> Result<Traced> {
        value.try_map(&mut |it| {
            push(&mut self.tensors, (it.clone(), self.evaluate.meta(it)))?;
            Ok(TensorRef(self.tensors.len() - 1))
        })
    }

    fn export(&self, value: &Traced) -> Result<Value<E::Tensor>> {
        value.try_map(&mut |it| Ok(self.tensors[it.0].0.clone()))
    }
}

impl<E: Evaluate> Builder for Parts<E> {
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        let args = args.iter().map(|it| self.export(it)).collect::<Result<Vec<_>>>()?;
        let kwargs = kwargs.iter().map(|(key, it)| Ok((Str::from(*key), self.export(it)?)));
        let kwargs = kwargs.collect::<Result<Vec<_>>>()?;
        let results = self.evaluate.call(op, &args, &kwargs)?;
        results.iter().map(|it| self.import(it)).collect()
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        &self.tensors[tensor.0].1
    }
}
