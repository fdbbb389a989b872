use crate::case::{Case, Check, submodules};
use crate::compare::same_graph;
use serde_json::{Value, json};
use tracefx_rewrite::{CapabilityBasedPartitioner, PartitionerOptions};

/// The partitions of what is supported, and the graph that calls them.
pub(crate) fn check(case: &Case) -> Check {
    let mut module = case.module();
    let flag = |name: &str| case.option(name) == true;
    let partitioner = CapabilityBasedPartitioner::new(
        tracefx_ops::registry(),
        PartitionerOptions {
            allows_single_node_partition: flag("allows_single_node_partition"),
            skip_horizontal_fusion: flag("skip_horizontal_fusion"),
            ..PartitionerOptions::default()
        },
    );
    let graph = &module.graph;
    let supported = case.option("supported").as_array().expect("names");
    let mut is_supported = |it| supported.iter().any(|name| name == &**graph.node(it).name());
    let partitions = partitioner.propose_partitions(&module, &mut is_supported);
    let named = partitions.iter().map(|it| {
        let nodes: Vec<&str> = it.nodes.iter().map(|&node| &**graph.node(node).name()).collect();
        json!({ "id": it.id, "nodes": nodes })
    });
    let named: Value = named.collect();
    if named != *case.get("partitions") {
        return Err(format!("the partitions are\n{named}\ninstead of\n{}", case.get("partitions")));
    }
    if case.get("after").is_null() {
        return Ok(());
    }
    partitioner.fuse_partitions(&mut module, &partitions, "fused_").map_err(|it| it.to_string())?;
    same_graph(&module.graph, case.get("after"), "after")?;
    submodules(case, &module, &|name| name.starts_with("fused_"))
}
