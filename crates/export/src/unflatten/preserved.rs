//! Calls whose signature was to be preserved: they take and give what the module did, in its structure.
//!
//! A call gets its arguments out of the flat values by `tree_unflatten`, and the module takes them apart again by
//! `tree_flatten_spec`; with the results it is the other way round. A structure is an attribute `_spec_0`, `_spec_1`… of the
//! module: a module of the class `TreeSpec` without nodes, whose note [`SPEC_NOTE`] is JSON.

use super::outline::{Outlined, Outliner, invalid, lift_notes};
use super::tree::{MAX_DEPTH, ModuleId, Tree, too_deep};
use crate::{Argument, CallSignature, ConstantValue, Key, TreeSpec};
use std::collections::HashMap;
use tracefx_core::Result;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, InsertPoint, NodeId, Opcode, Str};

/// Under which key a module of the class `TreeSpec` notes the structure that it stands for.
const SPEC_NOTE: &str = "tree_spec";

const FLATTEN: &str = "torch.fx._pytree.tree_flatten_spec";
const UNFLATTEN: &str = "torch.utils._pytree.tree_unflatten";

/// What computes sizes and the like, which a module whose inputs are fixed computes again.
const COPIED: [&str; 6] = [
    "torch.ops.aten.sym_size.int",
    "torch.ops.aten.item.default",
    "torch.ops.aten.unbind.int",
    "torch.ops.aten.sum.dim_IntList",
    "torch.ops.aten.view.default",
    "torch.ops.aten.diff.default",
];

