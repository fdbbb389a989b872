//! Finding the nodes for which two backends differ: `torch.fx.passes.net_min_base`.

use crate::split_by_tags;
use serde::Deserialize;
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Opcode};
use tracefx_ops::Registry;

/// How [`minimize`] searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ts_rs::TS)]
#[serde(rename_all = "camelCase")]
pub enum TraverseMethod {
    /// Each node by itself.
    #[default]
    Sequential,
    /// All nodes, and as long as they differ the halves of them.
    Binary,
    /// The first node, the first two, and so on.
    Accumulate,
    /// The nodes between those that are skipped.
    Skip,
    /// The shortest run of nodes from the first that differs, and of that the shortest to its last.
    Block,
    /// All nodes at once.
    Defined,
}

/// What [`minimize`] looks for.
#[derive(Clone, Debug, Default, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct MinimizerOptions {
    /// How nodes are searched.
    pub traverse_method: TraverseMethod,
    /// Whether to go on after the first that differ.
    pub find_all: bool,
    /// The name of the node to begin with.
    pub start: Option<String>,
    /// The name of the node to end with.
    pub end: Option<String>,
    /// The names of nodes that are left out by [`TraverseMethod::Skip`].
    pub skip_nodes: Vec<String>,
    /// Whether [`TraverseMethod::Block`] looks for the last node only, or for the first only.
    pub find_last_node: Option<bool>,
}

/// Finds nodes for which two backends differ. `differs` runs these nodes on both, with [`minimize_submodule`] say, and
/// compares; fused nodes are run together. An error of its own ends the search.
///
/// ```
/// use tracefx_ir::Graph;
/// use tracefx_rewrite::{MinimizerOptions, TraverseMethod, minimize};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let sin = graph.call_function("torch.sin", vec![x.into()], vec![]);
/// let cos = graph.call_function("torch.cos", vec![sin.into()], vec![]);
/// graph.output(cos.into());
/// let options = MinimizerOptions { traverse_method: TraverseMethod::Binary, ..MinimizerOptions::default() };
/// let culprits = minimize(&graph, &options, &[], &mut |nodes| Ok::<_, ()>(nodes.contains(&cos)));
/// assert_eq!(culprits, Ok(vec![cos]));
/// ```
///
/// # Errors
/// What `differs` answers.
pub fn minimize<E>(
    graph: &Graph,
    options: &MinimizerOptions,
    fusions: &[Vec<NodeId>],
    differs: &mut dyn FnMut(&[NodeId]) -> std::result::Result<bool, E>,
) -> std::result::Result<Vec<NodeId>, E> {
    let nodes = collect_nodes(graph, options);
    let fused = |node: NodeId| fusions.iter().find(|it| it.contains(&node)).cloned();
    let mut res = Vec::new();
    match options.traverse_method {
        _ if nodes.is_empty() => {}
        TraverseMethod::Sequential => {
            for &node in &nodes {
                if differs(&fused(node).unwrap_or_else(|| vec![node]))? {
                    res.push(node);
                    if !options.find_all {
                        break;
                    }
                }
            }
        }
        TraverseMethod::Binary => {
            // Runs of nodes that are still to be looked at, the first on top.
            let mut waiting = vec![&nodes[..]];
            while let Some(run) = waiting.pop() {
                if !differs(run)? {
                    continue;
                }
                if let &[node] = run {
                    res.push(node);
                    if !options.find_all {
                        break;
                    }
                } else {
                    let (first, second) = run.split_at(run.len() / 2);
                    waiting.extend([second, first]);
                }
            }
        }
        TraverseMethod::Accumulate => {
            for end in 1..=nodes.len() {
                if differs(&nodes[..end])? {
                    res.push(nodes[end - 1]);
                    break;
                }
            }
        }
        TraverseMethod::Skip => {
            let is_skipped = |it: &NodeId| options.skip_nodes.iter().any(|name| **name == **graph.node(*it).name());
            for run in nodes.split(is_skipped).filter(|it| !it.is_empty()) {
                let mut all = run.to_vec();
                for other in run.iter().filter_map(|&it| fused(it)).flatten() {
                    if !all.contains(&other) {
                        all.push(other);
                    }
                }
                if differs(&all)? {
                    res.append(&mut all);
                }
            }
        }
        TraverseMethod::Block => {
            let mut run = &nodes[..];
            if options.find_last_node != Some(false) {
                match least(run.len(), &mut |it| differs(&run[..=it]))? {
                    Some(last) => run = &run[..=last],
                    None => return Ok(res),
                }
            }
            if options.find_last_node != Some(true) {
                match least(run.len(), &mut |it| differs(&run[run.len() - 1 - it..]))? {
                    Some(n_before) => run = &run[run.len() - 1 - n_before..],
                    None => return Ok(res),
                }
            }
            res.extend_from_slice(run);
        }
        TraverseMethod::Defined => {
            if differs(&nodes)? {
                res = nodes;
            }
        }
    }
    Ok(res)
}

