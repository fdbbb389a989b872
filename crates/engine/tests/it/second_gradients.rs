//! Gradients of gradients where formulas choose, meet zeros or leave what they are defined for, beside PyTorch's numbers
//! (`tests/oracle/gen_second_gradients.py`).

use crate::extensions::decoded;
use serde_json::Value as Json;
use tracefx_core::Tensor;
use tracefx_engine::{Library, Runner};
use tracefx_export::{
    Argument, DecompositionTable, ExportedProgram, GraphSignature, InputKind, InputSpec, OutputKind, OutputSpec,
};
use tracefx_ir::{Arg, Graph, GraphModule, InsertPoint, NodeId, Opcode, TensorMeta, Val};
use tracefx_ops::{Value, registry};

/// Where other numbers come of it than in PyTorch, and why; the place is one of the tensors that second gradients are of.
const DIFFERENT: &[(&str, usize, &[f64])] = &[
    // PyTorch masks a product with the logarithm of zero, and the gradient of that is NaN. No other power of zero grows with its exponent.
    ("aten.pow.Tensor_Tensor", 1, &[f64::NAN, 3.0, 0.0, 0.0, 7.206795208773021, f64::NAN, f64::INFINITY]),
    ("aten.pow.Scalar", 0, &[0.0, 0.0, 0.0]),
];

fn numbers(it: &Value<Tensor>) -> Vec<f64> {
    let Value::Tensor(it) = it else { panic!("{it:?} is no tensor") };
    it.to_vec().unwrap()
}

/// A tensor of these sizes with the numbers `first`, `first + step`…
fn counting(like: &Value<Tensor>, first: f64, step: f64) -> Value<Tensor> {
    let Value::Tensor(it) = like else { panic!("{like:?} is no tensor") };
    let numbers: Vec<f64> = (0..it.numel()).map(|at| first + at as f64 * step).collect();
    Value::Tensor(Tensor::from_slice(&numbers, it.sizes()).unwrap())
}

/// An argument that is no tensor.
fn constant(value: &Value<Tensor>) -> Arg {
    match value {
        Value::Float(it) => Arg::Float(*it),
        Value::Bool(it) => Arg::Bool(*it),
        Value::Int(it) => Arg::Int(it.as_int().unwrap()),
        Value::List(items) => Arg::List(items.iter().map(constant).collect()),
        other => panic!("a {} among the arguments", other.kind_name()),
    }
}

/// A recorded argument; a text is a number that is not finite.
fn argument(library: &Library, json: &Json) -> Value<Tensor> {
    match decoded(library, json) {
        Value::Str(it) => Value::Float(it.parse().unwrap()),
        other => other,
    }
}

fn op(graph: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    graph.call_function(&format!("torch.ops.{name}"), args, Vec::new())
}

/// Behind all other inputs.
fn input(graph: &mut Graph, value: &Value<Tensor>, requires_grad: bool) -> NodeId {
    let is_input = |it: &NodeId| graph.node(*it).op() == Opcode::Placeholder;
    let last = graph.nodes().take_while(is_input).last();
    let node = match last {
        Some(last) => {
            let before = graph.set_insert_point(InsertPoint::After(last)).unwrap();
            let node = graph.placeholder("input");
            graph.set_insert_point(before).unwrap();
            node
        }
        None => graph.placeholder("input"),
    };
    let Value::Tensor(value) = value else { panic!("{value:?} is no tensor") };
    graph.meta_mut(node).val = Some(Val::Tensor(TensorMeta { requires_grad, ..TensorMeta::of(value) }));
    node
}

/// The program that gives the sum of these times weights, and its gradients: those of all that a gradient is wanted of, on which the
/// sum is made to depend.
fn joint_of(mut graph: Graph, results: &[NodeId], weights: &[NodeId], table: &DecompositionTable) -> ExportedProgram {
    let is_wanted = |it: &NodeId| {
        let node = graph.node(*it);
        node.op() == Opcode::Placeholder && matches!(&node.meta.val, Some(Val::Tensor(it)) if it.requires_grad)
    };
    let wanted: Vec<NodeId> = graph.nodes().filter(is_wanted).collect();
    let mut terms = Vec::new();
    for (result, weight) in results.iter().zip(weights) {
        let product = op(&mut graph, "aten.mul.Tensor", vec![(*result).into(), (*weight).into()]);
        terms.push(op(&mut graph, "aten.sum.default", vec![product.into()]));
    }
    for it in wanted {
        let nothing = op(&mut graph, "aten.mul.Scalar", vec![it.into(), Arg::Float(0.0)]);
        terms.push(op(&mut graph, "aten.sum.default", vec![nothing.into()]));
    }
    let add = |a, b: NodeId| op(&mut graph, "aten.add.Tensor", vec![Arg::Node(a), b.into()]);
    let sum = terms.into_iter().reduce(add).unwrap();
    graph.output(Arg::Tuple(vec![sum.into()]));
    let arg_of = |it: NodeId| Argument::Tensor(graph.node(it).name().clone());
    let spec = |it: NodeId| InputSpec { kind: InputKind::UserInput, arg: arg_of(it), target: None, persistent: None };
    let inputs = graph.nodes().filter(|it| graph.node(*it).op() == Opcode::Placeholder);
    let signature = GraphSignature {
        input_specs: inputs.map(spec).collect(),
        output_specs: vec![OutputSpec { kind: OutputKind::UserOutput, arg: arg_of(sum), target: None }],
    };
    let mut program = ExportedProgram::new(GraphModule::new(graph), signature);
    let problems = program.note_values(table.registry());
    assert!(problems.is_empty(), "{problems:?}");
    program.export_forward_backward(0, table).unwrap_or_else(|problem| panic!("{problem}\n{}", program.module.graph))
}

