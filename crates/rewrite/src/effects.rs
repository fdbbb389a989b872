//! Alias analysis: which values may share memory that is written to, so that no pass moves or merges what a write tells
//! apart.
//!
//! Values that may share memory form an alias set: a view and what it looks at, a list and its items. What is not known to
//! be fresh memory counts as shared, and what is not known not to write counts as writing.

use crate::in_place::{evaluates, is_in_place_name, is_in_place_operator};
use rustc_hash::{FxHashMap, FxHashSet};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Node, NodeId, Opcode, Str, Val};
use tracefx_ops::{ArgType, Op, Registry, Tags};

/// The alias sets of a graph's values, and in which of them something is written. What is put into the graph later has to
/// be told ([`AliasAnalysis::add`]); what is taken out of it stays in its set.
pub(crate) struct AliasAnalysis {
    /// For each node, by its index, another of its alias set, or itself.
    parents: Vec<u32>,
    /// Whether the alias set that this node stands for is written to.
    is_written: Vec<bool>,
    /// For each node, by its index, whether it writes.
    writers: Vec<bool>,
    /// The first read of each attribute: each read gives the same memory.
    reads: FxHashMap<Str, NodeId>,
}

impl AliasAnalysis {
    /// The writes of a module's graph; nothing where there are none, as in most graphs.
    pub(crate) fn of(module: &GraphModule, registry: &Registry) -> Option<AliasAnalysis> {
        let graph = &module.graph;
        // Nodes share their targets, so that each operator is looked up once.
        let mut harmless: FxHashSet<*const u8> = FxHashSet::default();
        let is_written = graph.nodes().any(|it| {
            let node = graph.node(it);
            let target = node.target();
            if node.op() == Opcode::CallFunction && harmless.contains(&target.as_ptr()) {
                return false;
            }
            let res = writes(node, graph, module, registry);
            let is_operator = node.op() == Opcode::CallFunction && target.starts_with("torch.ops.aten.");
            if !res && is_operator && registry.get(target).is_some_and(|it| !it.may_write()) {
                harmless.insert(target.as_ptr());
            }
            res
        });
        is_written.then(|| AliasAnalysis::of_any(module, registry))
    }

    /// As [`AliasAnalysis::of`], where a write is still to come.
    pub(crate) fn of_any(module: &GraphModule, registry: &Registry) -> AliasAnalysis {
        let mut res =
            AliasAnalysis { parents: vec![], is_written: vec![], writers: vec![], reads: FxHashMap::default() };
        res.add(&module.graph, effects_of(module, registry).into_iter());
        res.join_tied(module);
        res
    }

    /// Attributes of several names may be one memory.
    fn join_tied(&mut self, module: &GraphModule) {
        let mut first: FxHashMap<Memory, NodeId> = FxHashMap::default();
        let reads: Vec<(Str, NodeId)> = self.reads.iter().map(|(name, it)| (name.clone(), *it)).collect();
        for (name, read) in reads {
            if let Some(memory) = module.attribute(&name).ok().and_then(memory) {
                let other = *first.entry(memory).or_insert(read);
                self.join(read, other);
            }
        }
    }

    /// Adds nodes of the graph, in order.
    pub(crate) fn add(&mut self, graph: &Graph, effects: impl Iterator<Item = (NodeId, Effect)> + Clone) {
        let n_nodes = graph.id_bound();
        self.parents.extend(self.parents.len() as u32..n_nodes as u32);
        self.is_written.resize(n_nodes, false);
        self.writers.resize(n_nodes, false);
        for (id, effect) in effects.clone() {
            let node = graph.node(id);
            if node.op() == Opcode::GetAttr {
                let first = *self.reads.entry(node.target().clone()).or_insert(id);
                self.join(id, first);
            }
            if effect.shares {
                node.for_each_input(&mut |input| self.join(id, input));
            }
        }
        for (id, _) in effects.filter(|(_, it)| it.writes) {
            self.writers[id.index()] = true;
            graph.node(id).for_each_input(&mut |input| {
                let set = self.alias_set(input);
                self.is_written[set] = true;
            });
        }
    }

