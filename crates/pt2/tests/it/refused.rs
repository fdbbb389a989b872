//! What PyTorch's archives have no place for is refused by a typed error that names the node.

use tracefx_core::{Code, DType, Diagnostic};
use tracefx_export::ExportedProgram;
use tracefx_ir::{Arg, Attribute, NodeId, Opcode, TensorKind, Val};
use tracefx_pt2::{LoadOptions, SaveOptions, load, save};

fn fixture(name: &str) -> ExportedProgram {
    let path = format!("{}/../../tests/fixtures/programs/{name}/model.pt2", env!("CARGO_MANIFEST_DIR"));
    load(&std::fs::read(path).unwrap(), &LoadOptions::default()).unwrap()
}

/// A program whose graph was changed before its output, which gives the changed node instead of its first result.
fn changed(change: impl FnOnce(&mut ExportedProgram, NodeId) -> NodeId) -> Result<Vec<u8>, Diagnostic> {
    let mut program = fixture("digits_cnn");
    let graph = &program.module.graph;
    let output = graph.output_node().unwrap();
    let Arg::Tuple(results) = graph.node(output).args()[0].clone() else { panic!("the graph gives a tuple") };
    let last = results[0].as_node().unwrap();
    let node = change(&mut program, last);
    let graph = &mut program.module.graph;
    graph.move_before(node, output).unwrap();
    graph.set_args(output, vec![Arg::Tuple(vec![Arg::Node(node)])]).unwrap();
    let name = graph.node(node).name().clone();
    program.signature.output_specs[0].arg = tracefx_export::Argument::Tensor(name);
    let mut bytes = Vec::new();
    save(&program, &SaveOptions::default(), &mut bytes).map(|()| bytes)
}

/// A call with what is known of its result.
fn call(program: &mut ExportedProgram, target: &str, args: Vec<Arg>) -> NodeId {
    let graph = &mut program.module.graph;
    let known = graph.nodes().filter_map(|it| graph.node(it).meta.val.clone()).find(|it| matches!(it, Val::Tensor(_)));
    let node = graph.create_node(Opcode::CallFunction, target, args, vec![], None).unwrap();
    graph.meta_mut(node).val = known;
    node
}

#[track_caller]
fn check(refused: Result<Vec<u8>, Diagnostic>, code: Code, node: &str, what: &str) {
    let error = refused.unwrap_err();
    assert_eq!((error.code(), error.node_name()), (code, Some(node)), "{error}");
    assert!(error.to_string().contains(what), "{error}");
}

#[test]
fn edited_graphs_are_saved_as_they_are() {
    let bytes = changed(|program, last| call(program, "torch.ops.aten.relu.default", vec![Arg::Node(last)])).unwrap();
    let again = load(&bytes, &LoadOptions::default()).unwrap();
    assert!(again.module.graph.to_string().contains("target=torch.ops.aten.relu.default](args = (%linear_1,)"));
}

#[test]
fn what_is_no_operator_is_refused() {
    let function = changed(|program, last| call(program, "torch.nn.functional.relu", vec![Arg::Node(last)]));
    check(function, Code::NotImplemented, "relu_3", "is a function of Python");
    let method = changed(|program, last| {
        let args = vec![Arg::Node(last)];
        program.module.graph.create_node(Opcode::CallMethod, "relu", args, vec![], None).unwrap()
    });
    check(method, Code::NotImplemented, "relu_3", "call_method");
    let getitem = changed(|program, last| call(program, "operator.getitem", vec![Arg::Node(last), Arg::Int(0)]));
    check(getitem, Code::NotImplemented, "getitem", "not known to have several");
}

#[test]
fn arguments_without_a_place_are_refused() {
    let slice = Arg::Slice(Box::new([Arg::None, Arg::None, Arg::None]));
    let args = |last, more| vec![Arg::Node(last), more];
    let sliced = changed(|program, last| call(program, "torch.ops.aten.mul.Tensor", args(last, slice)));
    check(sliced, Code::NotImplemented, "mul_tensor", "slices");
    let mixed = Arg::List(vec![Arg::Int(1), Arg::str("a")]);
    let mixed = changed(|program, last| call(program, "torch.ops.aten.view.default", args(last, mixed)));
    check(mixed, Code::NotImplemented, "view_default", "cannot have in one list");
    let many = changed(|program, last| call(program, "torch.ops.aten.relu.default", args(last, Arg::Int(1))));
    check(many, Code::SchemaMismatch, "relu_default", "takes 1 arguments");
    let unknown = changed(|program, last| call(program, "torch.ops.mylib.f.default", vec![Arg::Node(last)]));
    check(unknown, Code::NotImplemented, "f_default", "is not registered");
}

#[test]
fn values_of_which_nothing_is_known_are_refused() {
    let unknown = changed(|program, last| {
        let node = call(program, "torch.ops.aten.relu.default", vec![Arg::Node(last)]);
        program.module.graph.meta_mut(node).val = None;
        node
    });
    check(unknown, Code::NotImplemented, "relu_default", "propagate shapes");
}

#[test]
fn tensors_that_the_graph_reads_from_its_module_are_refused() {
    let read = changed(|program, _| {
        let tensor = tracefx_core::Tensor::zeros(DType::Float32, &[1]).unwrap();
        let attribute = Attribute::Tensor { tensor, kind: TensorKind::Constant };
        program.module.attributes.insert("table".into(), attribute);
        program.module.graph.get_attr("table")
    });
    check(read, Code::NotImplemented, "table", "make it an input");
}

#[test]
fn signatures_that_do_not_fit_are_refused() {
    let mut program = fixture("digits_cnn");
    program.signature.input_specs.pop();
    let error = save(&program, &SaveOptions::default(), &mut Vec::new()).unwrap_err();
    assert_eq!(error.code(), Code::GraphInvalid);
}

#[test]
fn extra_files_are_written_beside_the_program_unless_they_are_no_paths() {
    let program = fixture("digits_cnn");
    let extra = |name: &str| SaveOptions {
        root: "m".to_string(),
        extra_files: [(name.into(), "é".into())].into_iter().collect(),
        ..SaveOptions::default()
    };
    let mut bytes = Vec::new();
    save(&program, &extra("notes/a.txt"), &mut bytes).unwrap();
    let again = load(&bytes, &LoadOptions::default()).unwrap();
    assert_eq!(again.extra_files.get("notes/a.txt").map(|it| &**it), Some("é"));
    for name in ["../a", "", "/a", "a\\b"] {
        let error = save(&program, &extra(name), &mut Vec::new()).unwrap_err();
        assert_eq!(error.code(), Code::InvalidOption, "{name}");
    }
}

#[test]
fn a_writer_that_fails_is_told_of() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no space"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = save(&fixture("digits_cnn"), &SaveOptions::default(), &mut Full).unwrap_err();
    assert_eq!(error.code(), Code::Io);
}
