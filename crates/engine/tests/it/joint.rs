//! Training graphs beside what PyTorch gives: the same signature, and the loss, the gradients and the changed buffers by
//! the tolerances of gradients.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tracefx_core::{Code, DType, Element, Scalar, Tensor};
use tracefx_engine::{Limits, Runner, open, read_tensors};
use tracefx_export::{
    Argument, ExportedProgram, GraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, default_decompositions,
};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, TensorMeta, Val};
use tracefx_ops::{Value, registry};
use tracefx_sym::{SymInt, Symbol};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/joint")
}

struct Case {
    name: String,
    meta: Json,
    program: ExportedProgram,
}

impl Case {
    fn open(name: &str) -> Case {
        let folder = directory().join(name);
        let program = open(&fs::read(folder.join("model.pt2")).unwrap(), &Limits::default()).unwrap();
        let meta = serde_json::from_slice(&fs::read(folder.join("meta.json")).unwrap()).unwrap();
        Case { name: name.to_string(), meta, program }
    }

    fn all() -> Vec<Case> {
        let names = fs::read_dir(directory()).unwrap().map(|it| it.unwrap());
        let mut names: Vec<String> = names
            .filter(|it| it.path().join("model.pt2").exists() && it.file_name() != "digits")
            .map(|it| it.file_name().to_string_lossy().to_string())
            .collect();
        names.sort();
        names.iter().map(|it| Case::open(it)).collect()
    }

    fn joint(&self) -> tracefx_core::Result<ExportedProgram> {
        let index = self.meta["joint_loss_index"].as_u64().unwrap() as usize;
        self.program.export_forward_backward(index, &default_decompositions())
    }

    fn numbers(&self) -> Option<BTreeMap<String, Tensor>> {
        let bytes = fs::read(directory().join(&self.name).join("numbers.safetensors")).ok()?;
        Some(read_tensors(&bytes).unwrap().into_iter().collect())
    }
}

fn scalars(tensor: &Tensor) -> Vec<Scalar> {
    tracefx_core::with_element!(tensor.dtype(), T => {
        tensor.to_vec::<T>().unwrap().into_iter().map(Element::to_scalar).collect()
    }, else Vec::new())
}

#[track_caller]
fn assert_close(got: &Tensor, want: &Tensor, what: &str) {
    assert_eq!((got.dtype(), got.sizes()), (want.dtype(), want.sizes()), "{what}");
    let (got, want): (Vec<f64>, Vec<f64>) = (floats(got), floats(want));
    let scale = want.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    // Sums of products of single floats, in another order.
    let tolerance = 2e-5 * scale + 1e-6;
    let differs = got.iter().zip(&want).find(|(a, b)| (*a - *b).abs() > tolerance && !(a.is_nan() && b.is_nan()));
    assert!(differs.is_none(), "{what}: {differs:?}\n{got:?}\n{want:?}");
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    scalars(tensor).into_iter().map(|it| it.to_complex().re).collect()
}

/// Runs a joint program, and compares all that it gives and changes with what PyTorch recorded.
fn check_numbers(case: &Case, joint: &ExportedProgram) {
    let numbers = case.numbers().unwrap();
    let runner = Runner::new(joint).unwrap();
    let inputs: Vec<Value<Tensor>> = (0..)
        .map_while(|at| numbers.get(&format!("in{at}")))
        .map(|it| Value::Tensor(it.compact_copy().unwrap()))
        .collect();
    let results =
        runner.run(&inputs).unwrap_or_else(|problem| panic!("{}: {problem}\n{}", case.name, joint.module.graph));
    let specs = joint.signature.output_specs.iter().filter(|it| it.kind.is_result());
    let (mut n_outputs, mut n_gradients) = (0, 0);
    for (result, spec) in results.iter().zip(specs) {
        let key = match spec.kind {
            OutputKind::GradientToParameter | OutputKind::GradientToUserInput => {
                n_gradients += 1;
                format!("grad.{}", spec.target.as_ref().unwrap())
            }
            _ => {
                n_outputs += 1;
                format!("out{}", n_outputs - 1)
            }
        };
        let Value::Tensor(got) = result else { panic!("{}: a {} as {key}", case.name, result.kind_name()) };
        assert_close(got, &numbers[&key], &format!("{}: {key}", case.name));
    }
    let count = |prefix: &str| numbers.keys().filter(|it| it.starts_with(prefix)).count();
    assert_eq!((n_outputs, n_gradients), (count("out"), count("grad.")), "{}", case.name);
    for (name, want) in numbers.iter().filter_map(|(name, it)| Some((name.strip_prefix("buffer.")?, it))) {
        let (_, got) = runner.state().find(|(it, _)| ***it == *name).unwrap();
        assert_close(got, want, &format!("{}: {name}", case.name));
    }
    let names: Vec<_> = joint.signature.user_inputs().map(|it| it.arg.name().to_string()).collect();
    for (name, want) in numbers.iter().filter_map(|(name, it)| Some((name.strip_prefix("input.")?, it))) {
        let Value::Tensor(got) = &inputs[names.iter().position(|it| it == name).unwrap()] else { panic!("a tensor") };
        assert_close(got, want, &format!("{}: {name}", case.name));
    }
}

