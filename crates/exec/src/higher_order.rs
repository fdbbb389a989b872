//! Control flow: the operators that take graphs.

use crate::run::Running;
use tracefx_core::{Code, Diagnostic, Result, Scalar, Tensor};
use tracefx_ir::GraphModule;
use tracefx_ops::Value;

/// The higher-order operators that are there, by their names after `torch.ops.higher_order.`.
pub const HIGHER_ORDER: &[&str] = &[
    "cond",
    "while_loop",
    "map_impl",
    "scan",
    "wrap_with_autocast",
    "wrap_with_set_grad_enabled",
    "auto_functionalized",
    "auto_functionalized_v2",
];

/// Gives what a graph gives on these inputs.
pub(crate) type RunGraph<'a, T, G = GraphModule> = dyn FnMut(&G, &[Value<T>]) -> Result<Value<T>> + 'a;

/// An argument of a higher-order operator, where a graph is a `G`.
pub(crate) enum Operand<'a, T, G = GraphModule> {
    Value(Value<T>),
    Module(&'a G),
}

/// Calls a higher-order operator, whose graphs `run` runs.
///
/// # Errors
/// `NotImplemented` for an operator that is not there; `SchemaMismatch` where the operands are not what it takes; else
/// what a branch refuses.
pub(crate) fn call<G>(
    operands: &Operands<'_, Tensor, G>,
    running: Running<'_>,
    run: &mut RunGraph<'_, Tensor, G>,
) -> Result<Value<Tensor>> {
    let mut cx = Call { operands, running, run };
    match operands.name {
        "cond" => cx.cond(),
        "while_loop" => cx.while_loop(),
        "map_impl" => cx.map(),
        "scan" => cx.scan(),
        "wrap_with_set_grad_enabled" => (cx.run)(operands.module(1)?, &operands.values(2)?),
        _ => Err(operands.unknown()),
    }
}

/// The operands of a higher-order operator, read by position.
pub(crate) struct Operands<'a, T, G = GraphModule> {
    pub(crate) name: &'a str,
    pub(crate) operands: &'a [Operand<'a, T, G>],
}

struct Call<'a, 'r, G> {
    operands: &'a Operands<'a, Tensor, G>,
    running: Running<'a>,
    run: &'a mut RunGraph<'r, Tensor, G>,
}

impl<G> Call<'_, '_, G> {
    /// `cond(pred, true_graph, false_graph, operands)`.
    fn cond(&mut self) -> Result<Value<Tensor>> {
        let branch =
            if self.truth(self.operands.value(0)?)? { self.operands.module(1)? } else { self.operands.module(2)? };
        (self.run)(branch, self.operands.list(3)?)
    }

    /// `while_loop(cond_graph, body_graph, carried, additional)`.
    fn while_loop(&mut self) -> Result<Value<Tensor>> {
        let (condition, body) = (self.operands.module(0)?, self.operands.module(1)?);
        let mut carried = self.operands.list(2)?.to_vec();
        let additional = self.operands.list(3)?;
        loop {
            let inputs = [&carried[..], additional].concat();
            let holds = (self.run)(condition, &inputs)?;
            if !self.truth(&holds)? {
                return Ok(Value::List(carried));
            }
            self.step()?;
            let results = items((self.run)(body, &inputs)?);
            if results.len() != carried.len() {
                return Err(self.operands.refuse(format!(
                    "the body carries {} values and gives {}",
                    carried.len(),
                    results.len()
                )));
            }
            carried = results;
        }
    }

    /// `map_impl(graph, xs, additional)`: the graph on each slice of the xs, the results stacked.
    fn map(&mut self) -> Result<Value<Tensor>> {
        let graph = self.operands.module(0)?;
        let (xs, additional) = (self.operands.list(1)?, self.operands.list(2)?);
        let mut columns: Vec<Vec<Value<Tensor>>> = Vec::new();
        for step in 0..self.n_steps(xs)? {
            self.step()?;
            let inputs = [&self.slices(xs, step)?[..], additional].concat();
            let results = items((self.run)(graph, &inputs)?);
            self.append(&mut columns, results)?;
        }
        self.stacked(columns).map(Value::List)
    }

    /// `scan(graph, init, xs, additional)`: the last carry, then the other results stacked.
    fn scan(&mut self) -> Result<Value<Tensor>> {
        let graph = self.operands.module(0)?;
        let (xs, additional) = (self.operands.list(2)?, self.operands.list(3)?);
        let mut carry = self.operands.list(1)?.to_vec();
        let mut columns: Vec<Vec<Value<Tensor>>> = Vec::new();
        for step in 0..self.n_steps(xs)? {
            self.step()?;
            let inputs = [&carry[..], &self.slices(xs, step)?, additional].concat();
            let mut results = items((self.run)(graph, &inputs)?);
            if results.len() < carry.len() {
                return Err(self.operands.refuse(format!(
                    "the graph carries {} values and gives {}",
                    carry.len(),
                    results.len()
                )));
            }
            let others = results.split_off(carry.len());
            carry = results;
            self.append(&mut columns, others)?;
        }
        carry.extend(self.stacked(columns)?);
        Ok(Value::List(carry))
    }

