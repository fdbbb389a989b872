//! Parts by tag: each call says its own, and each part is called once. Parts by number are `split_module`'s.

use crate::fuser::check_free;
use crate::order::Order;
use crate::split_module::keep_notes;
use indexmap::{IndexMap, IndexSet};
use rustc_hash::{FxBuildHasher, FxHashMap};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode};
use tracefx_ops::Registry;

/// A part: `torch.fx.passes.split_utils.Component`.
#[derive(Default)]
struct Component {
    graph: Graph,
    /// What it takes, and what stands for it there.
    inputs: IndexMap<NodeId, NodeId, FxBuildHasher>,
    /// What it gives.
    outputs: Vec<NodeId>,
    /// The attributes that it reads, and what stands for them there.
    reads: FxHashMap<NodeId, NodeId>,
}

/// Splits a module by the tags of its calls: `torch.fx.passes.split_utils.split_by_tags`. The parts are modules with the
/// names of the tags, called in the order of `tags`; `tag_of` gives a number in it for each call. Attributes are copied to
/// the parts that read them, under their paths.
///
/// # Errors
/// `PassFailed` where a call has no tag, or a tag is the name of an attribute that the output reads; `PartitionCycle` where
/// a call uses a value of a later part, or what a later part writes to before it; `GraphInvalid` where there is not one
/// output; `AttributeMissing` where the module lacks what a node reads or calls.
pub fn split_by_tags(
    module: &GraphModule,
    registry: &Registry,
    tags: &[String],
    tag_of: &dyn Fn(NodeId) -> Option<usize>,
    return_tuple: bool,
) -> Result<GraphModule> {
    let graph = &module.graph;
    let mut res = GraphModule::new(Graph::new());
    let mut parts: Vec<Component> = Vec::new();
    parts.resize_with(tags.len(), Component::default);
    let mut part_of: FxHashMap<NodeId, usize> = FxHashMap::default();
    let mut copies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut main: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut used_in_main: IndexSet<NodeId, FxBuildHasher> = IndexSet::default();
    let mut output = None;
    for id in graph.nodes() {
        let node = graph.node(id);
        match node.op() {
            Opcode::GetAttr => continue,
            Opcode::Placeholder => {
                let input = res.graph.create_node(node.op(), node.name(), vec![], vec![], None)?;
                keep_notes(&mut res.graph, input, node)?;
                main.insert(id, input);
                continue;
            }
            Opcode::Output if output.is_none() => {
                output = Some(id);
                continue;
            }
            Opcode::Output => return Err(Diagnostic::new(Code::GraphInvalid, "Multiple output nodes in graph!")),
            Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule => {}
        }
        let part = tag_of(id).filter(|&it| it < parts.len()).ok_or_else(|| {
            let what = format!("Node does not have tag: {}", node.name());
            Diagnostic::new(Code::PassFailed, what).node(&**node.name()).help("every call needs one of the tags")
        })?;
        for input in node.all_input_nodes() {
            let source = graph.node(input);
            let from = part_of.get(&input).copied();
            let to = &mut parts[part];
            if source.op() == Opcode::GetAttr {
                if !to.reads.contains_key(&input) {
                    let read = to.graph.get_attr(source.target());
                    keep_notes(&mut to.graph, read, source)?;
                    to.reads.insert(input, read);
                }
            } else if from != Some(part) && !to.inputs.contains_key(&input) {
                if from.is_some_and(|it| it > part) {
                    let what =
                        format!("{} uses {} of the later part {}", node.name(), source.name(), tags[from.unwrap_or(0)]);
                    return Err(Diagnostic::new(Code::PartitionCycle, what).node(&**node.name()));
                }
                let copy = to.graph.create_node(Opcode::Placeholder, source.name(), vec![], vec![], None)?;
                keep_notes(&mut to.graph, copy, source)?;
                to.inputs.insert(input, copy);
                used_in_main.insert(input);
            }
        }
        let Component { graph: part_graph, inputs, reads, .. } = &mut parts[part];
        let copy = part_graph.node_copy(node, &mut |it| {
            let here = reads.get(&it).or_else(|| inputs.get(&it)).or_else(|| copies.get(&it));
            here.map_or(Arg::None, |&it| it.into())
        })?;
        copies.insert(id, copy);
        part_of.insert(id, part);
    }
    for (first, second) in Order::of(module, registry).pairs() {
        if part_of[&first] > part_of[&second] {
            let (first, second, tag) = (graph.node(first).name(), graph.node(second).name(), &tags[part_of[&first]]);
            let what = format!("{second} must come after {first}, which is of the later part {tag}");
            return Err(Diagnostic::new(Code::PartitionCycle, what)
                .node(&**second)
                .note("one of them writes to what the other uses, or switches autocast or gradients"));
        }
    }
    let output = output.ok_or_else(|| Diagnostic::new(Code::GraphInvalid, "Graph had no output node!"))?;
    for value in graph.node(output).all_input_nodes() {
        let source = graph.node(value);
        if source.op() == Opcode::GetAttr {
            let read = res.graph.get_attr(source.target());
            keep_notes(&mut res.graph, read, source)?;
            res.set_attribute(source.target(), module.attribute(source.target())?.clone());
            main.insert(value, read);
        } else {
            used_in_main.insert(value);
        }
    }
    for value in used_in_main {
        if let Some(&part) = part_of.get(&value) {
            parts[part].outputs.push(value);
        }
    }
    for (tag, part) in tags.iter().zip(parts) {
        let args = part.inputs.keys().map(|it| main[it].into()).collect();
        let outputs = part.outputs.clone();
        let part = part.close(module, &copies, return_tuple)?;
        check_free(&res, tag)?;
        res.set_attribute(tag, Attribute::Module(Box::new(part)));
        let call = res.graph.create_node(Opcode::CallModule, tag, args, vec![], None)?;
        let is_single = outputs.len() == 1 && !return_tuple;
        for (index, value) in outputs.into_iter().enumerate() {
            let item = match is_single {
                true => call,
                false => res.graph.call_function("operator.getitem", vec![call.into(), Arg::Int(index as i64)], vec![]),
            };
            main.insert(value, item);
        }
    }
    let result = graph.node(output).args().iter().map(|it| it.map_nodes(&mut |it| main[&it].into())).collect();
    let copy = res.graph.create_node(Opcode::Output, "output", result, vec![], None)?;
    keep_notes(&mut res.graph, copy, graph.node(output))?;
    Ok(res)
}

