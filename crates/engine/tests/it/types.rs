//! The passes of types, as hosts call them.

use serde_json::{Value, json};
use tracefx_core::{Code, Result};
use tracefx_engine::{Library, PassCall, host_pass};
use tracefx_ir::{Graph, GraphModule};

fn run(module: &mut GraphModule, name: &str, options: Value) -> Result<Value> {
    let library = Library::default();
    (host_pass(name)?.run)(&mut PassCall { library: &library, module, others: &[], options })
}

/// `linear(x)` for an input of this type.
fn linear(ty: &str) -> (GraphModule, Value) {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    graph.set_type(x, Some(ty.into())).unwrap();
    let call = tracefx_ir::Opcode::CallModule;
    let y = graph.create_node(call, "linear", vec![x.into()], vec![], None).unwrap();
    graph.output(y.into());
    let modules = json!({ "linear": { "class": "Linear", "inFeatures": 4, "outFeatures": 2 } });
    (GraphModule::new(graph), modules)
}

#[test]
fn the_checker_annotates_the_module_that_it_is_given() {
    let (mut gm, modules) = linear("TensorType[(Dyn, 4)]");
    run(&mut gm, "type_check", json!({ "modules": modules })).unwrap();
    run(&mut gm, "infer_symbolic_types", json!({ "modules": modules, "singlePass": false })).unwrap();
    let types: Vec<String> = gm.graph.nodes().map(|it| gm.graph.node(it).ty().unwrap().to_string()).collect();
    assert_eq!(types, ["TensorType[(~1, 4)]", "TensorType[(~1, 2)]", "TensorType[(~1, 2)]"]);
    let (mut gm, modules) = linear("TensorType[(Dyn, 5)]");
    let refusal = run(&mut gm, "type_check", json!({ "modules": modules })).unwrap_err();
    assert_eq!((refusal.code(), refusal.node_name()), (Code::TypeInconsistent, Some("linear")));
}

#[test]
fn constraints_are_solved_with_what_is_required() {
    let (mut gm, modules) = linear("TensorType[(3, Dyn)]");
    let mut solve = |require: Value| {
        let options = json!({ "modules": modules, "require": require, "budget": null });
        run(&mut gm, "transform_all_constraints", options).unwrap()
    };
    let answer = solve(json!([]));
    assert_eq!(answer["answer"]["verdict"], "sat");
    let variable = answer["variables"][1].as_str().unwrap();
    assert_eq!(answer["answer"]["types"][variable], "TensorType[(3, 2)]");
    assert_eq!(solve(json!([[1, "TensorType[(3, 2)]"]]))["answer"]["verdict"], "sat");
    assert_eq!(solve(json!([[1, "TensorType[(4, 2)]"]]))["answer"]["verdict"], "unsat");
}

#[test]
fn guards_are_validated_without_a_graph() {
    let mut gm = GraphModule::new(Graph::new());
    let mut validate = |source: &str| {
        let options = json!({
            "ranges": { "s0": [2, null] }, "source": [source], "target": ["Mod(s0, 4) == 0"], "assertions": [], "known": [0],
        });
        run(&mut gm, "validate_guards", options)
    };
    assert_eq!(validate("Mod(s0, 2) == 0").unwrap()["validation"], "valid");
    assert_eq!(validate("s0 < 100").unwrap_err().code(), Code::VerifyFailed);
}