    /// Takes a step of a loop, of those that the run has: a file must not be able to keep its reader for ever.
    fn step(&self) -> Result<()> {
        self.running.steps.step().map_err(|error| error.op(format!("higher_order.{}", self.operands.name)))
    }

    fn n_steps(&self, xs: &[Value<Tensor>]) -> Result<usize> {
        let sizes: Vec<usize> = xs
            .iter()
            .map(|it| match it {
                Value::Tensor(tensor) if tensor.rank() > 0 => Ok(tensor.sizes()[0]),
                other => Err(self
                    .operands
                    .refuse(format!("xs should be tensors with a dimension, and one is a {}", other.kind_name()))),
            })
            .collect::<Result<_>>()?;
        match sizes.first() {
            Some(&n) if n > 0 && sizes.iter().all(|&it| it == n) => Ok(n),
            _ => {
                Err(self.operands.refuse(format!("xs should have equal leading sizes above zero, and have {sizes:?}")))
            }
        }
    }

    fn slices(&self, xs: &[Value<Tensor>], step: usize) -> Result<Vec<Value<Tensor>>> {
        let select = |it: &Value<Tensor>| {
            let args = [it.clone(), Value::int(0), Value::int(step as i64)];
            Ok(self.running.executor.call("aten.select.int", &args, &[])?.swap_remove(0))
        };
        xs.iter().map(select).collect()
    }

    fn append(&self, columns: &mut Vec<Vec<Value<Tensor>>>, row: Vec<Value<Tensor>>) -> Result<()> {
        if columns.is_empty() {
            columns.resize(row.len(), Vec::new());
        }
        if columns.len() != row.len() {
            return Err(self.operands.refuse(format!(
                "one step gives {} values and another {}",
                columns.len(),
                row.len()
            )));
        }
        columns.iter_mut().zip(row).for_each(|(column, it)| column.push(it));
        Ok(())
    }

    fn stacked(&self, columns: Vec<Vec<Value<Tensor>>>) -> Result<Vec<Value<Tensor>>> {
        let stack = |column| {
            Ok(self
                .running
                .executor
                .call("aten.stack.default", &[Value::List(column), Value::int(0)], &[])?
                .swap_remove(0))
        };
        columns.into_iter().map(stack).collect()
    }

    fn truth(&self, value: &Value<Tensor>) -> Result<bool> {
        let scalar = match value {
            Value::Tensor(tensor) => Some(tensor.item()?),
            Value::List(items) if items.len() == 1 => return self.truth(&items[0]),
            other => other.as_scalar(),
        };
        match scalar {
            Some(Scalar::Bool(it)) => Ok(it),
            Some(_) | None => {
                Err(self.operands.refuse(format!("the predicate should be a bool and is a {}", value.kind_name())))
            }
        }
    }
}

impl<T: Clone, G> Operands<'_, T, G> {
    pub(crate) fn module(&self, index: usize) -> Result<&G> {
        match self.operands.get(index) {
            Some(Operand::Module(module)) => Ok(module),
            Some(Operand::Value(_)) | None => Err(self.refuse(format!("operand {index} should be a graph"))),
        }
    }

    pub(crate) fn value(&self, index: usize) -> Result<&Value<T>> {
        match self.operands.get(index) {
            Some(Operand::Value(value)) => Ok(value),
            Some(Operand::Module(_)) | None => Err(self.refuse(format!("operand {index} should be a value"))),
        }
    }

    pub(crate) fn values(&self, from: usize) -> Result<Vec<Value<T>>> {
        (from..self.operands.len()).map(|it| self.value(it).cloned()).collect()
    }

    pub(crate) fn list(&self, index: usize) -> Result<&[Value<T>]> {
        match self.value(index)? {
            Value::List(items) => Ok(items),
            other => Err(self.refuse(format!("operand {index} should be a list and is a {}", other.kind_name()))),
        }
    }

    pub(crate) fn refuse(&self, what: String) -> Diagnostic {
        Diagnostic::new(Code::SchemaMismatch, what).op(format!("higher_order.{}", self.name))
    }
    /// An error about an operator that is not there.
    pub(crate) fn unknown(&self) -> Diagnostic {
        let name = format!("higher_order.{}", self.name);
        Diagnostic::new(Code::NotImplemented, format!("the operator {name} is not implemented")).op(name)
    }
}

/// What a graph gives, one by one.
pub(crate) fn items<T>(value: Value<T>) -> Vec<Value<T>> {
    match value {
        Value::List(items) => items,
        single => vec![single],
    }
}
