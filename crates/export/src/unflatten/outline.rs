//! Cuts a flat graph into the modules that its nodes come from.

use super::signatures::Signatures;
use super::stack::{Level, Stack};
use super::tree::{ModuleId, Tree};
use indexmap::{IndexMap, IndexSet};
use std::collections::{HashMap, HashSet};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Graph, NodeId, Opcode, Str, Val};
use tracefx_ops::Registry;

/// One call of a module.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) parent_fqn: Str,
    pub(super) parent: ModuleId,
    /// The node of the parent's graph.
    pub(super) node: NodeId,
    pub(super) fqn: Str,
    /// How often it had been called before.
    pub(super) n_calls: usize,
    pub(super) module: ModuleId,
}

impl Call {
    /// The name of this call: `fc`, `fc@1`…
    pub(super) fn name(&self) -> String {
        call_name(&self.fqn, self.n_calls)
    }
}

/// What a graph was cut into.
#[derive(Debug)]
pub(super) struct Outlined {
    pub(super) tree: Tree,
    /// The calls of each module, whatever names it has.
    pub(super) calls: IndexMap<Str, Vec<Call>>,
    /// The graphs that the modules hand to control flow, by the names of calls.
    pub(super) graphs: IndexMap<String, IndexSet<Str>>,
    /// Nodes of which a preserved call reads what they have written, where they give a new value: by the modules that they are in.
    pub(super) read_writes: HashMap<Str, HashSet<Str>>,
}

/// A module whose nodes are being copied.
pub(super) struct Frame {
    pub(super) module: ModuleId,
    levels: Vec<Level>,
    /// Nodes of this module's graph, by nodes of the flat one.
    pub(super) copies: IndexMap<NodeId, NodeId>,
    pub(super) inputs: HashMap<NodeId, NodeId>,
    /// The call in the graph of the frame below.
    pub(super) call: Option<NodeId>,
}

impl Frame {
    pub(super) fn fqn(&self) -> &Str {
        &self.levels.last().expect("a frame is of a module").fqn
    }

    /// The name of the call: `fc`, `fc@1`…
    pub(super) fn call_name(&self) -> String {
        let level = self.levels.last().expect("a frame is of a module");
        call_name(&level.fqn, level.n_calls)
    }

    pub(super) fn known(&self, node: NodeId) -> Option<NodeId> {
        self.copies.get(&node).or_else(|| self.inputs.get(&node)).copied()
    }
}

pub(super) struct Outliner<'a> {
    pub(super) flat: &'a Graph,
    pub(super) registry: &'a Registry,
    stacks: &'a [Stack],
    pub(super) signatures: &'a Signatures<'a>,
    pub(super) res: Outlined,
    pub(super) frames: Vec<Frame>,
    pub(super) is_copied: Vec<bool>,
    /// Modules that were made for the sake of others below them, until their own turn comes.
    made: HashMap<String, ModuleId>,
}

/// # Errors
/// `GraphInvalid` where a node does not say where it is from, or a module calls one that is not below it.
pub(super) fn outline(
    flat: &Graph,
    stacks: &[Stack],
    signatures: &Signatures<'_>,
    registry: &Registry,
) -> Result<Outlined> {
    let mut tree = Tree::default();
    let module = tree.add("UnflattenedModule", None);
    let levels = vec![Level { fqn: "".into(), ty: None, n_calls: 0 }];
    let root = Frame { module, levels, copies: IndexMap::new(), inputs: HashMap::new(), call: None };
    let res = Outlined { tree, calls: IndexMap::new(), graphs: IndexMap::new(), read_writes: HashMap::new() };
    let is_copied = vec![false; flat.id_bound()];
    let mut outliner =
        Outliner { flat, registry, stacks, signatures, res, frames: vec![root], is_copied, made: HashMap::new() };
    for node in flat.nodes() {
        outliner.step(node).map_err(|problem| problem.node(&**flat.node(node).name()))?;
    }
    Ok(outliner.res)
}

