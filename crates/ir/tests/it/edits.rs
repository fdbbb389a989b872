use crate::corpus::names;
use tracefx_core::{Code, Result};
use tracefx_ir::{Arg, Graph, InsertPoint, NodeId, Opcode, Val};

fn code<T>(result: Result<T>) -> Option<Code> {
    result.err().map(|it| it.code())
}

/// A graph of the inputs `a`, `b` and `c`.
fn three() -> (Graph, [NodeId; 3]) {
    let mut graph = Graph::new();
    let nodes = ["a", "b", "c"].map(|name| graph.placeholder(name));
    (graph, nodes)
}

#[test]
fn nodes_made_at_one_point_stand_in_the_order_in_which_they_were_made() {
    let (mut graph, [a, b, _]) = three();
    for point in [InsertPoint::After(a), InsertPoint::Before(b)] {
        let previous = graph.set_insert_point(point).expect("the node is there");
        graph.placeholder("d");
        graph.placeholder("e");
        graph.set_insert_point(previous).expect("the end is there");
    }
    graph.placeholder("f");
    assert_eq!(names(&graph, graph.nodes()), ["a", "d", "e", "d_1", "e_1", "b", "c", "f"]);
}

#[test]
fn foreign_and_erased_nodes_are_refused_and_nothing_changes() {
    let (mut graph, [a, b, c]) = three();
    let user = graph.call_function("f", vec![Arg::Node(a)], vec![("k".into(), Arg::Int(1))]);
    graph.erase_node(c).expect("nothing uses it");
    let mut other = Graph::new();
    let foreign = (0..9).map(|_| other.placeholder("x")).last().expect("nine nodes");
    let before = graph.to_string();
    for bad in [c, foreign] {
        let nested = Arg::List(vec![Arg::Tuple(vec![Arg::Node(bad)])]);
        let refusals = [
            code(graph.create_node(Opcode::CallMethod, "f", vec![nested.clone()], vec![], None)),
            code(graph.create_named_node(Opcode::CallMethod, "f", vec![nested.clone()], vec![], "free")),
            code(graph.set_args(user, vec![nested.clone()])),
            code(graph.set_kwargs(user, vec![("k".into(), nested.clone())])),
            code(graph.update_arg(user, 0, nested.clone())),
            code(graph.update_kwarg(user, "k", nested.clone())),
            code(graph.insert_arg(user, 0, nested)),
            code(graph.replace_input_with(user, a, bad)),
            code(graph.replace_all_uses_with(a, bad, &mut |_, _| true)),
            code(graph.move_before(bad, b)),
            code(graph.move_after(b, bad)),
            code(graph.set_insert_point(InsertPoint::Before(bad))),
            code(graph.set_target(bad, "g")),
            code(graph.erase_node(bad)),
        ];
        assert_eq!(refusals, [Some(Code::NodeForeign); 14]);
    }
    assert_eq!(graph.to_string(), before);
    assert!(!graph.names().is_used("free"));
}

#[test]
fn an_edit_makes_the_known_value_invalid_and_keeps_the_other_notes() {
    let (mut graph, [a, ..]) = three();
    let node = graph.call_function("f", vec![Arg::Node(a)], vec![]);
    type Edit = fn(&mut Graph, NodeId, NodeId) -> Result<()>;
    let edits: [Edit; 4] = [
        |graph, node, a| graph.set_args(node, vec![Arg::Node(a), Arg::Int(1)]),
        |graph, node, _| graph.set_kwargs(node, vec![]),
        |graph, node, _| graph.set_target(node, "g"),
        |graph, node, a| graph.insert_arg(node, 0, Arg::Node(a)),
    ];
    for edit in edits {
        graph.meta_mut(node).val = Some(Val::None);
        graph.meta_mut(node).entries.insert("stack_trace".into(), "here".into());
        edit(&mut graph, node, a).expect("the edit is allowed");
        assert_eq!((&graph.node(node).meta.val, graph.node(node).meta.get("stack_trace")), (&None, Some("here")));
    }
}

