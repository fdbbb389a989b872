//! Autocast around control flow, in a run, in what is known without data, and decomposed.

use tracefx_core::{DType, Result, Tensor};
use tracefx_engine::{Runner, call};
use tracefx_exec::propagate;
use tracefx_export::{
    Argument, ExportedProgram, GraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, default_decompositions,
};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, TensorMeta, Val};
use tracefx_ops::{Propagation, Symbols, Value, registry};

fn op(graph: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    graph.call_function(&format!("torch.ops.{name}"), args, vec![])
}

/// A graph of these inputs that gives one value.
fn graph(inputs: &[&str], body: impl FnOnce(&mut Graph, &[NodeId]) -> NodeId) -> GraphModule {
    let mut graph = Graph::new();
    let inputs: Vec<NodeId> = inputs.iter().map(|it| graph.placeholder(it)).collect();
    let result = body(&mut graph, &inputs);
    graph.output(Arg::Tuple(vec![result.into()]));
    GraphModule::new(graph)
}

fn hold(module: &mut GraphModule, name: &str, inner: GraphModule) {
    module.attributes.insert(name.into(), Attribute::Module(Box::new(inner)));
}

fn product(graph: &mut Graph, x: NodeId) -> NodeId {
    op(graph, "aten.mm.default", vec![x.into(), x.into()])
}

fn einsum(graph: &mut Graph, x: NodeId) -> NodeId {
    op(graph, "aten.einsum.default", vec![Arg::str("ij,jk->ik"), Arg::List(vec![x.into(), x.into()])])
}

/// The first result of `cond(predicate, true_graph_0, false_graph_0, (x,))`.
fn cond(graph: &mut Graph, predicate: NodeId, x: NodeId) -> NodeId {
    let (yes, no) = (graph.get_attr("true_graph_0"), graph.get_attr("false_graph_0"));
    let args = vec![predicate.into(), yes.into(), no.into(), Arg::Tuple(vec![x.into()])];
    let called = op(graph, "higher_order.cond", args);
    graph.call_function("operator.getitem", vec![called.into(), Arg::Int(0)], vec![])
}

fn autocast(graph: &mut Graph, device: &str, body: &str, inputs: &[NodeId]) -> NodeId {
    let body = graph.get_attr(body);
    let mut args = vec![Arg::str(device), Arg::DType(DType::BFloat16), Arg::Bool(true), Arg::Bool(false), body.into()];
    args.extend(inputs.iter().map(|it| Arg::Node(*it)));
    let called = op(graph, "higher_order.wrap_with_autocast", args);
    graph.call_function("operator.getitem", vec![called.into(), Arg::Int(0)], vec![])
}

/// `x @ x` under autocast in both branches of a `cond`, then outside of it in those of another one, whose graphs have the
/// same names, and under the autocast of another device.
fn program() -> Result<ExportedProgram> {
    let mut narrow = graph(&["predicate", "x"], |graph, inputs| cond(graph, inputs[0], inputs[1]));
    hold(&mut narrow, "true_graph_0", graph(&["x"], |graph, inputs| product(graph, inputs[0])));
    hold(&mut narrow, "false_graph_0", graph(&["x"], |graph, inputs| einsum(graph, inputs[0])));
    let mut main = Graph::new();
    let x = main.placeholder("x");
    let sum = op(&mut main, "aten.sum.default", vec![x.into()]);
    let positive = op(&mut main, "aten.gt.Scalar", vec![sum.into(), Arg::Int(0)]);
    let results = [
        autocast(&mut main, "cpu", "narrow", &[positive, x]),
        cond(&mut main, positive, x),
        autocast(&mut main, "cuda", "elsewhere", &[x]),
    ];
    let names = results.map(|it| main.node(it).name().clone());
    main.output(Arg::Tuple(results.map(Arg::Node).to_vec()));
    let mut module = GraphModule::new(main);
    hold(&mut module, "narrow", narrow);
    hold(&mut module, "elsewhere", graph(&["x"], |graph, inputs| product(graph, inputs[0])));
    hold(&mut module, "true_graph_0", graph(&["x"], |graph, inputs| product(graph, inputs[0])));
    hold(
        &mut module,
        "false_graph_0",
        graph(&["x"], |graph, inputs| op(graph, "aten.neg.default", vec![inputs[0].into()])),
    );
    let known = TensorMeta::contiguous(DType::Float32, vec![2.into(), 2.into()]);
    let symbols = Symbols::default();
    propagate(&mut module, &[Value::Tensor(known)], Propagation::new(registry(), &symbols))?;
    let input =
        InputSpec { kind: InputKind::UserInput, arg: Argument::Tensor("x".into()), target: None, persistent: None };
    let output = |name| OutputSpec { kind: OutputKind::UserOutput, arg: Argument::Tensor(name), target: None };
    let signature = GraphSignature { input_specs: vec![input], output_specs: names.map(output).to_vec() };
    Ok(ExportedProgram::new(module, signature))
}

const WANTED: [DType; 3] = [DType::BFloat16, DType::Float32, DType::Float32];

fn run(program: &ExportedProgram, x: &[f32]) -> Result<Vec<(DType, Vec<f32>)>> {
    let results = Runner::new(program)?.run(&[Value::Tensor(Tensor::from_slice(x, &[2, 2])?)])?;
    let wide = |it: &Value<Tensor>| {
        let wide = call("aten.to.dtype", &[it.clone(), Value::DType(DType::Float32)], vec![])?.results;
        match (it, &wide[..]) {
            (Value::Tensor(it), [Value::Tensor(wide)]) => Ok((it.dtype(), wide.to_vec::<f32>()?)),
            (other, _) => panic!("a {} as a result", other.kind_name()),
        }
    };
    results.iter().map(wide).collect()
}

#[test]
fn control_flow_under_autocast_casts_in_its_graphs() -> Result<()> {
    let program = program()?;
    let known: Vec<DType> = program
        .module
        .graph
        .nodes()
        .filter_map(|it| {
            let node = program.module.graph.node(it);
            match (&**node.target(), &node.meta.val) {
                ("operator.getitem", Some(Val::Tensor(meta))) => Some(meta.dtype),
                _ => None,
            }
        })
        .collect();
    assert_eq!(known, WANTED);
    let core = program.run_decompositions(&default_decompositions())?;
    for program in [&program, &core] {
        // The sums do not fit into the eight bits of a bfloat16.
        let [narrow, wide, elsewhere] = &run(program, &[16.0, 1.0, 1.0, 1.0])?[..] else { panic!("three results") };
        assert_eq!([narrow.0, wide.0, elsewhere.0], WANTED);
        assert_eq!(wide.1, [257.0, 17.0, 17.0, 2.0]);
        assert_eq!(elsewhere.1, wide.1);
        assert_eq!(narrow.1, [256.0, 17.0, 17.0, 2.0]);
        let [narrow, wide, _] = &run(program, &[-16.0, 1.0, 1.0, 1.0])?[..] else { panic!("three results") };
        assert_eq!(narrow.1, [256.0, -15.0, -15.0, 2.0]);
        assert_eq!(wide.1, [16.0, -1.0, -1.0, -1.0]);
    }
    Ok(())
}
