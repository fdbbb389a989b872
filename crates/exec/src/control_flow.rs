//! What control flow gives, from what its graphs give on values without data.

use crate::higher_order::{Operands, RunGraph, items};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;
use tracefx_ops::{Propagation, Value};
use tracefx_sym::{SymBool, SymInt};

/// What is known of a value without data.
type Known = Value<TensorMeta>;

/// The results of an operator that takes graphs, each of which is run once, in their order among the operands.
///
/// # Errors
/// `NotImplemented` for an operator that is not there; `SchemaMismatch` where the operands are not what it takes; else what
/// a graph refuses.
pub(crate) fn results_of_graphs(
    shapes: Propagation<'_>,
    operands: &Operands<'_, TensorMeta>,
    run: &mut RunGraph<'_, TensorMeta>,
) -> Result<Known> {
    let call = Call { shapes, operands };
    match operands.name {
        "cond" => call.cond(run),
        "while_loop" => call.while_loop(run),
        "map_impl" => call.map(run),
        "scan" => call.scan(run),
        "wrap_with_set_grad_enabled" => run(operands.module(1)?, &operands.values(2)?),
        _ => Err(operands.unknown()),
    }
}

struct Call<'a> {
    shapes: Propagation<'a>,
    operands: &'a Operands<'a, TensorMeta>,
}

impl Call<'_> {
    /// `cond(pred, true_graph, false_graph, operands)`: what both branches give; sizes in which they differ are not known.
    fn cond(&self, run: &mut RunGraph<'_, TensorMeta>) -> Result<Known> {
        let inputs = self.operands.list(3)?;
        let (yes, no) = (run(self.operands.module(1)?, inputs)?, run(self.operands.module(2)?, inputs)?);
        self.either(&yes, &no)
    }

    fn either(&self, a: &Known, b: &Known) -> Result<Known> {
        Ok(match (a, b) {
            (Value::List(a), Value::List(b)) if a.len() == b.len() => {
                let both = a.iter().zip(b).map(|(a, b)| self.either(a, b));
                Value::List(both.collect::<Result<_>>()?)
            }
            (Value::Tensor(a), Value::Tensor(b)) if a.dtype == b.dtype && a.sizes.len() == b.sizes.len() => {
                if a.sizes == b.sizes {
                    return Ok(Value::Tensor(TensorMeta { storage_offset: SymInt::ZERO, ..a.clone() }));
                }
                let sizes = a.sizes.iter().zip(&b.sizes).map(|(a, b)| self.either_int(a, b)).collect();
                Value::Tensor(TensorMeta::contiguous(a.dtype, sizes))
            }
            (Value::Int(a), Value::Int(b)) => Value::Int(self.either_int(a, b)),
            (a, b) if a == b => a.clone(),
            (a, b) => {
                let what = format!("both graphs should give the same, and give {a:?} and {b:?}");
                return Err(self.operands.refuse(what));
            }
        })
    }

    fn either_int(&self, a: &SymInt, b: &SymInt) -> SymInt {
        let is_same = self.shapes.symbols().known(&SymBool::eq(a, b)) == Some(true);
        if is_same { a.clone() } else { self.shapes.symbols().new_size() }
    }

    /// `while_loop(cond_graph, body_graph, carried, additional)`: ints that are carried change in ways that nobody knows.
    fn while_loop(&self, run: &mut RunGraph<'_, TensorMeta>) -> Result<Known> {
        let (condition, body) = (self.operands.module(0)?, self.operands.module(1)?);
        let carried = self.operands.list(2)?;
        let unknown: Vec<Known> = carried.iter().map(|it| self.changing(it)).collect();
        let inputs = [&unknown[..], self.operands.list(3)?].concat();
        run(condition, &inputs)?;
        let results = items(run(body, &inputs)?);
        if results.len() != carried.len() {
            let what = format!("the body carries {} values and gives {}", carried.len(), results.len());
            return Err(self.operands.refuse(what));
        }
        let either = |(before, after): (&Known, &Known)| match after {
            Value::Int(_) => Ok(self.changing(after)),
            _ => self.either(before, after),
        };
        Ok(Value::List(unknown.iter().zip(&results).map(either).collect::<Result<_>>()?))
    }

    fn changing(&self, value: &Known) -> Known {
        if let Value::Int(_) = value { Value::Int(self.shapes.symbols().new_int()) } else { value.clone() }
    }

    /// `map_impl(graph, xs, additional)`: the graph on one slice of the xs, the results stacked.
    fn map(&self, run: &mut RunGraph<'_, TensorMeta>) -> Result<Known> {
        let (n, slices) = self.slices(self.operands.list(1)?)?;
        let results = run(self.operands.module(0)?, &[&slices[..], self.operands.list(2)?].concat())?;
        Ok(Value::List(items(results).iter().map(|it| stacked(it, &n)).collect()))
    }

    /// `scan(graph, init, xs, additional)`: the last carry, then the other results stacked.
    fn scan(&self, run: &mut RunGraph<'_, TensorMeta>) -> Result<Known> {
        let (n, slices) = self.slices(self.operands.list(2)?)?;
        let init = self.operands.list(1)?;
        let inputs = [init, &slices, self.operands.list(3)?].concat();
        let mut results = items(run(self.operands.module(0)?, &inputs)?);
        if results.len() < init.len() {
            let what = format!("the graph carries {} values and gives {}", init.len(), results.len());
            return Err(self.operands.refuse(what));
        }
        results[init.len()..].iter_mut().for_each(|it| *it = stacked(it, &n));
        Ok(Value::List(results))
    }

    /// How many slices there are, and the first of each.
    fn slices(&self, xs: &[Known]) -> Result<(SymInt, Vec<Known>)> {
        let n = match xs.first() {
            Some(Value::Tensor(first)) if !first.sizes.is_empty() => first.sizes[0].clone(),
            _ => return Err(self.operands.refuse("xs should be tensors with a dimension".to_string())),
        };
        let select = |it: &Known| {
            Ok(self.shapes.call("aten.select.int", &[it.clone(), Value::int(0), Value::int(0)], &[])?.swap_remove(0))
        };
        Ok((n, xs.iter().map(select).collect::<Result<_>>()?))
    }
}

fn stacked(value: &Known, n: &SymInt) -> Known {
    match value {
        Value::Tensor(meta) => {
            let sizes = [n].into_iter().chain(&meta.sizes).cloned().collect();
            Value::Tensor(TensorMeta::contiguous(meta.dtype, sizes))
        }
        other => other.clone(),
    }
}