#[test]
fn joint_programs_give_pytorchs_loss_gradients_and_buffers() {
    let mut n_cases = 0;
    for case in Case::all().into_iter().filter(|it| it.numbers().is_some()) {
        let joint = case.joint().unwrap_or_else(|problem| panic!("{}: {problem}", case.name));
        assert!(joint.module.graph.lint(None).is_empty(), "{}", case.name);
        check_numbers(&case, &joint);
        n_cases += 1;
    }
    assert!(n_cases > 18, "{n_cases} cases");
}

#[test]
fn joint_programs_have_pytorchs_signature() {
    for case in Case::all() {
        let Some(wanted) = case.meta["outputs"].as_array() else { continue };
        let joint = case.joint().unwrap();
        let target = |it: &Option<tracefx_ir::Str>| it.as_ref().map_or(Json::Null, |it| Json::from(&**it));
        let got: Vec<Json> = joint
            .signature
            .output_specs
            .iter()
            .map(|it| serde_json::json!([it.kind.name(), target(&it.target)]))
            .collect();
        assert_eq!(&got, wanted, "{}", case.name);
        assert_eq!(joint.signature.input_specs, case.program.signature.input_specs, "{}", case.name);
    }
}

#[test]
fn what_pytorch_refuses_is_refused_in_its_words() {
    let mut n_refused = 0;
    for case in Case::all().iter().filter(|it| it.name.starts_with("refused_")) {
        let problem = case.joint().unwrap_err();
        let says = case.meta["refused"].as_str().unwrap();
        let first = says.lines().next().unwrap();
        assert!(problem.message().starts_with(first), "{}: {problem}\nbut PyTorch: {says}", case.name);
        let code = if case.name == "refused_index" { Code::IndexOutOfRange } else { Code::InvalidArgument };
        assert_eq!(problem.code(), code, "{}", case.name);
        n_refused += 1;
    }
    assert_eq!(n_refused, 7);
}

#[test]
fn a_joint_program_is_decomposed_like_any_other() {
    for case in Case::all().into_iter().filter(|it| it.numbers().is_some()) {
        let joint = case.joint().unwrap();
        for id in joint.module.graph.nodes().filter(|&it| joint.module.graph.node(it).op() == Opcode::CallFunction) {
            let target = joint.module.graph.node(id).target();
            assert!(
                registry().get(target).is_none_or(|it| !it.is_decomposed() && !it.may_write()),
                "{}: {target}",
                case.name
            );
        }
        let again = joint.run_decompositions(&default_decompositions()).unwrap();
        let kinds = |it: &ExportedProgram| it.signature.output_specs.iter().map(|it| it.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&again), kinds(&joint));
        check_numbers(&case, &again);
        let problem = joint.export_forward_backward(0, &default_decompositions()).unwrap_err();
        assert_eq!(problem.code(), Code::InvalidArgument);
    }
}

