use proptest::prelude::*;
use std::cmp::Ordering;
use tracefx_ir::{Arg, Graph, InsertPoint, Node, NodeId, Opcode};

/// One edit; the numbers pick nodes, modulo how many there are.
#[derive(Clone, Copy, Debug)]
struct Edit {
    verb: u8,
    node: usize,
    other: usize,
    shape: u8,
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = (0u8..14, any::<usize>(), any::<usize>(), any::<u8>());
    proptest::collection::vec(edit.prop_map(|(verb, node, other, shape)| Edit { verb, node, other, shape }), 1..80)
}

/// Arguments over two nodes, with every kind of container.
fn some_args(shape: u8, a: NodeId, b: NodeId) -> Vec<Arg> {
    let (a, b) = (Arg::Node(a), Arg::Node(b));
    match shape % 6 {
        0 => vec![],
        1 => vec![a.clone(), a],
        2 => vec![Arg::List(vec![a, Arg::Tuple(vec![b])]), Arg::Int(1)],
        3 => vec![Arg::Dict(vec![("a".into(), a), ("b".into(), b)])],
        4 => vec![Arg::Slice(Box::new([a, Arg::None, b]))],
        _ => vec![b, Arg::Float(1.0), a],
    }
}

fn apply(graph: &mut Graph, it: Edit) {
    let nodes: Vec<NodeId> = graph.nodes().collect();
    let (node, other) = (nodes[it.node % nodes.len()], nodes[it.other % nodes.len()]);
    let args = some_args(it.shape, node, other);
    let done = match it.verb {
        0 => graph.create_node(Opcode::CallFunction, "torch.cat", args, vec![], None).map(|_| ()),
        1 | 2 => {
            let point = if it.verb == 1 { InsertPoint::Before(other) } else { InsertPoint::After(other) };
            graph.set_insert_point(point).expect("the node is of this graph");
            graph.call_function("torch.add", args, vec![]);
            graph.call_function("torch.sub", vec![], vec![("out".into(), Arg::Node(node))]);
            graph.set_insert_point(InsertPoint::End).map(|_| ())
        }
        3 => graph.set_args(node, args),
        4 => graph.set_kwargs(node, vec![("dim".into(), Arg::List(args))]),
        5 => graph.insert_arg(node, it.shape as usize % (graph.node(node).args().len() + 1), Arg::Node(other)),
        6 => graph.update_kwarg(node, "dim", Arg::Node(other)),
        7 => graph.replace_input_with(node, other, node),
        8 => graph.replace_all_uses_with(node, other, &mut |_, user| user.index() % 3 != 0).map(|_| ()),
        9 => graph.move_before(node, other),
        10 => graph.move_after(node, other),
        11 => {
            graph.rename(node, ["a", "a_1", "sum", "x y"][it.shape as usize % 4]);
            Ok(())
        }
        12 if graph.users(node).is_empty() && nodes.len() > 3 => graph.erase_node(node),
        12 => Ok(()),
        _ => {
            let source = graph.node(node).clone();
            graph.node_copy(&source, &mut Arg::Node).map(|_| ())
        }
    };
    done.expect("the edit is allowed");
}

