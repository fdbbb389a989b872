//! What new nodes of a program give: programs say it of each node, and no file is written without it.

use crate::Library;
use crate::guards::collect_symbols;
use std::collections::{BTreeMap, BTreeSet};
use tracefx_core::Diagnostic;
use tracefx_exec::{known_values, propagate};
use tracefx_export::ExportedProgram;
use tracefx_ir::{Attribute, Graph, GraphModule, NodeId, Opcode, Val};
use tracefx_ops::{Propagation, Symbols};
use tracefx_sym::{ShapeEnv, Symbol, ValueRange};

impl Library {
    /// Notes what nodes give of which nothing is noted, as passes leave those that they add or change: FX's `FakeTensorProp` for
    /// them alone. What is noted already stays, and so do the symbols of the program. Gives what nodes refused.
    ///
    /// ```
    /// use tracefx_core::DType;
    /// use tracefx_engine::Library;
    /// use tracefx_export::{ExportedProgram, GraphSignature};
    /// use tracefx_ir::{Arg, Graph, GraphModule, TensorMeta, Val};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x");
    /// graph.meta_mut(x).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, vec![2.into(), 3.into()])));
    /// let y = graph.call_function("torch.ops.aten.t.default", vec![Arg::Node(x)], vec![]);
    /// graph.output(Arg::Tuple(vec![Arg::Node(y)]));
    /// let mut program = ExportedProgram::new(GraphModule::new(graph), GraphSignature::default());
    /// assert!(Library::default().note_values(&mut program).is_empty());
    /// let Some(Val::Tensor(known)) = &program.module.graph.node(y).meta.val else { panic!("a tensor") };
    /// assert_eq!((known.sizes[0].as_int(), known.sizes[1].as_int()), (Some(3), Some(2)));
    /// ```
    pub fn note_values(&self, program: &mut ExportedProgram) -> Vec<Diagnostic> {
        let ranges: Vec<_> = program.range_constraints.iter().map(|(symbol, range)| (symbol.clone(), *range)).collect();
        self.note_values_of(&mut program.module, ranges)
    }

    /// The same for a module, where this is known of symbols. Graphs that it calls are looked at as well.
    pub fn note_values_of(
        &self,
        module: &mut GraphModule,
        ranges: impl IntoIterator<Item = (Symbol, ValueRange)>,
    ) -> Vec<Diagnostic> {
        if !has_unknown(module) {
            return Vec::new();
        }
        let mut env = ShapeEnv::new();
        for (symbol, range) in ranges.into_iter().filter(|(symbol, _)| is_name(symbol.name())) {
            // A range that contradicts itself says nothing that could be used.
            drop(env.constrain(&symbol, range));
        }
        let mut known = BTreeSet::new();
        for_each_graph(module, &mut |graph| collect_symbols(graph, &mut known));
        for symbol in known {
            // New symbols are numbered behind these. A range without bounds contradicts nothing.
            drop(env.constrain(&symbol, ValueRange::UNBOUNDED));
        }
        let mut problems = Vec::new();
        self.note_in(module, &Symbols::new(env), &mut problems);
        problems
    }

    fn note_in(&self, module: &mut GraphModule, symbols: &Symbols, problems: &mut Vec<Diagnostic>) {
        let ids: Vec<NodeId> = module.graph.nodes().filter(|it| is_unknown(&module.graph, *it)).collect();
        for id in ids {
            let Some(mut alone) = alone(module, id) else { continue };
            let inputs = known_values(&alone.graph);
            let noted = propagate(&mut alone, &inputs, Propagation::new(self.registry(), symbols));
            if let Err(problem) = noted {
                problems.push(problem);
                continue;
            }
            let last = alone.graph.output_node().and_then(|it| alone.graph.node(it).all_input_nodes().first().copied());
            module.graph.meta_mut(id).val = last.and_then(|it| alone.graph.node(it).meta.val.clone());
        }
        for attribute in module.attributes.values_mut() {
            if let Attribute::Module(inner) = attribute {
                self.note_in(inner, symbols, problems);
            }
        }
    }
}

/// A symbol by itself: constraints of expressions have the expression for a name.
fn is_name(text: &str) -> bool {
    text.chars().all(|it| it.is_alphanumeric() || it == '_')
}

/// The graph of a module, and those that it calls.
fn for_each_graph(module: &GraphModule, f: &mut dyn FnMut(&Graph)) {
    f(&module.graph);
    for attribute in module.attributes.values() {
        if let Attribute::Module(inner) = attribute {
            for_each_graph(inner, f);
        }
    }
}

fn has_unknown(module: &GraphModule) -> bool {
    module.graph.nodes().any(|it| is_unknown(&module.graph, it))
        || module.attributes.values().any(|it| if let Attribute::Module(it) = it { has_unknown(it) } else { false })
}

fn is_unknown(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let is_computed = match node.op() {
        Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule | Opcode::GetAttr => true,
        Opcode::Placeholder | Opcode::Output => false,
    };
    is_computed && node.meta.val.is_none()
}

/// A module of this node alone, whose inputs are what it takes; nothing where that is not known, or where the node is a graph.
pub(crate) fn alone(module: &GraphModule, id: NodeId) -> Option<GraphModule> {
    let graph = &module.graph;
    let mut res = GraphModule::new(Graph::new());
    let mut copies: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    for input in graph.node(id).all_input_nodes() {
        let node = graph.node(input);
        let copy = match &node.meta.val {
            Some(val) => {
                let copy = res.graph.placeholder(node.name());
                res.graph.meta_mut(copy).val = Some(Val::clone(val));
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