/// A program of one input whose gradient is wanted.
fn program_of(body: impl FnOnce(&mut Graph, NodeId) -> NodeId) -> ExportedProgram {
    let mut program = Case::open("input_gradients").program;
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let meta = TensorMeta { requires_grad: true, ..TensorMeta::contiguous(DType::Float64, vec![3.into()]) };
    graph.meta_mut(x).val = Some(Val::Tensor(meta));
    let result = body(&mut graph, x);
    let name = graph.node(result).name().clone();
    graph.output(Arg::Tuple(vec![Arg::Node(result)]));
    program.module = GraphModule::new(graph);
    let input =
        InputSpec { kind: InputKind::UserInput, arg: Argument::Tensor("x".into()), target: None, persistent: None };
    let output = OutputSpec { kind: OutputKind::UserOutput, arg: Argument::Tensor(name), target: None };
    program.signature = GraphSignature { input_specs: vec![input], output_specs: vec![output] };
    (program.state_dict, program.module_call_graph, program.guards) = Default::default();
    program.example_inputs = None;
    program
}

fn op(graph: &mut Graph, name: &str, args: &[Arg]) -> NodeId {
    graph.call_function(&format!("torch.ops.aten.{name}"), args.to_vec(), Vec::new())
}

fn gradient(joint: &ExportedProgram, x: &[f64]) -> Vec<f64> {
    let input = Value::Tensor(Tensor::from_slice(x, &[x.len()]).unwrap());
    match Runner::new(joint).unwrap().run(&[input]).unwrap().swap_remove(1) {
        Value::Tensor(it) => it.to_vec().unwrap(),
        other => panic!("a {} as a gradient", other.kind_name()),
    }
}

fn noted(graph: &mut Graph, node: NodeId, sizes: &[SymInt]) -> NodeId {
    graph.meta_mut(node).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float64, sizes.to_vec())));
    node
}

/// The positive elements of a tensor, of which there are so many.
fn positive(graph: &mut Graph, x: NodeId, count: &SymInt) -> NodeId {
    let mask = op(graph, "gt.Scalar", &[x.into(), Arg::Int(0)]);
    graph.meta_mut(mask).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Bool, vec![3.into()])));
    let chosen = op(graph, "masked_select.default", &[x.into(), mask.into()]);
    noted(graph, chosen, std::slice::from_ref(count))
}

fn unbacked(name: &str) -> SymInt {
    Symbol::from_name(name).into()
}

/// `weights` is of the size that `masked_select` gives, and can be given only when that is known.
#[test]
fn sizes_that_the_data_decides_are_read_where_they_come_to_be() {
    let u0 = unbacked("u0");
    let mut program = program_of(|graph, x| {
        let weights = graph.placeholder("weights");
        noted(graph, weights, &[1.into(), u0.clone()]);
        let chosen = positive(graph, x, &u0);
        let row = op(graph, "stack.default", &[Arg::List(vec![chosen.into()])]);
        noted(graph, row, &[1.into(), u0.clone()]);
        let product = op(graph, "mul.Tensor", &[row.into(), weights.into()]);
        noted(graph, product, &[1.into(), u0.clone()]);
        let sum = op(graph, "sum.default", &[product.into()]);
        noted(graph, sum, &[])
    });
    let weights = InputSpec { arg: Argument::Tensor("weights".into()), ..program.signature.input_specs[0].clone() };
    program.signature.input_specs.push(weights);
    let joint = program.export_forward_backward(0, &default_decompositions()).unwrap();
    let graph = &joint.module.graph;
    let sizes = graph.nodes().filter(|it| &**graph.node(*it).target() == "torch.ops.aten.sym_size.int");
    let read: Vec<String> = sizes.map(|it| format!("{:?}", graph.node(it).args()[0])).collect();
    let weights = graph.nodes().find(|it| &**graph.node(*it).name() == "weights").unwrap();
    assert!(!read.is_empty() && !read.contains(&format!("{:?}", Arg::Node(weights))), "{graph}");
}

#[test]
fn sizes_that_only_the_data_tells_may_be_equal() {
    let [u0, u1] = ["u0", "u1"].map(unbacked);
    let program = program_of(|graph, x| {
        let twice = op(graph, "mul.Tensor", &[x.into(), x.into()]);
        noted(graph, twice, &[3.into()]);
        let both = [positive(graph, x, &u0), positive(graph, twice, &u1)].map(Arg::Node);
        let pairs = op(graph, "stack.default", &[Arg::List(both.into()), Arg::Int(1)]);
        noted(graph, pairs, &[u0, 2.into()]);
        let sum = op(graph, "sum.default", &[pairs.into()]);
        noted(graph, sum, &[])
    });
    let joint = program.export_forward_backward(0, &default_decompositions()).unwrap();
    assert_eq!(gradient(&joint, &[1.0, 2.0, 3.0]), [3.0, 5.0, 7.0]);
}

