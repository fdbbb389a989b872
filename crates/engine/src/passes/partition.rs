//! Passes that partition a graph.

use super::{Declare, HostPass, PassCall, answer, declared, declared_with_names};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Attribute, Node, NodeId};
use tracefx_rewrite::{
    CapabilityBasedPartitioner, FoldRules, MinimizerOptions, Partition, PartitionerOptions, SplitOptions, Splitter,
    SplitterOptions, TraverseMethod,
};
use ts_rs::TS;

pub(super) const PASSES: &[HostPass] = &[
    HostPass { name: "split_module", run: split_module },
    HostPass { name: "propose_partitions", run: propose_partitions },
    HostPass { name: "remove_bookend_non_compute_ops", run: remove_bookend_non_compute_ops },
    HostPass { name: "fuse_by_partitions", run: fuse_by_partitions },
    HostPass { name: "split_const_subgraphs", run: split_const_subgraphs },
    HostPass { name: "split_by_tags", run: split_by_tags },
    HostPass { name: "find_subgraphs", run: find_subgraphs },
    HostPass { name: "find_acc_fusions", run: find_acc_fusions },
    HostPass { name: "minimize", run: minimize },
    HostPass { name: "minimize_submodule", run: minimize_submodule },
    HostPass {
        name: "legalize_graph",
        run: |call| answer(&tracefx_rewrite::legalize_graph(call.module, call.library.registry())?),
    },
    HostPass {
        name: "stable_topological_sort",
        run: |call| answer(&tracefx_rewrite::stable_topological_sort(&mut call.module.graph)?),
    },
];

pub(super) const TYPES: &[Declare] = &[
    declared_with_names::<SplitOptions>,
    declared::<SplitCall>,
    declared::<SplitAnswer>,
    declared_with_names::<PartitionerOptions>,
    declared::<ProposeCall>,
    declared::<PartitionAnswer>,
    declared::<BookendCall>,
    declared::<FuseCall>,
    declared::<FoldCall>,
    declared::<FoldAnswer>,
    declared::<TagsCall>,
    declared_with_names::<SplitterOptions>,
    declared::<SubgraphsCall>,
    declared::<SubgraphsAnswer>,
    declared::<SubgraphAnswer>,
    declared::<NodeEventAnswer>,
    declared::<FusionsCall>,
    declared::<TraverseMethod>,
    declared_with_names::<MinimizerOptions>,
    declared::<MinimizeCall>,
    declared::<MinimizeAnswer>,
    declared::<MinimizeSubmoduleCall>,
];

/// A value for each node, by its place, null for nodes that have none.
struct ByNode<T> {
    values: Vec<Option<T>>,
    /// The place of each node, by the index of its id.
    places: Vec<usize>,
}

impl<T: Copy> ByNode<T> {
    fn new(call: &PassCall<'_>, values: Vec<Option<T>>) -> Result<Self> {
        let mut places = vec![0; call.module.graph.id_bound()];
        let nodes = call.nodes();
        if nodes.len() != values.len() {
            let what = format!("there are {} values for {} nodes", values.len(), nodes.len());
            return Err(Diagnostic::new(Code::InvalidOption, what));
        }
        nodes.iter().enumerate().for_each(|(place, it)| places[it.index()] = place);
        Ok(ByNode { values, places })
    }

    fn get(&self, node: NodeId) -> Option<T> {
        self.values[self.places[node.index()]]
    }
}

/// Nodes by their places.
fn nodes_at(call: &PassCall<'_>, places: &[Vec<usize>]) -> Result<Vec<Vec<NodeId>>> {
    let nodes = call.nodes();
    let node = |&place: &usize| {
        let what = || Diagnostic::new(Code::InvalidOption, format!("there is no node {place} of {}", nodes.len()));
        nodes.get(place).copied().ok_or_else(what)
    };
    places.iter().map(|it| it.iter().map(node).collect()).collect()
}

