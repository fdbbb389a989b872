use crate::case::{Case, Check};
use crate::compare::same_graph;
use tracefx_ops::registry;
use tracefx_rewrite::{FoldRules, split_const_subgraphs};

/// What depends on constants alone, and the graph that is left.
pub(crate) fn check(case: &Case) -> Check {
    let mut module = case.module();
    let rules = FoldRules { registry: registry(), is_skipped: &|_| false, is_impure: &|_| false };
    let folded = split_const_subgraphs(&mut module, &rules).map_err(|it| it.to_string())?;
    same_graph(&module.graph, case.get("after"), "after")?;
    if let Some(problem) = module.graph.lint(Some(&module)).into_iter().next() {
        return Err(problem.to_string());
    }
    let name = folded.as_ref().map(|it| it.attrs_name.as_str());
    if name != case.get("folded_attrs").as_str() {
        return Err(format!("the attribute is {name:?} instead of {}", case.get("folded_attrs")));
    }
    folded.map_or(Ok(()), |it| same_graph(&it.const_subgraph.graph, case.get("const_subgraph"), "const_subgraph"))
}
