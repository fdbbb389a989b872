use crate::corpus::{cases, text};
use serde_json::Value;
use tracefx_core::{Code, DType, Tensor};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Opcode, TensorKind};
use tracefx_testing::build;

/// Cases that lint cannot meet, because what they build cannot be built here; each with the reason.
const NOT_APPLICABLE: &[(&str, &str)] = &[
    (
        "argument_of_another_graph",
        "a graph refuses foreign nodes where they are given: see `foreign_nodes_are_refused`",
    ),
    ("two_nodes_with_one_name", "a graph refuses names that are taken: see `taken_names_are_refused`"),
    ("call_function_with_string_target", "a target is the name of the function"),
    ("call_method_with_function_target", "a target is a string by its type"),
    ("args_not_a_tuple", "arguments are a vector by their type"),
];

#[test]
fn lint_says_what_pytorch_says() {
    for case in cases("lint") {
        let name = text(&case, "name");
        if NOT_APPLICABLE.iter().any(|(it, _)| *it == name) {
            continue;
        }
        let owner = owner_of(&case);
        let problems = owner.graph.lint(Some(&owner));
        let Some(message) = case["error"]["msg"].as_str() else {
            assert!(problems.is_empty(), "{name}: {problems:?}");
            continue;
        };
        let first = problems.first().unwrap_or_else(|| panic!("{name}: lint found nothing"));
        let line = message.lines().next().expect("a first line");
        if line.starts_with("Argument") {
            assert_eq!((first.code(), first.message()), (Code::GraphInvalid, line), "{name}");
        } else {
            assert_eq!(first.code(), Code::AttributeMissing, "{name}");
            let node = case["before"]["nodes"].as_array().and_then(|it| it.iter().find(|it| it["name"] != "x"));
            assert_eq!(first.node_name(), node.map(|it| text(it, "name")), "{name}");
        }
    }
}

/// The module of a case. Without a table of modules, PyTorch looked for the attributes when it made the module.
fn owner_of(case: &Value) -> GraphModule {
    let mut owner = GraphModule::new(build(&case["before"]));
    let modules = case["modules"].as_object().into_iter().flatten();
    for (path, it) in modules.filter(|(_, it)| it["missing"] != true) {
        let attribute = if it["kind"] == "Parameter" {
            let tensor = Tensor::zeros(DType::Float32, &[4]).expect("it is small");
            Attribute::Tensor { tensor, kind: TensorKind::Parameter }
        } else {
            Attribute::Module(Box::new(GraphModule::new(Graph::new())))
        };
        owner.attributes.insert(path.as_str().into(), attribute);
    }
    owner
}

#[test]
fn foreign_nodes_are_refused() {
    let mut other = Graph::new();
    other.placeholder("x");
    let foreign = other.placeholder("y");
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let create = graph.create_node(Opcode::CallFunction, "torch.relu", vec![Arg::Node(foreign)], vec![], None);
    assert_eq!(create.map_err(|it| it.code()), Err(Code::NodeForeign));
    graph.erase_node(x).expect("nothing uses it");
    let create = graph.create_node(Opcode::CallFunction, "torch.relu", vec![Arg::Node(x)], vec![], None);
    assert_eq!(create.map_err(|it| it.code()), Err(Code::NodeForeign));
    assert!(graph.is_empty());
}

#[test]
fn taken_names_are_refused() {
    let mut graph = Graph::new();
    let x = graph.placeholder("neg");
    let create = graph.create_named_node(Opcode::CallFunction, "torch.neg", vec![Arg::Node(x)], vec![], "neg");
    assert_eq!(create.map_err(|it| it.code()), Err(Code::GraphInvalid));
}

#[test]
fn all_problems_are_reported() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let first = graph.call_function("torch.neg", vec![Arg::Node(x)], vec![]);
    let second = graph.call_function("torch.abs", vec![Arg::Node(first)], vec![]);
    let nested = Arg::Dict(vec![("alpha".into(), Arg::List(vec![Arg::Node(first)]))]);
    let third = graph.call_function("torch.add", vec![Arg::Node(second), nested], vec![]);
    graph.move_before(third, x).expect("both are of this graph");
    let problems = graph.lint(None);
    assert_eq!(problems.iter().map(|it| it.node_name()).collect::<Vec<_>>(), [Some("add"), Some("add")]);
}
