//! Graphs that are long, wide or deep: an answer, or a typed error, and never the end of the stack.

use super::run;
use serde_json::{Value as Json, json};
use tracefx_core::Code;
use tracefx_ir::{Arg, Graph, GraphModule};

/// The nodes of a long graph: too many for the stack of a walk that calls itself, and a million in a nightly run, by
/// `TRACEFX_NODES`.
fn long() -> usize {
    std::env::var("TRACEFX_NODES").ok().and_then(|it| it.parse().ok()).unwrap_or(100_000)
}

fn chain(n_nodes: usize) -> GraphModule {
    let mut graph = Graph::new();
    let mut last = graph.placeholder("x");
    for at in 0..n_nodes {
        let target = if at % 2 == 0 { "torch.ops.aten.sin.default" } else { "torch.ops.aten.neg.default" };
        last = graph.call_function(target, vec![last.into()], vec![]);
    }
    graph.output(last.into());
    GraphModule::new(graph)
}

/// Passes that take no options but these.
fn passes(n_nodes: usize) -> Vec<(&'static str, Json)> {
    let by_place = |of: &dyn Fn(usize) -> Json| (0..n_nodes).map(of).collect::<Vec<_>>();
    vec![
        ("eliminate_dead_code", json!({})),
        ("CSEPass", json!({})),
        ("legalize_graph", json!({})),
        ("stable_topological_sort", json!({})),
        ("NormalizeArgs", json!({})),
        ("annotate_getitem_nodes", json!({})),
        ("split_module", json!({ "partitionOf": by_place(&|it| json!(it * 4 / n_nodes)) })),
        ("propose_partitions", json!({ "isSupported": by_place(&|it| json!(it % 7 != 0)) })),
        ("split_const_subgraphs", json!({})),
        ("constant_fold", json!({})),
        ("merge_matmul", json!({})),
        ("fuse_batch_norm", json!({})),
        ("insert_deferred_runtime_asserts", json!({})),
    ]
}

#[test]
fn a_long_chain_goes_through_every_pass() {
    let module = chain(long());
    for (name, options) in passes(module.graph.len()) {
        let mut copy = module.clone();
        run(&mut copy, name, options).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    }
}

#[test]
fn a_value_with_very_many_users_takes_no_longer_than_many_values() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let copies: Vec<Arg> = (0..100_000)
        .map(|_| Arg::Node(graph.call_function("torch.ops.aten.sin.default", vec![x.into()], vec![])))
        .collect();
    graph.output(Arg::Tuple(copies));
    let mut module = GraphModule::new(graph);
    run(&mut module, "CSEPass", json!({})).unwrap();
    assert_eq!(module.graph.len(), 3);
}

#[test]
fn arguments_nested_too_deep_are_refused_where_they_are_given() {
    let nested = |depth: usize| (0..depth).fold(Arg::Int(1), |inner, _| Arg::List(vec![inner]));
    let mut graph = Graph::new();
    for depth in [10_000, Arg::MAX_DEPTH + 1] {
        let refused =
            graph.create_node(tracefx_ir::Opcode::CallFunction, "torch.add", vec![nested(depth)], vec![], None);
        assert_eq!(refused.unwrap_err().code(), Code::LimitExceeded);
    }
    for _ in 0..2 {
        graph.call_function("torch.add", vec![nested(Arg::MAX_DEPTH)], vec![]);
    }
    let mut module = GraphModule::new(graph);
    for (name, options) in passes(2) {
        if let Err(problem) = run(&mut module.clone(), name, options) {
            assert!(!problem.message().is_empty(), "{name}");
        }
    }
    run(&mut module, "CSEPass", json!({})).unwrap();
    assert_eq!(module.graph.len(), 1);
}
