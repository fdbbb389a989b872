//! The guards of recorded programs, validated: what PyTorch says of sizes follows from what is checked.

use std::path::Path;
use tracefx_core::{Code, DType};
use tracefx_engine::{Limits, open};
use tracefx_export::{ExportedProgram, ProgramGuards};
use tracefx_ir::{Arg, InsertPoint, TensorMeta, Val};
use tracefx_ops::registry;
use tracefx_sym::{SymInt, Symbol};
use tracefx_types::Validation;

fn program(name: &str) -> ExportedProgram {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs");
    open(&std::fs::read(folder.join(name).join("model.pt2")).unwrap(), &Limits::default()).unwrap()
}

fn guards(program: &ExportedProgram) -> ProgramGuards {
    program.guards(registry()).unwrap()
}

fn said(guards: &ProgramGuards) -> Vec<String> {
    guards.said.iter().map(|it| it.expr.to_string()).collect()
}

#[test]
fn what_programs_say_of_sizes_follows_from_what_they_check() {
    let mut n_said = 0;
    for name in ["cond_shape_nested", "digits_cnn", "dyn_derived__core", "symint_inputs", "unbacked_item"] {
        let guards = guards(&program(name));
        assert_eq!(guards.validator().unwrap().validate().unwrap(), Validation::Valid, "{name}: {:?}", guards.said);
        assert!(guards.bisect().unwrap().is_none(), "{name}");
        n_said += guards.said.len();
    }
    assert!(n_said >= 6, "only {n_said} conditions are said");
}

#[test]
fn the_range_of_what_the_data_decides_needs_its_assertions() {
    let mut program = program("unbacked_item");
    assert_eq!(said(&guards(&program)), ["u0 >= 1", "u0 <= 6"]);
    let graph = &mut program.module.graph;
    let last = graph.find("_assert_scalar_default_1").unwrap();
    graph.erase_node(last).unwrap();
    let guards = guards(&program);
    let refusal = guards.validator().unwrap().validate().unwrap_err();
    assert_eq!(refusal.code(), Code::VerifyFailed);
    assert!(refusal.notes().contains(&"failed source expression: u0 <= 6".to_string()), "{refusal}");
    let (guard, _) = guards.bisect().unwrap().expect("a bound is not checked any more");
    assert_eq!((guard.expr.to_string().as_str(), &guard.node), ("u0 <= 6", &None));
    // Nothing is checked at all.
    let graph = &mut program.module.graph;
    let first = graph.find("_assert_scalar_default").unwrap();
    graph.erase_node(first).unwrap();
    assert!(self::guards(&program).validator().unwrap().validate().is_err());
}

#[test]
fn a_note_that_an_operator_contradicts_is_found_at_its_node() {
    let mut program = program("symint_inputs");
    let graph = &mut program.module.graph;
    let node = graph.nodes().find(|id| graph.node(*id).target().ends_with("slice.Tensor")).unwrap();
    let Some(Arg::Node(input)) = graph.node(node).args().first().cloned() else { panic!("a slice is of a tensor") };
    // As if the slice kept everything.
    let val = graph.node(input).meta.val.clone();
    let Some(Val::Tensor(meta)) = &val else { panic!("a tensor") };
    assert!(meta.sizes[0].as_symbol().is_some());
    graph.meta_mut(node).val = val;
    let name = graph.node(node).name().clone();
    let guards = guards(&program);
    let (guard, failure) = guards.bisect().unwrap().expect("the note is wrong");
    assert_eq!(guard.node.as_ref(), Some(&name), "{failure}");
}

#[test]
fn what_the_data_decides_is_no_symbol_of_the_program() {
    // Without ranges only the notes say that `u0` is taken.
    let mut program = program("unbacked_item");
    program.range_constraints.clear();
    let before = said(&guards(&program));
    let graph = &mut program.module.graph;
    let input = graph.find("x").unwrap();
    let output = graph.output_node().unwrap();
    graph.set_insert_point(InsertPoint::Before(output)).unwrap();
    let node = graph.call_function("torch.ops.aten.nonzero.default", vec![input.into()], vec![]);
    let sizes = vec![SymInt::from(Symbol::from_name("u1")), 2.into()];
    graph.meta_mut(node).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Int64, sizes)));
    assert_eq!(said(&guards(&program)), before);
}

#[test]
fn guards_are_told_as_json() {
    let json = guards(&program("unbacked_item")).to_json();
    assert_eq!(json["source"], serde_json::json!([["u0 >= 1", null], ["u0 <= 6", null]]));
    assert_eq!(json["target"][0], serde_json::json!(["u0 >= 1", "_assert_scalar_default"]));
    assert!(json["ranges"]["u0"].is_array());
}
