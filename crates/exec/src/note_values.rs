//! What single nodes give, and what is noted of those of which nothing is, as passes leave the nodes that they add or change.

use crate::propagate::val_of_node;
use crate::{known_values, propagate};
use std::collections::BTreeMap;
use tracefx_core::{Diagnostic, Result};
use tracefx_ir::{Attribute, Graph, GraphModule, NodeId, Opcode, TensorMeta};
use tracefx_ops::{Propagation, Registry, Symbols, Value};
use tracefx_sym::{ShapeEnv, Symbol, ValueRange};

/// Notes what nodes give of which nothing is noted: FX's `FakeTensorProp` for them alone. What is noted already stays, and so
/// do its symbols, of which these ranges are known. Graphs that the module calls are looked at as well. Gives what nodes
/// refused.
///
/// ```
/// use tracefx_core::DType;
/// use tracefx_exec::note_values;
/// use tracefx_ir::{Arg, Graph, GraphModule, TensorMeta, Val};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// graph.meta_mut(x).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, vec![2.into(), 3.into()])));
/// let y = graph.call_function("torch.ops.aten.t.default", vec![Arg::Node(x)], vec![]);
/// graph.output(Arg::Tuple(vec![Arg::Node(y)]));
/// let mut module = GraphModule::new(graph);
/// assert!(note_values(&mut module, tracefx_ops::registry(), []).is_empty());
/// let Some(Val::Tensor(known)) = &module.graph.node(y).meta.val else { panic!("a tensor") };
/// assert_eq!((known.sizes[0].as_int(), known.sizes[1].as_int()), (Some(3), Some(2)));
/// ```
pub fn note_values(
    module: &mut GraphModule,
    registry: &Registry,
    ranges: impl IntoIterator<Item = (Symbol, ValueRange)>,
) -> Vec<Diagnostic> {
    if !module.modules().iter().any(|(_, it)| it.graph.nodes().any(|id| is_unknown(&it.graph, id))) {
        return Vec::new();
    }
    let mut env = ShapeEnv::new();
    for (symbol, range) in ranges.into_iter().filter(|(symbol, _)| is_name(symbol.name())) {
        // A range that contradicts itself says nothing that could be used.
        drop(env.constrain(&symbol, range));
    }
    for (_, it) in module.modules() {
        let vals = it.graph.nodes().filter_map(|id| it.graph.node(id).meta.val.as_ref());
        // New symbols are numbered behind these. A range without bounds contradicts nothing.
        vals.for_each(|it| it.for_each_symbol(&mut |it| drop(env.constrain(it, ValueRange::UNBOUNDED))));
    }
    let mut problems = Vec::new();
    note_in(module, Propagation::new(registry, &Symbols::new(env)), &mut problems);
    problems
}

fn note_in(module: &mut GraphModule, shapes: Propagation<'_>, problems: &mut Vec<Diagnostic>) {
    let ids: Vec<NodeId> = module.graph.nodes().filter(|it| is_unknown(&module.graph, *it)).collect();
    for id in ids {
        match propagate_node(module, id, shapes) {
            Some(Ok(value)) => {
                module.graph.meta_mut(id).val = val_of_node(module.graph.node(id), &value, shapes.registry());
            }
            Some(Err(problem)) => problems.push(problem),
            None => {}
        }
    }
    for attribute in module.attributes.values_mut() {
        if let Attribute::Module(inner) = attribute {
            note_in(inner, shapes, problems);
        }
    }
}

/// A symbol by itself: constraints of expressions have the expression for a name.
fn is_name(text: &str) -> bool {
    text.chars().all(|it| it.is_alphanumeric() || it == '_')
}

fn is_unknown(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let is_computed = match node.op() {
        Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule | Opcode::GetAttr => true,
        Opcode::Placeholder | Opcode::Output => false,
    };
    is_computed && node.meta.val.is_none()
}

/// What a node gives by itself, where its arguments are what is noted of them; nothing where that is not known, or where the
/// node is a graph.
///
/// # Errors
/// As [`propagate`].
pub fn propagate_node(module: &GraphModule, id: NodeId, shapes: Propagation<'_>) -> Option<Result<Value<TensorMeta>>> {
    let mut alone = alone(module, id)?;
    let inputs = known_values(&alone.graph);
    Some(propagate(&mut alone, &inputs, shapes))
}

/// A module of this node alone, whose inputs are what it takes.
fn alone(module: &GraphModule, id: NodeId) -> Option<GraphModule> {
    let graph = &module.graph;
    let mut res = GraphModule::new(Graph::new());
    let mut copies: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    for input in graph.node(id).all_input_nodes() {
        let node = graph.node(input);
        let copy = match &node.meta.val {
            Some(val) => {
                let copy = res.graph.placeholder(node.name());
                res.graph.meta_mut(copy).val = Some(val.clone());
                copy
            }
            // A graph that control flow calls has no value of its own.
            None if node.op() == Opcode::GetAttr => {
                let inner @ Attribute::Module(_) = module.attribute(node.target()).ok()? else { return None };
                res.set_attribute(node.target(), inner.clone());
                res.graph.get_attr(node.target())
            }
            None => return None,
        };
        copies.insert(input, copy);
    }
    let node = graph.node(id);
    if matches!(node.op(), Opcode::GetAttr | Opcode::CallModule) {
        let attribute = module.attribute(node.target()).ok()?;
        if node.op() == Opcode::GetAttr && matches!(attribute, Attribute::Module(_)) {
            return None;
        }
        res.set_attribute(node.target(), attribute.clone());
    }
    let copy = res.graph.node_copy(node, &mut |it| copies[&it].into()).ok()?;
    res.graph.output(copy.into());
    Some(res)
}