    /// What used a value uses these others from now on, and what writes to it writes to them.
    pub(crate) fn replace(&mut self, old: NodeId, new: &Arg) {
        new.for_each_node(&mut |it| self.join(it, old));
    }

    /// Whether something writes to the memory of this value, or may.
    pub(crate) fn is_written(&self, node: NodeId) -> bool {
        self.is_written[self.alias_set(node)]
    }

    /// Whether the node writes to something.
    pub(crate) fn is_writer(&self, node: NodeId) -> bool {
        self.writers[node.index()]
    }

    /// Whether a call and what it takes are free of writes, so that it gives the same wherever it stands.
    pub(crate) fn leave_alone(&self, graph: &Graph, node: NodeId) -> bool {
        let mut is_written = self.is_written(node) || self.writers[node.index()];
        graph.node(node).for_each_input(&mut |it| is_written |= self.is_written(it));
        !is_written
    }

    /// The nodes from whose values something is computed that is a view or a copy as the order of memory wants it, such as a
    /// `reshape`, where that or what it is made of is written to; and these. In another order of memory they see other writes.
    pub(crate) fn sources(&self, graph: &Graph, registry: &Registry) -> FxHashSet<NodeId> {
        let nodes: Vec<NodeId> = graph.nodes().rev().collect();
        let is_loose = |it: &NodeId| self.is_written(*it) && may_copy(graph, *it, registry);
        let loose: FxHashSet<usize> = nodes.iter().copied().filter(is_loose).map(|it| self.alias_set(it)).collect();
        let mut res = FxHashSet::default();
        for id in nodes {
            if loose.contains(&self.alias_set(id)) || graph.users(id).iter().any(|it| res.contains(&it)) {
                res.insert(id);
            }
        }
        res
    }

    /// Whether the node uses memory that something writes to, as [`AliasAnalysis::used`] tells.
    pub(crate) fn uses_written(&self, graph: &Graph, node: NodeId) -> bool {
        let mut res = false;
        graph.node(node).for_each_input(&mut |it| res |= self.is_written(it));
        res
    }

    /// The written alias sets of what a node takes, each once. It reads them, or writes to all of them.
    pub(crate) fn used(&self, graph: &Graph, node: NodeId) -> Vec<usize> {
        let mut res = Vec::new();
        graph.node(node).for_each_input(&mut |input| {
            let set = self.alias_set(input);
            if self.is_written[set] {
                res.push(set);
            }
        });
        res.sort_unstable();
        res.dedup();
        res
    }

    /// Pairs of nodes of which the first must stay before the second, because one of them writes to what the other uses.
    /// Together with what nodes use they keep each write between the same reads.
    pub(crate) fn orders(&self, graph: &Graph, registry: &Registry) -> Vec<(NodeId, NodeId)> {
        let mut res = Vec::new();
        // For each written alias set its last writer, and who has read it since.
        let mut last: Vec<(Option<NodeId>, Vec<NodeId>)> = vec![(None, Vec::new()); self.parents.len()];
        for id in graph.nodes() {
            let reads_nothing = matches!(graph.node(id).op(), Opcode::Placeholder | Opcode::GetAttr | Opcode::Output);
            if reads_nothing || takes_item(graph, id, registry) {
                continue;
            }
            for set in self.used(graph, id) {
                let (writer, readers) = &mut last[set];
                res.extend(writer.map(|it| (it, id)));
                if self.writers[id.index()] {
                    res.extend(readers.drain(..).map(|it| (it, id)));
                    *writer = Some(id);
                } else {
                    readers.push(id);
                }
            }
        }
        res
    }