impl Outliner<'_> {
    fn step(&mut self, node: NodeId) -> Result<()> {
        match self.flat.node(node).op() {
            Opcode::Placeholder if self.frames.len() > 1 => {
                return Err(invalid("an input comes after calls".to_string()));
            }
            Opcode::Placeholder => return self.copy(node),
            Opcode::Output => {
                while self.frames.len() > 1 {
                    self.close()?;
                }
                return self.copy(node);
            }
            Opcode::GetAttr | Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule => {}
        }
        match &self.stacks[node.index()] {
            Stack::Missing => {
                let name = self.flat.node(node).name();
                return Err(invalid(format!("Unable to find nn_module_stack for node {name}")));
            }
            Stack::Inherited => {}
            Stack::Known { levels, keys } => self.enter(levels, keys)?,
        }
        if self.flat.node(node).op() == Opcode::GetAttr {
            let target = self.flat.node(node).target().clone();
            let name = self.top().call_name();
            self.res.graphs.entry(name).or_default().insert(target);
        }
        self.copy(node)
    }

    pub(super) fn top(&self) -> &Frame {
        self.frames.last().expect("the root stays")
    }

    /// Closes the modules that the node is not in, and opens those that it is in.
    fn enter(&mut self, levels: &[Level], keys: &[Str]) -> Result<()> {
        while !levels.starts_with(&self.top().levels) {
            if self.frames.len() == 1 {
                return Err(invalid("its nn_module_stack does not begin with the root".to_string()));
            }
            self.close()?;
        }
        while self.top().levels.len() < levels.len() {
            let depth = self.top().levels.len();
            self.open(&levels[..=depth], &keys[depth])?;
        }
        Ok(())
    }

    /// Begins a call of a module.
    fn open(&mut self, levels: &[Level], key: &Str) -> Result<()> {
        let level = levels.last().expect("a module is called");
        let (parent, parent_fqn) = (self.top().module, self.top().fqn().clone());
        let tree = &mut self.res.tree;
        let module = match self.made.get(&*level.fqn) {
            Some(it) => *it,
            None => tree.add("InterpreterModule", level.ty.clone()),
        };
        let accessor = accessor(&parent_fqn, &call_name(&level.fqn, level.n_calls))?;
        let made = &mut self.made;
        let (holder, name) = tree.holder(parent, &accessor, &mut |tree, path| {
            let path = if parent_fqn.is_empty() { path.to_string() } else { format!("{parent_fqn}.{path}") };
            *made.entry(path).or_insert_with(|| tree.add("InterpreterModule", level.ty.clone()))
        });
        tree.children_of(holder).insert(name.into(), module);
        let node = tree.modules[parent].graph.create_node(Opcode::CallModule, &accessor, vec![], vec![], None)?;
        let calls = self.res.calls.entry(key.clone()).or_default();
        if let Some(first) = calls.first() {
            tree.modules[module].children = tree.modules[first.module].children;
        }
        let fqn = level.fqn.clone();
        calls.push(Call { parent_fqn, parent, node, fqn, n_calls: level.n_calls, module });
        let (copies, inputs) = (IndexMap::new(), HashMap::new());
        self.frames.push(Frame { module, levels: levels.to_vec(), copies, inputs, call: Some(node) });
        match self.signatures.of_call(&self.top().call_name()) {
            Some(signature) => self.pass_inputs(signature),
            None => Ok(()),
        }
    }

    fn copy(&mut self, node: NodeId) -> Result<()> {
        let source = self.flat.node(node);
        let mut inputs = HashMap::new();
        for input in source.all_input_nodes() {
            inputs.insert(input, self.input(input, self.frames.len() - 1, 0)?);
        }
        let module = self.top().module;
        let graph = &mut self.res.tree.modules[module].graph;
        let copy = graph.node_copy(source, &mut |it| Arg::Node(inputs[&it]))?;
        self.frames.last_mut().expect("the root stays").copies.insert(node, copy);
        self.is_copied[node.index()] = true;
        Ok(())
    }

    /// The module that a node is in.
    pub(super) fn holder_of(&self, node: NodeId) -> Str {
        match &self.stacks[node.index()] {
            Stack::Known { levels, .. } => levels.last().map_or_else(|| "".into(), |it| it.fqn.clone()),
            Stack::Missing | Stack::Inherited => "".into(),
        }
    }

    /// Ends a call of a module: what is used outside is given back.
    fn close(&mut self) -> Result<()> {
        if let Some(signature) = self.signatures.of_call(&self.top().call_name()) {
            return self.give_outputs(signature);
        }
        let (frame, call) = self.leave();
        let parent = self.frames.last_mut().expect("the root stays");
        let is_used = |node: NodeId| self.flat.users(node).iter().any(|user| !self.is_copied[user.index()]);
        let outputs: Vec<(NodeId, NodeId)> =
            frame.copies.iter().filter(|(node, _)| is_used(**node)).map(|(node, copy)| (*node, *copy)).collect();
        let [module, outside] =
            self.res.tree.modules.get_disjoint_mut([frame.module, parent.module]).map_err(|_| {
                // A module can only be below itself where the names lie.
                invalid(format!("the module {} calls itself", frame.fqn()))
            })?;
        let graph = &mut module.graph;
        let val = |graph: &Graph, node: NodeId| graph.node(node).meta.val.clone();
        let (result, known) = match outputs.as_slice() {
            [(_, copy)] => (Arg::Node(*copy), val(graph, *copy)),
            _ => {
                let items = outputs.iter().map(|(_, copy)| val(graph, *copy).unwrap_or(Val::None)).collect();
                let results = outputs.iter().map(|(_, copy)| Arg::Node(*copy)).collect();
                (Arg::List(results), Some(Val::Seq { items, is_tuple: false }))
            }
        };
        graph.output(result);
        outside.graph.meta_mut(call).val = known;
        lift_notes(graph, frame.copies.values().copied(), &mut outside.graph, call);
        match outputs.as_slice() {
            [(node, _)] => drop(parent.copies.insert(*node, call)),
            _ => {
                for (at, (node, _)) in outputs.iter().enumerate() {
                    let args = vec![Arg::Node(call), Arg::Int(at as i64)];
                    let item = outside.graph.call_function("operator.getitem", args, vec![]);
                    outside.graph.meta_mut(item).val = self.flat.node(*node).meta.val.clone();
                    parent.copies.insert(*node, item);
                }
            }
        }
        Ok(())
    }

    /// The innermost module, which is left, and its call.
    pub(super) fn leave(&mut self) -> (Frame, NodeId) {
        let frame = self.frames.pop().expect("a module is open");
        self.made.remove(&**frame.fqn());
        let call = frame.call.expect("it is not the root");
        (frame, call)
    }
}

