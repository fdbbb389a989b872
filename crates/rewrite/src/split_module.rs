//! Parts by number, called in the order of their dependencies. Parts in a given order are `split_by_tags`'s.

use crate::effects::AliasAnalysis;
use crate::fuser::check_free;
use crate::switches::{ENTER_AUTOCAST, EXIT_AUTOCAST, SET_GRAD_ENABLED};
use indexmap::{IndexMap, IndexSet};
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::Deserialize;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Node, NodeId, Opcode, Str};
use tracefx_ops::Registry;

/// How [`split_module`] makes the parts.
#[derive(Clone, Debug, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct SplitOptions {
    /// Whether the parts are called in the order in which their first nodes stand, and not in one of their dependencies.
    pub keep_original_order: bool,
    /// Whether the nodes of the parts have the names that they had, and not those of their targets.
    pub keep_original_node_name: bool,
    /// Whether the inputs of the parts have the names of the values that they get, and not `arg_0`, `arg_1`…
    pub keep_original_input_name: bool,
    /// What stands before the number in the names of the parts: `submod_AFFIX_0`.
    pub partition_affix: Option<String>,
    /// Whether a part with one result gives a tuple of it.
    pub tuple_return: bool,
}

impl Default for SplitOptions {
    fn default() -> Self {
        SplitOptions {
            keep_original_order: false,
            keep_original_node_name: false,
            keep_original_input_name: true,
            partition_affix: None,
            tuple_return: false,
        }
    }
}

/// What [`split_module`] makes.
#[derive(Clone, Debug)]
pub struct SplitModule {
    /// The module that calls the parts, which it holds.
    pub module: GraphModule,
    /// The names of the parts, in the order in which their first nodes stand.
    pub partition_names: Vec<String>,
    /// For each module that a part calls its path now, and the path that it had.
    pub qualname_map: IndexMap<String, Str>,
}

/// Splits a module: `torch.fx.passes.split_module.split_module`. `partition_of` says for each call to which part it
/// goes; it is asked once for each, in order.
///
/// A part takes what it uses of other parts, in the order of its first uses, and gives what others use: one value, a tuple
/// of several, `()` of none. Parameters stay with the caller, which passes them in; modules go along. Parts are called in an
/// order of their dependencies, the one that was ready last first. A region of autocast or without gradients that spans
/// several parts is entered and left again in each.
///
/// ```
/// use tracefx_ir::{Graph, GraphModule};
/// use tracefx_ops::registry;
/// use tracefx_rewrite::{SplitOptions, split_module};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let relu = graph.call_function("torch.relu", vec![x.into()], vec![]);
/// let neg = graph.call_function("torch.neg", vec![relu.into()], vec![]);
/// graph.output(neg.into());
/// let split = split_module(&GraphModule::new(graph), registry(), &mut |it| i64::from(it == neg), &SplitOptions::default()).unwrap();
/// assert_eq!(
///     split.module.graph.to_string(),
///     "graph():
///     %x : [num_users=1] = placeholder[target=x]
///     %submod_0 : [num_users=1] = call_module[target=submod_0](args = (%x,), kwargs = {})
///     %submod_1 : [num_users=1] = call_module[target=submod_1](args = (%submod_0,), kwargs = {})
///     return submod_1"
/// );
/// ```
///
/// # Errors
/// `PartitionCycle` where parts use each other in a circle, or the original order is not one of their dependencies;
/// `PassFailed` where a region spans parts that are not in order, or a part has the name of an attribute that the output
/// reads; `AttributeMissing` and `GraphInvalid` where the module is not well formed.
pub fn split_module(
    module: &GraphModule,
    registry: &Registry,
    partition_of: &mut dyn FnMut(NodeId) -> i64,
    options: &SplitOptions,
) -> Result<SplitModule> {
    let mut splitter = Splitter::new(module, options, partition_of);
    let regions = splitter.regions()?;
    splitter.record_uses();
    splitter.record_writes(registry);
    let order = splitter.sorted_partitions()?;
    splitter.enter_regions(&regions)?;
    for &partition in &order {
        splitter.add_inputs(partition)?;
    }
    splitter.copy_nodes()?;
    splitter.exit_regions(&regions)?;
    splitter.finish(&order)
}