/// The options of `split_module`.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SplitCall {
    /// For each node its part; what is said of inputs, attributes and the output does not matter.
    partition_of: Vec<Option<i64>>,
    /// How the parts are made.
    #[serde(default)]
    options: SplitOptions,
}

/// The answer of `split_module`.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct SplitAnswer {
    /// The names of the parts.
    partition_names: Vec<String>,
    /// For each module that a part calls its path now, and the path that it had.
    qualname_map: BTreeMap<String, String>,
}

fn split_module(call: &mut PassCall<'_>) -> Result<Value> {
    let SplitCall { partition_of, options } = call.options()?;
    let partition_of = ByNode::new(call, partition_of)?;
    let mut part = |it| partition_of.get(it).unwrap_or_default();
    let split = tracefx_rewrite::split_module(call.module, call.library.registry(), &mut part, &options)?;
    *call.module = split.module;
    let qualname_map = split.qualname_map.into_iter().map(|(now, before)| (now, before.to_string())).collect();
    answer(&SplitAnswer { partition_names: split.partition_names, qualname_map })
}

/// The options of `propose_partitions`.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ProposeCall {
    /// For each node whether the backend supports it.
    is_supported: Vec<Option<bool>>,
    /// How partitions are made.
    #[serde(default)]
    options: PartitionerOptions,
}

/// A partition: the answer of `propose_partitions` is a list of them.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct PartitionAnswer {
    /// The number.
    id: usize,
    /// The places of the nodes.
    nodes: Vec<usize>,
}

fn propose_partitions(call: &mut PassCall<'_>) -> Result<Value> {
    let ProposeCall { is_supported, options } = call.options()?;
    let is_supported = ByNode::new(call, is_supported)?;
    let partitions = CapabilityBasedPartitioner::new(call.library.registry(), options)
        .propose_partitions(call.module, &mut |it| is_supported.get(it).unwrap_or_default());
    let places = |it: Partition| PartitionAnswer {
        id: it.id,
        nodes: it.nodes.into_iter().map(|node| is_supported.places[node.index()]).collect(),
    };
    answer(&partitions.into_iter().map(places).collect::<Vec<_>>())
}

/// The options of `remove_bookend_non_compute_ops`, whose answer is the places of the nodes that stay, for each partition.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BookendCall {
    /// The places of the nodes of each partition.
    partitions: Vec<Vec<usize>>,
    /// What computes nothing.
    #[serde(default)]
    options: PartitionerOptions,
}

fn remove_bookend_non_compute_ops(call: &mut PassCall<'_>) -> Result<Value> {
    let BookendCall { partitions: places, options } = call.options()?;
    let nodes = nodes_at(call, &places)?;
    let mut partitions: Vec<Partition> =
        nodes.iter().cloned().enumerate().map(|(id, nodes)| Partition { id, nodes }).collect();
    CapabilityBasedPartitioner::new(call.library.registry(), options)
        .remove_bookend_non_compute_ops(call.module, &mut partitions);
    let kept = partitions.iter().zip(&nodes).zip(&places).map(|((kept, nodes), places)| {
        // Nodes keep their order, so what stays is found in one walk.
        let mut kept = kept.nodes.iter().peekable();
        let stays = nodes.iter().zip(places).filter(|(node, _)| kept.next_if_eq(node).is_some());
        stays.map(|(_, &place)| place).collect::<Vec<_>>()
    });
    answer(&kept.collect::<Vec<_>>())
}

/// The options of `fuse_by_partitions`, whose answer is the names of the modules.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FuseCall {
    /// The places of the nodes of each partition.
    partitions: Vec<Vec<usize>>,
    /// What the names of the modules begin with.
    prefix: String,
    /// Whether a module with one result gives a tuple of it.
    #[serde(default)]
    always_return_tuple: bool,
}

fn fuse_by_partitions(call: &mut PassCall<'_>) -> Result<Value> {
    let FuseCall { partitions, prefix, always_return_tuple } = call.options()?;
    let partitions = nodes_at(call, &partitions)?;
    answer(&tracefx_rewrite::fuse_by_partitions(
        call.module,
        call.library.registry(),
        &partitions,
        &prefix,
        always_return_tuple,
    )?)
}

