use crate::case::{Case, Check, same_error, submodules};
use crate::compare::same_graph;
use serde_json::{Value, json};
use tracefx_core::Code;
use tracefx_rewrite::{SplitOptions, split_module};

/// The parts, the graph that calls them, and what became of the paths of modules.
pub(crate) fn check(case: &Case) -> Check {
    let module = case.module();
    let flag = |name: &str, default: bool| case.option(name).as_bool().unwrap_or(default);
    let options = SplitOptions {
        keep_original_order: flag("keep_original_order", false),
        keep_original_node_name: flag("keep_original_node_name", false),
        keep_original_input_name: flag("keep_original_input_name", true),
        partition_affix: case.option("partition_affix").as_str().map(Into::into),
        tuple_return: flag("tuple_return", false),
    };
    let partitions = case.option("partition_of");
    let mut partition_of =
        |it| partitions[&**module.graph.node(it).name()].as_i64().expect("each call has a partition");
    let split = match split_module(&module, tracefx_ops::registry(), &mut partition_of, &options) {
        Ok(split) => split,
        Err(problem) => return same_error(case, &problem, Code::PartitionCycle),
    };
    same_graph(&split.module.graph, case.get("after"), "after")?;
    submodules(case, &split.module, &|name| split.partition_names.iter().any(|it| it == name))?;
    let paths = Value::from_iter(split.qualname_map.iter().map(|(now, before)| (now.clone(), json!(&**before))));
    if paths != *case.get("qualname_map") {
        return Err(format!("qualname_map is {paths} instead of {}", case.get("qualname_map")));
    }
    Ok(())
}