/// The module in three parts, `main_0`, `minimize` and `main_1`: what comes before these nodes, they themselves, and what
/// uses them. The part gives what nothing uses as well, so that it can be compared.
///
/// # Errors
/// `PartitionCycle` where a path leads out of the nodes and back in; those of [`split_by_tags`].
pub fn minimize_submodule(module: &GraphModule, registry: &Registry, nodes: &[NodeId]) -> Result<GraphModule> {
    if let Some(shown) = with_idle_results(module, nodes)? {
        let mut split = split_in_three(&shown, registry, nodes)?;
        if let Some(output) = split.graph.output_node()
            && let Some(Arg::Tuple(results)) = split.graph.node(output).args().first()
        {
            let before = results.iter().take(1).cloned().collect();
            split.graph.set_args(output, before)?;
        }
        return Ok(split);
    }
    split_in_three(module, registry, nodes)
}

/// The module, giving a tuple of what it gives and of those of these nodes that nothing uses, if there are any.
fn with_idle_results(module: &GraphModule, nodes: &[NodeId]) -> Result<Option<GraphModule>> {
    let idle: Vec<Arg> = nodes.iter().filter(|&&it| module.graph.users(it).is_empty()).map(|&it| it.into()).collect();
    let Some(output) = module.graph.output_node().filter(|_| !idle.is_empty()) else { return Ok(None) };
    let mut shown = module.clone();
    let before = shown.graph.node(output).args().first().cloned().unwrap_or(Arg::None);
    shown.graph.set_args(output, vec![Arg::Tuple([vec![before], idle].concat())])?;
    Ok(Some(shown))
}

fn split_in_three(module: &GraphModule, registry: &Registry, nodes: &[NodeId]) -> Result<GraphModule> {
    let graph = &module.graph;
    let mut tags = vec![0; graph.id_bound()];
    let mut is_selected = vec![false; graph.id_bound()];
    nodes.iter().for_each(|it| is_selected[it.index()] = true);
    for node in graph.nodes() {
        let mut is_after = false;
        graph.node(node).for_each_input(&mut |it| is_after |= tags[it.index()] > 0);
        tags[node.index()] = if is_selected[node.index()] { 1 } else { 2 * usize::from(is_after) };
    }
    let names = ["main_0", "minimize", "main_1"].map(String::from);
    split_by_tags(module, registry, &names, &|it| Some(tags[it.index()]), false)
}

/// The calls from one named node to another.
fn collect_nodes(graph: &Graph, options: &MinimizerOptions) -> Vec<NodeId> {
    let is_named = |it: NodeId, name: &Option<String>| name.as_deref() == Some(&**graph.node(it).name());
    let is_call =
        |it: &NodeId| matches!(graph.node(*it).op(), Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule);
    let from = graph.nodes().filter(is_call).skip_while(|&it| options.start.is_some() && !is_named(it, &options.start));
    let mut res = Vec::new();
    for node in from {
        res.push(node);
        if is_named(node, &options.end) {
            break;
        }
    }
    res
}

