//! What the walk decides, whatever the nodes do: autocast, regions of a vmap, and operators that are functionalized.

use tracefx_core::{Code, DType, Result, Scalar, Tensor};
use tracefx_exec::{Executor, Interpreter, propagate};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, Str, TensorMeta};
use tracefx_ops::{Propagation, Symbols, Value, registry};

/// What the graph gives for a tensor of ones, by the interpreter; and the same of what is known, by propagation.
fn run(module: &GraphModule, sizes: &[usize]) -> Result<Value<Tensor>> {
    let ones = Tensor::full(DType::Float32, sizes, Scalar::Float(1.0))?;
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let symbols = Symbols::default();
    let known = [Value::Tensor(TensorMeta::of(&ones))];
    let shapes = propagate(&mut module.clone(), &known, Propagation::new(registry(), &symbols));
    let computed = Interpreter::new(module, executor).run(&[Value::Tensor(ones)]);
    match (&computed, &shapes) {
        (Ok(computed), Ok(shapes)) => assert_eq!(metas(computed), dtypes_and_sizes(shapes)),
        (Err(computed), Err(shapes)) => {
            assert_eq!((computed.code(), computed.message()), (shapes.code(), shapes.message()))
        }
        (computed, shapes) => panic!("{computed:?} by running, and {shapes:?} by propagation"),
    }
    computed
}

fn metas(value: &Value<Tensor>) -> String {
    dtypes_and_sizes(&value.map(&mut TensorMeta::of))
}

fn dtypes_and_sizes(value: &Value<TensorMeta>) -> String {
    match value {
        Value::Tensor(it) => format!("{:?}{:?}", it.dtype, it.sizes),
        Value::List(items) => items.iter().map(dtypes_and_sizes).collect::<Vec<_>>().join(" "),
        other => other.kind_name().to_owned(),
    }
}

fn aten(graph: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    graph.call_function(&format!("torch.ops.aten.{name}"), args, vec![])
}

/// A graph of one input that gives a tuple.
fn graph(build: impl FnOnce(&mut Graph, NodeId) -> Vec<NodeId>) -> GraphModule {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let results = build(&mut graph, x);
    graph.output(Arg::Tuple(results.into_iter().map(Arg::Node).collect()));
    GraphModule::new(graph)
}

/// What `body` gives under autocast.
fn under_autocast(device: &str, is_enabled: bool, body: GraphModule) -> GraphModule {
    let mut module = graph(|graph, x| {
        let body = graph.get_attr("body");
        let args = vec![
            Arg::str(device),
            Arg::DType(DType::BFloat16),
            Arg::Bool(is_enabled),
            Arg::Bool(true),
            body.into(),
            x.into(),
        ];
        let wrapped = graph.call_function("torch.ops.higher_order.wrap_with_autocast", args, vec![]);
        let item = graph.call_function("operator.getitem", vec![wrapped.into(), Arg::Int(0)], vec![]);
        vec![item]
    });
    module.set_attribute("body", Attribute::Module(Box::new(body)));
    module
}

fn product() -> GraphModule {
    graph(|graph, x| vec![aten(graph, "mm.default", vec![x.into(), x.into()])])
}

#[test]
fn autocast_holds_in_its_graph_until_another_one_turns_it_off() {
    let given = |module: GraphModule| metas(&run(&module, &[2, 2]).unwrap());
    let (low, high) = ("BFloat16[2, 2]", "Float32[2, 2]");
    assert_eq!(given(under_autocast("cpu", true, product())), low);
    assert_eq!(given(under_autocast("cpu", false, product())), high);
    assert_eq!(given(under_autocast("cuda", true, product())), high);
    let nested =
        |device: &str, is_enabled: bool| under_autocast("cpu", true, under_autocast(device, is_enabled, product()));
    assert_eq!(given(nested("cpu", false)), high);
    // That of another device changes nothing of the one around it.
    assert_eq!(given(nested("cuda", false)), low);
}