fn run(program: &ExportedProgram, inputs: &[Value<Tensor>]) -> Vec<Value<Tensor>> {
    Runner::new(program).unwrap().run(inputs).unwrap_or_else(|problem| panic!("{problem}\n{}", program.module.graph))
}

#[track_caller]
fn check(found: &[f64], expected: &[f64], what: &str) {
    let is_near = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * (1.0 + b.abs());
    let is_equal = found.len() == expected.len() && found.iter().zip(expected).all(is_near);
    assert!(is_equal, "{what}: {found:?} instead of {expected:?}");
}

#[test]
fn gradients_of_gradients_are_those_of_pytorch() {
    let library = Library::default();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/second-gradients/cases.jsonl");
    let mut table = DecompositionTable::empty_of(library.registry());
    for composite in registry().ops().into_iter().filter(|it| it.is_decomposed() && it.def.vjp.is_none()) {
        table.insert(&composite.name).unwrap();
    }
    let mut n_cases = 0;
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row: Json = serde_json::from_str(line).unwrap();
        let name = row["op"].as_str().unwrap();
        let is_number = |it: &Json| it.get("dtype").is_some_and(|it| it == "float64");
        let list = |key: &str| row[key].as_array().unwrap().iter().map(|it| argument(&library, it)).collect::<Vec<_>>();
        let mut graph = Graph::new();
        let mut inputs = Vec::new();
        let mut args = Vec::new();
        for (json, value) in row["args"].as_array().unwrap().iter().zip(list("args")) {
            args.push(match &value {
                Value::Tensor(_) => {
                    let node = input(&mut graph, &value, is_number(json));
                    inputs.push(value);
                    node.into()
                }
                other => constant(other),
            });
        }
        let forward = library.call(name, &list("args"), Vec::new()).unwrap_or_else(|it| panic!("{it}: {line}")).results;
        let called = op(&mut graph, name, args);
        let is_tuple = forward.len() > 1;
        let result = if is_tuple {
            graph.call_function("operator.getitem", vec![called.into(), Arg::Int(0)], vec![])
        } else {
            called
        };
        let weights = row.get("weights").map_or_else(|| counting(&forward[0], 1.0, 1.0), |it| decoded(&library, it));
        let weight = input(&mut graph, &weights, false);
        inputs.push(weights);
        let joint = joint_of(graph, &[result], &[weight], &table);
        let first = run(&joint, &inputs).split_off(1);
        for (found, expected) in first.iter().zip(list("first")) {
            check(&numbers(found), &numbers(&expected), &format!("first of {line}"));
        }
        let mut graph = joint.module.graph.clone();
        let output = graph.output_node().unwrap();
        let Some(Arg::Tuple(results)) = graph.node(output).args().first().cloned() else { panic!("it gives a tuple") };
        let gradients: Vec<NodeId> = results[1..].iter().filter_map(Arg::as_node).collect();
        graph.erase_node(output).unwrap();
        let weights: Vec<_> = first.iter().map(|it| counting(it, 1.0, 0.5)).collect();
        let nodes: Vec<NodeId> = weights.iter().map(|it| input(&mut graph, it, false)).collect();
        inputs.extend(weights);
        let second = run(&joint_of(graph, &gradients, &nodes, &table), &inputs).split_off(1);
        for (at, (found, expected)) in second.iter().zip(list("second")).enumerate() {
            let is_base_zero = name != "aten.pow.Scalar" || row["args"][0] == 0.0;
            let other = DIFFERENT.iter().find(|(op, place, _)| *op == name && *place == at && is_base_zero);
            let expected = other.map_or_else(|| numbers(&expected), |it| it.2.to_vec());
            check(&numbers(found), &expected, &format!("second of {line}"));
        }
        n_cases += 1;
    }
    assert_eq!(n_cases, 66);
}