/// The least number below `n` of which something holds that holds of all larger ones as well.
fn least<E>(
    n: usize,
    holds: &mut dyn FnMut(usize) -> std::result::Result<bool, E>,
) -> std::result::Result<Option<usize>, E> {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = (low + high) / 2;
        if holds(middle)? { high = middle } else { low = middle + 1 }
    }
    Ok((low < n).then_some(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// The names of the nodes that are found in a chain `a` to `h`, where runs with one of `bad` differ, or with all of them.
    fn found(bad: &str, all: bool, options: MinimizerOptions) -> String {
        let mut graph = Graph::new();
        let mut last = graph.placeholder("x");
        for name in "abcdefgh".chars() {
            last = graph.call_function(&name.to_string(), vec![last.into()], vec![]);
        }
        let name = |it: &NodeId| graph.node(*it).name().chars().next().expect("a name");
        let mut differs = |nodes: &[NodeId]| {
            let names: String = nodes.iter().map(name).collect();
            Ok::<bool, Infallible>(match all {
                true => bad.chars().all(|it| names.contains(it)),
                false => bad.chars().any(|it| names.contains(it)),
            })
        };
        minimize(&graph, &options, &[], &mut differs).unwrap().iter().map(name).collect()
    }

    fn by(traverse_method: TraverseMethod) -> MinimizerOptions {
        MinimizerOptions { traverse_method, ..MinimizerOptions::default() }
    }

    #[test]
    fn one_node_is_found_one_by_one_and_by_halves() {
        for method in [TraverseMethod::Sequential, TraverseMethod::Binary, TraverseMethod::Accumulate] {
            assert_eq!(found("cf", false, by(method)), "c");
            assert_eq!(found("z", false, by(method)), "");
        }
        for method in [TraverseMethod::Sequential, TraverseMethod::Binary] {
            assert_eq!(found("cf", false, MinimizerOptions { find_all: true, ..by(method) }), "cf");
        }
    }

    #[test]
    fn nodes_that_differ_only_together_are_a_block() {
        assert_eq!(found("cf", true, by(TraverseMethod::Block)), "cdef");
        assert_eq!(
            found("cf", true, MinimizerOptions { find_last_node: Some(true), ..by(TraverseMethod::Block) }),
            "abcdef"
        );
        assert_eq!(
            found("cf", true, MinimizerOptions { find_last_node: Some(false), ..by(TraverseMethod::Block) }),
            "cdefgh"
        );
        assert_eq!(found("z", true, by(TraverseMethod::Block)), "");
    }

    #[test]
    fn nodes_are_skipped_and_the_search_begins_and_ends_where_it_is_told() {
        let skip_nodes = vec!["c".into(), "f".into()];
        assert_eq!(found("d", false, MinimizerOptions { skip_nodes, ..by(TraverseMethod::Skip) }), "de");
        let range = MinimizerOptions { start: Some("b".into()), end: Some("d".into()), ..by(TraverseMethod::Defined) };
        assert_eq!(found("c", false, range.clone()), "bcd");
        assert_eq!(found("e", false, range), "");
    }

    #[test]
    fn the_nodes_are_a_part_of_their_own() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let a = graph.call_function("a", vec![x.into()], vec![]);
        let b = graph.call_function("b", vec![a.into()], vec![]);
        let c = graph.call_function("c", vec![b.into()], vec![]);
        graph.output(c.into());
        let module = GraphModule::new(graph);
        let split = minimize_submodule(&module, tracefx_ops::registry(), &[b]).unwrap();
        assert!(split.submodule("minimize").unwrap().graph.find("b").is_some());
        assert!(split.submodule("main_1").unwrap().graph.find("c").is_some());
        assert!(minimize_submodule(&module, tracefx_ops::registry(), &[a, c]).is_err());
    }

    #[test]
    fn what_nothing_uses_is_a_result_of_the_part() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let a = graph.call_function("a", vec![x.into()], vec![]);
        let b = graph.call_function("b", vec![a.into()], vec![]);
        graph.output(a.into());
        let module = GraphModule::new(graph);
        let split = minimize_submodule(&module, tracefx_ops::registry(), &[b]).unwrap();
        let result = |module: &GraphModule| module.graph.to_string().lines().last().unwrap().trim().to_owned();
        assert_eq!(result(split.submodule("minimize").unwrap()), "return b");
        assert_eq!(result(&split), "return main_0");
        assert_eq!(
            result(
                minimize_submodule(&module, tracefx_ops::registry(), &[a, b]).unwrap().submodule("minimize").unwrap()
            ),
            "return (a, b)"
        );
        assert!(split.graph.lint(Some(&split)).is_empty());
    }
}
