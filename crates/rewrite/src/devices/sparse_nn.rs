//! Parts with embeddings alone or with none, for models whose embeddings are most of their bytes.

use super::placement::place;
use super::size_based::no_mapping;
use super::{Device, Links, Partition, SizedGraph, failed, number};
use rustc_hash::FxHashMap;
use tracefx_core::Result;
use tracefx_ir::{Attribute, GraphModule, Opcode};

/// A part, and whether it has the embeddings.
struct Region {
    partition: Partition,
    is_embedding: bool,
}

/// `sparse_nn_partition`: parts as large as a device, embeddings apart from all else, then joined while they fit. Each device
/// has one part of embeddings and all the rest.
pub(super) fn partition(graph: &SizedGraph<'_>, devices: &[Device]) -> Result<Vec<Partition>> {
    let available = devices[0].available_mem_bytes;
    if devices.iter().any(|it| it.available_mem_bytes != available) {
        return Err(failed("All devices must have same memory size!").help("partition by size for devices that differ"));
    }
    let mut regions = regions(graph, available)?;
    combine(graph, &mut regions, available, false);
    combine(graph, &mut regions, available, true);
    let (sparse, dense): (Vec<usize>, Vec<usize>) = (0..regions.len()).partition(|&it| regions[it].is_embedding);
    let mut res: Vec<Partition> = regions.into_iter().map(|it| it.partition).collect();
    number(&mut res);
    if sparse.is_empty() {
        // PyTorch fails here; without embeddings every device is as good as another, and each holds any part.
        let placed = match res.len() <= devices.len() {
            true => devices.iter().map(|it| vec![it.logical_id]).collect(),
            false => place(graph, &res.iter().collect::<Vec<_>>(), devices).ok_or_else(no_mapping)?,
        };
        res.iter_mut().zip(placed).for_each(|(partition, ids)| partition.logical_device_ids = ids);
        return Ok(res);
    }
    let n_devices = devices.len();
    if sparse.len() > n_devices {
        return Err(failed(format!("Need {} devices, but only {n_devices} provided", sparse.len())));
    }
    let n_dense: u64 = dense.iter().map(|&it| res[it].used_mem_bytes).sum();
    let mut occupied = Vec::with_capacity(sparse.len());
    for (&part, device) in sparse.iter().zip(devices) {
        let needed = n_dense + res[part].used_mem_bytes;
        if needed > available {
            let what = format!(
                "partition_{part}(embedding partition) and non embedding partitions can not fit into one device"
            );
            return Err(failed(what).help(format!("together they need {needed} bytes, a device has {available}")));
        }
        res[part].logical_device_ids = vec![device.logical_id];
        occupied.push(device.logical_id);
    }
    dense.iter().for_each(|&it| res[it].logical_device_ids.clone_from(&occupied));
    Ok(res)
}

/// Parts in the order of the graph, each within what a device holds, and with embeddings only or none.
fn regions(graph: &SizedGraph<'_>, available: u64) -> Result<Vec<Region>> {
    let mut is_embedding = EmbeddingModules::new(graph.module());
    let mut res: Vec<Region> = Vec::new();
    for node in graph.calls() {
        let kind = is_embedding.calls_one(graph, node);
        let fits = |it: &Region| {
            let extra = graph.get_extra_size_of(node, |input| it.partition.nodes.contains(&input));
            it.is_embedding == kind && extra + it.partition.used_mem_bytes <= available
        };
        match res.last_mut().filter(|it| fits(it)) {
            Some(last) => last.partition.add_node(graph, node),
            None => {
                let partition = Partition::of(graph, node);
                let needed = partition.used_mem_bytes;
                if needed > available {
                    let target = graph.module().graph.node(graph.node(node)).target();
                    return Err(failed(format!("{target} is too large to fit into a device"))
                        .node(graph.name(node))
                        .help(format!("it needs {needed} bytes with its inputs, a device has {available}")));
                }
                res.push(Region { partition, is_embedding: kind });
            }
        }
    }
    Ok(res)
}

/// Joins the smallest part of a kind with the largest with which it fits, as long as it fits with any.
fn combine(graph: &SizedGraph<'_>, regions: &mut Vec<Region>, available: u64, is_embedding: bool) {
    loop {
        let partitions: Vec<&Partition> = regions.iter().map(|it| &it.partition).collect();
        // Parts in the order of the graph are in no circle, nor are they when neighbours by level are joined.
        let Some(levels) = Links::of(graph, &partitions).bfs_levels() else { return };
        let mut of_kind: Vec<usize> =
            (0..regions.len()).filter(|&it| regions[it].is_embedding == is_embedding).collect();
        of_kind.sort_by_key(|&it| partitions[it].used_mem_bytes);
        let Some((&smallest, others)) = of_kind.split_first() else { return };
        let near = others.iter().rev().filter(|&&it| levels[it].abs_diff(levels[smallest]) <= 1);
        let joined = near.map(|&it| (it, Partition::union(graph, partitions[it], partitions[smallest])));
        let Some((other, partition)) = joined.into_iter().find(|(_, it)| it.used_mem_bytes <= available) else {
            return;
        };
        regions.remove(other.max(smallest));
        regions.remove(other.min(smallest));
        regions.push(Region { partition, is_embedding });
    }
}

/// Which modules are embeddings, or have some in them, by their paths.
struct EmbeddingModules<'a> {
    module: &'a GraphModule,
    known: FxHashMap<&'a str, bool>,
}

impl<'a> EmbeddingModules<'a> {
    fn new(module: &'a GraphModule) -> Self {
        EmbeddingModules { module, known: FxHashMap::default() }
    }

    /// Whether a call is one of an embedding. As in PyTorch, that is what a module calls that has an embedding anywhere below
    /// the first name of its path.
    fn calls_one(&mut self, graph: &SizedGraph<'a>, place: usize) -> bool {
        let node = self.module.graph.node(graph.node(place));
        if node.op() != Opcode::CallModule {
            return false;
        }
        let first = node.target().split('.').next().unwrap_or_default();
        let module = self.module;
        *self.known.entry(first).or_insert_with(|| module.submodule(first).is_ok_and(has_embedding))
    }
}

fn has_embedding(module: &GraphModule) -> bool {
    let mut open = vec![module];
    while let Some(module) = open.pop() {
        if module.class_name.contains("Embedding") {
            return true;
        }
        open.extend(module.attributes.values().filter_map(|it| match it {
            Attribute::Module(child) => Some(&**child),
            Attribute::Tensor { .. } | Attribute::Fake { .. } => None,
        }));
    }
    false
}
