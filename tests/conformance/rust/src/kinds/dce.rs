use crate::case::{Case, Check};
use crate::compare::same_graph;
use serde_json::Value;
use tracefx_ir::Node;
use tracefx_ops::registry;

/// Dead code, by the rule that stands for any graph or by one that the case gives.
pub(crate) fn check(case: &Case) -> Check {
    let mut module = case.module();
    let eliminated = match case.option("impure_targets") {
        Value::Null => tracefx_rewrite::eliminate_dead_code(&mut module, registry()).map(|it| it.modified),
        targets => module.graph.eliminate_dead_code(&|node| is_kept(node, targets, case.option("impure_ops"))),
    };
    eliminated.map_err(|it| it.to_string())?;
    same_graph(&module.graph, case.get("after"), "after")
}

fn is_kept(node: &Node, targets: &Value, ops: &Value) -> bool {
    let holds = |list: &Value, it: &str| list.as_array().is_some_and(|list| list.iter().any(|item| item == it));
    holds(targets, node.target()) || holds(ops, node.op().name())
}
