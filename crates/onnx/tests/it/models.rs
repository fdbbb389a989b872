//! What a model consists of, as text, and what is refused.

use crate::programs::{Program, floats, symbol, tensor, text};
use prost::Message;
use tracefx_core::{Code, DType, Tensor};
use tracefx_export::{Argument, ExportedProgram, InputKind, InputSpec, OutputKind, OutputSpec, StateEntry};
use tracefx_ir::{Arg, Val};
use tracefx_onnx::proto::ModelProto;
use tracefx_onnx::{IR_VERSION, OPSET, Options, is_translated, to_model, to_onnx};

#[track_caller]
fn check(program: &ExportedProgram, wanted: &str) {
    let bytes = to_onnx(program, &Options { metadata: false }).unwrap();
    let model = ModelProto::decode(&bytes[..]).unwrap();
    assert_eq!(text(&model).trim(), wanted.trim(), "the model is\n{}", text(&model));
}

/// `x.relu() + 1`, of a dynamic size.
fn small() -> ExportedProgram {
    let mut program = Program::new();
    let val = tensor(DType::Float32, &[symbol("s0"), 3.into()]);
    let x = program.input("x", val.clone());
    let relu = program.call("aten.relu.default", vec![x.into()], vec![], val.clone());
    let add = program.call("aten.add.Tensor", vec![relu.into(), Arg::Int(1)], vec![], val);
    program.finish(&[add])
}

#[test]
fn nodes_are_called_after_those_of_the_graph() {
    check(
        &small(),
        "
input x: 1 [s0, 3]
constant: 1 [] = [1.0]
relu_default = Relu(x)
add_tensor = Add(relu_default, constant)
output add_tensor: 1 [s0, 3]
",
    );
}

#[test]
fn a_model_tells_its_versions_and_where_nodes_are_from() {
    let mut program = small();
    let relu = program.module.graph.find("relu_default").unwrap();
    program.module.graph.meta_mut(relu).entries.insert("stack_trace".into(), "model.py:7 in forward".into());
    let model = to_model(&program, &Options::default()).unwrap();
    assert_eq!((model.ir_version, model.opset_import[0].version), (IR_VERSION, OPSET));
    let notes = &model.graph.unwrap().node[0].metadata_props;
    let note = |key: &str| notes.iter().find(|it| it.key == key).map(|it| it.value.as_str());
    assert_eq!(note("pkg.torch.fx.target"), Some("torch.ops.aten.relu.default"));
    assert_eq!(note("pkg.torch.fx.stack_trace"), Some("model.py:7 in forward"));
}

#[test]
fn operands_are_cast_to_the_dtype_that_pytorch_promotes_to() {
    let mut program = Program::new();
    let x = program.input("x", tensor(DType::Int32, &[2.into()]));
    let y = program.input("y", tensor(DType::Float32, &[2.into()]));
    let lt = program.call("aten.lt.Tensor", vec![x.into(), y.into()], vec![], tensor(DType::Bool, &[2.into()]));
    let div = program.call("aten.div.Tensor", vec![x.into(), Arg::Int(2)], vec![], floats(&[2]));
    check(
        &program.finish(&[lt, div]),
        "
input x: 6 [2]
input y: 1 [2]
constant: 1 [] = [2.0]
lt_tensor/Cast = Cast(x) to=1
lt_tensor = Less(lt_tensor/Cast, y)
div_tensor/Cast = Cast(x) to=1
div_tensor = Div(div_tensor/Cast, constant)
output lt_tensor: 9 [2]
output div_tensor: 1 [2]
",
    );
}

#[test]
fn what_nobody_takes_is_left_out_and_an_input_comes_out_as_a_copy() {
    let mut program = Program::new();
    let x = program.input("x", floats(&[2]));
    program.call("aten.sin.default", vec![x.into()], vec![], floats(&[2]));
    let same = program.call("aten.clone.default", vec![x.into()], vec![], floats(&[2]));
    check(
        &program.finish(&[same, same]),
        "
input x: 1 [2]
clone_default = Identity(x)
clone_default_1 = Identity(x)
output clone_default: 1 [2]
output clone_default_1: 1 [2]
",
    );
}

