//! A graph without data: what is known of the value of each node.

use crate::autocast::wrap_with_autocast;
use crate::functions;
use crate::higher_order::{Operand, Operands, items};
use crate::interpreter::{Evaluate, Kwargs, Results, Walk};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use tracefx_core::{Result, Tensor};
use tracefx_ir::{Attribute, FakeTensor, Graph, GraphModule, NodeId, Opcode, TensorMeta, Val};
use tracefx_ops::{Propagation, Registry, Value};
use tracefx_sym::{SymBool, SymInt};

/// What is known of a value without data.
type Known = Value<TensorMeta>;

/// Propagates what is known of the inputs through the graph, and through the graphs that it calls, and notes about each
/// node what it gives, as `meta.val`: FX's `FakeTensorProp`. Gives back what is known of the output.
///
/// # Errors
/// As [`Interpreter::run`](crate::Interpreter::run), and `NotImplemented` where a node needs to know what only a run can
/// tell; then nothing is noted.
pub fn propagate(module: &mut GraphModule, inputs: &[Known], shapes: Propagation<'_>) -> Result<Known> {
    let notes = RefCell::new(Notes::default());
    let output = Walk { module, evaluate: Shapes { shapes, notes: &notes } }.run(inputs)?;
    apply(module, &notes.into_inner());
    Ok(output)
}

/// What the nodes of the inputs know already, to be given to [`propagate`]. An input of which nothing is known is a string,
/// say, on which no shape depends, and stands as `None`.
pub fn known_values(graph: &Graph) -> Vec<Known> {
    let inputs = graph.nodes().map(|id| graph.node(id)).filter(|it| it.op() == Opcode::Placeholder);
    inputs.map(|node| node.meta.val.as_ref().map_or(Value::None, value_of)).collect()
}

/// What each node gives, by the address of its module, which does not move while it is propagated through.
type Notes = FxHashMap<(usize, NodeId), Option<Val>>;

fn address(module: &GraphModule) -> usize {
    std::ptr::from_ref(module) as usize
}

fn apply(module: &mut GraphModule, notes: &Notes) {
    let at = address(module);
    let ids: Vec<NodeId> = module.graph.nodes().collect();
    for id in ids {
        if let Some(val) = notes.get(&(at, id)) {
            module.graph.meta_mut(id).val = val.clone();
        }
    }
    for attribute in module.attributes.values_mut() {
        if let Attribute::Module(module) = attribute {
            apply(module, notes);
        }
    }
}

#[derive(Clone, Copy)]
struct Shapes<'a> {
    shapes: Propagation<'a>,
    notes: &'a RefCell<Notes>,
}

impl Evaluate for Shapes<'_> {
    type Tensor = TensorMeta;

    fn registry(&self) -> &Registry {
        self.shapes.registry()
    }

    fn call(&self, name: &str, args: &[Known], kwargs: &Kwargs<TensorMeta>) -> Results<TensorMeta> {
        functions::call(self.shapes, name, args, kwargs)
    }

    fn call_method(&self, name: &str, args: &[Known], kwargs: &Kwargs<TensorMeta>) -> Results<TensorMeta> {
        functions::call_method(self.shapes, name, args, kwargs)
    }

    fn attribute(&self, tensor: &Tensor) -> Result<TensorMeta> {
        Ok(TensorMeta::of(tensor))
    }

    fn fake(&self, tensor: &FakeTensor) -> Result<TensorMeta> {
        Ok(tensor.meta.clone())
    }

    fn meta(&self, tensor: &TensorMeta) -> TensorMeta {
        tensor.clone()
    }

    fn call_higher_order(&self, name: &str, operands: &[Operand<'_, TensorMeta>]) -> Result<Known> {
        let operands = Operands { name, operands };
        match name {
            "cond" => self.cond(&operands),
            "while_loop" => self.while_loop(&operands),
            "map_impl" => self.map(&operands),
            "scan" => self.scan(&operands),
            "wrap_with_autocast" => wrap_with_autocast(*self, &operands),
            "wrap_with_set_grad_enabled" => self.run(operands.module(1)?, &operands.values(2)?),
            _ => Err(operands.unknown()),
        }
    }

    fn note(&self, module: &GraphModule, node: NodeId, value: &Known) {
        // Several results of one operator are a tuple in Python; a list that an operator gives stays a list.
        let val = match (module.graph.node(node).op(), value) {
            (Opcode::CallFunction, Value::List(items)) => vals_of(items, self.gives_tuple(module, node)),
            (_, Value::List(items)) => vals_of(items, true),
            (_, value) => val_of(value),
        };
        self.notes.borrow_mut().insert((address(module), node), val);
    }
}