#[test]
fn a_chain_of_a_hundred_thousand_nodes_has_a_gradient() {
    const N: usize = 100_000;
    let program = program_of(|graph, x| {
        let mut at = x;
        for _ in 0..N {
            at = op(graph, "neg.default", &[at.into()]);
        }
        op(graph, "sum.default", &[at.into()])
    });
    let joint = program.export_forward_backward(0, &default_decompositions()).unwrap();
    let n_nodes = joint.module.graph.nodes().count();
    assert!((2 * N..2 * N + 10).contains(&n_nodes), "{n_nodes} nodes");
    assert!(joint.module.graph.lint(None).is_empty());
}

#[test]
fn a_value_with_many_uses_has_the_sum_of_their_gradients() {
    let program = program_of(|graph, x| {
        let twice = op(graph, "mul.Tensor", &[x.into(), x.into()]);
        let again = op(graph, "add.Tensor", &[twice.into(), x.into()]);
        op(graph, "sum.default", &[again.into()])
    });
    let joint = program.export_forward_backward(0, &default_decompositions()).unwrap();
    assert_eq!(gradient(&joint, &[1.0, 2.0, -3.0]), [3.0, 5.0, -5.0]);
}

#[test]
fn dropout_drops_the_same_elements_both_ways() {
    let program = program_of(|graph, x| {
        let dropped = op(graph, "dropout.default", &[x.into(), Arg::Float(0.5), Arg::Bool(true)]);
        op(graph, "sum.default", &[dropped.into()])
    });
    let joint = program.export_forward_backward(0, &default_decompositions()).unwrap();
    let input = || Value::Tensor(Tensor::from_slice(&[1.0, 10.0, 100.0], &[3]).unwrap());
    for _ in 0..20 {
        let results = Runner::new(&joint).unwrap().run(&[input()]).unwrap();
        let [Value::Tensor(loss), Value::Tensor(gradient)] = &results[..] else { panic!("two tensors") };
        let gradient = gradient.to_vec::<f64>().unwrap();
        assert!(gradient.iter().all(|it| [0.0, 2.0].contains(it)), "{gradient:?}");
        let kept: f64 = gradient.iter().zip([1.0, 10.0, 100.0]).map(|(a, b)| a * b).sum();
        assert_eq!(loss.to_vec::<f64>().unwrap(), [kept]);
    }
}

/// `wrap_with_set_grad_enabled(False, body, x)`, whose body is this.
fn without_gradients(program: &mut ExportedProgram, body: impl FnOnce(&mut Graph, NodeId) -> NodeId) {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let result = body(&mut graph, x);
    graph.output(Arg::Node(result));
    program.module.attributes.insert("body".into(), Attribute::Module(Box::new(GraphModule::new(graph))));
}

fn call_body(graph: &mut Graph, x: NodeId) -> NodeId {
    let body = graph.get_attr("body");
    let args = vec![Arg::Bool(false), body.into(), x.into()];
    graph.call_function("torch.ops.higher_order.wrap_with_set_grad_enabled", args, Vec::new())
}

#[test]
fn what_is_written_out_of_sight_of_gradients_is_refused() {
    let mut program = program_of(|graph, x| {
        let doubled = op(graph, "mul.Scalar", &[x.into(), Arg::Int(2)]);
        call_body(graph, doubled);
        op(graph, "sum.default", &[doubled.into()])
    });
    without_gradients(&mut program, |graph, x| op(graph, "mul_.Scalar", &[x.into(), Arg::Int(3)]));
    let problem = program.export_forward_backward(0, &default_decompositions()).unwrap_err();
    assert_eq!(problem.code(), Code::NotImplemented, "{problem}");

    let detached = program_of(|graph, x| {
        let doubled = op(graph, "mul.Scalar", &[x.into(), Arg::Int(2)]);
        let detached = op(graph, "detach.default", &[doubled.into()]);
        op(graph, "mul_.Scalar", &[detached.into(), Arg::Int(3)]);
        op(graph, "sum.default", &[doubled.into()])
    });
    let problem = detached.export_forward_backward(0, &default_decompositions()).unwrap_err();
    assert_eq!(problem.code(), Code::NotImplemented, "{problem}");
}

