//! Graph modules as programs: the graphs are those that `torch.export.export` made of the same code.

use crate::{executor, run};
use tracefx_core::{Code, DType, Tensor};
use tracefx_exec::Interpreter;
use tracefx_export::{DynamicShapes, default_decompositions, export};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, TensorKind};
use tracefx_ops::{Value, registry};

fn tensor(sizes: &[usize]) -> Tensor {
    let n: usize = sizes.iter().product();
    let data: Vec<f32> = (0..n).map(|it| it as f32 * 0.25 - 1.0).collect();
    Tensor::from_slice(&data, sizes).unwrap()
}

fn method(graph: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    graph.create_node(Opcode::CallMethod, name, args, vec![], None).unwrap()
}

/// `torch.nn.Linear` as a graph of its own.
fn linear(weight: &Tensor, bias: &Tensor) -> GraphModule {
    let mut graph = Graph::new();
    let x = graph.placeholder("input");
    let [w, b] = ["weight", "bias"].map(|it| graph.get_attr(it));
    let call = graph.call_function("torch._C._nn.linear", vec![x.into(), w.into(), b.into()], vec![]);
    graph.output(call.into());
    let mut module = GraphModule::new(graph);
    for (name, tensor) in [("weight", weight), ("bias", bias)] {
        let parameter = Attribute::Tensor { tensor: tensor.clone(), kind: TensorKind::Parameter };
        module.set_attribute(name, parameter);
    }
    module
}

/// ```python
/// def forward(self, x, k):
///     self.n.add_(1)
///     y = self.lin(x)
///     a, b = torch.split(y, 2, dim=1)
///     z = (1 - a) / 2
///     w = 2 / b.abs() + 2 ** b
///     v = z.view(z.size(0), -1)
///     v.relu_()
///     return v, [w * self.n, self.tied.sum() * k], 3 > v
/// ```
fn module() -> GraphModule {
    let mut graph = Graph::new();
    let [x, k] = ["x", "k"].map(|it| graph.placeholder(it));
    let n = graph.get_attr("n");
    method(&mut graph, "add_", vec![n.into(), Arg::Int(1)]);
    let y = graph.create_node(Opcode::CallModule, "lin", vec![x.into()], vec![], None).unwrap();
    let call = |graph: &mut Graph, name: &str, args: Vec<Arg>| graph.call_function(name, args, vec![]);
    let split =
        graph.call_function("torch.functional.split", vec![y.into(), Arg::Int(2)], vec![("dim".into(), Arg::Int(1))]);
    let [a, b] = [0, 1].map(|at| call(&mut graph, "operator.getitem", vec![split.into(), Arg::Int(at)]));
    let z = call(&mut graph, "operator.sub", vec![Arg::Int(1), a.into()]);
    let z = call(&mut graph, "operator.truediv", vec![z.into(), Arg::Int(2)]);
    let abs = method(&mut graph, "abs", vec![b.into()]);
    let quotient = call(&mut graph, "operator.truediv", vec![Arg::Int(2), abs.into()]);
    let power = call(&mut graph, "operator.pow", vec![Arg::Int(2), b.into()]);
    let w = call(&mut graph, "operator.add", vec![quotient.into(), power.into()]);
    let size = method(&mut graph, "size", vec![z.into(), Arg::Int(0)]);
    let v = method(&mut graph, "view", vec![z.into(), size.into(), Arg::Int(-1)]);
    method(&mut graph, "relu_", vec![v.into()]);
    let n = graph.get_attr("n");
    let product = call(&mut graph, "operator.mul", vec![w.into(), n.into()]);
    let tied = graph.get_attr("tied");
    let sum = method(&mut graph, "sum", vec![tied.into()]);
    let scaled = call(&mut graph, "operator.mul", vec![sum.into(), k.into()]);
    let compared = call(&mut graph, "operator.gt", vec![Arg::Int(3), v.into()]);
    let list = Arg::List(vec![product.into(), scaled.into()]);
    graph.output(Arg::Tuple(vec![v.into(), list, compared.into()]));
    let mut module = GraphModule::new(graph);
    let (weight, bias) = (tensor(&[4, 4]), tensor(&[4]));
    module.set_attribute("tied", Attribute::Tensor { tensor: weight.clone(), kind: TensorKind::Parameter });
    let n = Tensor::zeros(DType::Float32, &[1]).unwrap();
    module.set_attribute("n", Attribute::Tensor { tensor: n, kind: TensorKind::Buffer });
    module.set_attribute("lin", Attribute::Module(Box::new(linear(&weight, &bias))));
    module
}

