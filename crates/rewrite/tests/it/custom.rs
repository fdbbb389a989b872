//! Passes see the operators of the registry that they are given: what one of a user's own reads, writes and gives.

use crate::build::module;
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Opcode};
use tracefx_ops::{CustomOp, Registry, registry};
use tracefx_rewrite::{
    CapabilityBasedPartitioner, CsePass, PartitionerOptions, Pass, SplitOptions, Splitter, SplitterOptions,
    find_acc_fusions, legalize_graph, minimize_submodule, split_by_tags, split_module,
};

/// The operators, with `mine.pure`, `mine.pair`, which gives two tensors, and `mine.write_`, which writes to its argument.
fn operators() -> Registry {
    let mut res = registry().clone();
    for schema in [
        "mine::pure(Tensor x) -> Tensor",
        "mine::pair(Tensor x) -> (Tensor, Tensor)",
        "mine::write_(Tensor(a!) x) -> Tensor(a!)",
    ] {
        res.define(CustomOp::new(schema).unwrap()).unwrap();
    }
    res
}

fn call(graph: &mut Graph, name: &str, input: NodeId) -> NodeId {
    graph.call_function(&format!("torch.ops.{name}.default"), vec![input.into()], vec![])
}

/// Two calls of an operator on the same tensor, with nothing between them.
fn twice(name: &str) -> (GraphModule, [NodeId; 2]) {
    let mut calls = vec![];
    let module = module(|graph| {
        let x = graph.placeholder("x");
        calls = vec![call(graph, name, x), call(graph, name, x)];
        Arg::Tuple(calls.iter().map(|it| (*it).into()).collect())
    });
    (module, [calls[0], calls[1]])
}

#[test]
fn equal_calls_are_merged_unless_the_operator_writes() {
    let operators = operators();
    for (name, left) in [("mine.pure", 1), ("mine.write_", 2), ("mine.unknown", 2)] {
        let (mut module, _) = twice(name);
        CsePass::new(&operators).call(&mut module).unwrap();
        let target = format!("torch.ops.{name}.default");
        assert_eq!(module.graph.find_nodes(Opcode::CallFunction, &target).count(), left, "{name}");
    }
}

/// The second of two calls is given to the first part. Only a write keeps the calls in order.
#[test]
fn parts_keep_the_order_of_calls_that_write_alone() {
    let operators = operators();
    for (name, is_free) in [("mine.pure", true), ("mine.write_", false), ("mine.unknown", false)] {
        let (module, [first, second]) = twice(name);
        let tags = ["early", "late"].map(String::from);
        let by_tags = split_by_tags(&module, &operators, &tags, &|it| Some(usize::from(it == first)), false);
        assert_eq!(by_tags.is_ok(), is_free, "{name}");
        let minimized = minimize_submodule(&module, &operators, &[second]);
        assert!(minimized.is_ok(), "{name}");

        let split = split_module(&module, &operators, &mut |it| i64::from(it == second), &SplitOptions::default());
        let graph = split.unwrap().module.graph;
        let calls: Vec<&str> = graph
            .nodes()
            .map(|it| graph.node(it))
            .filter(|it| it.op() == Opcode::CallModule)
            .map(|it| &**it.target())
            .collect();
        // The part that was ready last is called first.
        assert_eq!(calls, if is_free { ["submod_1", "submod_0"] } else { ["submod_0", "submod_1"] }, "{name}");
    }
}

/// A call that the backend does not support stands between two that it does.
fn between(name: &str) -> (GraphModule, [NodeId; 3]) {
    let mut calls = vec![];
    let module = module(|graph| {
        let x = graph.placeholder("x");
        calls = ["aten.neg", name, "aten.abs"].iter().map(|it| call(graph, it, x)).collect();
        Arg::Tuple(calls.iter().map(|it| (*it).into()).collect())
    });
    (module, [calls[0], calls[1], calls[2]])
}

#[test]
fn what_a_call_that_writes_tells_apart_comes_into_no_part_together() {
    let operators = operators();
    for (name, n_parts) in [("mine.pure", 1), ("mine.write_", 2), ("mine.unknown", 2)] {
        let (module, [neg, _, abs]) = between(name);
        let options = PartitionerOptions { allows_single_node_partition: true, ..PartitionerOptions::default() };
        let partitioner = CapabilityBasedPartitioner::new(&operators, options);
        let partitions = partitioner.propose_partitions(&module, &mut |it| it == neg || it == abs);
        assert_eq!(partitions.len(), n_parts, "{name}");

        let plan = Splitter::new(SplitterOptions::default()).split(
            &module,
            &operators,
            &mut |it| it == neg || it == abs,
            &|_| true,
        );
        assert_eq!(plan.unwrap().subgraphs.iter().filter(|it| it.is_acc).count(), n_parts, "{name}");
        let mut acc = [neg, abs].into_iter().collect();
        assert!(find_acc_fusions(&module, &operators, &mut acc, &|_| true).is_empty());
    }
}

/// Sorted breadth first, what uses nothing but inputs comes before what uses a call. What writes stays where it is.
#[test]
fn a_call_that_writes_stays_where_it_is_when_the_graph_is_sorted() {
    let operators = operators();
    for (name, is_moved) in [("mine.pure", true), ("mine.write_", false), ("mine.unknown", false)] {
        let mut calls = vec![];
        let mut module = module(|graph| {
            let x = graph.placeholder("x");
            let neg = call(graph, "aten.neg", x);
            let abs = call(graph, "aten.abs", neg);
            calls = vec![neg, abs, call(graph, name, x)];
            Arg::Tuple(calls.iter().map(|it| (*it).into()).collect())
        });
        legalize_graph(&mut module, &operators).unwrap();
        let order = module.graph.compare(calls[2], calls[1]);
        assert_eq!(order == std::cmp::Ordering::Less, is_moved, "{name}");
    }
}

/// Items of several results are taken out without reading memory, so that they are free of a later write to the input.
#[test]
fn items_of_several_results_read_no_memory() {
    let operators = operators();
    for (name, is_free) in [("mine.pair", true), ("mine.unknown", false)] {
        let mut calls = vec![];
        let module = module(|graph| {
            let x = graph.placeholder("x");
            let pair = call(graph, name, x);
            let item = graph.call_function("operator.getitem", vec![pair.into(), Arg::Int(1)], vec![]);
            let written = call(graph, "mine.write_", item);
            let other = graph.call_function("operator.getitem", vec![pair.into(), Arg::Int(0)], vec![]);
            calls = vec![pair, item, written, other];
            Arg::Tuple(vec![other.into()])
        });
        let tags = ["early", "late"].map(String::from);
        let late = calls[2];
        let split = split_by_tags(&module, &operators, &tags, &|it| Some(usize::from(it == late)), false);
        assert_eq!(split.is_ok(), is_free, "{name}");
    }
}
