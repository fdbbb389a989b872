//! Normalization of single calls, beside the recorded ones.

use super::*;
use tracefx_ir::{Attribute, Graph};
use tracefx_ops::registry;

/// The graph of a call, normalized, as text.
#[track_caller]
fn normalized(build: impl FnOnce(&mut Graph, Arg) -> NodeId, leaf: &str) -> String {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let call = build(&mut graph, Arg::Node(x));
    graph.set_type(x, Some("torch.Tensor".into())).unwrap();
    graph.output(Arg::Node(call));
    let mut module = GraphModule::new(graph);
    let mut child = GraphModule::new(Graph::new());
    child.class_name = leaf.into();
    module.attributes.insert("leaf".into(), Attribute::Module(Box::new(child)));
    let pass = NormalizeArgs { registry: registry(), options: NormalizeArgsOptions::default() };
    pass.call(&mut module).unwrap();
    assert!(!pass.call(&mut module).unwrap().modified, "the second run changes something");
    let text = module.graph.to_string();
    text.lines().nth(2).unwrap().trim().to_owned()
}

#[test]
fn overloads_are_told_apart_by_annotations() {
    let text = normalized(|graph, x| graph.call_function("torch.add", vec![x, Arg::Int(1)], vec![]), "");
    assert_eq!(
        text,
        "%add : [num_users=1] = call_function[target=torch.add](args = (), kwargs = {input: %x, other: 1, alpha: 1})"
    );
}

#[test]
fn operators_keep_the_names_of_their_schemas() {
    let text = normalized(|graph, x| graph.call_function("torch.ops.aten.relu.default", vec![x], vec![]), "");
    assert!(text.ends_with("(args = (), kwargs = {self: %x})"), "{text}");
}

#[test]
fn a_module_of_torch_nn_gets_its_inputs_by_name() {
    let build = |graph: &mut Graph, x| graph.create_node(Opcode::CallModule, "leaf", vec![x], vec![], None).unwrap();
    let text = normalized(build, "Linear");
    assert_eq!(text, "%leaf : [num_users=1] = call_module[target=leaf](args = (), kwargs = {input: %x})");
    let text = normalized(build, "Mine");
    assert_eq!(text, "%leaf : [num_users=1] = call_module[target=leaf](args = (%x,), kwargs = {})");
}

#[test]
fn operators_of_python_take_the_place_of_functions_without_options() {
    let mut graph = Graph::new();
    let x = Arg::Node(graph.placeholder("x"));
    graph.call_function("torch.add", vec![x.clone(), x.clone()], vec![]);
    graph.call_function("torch.add", vec![x.clone(), x.clone()], vec![("alpha".into(), Arg::Int(2))]);
    let mut module = GraphModule::new(graph);
    assert!(NormalizeOperators::default().call(&mut module).unwrap().modified);
    let targets: Vec<&str> = module.graph.nodes().map(|it| &**module.graph.node(it).target()).collect();
    assert_eq!(targets, ["x", "operator.add", "torch.add"]);
}

#[test]
fn items_of_annotated_tuples_are_annotated() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    graph.set_type(x, Some("tuple[int, list[torch.Tensor]]".into())).unwrap();
    let item =
        |graph: &mut Graph, of, at| graph.call_function("operator.getitem", vec![Arg::Node(of), Arg::Int(at)], vec![]);
    let list = item(&mut graph, x, 1);
    let tensor = item(&mut graph, list, 7);
    assert!(annotate_getitem_nodes(&mut graph).unwrap().modified);
    assert_eq!(graph.node(list).ty().map(|it| &**it), Some("list[torch.Tensor]"));
    assert_eq!(graph.node(tensor).ty().map(|it| &**it), Some("torch.Tensor"));
    item(&mut graph, x, 2);
    assert_eq!(annotate_getitem_nodes(&mut graph).unwrap_err().code(), Code::IndexOutOfRange);
}

#[test]
fn functionals_and_modules_give_their_types() {
    let mut graph = Graph::new();
    let x = Arg::Node(graph.placeholder("x"));
    let relu = graph.call_function("torch.nn.functional.relu", vec![x.clone()], vec![]);
    graph.output(Arg::Node(relu));
    let mut module = GraphModule::new(graph);
    assert!(AnnotateTypesWithSchema::default().call(&mut module).unwrap().modified);
    assert_eq!(module.graph.node(relu).ty().map(|it| &**it), Some("torch.Tensor"));
    assert!(!AnnotateTypesWithSchema::default().call(&mut module).unwrap().modified);
}
