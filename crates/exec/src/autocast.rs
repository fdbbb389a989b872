//! Graphs that run under autocast: the operators that [`Autocast`] casts get their tensors in another dtype.

use crate::evaluate::{Evaluate, Kwargs, Results};
use crate::higher_order::Operands;
use tracefx_core::allocate::push;
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::{Args, Autocast, Builder, Cx, TensorRef, Traced, Value, bind, is_autocast};

/// The dtype of autocast in the graph of `wrap_with_autocast(device, dtype, enabled, cache_enabled, graph, *inputs)`; nothing
/// where it is off. For another device it is what it is outside: tensors are on the CPU.
///
/// # Errors
/// `SchemaMismatch` where the operands are not these.
pub(crate) fn dtype_of<T: Clone>(operands: &Operands<'_, T>, outside: Option<DType>) -> Result<Option<DType>> {
    if !matches!(operands.value(0)?, Value::Str(it) if &**it == "cpu") {
        return Ok(outside);
    }
    let low = match operands.value(1)? {
        Value::DType(it) => *it,
        // PyTorch's default for the CPU.
        Value::None => DType::BFloat16,
        other => return Err(operands.refuse(format!("operand 1 should be a dtype and is a {}", other.kind_name()))),
    };
    Ok(matches!(operands.value(2)?, Value::Bool(true)).then_some(low))
}

/// What a call gives with autocast to this dtype.
///
/// # Errors
/// `NotImplemented` for a function of Python that takes tensors; else what the operator refuses.
pub(crate) fn call<E: Evaluate>(
    evaluate: E,
    low: DType,
    name: &str,
    args: &[Value<E::Tensor>],
    kwargs: &Kwargs<E::Tensor>,
) -> Results<E::Tensor> {
    let mut dtypes = Vec::new();
    for value in args.iter().chain(kwargs.iter().map(|(_, it)| it)) {
        value.for_each_tensor(&mut |it| dtypes.push(evaluate.meta(it).dtype));
    }
    let Some(op) = evaluate.registry().get(name) else {
        if dtypes.iter().any(|it| is_autocast(*it)) {
            let what = format!("calling the function {name} of Python under autocast is not implemented");
            return Err(Diagnostic::new(Code::NotImplemented, what)
                .help("export the module, so that its graph calls operators"));
        }
        return evaluate.call_function(name, args, kwargs);
    };
    let decompose = match tracefx_ops::autocast(op, low, &dtypes) {
        Autocast::Cast(dtype) => {
            let args = args.iter().map(|it| cast(evaluate, it, dtype)).collect::<Result<Vec<_>>>()?;
            let kwargs = kwargs.iter().map(|(key, it)| Ok((key.clone(), cast(evaluate, it, dtype)?)));
            return evaluate.call_function(name, &args, &kwargs.collect::<Result<Vec<_>>>()?);
        }
        Autocast::Parts => op.def.decompose,
        Autocast::Nothing => None,
    };
    let Some(decompose) = decompose else { return evaluate.call_function(name, args, kwargs) };
    let mut parts = Parts { evaluate, low, tensors: Vec::new() };
    let values = bind(op, args, kwargs)?.iter().map(|it| parts.import(it)).collect::<Result<_>>()?;
    let args = match evaluate.symbols() {
        Some(symbols) => Args::within(op, values, symbols),
        None => Args::new(op, values),
    };
    let results = decompose(&mut Cx::new(&mut parts), &args)?;
    results.iter().map(|it| parts.export(it)).collect()
}

fn cast<E: Evaluate>(evaluate: E, value: &Value<E::Tensor>, dtype: DType) -> Result<Value<E::Tensor>> {
    match value {
        Value::Tensor(it) => {
            let own = evaluate.meta(it).dtype;
            if own == dtype || !is_autocast(own) {
                return Ok(value.clone());
            }
            let args = [value.clone(), Value::DType(dtype)];
            Ok(evaluate.call_function("aten.to.dtype", &args, &[])?.swap_remove(0))
        }
        Value::List(items) => Ok(Value::List(items.iter().map(|it| cast(evaluate, it, dtype)).collect::<Result<_>>()?)),
        other => Ok(other.clone()),
    }
}

/// A builder that evaluates each call of a decomposition.
struct Parts<E: Evaluate> {
    evaluate: E,
    low: DType,
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
        let results = call(self.evaluate, self.low, op, &args, &kwargs)?;
        results.iter().map(|it| self.import(it)).collect()
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        &self.tensors[tensor.0].1
    }
}