#[test]
fn autocast_is_off_again_after_its_graph() {
    let mut module = graph(|graph, x| {
        let region = graph.create_node(Opcode::CallModule, "region", vec![x.into()], vec![], None).unwrap();
        let inside = graph.call_function("operator.getitem", vec![region.into(), Arg::Int(0)], vec![]);
        vec![inside, aten(graph, "mm.default", vec![x.into(), x.into()])]
    });
    module.set_attribute("region", Attribute::Module(Box::new(under_autocast("cpu", true, product()))));
    assert_eq!(metas(&run(&module, &[2, 2]).unwrap()), "BFloat16[2, 2] Float32[2, 2]");
}

#[test]
fn autocast_holds_in_graphs_of_control_flow_and_in_modules_that_are_called() {
    let mut body = graph(|graph, x| {
        let branch = graph.get_attr("branch");
        let args = vec![Arg::Bool(true), branch.into(), branch.into(), Arg::List(vec![x.into()])];
        let cond = graph.call_function("torch.ops.higher_order.cond", args, vec![]);
        let chosen = graph.call_function("operator.getitem", vec![cond.into(), Arg::Int(0)], vec![]);
        let called = graph.create_node(Opcode::CallModule, "branch", vec![x.into()], vec![], None).unwrap();
        let called = graph.call_function("operator.getitem", vec![called.into(), Arg::Int(0)], vec![]);
        vec![aten(graph, "stack.default", vec![Arg::List(vec![chosen.into(), called.into()])])]
    });
    body.set_attribute("branch", Attribute::Module(Box::new(product())));
    assert_eq!(metas(&run(&under_autocast("cpu", true, body), &[2, 2]).unwrap()), "BFloat16[2, 2, 2]");
}

#[test]
fn methods_under_autocast_are_refused() {
    let body =
        graph(|graph, x| vec![graph.create_node(Opcode::CallMethod, "relu", vec![x.into()], vec![], None).unwrap()]);
    let problem = run(&under_autocast("cpu", true, body.clone()), &[2, 2]).unwrap_err();
    assert_eq!(problem.code(), Code::NotImplemented);
    assert_eq!(metas(&run(&under_autocast("cpu", false, body), &[2, 2]).unwrap()), "Float32[2, 2]");
}

/// The sum of each row, one example at a time; and under autocast a product of each.
#[test]
fn the_region_of_a_vmap_runs_for_each_example() {
    let batched = |name: &'static str, n_results: usize| {
        graph(|graph, x| {
            let call = |graph: &mut Graph, name: &str, args: Vec<Arg>| {
                graph.call_function(&format!("torch._functorch.predispatch.{name}"), args, vec![])
            };
            call(graph, "_vmap_increment_nesting", vec![Arg::Int(2), Arg::str("error")]);
            let one = call(graph, "_add_batch_dim", vec![x.into(), Arg::Int(0), Arg::Int(1)]);
            let given = aten(graph, name, vec![one.into(); n_results]);
            let all = call(graph, "_remove_batch_dim", vec![given.into(), Arg::Int(1), Arg::Int(2), Arg::Int(0)]);
            call(graph, "_vmap_decrement_nesting", vec![]);
            vec![all]
        })
    };
    let Value::List(sums) = run(&batched("sum.default", 1), &[2, 3]).unwrap() else { panic!("a tuple") };
    let Value::Tensor(sums) = &sums[0] else { panic!("a tensor") };
    assert_eq!(sums.to_vec::<f32>().unwrap(), [3.0, 3.0]);
    let products = under_autocast("cpu", true, batched("mm.default", 2));
    assert_eq!(metas(&run(&products, &[2, 3, 3]).unwrap()), "BFloat16[2, 3, 3]");
}

#[test]
fn an_operator_that_is_functionalized_is_called_on_copies() {
    let module = graph(|graph, x| {
        let operator = Arg::Op("torch.ops.aten.relu_.default".into());
        let kwargs: Vec<(Str, Arg)> = vec![("self".into(), x.into())];
        let call = graph.call_function("torch.ops.higher_order.auto_functionalized", vec![operator], vec![]);
        graph.set_kwargs(call, kwargs).unwrap();
        vec![graph.call_function("operator.getitem", vec![call.into(), Arg::Int(1)], vec![]), x]
    });
    assert_eq!(metas(&run(&module, &[2]).unwrap()), "Float32[2] Float32[2]");
}