/// The options of `split_const_subgraphs`.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
#[derive(Default)]
struct FoldCall {
    /// For each node whether it is not to be folded; empty where nothing is said.
    is_skipped: Vec<bool>,
    /// For each node whether it has an effect beside those that are known to; empty where nothing is said.
    is_impure: Vec<bool>,
}

/// The answer of `split_const_subgraphs`: null where there was nothing to fold.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct FoldAnswer {
    /// The attribute that the module reads the results from.
    attrs_name: String,
    /// Whether there are several results.
    is_list: bool,
}

/// What is to be run is left in the module, under the name that it has in torch.fx.
fn split_const_subgraphs(call: &mut PassCall<'_>) -> Result<Value> {
    let FoldCall { is_skipped, is_impure } = call.options()?;
    // Copies of nodes are known by where their notes are from.
    let said =
        |of: &[bool], node: &Node| node.meta.origin.is_some_and(|it| of.get(it as usize).copied().unwrap_or_default());
    let rules = FoldRules {
        registry: call.library.registry(),
        is_skipped: &|it| said(&is_skipped, it),
        is_impure: &|it| said(&is_impure, it),
    };
    let folded = tracefx_rewrite::split_const_subgraphs(call.module, &rules)?;
    answer(&folded.map(|it| {
        let subgraph = Attribute::Module(Box::new(it.const_subgraph));
        call.module.attributes.insert("const_subgraph_module".into(), subgraph);
        FoldAnswer { attrs_name: it.attrs_name, is_list: it.is_list }
    }))
}

/// The options of `split_by_tags`, which answers nothing.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TagsCall {
    /// The tags, in the order in which the parts are called.
    tags: Vec<String>,
    /// For each node the place of its tag, null for inputs, attributes and the output.
    tag_of: Vec<Option<usize>>,
    /// Whether a part with one result gives a tuple of it.
    #[serde(default)]
    return_tuple: bool,
}

fn split_by_tags(call: &mut PassCall<'_>) -> Result<Value> {
    let TagsCall { tags, tag_of, return_tuple } = call.options()?;
    let tag_of = ByNode::new(call, tag_of)?;
    *call.module = tracefx_rewrite::split_by_tags(
        call.module,
        call.library.registry(),
        &tags,
        &|it| tag_of.get(it),
        return_tuple,
    )?;
    Ok(Value::Null)
}

/// The options of `find_subgraphs`: what a splitter finds.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SubgraphsCall {
    /// For each node whether the accelerator supports it.
    is_supported: Vec<Option<bool>>,
    /// For each node whether its value is a tensor.
    is_tensor: Vec<Option<bool>>,
    /// How parts are made.
    #[serde(default)]
    options: SplitterOptions,
}

/// The answer of `find_subgraphs`.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct SubgraphsAnswer {
    /// The parts, in the order in which they run.
    subgraphs: Vec<SubgraphAnswer>,
    /// Why nodes are where they are.
    events: Vec<NodeEventAnswer>,
}

/// A part.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct SubgraphAnswer {
    /// Its tag.
    tag: String,
    /// Whether the accelerator runs it.
    is_acc: bool,
    /// The places of its nodes.
    nodes: Vec<usize>,
}

/// Why a node is, or is not, for the accelerator.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct NodeEventAnswer {
    /// The place of the node.
    node: usize,
    /// What happened.
    desc: &'static str,
    /// The place of the node because of which it did.
    dep: Option<usize>,
}