/// A part: its graph, and what goes in and out in terms of the nodes of the original.
struct Partition {
    key: i64,
    /// The name of the module.
    name: String,
    inputs: IndexSet<NodeId, FxBuildHasher>,
    outputs: IndexSet<NodeId, FxBuildHasher>,
    dependencies: IndexSet<usize, FxBuildHasher>,
    dependents: IndexSet<usize, FxBuildHasher>,
    graph: Graph,
    /// What stands for nodes of elsewhere, and for those that enter regions.
    environment: FxHashMap<NodeId, NodeId>,
    /// The modules that it calls, by the names under which it does, with the paths that they had.
    calls: IndexMap<Str, Str, FxBuildHasher>,
    /// The paths of the modules that it reads.
    reads: Vec<Str>,
}

/// Where autocast is on, or gradients are off or on: from a node that says so to the last part in which it holds.
struct Region {
    start: NodeId,
    /// The node that leaves it, of autocast.
    end: Option<NodeId>,
    /// The part of the node that enters it, and the last one.
    parts: (usize, usize),
}

struct Splitter<'a> {
    module: &'a GraphModule,
    graph: &'a Graph,
    options: &'a SplitOptions,
    partitions: Vec<Partition>,
    /// For each node that is in a part, by its index, the part.
    part: Vec<Option<usize>>,
    /// For each node that is in a part, by its index, what stands for it there.
    copy: Vec<Option<NodeId>>,
    /// For each node of the original, by its index, what stands for it in the caller.
    base: Vec<Option<NodeId>>,
    /// The caller.
    caller: GraphModule,
}

impl<'a> Splitter<'a> {
    fn new(module: &'a GraphModule, options: &'a SplitOptions, partition_of: &mut dyn FnMut(NodeId) -> i64) -> Self {
        let graph = &module.graph;
        let mut partitions: Vec<Partition> = Vec::new();
        let mut by_key: FxHashMap<i64, usize> = FxHashMap::default();
        let mut part = vec![None; graph.id_bound()];
        for node in graph.nodes().filter(|&it| is_call(graph.node(it))) {
            let key = partition_of(node);
            let index = *by_key.entry(key).or_insert_with(|| {
                partitions.push(Partition::new(key, options.partition_affix.as_deref()));
                partitions.len() - 1
            });
            part[node.index()] = Some(index);
        }
        let mut sizes = vec![0; partitions.len()];
        part.iter().flatten().for_each(|&it| sizes[it] += 1);
        for (partition, size) in partitions.iter_mut().zip(sizes) {
            partition.graph.reserve(size);
        }
        let none = vec![None; graph.id_bound()];
        let caller = GraphModule::new(Graph::new());
        Splitter { module, graph, options, partitions, part, copy: none.clone(), base: none, caller }
    }

    /// The regions of autocast, then those of gradients, each kind in order.
    fn regions(&self) -> Result<Vec<Region>> {
        let mut regions: Vec<Region> = Vec::new();
        let mut grads: Vec<Region> = Vec::new();
        let mut by_start: FxHashMap<NodeId, usize> = FxHashMap::default();
        let mut last = 0;
        for (id, part) in self.calls() {
            let node = self.graph.node(id);
            let region = Region { start: id, end: None, parts: (part, part) };
            match (node.op(), &**node.target()) {
                (Opcode::CallFunction, ENTER_AUTOCAST) => {
                    by_start.insert(id, regions.len());
                    regions.push(region);
                }
                (Opcode::CallFunction, EXIT_AUTOCAST) => {
                    let start = node.args().first().and_then(Arg::as_node).and_then(|it| by_start.get(&it));
                    let start = *start.ok_or_else(|| refused(node, "leaves no autocast that was entered before"))?;
                    regions[start].end = Some(id);
                    regions[start].parts.1 = part;
                }
                (Opcode::CallFunction, SET_GRAD_ENABLED) => {
                    if !matches!(node.args(), [Arg::Bool(_)]) {
                        return Err(refused(node, "takes one bool"));
                    }
                    if let Some(open) = grads.last_mut() {
                        open.parts.1 = last;
                    }
                    grads.push(region);
                }
                _ => {}
            }
            last = part;
        }
        if let Some(open) = grads.last_mut() {
            open.parts.1 = last;
        }
        if let Some(open) = regions.iter().find(|it| it.end.is_none()) {
            return Err(refused(self.graph.node(open.start), "enters autocast, which must be left"));
        }
        regions.append(&mut grads);
        if !regions.is_empty() {
            self.check_rising()?;
        }
        Ok(regions)
    }