#[test]
fn what_is_the_same_tensor_without_gradients_has_none() {
    let mut program = program_of(|graph, x| {
        let frozen = call_body(graph, x);
        let product = op(graph, "mul.Tensor", &[x.into(), frozen.into()]);
        op(graph, "sum.default", &[product.into()])
    });
    without_gradients(&mut program, |graph, x| op(graph, "alias.default", &[x.into()]));
    let joint = program.export_forward_backward(0, &default_decompositions()).unwrap();
    assert_eq!(gradient(&joint, &[1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]);
}

/// What a graph is made of as far as control flow goes: how much it takes, which of its results are zeros, and the calls of
/// control flow, each with its operands and graphs. The formulas of gradients in between are our own.
fn outline(graphs: &BTreeMap<String, String>, path: &str) -> Vec<String> {
    let calls: BTreeMap<&str, &str> = graphs[path]
        .lines()
        .filter_map(|line| {
            let (name, call) = line.trim().strip_prefix('%')?.split_once(" : [num_users=")?;
            Some((name, call.split_once("] = ")?.1))
        })
        .collect();
    let lines = graphs[path].lines().map(str::trim);
    let n_inputs = calls.values().filter(|it| it.starts_with("placeholder")).count();
    let mut told = vec![format!("{n_inputs} inputs")];
    for line in lines {
        if let Some(results) = line.strip_prefix("return ") {
            let names = results.split(|it: char| !it.is_alphanumeric() && it != '_').filter(|it| !it.is_empty());
            let is_zero = |name: &str| calls[name].contains("full_like") && calls[name].contains(", 0)");
            let kinds: Vec<&str> = names.map(|it| if is_zero(it) { "zeros" } else { "value" }).collect();
            told.push(format!("gives {}", kinds.join(" ")));
        } else if let Some((_, call)) = line.split_once("call_function[target=torch.ops.higher_order.") {
            told.push(format!("calls {} with {}", call.split(']').next().unwrap(), call.matches('%').count()));
        } else if let Some((_, target)) = line.split_once("get_attr[target=") {
            let inner = outline(graphs, &format!("{path}{}.", target.trim_end_matches(']')));
            told.extend(inner.into_iter().map(|it| format!("  {it}")));
        }
    }
    told
}

/// The texts of a graph and of those that it calls, by their paths, each with a point at the end.
fn texts(module: &GraphModule, path: &str, found: &mut BTreeMap<String, String>) {
    found.insert(path.to_string(), module.graph.to_string());
    for (name, attribute) in &module.attributes {
        if let Attribute::Module(inner) = attribute {
            texts(inner, &format!("{path}{name}."), found);
        }
    }
}

/// The texts that PyTorch recorded.
fn recorded(case: &Case) -> BTreeMap<String, String> {
    let main = fs::read_to_string(directory().join(&case.name).join("joint.txt")).unwrap();
    let inner = case.meta["graphs"].as_object().unwrap().iter();
    let inner = inner.map(|(path, text)| (format!("{path}."), text.as_str().unwrap().to_string()));
    inner.chain([(String::new(), main)]).collect()
}

#[test]
fn joint_graphs_call_control_flow_as_pytorchs_do() {
    let mut n_cases = 0;
    for case in Case::all().into_iter().filter(|it| it.meta["graphs"].is_object()) {
        let joint = case.joint().unwrap();
        let mut found = BTreeMap::new();
        texts(&joint.module, "", &mut found);
        assert_eq!(outline(&found, ""), outline(&recorded(&case), ""), "{}", case.name);
        n_cases += 1;
    }
    assert_eq!(n_cases, 10);
}

/// `higher_order.NAME`, on a graph of one input.
fn add_graph(module: &mut GraphModule, name: &str, body: impl FnOnce(&mut Graph, NodeId) -> NodeId) {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let meta = TensorMeta { requires_grad: true, ..TensorMeta::contiguous(DType::Float64, vec![3.into()]) };
    graph.meta_mut(x).val = Some(Val::Tensor(meta.clone()));
    let result = body(&mut graph, x);
    graph.output(Arg::Tuple(vec![Arg::Node(result)]));
    module.attributes.insert(name.into(), Attribute::Module(Box::new(GraphModule::new(graph))));
}

#[test]
fn each_branch_has_its_own_gradient() {
    let mut program = program_of(|graph, x| {
        let sum = op(graph, "sum.default", &[x.into()]);
        let positive = op(graph, "gt.Scalar", &[sum.into(), Arg::Int(0)]);
        let (yes, no) = (graph.get_attr("true_graph_0"), graph.get_attr("false_graph_0"));
        let args = vec![positive.into(), yes.into(), no.into(), Arg::Tuple(vec![x.into()])];
        let cond = graph.call_function("torch.ops.higher_order.cond", args, Vec::new());
        let meta = TensorMeta::contiguous(DType::Float64, vec![3.into()]);
        graph.meta_mut(cond).val = Some(Val::Seq { items: vec![Val::Tensor(meta)], is_tuple: true });
        let chosen = graph.call_function("operator.getitem", vec![cond.into(), Arg::Int(0)], Vec::new());
        op(graph, "sum.default", &[chosen.into()])
    });
    add_graph(&mut program.module, "true_graph_0", |graph, x| {
        let sin = op(graph, "sin.default", &[x.into()]);
        op(graph, "mul.Tensor", &[sin.into(), x.into()])
    });
    add_graph(&mut program.module, "false_graph_0", |graph, x| op(graph, "exp.default", &[x.into()]));
    let joint = program.export_forward_backward(0, &default_decompositions()).unwrap();
    let loss = |x: &[f64]| {
        let input = Value::Tensor(Tensor::from_slice(x, &[3]).unwrap());
        match Runner::new(&program).unwrap().run(&[input]).unwrap().swap_remove(0) {
            Value::Tensor(it) => it.to_vec::<f64>().unwrap()[0],
            other => panic!("a {} as a loss", other.kind_name()),
        }
    };
    for x in [[0.5, 1.0, -0.25], [-0.5, -1.0, 0.25]] {
        for (at, got) in gradient(&joint, &x).into_iter().enumerate() {
            let moved = |by: f64| {
                let mut x = x;
                x[at] += by;
                loss(&x)
            };
            let want = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            assert!((got - want).abs() < 1e-8, "{got} instead of {want}");
        }
    }
}

#[test]
fn loops_without_a_gradient_are_refused_by_their_names() {
    let mut program = program_of(|graph, x| {
        let (condition, body) = (graph.get_attr("cond_graph"), graph.get_attr("body_graph"));
        let args = vec![condition.into(), body.into(), Arg::Tuple(vec![x.into()]), Arg::Tuple(vec![])];
        let looped = graph.call_function("torch.ops.higher_order.while_loop", args, Vec::new());
        let meta = TensorMeta::contiguous(DType::Float64, vec![3.into()]);
        graph.meta_mut(looped).val = Some(Val::Seq { items: vec![Val::Tensor(meta)], is_tuple: true });
        let last = graph.call_function("operator.getitem", vec![looped.into(), Arg::Int(0)], Vec::new());
        op(graph, "sum.default", &[last.into()])
    });
    add_graph(&mut program.module, "cond_graph", |graph, x| {
        let sum = op(graph, "sum.default", &[x.into()]);
        op(graph, "gt.Scalar", &[sum.into(), Arg::Int(0)])
    });
    add_graph(&mut program.module, "body_graph", |graph, x| op(graph, "neg.default", &[x.into()]));
    let problem = program.export_forward_backward(0, &default_decompositions()).unwrap_err();
    assert_eq!(problem.code(), Code::NotImplemented, "{problem}");
    let text = problem.to_string();
    assert!(text.contains("higher_order.while_loop") && text.contains("while_loop"), "{text}");
    assert!(text.contains("help:") && text.contains("cond or map"), "{text}");
}