fn edited(edits: &[Edit], mut check: impl FnMut(&Graph)) {
    let mut graph = Graph::new();
    let inputs = ["x", "y", "z"].map(|name| Arg::Node(graph.placeholder(name)));
    graph.output(Arg::Tuple(inputs.to_vec()));
    for it in edits {
        apply(&mut graph, *it);
        check(&graph);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 4,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn users_are_the_nodes_whose_arguments_name_the_node(edits in edits()) {
        edited(&edits, |graph| {
            for node in graph.nodes() {
                let mut users: Vec<NodeId> = graph.users(node).iter().collect();
                assert_eq!(users.len(), graph.users(node).len());
                users.sort();
                let mut wanted: Vec<NodeId> =
                    graph.nodes().filter(|&it| graph.node(it).all_input_nodes().contains(&node)).collect();
                wanted.sort();
                assert_eq!(users, wanted);
            }
        });
    }

    #[test]
    fn comparison_and_both_directions_agree_with_the_list(edits in edits()) {
        edited(&edits, |graph| {
            let nodes: Vec<NodeId> = graph.nodes().collect();
            let mut reversed: Vec<NodeId> = graph.nodes().rev().collect();
            reversed.reverse();
            assert_eq!(reversed, nodes);
            assert_eq!(graph.len(), nodes.len());
            for pair in nodes.windows(2) {
                assert_eq!(graph.compare(pair[0], pair[1]), Ordering::Less);
                assert_eq!((graph.next(pair[0]), graph.prev(pair[1])), (Some(pair[1]), Some(pair[0])));
            }
        });
    }

    #[test]
    fn lint_finds_exactly_the_uses_before_a_definition(edits in edits()) {
        edited(&edits, |graph| {
            let nodes: Vec<NodeId> = graph.nodes().collect();
            let early: usize = nodes
                .iter()
                .enumerate()
                .map(|(at, &it)| graph.node(it).all_input_nodes().iter().filter(|&input| nodes[at..].contains(input)).count())
                .sum();
            assert_eq!(graph.lint(None).len(), early);
        });
    }

    #[test]
    fn compacting_changes_ids_only(edits in edits()) {
        edited(&edits, |graph| {
            let compact = graph.compacted();
            assert_eq!(compact.to_string(), graph.to_string());
            assert_eq!(compact.id_bound(), graph.len());
            assert!(compact.nodes().enumerate().all(|(at, it)| it.index() == at));
            for (a, b) in compact.nodes().zip(graph.nodes()) {
                let names = |graph: &Graph, it| crate::corpus::names(graph, graph.users(it).iter());
                assert_eq!(names(&compact, a), names(graph, b));
            }
        });
    }
}

#[test]
fn a_walk_survives_edits() {
    let mut graph = Graph::new();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| graph.placeholder(name));
    let mut walked = vec![];
    let mut at = graph.first();
    while let Some(node) = at {
        walked.push(graph.node(node).name().to_string());
        if node == b {
            graph.set_insert_point(InsertPoint::After(b)).expect("b is there");
            graph.placeholder("after");
            graph.set_insert_point(InsertPoint::Before(b)).expect("b is there");
            graph.placeholder("before");
            for it in [a, b, c] {
                graph.erase_node(it).expect("nothing uses it");
            }
        }
        at = graph.next(node);
    }
    assert_eq!(walked, ["a", "b", "after", "d"]);
    assert_eq!(crate::corpus::names(&graph, graph.nodes()), ["before", "after", "d"]);
    assert!(graph.contains(d) && !graph.contains(b));
}

#[test]
fn an_insertion_point_outlives_its_node() {
    let mut graph = Graph::new();
    let [a, b] = ["a", "b"].map(|name| graph.placeholder(name));
    graph.set_insert_point(InsertPoint::After(a)).expect("a is there");
    graph.erase_node(a).expect("nothing uses it");
    graph.placeholder("c");
    graph.set_insert_point(InsertPoint::Before(b)).expect("b is there");
    graph.erase_node(b).expect("nothing uses it");
    graph.placeholder("d");
    assert_eq!(crate::corpus::names(&graph, graph.nodes()), ["c", "d"]);
}

#[test]
fn a_hundred_thousand_nodes_take_no_quadratic_time() {
    const N: usize = 100_000;
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let mut last = x;
    for _ in 0..N {
        last = graph.call_function("torch.neg", vec![Arg::Node(last)], vec![]);
    }
    let output = graph.output(Arg::Node(last));
    graph.set_insert_point(InsertPoint::Before(output)).expect("the output is there");
    for _ in 0..N {
        last = graph.call_function("torch.abs", vec![Arg::Node(last)], vec![]);
    }
    graph.set_args(output, vec![Arg::Node(last)]).expect("both are there");
    assert!(graph.lint(None).is_empty());
    graph.set_args(output, vec![Arg::Node(x)]).expect("both are there");
    let is_kept = |_: &Graph, it: &Node| matches!(it.op(), Opcode::Placeholder | Opcode::Output);
    assert!(graph.eliminate_dead_code(&is_kept).expect("the graph is well formed"));
    assert_eq!(crate::corpus::names(&graph, graph.nodes()), ["x", "output"]);

    let users: Vec<NodeId> = (0..N).map(|_| graph.call_function("torch.neg", vec![Arg::Node(x)], vec![])).collect();
    for it in users {
        graph.erase_node(it).expect("nothing uses it");
    }
    assert_eq!(graph.users(x).len(), 1);
}
