//! Splitting a graph into what an accelerator runs and what the CPU runs: `torch.fx.passes.splitter_base`.

mod acc_nodes;
mod boundary;
mod fusions;

pub use acc_nodes::{AccNodes, NodeEvent, find_acc_nodes};
pub use boundary::move_non_tensor_nodes_on_boundary;
pub use fusions::find_acc_fusions;

use crate::order::Order;
use rustc_hash::FxHashSet;
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Graph, GraphModule, Node, NodeId, Opcode};
use tracefx_ops::Registry;

/// How [`Splitter`] splits graphs.
#[derive(Clone, Debug, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct SplitterOptions {
    /// The least number of nodes for which the accelerator is worth it.
    pub min_acc_module_size: usize,
    /// Whether nodes that pass each other values that are no tensors may come apart.
    pub skip_fusion: bool,
    /// Whether the accelerator takes and gives values that are no tensors.
    pub allow_non_tensor: bool,
    /// Whether values that are no tensors are made in the part that uses them, and not in one for the accelerator before it.
    pub move_non_tensor_nodes_on_boundary: bool,
    /// What the names of the parts for the CPU begin with.
    pub non_acc_submodule_name: String,
}

impl Default for SplitterOptions {
    fn default() -> Self {
        SplitterOptions {
            min_acc_module_size: 1,
            skip_fusion: false,
            allow_non_tensor: false,
            move_non_tensor_nodes_on_boundary: false,
            non_acc_submodule_name: "_run_on_cpu_".into(),
        }
    }
}

/// A part: `torch.fx.passes.splitter_base.Subgraph`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subgraph {
    /// Whether the accelerator runs it.
    pub is_acc: bool,
    /// The nodes.
    pub nodes: Vec<NodeId>,
}

/// What [`Splitter::split`] finds.
#[derive(Clone, Debug)]
pub struct SplitPlan {
    /// The parts, in the order in which they run.
    pub subgraphs: Vec<Subgraph>,
    /// Their tags, which are the names that `split_by_tags` gives their modules.
    pub tags: Vec<String>,
    /// Why each node is where it is.
    pub events: Vec<NodeEvent>,
}

/// Finds the parts of a graph for an accelerator and for the CPU, alternating: `torch.fx.passes.splitter_base._SplitterBase`.
/// Of the nodes that are ready the first of the graph comes next, where torch.fx takes any of a set.
#[derive(Clone, Debug, Default)]
pub struct Splitter {
    options: SplitterOptions,
}

impl Splitter {
    /// A splitter.
    pub fn new(options: SplitterOptions) -> Self {
        Splitter { options }
    }

    /// The parts and their tags, for [`crate::split_by_tags`].
    ///
    /// # Errors
    /// `GraphInvalid` where nodes use each other in a circle.
    pub fn split(
        &self,
        module: &GraphModule,
        registry: &Registry,
        is_supported: &mut dyn FnMut(NodeId) -> bool,
        is_tensor: &dyn Fn(NodeId) -> bool,
    ) -> Result<SplitPlan> {
        let (graph, order) = (&module.graph, Order::of(module, registry));
        let AccNodes { mut nodes, events } =
            find_acc_nodes(graph, is_supported, is_tensor, self.options.allow_non_tensor);
        let all_supported = calls(graph).all(|it| nodes.contains(&it));
        let fusions = match self.options.skip_fusion || all_supported {
            true => vec![],
            false => fusions::find(graph, &order, &mut nodes, is_tensor),
        };
        let mut subgraphs = put_nodes_into_subgraphs(graph, &order, &nodes, &fusions)?;
        if self.options.move_non_tensor_nodes_on_boundary {
            boundary::move_nodes(graph, &order, &mut subgraphs, is_tensor);
        }
        let subgraphs = self.remove_small_acc_subgraphs(subgraphs);
        let tags = subgraphs.iter().enumerate().map(|(index, it)| match it.is_acc {
            true => format!("_run_on_acc_{index}"),
            false => format!("{}{index}", self.options.non_acc_submodule_name),
        });
        let tags = tags.collect();
        Ok(SplitPlan { subgraphs, tags, events })
    }

