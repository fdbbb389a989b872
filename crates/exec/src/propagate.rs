//! A graph without data: what is known of the value of each node.

use crate::autocast;
use crate::control_flow::results_of_graphs;
use crate::evaluate::{Evaluate, Kwargs, Results};
use crate::evaluation::Evaluation;
use crate::functions;
use crate::higher_order::{Operands, RunGraph};
use crate::walk::walk;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use tracefx_core::{DType, Result, Tensor};
use tracefx_ir::{Attribute, FakeTensor, Graph, GraphModule, Node, NodeId, Opcode, Str, TensorMeta, Val};
use tracefx_ops::{Args, Op, Propagation, Registry, Symbols, Value};

/// What is known of a value without data.
type Known = Value<TensorMeta>;

/// Propagates what is known of the inputs through the graph, and through the graphs that it calls, and notes about each
/// node what it gives, as `meta.val`: FX's `FakeTensorProp`. Gives back what is known of the output.
///
/// # Errors
/// As [`Interpreter::run`](crate::Interpreter::run), and `NotImplemented` where a node needs data, or the value of an
/// unbacked symbol; then nothing is noted.
pub fn propagate(module: &mut GraphModule, inputs: &[Known], shapes: Propagation<'_>) -> Result<Known> {
    let (notes, memory) = (RefCell::default(), RefCell::default());
    let output = walk(module, &mut Evaluation::new(Shapes { shapes, notes: &notes, memory: &memory }), inputs)?;
    apply(module, &mut notes.into_inner());
    Ok(output)
}

/// What is known of the results of a call, under autocast with this narrow dtype if there is one: the dtypes and sizes of what
/// a run gives. What writes to its arguments is left alone by autocast.
///
/// ```
/// use tracefx_core::DType::{BFloat16, Float32};
/// use tracefx_ir::TensorMeta;
/// use tracefx_ops::{Propagation, Symbols, Value, registry};
///
/// let symbols = Symbols::default();
/// let shapes = Propagation::new(registry(), &symbols);
/// let x = Value::Tensor(TensorMeta::contiguous(Float32, vec![2.into(), 2.into()]));
/// let args = shapes.bind("aten.einsum.default", &[Value::Str("ij,jk".into()), Value::List(vec![x.clone(), x])], &[])?;
/// let product = tracefx_exec::infer(&args, shapes, Some(BFloat16))?;
/// assert!(matches!(&product[..], [Value::Tensor(it)] if it.dtype == BFloat16));
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// As [`Propagation::infer`].
pub fn infer(args: &Args<'_, TensorMeta>, shapes: Propagation<'_>, low: Option<DType>) -> Results<TensorMeta> {
    let Some(low) = low.filter(|_| !args.op.may_write()) else {
        return Ok(shapes.infer(args)?.iter().map(|it| it.value(args)).collect());
    };
    let (notes, memory) = (RefCell::default(), RefCell::default());
    let (positional, named) = args.parted();
    let evaluate = Shapes { shapes, notes: &notes, memory: &memory };
    autocast::call(evaluate, low, &args.op.name, positional, &named).map_err(|problem| problem.op(&*args.op.name))
}

/// What the nodes of the inputs know already, to be given to [`propagate`]. An input of which nothing is known is a string,
/// say, on which no shape depends, and stands as `None`.
pub fn known_values(graph: &Graph) -> Vec<Known> {
    let inputs = graph.nodes().map(|id| graph.node(id)).filter(|it| it.op() == Opcode::Placeholder);
    inputs.map(|node| node.meta.val.as_ref().map_or(Value::None, value_of)).collect()
}

/// What the nodes of each module give, by the address of the module, which does not move while it is propagated through.
type Notes = FxHashMap<usize, Vec<Option<Option<Val>>>>;

fn address(module: &GraphModule) -> usize {
    std::ptr::from_ref(module) as usize
}

fn apply(module: &mut GraphModule, notes: &mut Notes) {
    let mut vals = notes.remove(&address(module)).unwrap_or_default();
    let ids: Vec<NodeId> = module.graph.nodes().collect();
    for id in ids {
        if let Some(val) = vals.get_mut(id.index()).and_then(Option::take) {
            module.graph.meta_mut(id).val = val;
        }
    }
    for attribute in module.attributes.values_mut() {
        if let Attribute::Module(module) = attribute {
            apply(module, notes);
        }
    }
}

/// Calls that were seen, by the name of the operator.
#[derive(Default)]
struct Memory(FxHashMap<Box<str>, Vec<Call>>);