const GRAPH: &str = "graph():
    %p_tied : [num_users=0] = placeholder[target=p_tied]
    %p_lin_weight : [num_users=2] = placeholder[target=p_lin_weight]
    %p_lin_bias : [num_users=1] = placeholder[target=p_lin_bias]
    %b_n : [num_users=1] = placeholder[target=b_n]
    %x : [num_users=1] = placeholder[target=x]
    %k : [num_users=0] = placeholder[target=k]
    %add_ : [num_users=1] = call_function[target=torch.ops.aten.add_.Tensor](args = (%b_n, 1), kwargs = {})
    %linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_lin_weight, %p_lin_bias), kwargs = {})
    %split : [num_users=2] = call_function[target=torch.ops.aten.split.Tensor](args = (%linear, 2, 1), kwargs = {})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%split, 0), kwargs = {})
    %getitem_1 : [num_users=2] = call_function[target=operator.getitem](args = (%split, 1), kwargs = {})
    %rsub : [num_users=1] = call_function[target=torch.ops.aten.rsub.Scalar](args = (%getitem, 1), kwargs = {})
    %div : [num_users=1] = call_function[target=torch.ops.aten.div.Tensor](args = (%rsub, 2), kwargs = {})
    %abs_1 : [num_users=1] = call_function[target=torch.ops.aten.abs.default](args = (%getitem_1,), kwargs = {})
    %reciprocal : [num_users=1] = call_function[target=torch.ops.aten.reciprocal.default](args = (%abs_1,), kwargs = {})
    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%reciprocal, 2), kwargs = {})
    %pow_1 : [num_users=1] = call_function[target=torch.ops.aten.pow.Scalar](args = (2, %getitem_1), kwargs = {})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%mul, %pow_1), kwargs = {})
    %view : [num_users=1] = call_function[target=torch.ops.aten.view.default](args = (%div, [3, -1]), kwargs = {})
    %relu_ : [num_users=2] = call_function[target=torch.ops.aten.relu_.default](args = (%view,), kwargs = {})
    %mul_1 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%add, %add_), kwargs = {})
    %sum_1 : [num_users=1] = call_function[target=torch.ops.aten.sum.default](args = (%p_lin_weight,), kwargs = {})
    %mul_2 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%sum_1, 5), kwargs = {})
    %lt : [num_users=1] = call_function[target=torch.ops.aten.lt.Scalar](args = (%relu_, 3), kwargs = {})
    return (relu_, mul_1, mul_2, lt)";

#[test]
fn a_module_becomes_the_program_that_pytorch_makes_of_it() {
    let module = module();
    let inputs = [Value::Tensor(tensor(&[3, 4])), Value::int(5)];
    let program = export(&module, &inputs, &DynamicShapes::Static, registry()).unwrap();
    assert_eq!(program.module.graph.to_string(), GRAPH);
    assert_eq!(program.verifiers, ["TRAINING".into()]);
    assert_eq!(program.out_spec().unwrap().children.len(), 3);
    let paths: Vec<&str> = program.module_call_graph.iter().map(|it| &*it.fqn).collect();
    assert_eq!(paths, ["", "lin"]);

    // Both programs give what the module gives, which changes its buffer.
    let functional = program.run_decompositions(&default_decompositions()).unwrap();
    let runs = [&program, &functional].map(|it| run(it, &inputs).unwrap());
    let direct = Interpreter::new(&module, executor()).run(&inputs).unwrap();
    let Value::List(direct) = direct else { panic!("a tuple") };
    let Value::List(nested) = &direct[1] else { panic!("a list") };
    let direct = [&direct[0], &nested[0], &nested[1], &direct[2]];
    for run in &runs {
        for (given, wanted) in run.iter().zip(direct) {
            let (Value::Tensor(given), Value::Tensor(wanted)) = (given, wanted) else { panic!("tensors") };
            assert_eq!((given.dtype(), given.sizes()), (wanted.dtype(), wanted.sizes()));
            assert_eq!(given.to_bytes().unwrap(), wanted.to_bytes().unwrap());
        }
    }
}

fn refusal(build: impl FnOnce(&mut Graph, NodeId) -> NodeId, inputs: &[Value<Tensor>]) -> (Code, String) {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let result = build(&mut graph, x);
    graph.output(result.into());
    let problem = export(&GraphModule::new(graph), inputs, &DynamicShapes::Static, registry()).unwrap_err();
    (problem.code(), problem.to_string())
}

#[test]
fn what_no_program_has_is_refused_by_the_node() {
    let x = [Value::Tensor(tensor(&[2, 3]))];
    let unknown = |graph: &mut Graph, x: NodeId| graph.call_function("mylib.helper", vec![x.into()], vec![]);
    let (code, text) = refusal(unknown, &x);
    assert_eq!(code, Code::NotImplemented);
    assert!(text.contains("mylib") && text.contains("helper"), "{text}");
    let (code, _) = refusal(|_, x| x, &[]);
    assert_eq!(code, Code::InputCount);
    let (code, _) = refusal(|_, x| x, &[x[0].clone(), x[0].clone()]);
    assert_eq!(code, Code::InputCount);
    let (code, text) = refusal(|_, x| x, &[Value::DType(DType::Float32)]);
    assert_eq!(code, Code::InputType);
    assert!(text.contains("a list of these"), "{text}");
    let mismatch = |graph: &mut Graph, x: NodeId| graph.call_function("torch.mm", vec![x.into(), x.into()], vec![]);
    let (code, text) = refusal(mismatch, &x);
    assert_eq!(code, Code::ShapeMismatch);
    assert!(text.contains("mm"), "{text}");
}

#[test]
fn what_a_call_of_unknown_size_is_decomposed_to_has_dimensions_of_its_own() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let pairs = graph.call_function("torch.ops.aten.combinations.default", vec![x.into()], vec![]);
    graph.output(Arg::Tuple(vec![pairs.into()]));
    let inputs = [Value::Tensor(tensor(&[3]))];
    let program = export(&GraphModule::new(graph), &inputs, &DynamicShapes::Static, registry()).unwrap();
    let functional = program.run_decompositions(&default_decompositions()).unwrap();
    for program in [&program, &functional] {
        let [Value::Tensor(it)] = &run(program, &inputs).unwrap()[..] else { panic!("a tensor") };
        assert_eq!(it.sizes(), [3, 2]);
    }
}
