//! Making one call of several nodes: `torch.fx.passes.utils.fuser_utils`.

use crate::order::Order;
use crate::topological::sort_within;
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, InsertPoint, Node, NodeId, Opcode, Str, Val};
use tracefx_ops::Registry;

/// A module made of some nodes of another: `fuse_as_graphmodule`.
#[derive(Clone, Debug)]
pub struct FusedModule {
    /// The module, whose class has the name that it is to have in the other.
    pub module: GraphModule,
    /// What it takes, in terms of the other.
    pub inputs: Vec<NodeId>,
    /// The nodes whose values it gives.
    pub outputs: Vec<NodeId>,
}

/// Whether these nodes could be one node: no path leads out of them and back in. The graph must be sorted: the search ends
/// where the last of them stands.
pub fn validate_partition(graph: &Graph, nodes: &[NodeId]) -> bool {
    let inside: FxHashSet<NodeId> = nodes.iter().copied().collect();
    let Some(last) = nodes.iter().copied().max_by(|&a, &b| graph.compare(a, b)) else { return true };
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    let mut stack = Vec::new();
    let mut follow = |node: NodeId, stack: &mut Vec<NodeId>| {
        let near = graph.users(node).iter().filter(|&it| graph.compare(it, last) != Ordering::Greater);
        stack.extend(near.filter(|&it| seen.insert(it)));
    };
    for &node in nodes {
        follow(node, &mut stack);
    }
    stack.retain(|it| !inside.contains(it));
    while let Some(node) = stack.pop() {
        if graph.users(node).iter().any(|it| inside.contains(&it)) {
            return false;
        }
        follow(node, &mut stack);
    }
    true
}

/// Makes a module of nodes, which must be sorted. What they use of others becomes its inputs, in the order of the first uses;
/// what others use of them it gives: one value, a tuple of several, or always a tuple if `gives_tuple`.
///
/// # Errors
/// `PartitionCycle` where a path leads out of the nodes and back in; `AttributeMissing` where the module lacks what a node
/// reads or calls.
pub fn fuse_as_graphmodule(
    module: &GraphModule,
    nodes: &[NodeId],
    name: &str,
    gives_tuple: bool,
) -> Result<FusedModule> {
    if !validate_partition(&module.graph, nodes) {
        return Err(cyclic(&module.graph, nodes));
    }
    fuse(module, nodes, name, gives_tuple, &|it| it)
}

/// Puts a call of a module that [`fuse_as_graphmodule`] made after a node, and makes the users of the nodes that it is made
/// of use what the call gives. The notes of these nodes go along.
///
/// # Errors
/// `NodeForeign` where the nodes are not of this graph; `PassFailed` where the module has an attribute of the name of the
/// class of the fused module.
pub fn insert_subgm(module: &mut GraphModule, fused: FusedModule, after: NodeId) -> Result<NodeId> {
    check_free(module, &fused.module.class_name)?;
    let (call, replaced) = insert_call(module, fused, after)?;
    let inside: FxHashSet<NodeId> = replaced.iter().map(|(_, new)| *new).chain([call]).collect();
    let replaced: FxHashMap<NodeId, NodeId> = replaced.into_iter().collect();
    replace_uses(&mut module.graph, &replaced, &|it| !inside.contains(&it))?;
    Ok(call)
}

/// Erases nodes that are sorted, from the last to the first.
///
/// # Errors
/// `NodeHasUsers` where one is used by others.
pub fn erase_nodes(graph: &mut Graph, nodes: &[NodeId]) -> Result<()> {
    nodes.iter().rev().try_for_each(|&it| graph.erase_node(it))
}