#[test]
fn sizes_that_are_dynamic_are_asked_for() {
    let mut program = Program::new();
    let x = program.input("x", tensor(DType::Float32, &[symbol("s0"), 3.into()]));
    let size = program.call("aten.sym_size.int", vec![x.into(), Arg::Int(0)], vec![], Val::Int(symbol("s0")));
    let twice = program.call("operator.mul", vec![size.into(), Arg::Int(3)], vec![], Val::Int(&symbol("s0") * 3));
    let flat = tensor(DType::Float32, &[&symbol("s0") * 3]);
    let view = program.call("aten.view.default", vec![x.into(), Arg::List(vec![twice.into()])], vec![], flat);
    check(
        &program.finish(&[view]),
        "
input x: 1 [s0, 3]
constant: 7 [0] = []
constant_1: 7 [] = [3.0]
constant_2: 7 [1] = [1.0]
sym_size_int/Shape = Shape(x) start=0 end=1
sym_size_int = Reshape(sym_size_int/Shape, constant) allowzero=1
mul = Mul(sym_size_int, constant_1)
view_default/Reshape = Reshape(mul, constant_2)
view_default = Reshape(x, view_default/Reshape) allowzero=1
output view_default: 1 [3*s0]
",
    );
}

/// `b.add_(x)`, functional: a buffer that a call changes.
fn counting() -> ExportedProgram {
    let mut program = Program::new();
    let buffer = program.input("b_b", floats(&[2]));
    let x = program.input("x", floats(&[2]));
    let add = program.call("aten.add.Tensor", vec![buffer.into(), x.into()], vec![], floats(&[2]));
    let mut program = program.finish(&[add, add]);
    let (name, added) = ("b".into(), Argument::Tensor("add_tensor".into()));
    program.signature.input_specs[0] = InputSpec {
        kind: InputKind::Buffer,
        arg: Argument::Tensor("b_b".into()),
        target: Some("b".into()),
        persistent: Some(true),
    };
    program.signature.output_specs[0] =
        OutputSpec { kind: OutputKind::BufferMutation, arg: added, target: Some("b".into()) };
    let tensor = Tensor::from_slice(&[1.0f32, 2.0], &[2]).unwrap();
    program.state_dict.insert(name, StateEntry { tensor, is_parameter: false, requires_grad: false });
    program
}

#[test]
fn state_that_changes_is_an_input_with_a_default_and_an_output() {
    check(
        &counting(),
        "
input b: 1 [2]
input x: 1 [2]
b: 1 [2] = [1.0, 2.0]
add_tensor = Add(b, x)
b_mutated = Identity(add_tensor)
output add_tensor: 1 [2]
output b_mutated: 1 [2]
",
    );
}

#[test]
fn weights_go_by_their_qualified_names() {
    let mut program = counting();
    program.signature.output_specs[0].kind = OutputKind::UserOutput;
    check(
        &program,
        "
input x: 1 [2]
b: 1 [2] = [1.0, 2.0]
add_tensor = Add(b, x)
add_tensor_1 = Identity(add_tensor)
output add_tensor: 1 [2]
output add_tensor_1: 1 [2]
",
    );
}

#[test]
fn all_operators_without_a_translation_are_named() {
    let mut program = Program::new();
    let x = program.input("x", floats(&[2, 2]));
    let a = program.call("aten.cosine_similarity.default", vec![x.into(), x.into()], vec![], floats(&[2]));
    let b = program.call("aten.trapz.dx", vec![x.into()], vec![], floats(&[2]));
    let program = program.finish(&[a, b]);
    assert!(!is_translated(&program));
    let problem = to_onnx(&program, &Options::default()).unwrap_err();
    assert_eq!((problem.code(), problem.node_name()), (Code::NotImplemented, Some("cosine_similarity_default")));
    assert!(problem.message().contains("aten.cosine_similarity.default, aten.trapz.dx"), "{problem}");
    assert_eq!(problem.notes().len(), 2);
    assert!(problem.help_text().unwrap().contains("--decompose"));
}