    /// Refuses parts that are not in order, since a region must be the same in all of them. Parts are numbered as they
    /// appear, so the numbers of nodes that rise say that a region's parts are those between its first and its last.
    fn check_rising(&self) -> Result<()> {
        let mut highest = i64::MIN;
        for (id, part) in self.calls() {
            let key = self.partitions[part].key;
            if key < highest {
                let what = format!(
                    "autocast or set_grad_enabled require monotonically increasing partitions: highest: {highest}, this node's: {key}"
                );
                return Err(Diagnostic::new(Code::PassFailed, what).node(&**self.graph.node(id).name()));
            }
            highest = key;
        }
        Ok(())
    }

    fn calls(&self) -> impl Iterator<Item = (NodeId, usize)> + '_ {
        self.graph.nodes().filter_map(|it| Some((it, self.part[it.index()]?)))
    }

    /// Notes what crosses from part to part. Nodes that enter and leave regions take nothing along: each part has its own.
    fn record_uses(&mut self) {
        for id in self.graph.nodes() {
            let node = self.graph.node(id);
            match node.op() {
                Opcode::Placeholder | Opcode::GetAttr => {}
                Opcode::Output => {
                    if let Some(result) = node.args().first() {
                        result.for_each_node(&mut |it| self.record_use(it, None));
                    }
                }
                Opcode::CallFunction if is_global_state(node) => {}
                Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule => {
                    let user = self.part[id.index()];
                    node.for_each_input(&mut |it| self.record_use(it, user));
                }
            }
        }
    }

    fn record_use(&mut self, value: NodeId, user: Option<usize>) {
        let definer = self.part[value.index()];
        if definer == user {
            return;
        }
        if let Some(definer) = definer {
            self.partitions[definer].outputs.insert(value);
        }
        if let Some(user) = user {
            self.partitions[user].inputs.insert(value);
            if let Some(definer) = definer {
                self.partitions[definer].dependents.insert(user);
                self.partitions[user].dependencies.insert(definer);
            }
        }
    }

    /// Keeps the parts that write, and those that use what is written, in the order in which they do. PyTorch does not, and
    /// gives other numbers then.
    fn record_writes(&mut self, registry: &Registry) {
        let Some(writes) = AliasAnalysis::of(self.module, registry) else { return };
        for (first, second) in writes.orders(self.graph, registry) {
            if let (Some(first), Some(second)) = (self.part[first.index()], self.part[second.index()])
                && first != second
            {
                self.partitions[first].dependents.insert(second);
                self.partitions[second].dependencies.insert(first);
            }
        }
    }

    /// The parts in an order of their dependencies. As in FX the ready ones wait on a stack.
    fn sorted_partitions(&self) -> Result<Vec<usize>> {
        let mut waiting: Vec<usize> = self.partitions.iter().map(|it| it.dependencies.len()).collect();
        let mut ready: Vec<usize> = (0..waiting.len()).filter(|&it| waiting[it] == 0).collect();
        let mut res = Vec::with_capacity(waiting.len());
        while let Some(partition) = ready.pop() {
            res.push(partition);
            for &dependent in &self.partitions[partition].dependents {
                waiting[dependent] -= 1;
                if waiting[dependent] == 0 {
                    ready.push(dependent);
                }
            }
        }
        if res.len() == self.partitions.len() {
            return Ok(res);
        }
        let stuck = self.partitions.iter().zip(&waiting).filter(|(_, waiting)| **waiting > 0);
        let stuck: Vec<&str> = stuck.map(|(it, _)| it.name.as_str()).collect();
        Err(Diagnostic::new(Code::PartitionCycle, "cycle exists between partitions!")
            .note(format!("these need each other, or wait for some that do: {}", stuck.join(", ")))
            .help("give nodes that use each other's values in both directions the same partition"))
    }

    /// Enters each region at the beginning of the parts after its first.
    fn enter_regions(&mut self, regions: &[Region]) -> Result<()> {
        for region in regions {
            let node = self.graph.node(region.start);
            for partition in &mut self.partitions[region.parts.0 + 1..=region.parts.1] {
                let copy = add_node(&mut partition.graph, node, node.target(), node.args().to_vec())?;
                partition.environment.insert(region.start, copy);
            }
        }
        Ok(())
    }

    /// Leaves autocast at the end of the parts before the last, the region that was entered last first.
    fn exit_regions(&mut self, regions: &[Region]) -> Result<()> {
        for region in regions.iter().rev() {
            let Some(end) = region.end else { continue };
            let node = self.graph.node(end);
            for part in region.parts.0..region.parts.1 {
                let start = self.copy_in(part, region.start, node)?;
                add_node(&mut self.partitions[part].graph, node, node.target(), vec![start.into()])?;
            }
        }
        Ok(())
    }

    /// Gives a part its inputs: first those that it is passed, then the modules that it reads itself.
    fn add_inputs(&mut self, part: usize) -> Result<()> {
        let partition = &mut self.partitions[part];
        let mut modules = Vec::new();
        let mut passed = IndexSet::default();
        for value in std::mem::take(&mut partition.inputs) {
            let node = self.graph.node(value);
            if node.op() == Opcode::GetAttr && matches!(self.module.attribute(node.target())?, Attribute::Module(_)) {
                modules.push(value);
                continue;
            }
            let name = match self.options.keep_original_input_name {
                true => Str::clone(node.name()),
                false => format!("arg_{}", passed.len()).into(),
            };
            let input = partition.graph.create_node(Opcode::Placeholder, &name, vec![], vec![], None)?;
            keep_notes(&mut partition.graph, input, node)?;
            partition.environment.insert(value, input);
            passed.insert(value);
        }
        for value in modules {
            let node = self.graph.node(value);
            let copy = add_node(&mut partition.graph, node, node.target(), vec![])?;
            partition.environment.insert(value, copy);
            partition.reads.push(Str::clone(node.target()));
        }
        partition.inputs = passed;
        Ok(())
    }

    fn copy_nodes(&mut self) -> Result<()> {
        for (id, part) in self.calls().collect::<Vec<_>>() {
            let node = self.graph.node(id);
            let (args, kwargs) = map_inputs(node, &mut |it| self.copy_in(part, it, node))?;
            let partition = &mut self.partitions[part];
            let target = match node.op() {
                Opcode::CallModule => partition.name_of_module(node.target()),
                Opcode::CallFunction | Opcode::CallMethod | Opcode::Placeholder | Opcode::GetAttr | Opcode::Output => {
                    Str::clone(node.target())
                }
            };
            let name = self.options.keep_original_node_name.then_some(&**node.name());
            let copy = partition.graph.add_node(node.op(), target, args, kwargs, name)?;
            keep_notes(&mut partition.graph, copy, node)?;
            self.copy[id.index()] = Some(copy);
        }
        Ok(())
    }

    /// What stands for a value in a part.
    fn copy_in(&self, part: usize, value: NodeId, user: &Node) -> Result<NodeId> {
        let copy = match self.part[value.index()] == Some(part) {
            true => self.copy[value.index()],
            false => None,
        };
        copy.or_else(|| self.partitions[part].environment.get(&value).copied())
            .ok_or_else(|| undefined(self.graph.node(value), user))
    }

    /// Closes the parts and makes the graph that calls them.
    fn finish(mut self, sorted: &[usize]) -> Result<SplitModule> {
        let keeps_order = self.options.keep_original_order;
        for id in self.graph.nodes() {
            let op = self.graph.node(id).op();
            if op == Opcode::Placeholder || op == Opcode::GetAttr && (!keeps_order || sorted.is_empty()) {
                self.add_to_caller(id)?;
            }
        }
        let original: Vec<usize> = (0..self.partitions.len()).collect();
        for &part in if keeps_order { &original } else { sorted } {
            self.call_partition(part)?;
        }
        for id in self.graph.nodes() {
            let node = self.graph.node(id);
            if node.op() != Opcode::Output {
                continue;
            }
            for value in node.all_input_nodes() {
                self.add_to_caller(value)?;
            }
            let (args, _) =
                map_inputs(node, &mut |it| self.base_of(it).ok_or_else(|| undefined(self.graph.node(it), node)))?;
            add_node(&mut self.caller.graph, node, "output", args)?;
        }
        let mut qualname_map = IndexMap::new();
        for partition in &self.partitions {
            for (name, path) in &partition.calls {
                qualname_map.insert(format!("{}.{name}", partition.name), Str::clone(path));
            }
        }
        let partition_names = self.partitions.into_iter().map(|it| it.name).collect();
        Ok(SplitModule { module: self.caller, partition_names, qualname_map })
    }

    /// Makes an input or an attribute of the caller, unless it has it.
    fn add_to_caller(&mut self, id: NodeId) -> Result<()> {
        let node = self.graph.node(id);
        let caller = &mut self.caller;
        if self.base[id.index()].is_some() {
            return Ok(());
        }
        let target = match node.op() {
            Opcode::Placeholder if self.options.keep_original_node_name => node.name(),
            Opcode::Placeholder => node.target(),
            Opcode::GetAttr => {
                caller.set_attribute(node.target(), self.module.attribute(node.target())?.clone());
                node.target()
            }
            Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule | Opcode::Output => return Ok(()),
        };
        self.base[id.index()] = Some(add_node(&mut caller.graph, node, target, node.args().to_vec())?);
        Ok(())
    }

    fn base_of(&self, value: NodeId) -> Option<NodeId> {
        self.base[value.index()]
    }

    /// Gives a part its output and its modules, and calls it.
    fn call_partition(&mut self, part: usize) -> Result<()> {
        let partition = &mut self.partitions[part];
        let (inputs, outputs) = (std::mem::take(&mut partition.inputs), std::mem::take(&mut partition.outputs));
        let results = outputs.iter().map(|it| Arg::Node(self.copy[it.index()].expect("the nodes of a part are in it")));
        let results: Vec<Arg> = results.collect();
        let is_single = results.len() == 1 && !self.options.tuple_return;
        let result = if is_single { results[0].clone() } else { Arg::Tuple(results) };
        partition.graph.create_node(Opcode::Output, "output", vec![result], vec![], None)?;

        let mut module = GraphModule::new(std::mem::take(&mut partition.graph));
        let (calls, reads) = (partition.calls.iter(), partition.reads.iter());
        for (name, path) in calls.chain(reads.map(|it| (it, it))) {
            module.set_attribute(name, self.module.attribute(path)?.clone());
        }
        let name = partition.name.clone();
        check_free(&self.caller, &name)?;
        self.caller.set_attribute(&name, Attribute::Module(Box::new(module)));

        let mut args = Vec::with_capacity(inputs.len());
        for value in inputs {
            self.add_to_caller(value)?;
            args.push(Arg::Node(self.base_of(value).ok_or_else(|| late(self.graph.node(value), &name))?));
        }
        let graph = &mut self.caller.graph;
        let call = graph.create_node(Opcode::CallModule, &name, args, vec![], None)?;
        for (index, value) in outputs.into_iter().enumerate() {
            self.base[value.index()] = Some(match is_single {
                true => call,
                false => graph.call_function("operator.getitem", vec![call.into(), Arg::Int(index as i64)], vec![]),
            });
        }
        Ok(())
    }
}

