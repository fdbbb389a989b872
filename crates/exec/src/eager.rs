//! Calls as Python makes them: the overload is found, and `out=` is written to.

use crate::Executor;
use crate::autocast;
use crate::executor::check_dtypes;
use crate::run::Running;
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_ir::Str;
use tracefx_ops::{Args, Op, Tags, Value};

/// The results of a call, and which tensors they are.
#[derive(Debug)]
pub struct Called {
    /// The results, one per result of the schema.
    pub results: Vec<Value<Tensor>>,
    /// Whether the only result is the first argument itself: of an operator that works in place, or that had nothing to
    /// do. Its view may have changed.
    pub is_self: bool,
}

impl Executor<'_> {
    /// Calls the overload that fits the arguments, as PyTorch's Python functions do; `name` is `aten.add` or
    /// `aten.add.Tensor`. A keyword argument `out`, of one tensor or one per result, is resized and written to, and is
    /// then what comes back.
    ///
    /// # Errors
    /// As [`Registry::resolve`](tracefx_ops::Registry::resolve), and what the operator refuses. The error names the
    /// operator.
    pub fn call_python(
        &self,
        name: &str,
        args: &[Value<Tensor>],
        mut kwargs: Vec<(Str, Value<Tensor>)>,
    ) -> Result<Called> {
        let out = kwargs.iter().position(|(key, _)| **key == *"out").filter(|_| !self.takes_out(name));
        let out = out.map(|at| kwargs.remove(at).1);
        let mut bound = self.resolve(name, args, &kwargs)?;
        if let Some(Value::Tensor(out)) = &out {
            bound.compute_for_out(out.dtype());
        }
        check_devices(bound.values.iter()).map_err(|problem| problem.op(&*bound.op.name))?;
        let called = check_dtypes(&bound).and_then(|()| self.call_bound(&bound));
        let results = called.map_err(|problem| problem.op(&*bound.op.name))?;
        match out {
            Some(out) if !matches!(out, Value::None) => {
                let results = self.write_out(&bound, &out, results).map_err(|problem| problem.op(&*bound.op.name))?;
                Ok(Called { results, is_self: false })
            }
            _ => Ok(Called { is_self: is_self(&bound, &results), results }),
        }
    }

    /// As [`Executor::call_python`], under autocast with this narrow dtype. What writes to its arguments or to `out` is left alone.
    ///
    /// # Errors
    /// As there.
    pub fn call_under_autocast(
        &self,
        low: DType,
        name: &str,
        args: &[Value<Tensor>],
        kwargs: Vec<(Str, Value<Tensor>)>,
    ) -> Result<Called> {
        let has_out = kwargs.iter().any(|(key, it)| **key == *"out" && !matches!(it, Value::None));
        let bound = if has_out { None } else { self.resolve(name, args, &kwargs).ok() };
        let Some(bound) = bound.filter(|it| it.op.schema.args.iter().all(|arg| !arg.is_mutated)) else {
            return self.call_python(name, args, kwargs);
        };
        let (positional, named) = bound.parted();
        let running = Running { executor: *self, steps: &() };
        let results = autocast::call(running, low, &bound.op.name, positional, &named);
        let results = results.map_err(|problem| problem.op(&*bound.op.name))?;
        Ok(Called { is_self: is_self(&bound, &results), results })
    }

    /// The overload that a call means, with its arguments in order; numbers are read from tensors of one element.
    ///
    /// # Errors
    /// What no overload takes.
    pub fn resolve(
        &self,
        name: &str,
        args: &[Value<Tensor>],
        kwargs: &[(Str, Value<Tensor>)],
    ) -> Result<Args<'_, Tensor>> {
        let item = |tensor: &Tensor| if tensor.rank() == 0 { tensor.item().ok() } else { None };
        self.registry.resolve(name, args, kwargs, &item).map_err(|problem| problem.op(name))
    }

    /// Whether `out` is an argument of the operator itself.
    fn takes_out(&self, name: &str) -> bool {
        self.registry.overloads(name).is_ok_and(|it| it.into_iter().any(Op::writes_out))
    }

    /// Writes results into the tensors of `out=`, which become as large as the results are.
    fn write_out(
        &self,
        args: &Args<'_, Tensor>,
        out: &Value<Tensor>,
        results: Vec<Value<Tensor>>,
    ) -> Result<Vec<Value<Tensor>>> {
        let targets = match out {
            Value::List(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        if targets.len() != results.len() {
            let what =
                format!("{} gives {} results, and out has {}", args.op.schema.name, results.len(), targets.len());
            return Err(Diagnostic::new(Code::SchemaMismatch, what).help("give one tensor for each result"));
        }
        let pairs = targets.iter().zip(results).map(|(target, result)| match (target, result) {
            (Value::Tensor(target), Value::Tensor(result)) => {
                args.check_out(result.dtype(), target.dtype())?;
                let is_same_size = target.sizes() == result.sizes();
                let target = if is_same_size { target.clone() } else { target.resized(result.sizes())? };
                self.write(&target, result)?;
                Ok(Value::Tensor(target))
            }
            (target, result) => {
                let what = format!("out cannot be a {} for a {}", target.kind_name(), result.kind_name());
                Err(Diagnostic::new(Code::SchemaMismatch, what))
            }
        });
        pairs.collect()
    }
}

/// Refuses every device but the CPU: nothing would be there.
fn check_devices<'a>(mut values: impl Iterator<Item = &'a Value<Tensor>>) -> Result<()> {
    match values.find(|it| matches!(it, Value::Device(device) if device.kind != "cpu")) {
        Some(Value::Device(device)) => {
            let what = format!("there is no device {device}");
            Err(Diagnostic::new(Code::NotImplemented, what).help("tensors are on the CPU"))
        }
        _ => Ok(()),
    }
}

fn is_self(args: &Args<'_, Tensor>, results: &[Value<Tensor>]) -> bool {
    let (Some(Value::Tensor(this)), [Value::Tensor(result)]) = (args.values.first(), results) else { return false };
    if args.op.returns_self() {
        return true;
    }
    // A view is a tensor of its own even where it shows the same; anything else that does gave its argument back.
    !args.op.def.tags.has(Tags::VIEW) && this.is_same_view(result)
}
