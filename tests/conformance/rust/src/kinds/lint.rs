use crate::case::{Case, Check};
use tracefx_core::{Code, Result};
use tracefx_ir::{Graph, NodeId, Opcode};
use tracefx_testing::build;

/// What is wrong with a graph.
pub(crate) fn check(case: &Case) -> Check {
    match refused_earlier(case.name()) {
        Some((Err(problem), code)) if problem.code() == code => return Ok(()),
        Some((outcome, code)) => return Err(format!("{outcome:?} instead of a refusal with {code:?}")),
        None => {}
    }
    if ["args_not_a_tuple", "call_method_with_function_target"].contains(&case.name()) {
        // The types of Rust refuse it.
        return Ok(());
    }
    // A graph and the module that is to hold it; PyTorch refuses some when the module is made, here lint does.
    let module = case.module();
    let problem = build(case.get("before")).lint(Some(&module)).into_iter().next();
    let recorded = case.get("error")["msg"].as_str().and_then(|it| it.lines().next());
    match (problem, recorded) {
        (None, None) => Ok(()),
        (Some(ours), Some(theirs)) if theirs.starts_with("Argument") && ours.message() == theirs => Ok(()),
        (Some(ours), Some(theirs)) if !theirs.starts_with("Argument") && ours.code() == Code::AttributeMissing => {
            Ok(())
        }
        (ours, theirs) => Err(format!("{ours:?} instead of {theirs:?}")),
    }
}

/// Cases in which an earlier check refuses what they build, and how it is told.
fn refused_earlier(name: &str) -> Option<(Result<NodeId>, Code)> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    match name {
        "argument_of_another_graph" => {
            let mut other = Graph::new();
            other.placeholder("y");
            let foreign = other.placeholder("z");
            Some((
                graph.create_node(Opcode::CallFunction, "torch.relu", vec![foreign.into()], vec![], None),
                Code::NodeForeign,
            ))
        }
        "two_nodes_with_one_name" => Some((
            graph.create_named_node(Opcode::CallFunction, "torch.neg", vec![x.into()], vec![], "x"),
            Code::GraphInvalid,
        )),
        _ => None,
    }
}