impl Partition {
    fn new(key: i64, affix: Option<&str>) -> Self {
        Partition {
            key,
            name: affix.map_or_else(|| format!("submod_{key}"), |affix| format!("submod_{affix}_{key}")),
            inputs: IndexSet::default(),
            outputs: IndexSet::default(),
            dependencies: IndexSet::default(),
            dependents: IndexSet::default(),
            graph: Graph::new(),
            environment: FxHashMap::default(),
            calls: IndexMap::default(),
            reads: Vec::new(),
        }
    }

    /// The name under which the part calls the module of this path: the path without dots. FX mixes up `a.b` and `a_b`,
    /// here the second of them gets a name of its own.
    fn name_of_module(&mut self, path: &Str) -> Str {
        let mut name = path.replace('.', "_");
        while self.calls.get(&*name).is_some_and(|it| it != path) {
            name.push('_');
        }
        let name: Str = name.into();
        self.calls.insert(Str::clone(&name), Str::clone(path));
        name
    }
}

fn is_call(node: &Node) -> bool {
    match node.op() {
        Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule => true,
        Opcode::Placeholder | Opcode::GetAttr | Opcode::Output => false,
    }
}

fn is_global_state(node: &Node) -> bool {
    [ENTER_AUTOCAST, EXIT_AUTOCAST, SET_GRAD_ENABLED].contains(&&**node.target())
}

