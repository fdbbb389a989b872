use crate::case::{Case, Check, refused, same_graphs};
use serde_json::Value;
use tracefx_core::Code;
use tracefx_ir::Node;
use tracefx_ops::registry;
use tracefx_rewrite::{DeadCodeOptions, eliminate_dead_code};

/// Dead code, by the rule that stands for any graph or by one that the case gives.
pub(crate) fn check(case: &Case) -> Check {
    let mut module = case.module();
    let eliminated = match case.option("impure_targets") {
        Value::Null => eliminate_dead_code(&mut module, registry(), &DeadCodeOptions::default()).map(|it| it.modified),
        targets => module.graph.eliminate_dead_code(&|_, node| is_kept(node, targets, case.option("impure_ops"))),
    };
    if !case.get("error").is_null() {
        return refused(eliminated, Code::GraphInvalid);
    }
    let is_changed = eliminated.map_err(|it| it.to_string())?;
    if *case.get("changed") != Value::Bool(is_changed) {
        return Err(format!("changed is {is_changed}"));
    }
    same_graphs(&module, case.get("after"))
}

fn is_kept(node: &Node, targets: &Value, ops: &Value) -> bool {
    let holds = |list: &Value, it: &str| list.as_array().is_some_and(|list| list.iter().any(|item| item == it));
    let is_kept_op = match ops {
        Value::Null => ["placeholder", "output"].contains(&node.op().name()),
        ops => holds(ops, node.op().name()),
    };
    is_kept_op || holds(targets, node.target())
}