/// Makes a call of a module of each of these groups of nodes, and sorts the graph: `fuse_by_partitions`. The modules are named
/// by the prefix and their number, or the next one that is free; their names are what comes back.
///
/// # Errors
/// `PartitionCycle` where calls would need their own results; `PassFailed` where a node is in two groups; the errors of
/// [`fuse_as_graphmodule`].
pub fn fuse_by_partitions(
    module: &mut GraphModule,
    registry: &Registry,
    partitions: &[Vec<NodeId>],
    prefix: &str,
    gives_tuple: bool,
) -> Result<Vec<String>> {
    let order = Order::of(module, registry);
    check_partitions(&module.graph, &order, partitions)?;
    let mut names = Vec::with_capacity(partitions.len());
    // What is used of fused nodes is replaced at the end, in one pass: a node that uses values of many groups would be
    // changed for each of them otherwise.
    let mut replaced: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut call_of: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    // It only grows, so that many groups beside those of an earlier call take no quadratic time.
    let mut number = 0;
    for (index, partition) in partitions.iter().enumerate().filter(|(_, it)| !it.is_empty()) {
        number = number.max(index);
        while module.attributes.contains_key(&*format!("{prefix}{number}")) {
            number += 1;
        }
        let name = format!("{prefix}{number}");
        let nodes = sort_within(&module.graph, partition, &order)?;
        let fused = fuse(module, &nodes, &name, gives_tuple, &|it| replaced.get(&it).copied().unwrap_or(it))?;
        let (call, values) = insert_call(module, fused, nodes[nodes.len() - 1])?;
        replaced.extend(values);
        call_of.extend(nodes.iter().map(|it| (*it, call)));
        names.push(name);
    }
    let graph = &mut module.graph;
    replace_uses(graph, &replaced, &|it| !call_of.contains_key(&it))?;
    for &node in partitions.iter().flatten() {
        graph.set_args(node, vec![])?;
        graph.set_kwargs(node, vec![])?;
    }
    for &node in partitions.iter().flatten() {
        graph.erase_node(node)?;
    }
    let order = order.renamed(&|it| call_of.get(&it).copied().unwrap_or(it));
    let nodes: Vec<NodeId> = graph.nodes().collect();
    let sorted = sort_within(graph, &nodes, &order)?;
    graph.reorder(&sorted)?;
    Ok(names)
}

/// Refuses the name of a part that would take the place of an attribute.
pub(crate) fn check_free(module: &GraphModule, name: &str) -> Result<()> {
    match module.attribute(name) {
        Err(_) => Ok(()),
        Ok(_) => Err(Diagnostic::new(Code::PassFailed, format!("the module has an attribute `{name}` already"))
            .help("give the part a name that is free")),
    }
}

/// Refuses groups that share nodes, and groups that could not each be one node at the same time: that is a circle in the
/// graph in which they are.
fn check_partitions(graph: &Graph, order: &Order, partitions: &[Vec<NodeId>]) -> Result<()> {
    let mut unit: Vec<usize> = vec![usize::MAX; graph.id_bound()];
    for (index, partition) in partitions.iter().enumerate() {
        for &node in partition {
            if !graph.contains(node) {
                return Err(Diagnostic::new(Code::NodeForeign, "a node of a partition is not in the graph"));
            }
            if std::mem::replace(&mut unit[node.index()], index) != usize::MAX {
                let name = &**graph.node(node).name();
                return Err(
                    Diagnostic::new(Code::PassFailed, format!("{name} is given twice to the partitions")).node(name)
                );
            }
        }
    }
    let mut members: Vec<Vec<NodeId>> = partitions.to_vec();
    for node in graph.nodes() {
        if unit[node.index()] == usize::MAX {
            unit[node.index()] = members.len();
            members.push(vec![node]);
        }
    }
    let uses = |members: &[NodeId], from: usize, visit: &mut dyn FnMut(usize)| {
        let users = members.iter().flat_map(|&it| order.successors(graph, it)).map(|it| unit[it.index()]);
        users.filter(|&it| it != from).for_each(visit);
    };
    let mut waiting = vec![0usize; members.len()];
    for (index, nodes) in members.iter().enumerate() {
        uses(nodes, index, &mut |it| waiting[it] += 1);
    }
    let mut ready: Vec<usize> = (0..members.len()).filter(|&it| waiting[it] == 0).collect();
    while let Some(index) = ready.pop() {
        uses(&members[index], index, &mut |it| {
            waiting[it] -= 1;
            if waiting[it] == 0 {
                ready.push(it);
            }
        });
    }
    let stuck = (0..partitions.len()).find(|&it| waiting[it] > 0);
    stuck.map_or(Ok(()), |it| Err(cyclic(graph, &partitions[it])))
}