#[test]
fn a_graph_is_inlined_by_giving_the_values_of_its_inputs() {
    let mut inner = Graph::new();
    let [a, b] = ["a", "b"].map(|name| inner.placeholder(name));
    let add = inner.call_function("torch.add", vec![Arg::Node(a), Arg::Node(b)], vec![]);
    inner.output(Arg::List(vec![Arg::Node(add), Arg::Node(a)]));
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let mut map = vec![Some(Arg::Node(x))];
    let result = graph.graph_copy(&inner, &mut map).expect("the graph is well formed").expect("it has an output");
    assert_eq!(names(&graph, graph.nodes()), ["x", "b", "add"]);
    assert_eq!(graph.format_arg(&result), "[%add, %x]");
}

#[test]
fn copying_a_use_before_its_definition_is_refused() {
    let mut late = Graph::new();
    let early = late.call_function("torch.neg", vec![], vec![]);
    let x = late.placeholder("x");
    late.set_args(early, vec![Arg::Node(x)]).expect("both are there");
    assert_eq!(code(Graph::new().graph_copy(&late, &mut Vec::new())), Some(Code::GraphInvalid));
    assert_eq!(code(late.eliminate_dead_code(&|_, _| false)), Some(Code::GraphInvalid));
}

#[test]
fn names_are_given_exactly_or_freely() {
    let (mut graph, [a, b, _]) = three();
    assert_eq!(code(graph.set_name(b, "a")), Some(Code::GraphInvalid));
    assert_eq!((&*graph.rename(b, "a"), &*graph.rename(a, "a")), ("a_1", "a"));
    graph.set_name(b, "aten::odd name").expect("the name is free");
    assert_eq!((graph.find("aten::odd name"), graph.find("b")), (Some(b), None));
}

#[test]
fn erasing_a_used_node_names_its_users() {
    let (mut graph, [a, ..]) = three();
    graph.call_function("torch.neg", vec![Arg::Node(a)], vec![]);
    graph.call_function("torch.abs", vec![Arg::Node(a)], vec![]);
    let refusal = graph.erase_node(a).expect_err("it is used");
    assert_eq!(refusal.message(), "Tried to erase Node a but it still had 2 users in the graph: {neg, abs_1}!");
}

#[test]
fn sorted_users_are_those_of_a_fresh_copy() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let [a, b] = ["a", "b"]
        .map(|it| graph.create_node(Opcode::CallFunction, "torch.neg", vec![Arg::Node(x)], vec![], Some(it)).unwrap());
    graph.set_args(a, vec![Arg::Node(x)]).unwrap();
    assert_eq!(graph.users(x).iter().collect::<Vec<_>>(), [b, a]);
    graph.sort_users();
    assert_eq!(graph.users(x).iter().collect::<Vec<_>>(), [a, b]);
}

#[test]
fn reordering_puts_nodes_and_users_in_the_order_that_is_given() {
    let (mut graph, [a, b, c]) = three();
    let first = graph.call_function("f", vec![Arg::Node(a), Arg::Node(b)], vec![]);
    let second = graph.call_function("g", vec![Arg::Node(a)], vec![]);
    graph.meta_mut(second).val = Some(Val::None);
    graph.reorder(&[b, a, second, first, c]).expect("all nodes are there");
    assert_eq!(names(&graph, graph.nodes()), ["b", "a", "g", "f", "c"]);
    assert_eq!(names(&graph, graph.users(a).iter()), ["g", "f"]);
    assert_eq!(graph.node(second).meta.val, Some(Val::None));
    assert_eq!(code(graph.reorder(&[a, b, c, first])), Some(Code::GraphInvalid));
    assert_eq!(code(graph.reorder(&[a, b, c, first, first])), Some(Code::GraphInvalid));
    graph.erase_node(c).expect("nothing uses it");
    assert_eq!(code(graph.reorder(&[a, b, first, second, c])), Some(Code::NodeForeign));
}