/// Makes a node as `source` is, named after its target.
fn add_node(graph: &mut Graph, source: &Node, target: &str, args: Vec<Arg>) -> Result<NodeId> {
    let copy = graph.create_node(source.op(), target, args, vec![], None)?;
    keep_notes(graph, copy, source)?;
    Ok(copy)
}

/// Gives a node the type and the notes of the one that it stands for.
pub(crate) fn keep_notes(graph: &mut Graph, copy: NodeId, source: &Node) -> Result<()> {
    graph.set_type(copy, source.ty().cloned())?;
    *graph.meta_mut(copy) = source.meta.clone();
    Ok(())
}

/// Arguments, positional and by name.
type Arguments = (Vec<Arg>, Vec<(Str, Arg)>);

/// The arguments of a node with others in the place of its inputs.
fn map_inputs(node: &Node, map: &mut dyn FnMut(NodeId) -> Result<NodeId>) -> Result<Arguments> {
    let mut problem = None;
    let mut map = |it| match map(it) {
        Ok(it) => Arg::Node(it),
        Err(it) => {
            problem.get_or_insert(it);
            Arg::None
        }
    };
    let args = node.args().iter().map(|it| it.map_nodes(&mut map)).collect();
    let kwargs = node.kwargs().iter().map(|(key, it)| (Str::clone(key), it.map_nodes(&mut map))).collect();
    problem.map_or(Ok((args, kwargs)), Err)
}