struct Call {
    args: Vec<Known>,
    kwargs: Vec<(Str, Known)>,
    results: Vec<Known>,
}

/// So many calls of one operator are remembered; looking through them is cheaper than inferring.
const MAX_CALLS: usize = 16;

impl Memory {
    fn find(&self, name: &str, args: &[Known], kwargs: &Kwargs<TensorMeta>) -> Option<&[Known]> {
        let calls = self.0.get(name)?;
        let found = calls.iter().find(|it| are_same(&it.args, args) && are_same_entries(&it.kwargs, kwargs))?;
        Some(&found.results)
    }

    fn keep(&mut self, name: &str, args: &[Known], kwargs: &Kwargs<TensorMeta>, results: &[Known]) {
        let calls = self.0.entry(name.into()).or_default();
        if calls.len() < MAX_CALLS {
            calls.push(Call { args: args.to_vec(), kwargs: kwargs.to_vec(), results: results.to_vec() });
        }
    }
}

fn are_same(a: &[Known], b: &[Known]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
}

fn are_same_entries(a: &Kwargs<TensorMeta>, b: &Kwargs<TensorMeta>) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|((key, a), (other, b))| key == other && is_same(a, b))
}

/// Whether two values are the same to the bit: `0.0` is not `-0.0`.
fn is_same(a: &Known, b: &Known) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::List(a), Value::List(b)) => are_same(a, b),
        (a, b) => a == b,
    }
}

/// Whether nothing about a value depends on symbols.
fn is_static(value: &Known) -> bool {
    match value {
        Value::Tensor(meta) => {
            meta.sizes.iter().chain(&meta.strides).chain([&meta.storage_offset]).all(|it| it.as_int().is_some())
        }
        Value::Int(it) => it.as_int().is_some(),
        Value::List(items) => items.iter().all(is_static),
        // The parts of a complex number are floats, which compare by value.
        Value::SymBool(_) | Value::SymFloat(_) | Value::Complex(_) => false,
        Value::None
        | Value::Bool(_)
        | Value::Float(_)
        | Value::Str(_)
        | Value::DType(_)
        | Value::Device(_)
        | Value::Layout(_)
        | Value::MemoryFormat(_) => true,
    }
}

#[derive(Clone, Copy)]
struct Shapes<'a> {
    shapes: Propagation<'a>,
    notes: &'a RefCell<Notes>,
    memory: &'a RefCell<Memory>,
}

impl Evaluate for Shapes<'_> {
    type Tensor = TensorMeta;

    fn registry(&self) -> &Registry {
        self.shapes.registry()
    }

    fn symbols(&self) -> Option<&Symbols> {
        Some(self.shapes.symbols())
    }

    fn call_function(&self, name: &str, args: &[Known], kwargs: &Kwargs<TensorMeta>) -> Results<TensorMeta> {
        self.remembering(name, args, kwargs, || functions::call(*self, name, args, kwargs))
    }

    fn call_method(&self, name: &str, args: &[Known], kwargs: &Kwargs<TensorMeta>) -> Results<TensorMeta> {
        functions::call_method(*self, name, args, kwargs)
    }

    fn call_operator(&self, name: &str, args: &[Known], kwargs: &Kwargs<TensorMeta>) -> Results<TensorMeta> {
        self.shapes.call(name, args, kwargs)
    }

    fn call_overload(&self, packet: &str, args: &[Known], kwargs: &Kwargs<TensorMeta>) -> Results<TensorMeta> {
        let bound = self.registry().resolve(packet, args, kwargs, &|_| None)?;
        let bound = Args::within(bound.op, bound.values, self.shapes.symbols());
        Ok(self.shapes.infer(&bound)?.iter().map(|it| it.value(&bound)).collect())
    }

    /// Which side the tensor stands on makes no difference to the shape and the dtype.
    fn on_the_left(&self, number: &Known, tensor: &TensorMeta) -> Result<[Known; 2]> {
        Ok([Value::Tensor(tensor.clone()), number.clone()])
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

    fn control_flow(&self, operands: &Operands<'_, TensorMeta>, run: &mut RunGraph<'_, TensorMeta>) -> Result<Known> {
        results_of_graphs(self.shapes, operands, run)
    }

    fn note(&self, module: &GraphModule, node: NodeId, value: &Known) {
        let val = val_of_node(module.graph.node(node), value, self.registry());
        let mut notes = self.notes.borrow_mut();
        let vals = notes.entry(address(module)).or_insert_with(|| vec![None; module.graph.id_bound()]);
        vals[node.index()] = Some(val);
    }
}