impl Component {
    /// The module of a part, with what it reads and calls of the module that is split.
    fn close(
        mut self,
        owner: &GraphModule,
        copies: &FxHashMap<NodeId, NodeId>,
        return_tuple: bool,
    ) -> Result<GraphModule> {
        let results: Vec<Arg> = self.outputs.iter().map(|it| copies[it].into()).collect();
        let result = if results.len() == 1 && !return_tuple { results[0].clone() } else { Arg::Tuple(results) };
        self.graph.create_node(Opcode::Output, "output", vec![result], vec![], None)?;
        crate::const_fold::module_of(self.graph, owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ops::registry;

    #[test]
    fn a_part_takes_no_place_of_an_attribute() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let w = graph.get_attr("w");
        let neg = graph.call_function("torch.neg", vec![x.into()], vec![]);
        graph.output(Arg::Tuple(vec![neg.into(), w.into()]));
        let mut module = GraphModule::new(graph);
        module.set_attribute("w", Attribute::Module(Box::new(GraphModule::new(Graph::new()))));
        let split = |tag: &str| split_by_tags(&module, registry(), &[tag.into()], &|_| Some(0), false);
        assert_eq!(split("w").unwrap_err().code(), Code::PassFailed);
        assert!(split("part").is_ok());
    }

    #[test]
    fn parts_are_called_in_the_order_of_the_tags_and_read_their_own_attributes() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let w = graph.get_attr("inner.w");
        let a = graph.call_function("torch.add", vec![x.into(), w.into()], vec![]);
        let b = graph.call_function("torch.neg", vec![a.into()], vec![]);
        let c = graph.call_function("torch.mul", vec![a.into(), b.into()], vec![]);
        graph.output(c.into());
        let mut module = GraphModule::new(graph);
        module.set_attribute("inner.w", Attribute::Module(Box::new(GraphModule::new(Graph::new()))));
        let tags = ["red".to_owned(), "blue".to_owned()];
        let split = split_by_tags(&module, registry(), &tags, &|it| Some(usize::from(it == c)), false).unwrap();
        assert_eq!(
            split.graph.to_string(),
            "graph():
    %x : [num_users=1] = placeholder[target=x]
    %red : [num_users=2] = call_module[target=red](args = (%x,), kwargs = {})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%red, 0), kwargs = {})
    %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%red, 1), kwargs = {})
    %blue : [num_users=1] = call_module[target=blue](args = (%getitem, %getitem_1), kwargs = {})
    return blue"
        );
        let red = split.submodule("red").unwrap();
        assert!(red.graph.lint(Some(red)).is_empty() && red.attribute("inner.w").is_ok());
        let late = split_by_tags(&module, registry(), &tags, &|it| Some(usize::from(it == a)), false);
        assert_eq!(late.unwrap_err().code(), Code::PartitionCycle);
        let untagged = split_by_tags(&module, registry(), &tags, &|it| (it != b).then_some(0), false);
        assert_eq!(untagged.unwrap_err().node_name(), Some("neg"));
    }
}
