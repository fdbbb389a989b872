//! Passes that take a graph apart.

use super::{Declare, HostPass, PassCall};
use serde::Deserialize;
use serde_json::json;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::NodeId;
use tracefx_rewrite::{CapabilityBasedPartitioner, Partition, PartitionerOptions, SplitOptions};

pub(super) const PASSES: &[HostPass] = &[
    HostPass { name: "split_module", run: split_module },
    HostPass { name: "propose_partitions", run: propose_partitions },
    HostPass { name: "remove_bookend_non_compute_ops", run: remove_bookend_non_compute_ops },
    HostPass { name: "fuse_by_partitions", run: fuse_by_partitions },
    HostPass {
        name: "legalize_graph",
        run: |call| tracefx_rewrite::legalize_graph(&mut call.module.graph).map(|()| json!(null)),
    },
    HostPass {
        name: "stable_topological_sort",
        run: |call| tracefx_rewrite::stable_topological_sort(&mut call.module.graph).map(|()| json!(null)),
    },
];

pub(super) const TYPES: &[Declare] = &[];

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SplitCall {
    /// For each node its part; what is said of inputs, attributes and the output does not matter.
    partition_of: Vec<Option<i64>>,
    #[serde(default)]
    options: SplitOptions,
}

/// Answers `{ partitionNames, qualnameMap }`.
fn split_module(call: &mut PassCall<'_>) -> Result<serde_json::Value> {
    let SplitCall { partition_of, options } = call.options()?;
    let partition_of = ByNode::new(call, partition_of)?;
    let split =
        tracefx_rewrite::split_module(call.module, &mut |it| partition_of.get(it).unwrap_or_default(), &options)?;
    *call.module = split.module;
    let paths = split.qualname_map.iter().map(|(now, before)| (now.clone(), json!(&**before)));
    Ok(json!({ "partitionNames": split.partition_names, "qualnameMap": serde_json::Value::from_iter(paths) }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ProposeCall {
    is_supported: Vec<Option<bool>>,
    #[serde(default)]
    options: PartitionerOptions,
}

/// Answers the partitions: `[{ id, nodes }]`.
fn propose_partitions(call: &mut PassCall<'_>) -> Result<serde_json::Value> {
    let ProposeCall { is_supported, options } = call.options()?;
    let is_supported = ByNode::new(call, is_supported)?;
    let partitions = CapabilityBasedPartitioner::new(options)
        .propose_partitions(&call.module.graph, &mut |it| is_supported.get(it).unwrap_or_default());
    let places = |it: Partition| {
        let nodes: Vec<usize> = it.nodes.into_iter().map(|node| is_supported.places[node.index()]).collect();
        json!({ "id": it.id, "nodes": nodes })
    };
    Ok(partitions.into_iter().map(places).collect())
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BookendCall {
    partitions: Vec<Vec<usize>>,
    #[serde(default)]
    options: PartitionerOptions,
}

/// Answers the places of the nodes that stay, for each partition.
fn remove_bookend_non_compute_ops(call: &mut PassCall<'_>) -> Result<serde_json::Value> {
    let BookendCall { partitions: places, options } = call.options()?;
    let nodes = nodes_at(call, &places)?;
    let mut partitions: Vec<Partition> =
        nodes.iter().cloned().enumerate().map(|(id, nodes)| Partition { id, nodes }).collect();
    CapabilityBasedPartitioner::new(options).remove_bookend_non_compute_ops(&call.module.graph, &mut partitions);
    let kept = partitions.iter().zip(&nodes).zip(&places).map(|((kept, nodes), places)| {
        // Nodes keep their order, so what stays is found in one walk.
        let mut kept = kept.nodes.iter().peekable();
        let stays = nodes.iter().zip(places).filter(|(node, _)| kept.next_if_eq(node).is_some());
        stays.map(|(_, &place)| place).collect::<Vec<_>>()
    });
    Ok(json!(kept.collect::<Vec<_>>()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FuseCall {
    partitions: Vec<Vec<usize>>,
    prefix: String,
    #[serde(default)]
    always_return_tuple: bool,
}

/// Answers the names of the modules.
fn fuse_by_partitions(call: &mut PassCall<'_>) -> Result<serde_json::Value> {
    let FuseCall { partitions, prefix, always_return_tuple } = call.options()?;
    let partitions = nodes_at(call, &partitions)?;
    let names = tracefx_rewrite::fuse_by_partitions(call.module, &partitions, &prefix, always_return_tuple)?;
    Ok(json!(names))
}
