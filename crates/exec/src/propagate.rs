//! A graph without data: what is known of the value of each node.

use crate::autocast::wrap_with_autocast;
use crate::control_flow::results_of_graphs;
use crate::functions;
use crate::higher_order::{Operand, Operands};
use crate::interpreter::{Evaluate, Kwargs, Results, Walk};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use tracefx_core::{Result, Tensor};
use tracefx_ir::{Attribute, FakeTensor, Graph, GraphModule, NodeId, Opcode, TensorMeta, Val};
use tracefx_ops::{Propagation, Registry, Value};

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
            "wrap_with_autocast" => wrap_with_autocast(*self, &operands),
            _ => results_of_graphs(self.shapes, &operands, &mut |module, inputs| self.run(module, inputs)),
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

    fn run(&self, module: &GraphModule, inputs: &[Known]) -> Result<Known> {
        Walk { module, evaluate: *self }.run(inputs)
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