    /// What stands for the memory of a value that is written to. A node that is put in later has none.
    pub(crate) fn alias_set_of(&self, node: NodeId) -> Option<usize> {
        let is_known = node.index() < self.parents.len();
        is_known.then(|| self.alias_set(node)).filter(|it| self.is_written[*it])
    }

    fn alias_set(&self, node: NodeId) -> usize {
        let mut at = node.index();
        while self.parents[at] as usize != at {
            at = self.parents[at] as usize;
        }
        at
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (mut from, to) = (a.index(), self.alias_set(b));
        // Everything on the way points to the set now, so that ways stay short.
        loop {
            let next = self.parents[from] as usize;
            self.parents[from] = to as u32;
            if next == from {
                self.is_written[to] |= self.is_written[from];
                break;
            }
            from = next;
        }
    }
}

/// Whether a node gives a view or a copy, as the order of memory wants it.
fn may_copy(graph: &Graph, id: NodeId, registry: &Registry) -> bool {
    let node = graph.node(id);
    match node.op() {
        Opcode::Placeholder | Opcode::GetAttr | Opcode::Output => false,
        Opcode::CallMethod | Opcode::CallModule => true,
        Opcode::CallFunction if takes_item(graph, id, registry) => false,
        Opcode::CallFunction => registry.get(node.target()).is_none_or(|it| {
            let is_view = it.def.tags.has(Tags::VIEW) && !it.def.tags.has(Tags::MAY_COPY) && !it.may_write();
            let is_in_place = it.returns_self() && !it.reshapes_self();
            op_shares(it) && !is_view && !is_in_place
        }),
    }
}

/// Which memory a tensor has.
#[derive(PartialEq, Eq, Hash)]
pub(crate) enum Memory {
    Storage(usize),
    Fake(u32),
}

pub(crate) fn memory(attribute: &Attribute) -> Option<Memory> {
    match attribute {
        Attribute::Tensor { tensor, .. } => Some(Memory::Storage(tensor.storage().id())),
        Attribute::Fake { tensor, .. } => Some(Memory::Fake(tensor.id)),
        Attribute::Module(_) => None,
    }
}

/// Whether a node takes one of several results, which reads no memory.
fn takes_item(graph: &Graph, node: NodeId, registry: &Registry) -> bool {
    let node = graph.node(node);
    let [Arg::Node(source), Arg::Int(_)] = node.args() else { return false };
    let source = graph.node(*source);
    let gives_several = || match source.target().strip_prefix("torch.ops.") {
        Some(name) if name.starts_with("higher_order.") => true,
        Some(name) => registry.get(name).is_some_and(|it| match it.schema.returns.as_slice() {
            [single] => matches!(single.ty, ArgType::List(..)),
            _ => true,
        }),
        None => false,
    };
    let is_known = matches!(source.meta.val, Some(Val::Seq { .. }));
    node.op() == Opcode::CallFunction && &**node.target() == "operator.getitem" && (is_known || gives_several())
}

/// What a call does to memory.
#[derive(Clone, Copy)]
pub(crate) struct Effect {
    /// It may write to what it takes.
    pub(crate) writes: bool,
    /// What it gives may look at the memory of what it takes.
    shares: bool,
}

impl Effect {
    /// That of a call of which nothing better is known.
    pub(crate) const WRITE: Effect = Effect { writes: true, shares: true };
}

/// What each node of a module's graph does, in order.
pub(crate) fn effects_of(module: &GraphModule, registry: &Registry) -> Vec<(NodeId, Effect)> {
    let graph = &module.graph;
    graph.nodes().map(|it| (it, effect_of(graph.node(it), module, registry))).collect()
}

/// The nodes that write, as far as their operators are known: what is not known is taken at its word.
pub(crate) fn known_writers(module: &GraphModule, registry: &Registry) -> impl Iterator<Item = NodeId> {
    let graph = &module.graph;
    graph.nodes().filter(move |&it| is_known_writer(graph.node(it), graph, module, registry))
}

