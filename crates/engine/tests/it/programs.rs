//! Programs of both formats, opened and looked at.

use std::path::Path;
use tracefx_core::Code;
use tracefx_core::Tensor;
use tracefx_engine::{Library, Limits, Runner, inspect, open, read_inputs};
use tracefx_ir::Opcode;
use tracefx_ops::Value;
use tracefx_ops::registry;
use tracefx_rewrite::{ConstantFoldOptions, DeferredAsserts, constant_fold, fuse, insert_deferred_runtime_asserts};

fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs").join(name).join("model.pt2");
    std::fs::read(path).unwrap()
}

#[test]
fn limits_hold_for_both_formats() {
    let archive = bytes("digits_cnn");
    let program = open(&archive, &Limits::default()).unwrap();
    let file = tracefx_wire::encode_program(&program, &tracefx_wire::Options::FILE).unwrap();
    let few = Limits { nodes: 5, ..Limits::default() };
    for bytes in [&archive, &file] {
        assert_eq!(open(bytes, &few).unwrap_err().code(), Code::LimitExceeded);
        assert!(open(bytes, &Limits::default()).is_ok());
    }
}

#[test]
fn inspect_tells_why_a_program_does_not_run_whatever_its_operators_are() {
    let report = inspect(&open(&bytes("subclass_weight"), &Limits::default()).unwrap());
    assert!(!report.is_supported && report.obstacle.as_deref().unwrap().contains("tensor subclass"));
    let report = inspect(&open(&bytes("digits_cnn"), &Limits::default()).unwrap());
    assert!(report.is_supported && report.obstacle.is_none());
}

#[test]
fn a_call_that_may_write_is_known_even_where_the_schema_does_not_say_so() {
    let may_write = |name: &str| registry().get(name).unwrap().may_write();
    assert!(may_write("aten.add_.Tensor") && may_write("aten.batch_norm.default"));
    assert!(!may_write("aten.add.Tensor"));
    let runner = Runner::new(&open(&bytes("input_mutation__core"), &Limits::default()).unwrap()).unwrap();
    assert!(runner.changes_inputs());
}

fn outputs(program: &tracefx_export::ExportedProgram, input: &Value<Tensor>) -> Vec<f32> {
    let mut res = Vec::new();
    for it in Runner::new(program).unwrap().run(std::slice::from_ref(input)).unwrap() {
        it.for_each_tensor(&mut |it: &Tensor| res.extend(it.to_vec::<f32>().unwrap()));
    }
    res
}

