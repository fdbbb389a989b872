use crate::case::{Case, Check, same_error};
use crate::compare::same_graph;
use tracefx_core::Code;
use tracefx_ir::GraphModule;
use tracefx_rewrite::{legalize_graph, stable_topological_sort};
use tracefx_testing::build;

/// The order of a graph once it is sorted.
pub(crate) fn check(case: &Case) -> Check {
    let mut module = GraphModule::new(build(case.get("before")));
    let sorted = match case.get("pass").as_str() {
        Some("legalize_graph") => legalize_graph(&mut module, tracefx_ops::registry()),
        _ => stable_topological_sort(&mut module.graph),
    };
    if let Err(problem) = sorted {
        return same_error(case, &problem, Code::GraphInvalid);
    }
    same_graph(&module.graph, case.get("after"), "after")?;
    module.graph.lint(None).into_iter().next().map_or(Ok(()), |it| Err(it.to_string()))
}