impl Outliner<'_> {
    /// The node of a module that is open which stands for one of the flat graph. A value from outside comes in as a new first
    /// argument of all calls on the way, but calls that are preserved take inputs of the graph alone.
    pub(super) fn input(&mut self, node: NodeId, frame: usize, depth: usize) -> Result<NodeId> {
        if let Some(known) = self.frames[frame].known(node) {
            return Ok(known);
        }
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let source = self.flat.node(node);
        // The inputs of the root are fixed, too.
        let is_preserved = frame == 0 || self.signatures.of_call(self.frames[frame].fqn()).is_some();
        if source.op() == Opcode::Placeholder || !is_preserved {
            return self.add_input(node, frame, depth);
        }
        let target = &**source.target();
        if source.op() != Opcode::CallFunction {
            let what = format!("Could not run remap_input() on op type: {} for node {}", source.op(), source.name());
            return Err(invalid(what));
        }
        if COPIED.contains(&target) || target.starts_with("operator.") {
            return self.copy_number(node, frame, depth);
        }
        // What is left are values that were written to something, which is read where it is.
        let is_mutable = self.registry.get(target).is_some_and(|it| it.schema.args.iter().any(|arg| arg.is_mutated));
        if !is_mutable {
            let holder = self.holder_of(node);
            self.res.read_writes.entry(holder).or_default().insert(source.name().clone());
        }
        match source.args().first().and_then(Arg::as_node) {
            Some(written) => self.input(written, frame, depth + 1),
            None => Err(invalid(format!(
                "nothing that {} writes to comes into {}",
                source.name(),
                self.frames[frame].fqn()
            ))),
        }
    }

    fn add_input(&mut self, node: NodeId, frame: usize, depth: usize) -> Result<NodeId> {
        let source = self.flat.node(node);
        if frame == 0 {
            return Err(invalid(format!("Cannot add placeholder {} to root module", source.name())));
        }
        let outer = self.input(node, frame - 1, depth + 1)?;
        let (module, parent) = (self.frames[frame].module, self.frames[frame - 1].module);
        let graph = &mut self.res.tree.modules[module].graph;
        let front = graph.first().map_or(InsertPoint::End, InsertPoint::Before);
        let before = graph.set_insert_point(front)?;
        let input = graph.placeholder(source.name());
        graph.set_insert_point(before)?;
        graph.set_type(input, source.ty().cloned())?;
        *graph.meta_mut(input) = source.meta.clone();
        self.frames[frame].inputs.insert(node, input);
        let call = self.frames[frame].call.expect("the root has all that comes before");
        self.res.tree.modules[parent].graph.insert_arg(call, 0, Arg::Node(outer))?;
        Ok(input)
    }

    fn copy_number(&mut self, node: NodeId, frame: usize, depth: usize) -> Result<NodeId> {
        let source = self.flat.node(node);
        let mut inputs = HashMap::new();
        for input in source.all_input_nodes() {
            inputs.insert(input, self.input(input, frame, depth + 1)?);
        }
        let mut mapped = |it: NodeId| Arg::Node(inputs[&it]);
        let args = source.args().iter().map(|it| it.map_nodes(&mut mapped)).collect();
        let kwargs = source.kwargs().iter().map(|(key, it)| (key.clone(), it.map_nodes(&mut mapped))).collect();
        let module = self.frames[frame].module;
        let graph = &mut self.res.tree.modules[module].graph;
        // Calls that are open stand at the end of the graphs around.
        let point = self.frames.get(frame + 1).and_then(|it| it.call).map_or(InsertPoint::End, InsertPoint::Before);
        let before = graph.set_insert_point(point)?;
        let copy = graph.create_node(Opcode::CallFunction, source.target(), args, kwargs, None)?;
        graph.set_insert_point(before)?;
        *graph.meta_mut(copy) = source.meta.clone();
        self.frames[frame].copies.insert(node, copy);
        Ok(copy)
    }

    /// Begins a call that is preserved: the graph around makes the arguments, and the module takes them apart.
    pub(super) fn pass_inputs(&mut self, signature: &CallSignature) -> Result<()> {
        let at = self.frames.len() - 1;
        let (module, parent) = (self.frames[at].module, self.frames[at - 1].module);
        let [args_spec, kwargs_spec] = signature.in_spec.children.as_slice() else {
            return Err(invalid(format!("the inputs of {} are no arguments", self.frames[at].fqn())));
        };
        let (n_args, keys) = (args_spec.children.len(), names_of(kwargs_spec));
        let tree = &mut self.res.tree;
        let graph = &mut tree.modules[module].graph;
        let args = (0..n_args).map(|it| Arg::Node(graph.placeholder(&format!("_positional_arg_{it}")))).collect();
        let kwargs = keys.iter().map(|key| (key.clone(), Arg::Node(graph.placeholder(key)))).collect();
        let value = Arg::Tuple(vec![Arg::Tuple(args), Arg::Dict(kwargs)]);
        let flat = tree.call_with_spec(module, FLATTEN, value, &signature.in_spec)?;
        for (index, arg) in signature.inputs.iter().enumerate() {
            let graph = &mut tree.modules[module].graph;
            let name = match arg {
                Argument::Constant { .. } => format!("_constant_{index}"),
                _ => arg.name().to_string(),
            };
            let read = vec![Arg::Node(flat), Arg::Int(index as i64)];
            let item = graph.create_node(Opcode::CallFunction, "operator.getitem", read, vec![], Some(&name))?;
            if let Some(node) = self.signatures.node(arg).filter(|it| self.is_copied[it.index()]) {
                *graph.meta_mut(item) = self.flat.node(node).meta.clone();
                self.frames[at].inputs.insert(node, item);
            }
        }
        let mut leaves = Vec::new();
        for arg in &signature.inputs {
            leaves.push(match (arg, self.signatures.node(arg)) {
                (Argument::Constant { value, .. }, _) => constant(value),
                (_, Some(node)) if self.is_copied[node.index()] => Arg::Node(self.input(node, at - 1, 0)?),
                (_, Some(_) | None) => Arg::None,
            });
        }
        let call = self.frames[at].call.expect("it is not the root");
        let tree = &mut self.res.tree;
        let before = tree.modules[parent].graph.set_insert_point(InsertPoint::Before(call))?;
        let both = tree.call_with_spec(parent, UNFLATTEN, Arg::List(leaves), &signature.in_spec)?;
        let graph = &mut tree.modules[parent].graph;
        let (args, kwargs) = (item(graph, both, Arg::Int(0)), item(graph, both, Arg::Int(1)));
        let args = (0..n_args).map(|it| Arg::Node(item(graph, args, Arg::Int(it as i64)))).collect();
        let kwargs = keys.into_iter().map(|key| (key.clone(), Arg::Node(item(graph, kwargs, Arg::Str(key))))).collect();
        graph.set_insert_point(before)?;
        graph.set_args(call, args)?;
        graph.set_kwargs(call, kwargs)
    }

    /// Ends a call that is preserved: the module gives what its signature says, in its structure.
    pub(super) fn give_outputs(&mut self, signature: &CallSignature) -> Result<()> {
        let at = self.frames.len() - 1;
        let mut outputs = Vec::new();
        for arg in &signature.outputs {
            let node = self.signatures.node(arg).filter(|it| self.is_copied[it.index()]);
            let value = match (arg, node) {
                (Argument::Constant { value, .. }, _) => constant(value),
                (_, Some(node)) => Arg::Node(self.input(node, at, 0)?),
                (_, None) => Arg::None,
            };
            outputs.push((node, value));
        }
        let (frame, call) = self.leave();
        let parent = self.frames[at - 1].module;
        let tree = &mut self.res.tree;
        let values = Arg::Tuple(outputs.iter().map(|(_, it)| it.clone()).collect());
        let result = tree.call_with_spec(frame.module, UNFLATTEN, values, &signature.out_spec)?;
        tree.modules[frame.module].graph.output(Arg::Node(result));
        let flat = tree.call_with_spec(parent, FLATTEN, Arg::Node(call), &signature.out_spec)?;
        let [module, outside] = tree
            .modules
            .get_disjoint_mut([frame.module, parent])
            .map_err(|_| invalid(format!("the module {} calls itself", frame.fqn())))?;
        lift_notes(&mut module.graph, frame.copies.values().copied(), &mut outside.graph, call);
        for (index, (node, _)) in outputs.into_iter().enumerate() {
            let Some(node) = node else { continue };
            let item = item(&mut outside.graph, flat, Arg::Int(index as i64));
            outside.graph.meta_mut(item).val = self.flat.node(node).meta.val.clone();
            self.frames[at - 1].copies.insert(node, item);
        }
        Ok(())
    }
}

