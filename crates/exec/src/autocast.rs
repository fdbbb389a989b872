//! Graphs that run under autocast: the operators of [`autocast_dtype`] get their tensors in another dtype.

use crate::higher_order::{Operand, Operands};
use crate::interpreter::{Evaluate, Kwargs, Results, Walk};
use tracefx_core::{DType, Result};
use tracefx_ir::{GraphModule, NodeId, Str, TensorMeta};
use tracefx_ops::{Args, Builder, Cx, Infer, Registry, TensorRef, Traced, Value, autocast_dtype, bind, is_autocast};

/// `wrap_with_autocast(device, dtype, enabled, cache_enabled, graph, *inputs)`.
///
/// # Errors
/// `SchemaMismatch` where the operands are not these; else what the graph refuses.
pub(crate) fn wrap_with_autocast<E: Evaluate>(
    evaluate: E,
    operands: &Operands<'_, E::Tensor>,
) -> Result<Value<E::Tensor>> {
    let (module, inputs) = (operands.module(4)?, operands.values(5)?);
    let low = match operands.value(1)? {
        Value::DType(it) => *it,
        // PyTorch's default for the CPU.
        Value::None => DType::BFloat16,
        other => return Err(operands.refuse(format!("operand 1 should be a dtype and is a {}", other.kind_name()))),
    };
    match operands.value(2)? {
        Value::Bool(true) => Walk { module, evaluate: Autocast { inner: evaluate, low } }.run(&inputs),
        _ => Walk { module, evaluate }.run(&inputs),
    }
}

/// What evaluates as `inner` does, with autocast to this dtype.
pub(crate) fn autocast<E: Evaluate>(inner: E, low: DType) -> impl Evaluate<Tensor = E::Tensor> {
    Autocast { inner, low }
}

/// Evaluates as another one, with autocast.
#[derive(Clone, Copy)]
struct Autocast<E> {
    inner: E,
    low: DType,
}

impl<E: Evaluate> Evaluate for Autocast<E> {
    type Tensor = E::Tensor;

    fn registry(&self) -> &Registry {
        self.inner.registry()
    }

    fn call(&self, name: &str, args: &[Value<E::Tensor>], kwargs: &Kwargs<E::Tensor>) -> Results<E::Tensor> {
        let Some(op) = self.registry().get(name) else { return self.inner.call(name, args, kwargs) };
        let mut dtypes = Vec::new();
        for value in args.iter().chain(kwargs.iter().map(|(_, it)| it)) {
            value.for_each_tensor(&mut |it| dtypes.push(self.inner.meta(it).dtype));
        }
        if let Some(dtype) = autocast_dtype(&op.name, self.low, &dtypes) {
            let args = args.iter().map(|it| self.cast(it, dtype)).collect::<Result<Vec<_>>>()?;
            let kwargs = kwargs.iter().map(|(key, it)| Ok((key.clone(), self.cast(it, dtype)?)));
            return self.inner.call(name, &args, &kwargs.collect::<Result<Vec<_>>>()?);
        }
        let (Infer::Composite, Some(decompose)) = (&op.def.infer, op.def.decompose) else {
            return self.inner.call(name, args, kwargs);
        };
        // Autocast sees what an operator is made of that it leaves alone.
        let mut parts = Parts { evaluate: *self, tensors: Vec::new() };
        let values = bind(op, args, kwargs)?.iter().map(|it| parts.import(it)).collect();
        let results = decompose(&mut Cx::new(&mut parts), &Args::new(op, values))?;
        Ok(results.iter().map(|it| parts.export(it)).collect())
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
        match name {
            "wrap_with_autocast" => wrap_with_autocast(self.inner, &operands),
            "wrap_with_set_grad_enabled" => {
                Walk { module: operands.module(1)?, evaluate: *self }.run(&operands.values(2)?)
            }
            // Control flow is not run under autocast yet.
            _ => Err(operands.unknown()),
        }
    }

    fn note(&self, module: &GraphModule, node: NodeId, value: &Value<E::Tensor>) {
        self.inner.note(module, node, value);
    }
}

impl<E: Evaluate> Autocast<E> {
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
    fn import(&mut self, value: &Value<E::Tensor>) -> Traced {
        value.map(&mut |it| {
            self.tensors.push((it.clone(), self.evaluate.meta(it)));
            TensorRef(self.tensors.len() - 1)
        })
    }

    fn export(&self, value: &Traced) -> Value<E::Tensor> {
        value.map(&mut |it| self.tensors[it.0].0.clone())
    }
}

impl<E: Evaluate> Builder for Parts<E> {
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        let args: Vec<_> = args.iter().map(|it| self.export(it)).collect();
        let kwargs: Vec<_> = kwargs.iter().map(|(key, it)| (Str::from(*key), self.export(it))).collect();
        let results = self.evaluate.call(op, &args, &kwargs)?;
        Ok(results.iter().map(|it| self.import(it)).collect())
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        &self.tensors[tensor.0].1
    }
}