/// What the user noted of all nodes of a module is noted of the call instead.
pub(super) fn lift_notes(
    graph: &mut Graph,
    copies: impl Iterator<Item = NodeId> + Clone,
    outside: &mut Graph,
    call: NodeId,
) {
    let noted = |graph: &Graph, node: NodeId| graph.node(node).meta.entries.get("custom").cloned();
    let mut all = copies.clone().map(|it| noted(graph, it));
    let Some(Some(first)) = all.next() else { return };
    if all.any(|it| it.as_ref() != Some(&first)) {
        return;
    }
    outside.meta_mut(call).entries.insert("custom".into(), first);
    for copy in copies {
        graph.meta_mut(copy).entries.shift_remove("custom");
    }
}

/// The name of a call: `fc`, `fc@1`…
pub(super) fn call_name(fqn: &str, n_calls: usize) -> String {
    if n_calls == 0 { fqn.to_string() } else { format!("{fqn}@{n_calls}") }
}

/// The path from a module to one below it.
///
/// # Errors
/// `GraphInvalid` where it is not below it.
pub(super) fn accessor(parent: &str, child: &str) -> Result<String> {
    if parent.is_empty() {
        return Ok(child.to_string());
    }
    match child.strip_prefix(parent).and_then(|it| it.strip_prefix('.')) {
        Some(rest) => Ok(rest.to_string()),
        None => Err(invalid(format!(
            "Child module '{child}' is not a descendant of parent module '{parent}'.This is currently unsupported.Please \
             try to make child module attach to parent module directly."
        ))),
    }
}

pub(super) fn invalid(what: String) -> Diagnostic {
    Diagnostic::new(Code::GraphInvalid, what)
}
