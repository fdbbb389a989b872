//! Effect tokens: values that carry nothing and keep calls with effects in order.
//!
//! A call with an effect is `with_effects(token, op, *args)` in a functional program, and gives the next token before its
//! results. A graph that runs from top to bottom needs no tokens: PyTorch takes them out of what `module()` gives as well.

use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Graph, InsertPoint, NodeId, Opcode, Val};
use tracefx_ops::Registry;

/// Calls what `with_effects` calls directly, so that nothing uses the tokens but what returns them.
///
/// # Errors
/// `GraphInvalid` where a call does not say what it calls, or a result is taken that the operator does not have;
/// `NotImplemented` where the operator is not known.
pub(crate) fn remove_effect_tokens(graph: &mut Graph, registry: &Registry) -> Result<()> {
    let calls: Vec<NodeId> = graph.find_nodes(Opcode::CallFunction, "torch.ops.higher_order.with_effects").collect();
    for id in calls {
        let name = graph.node(id).name().clone();
        remove_token(graph, registry, id).map_err(|problem| problem.node(&*name))?;
    }
    Ok(())
}

fn remove_token(graph: &mut Graph, registry: &Registry, id: NodeId) -> Result<()> {
    let invalid = |what: &str| Diagnostic::new(Code::GraphInvalid, what);
    let node = graph.node(id);
    let [token, Arg::Op(target), args @ ..] = node.args() else {
        return Err(invalid("with_effects takes a token and an operator"));
    };
    let (token, target, args, kwargs) = (token.clone(), target.clone(), args.to_vec(), node.kwargs().to_vec());
    let n_results = registry.require(&target)?.schema.returns.len();
    let before = graph.set_insert_point(InsertPoint::Before(id))?;
    let call = graph.create_node(Opcode::CallFunction, &target, args, kwargs, None)?;
    graph.set_insert_point(before)?;
    let mut meta = graph.node(id).meta.clone();
    meta.val = meta.val.map(|it| without_token(it, n_results));
    *graph.meta_mut(call) = meta;
    for user in graph.users(id).iter().collect::<Vec<_>>() {
        let &[_, Arg::Int(index)] = graph.node(user).args() else {
            return Err(invalid("the results of with_effects are taken one by one"));
        };
        let value = match (index, n_results) {
            (0, _) => token.as_node().ok_or_else(|| invalid("a token is no node"))?,
            (1, 0) if graph.users(user).is_empty() => {
                graph.erase_node(user)?;
                continue;
            }
            (1, 1) => call,
            (_, _) => {
                graph.set_args(user, vec![Arg::Node(call), Arg::Int(index - 1)])?;
                continue;
            }
        };
        graph.replace_all_uses_with(user, value, &mut |_, _| true)?;
        graph.erase_node(user)?;
    }
    graph.erase_node(id)
}

/// What is known of the results of a call, of the results with a token before them.
fn without_token(val: Val, n_results: usize) -> Val {
    match (val, n_results) {
        (Val::Seq { mut items, .. }, 1) if items.len() > 1 => items.swap_remove(1),
        (Val::Seq { items, is_tuple }, 2..) if !items.is_empty() => Val::Seq { items: items[1..].to_vec(), is_tuple },
        (_, _) => Val::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ops::{CustomOp, registry};

    #[test]
    fn operators_of_ones_own_are_called_without_tokens() {
        let mut graph = Graph::new();
        let [token, x] = ["token", "x"].map(|it| graph.placeholder(it));
        let say = Arg::Op("torch.ops.mine.say.default".into());
        let args = vec![token.into(), say, x.into()];
        let call = graph.call_function("torch.ops.higher_order.with_effects", args, vec![]);
        let items = [0, 1].map(|it| graph.call_function("operator.getitem", vec![call.into(), Arg::Int(it)], vec![]));
        graph.output(Arg::Tuple(items.map(Arg::Node).to_vec()));
        assert_eq!(remove_effect_tokens(&mut graph.clone(), registry()).unwrap_err().code(), Code::NotImplemented);
        let mut operators = registry().clone();
        operators.define(CustomOp::new("mine::say(Tensor x) -> Tensor").unwrap()).unwrap();
        remove_effect_tokens(&mut graph, &operators).unwrap();
        let targets: Vec<&str> = graph.nodes().map(|it| &**graph.node(it).target()).collect();
        assert_eq!(targets, ["token", "x", "torch.ops.mine.say.default", "output"]);
    }
}
