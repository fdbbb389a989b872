//! The nodes of a program and of the graphs inside it, one after the other.

use std::collections::{HashMap, HashSet};
use tracefx_core::python_float;
use tracefx_export::{ExportedProgram, InputKind};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Node, NodeId, Opcode, Val};

/// A node, by the number of its graph.
pub(super) struct Item {
    graph: usize,
    node: NodeId,
    /// The names of the nodes around it and its own, which no other node has.
    pub(super) path: String,
}

/// The nodes in the order in which they are told: a weight stands before the first node that uses it, and the graph of a branch or a loop
/// behind the node that calls it. That a node refers to such a graph is no item of its own.
pub(super) struct Nodes<'a> {
    pub(super) items: Vec<Item>,
    graphs: Vec<Numbered<'a>>,
    /// The graphs that are there: one that is used twice has its nodes with its first user.
    known: HashSet<*const GraphModule>,
}

/// A graph, and which item each of its nodes is.
struct Numbered<'a> {
    graph: &'a Graph,
    items: HashMap<NodeId, usize>,
}

impl<'a> Nodes<'a> {
    pub(super) fn of(program: &'a ExportedProgram) -> Self {
        let graph = &program.module.graph;
        let inputs = graph.nodes().filter(|it| graph.node(*it).op() == Opcode::Placeholder);
        let weights = inputs.zip(&program.signature.input_specs).filter(|(_, it)| is_weight(it.kind));
        let mut res = Nodes { items: Vec::new(), graphs: Vec::new(), known: HashSet::new() };
        res.add_graph(&program.module, "", weights.map(|(node, _)| node).collect());
        res
    }

    pub(super) fn graph(&self, at: usize) -> &'a Graph {
        self.graphs[self.items[at].graph].graph
    }

    pub(super) fn node(&self, at: usize) -> &'a Node {
        self.graph(at).node(self.items[at].node)
    }

    /// The item of an input of a node; of the graph of a branch there is none.
    pub(super) fn input(&self, at: usize, input: NodeId) -> Option<usize> {
        self.graphs[self.items[at].graph].items.get(&input).copied()
    }

    /// What is known of the value of a node: `f32[1, s77]`, or `(f32[2], i64[2])`; empty where nothing is.
    pub(super) fn value(&self, at: usize) -> String {
        self.node(at).meta.val.as_ref().map(spell).unwrap_or_default()
    }

    /// A node and what is known of its value.
    pub(super) fn line(&self, at: usize) -> String {
        let (node, value) = (self.graph(at).format_node(self.items[at].node), self.value(at));
        if value.is_empty() { node } else { format!("{node}  # {value}") }
    }

    fn add_graph(&mut self, module: &'a GraphModule, prefix: &str, weights: Vec<NodeId>) {
        let graph = &module.graph;
        if !self.known.insert(std::ptr::from_ref(module)) {
            return;
        }
        let number = self.graphs.len();
        self.graphs.push(Numbered { graph, items: HashMap::new() });
        let mut folded: Vec<NodeId> = weights;
        let mut held: HashMap<NodeId, &'a GraphModule> = HashMap::new();
        for id in graph.nodes().filter(|it| graph.node(*it).op() == Opcode::GetAttr) {
            match module.attribute(graph.node(id).target()) {
                Ok(Attribute::Module(inner)) => drop(held.insert(id, inner)),
                Ok(Attribute::Tensor { .. } | Attribute::Fake { .. }) | Err(_) => folded.push(id),
            }
        }
        let is_folded: HashSet<NodeId> = folded.iter().copied().collect();
        for id in graph.nodes().filter(|it| !held.contains_key(it) && !is_folded.contains(it)) {
            let (node, inputs) = (graph.node(id), graph.node(id).all_input_nodes());
            for &input in inputs.iter().filter(|it| is_folded.contains(it)) {
                self.add(number, input, prefix);
            }
            let at = self.add(number, id, prefix);
            let path = format!("{}/", self.items[at].path);
            if node.op() == Opcode::CallModule {
                if let Ok(inner) = module.submodule(node.target()) {
                    self.add_graph(inner, &path, Vec::new());
                }
                continue;
            }
            for input in inputs {
                if let Some(&inner) = held.get(&input) {
                    self.add_graph(inner, &format!("{path}{}/", graph.node(input).target()), Vec::new());
                }
            }
        }
        for node in folded {
            self.add(number, node, prefix);
        }
    }

    /// Adds a node, unless it is there.
    fn add(&mut self, graph: usize, node: NodeId, prefix: &str) -> usize {
        let numbered = &mut self.graphs[graph];
        *numbered.items.entry(node).or_insert_with(|| {
            let path = format!("{prefix}{}", numbered.graph.node(node).name());
            self.items.push(Item { graph, node, path });
            self.items.len() - 1
        })
    }
}

fn is_weight(kind: InputKind) -> bool {
    match kind {
        InputKind::Parameter | InputKind::Buffer | InputKind::ConstantTensor | InputKind::CustomObj => true,
        InputKind::UserInput | InputKind::Token => false,
    }
}

/// What a list shows of its items.
const MOST_ITEMS: usize = 3;

fn spell(val: &Val) -> String {
    match val {
        Val::None => String::new(),
        Val::Tensor(meta) => crate::inspect::describe_tensor(meta),
        Val::Int(it) => it.to_string(),
        Val::Float(it) => it.as_float().map_or_else(|| it.to_string(), python_float),
        Val::Bool(it) => it.to_string(),
        Val::Seq { items, .. } => {
            let mut told: Vec<String> = items.iter().take(MOST_ITEMS).map(spell).collect();
            if items.len() > MOST_ITEMS {
                told.push(format!("… {}", items.len()));
            }
            format!("({})", told.join(", "))
        }
    }
}

/// The arguments of a node as text, with a name for each node in them.
pub(super) fn arguments(graph: &Graph, node: &Node, name_of: &dyn Fn(NodeId) -> String) -> String {
    let text = |arg: &Arg| graph.repr_arg(&arg.map_nodes(&mut |it| Arg::str(&name_of(it))));
    let mut kwargs: Vec<_> = node.kwargs().iter().collect();
    kwargs.sort_by(|(a, _), (b, _)| a.cmp(b));
    let named = kwargs.into_iter().map(|(name, it)| format!("{name}={}", text(it)));
    node.args().iter().map(text).chain(named).collect::<Vec<_>>().join(", ")
}