#[test]
fn complex_inputs_and_forgotten_dtypes_are_refused_with_their_node() {
    let mut program = Program::new();
    let x = program.input("x", tensor(DType::Complex64, &[2.into()]));
    let y = program.call("aten.abs.default", vec![x.into()], vec![], floats(&[2]));
    let problem = to_onnx(&program.finish(&[y]), &Options::default()).unwrap_err();
    assert_eq!((problem.code(), problem.node_name()), (Code::NotImplemented, Some("x")));
    let mut program = small();
    let relu = program.module.graph.find("relu_default").unwrap();
    program.module.graph.meta_mut(relu).val = None;
    let problem = to_onnx(&program, &Options::default()).unwrap_err();
    assert_eq!((problem.code(), problem.node_name()), (Code::GraphInvalid, Some("relu_default")));
}

/// `view_as_real(conj(polar(x, y)))`, whose middle is complex.
#[test]
fn complex_numbers_between_real_ones_are_pairs() {
    let mut program = Program::new();
    let complex = || tensor(DType::Complex64, &[4.into()]);
    let pairs = || floats(&[4, 2]);
    let (x, y) = (program.input("x", floats(&[4])), program.input("y", floats(&[4])));
    let polar = program.call("aten.polar.default", vec![x.into(), y.into()], vec![], complex());
    let conj = program.call("aten._conj.default", vec![polar.into()], vec![], complex());
    let joined = program.call("aten.complex.default", vec![x.into(), y.into()], vec![], complex());
    let product = program.call("aten.mul.Tensor", vec![conj.into(), joined.into()], vec![], complex());
    let args = |it: tracefx_ir::NodeId| vec![it.into(), Arg::List(vec![Arg::Int(0)]), Arg::Int(0), Arg::Bool(true)];
    let fft = program.call("aten._fft_c2c.default", args(product), vec![], complex());
    let real = program.call("aten.view_as_real.default", vec![fft.into()], vec![], pairs());
    let again = program.call("aten.view_as_complex.default", vec![real.into()], vec![], complex());
    let half = program.call("aten._fft_r2c.default", args(x), vec![], tensor(DType::Complex64, &[3.into()]));
    let mut back_args = args(half);
    back_args[3] = Arg::Int(4);
    let back = program.call("aten._fft_c2r.default", back_args, vec![], floats(&[4]));
    let size = program.call("aten.abs.default", vec![again.into()], vec![], floats(&[4]));
    let model = to_model(&program.finish(&[real, back, size]), &Options::default()).unwrap();
    let nodes = model.graph.unwrap().node;
    assert_eq!(nodes.iter().filter(|it| it.op_type == "DFT").count(), 3);
}

#[test]
fn determinants_and_slopes_are_translated_without_their_other_results() {
    let mut program = Program::new();
    let x = program.input("x", floats(&[3, 3]));
    let several = |vals: &[Val]| Val::Seq { items: vals.to_vec(), is_tuple: true };
    let ints = tensor(DType::Int32, &[3.into()]);
    let det = program.call(
        "aten._linalg_det.default",
        vec![x.into()],
        vec![],
        several(&[floats(&[]), floats(&[3, 3]), ints]),
    );
    let det = program.item(det, 0, floats(&[]));
    let args = vec![x.into(), x.into()];
    let rrelu = program.call(
        "aten.rrelu_with_noise_functional.default",
        args,
        vec![],
        several(&[floats(&[3, 3]), floats(&[3, 3])]),
    );
    let rrelu = program.item(rrelu, 0, floats(&[3, 3]));
    let asserted = program.call("aten.gt.Scalar", vec![det.into(), Arg::Int(0)], vec![], tensor(DType::Bool, &[]));
    program.call("aten._assert_async.msg", vec![asserted.into(), Arg::str("singular")], vec![], Val::None);
    program.call("aten._assert_tensor_metadata.default", vec![x.into()], vec![], Val::None);
    let size = program.call("aten.sym_size.int", vec![x.into(), Arg::Int(0)], vec![], Val::Int(symbol("s0")));
    program.call("aten.sym_constrain_range_for_size.default", vec![size.into()], vec![], Val::None);
    let known = program.call("operator.ge", vec![size.into(), Arg::Int(2)], vec![], Val::Bool(true.into()));
    program.call("aten._assert_scalar.default", vec![known.into(), Arg::str("small")], vec![], Val::None);
    let graph = to_model(&program.finish(&[det, rrelu]), &Options::default()).unwrap().graph.unwrap();
    let ops: Vec<&str> = graph.node.iter().map(|it| it.op_type.as_str()).collect();
    assert_eq!(ops, ["Det", "LeakyRelu"], "assertions are no part of a model");
}