impl Shapes<'_> {
    fn gives_tuple(&self, module: &GraphModule, node: NodeId) -> bool {
        let op = self.shapes.registry().get(module.graph.node(node).target());
        op.is_none_or(|it| it.schema.returns.len() != 1)
    }

    /// `cond(pred, true_graph, false_graph, operands)`: what both branches give; sizes in which they differ are not known.
    fn cond(&self, operands: &Operands<'_, TensorMeta>) -> Result<Known> {
        let inputs = operands.list(3)?;
        let (yes, no) = (self.run(operands.module(1)?, inputs)?, self.run(operands.module(2)?, inputs)?);
        self.either(operands, &yes, &no)
    }

    fn either(&self, operands: &Operands<'_, TensorMeta>, a: &Known, b: &Known) -> Result<Known> {
        Ok(match (a, b) {
            (Value::List(a), Value::List(b)) if a.len() == b.len() => {
                let both = a.iter().zip(b).map(|(a, b)| self.either(operands, a, b));
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
                return Err(operands.refuse(what));
            }
        })
    }

    fn either_int(&self, a: &SymInt, b: &SymInt) -> SymInt {
        let is_same = self.shapes.symbols().known(&SymBool::eq(a, b)) == Some(true);
        if is_same { a.clone() } else { self.shapes.symbols().new_size() }
    }

    /// `while_loop(cond_graph, body_graph, carried, additional)`: ints that are carried change in ways that nobody knows.
    fn while_loop(&self, operands: &Operands<'_, TensorMeta>) -> Result<Known> {
        let (condition, body) = (operands.module(0)?, operands.module(1)?);
        let carried = operands.list(2)?;
        let unknown: Vec<Known> = carried.iter().map(|it| self.changing(it)).collect();
        let inputs = [&unknown[..], operands.list(3)?].concat();
        self.run(condition, &inputs)?;
        let results = items(self.run(body, &inputs)?);
        if results.len() != carried.len() {
            let what = format!("the body carries {} values and gives {}", carried.len(), results.len());
            return Err(operands.refuse(what));
        }
        let either = |(before, after): (&Known, &Known)| match after {
            Value::Int(_) => Ok(self.changing(after)),
            _ => self.either(operands, before, after),
        };
        Ok(Value::List(unknown.iter().zip(&results).map(either).collect::<Result<_>>()?))
    }

    fn changing(&self, value: &Known) -> Known {
        if let Value::Int(_) = value { Value::Int(self.shapes.symbols().new_int()) } else { value.clone() }
    }

    /// `map_impl(graph, xs, additional)`: the graph on one slice of the xs, the results stacked.
    fn map(&self, operands: &Operands<'_, TensorMeta>) -> Result<Known> {
        let (n, slices) = self.slices(operands, operands.list(1)?)?;
        let results = self.run(operands.module(0)?, &[&slices[..], operands.list(2)?].concat())?;
        Ok(Value::List(items(results).iter().map(|it| stacked(it, &n)).collect()))
    }

    /// `scan(graph, init, xs, additional)`: the last carry, then the other results stacked.
    fn scan(&self, operands: &Operands<'_, TensorMeta>) -> Result<Known> {
        let (n, slices) = self.slices(operands, operands.list(2)?)?;
        let init = operands.list(1)?;
        let inputs = [init, &slices, operands.list(3)?].concat();
        let mut results = items(self.run(operands.module(0)?, &inputs)?);
        if results.len() < init.len() {
            let what = format!("the graph carries {} values and gives {}", init.len(), results.len());
            return Err(operands.refuse(what));
        }
        results[init.len()..].iter_mut().for_each(|it| *it = stacked(it, &n));
        Ok(Value::List(results))
    }

    fn run(&self, module: &GraphModule, inputs: &[Known]) -> Result<Known> {
        Walk { module, evaluate: *self }.run(inputs)
    }

    /// How many slices there are, and the first of each.
    fn slices(&self, operands: &Operands<'_, TensorMeta>, xs: &[Known]) -> Result<(SymInt, Vec<Known>)> {
        let n = match xs.first() {
            Some(Value::Tensor(first)) if !first.sizes.is_empty() => first.sizes[0].clone(),
            _ => return Err(operands.refuse("xs should be tensors with a dimension".to_string())),
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

fn value_of(val: &Val) -> Known {
    match val {
        Val::None => Value::None,
        Val::Tensor(meta) => Value::Tensor(meta.clone()),
        Val::Int(it) => Value::Int(it.clone()),
        Val::Float(it) => tracefx_sym::Expr::from(it.clone()).into(),
        Val::Bool(it) => tracefx_sym::Expr::from(it.clone()).into(),
        Val::Seq { items, .. } => Value::List(items.iter().map(value_of).collect()),
    }
}

/// Nothing for a value that `meta.val` cannot hold.
fn val_of(value: &Known) -> Option<Val> {
    Some(match value {
        Value::None => Val::None,
        Value::Tensor(meta) => Val::Tensor(meta.clone()),
        Value::Int(it) => Val::Int(it.clone()),
        Value::Float(it) => Val::Float((*it).into()),
        Value::SymFloat(it) => Val::Float(it.clone()),
        Value::Bool(it) => Val::Bool((*it).into()),
        Value::SymBool(it) => Val::Bool(it.clone()),
        Value::List(items) => return vals_of(items, false),
        Value::Complex(_)
        | Value::Str(_)
        | Value::DType(_)
        | Value::Device(_)
        | Value::Layout(_)
        | Value::MemoryFormat(_) => return None,
    })
}

fn vals_of(items: &[Known], is_tuple: bool) -> Option<Val> {
    Some(Val::Seq { items: items.iter().map(val_of).collect::<Option<_>>()?, is_tuple })
}
