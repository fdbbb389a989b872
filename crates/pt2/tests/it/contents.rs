//! What is in a program besides its graph, read from programs that PyTorch wrote.

use std::path::Path;
use tracefx_core::{Code, DType};
use tracefx_export::{Argument, Constant, ConstantValue, ExportedProgram, InputKind, OutputKind};
use tracefx_ir::Val;
use tracefx_ops::{CustomOp, Value, registry};
use tracefx_pt2::{Archive, Container, LoadOptions, load};
use tracefx_sym::ValueRange;

fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name).join("model.pt2");
    std::fs::read(path).unwrap()
}

fn program(name: &str) -> ExportedProgram {
    load(&bytes(name), &LoadOptions::default()).unwrap()
}

#[test]
fn every_container_is_recognised() {
    let container = |name| Archive::open(&bytes(name), &LoadOptions::default()).unwrap().container();
    assert_eq!(container("programs-compat/2.6.0/cond"), Container::OldZip);
    assert_eq!(container("programs-compat/2.7.1/cond"), Container::OldZip);
    assert_eq!(container("programs-compat/2.8.0/cond"), Container::PickledWeights);
    assert_eq!(container("programs/cond_simple"), Container::RawWeights);
}

#[test]
fn tied_weights_and_views_share_their_bytes() {
    for name in ["programs/tied_and_views", "programs-compat/2.6.0/tied_views", "programs-compat/2.8.0/tied_views"] {
        let program = program(name);
        let state: Vec<_> = program.state_dict.values().collect();
        let n_storages = {
            let mut ids: Vec<usize> = state.iter().map(|it| it.tensor.storage().id()).collect();
            ids.sort_unstable();
            ids.dedup();
            ids.len()
        };
        assert!(n_storages < state.len(), "{name}: nothing is shared");
    }
    let program = program("programs-compat/2.8.0/tied_views");
    let tensor = |name: &str| &program.state_dict[name].tensor;
    assert!(tensor("emb.weight").storage().is_same(tensor("head.weight").storage()));
    // Two overlapping windows of one buffer of 20 elements, and a transposed parameter.
    assert!(tensor("v0").storage().is_same(tensor("v1").storage()));
    assert_eq!((tensor("v0").offset(), tensor("v1").offset(), tensor("v0").storage().len()), (0, 4, 80));
    assert_eq!(tensor("wt").strides(), [1, 6]);
}

#[test]
fn the_same_weights_are_read_from_every_container() {
    let old = program("programs-compat/2.6.0/tied_views");
    let new = program("programs-compat/2.8.0/tied_views");
    assert!(old.state_dict.len() > 3 && old.state_dict.keys().eq(new.state_dict.keys()));
    for (name, entry) in &old.state_dict {
        let other = &new.state_dict[name];
        assert_eq!((entry.is_parameter, entry.requires_grad), (other.is_parameter, other.requires_grad), "{name}");
        assert_eq!(entry.tensor.to_bytes().unwrap(), other.tensor.to_bytes().unwrap(), "{name}");
    }
}

#[test]
fn dtypes_and_empty_tensors_are_read() {
    let program = program("programs-compat/2.15.0/dtypes");
    let dtype = |name: &str| program.tensor(name).unwrap().dtype();
    assert_eq!((dtype("l.weight"), dtype("h"), dtype("d")), (DType::BFloat16, DType::Float16, DType::Float64));
    assert_eq!((dtype("m"), dtype("i8")), (DType::Bool, DType::Int8));
    assert_eq!(program.tensor("e").unwrap().sizes(), [0, 3]);
    assert_eq!(program.tensor("i8").unwrap().to_vec::<i8>().unwrap(), [-4, -3, -2, -1, 0, 1, 2, 3]);
}

#[test]
fn buffers_that_are_not_saved_are_constants() {
    let program = program("programs-compat/2.6.0/counter_nested_decomp");
    let Constant::Tensor(tensor) = &program.constants["t"] else { panic!("t is a tensor") };
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0]);
    let spec = program.signature.inputs_of(InputKind::Buffer).find(|it| it.target.as_deref() == Some("t")).unwrap();
    assert_eq!(spec.persistent, Some(false));
    let mutation = &program.signature.output_specs[0];
    assert_eq!((mutation.kind, mutation.target.as_deref()), (OutputKind::BufferMutation, Some("n")));
    assert_eq!(program.verifiers, ["ATEN".into()]);
}

#[test]
fn nested_inputs_have_structure_examples_and_constants() {
    let program = program("programs/nested_io");
    let spec = program.in_spec().unwrap();
    assert_eq!(spec.num_leaves(), program.signature.user_inputs().count());
    assert_eq!(program.namedtuple_fields["fixtures.FxPoint"], ["x".into(), "y".into()]);
    let examples = program.example_inputs.as_ref().unwrap();
    assert_eq!(examples.len(), spec.num_leaves());
    assert!(matches!(&examples[0], Value::Tensor(it) if it.dtype() == DType::Float32));
    // The constants of the signature are those that the program was exported with.
    for (spec, example) in program.signature.user_inputs().zip(examples) {
        match (&spec.arg, example) {
            (Argument::Constant { value: ConstantValue::Int(a), .. }, Value::Int(b)) => {
                assert_eq!(b.as_int(), Some(*a))
            }
            (Argument::Constant { value: ConstantValue::Float(a), .. }, Value::Float(b)) => assert_eq!(a, b),
            (Argument::Constant { value: ConstantValue::Bool(a), .. }, Value::Bool(b)) => assert_eq!(a, b),
            (Argument::Constant { value: ConstantValue::Str(a), .. }, Value::Str(b)) => assert_eq!(a, b),
            (Argument::Constant { value: ConstantValue::None, .. }, Value::None) => {}
            (Argument::Tensor(_), Value::Tensor(_)) => {}
            (spec, example) => panic!("{spec:?} and {example:?}"),
        }
    }
    assert!(program.warnings.is_empty());
}