fn refused(node: &Node, why: &str) -> Diagnostic {
    Diagnostic::new(Code::PassFailed, format!("split_module: {} {why}", node.name())).node(&**node.name())
}

fn undefined(value: &Node, user: &Node) -> Diagnostic {
    let what = format!("Argument '{}' of Node '{}' was used before it has been defined!", value.name(), user.name());
    Diagnostic::new(Code::GraphInvalid, what).node(&**user.name()).help("sort the graph first")
}

fn late(value: &Node, partition: &str) -> Diagnostic {
    let what = format!("{partition} comes before the partition that gives it {}", value.name());
    Diagnostic::new(Code::PartitionCycle, what)
        .node(&**value.name())
        .help("without the original order, partitions are called in an order of their dependencies")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ops::registry;

    fn call(graph: &mut Graph, target: &str, inputs: &[NodeId]) -> NodeId {
        graph.call_function(target, inputs.iter().map(|&it| it.into()).collect(), vec![])
    }

    /// Splits where the targets of functions are `(target, partition)`, and gives the graphs as texts.
    fn split(module: &GraphModule, parts: &[(&str, i64)], options: &SplitOptions) -> Result<Vec<String>> {
        let part = |it: NodeId| parts.iter().find(|(target, _)| *target == &**module.graph.node(it).target());
        let res = split_module(module, registry(), &mut |it| part(it).expect("a part").1, options)?;
        assert!(res.module.graph.lint(Some(&res.module)).is_empty());
        let graphs = res.partition_names.iter().map(|it| res.module.submodule(it).unwrap().graph.to_string());
        Ok(std::iter::once(res.module.graph.to_string()).chain(graphs).collect())
    }

    #[test]
    fn autocast_is_entered_and_left_in_each_part_that_it_spans() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let enter = graph.call_function(ENTER_AUTOCAST, vec![Arg::str("cpu")], vec![]);
        let sin = call(&mut graph, "torch.sin", &[x]);
        let cos = call(&mut graph, "torch.cos", &[sin]);
        call(&mut graph, EXIT_AUTOCAST, &[enter]);
        let neg = call(&mut graph, "torch.neg", &[cos]);
        graph.output(neg.into());
        let parts = [(ENTER_AUTOCAST, 0), ("torch.sin", 0), ("torch.cos", 1), (EXIT_AUTOCAST, 1), ("torch.neg", 2)];
        let [_, first, second, third] =
            <[String; 4]>::try_from(split(&GraphModule::new(graph), &parts, &SplitOptions::default()).unwrap())
                .unwrap();
        assert_eq!(
            first,
            "graph():
    %x : [num_users=1] = placeholder[target=x]
    %_enter_autocast : [num_users=1] = call_function[target=torch.amp.autocast_mode._enter_autocast](args = (cpu,), kwargs = {})
    %sin : [num_users=1] = call_function[target=torch.sin](args = (%x,), kwargs = {})
    %_exit_autocast : [num_users=0] = call_function[target=torch.amp.autocast_mode._exit_autocast](args = (%_enter_autocast,), kwargs = {})
    return sin"
        );
        assert_eq!(
            second,
            "graph():
    %_enter_autocast : [num_users=1] = call_function[target=torch.amp.autocast_mode._enter_autocast](args = (cpu,), kwargs = {})
    %sin : [num_users=1] = placeholder[target=sin]
    %cos : [num_users=1] = call_function[target=torch.cos](args = (%sin,), kwargs = {})
    %_exit_autocast : [num_users=0] = call_function[target=torch.amp.autocast_mode._exit_autocast](args = (%_enter_autocast,), kwargs = {})
    return cos"
        );
        assert!(!third.contains("autocast"), "{third}");
    }

    #[test]
    fn gradients_are_switched_again_in_each_part_until_the_next_switch() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        graph.call_function(SET_GRAD_ENABLED, vec![Arg::Bool(false)], vec![]);
        let sin = call(&mut graph, "torch.sin", &[x]);
        let cos = call(&mut graph, "torch.cos", &[sin]);
        graph.output(cos.into());
        let module = GraphModule::new(graph);
        let parts = [(SET_GRAD_ENABLED, 0), ("torch.sin", 1), ("torch.cos", 2)];
        let graphs = split(&module, &parts, &SplitOptions::default()).unwrap();
        assert!(graphs[1..].iter().all(|it| it.contains("_set_grad_enabled](args = (False,)")), "{graphs:?}");
        let parts = [(SET_GRAD_ENABLED, 1), ("torch.sin", 0), ("torch.cos", 2)];
        let problem = split(&module, &parts, &SplitOptions::default()).unwrap_err();
        assert_eq!(problem.code(), Code::PassFailed);
        assert!(problem.message().contains("highest: 1, this node's: 0"), "{problem}");
    }

    #[test]
    fn an_order_that_is_none_of_the_dependencies_is_refused() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        call(&mut graph, "torch.neg", &[x]);
        let sin = call(&mut graph, "torch.sin", &[x]);
        let cos = call(&mut graph, "torch.cos", &[sin]);
        graph.output(cos.into());
        let module = GraphModule::new(graph);
        let parts = [("torch.neg", 0), ("torch.sin", 1), ("torch.cos", 0)];
        let options = SplitOptions { keep_original_order: true, ..SplitOptions::default() };
        assert!(split(&module, &parts, &SplitOptions::default()).is_ok());
        assert_eq!(split(&module, &parts, &options).unwrap_err().code(), Code::PartitionCycle);
    }

    #[test]
    fn modules_go_along_and_keep_apart() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let mut module = GraphModule::new(Graph::new());
        let mut last = x;
        for path in ["a.b", "a_b", "a.b"] {
            last = graph.create_node(Opcode::CallModule, path, vec![last.into()], vec![], None).unwrap();
            let mut leaf = GraphModule::new(Graph::new());
            leaf.class_name = path.into();
            module.set_attribute(path, Attribute::Module(Box::new(leaf)));
        }
        graph.output(last.into());
        module.graph = graph;
        let split = split_module(&module, registry(), &mut |_| 0, &SplitOptions::default()).unwrap();
        let paths: Vec<(&str, &str)> =
            split.qualname_map.iter().map(|(now, before)| (now.as_str(), &**before)).collect();
        assert_eq!(paths, [("submod_0.a_b", "a.b"), ("submod_0.a_b_", "a_b")]);
        assert_eq!(&*split.module.submodule("submod_0.a_b_").unwrap().class_name, "a_b");
    }

    #[test]
    fn notes_and_types_go_along() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let sin = call(&mut graph, "torch.sin", &[x]);
        graph.set_type(sin, Some("Tensor".into())).unwrap();
        graph.meta_mut(sin).origin = Some(7);
        graph.output(sin.into());
        let split = split_module(&GraphModule::new(graph), registry(), &mut |_| 0, &SplitOptions::default()).unwrap();
        let part = &split.module.submodule("submod_0").unwrap().graph;
        let sin = part.node(part.find("sin").unwrap());
        assert_eq!((sin.ty().map(|it| &**it), sin.meta.origin), (Some("Tensor"), Some(7)));
    }
}