#[test]
fn layers_of_a_program_are_fused_and_its_parameters_stay() {
    let library = Library::default();
    for name in ["digits_cnn", "digits_cnn__core"] {
        let program = open(&bytes(name), &Limits::default()).unwrap();
        let input = program.example_inputs.as_ref().unwrap()[0].clone();
        let mut fused = program.clone();
        assert!(fused.with_lifted_state(registry(), &|module| fuse(module, library.executor())).unwrap().modified);
        let text = fused.module.graph.to_string();
        assert!(!text.contains("batch_norm") && text.contains("conv"), "{text}");
        assert!(fused.module.graph.lint(Some(&fused.module)).is_empty());
        assert_eq!(fused.state_dict.len(), program.state_dict.len());
        let nodes = fused.module.graph.nodes().map(|it| fused.module.graph.node(it));
        let unknown: Vec<_> = nodes.filter(|it| it.op() != Opcode::Output && it.meta.val.is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let (after, before) = (outputs(&fused, &input), outputs(&program, &input));
        assert!(!before.is_empty() && after.len() == before.len(), "{} and {}", after.len(), before.len());
        for (a, b) in after.into_iter().zip(before) {
            assert!((a - b).abs() <= 1e-4 + 1e-4 * b.abs(), "{a} and {b}");
        }
        let file = tracefx_wire::encode_program(&fused, &tracefx_wire::Options::FILE).unwrap();
        let again = open(&file, &Limits::default()).unwrap();
        assert_eq!(outputs(&again, &input), outputs(&fused, &input));
        let fold = |module: &mut _| constant_fold(module, library.executor(), ConstantFoldOptions::default());
        assert!(!fused.with_lifted_state(registry(), &fold).unwrap().modified);
    }
}

#[test]
fn values_of_new_nodes_are_noted_and_the_others_stay() {
    let mut program = open(&bytes("unbacked_item"), &Limits::default()).unwrap();
    let before = program.to_string();
    let graph = &mut program.module.graph;
    let ids: Vec<_> = graph.nodes().filter(|&it| graph.node(it).op() == Opcode::CallFunction).collect();
    let forgotten: Vec<_> = ids.into_iter().filter(|&it| !graph.node(it).target().contains("item")).collect();
    for &id in &forgotten {
        graph.meta_mut(id).val = None;
    }
    assert_eq!(program.note_values(registry()), []);
    assert_eq!(program.to_string(), before);
    let graph = &mut program.module.graph;
    let first = graph.nodes().next().unwrap();
    let wrong = graph.call_function("torch.ops.aten.mm.default", vec![first.into(), first.into()], vec![]);
    let user = graph.call_function("torch.ops.aten.relu.default", vec![wrong.into()], vec![]);
    let problems = program.note_values(registry());
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(program.module.graph.node(user).meta.val.is_none());
}

#[test]
fn a_module_knows_of_its_nodes_what_its_program_knows() {
    let program = open(&bytes("digits_cnn__core"), &Limits::default()).unwrap();
    let module = program.module().unwrap();
    let calls: Vec<_> = program.module.graph.nodes().map(|it| program.module.graph.node(it)).collect();
    let mut n_known = 0;
    for call in calls.into_iter().filter(|it| it.op() == Opcode::CallFunction) {
        let node = module.graph.node(module.graph.find(call.name()).unwrap());
        assert_eq!(node.meta.val, call.meta.val, "{}", call.name());
        n_known += usize::from(call.meta.val.is_some());
    }
    assert!(n_known > 10, "{n_known} values");
}

#[test]
fn checks_of_a_program_that_has_them_stay_where_they_are() {
    let mut program = open(&bytes("unbacked_item"), &Limits::default()).unwrap();
    let ranges = program.range_constraints.iter().map(|(symbol, range)| (symbol.clone(), *range)).collect();
    let known = DeferredAsserts { ranges, asserts: vec![] };
    insert_deferred_runtime_asserts(&mut program.module, &known).unwrap();
    assert!(program.module.graph.lint(Some(&program.module)).is_empty());
    let before = program.module.graph.to_string();
    assert!(before.contains("_assert_scalar"), "{before}");
    assert!(!insert_deferred_runtime_asserts(&mut program.module, &known).unwrap().modified);
    assert_eq!(program.module.graph.to_string(), before);
}

#[test]
fn a_runner_shares_the_memory_of_its_program_until_it_writes_to_it() {
    let program = open(&bytes("conv_bn_relu_train"), &Limits::default()).unwrap();
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs/conv_bn_relu_train");
    let inputs = read_inputs(&program, &std::fs::read(inputs.join("inputs.safetensors")).unwrap()).unwrap();
    let address = |it: &Tensor| it.storage().read().bytes().as_ptr();
    let content = |it: &Tensor| it.to_bytes().unwrap();
    let [first, second] = [0, 1].map(|_| Runner::new(&program).unwrap());
    let before: Vec<Vec<u8>> = program.state_dict.values().map(|it| content(&it.tensor)).collect();
    let own = |runner: &Runner| -> Vec<String> {
        let is_own = |(name, it): &(&tracefx_ir::Str, &Tensor)| address(it) != address(program.tensor(name).unwrap());
        runner.state().filter(is_own).map(|(name, _)| name.to_string()).collect()
    };
    assert!(own(&first).is_empty());
    first.run(&inputs).unwrap();
    // Means, variances and counts of two layers.
    assert_eq!(own(&first).len(), 6);
    assert!(own(&first).iter().all(|it| program.signature.buffers().iter().any(|buffer| **buffer == **it)));
    assert!(own(&second).is_empty());
    let after: Vec<Vec<u8>> = program.state_dict.values().map(|it| content(&it.tensor)).collect();
    assert_eq!(after, before);
}