/// The module of some nodes; `now` says what stands for a node that was replaced already.
fn fuse(
    module: &GraphModule,
    nodes: &[NodeId],
    name: &str,
    gives_tuple: bool,
    now: &dyn Fn(NodeId) -> NodeId,
) -> Result<FusedModule> {
    let graph = &module.graph;
    let inside: FxHashSet<NodeId> = nodes.iter().copied().collect();
    let mut fused = GraphModule::new(Graph::new());
    fused.class_name = name.into();
    let mut inputs: IndexMap<NodeId, NodeId, FxBuildHasher> = IndexMap::default();
    let mut copies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut outputs = Vec::new();
    for &id in nodes {
        let node = graph.node(id);
        // As in FX an input is made where it is first used.
        for input in node.all_input_nodes().into_iter().filter(|it| !inside.contains(it)).map(now) {
            let source = graph.node(input);
            if reads_module(source, module) {
                // A graph that calls take is no value that could be passed: it comes along.
                if let Entry::Vacant(place) = copies.entry(input) {
                    fused.set_attribute(source.target(), module.attribute(source.target())?.clone());
                    place.insert(fused.graph.node_copy(source, &mut Arg::Node)?);
                }
            } else if !inputs.contains_key(&input) {
                let copy = fused.graph.create_node(Opcode::Placeholder, source.name(), vec![], vec![], None)?;
                fused.graph.set_type(copy, source.ty().cloned())?;
                *fused.graph.meta_mut(copy) = source.meta.clone();
                inputs.insert(input, copy);
            }
        }
        let copy = fused.graph.node_copy(node, &mut |it| match copies.get(&it) {
            Some(&copy) => copy.into(),
            None => inputs[&now(it)].into(),
        })?;
        copies.insert(id, copy);
        if matches!(node.op(), Opcode::CallModule | Opcode::GetAttr) {
            fused.set_attribute(node.target(), module.attribute(node.target())?.clone());
        }
        if graph.users(id).iter().any(|it| !inside.contains(&it)) {
            outputs.push(id);
        }
    }
    let results: Vec<Arg> = outputs.iter().map(|it| copies[it].into()).collect();
    let result = if results.len() == 1 && !gives_tuple { results[0].clone() } else { Arg::Tuple(results) };
    fused.graph.create_node(Opcode::Output, "output", vec![result], vec![], None)?;
    Ok(FusedModule { module: fused, inputs: inputs.into_keys().collect(), outputs })
}

fn reads_module(node: &Node, owner: &GraphModule) -> bool {
    node.op() == Opcode::GetAttr && matches!(owner.attribute(node.target()), Ok(Attribute::Module(_)))
}

/// A call, and for each node that it stands for what gives its value now.
type Call = (NodeId, Vec<(NodeId, NodeId)>);