/// Whether a node of a graph writes, as far as its operator is known.
pub(crate) fn is_known_writer(node: &Node, graph: &Graph, owner: &GraphModule, registry: &Registry) -> bool {
    let is_unknown = || {
        let operator = node.target().strip_prefix("torch.ops.").filter(|it| !it.starts_with("higher_order."));
        node.op() == Opcode::CallFunction && operator.is_some_and(|it| registry.get(it).is_none())
    };
    writes(node, graph, owner, registry) && !is_unknown()
}

fn effect_of(node: &Node, owner: &GraphModule, registry: &Registry) -> Effect {
    Effect { writes: writes(node, &owner.graph, owner, registry), shares: shares(node, owner, registry) }
}

/// Whether a call may write to what it takes. That is quickly told of most, and seldom so.
fn writes(node: &Node, graph: &Graph, owner: &GraphModule, registry: &Registry) -> bool {
    match node.op() {
        Opcode::Placeholder | Opcode::GetAttr | Opcode::Output => false,
        Opcode::CallMethod => is_in_place_name(node.target()),
        // A graph may be looked at without its modules, which seldom write to what they take.
        Opcode::CallModule => owner.submodule(node.target()).is_ok_and(|it| module_writes(it, registry)),
        Opcode::CallFunction => function_writes(node, graph, owner, registry),
    }
}

fn function_writes(node: &Node, graph: &Graph, owner: &GraphModule, registry: &Registry) -> bool {
    let target = &**node.target();
    if let Some(name) = target.strip_prefix("torch.ops.") {
        if name.starts_with("higher_order.") {
            return graphs_write(node, graph, owner, registry);
        }
        return registry.get(name).is_none_or(|it| it.may_write() && !evaluates(it, node));
    }
    let writes_out = node.kwarg("out").is_some_and(|it| *it != Arg::None);
    let says_in_place = node.kwarg("inplace").is_some_and(|it| *it == Arg::Bool(true));
    // The last argument of many functions of torch.nn.functional says whether they write to the first.
    let may_say_in_place = target.starts_with("torch.nn.functional.") && node.args().contains(&Arg::Bool(true));
    // `operator.and_` is named so since Python has a word `and`.
    let is_in_place = match target.starts_with("operator.") {
        true => is_in_place_operator(target) || target == "operator.setitem",
        false => is_in_place_name(target),
    };
    writes_out || says_in_place || may_say_in_place || is_in_place
}

/// Whether what a call gives may look at the memory of what it takes.
fn shares(node: &Node, owner: &GraphModule, registry: &Registry) -> bool {
    let target = &**node.target();
    match node.op() {
        Opcode::Placeholder | Opcode::GetAttr | Opcode::Output => false,
        Opcode::CallModule => true,
        Opcode::CallMethod => is_in_place_name(target) || packet_shares(target, registry),
        Opcode::CallFunction => match target.strip_prefix("torch.ops.") {
            Some(name) => registry.get(name).is_none_or(op_shares),
            None if function_writes(node, &owner.graph, owner, registry) => true,
            None => match target.strip_prefix("torch.").or_else(|| target.strip_prefix("operator.")) {
                Some("getitem") | None => true,
                Some(name) => packet_shares(name.rsplit('.').next().unwrap_or(name), registry),
            },
        },
    }
}

/// Whether a function or method that is called as operators of PyTorch are shares memory as they do.
fn packet_shares(name: &str, registry: &Registry) -> bool {
    let Ok(overloads) = registry.overloads(&format!("aten.{name}")) else { return true };
    // An overload that writes is called by another name, or with `out`.
    let mut plain = overloads.iter().filter(|it| !it.may_write()).peekable();
    plain.peek().is_none() || plain.any(|it| op_shares(it))
}

