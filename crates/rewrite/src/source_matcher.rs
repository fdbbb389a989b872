//! Which nodes come from one call of a function or module: `torch.fx.passes.utils.source_matcher_utils`.
//!
//! Sources are names, as PyTorch writes them into files: those of classes and functions (`torch.nn.modules.linear.Linear`,
//! `torch.nn.functional.linear`) and the short ones of `torch_fn` (`linear`).

use indexmap::{IndexMap, IndexSet};
use rustc_hash::{FxBuildHasher, FxHashSet};
use tracefx_ir::{Arg, Graph, Node, NodeId, Opcode};

/// The nodes that one call was decomposed into.
#[derive(Clone, Debug, PartialEq)]
pub struct SourcePartition {
    /// The nodes, in order.
    pub nodes: Vec<NodeId>,
    /// The function or class, by the name that was asked for.
    pub source: String,
    /// The nodes outside that these take as arguments, but for attributes. As in PyTorch, those in lists and behind keywords are
    /// not among them.
    pub input_nodes: Vec<NodeId>,
    /// The nodes of these that others use.
    pub output_nodes: Vec<NodeId>,
    /// The attributes that stand among the nodes.
    pub params: Vec<NodeId>,
}

/// The partitions of each source that was found, in the order in which the graph has them.
pub type SourcePartitions = IndexMap<String, Vec<SourcePartition>, FxBuildHasher>;

/// Finds the nodes that come from these functions and modules, each call for itself.
///
/// A node says where it comes from by `source_fn_stack`; where it does not, by `torch_fn`, and by the innermost module of
/// `nn_module_stack`. A class may be asked for without its module: `Linear`. Partitions in which `filter` refuses a node are
/// left out.
///
/// ```
/// use tracefx_ir::Graph;
/// use tracefx_rewrite::get_source_partitions;
///
/// let mut graph = Graph::new();
/// let [x, weight] = ["x", "weight"].map(|it| graph.placeholder(it));
/// let turned = graph.call_function("torch.ops.aten.t.default", vec![weight.into()], vec![]);
/// let product = graph.call_function("torch.ops.aten.mm.default", vec![x.into(), turned.into()], vec![]);
/// graph.output(product.into());
/// for node in [turned, product] {
///     let stack = "L__self__,,M;L__self___fc,fc,torch.nn.modules.linear.Linear";
///     graph.meta_mut(node).entries.insert("nn_module_stack".into(), stack.into());
/// }
/// let found = get_source_partitions(&graph, &["Linear"], None);
/// let partition = &found["Linear"][0];
/// assert_eq!((&*partition.nodes, &*partition.output_nodes), (&[turned, product][..], &[product][..]));
/// ```
pub fn get_source_partitions(
    graph: &Graph,
    wanted_sources: &[&str],
    filter: Option<&dyn Fn(NodeId) -> bool>,
) -> SourcePartitions {
    let mut calls: IndexMap<&str, IndexMap<&str, Vec<NodeId>, FxBuildHasher>, FxBuildHasher> = IndexMap::default();
    for id in graph.nodes() {
        if let Some((source, call)) = source_of(graph.node(id), wanted_sources) {
            calls.entry(source).or_default().entry(call).or_default().push(id);
        }
    }
    let is_kept = |nodes: &Vec<NodeId>| filter.is_none_or(|it| nodes.iter().all(|&node| it(node)));
    let partitions = calls.into_iter().map(|(source, calls)| {
        let kept = calls.into_values().filter(is_kept);
        (source.to_owned(), kept.map(|nodes| partition(graph, source, nodes)).collect())
    });
    partitions.collect()
}

/// Whether a node of the second uses one of the first: `check_subgraphs_connected`.
pub fn check_subgraphs_connected(graph: &Graph, first: &SourcePartition, second: &SourcePartition) -> bool {
    let inside: FxHashSet<NodeId> = second.nodes.iter().copied().collect();
    first.nodes.iter().any(|&it| graph.users(it).iter().any(|user| inside.contains(&user)))
}

/// The source of a node, if it is one of these, and which call of it.
fn source_of<'a>(node: &'a Node, wanted: &[&'a str]) -> Option<(&'a str, &'a str)> {
    if let Some(stack) = node.meta.get("source_fn_stack") {
        let (call, source) = stack.rsplit(';').next()?.split_once(',')?;
        return Some((wanted.iter().copied().find(|it| is_named(source, it))?, call));
    }
    if let Some((call, function)) = node.meta.get("torch_fn").and_then(|it| it.split_once(';')) {
        // `builtin_function_or_method.linear`
        let name = function.split('.').nth(1);
        if let Some(source) = wanted.iter().copied().find(|&it| name == Some(it)) {
            return Some((source, call));
        }
    }
    if node.op() != Opcode::CallFunction {
        return None;
    }
    // Each module is `key,path,class`, and a path may have commas in it.
    let innermost = node.meta.get("nn_module_stack")?.rsplit(';').next()?;
    let (rest, class) = innermost.rsplit_once(',')?;
    let (_, path) = rest.split_once(',')?;
    Some((wanted.iter().copied().find(|it| is_named(class, it))?, path))
}

/// Whether what a file names so is what is wanted. Classes, which begin with a capital, need not be named whole.
fn is_named(name: &str, wanted: &str) -> bool {
    let is_class = || wanted.starts_with(|it: char| it.is_uppercase());
    name == wanted || (is_class() && name.rsplit('.').next() == Some(wanted))
}

fn partition(graph: &Graph, source: &str, nodes: Vec<NodeId>) -> SourcePartition {
    let inside: FxHashSet<NodeId> = nodes.iter().copied().collect();
    let (mut inputs, mut output_nodes, mut params) = (IndexSet::new(), Vec::new(), Vec::new());
    for &id in &nodes {
        let outside = graph.node(id).args().iter().filter_map(Arg::as_node).filter(|it| !inside.contains(it));
        inputs.extend(outside.filter(|&it| graph.node(it).op() != Opcode::GetAttr));
        if graph.node(id).op() == Opcode::GetAttr {
            params.push(id);
        } else if graph.users(id).iter().any(|it| !inside.contains(&it)) {
            output_nodes.push(id);
        }
    }
    let mut input_nodes: Vec<NodeId> = inputs.into_iter().collect();
    input_nodes.sort_unstable_by(|&a, &b| graph.compare(a, b));
    SourcePartition { nodes, source: source.to_owned(), input_nodes, output_nodes, params }
}