/// Puts a call of a fused module after a node, with what takes its results.
fn insert_call(module: &mut GraphModule, fused: FusedModule, after: NodeId) -> Result<Call> {
    let FusedModule { module: fused, inputs, outputs } = fused;
    let name = Str::clone(&fused.class_name);
    let result = fused.graph.output_node().and_then(|it| fused.graph.node(it).args().first().cloned());
    let is_single = result.is_some_and(|it| it.as_node().is_some());
    module.attributes.insert(Str::clone(&name), Attribute::Module(Box::new(fused)));
    let graph = &mut module.graph;
    let point = graph.set_insert_point(InsertPoint::After(after))?;
    let args = inputs.into_iter().map(Arg::Node).collect();
    let call = graph.create_node(Opcode::CallModule, &name, args, vec![], None)?;
    let mut replaced = Vec::with_capacity(outputs.len());
    if is_single {
        *graph.meta_mut(call) = graph.node(outputs[0]).meta.clone();
        replaced.push((outputs[0], call));
    } else {
        let mut items = Vec::with_capacity(outputs.len());
        for (index, &output) in outputs.iter().enumerate() {
            let meta = graph.node(output).meta.clone();
            items.push(meta.val.clone().unwrap_or(Val::None));
            let item = graph.call_function("operator.getitem", vec![call.into(), Arg::Int(index as i64)], vec![]);
            *graph.meta_mut(item) = meta;
            replaced.push((output, item));
        }
        graph.meta_mut(call).val = Some(Val::Seq { items, is_tuple: true });
    }
    graph.set_insert_point(point)?;
    Ok((call, replaced))
}

/// Makes the users of nodes use others instead, where `is_changed` holds of the user. Their values stay what they are.
pub(crate) fn replace_uses(
    graph: &mut Graph,
    replaced: &FxHashMap<NodeId, NodeId>,
    is_changed: &dyn Fn(NodeId) -> bool,
) -> Result<()> {
    let users: FxHashSet<NodeId> = replaced.keys().flat_map(|&it| graph.users(it).iter()).collect();
    let mut users: Vec<NodeId> = users.into_iter().filter(|&it| is_changed(it)).collect();
    users.sort_unstable();
    for user in users {
        let mut map = |it| Arg::Node(replaced.get(&it).copied().unwrap_or(it));
        let node = graph.node(user);
        let args = node.args().iter().map(|it| it.map_nodes(&mut map)).collect();
        let kwargs = node.kwargs().iter().map(|(key, it)| (Str::clone(key), it.map_nodes(&mut map))).collect();
        let val = graph.meta_mut(user).val.take();
        graph.set_args(user, args)?;
        graph.set_kwargs(user, kwargs)?;
        graph.meta_mut(user).val = val;
    }
    Ok(())
}