impl Shapes<'_> {
    /// What an equal call gave before, or what this one gives: a model calls few operators with many equal arguments. Only
    /// calls whose sizes are all numbers are remembered, since symbols may be told apart later, or made anew by every call;
    /// and only of operators of the tables, since the rules of others may be anything.
    fn remembering(
        &self,
        name: &str,
        args: &[Known],
        kwargs: &Kwargs<TensorMeta>,
        compute: impl FnOnce() -> Results<TensorMeta>,
    ) -> Results<TensorMeta> {
        if let Some(results) = self.memory.borrow().find(name, args, kwargs) {
            return Ok(results.to_vec());
        }
        let results = compute()?;
        let op = self.shapes.registry().get(name);
        let is_own = op.map_or(!name.starts_with("torch.ops."), |it| !it.is_custom());
        let mut values = args.iter().chain(kwargs.iter().map(|(_, it)| it)).chain(&results);
        if is_own && values.all(is_static) {
            self.memory.borrow_mut().keep(name, args, kwargs, &results);
        }
        Ok(results)
    }
}

/// What is noted of a node that gives this; nothing where `meta.val` cannot hold it.
pub(crate) fn val_of_node(node: &Node, value: &Known, registry: &Registry) -> Option<Val> {
    let Value::List(items) = value else { return val_of(value) };
    // Several results of one operator are a tuple in Python; a list that an operator gives stays a list.
    let is_list = |it: &Op| node.op() == Opcode::CallFunction && it.schema.returns.len() == 1;
    vals_of(items, !registry.get(node.target()).is_some_and(is_list))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tracefx_core::DType;
    use tracefx_ir::Arg;
    use tracefx_ops::{CustomOp, Output, Symbols, registry};

    /// What is known of the result of each of these calls of an input of two sizes.
    fn vals(ops: &Registry, calls: &[(&str, Vec<Arg>)]) -> Vec<Val> {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        for (target, others) in calls {
            graph.call_function(target, [vec![x.into()], others.clone()].concat(), vec![]);
        }
        graph.output(x.into());
        let mut module = GraphModule::new(graph);
        let meta = TensorMeta::contiguous(DType::Int64, vec![2.into(), 3.into()]);
        let symbols = Symbols::default();
        propagate(&mut module, &[Value::Tensor(meta)], Propagation::new(ops, &symbols)).unwrap();
        let nodes = module.graph.nodes().map(|it| module.graph.node(it));
        nodes.filter(|it| it.op() == Opcode::CallFunction).map(|it| it.meta.val.clone().unwrap()).collect()
    }

    #[test]
    fn calls_that_differ_in_one_argument_are_told_apart() {
        let sizes = |val: &Val| match val {
            Val::Tensor(meta) => (meta.dtype, meta.sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")),
            other => panic!("{other:?} is no tensor"),
        };
        let calls: Vec<(&str, Vec<Arg>)> = vec![
            ("torch.ops.aten.sum.dim_IntList", vec![Arg::List(vec![Arg::Int(0)])]),
            ("torch.ops.aten.sum.dim_IntList", vec![Arg::List(vec![Arg::Int(1)])]),
            ("torch.ops.aten.sum.dim_IntList", vec![Arg::List(vec![Arg::Int(0)])]),
            ("torch.add", vec![Arg::Int(1)]),
            ("torch.add", vec![Arg::Float(1.0)]),
            ("torch.add", vec![Arg::Int(1)]),
        ];
        let known: Vec<_> = vals(registry(), &calls).iter().map(sizes).collect();
        let (int, float) = (DType::Int64, DType::Float32);
        let expected = [(int, "3"), (int, "2"), (int, "3"), (int, "2x3"), (float, "2x3"), (int, "2x3")];
        assert_eq!(known, expected.map(|(dtype, sizes)| (dtype, sizes.to_owned())));
    }

    #[test]
    fn results_with_new_symbols_are_made_for_every_call() {
        let vals =
            vals(registry(), &[("torch.ops.aten.nonzero.default", vec![]), ("torch.ops.aten.nonzero.default", vec![])]);
        assert_ne!(vals[0], vals[1]);
    }

    #[test]
    fn the_rule_of_a_custom_operator_is_asked_for_every_call() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let mut ops = registry().clone();
        let op = CustomOp::new("mylib::same(Tensor x) -> Tensor").unwrap().shape(move |args| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(vec![Output::Tensor(args.tensor(0)?.clone())])
        });
        ops.define(op).unwrap();
        vals(&ops, &[("torch.ops.mylib.same.default", vec![]), ("torch.ops.mylib.same.default", vec![])]);
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }
}
