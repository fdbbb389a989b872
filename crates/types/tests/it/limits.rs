use tracefx_ir::{Arg, Graph, GraphModule};
use tracefx_types::{
    ConstraintGenerator, Dim, GraphTypeChecker, ModuleSpec, Modules, Type, Verdict, infer_symbolic_types,
};

/// A chain of sums of a value with itself, after a module.
fn chain(n: usize, ty: &str) -> (GraphModule, Modules) {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    graph.set_type(x, Some(ty.into())).unwrap();
    let mut value = x;
    for _ in 0..n {
        value = graph.call_function("torch.add", vec![value.into(), value.into()], vec![]);
    }
    graph.output(value.into());
    (GraphModule::new(graph), Modules::from([("m".to_string(), ModuleSpec::ReLU {})]))
}

#[test]
fn a_long_chain_is_typed() {
    let (mut gm, modules) = chain(300_000, "TensorType[(2, Dyn)]");
    GraphTypeChecker::new(&modules).type_check(&mut gm).unwrap();
    infer_symbolic_types(&mut gm, &modules).unwrap();
    let output = gm.graph.output_node().unwrap();
    assert_eq!(gm.graph.node(output).ty().unwrap().parse::<Type>().unwrap().dims().unwrap()[0], Dim::Size(2));
}

#[test]
fn long_chains_are_solved() {
    for n in [50, 200] {
        let (gm, modules) = chain(n, "TensorType[(2, Dyn, 4)]");
        let problem = ConstraintGenerator::new(&gm, &modules).generate().unwrap().transformed().unwrap();
        let verdict = problem.problem().unwrap().solve();
        assert!(matches!(verdict, Verdict::Sat(_)), "{n}: {verdict:.100?}");
    }
}

#[test]
fn arguments_that_are_nested_deep_are_no_danger() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let nested = (0..Arg::MAX_DEPTH).fold(Arg::from(x), |it, _| Arg::List(vec![it]));
    graph.output(nested);
    let mut gm = GraphModule::new(graph);
    GraphTypeChecker::new(&Modules::new()).type_check(&mut gm).unwrap();
}