#[test]
fn a_dataclass_is_flattened_by_its_fields() {
    let program = program("programs/dataclass_io");
    assert_eq!(program.example_inputs.as_ref().unwrap().len(), program.in_spec().unwrap().num_leaves());
    assert_eq!(program.out_spec().unwrap().ty.as_deref(), Some("fixtures.FxOut"));
}

#[test]
fn symbols_have_ranges_and_expressions() {
    let program = program("programs/dyn_derived__core");
    assert!(!program.range_constraints.is_empty());
    assert!(program.range_constraints.values().all(|it| *it != ValueRange::UNBOUNDED));
    let graph = &program.module.graph;
    let symbolic = graph.nodes().filter(|&it| match &graph.node(it).meta.val {
        Some(Val::Tensor(meta)) => meta.sizes.iter().any(|it| it.is_symbolic()),
        _ => false,
    });
    assert!(symbolic.count() > 2);
}

#[test]
fn unbacked_and_boolean_values_keep_their_expressions() {
    let program = program("programs/unbacked_item");
    let graph = &program.module.graph;
    let vals: Vec<&Val> = graph.nodes().filter_map(|it| graph.node(it).meta.val.as_ref()).collect();
    assert!(vals.iter().any(|it| matches!(it, Val::Int(it) if it.is_symbolic())));
    assert!(vals.iter().any(|it| matches!(it, Val::Bool(it) if it.as_bool().is_none())));
}

#[test]
fn weights_that_only_python_can_make_are_kept_as_bytes() {
    let program = program("programs/subclass_weight");
    let (name, pickle) = program.opaque_state.first().unwrap();
    assert!(pickle.starts_with(b"PK"));
    assert!(!program.state_dict.contains_key(name) && program.tensor(name).is_none());
    assert_eq!(program.module().unwrap_err().code(), Code::NotImplemented);
}

#[test]
fn an_archive_may_hold_several_programs() {
    let bytes = bytes("programs/multi_model");
    let first = load(&bytes, &LoadOptions::default()).unwrap();
    let second = LoadOptions { model: Some("second".to_string()), ..LoadOptions::default() };
    let second = load(&bytes, &second).unwrap();
    assert_ne!(first.module.graph.to_string(), second.module.graph.to_string());
    assert_ne!(first.state_dict[0].tensor.sizes(), second.state_dict[0].tensor.sizes());
    let none = LoadOptions { model: Some("third".to_string()), ..LoadOptions::default() };
    let error = load(&bytes, &none).unwrap_err();
    assert_eq!((error.code(), error.help_text()), (Code::InvalidOption, Some("choose one of model, second")));
}

#[test]
fn texts_and_metadata_of_the_user_are_kept() {
    let program = program("programs/extra_files");
    assert_eq!(program.extra_files.len(), 2);
    assert!(program.extra_files.contains_key("dir/notes.json"));

    let program = self::program("programs/custom_metadata");
    assert_eq!(&*program.module.meta["custom"], r#"{"author": "fixtures", "v": 1}"#);
    let graph = &program.module.graph;
    assert!(graph.nodes().any(|it| graph.node(it).meta.get("custom").is_some()));
    assert!(graph.nodes().any(|it| graph.node(it).meta.get("stack_trace").is_some()));
    assert!(graph.nodes().any(|it| graph.node(it).meta.get("nn_module_stack").is_some()));
}

#[test]
fn versions_are_kept() {
    let program = program("programs-compat/2.6.0/cond");
    assert_eq!((program.schema_version, &program.opset_version["aten"]), ((8, 2), &10));
    assert!(program.torch_version.starts_with("2.6.0"));
    assert!(self::program("programs/digits_cnn").torch_version.starts_with("2.13.0"));
}

/// What takes arguments by name is known once the operator is.
#[test]
fn arguments_of_ones_own_operators_are_in_the_order_of_their_schemas() {
    let open = |schema: Option<&str>| {
        let mut operators = registry().clone();
        if let Some(schema) = schema {
            operators.define(CustomOp::new(schema).unwrap()).unwrap();
        }
        load(&bytes("programs/custom_op"), &LoadOptions { registry: operators, ..LoadOptions::default() })
    };
    let note = |program: &ExportedProgram| {
        let graph = &program.module.graph;
        let call = graph.nodes().map(|it| graph.node(it)).find(|it| it.target().contains("scale_add")).unwrap();
        call.meta.get("arg_names").map(str::to_owned)
    };
    assert!(note(&open(None).unwrap()).is_some());
    let known = "fxtest::scale_add(Tensor x, Tensor y, float alpha=2., str names=\"n\") -> Tensor";
    assert_eq!(note(&open(Some(known)).unwrap()), None);
    let problem = open(Some("fxtest::scale_add(Tensor x, Tensor other) -> Tensor")).unwrap_err();
    assert_eq!(problem.code(), Code::GraphInvalid);
    assert!(problem.notes()[0].contains("Tensor other"), "{problem}");
}