fn cyclic(graph: &Graph, nodes: &[NodeId]) -> Diagnostic {
    let names: Vec<&str> = nodes.iter().map(|&it| &**graph.node(it).name()).collect();
    Diagnostic::new(Code::PartitionCycle, "Invalid partition, found dependency cycles")
        .node(names[0])
        .note(format!("the partition is {}", names.join(", ")))
        .help("a value of these nodes goes to a node that is not among them, and from there back: take that one in, or leave nodes out")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ops::registry;

    /// `a`, `b` of `a`, `c` of `a` and `b`, all functions.
    fn triangle() -> (GraphModule, [NodeId; 3]) {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let a = graph.call_function("a", vec![x.into()], vec![]);
        let b = graph.call_function("b", vec![a.into()], vec![]);
        let c = graph.call_function("c", vec![a.into(), b.into()], vec![]);
        graph.output(Arg::Tuple(vec![c.into(), b.into()]));
        (GraphModule::new(graph), [a, b, c])
    }

    #[test]
    fn nodes_with_a_path_out_and_back_are_no_partition() {
        let (mut module, [a, b, c]) = triangle();
        assert!(validate_partition(&module.graph, &[a, b]));
        assert!(!validate_partition(&module.graph, &[c, a]));
        assert_eq!(fuse_as_graphmodule(&module, &[a, c], "fused", false).unwrap_err().code(), Code::PartitionCycle);
        let before = module.graph.to_string();
        let refused =
            |module: &mut GraphModule, parts: &[Vec<NodeId>]| fuse_by_partitions(module, registry(), parts, "p", false);
        assert_eq!(refused(&mut module, &[vec![a, c]]).unwrap_err().code(), Code::PartitionCycle);
        assert_eq!(refused(&mut module, &[vec![a], vec![b, a]]).unwrap_err().code(), Code::PassFailed);
        assert_eq!(module.graph.to_string(), before);
    }

    /// Under the names of PyTorch the second group would take the place of the first.
    #[test]
    fn groups_of_a_second_call_get_names_of_their_own() {
        let (mut module, [a, b, _]) = triangle();
        assert_eq!(fuse_by_partitions(&mut module, registry(), &[vec![a]], "p", false).unwrap(), ["p0"]);
        assert_eq!(fuse_by_partitions(&mut module, registry(), &[vec![b]], "p", false).unwrap(), ["p1"]);
        let calls: Vec<&str> = ["p0", "p1"]
            .map(|it| {
                let graph = &module.submodule(it).unwrap().graph;
                graph
                    .nodes()
                    .map(|it| graph.node(it))
                    .find(|it| it.op() == Opcode::CallFunction)
                    .unwrap()
                    .target()
                    .as_ref()
            })
            .to_vec();
        assert_eq!(calls, ["a", "b"]);
        let call = module.graph.find_nodes(Opcode::CallModule, "p0").next().unwrap();
        let fused = fuse_as_graphmodule(&module, &[call], "p1", false).unwrap();
        assert_eq!(insert_subgm(&mut module, fused, call).unwrap_err().code(), Code::PassFailed);
    }

    #[test]
    fn groups_that_each_could_be_a_node_may_not_both_be() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let [a, b] = ["a", "b"].map(|it| graph.call_function(it, vec![x.into()], vec![]));
        let c = graph.call_function("c", vec![a.into()], vec![]);
        let d = graph.call_function("d", vec![b.into()], vec![]);
        graph.output(Arg::Tuple(vec![c.into(), d.into()]));
        let mut module = GraphModule::new(graph);
        let groups = [vec![a, d], vec![b, c]];
        assert!(groups.iter().all(|it| validate_partition(&module.graph, it)));
        assert_eq!(
            fuse_by_partitions(&mut module, registry(), &groups, "p", false).unwrap_err().code(),
            Code::PartitionCycle
        );
    }

    #[test]
    fn several_results_are_taken_apart_and_notes_go_along() {
        let (mut module, [a, b, c]) = triangle();
        module.graph.meta_mut(b).origin = Some(3);
        module.graph.meta_mut(c).val = Some(Val::None);
        assert_eq!(fuse_by_partitions(&mut module, registry(), &[vec![b, a]], "fused_", false).unwrap(), ["fused_0"]);
        assert_eq!(
            module.graph.to_string(),
            "graph():
    %x : [num_users=1] = placeholder[target=x]
    %fused_0 : [num_users=2] = call_module[target=fused_0](args = (%x,), kwargs = {})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%fused_0, 0), kwargs = {})
    %getitem_1 : [num_users=2] = call_function[target=operator.getitem](args = (%fused_0, 1), kwargs = {})
    %c : [num_users=1] = call_function[target=c](args = (%getitem, %getitem_1), kwargs = {})
    return (c, getitem_1)"
        );
        let item = module.graph.find("getitem_1").unwrap();
        assert_eq!(module.graph.node(item).meta.origin, Some(3));
        assert_eq!(module.graph.node(c).meta.val, Some(Val::None));
        assert!(module.graph.lint(Some(&module)).is_empty());
    }

    #[test]
    fn one_group_is_fused_by_hand_as_by_partitions() {
        let (mut module, [a, b, c]) = triangle();
        let fused = fuse_as_graphmodule(&module, &[b, c], "fused", true).unwrap();
        assert_eq!((&fused.inputs[..], &fused.outputs[..]), (&[a][..], &[b, c][..]));
        insert_subgm(&mut module, fused, c).unwrap();
        erase_nodes(&mut module.graph, &[b, c]).unwrap();
        assert!(module.graph.lint(Some(&module)).is_empty());
        assert!(module.graph.to_string().ends_with("return (getitem_1, getitem)"), "{}", module.graph);
    }
}