impl Tree {
    /// Calls a function of pytrees on a value, with a structure that the module gets as a new attribute.
    fn call_with_spec(&mut self, module: ModuleId, target: &str, value: Arg, spec: &TreeSpec) -> Result<NodeId> {
        let holder = &mut self.modules[module];
        let name = (0..).map(|it| format!("_spec_{it}")).find(|it| !holder.attributes.contains_key(&**it));
        let name = name.expect("there are more numbers than attributes");
        let mut held = GraphModule { class_name: "TreeSpec".into(), ..GraphModule::new(Graph::new()) };
        held.meta.insert(SPEC_NOTE.into(), spec.to_json().to_string().into());
        holder.attributes.insert(name.as_str().into(), Attribute::Module(Box::new(held)));
        let spec = holder.graph.get_attr(&name);
        Ok(holder.graph.call_function(target, vec![value, Arg::Node(spec)], vec![]))
    }
}

impl Outlined {
    /// Writes the values that a preserved call reads, and that others made out of something, to that in place.
    pub(super) fn write_read_values(&mut self) -> Result<()> {
        for call in self.calls.values().flatten() {
            let Some(names) = self.read_writes.get(&call.fqn) else { continue };
            let graph = &mut self.tree.modules[call.module].graph;
            let read: Vec<NodeId> = graph.nodes().filter(|it| names.contains(graph.node(*it).name())).collect();
            for node in read {
                let Some(written) = graph.node(node).args().first().cloned() else { continue };
                let before = graph.set_insert_point(InsertPoint::After(node))?;
                graph.call_function("torch.ops.aten.copy_.default", vec![written, Arg::Node(node)], vec![]);
                graph.set_insert_point(before)?;
            }
        }
        Ok(())
    }
}

fn item(graph: &mut Graph, value: NodeId, index: Arg) -> NodeId {
    graph.call_function("operator.getitem", vec![Arg::Node(value), index], vec![])
}

/// The names of keyword arguments.
fn names_of(spec: &TreeSpec) -> Vec<Str> {
    let keys = spec.keys().unwrap_or_default().into_iter();
    let name = |key| match key {
        Key::Str(it) => it,
        Key::Int(it) => it.to_string().into(),
    };
    keys.map(name).collect()
}

fn constant(value: &ConstantValue) -> Arg {
    match value {
        ConstantValue::None => Arg::None,
        ConstantValue::Bool(it) => Arg::Bool(*it),
        ConstantValue::Int(it) => Arg::Int(*it),
        ConstantValue::Float(it) => Arg::Float(*it),
        ConstantValue::Str(it) => Arg::Str(it.clone()),
    }
}