    /// Gives parts that are too small for the accelerator to the CPU, together with their neighbours.
    fn remove_small_acc_subgraphs(&self, subgraphs: Vec<Subgraph>) -> Vec<Subgraph> {
        let mut res: Vec<Subgraph> = Vec::new();
        for mut subgraph in subgraphs {
            let is_large = subgraph.nodes.len() >= self.options.min_acc_module_size;
            subgraph.is_acc &= is_large;
            match res.last_mut() {
                Some(last) if !last.is_acc && !subgraph.is_acc => last.nodes.append(&mut subgraph.nodes),
                Some(_) | None => res.push(subgraph),
            }
        }
        res
    }
}

/// Goes through the graph and takes, as long as there are any, nodes of one kind whose inputs are there, then those of the
/// other. What is fused waits for all inputs of all its nodes, and what uses it waits for all of them.
fn put_nodes_into_subgraphs(
    graph: &Graph,
    order: &Order,
    acc_nodes: &FxHashSet<NodeId>,
    fusions: &[Vec<NodeId>],
) -> Result<Vec<Subgraph>> {
    let nodes: Vec<NodeId> = calls(graph).collect();
    let mut rank = vec![0usize; graph.id_bound()];
    nodes.iter().enumerate().for_each(|(index, it)| rank[it.index()] = index);
    // Fused nodes are one unit, each other node is one of its own.
    let mut unit: Vec<Option<usize>> = vec![None; graph.id_bound()];
    let mut members: Vec<Vec<NodeId>> = fusions.to_vec();
    for (index, fusion) in fusions.iter().enumerate() {
        fusion.iter().for_each(|it| unit[it.index()] = Some(index));
    }
    for &node in &nodes {
        unit[node.index()].get_or_insert_with(|| {
            members.push(vec![node]);
            members.len() - 1
        });
    }
    let unit_of = |it: NodeId| unit[it.index()].expect("calls have units");
    // How many uses of other units a unit waits for, how many of its own nodes are left, and how many uses inside its unit a
    // node waits for.
    let mut waiting = vec![0usize; members.len()];
    let mut left: Vec<usize> = members.iter().map(Vec::len).collect();
    let mut inner = vec![0usize; graph.id_bound()];
    for &node in &nodes {
        for user in order.successors(graph, node).filter(|&it| is_call(graph.node(it))) {
            match unit_of(node) == unit_of(user) {
                true => inner[user.index()] += 1,
                false => waiting[unit_of(user)] += 1,
            }
        }
    }
    let mut ready = [BinaryHeap::new(), BinaryHeap::new()];
    let push = |ready: &mut [BinaryHeap<Reverse<usize>>; 2], it: NodeId| {
        ready[usize::from(acc_nodes.contains(&it))].push(Reverse(rank[it.index()]));
    };
    for &node in &nodes {
        if waiting[unit_of(node)] == 0 && inner[node.index()] == 0 {
            push(&mut ready, node);
        }
    }
    let mut kind = usize::from(ready[0].is_empty());
    let mut res: Vec<Subgraph> = Vec::new();
    let mut n_visited = 0;
    while n_visited < nodes.len() {
        let Some(Reverse(next)) = ready[kind].pop() else {
            kind = 1 - kind;
            if ready[kind].is_empty() {
                return Err(Diagnostic::new(Code::GraphInvalid, "the nodes use each other in a circle"));
            }
            continue;
        };
        let node = nodes[next];
        n_visited += 1;
        match res.last_mut() {
            Some(last) if last.is_acc == (kind == 1) => last.nodes.push(node),
            Some(_) | None => res.push(Subgraph { is_acc: kind == 1, nodes: vec![node] }),
        }
        let this = unit_of(node);
        for user in order.successors(graph, node).filter(|&it| is_call(graph.node(it)) && unit_of(it) == this) {
            inner[user.index()] -= 1;
            if inner[user.index()] == 0 && waiting[this] == 0 {
                push(&mut ready, user);
            }
        }
        left[this] -= 1;
        if left[this] > 0 {
            continue;
        }
        for &done in &members[this] {
            for user in order.successors(graph, done).filter(|&it| is_call(graph.node(it)) && unit_of(it) != this) {
                let other = unit_of(user);
                waiting[other] -= 1;
                if waiting[other] == 0 {
                    members[other].iter().filter(|it| inner[it.index()] == 0).for_each(|&it| push(&mut ready, it));
                }
            }
        }
    }
    Ok(res)
}

