//! A program with something in every field.

use indexmap::IndexMap;
use std::sync::Arc;
use tracefx_core::{Complex64, DType, Layout, MemoryFormat, Tensor};
use tracefx_export::{
    Argument, CallSignature, Constant, ConstantValue, ExportedProgram, GraphSignature, InputKind, InputSpec,
    ModuleCallEntry, OutputKind, OutputSpec, StateEntry, TreeSpec,
};
use tracefx_ir::{Arg, Graph, GraphModule, Str, TensorMeta, Val};
use tracefx_ops::Value;
use tracefx_sym::{Assumptions, SymInt, Symbol, ValueRange};

/// A program with something in every field.
pub(crate) fn small() -> ExportedProgram {
    let s0 = Symbol::size("s0");
    let weight = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3]).unwrap();
    let flag = Tensor::from_slice(&[7i64], &[]).unwrap();
    ExportedProgram {
        module: GraphModule::new(graph(&s0)),
        signature: signature(),
        state_dict: [
            ("weight".into(), StateEntry { tensor: weight.clone(), is_parameter: true, requires_grad: true }),
            ("tied".into(), StateEntry { tensor: weight.clone(), is_parameter: true, requires_grad: false }),
            ("steps".into(), StateEntry { tensor: flag.clone(), is_parameter: false, requires_grad: false }),
        ]
        .into_iter()
        .collect(),
        opaque_state: IndexMap::from([("subclass".into(), Arc::new(b"\x80\x02}q\x00.".to_vec()))]),
        constants: IndexMap::from([
            ("lifted".into(), Constant::Tensor(Tensor::from_slice(&[0.5f64], &[1]).unwrap())),
            ("object".into(), Constant::CustomObj(Arc::new(b"\x80\x02.".to_vec()))),
            ("nothing".into(), Constant::CustomObj(Arc::new(b"".to_vec()))),
        ]),
        range_constraints: IndexMap::from([
            (s0, ValueRange { min: Some(2), max: Some(i64::MAX) }),
            (Symbol::integer("u0"), ValueRange { min: None, max: Some(-1) }),
            (Symbol::integer("s77 + 1"), ValueRange { min: Some(3), max: None }),
            (Symbol::new("zf1", Assumptions { real: true, ..Assumptions::default() }), ValueRange::UNBOUNDED),
        ]),
        module_call_graph: call_graph(),
        verifiers: vec!["TRAINING".into(), "ATEN".into()],
        guards: vec!["L['args'][0][0].size()[0] <= 64".into()],
        example_inputs: Some(vec![
            Value::Tensor(flag),
            Value::List(vec![Value::Tensor(weight), Value::None, Value::int(i64::MIN)]),
            Value::Bool(true),
            Value::Float(f64::from_bits(0x7ff8_0000_0000_beef)),
            Value::Complex(Complex64 { re: -0.0, im: 1.0 }),
            Value::Str("größe".into()),
            Value::DType(DType::Float8E5M2),
            Value::Device("cuda:1".parse().unwrap()),
            Value::Layout(Layout::Jagged),
            Value::MemoryFormat(MemoryFormat::Preserve),
        ]),
        opset_version: IndexMap::from([("aten".into(), 10), ("prims".into(), -1)]),
        schema_version: (8, 15),
        torch_version: "2.9.0+cpu".into(),
        namedtuple_fields: IndexMap::from([("Point".into(), vec!["x".into(), "y".into()]), ("Empty".into(), vec![])]),
        extra_files: IndexMap::from([("notes.txt".into(), "größe\n".into())]),
        warnings: vec![],
    }
}

fn graph(s0: &Symbol) -> Graph {
    let mut graph = Graph::new();
    let weight = graph.placeholder("p_weight");
    let x = graph.placeholder("x");
    let size = SymInt::from(s0.clone());
    graph.meta_mut(x).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, vec![size, SymInt::from(3)])));
    let product = graph.call_function("torch.ops.aten.mul.Tensor", vec![Arg::Node(x), Arg::Node(weight)], vec![]);
    graph.output(Arg::Tuple(vec![Arg::Node(product)]));
    graph
}

fn signature() -> GraphSignature {
    let name = |it: &str| -> Str { it.into() };
    let input =
        |kind, arg, target: Option<&str>, persistent| InputSpec { kind, arg, target: target.map(name), persistent };
    let output = |kind, arg, target: Option<&str>| OutputSpec { kind, arg, target: target.map(name) };
    let constant = |at: &str, value| Argument::Constant { name: name(at), value };
    let tensor = |at: &str| Argument::Tensor(name(at));
    GraphSignature {
        input_specs: vec![
            input(InputKind::Parameter, tensor("p_weight"), Some("weight"), None),
            input(InputKind::Buffer, tensor("b_steps"), Some("steps"), Some(true)),
            input(InputKind::Buffer, tensor("b_mask"), Some("mask"), Some(false)),
            input(InputKind::ConstantTensor, tensor("c_lifted"), Some("lifted"), None),
            input(
                InputKind::CustomObj,
                Argument::CustomObj { name: name("obj"), class_fqn: name("my.Class") },
                Some("object"),
                None,
            ),
            input(InputKind::Token, Argument::Token(name("token")), None, None),
            input(InputKind::UserInput, tensor("x"), None, None),
            input(InputKind::UserInput, Argument::SymInt(name("n")), None, None),
            input(InputKind::UserInput, Argument::SymFloat(name("f")), None, None),
            input(InputKind::UserInput, Argument::SymBool(name("b")), None, None),
            input(InputKind::UserInput, constant("none", ConstantValue::None), None, None),
            input(InputKind::UserInput, constant("int", ConstantValue::Int(1 << 60)), None, None),
            input(InputKind::UserInput, constant("float", ConstantValue::Float(1.0)), None, None),
            input(InputKind::UserInput, constant("nan", ConstantValue::Float(f64::NAN)), None, None),
            input(InputKind::UserInput, constant("bool", ConstantValue::Bool(false)), None, None),
            input(InputKind::UserInput, constant("text", ConstantValue::Str(name("größe"))), None, None),
        ],
        output_specs: vec![
            output(OutputKind::BufferMutation, tensor("add"), Some("steps")),
            output(OutputKind::UserOutput, tensor("mul"), None),
            output(OutputKind::UserOutput, constant("", ConstantValue::None), None),
        ],
    }
}

fn call_graph() -> Vec<ModuleCallEntry> {
    let keys = TreeSpec {
        ty: Some("builtins.dict".into()),
        context: Some("[\"größe\"]".into()),
        children: vec![TreeSpec::LEAF, TreeSpec::list(vec![])],
    };
    let signature = CallSignature {
        inputs: vec![Argument::Tensor("x".into())],
        outputs: vec![],
        in_spec: TreeSpec::tuple(vec![TreeSpec::tuple(vec![TreeSpec::LEAF]), keys]),
        out_spec: TreeSpec::LEAF,
        forward_arg_names: Some(vec!["x".into()]),
    };
    let inner = CallSignature { forward_arg_names: None, ..signature.clone() };
    vec![
        ModuleCallEntry { fqn: "".into(), signature: Some(signature) },
        ModuleCallEntry { fqn: "layer".into(), signature: None },
        ModuleCallEntry { fqn: "layer.inner@1".into(), signature: Some(inner) },
    ]
}