fn find_subgraphs(call: &mut PassCall<'_>) -> Result<Value> {
    let SubgraphsCall { is_supported, is_tensor, options } = call.options()?;
    let is_supported = ByNode::new(call, is_supported)?;
    let is_tensor = ByNode::new(call, is_tensor)?;
    let plan = Splitter::new(options).split(
        call.module,
        call.library.registry(),
        &mut |it| is_supported.get(it).unwrap_or_default(),
        &|it| is_tensor.get(it).unwrap_or_default(),
    )?;
    let place = |it: NodeId| is_tensor.places[it.index()];
    let subgraphs = plan.subgraphs.into_iter().zip(plan.tags).map(|(it, tag)| SubgraphAnswer {
        tag,
        is_acc: it.is_acc,
        nodes: it.nodes.into_iter().map(place).collect(),
    });
    let events = plan.events.into_iter().map(|it| NodeEventAnswer {
        node: place(it.node),
        desc: it.desc,
        dep: it.dep.map(place),
    });
    answer(&SubgraphsAnswer { subgraphs: subgraphs.collect(), events: events.collect() })
}

/// The options of `find_acc_fusions`, whose answer is the places of the nodes of each group.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FusionsCall {
    /// For each node whether the accelerator runs it.
    is_acc: Vec<Option<bool>>,
    /// For each node whether its value is a tensor.
    is_tensor: Vec<Option<bool>>,
}

fn find_acc_fusions(call: &mut PassCall<'_>) -> Result<Value> {
    let FusionsCall { is_acc, is_tensor } = call.options()?;
    let is_acc = ByNode::new(call, is_acc)?;
    let is_tensor = ByNode::new(call, is_tensor)?;
    let graph = &call.module.graph;
    let mut nodes = graph.nodes().filter(|&it| is_acc.get(it).unwrap_or_default()).collect();
    let fusions = tracefx_rewrite::find_acc_fusions(call.module, call.library.registry(), &mut nodes, &|it| {
        is_tensor.get(it).unwrap_or_default()
    });
    let places = |it: Vec<NodeId>| it.into_iter().map(|it| is_acc.places[it.index()]).collect::<Vec<usize>>();
    answer(&fusions.into_iter().map(places).collect::<Vec<_>>())
}

/// The options of `minimize`, which is asked again with one answer more until it asks no further.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct MinimizeCall {
    /// What is looked for.
    #[serde(default)]
    options: MinimizerOptions,
    /// The places of the nodes of each group that is run together.
    #[serde(default)]
    fusions: Vec<Vec<usize>>,
    /// Whether the backends differed for what was asked so far, in order.
    answers: Vec<bool>,
}

/// The answer of `minimize`.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct MinimizeAnswer {
    /// The places of the nodes to be run next; null at the end.
    ask: Option<Vec<usize>>,
    /// At the end, the places of the nodes for which the backends differ.
    culprits: Vec<usize>,
}

fn minimize(call: &mut PassCall<'_>) -> Result<Value> {
    let MinimizeCall { options, fusions, answers } = call.options()?;
    let fusions = nodes_at(call, &fusions)?;
    let places = ByNode::new(call, (0..call.module.graph.len()).map(Some).collect())?;
    let place = |it: &NodeId| places.get(*it).unwrap_or_default();
    // The search is the same as long as the answers are, so it is gone through again up to the first that is not there.
    let mut answers = answers.into_iter();
    let found = tracefx_rewrite::minimize(&call.module.graph, &options, &fusions, &mut |nodes| {
        answers.next().ok_or_else(|| nodes.iter().map(place).collect::<Vec<usize>>())
    });
    answer(&match found {
        Ok(culprits) => MinimizeAnswer { ask: None, culprits: culprits.iter().map(place).collect() },
        Err(ask) => MinimizeAnswer { ask: Some(ask), culprits: vec![] },
    })
}

/// The options of `minimize_submodule`, which answers nothing.
#[derive(Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct MinimizeSubmoduleCall {
    /// The places of the nodes that are to be a part of their own.
    nodes: Vec<usize>,
}

fn minimize_submodule(call: &mut PassCall<'_>) -> Result<Value> {
    let MinimizeSubmoduleCall { nodes } = call.options()?;
    let nodes = nodes_at(call, &[nodes])?;
    *call.module = tracefx_rewrite::minimize_submodule(call.module, call.library.registry(), &nodes[0])?;
    Ok(Value::Null)
}