fn calls(graph: &Graph) -> impl Iterator<Item = NodeId> + '_ {
    graph.nodes().filter(|&it| is_call(graph.node(it)))
}

fn is_call(node: &Node) -> bool {
    matches!(node.op(), Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ir::Arg;

    /// The parts of a graph of `(name, inputs)`: names in capitals are supported, names with `n` or `N` are no tensors.
    #[track_caller]
    fn check(functions: &[(&str, &str)], options: SplitterOptions, expected: &[&str]) {
        let mut graph = Graph::new();
        let mut nodes = vec![("x", graph.placeholder("x"))];
        for (name, inputs) in functions {
            let input = |it: char| nodes.iter().find(|(name, _)| name.starts_with(it)).expect("a node").1;
            let args = inputs.chars().map(|it| Arg::Node(input(it))).collect();
            nodes.push((name, graph.call_function(name, args, vec![])));
        }
        graph.output(nodes.last().unwrap().1.into());
        let name = |it: &NodeId| nodes.iter().find(|(_, id)| id == it).expect("a node").0;
        let plan = Splitter::new(options)
            .split(
                &GraphModule::new(graph),
                tracefx_ops::registry(),
                &mut |it| name(&it).starts_with(char::is_uppercase),
                &|it| !name(&it).contains(['n', 'N']),
            )
            .unwrap();
        let got = plan.subgraphs.iter().zip(&plan.tags);
        let got: Vec<String> =
            got.map(|(it, tag)| format!("{tag}: {}", it.nodes.iter().map(name).collect::<String>())).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn parts_alternate_and_are_as_large_as_they_can_be() {
        let graph = [("A", "x"), ("b", "A"), ("C", "x"), ("D", "b")];
        check(&graph, SplitterOptions::default(), &["_run_on_acc_0: AC", "_run_on_cpu_1: b", "_run_on_acc_2: D"]);
    }

    #[test]
    fn small_parts_go_to_the_cpu() {
        let graph = [("a", "x"), ("B", "a"), ("c", "B"), ("D", "c"), ("E", "D")];
        let options = SplitterOptions { min_acc_module_size: 2, ..SplitterOptions::default() };
        check(&graph, options, &["_run_on_cpu_0: aBc", "_run_on_acc_1: DE"]);
    }

    #[test]
    fn what_is_no_tensor_does_not_cross() {
        let graph = [("An", "x"), ("b", "A"), ("C", "b")];
        check(&graph, SplitterOptions::default(), &["_run_on_cpu_0: Anb", "_run_on_acc_1: C"]);
        let options = SplitterOptions { allow_non_tensor: true, skip_fusion: true, ..SplitterOptions::default() };
        check(&graph, options, &["_run_on_acc_0: An", "_run_on_cpu_1: b", "_run_on_acc_2: C"]);
    }

    #[test]
    fn what_is_no_tensor_moves_to_the_part_that_uses_it() {
        let graph = [("A", "x"), ("Bn", "A"), ("c", "B"), ("D", "c")];
        let stay = SplitterOptions { allow_non_tensor: true, skip_fusion: true, ..SplitterOptions::default() };
        check(&graph, stay.clone(), &["_run_on_acc_0: ABn", "_run_on_cpu_1: c", "_run_on_acc_2: D"]);
        let options = SplitterOptions { move_non_tensor_nodes_on_boundary: true, ..stay };
        check(&graph, options, &["_run_on_acc_0: A", "_run_on_cpu_1: cBn", "_run_on_acc_2: D"]);
    }

    #[test]
    fn nodes_that_pass_each_other_what_is_no_tensor_stay_together() {
        let graph = [("An", "x"), ("b", "x"), ("C", "Ab"), ("D", "A")];
        check(&graph, SplitterOptions::default(), &["_run_on_cpu_0: b", "_run_on_acc_1: AnCD"]);
    }
}