/// Whether what an operator gives may look at the memory of what it takes.
pub(crate) fn op_shares(op: &Op) -> bool {
    let tags = op.def.tags;
    // What only its decomposition says may give back what it was given.
    let is_made_of_others = matches!(op.def.infer, tracefx_ops::Infer::Composite) && !tags.has(Tags::FRESH);
    op.may_alias() || tags.has(Tags::VIEW) || tags.has(Tags::MAY_GIVE_ARGUMENT) || is_made_of_others
}

/// A call of graphs writes where one of them does.
fn graphs_write(node: &Node, graph: &Graph, owner: &GraphModule, registry: &Registry) -> bool {
    let mut writes = false;
    node.for_each_input(&mut |it| {
        let input = graph.node(it);
        if input.op() == Opcode::GetAttr
            && let Ok(Attribute::Module(inner)) = owner.attribute(input.target())
        {
            writes |= module_writes(inner, registry);
        }
    });
    writes
}

fn module_writes(module: &GraphModule, registry: &Registry) -> bool {
    let graph = &module.graph;
    let says_in_place = module.meta.get("tracefx.module").is_some_and(|it| it.contains("\"inplace\":true"));
    says_in_place || graph.nodes().any(|it| writes(graph.node(it), graph, module, registry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ops::registry;

    fn graph(calls: &[(&str, &[usize])]) -> (GraphModule, Vec<NodeId>) {
        let mut graph = Graph::new();
        let mut nodes = vec![graph.placeholder("x")];
        for (target, args) in calls {
            let args = args.iter().map(|&it| Arg::Node(nodes[it])).collect();
            nodes.push(graph.call_function(target, args, vec![]));
        }
        (GraphModule::new(graph), nodes)
    }

    fn written(calls: &[(&str, &[usize])]) -> Vec<usize> {
        let (module, nodes) = graph(calls);
        let Some(writes) = AliasAnalysis::of(&module, registry()) else { return vec![] };
        (0..nodes.len()).filter(|&it| writes.is_written(nodes[it])).collect()
    }

    #[test]
    fn a_write_reaches_the_views_of_its_memory() {
        let calls: &[(&str, &[usize])] = &[
            ("torch.ops.aten.t.default", &[0]),
            ("torch.ops.aten.sin.default", &[0]),
            ("torch.ops.aten.relu_.default", &[1]),
        ];
        assert_eq!(written(calls), [0, 1, 3]);
    }

    #[test]
    fn a_write_reaches_every_read_of_an_attribute() {
        let mut graph = Graph::new();
        let reads = ["cache", "weight", "cache"].map(|it| graph.get_attr(it));
        graph.call_function("torch.ops.aten.relu_.default", vec![reads[2].into()], vec![]);
        let writes = AliasAnalysis::of(&GraphModule::new(graph), registry()).unwrap();
        assert_eq!(reads.map(|it| writes.is_written(it)), [true, false, true]);
    }

    #[test]
    fn functions_and_operators_in_place_write() {
        assert_eq!(written(&[("torch.sin", &[0]), ("torch.relu_", &[1])]), [1, 2]);
        assert_eq!(written(&[("torch.transpose", &[0]), ("operator.iadd", &[1])]), [0, 1, 2]);
        assert_eq!(written(&[("torch.sin", &[0]), ("torch.add", &[1]), ("operator.and_", &[0, 1])]), [0; 0]);
        assert_eq!(written(&[("torch.ops.mine.unknown.default", &[0])]), [0, 1]);
    }

    #[test]
    fn each_write_stays_between_its_reads() {
        let (module, nodes) = graph(&[
            ("torch.ops.aten.sin.default", &[0]),
            ("torch.ops.aten.relu_.default", &[0]),
            ("torch.ops.aten.cos.default", &[0]),
        ]);
        let orders = AliasAnalysis::of(&module, registry()).unwrap().orders(&module.graph, registry());
        assert_eq!(orders, [(nodes[1], nodes[2]), (nodes[2], nodes[3])]);
    }
}
