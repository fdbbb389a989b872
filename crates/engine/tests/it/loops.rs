//! The limits of a run hold for all of its loops together.

use tracefx_core::{Code, Diagnostic};
use tracefx_engine::{Library, Limits, RunLimits, Runner, open_file, read_inputs};
use tracefx_exec::Interpreter;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode};
use tracefx_ops::Value;

fn module(build: impl FnOnce(&mut Graph) -> Arg, parts: Vec<(&str, GraphModule)>) -> GraphModule {
    let mut graph = Graph::new();
    let result = build(&mut graph);
    graph.create_node(Opcode::Output, "output", vec![result], vec![], None).unwrap();
    let mut module = GraphModule::new(graph);
    for (name, part) in parts {
        module.attributes.insert(name.into(), Attribute::Module(Box::new(part)));
    }
    module
}

fn call(graph: &mut Graph, target: &str, args: Vec<Arg>) -> NodeId {
    graph.create_node(Opcode::CallFunction, target, args, vec![], None).unwrap()
}

fn placeholder(graph: &mut Graph) -> Arg {
    Arg::Node(graph.create_node(Opcode::Placeholder, "i", vec![], vec![], None).unwrap())
}

/// A loop that takes 10 steps, in as many loops of 10 steps as `depth` says.
fn nested(depth: usize) -> GraphModule {
    let condition = module(
        |graph| {
            let i = placeholder(graph);
            Arg::Node(call(graph, "operator.lt", vec![i, Arg::Int(10)]))
        },
        vec![],
    );
    let body = if depth == 0 { None } else { Some(nested(depth - 1)) };
    let has_inner = body.is_some();
    let parts = body.map(|it| ("inner", it)).into_iter().collect();
    let body = module(
        |graph| {
            let i = placeholder(graph);
            if has_inner {
                graph.create_node(Opcode::CallModule, "inner", vec![Arg::Int(0)], vec![], None).unwrap();
            }
            Arg::Tuple(vec![Arg::Node(call(graph, "operator.add", vec![i, Arg::Int(1)]))])
        },
        parts,
    );
    module(
        |graph| {
            let i = placeholder(graph);
            let (condition, body) = (Arg::Node(graph.get_attr("condition")), Arg::Node(graph.get_attr("body")));
            let args = vec![condition, body, Arg::List(vec![i]), Arg::List(vec![])];
            Arg::Node(call(graph, "torch.ops.higher_order.while_loop", args))
        },
        vec![("condition", condition), ("body", body)],
    )
}

#[test]
fn loops_within_loops_take_their_steps_from_one_number() {
    let library = Library::default();
    let (module, n_steps) = (nested(2), 10 + 100 + 1000);
    let run = |limit| {
        let mut told = 0;
        let result = Interpreter::new(&module, library.executor()).run_watched(&[Value::int(0)], limit, &mut |_, _| {
            told += 1;
            Ok(())
        });
        (result, told)
    };
    let (result, told) = run(n_steps);
    result.unwrap();
    // The nodes of the outermost graph, and each step.
    assert_eq!(told, n_steps + 5);
    let error = run(n_steps - 1).0.unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded, "{error}");
    assert!(error.message().contains("took 1109 steps, the limit `loop_steps`"), "{error}");
}

/// A recorded program whose loop does not end.
fn endless() -> (Runner, Vec<Value<tracefx_core::Tensor>>) {
    let folder = format!("{}/../../tests/fixtures/programs/while_loop_hop", env!("CARGO_MANIFEST_DIR"));
    let mut program = open_file(format!("{folder}/model.pt2").as_ref(), &Limits::default()).unwrap();
    let inputs = std::fs::read(format!("{folder}/inputs.safetensors")).unwrap();
    let inputs = read_inputs(&program, &inputs).unwrap();
    let Some(Attribute::Module(condition)) = program.module.attributes.get_mut("while_loop_cond_graph_0") else {
        panic!("the program has a loop")
    };
    let output = condition.graph.output_node().unwrap();
    condition.graph.set_args(output, vec![Arg::Tuple(vec![Arg::Bool(true)])]).unwrap();
    (Runner::new(&program).unwrap(), inputs)
}

#[test]
fn an_endless_loop_ends_with_its_limit_of_steps_or_of_time() {
    let (runner, inputs) = endless();
    let runner = runner.with_limits(RunLimits { loop_steps: 100, ..RunLimits::default() });
    let error = runner.run(&inputs).unwrap_err();
    assert!(error.message().contains("100 steps, the limit `loop_steps`"), "{error}");
    assert_eq!(error.op_name(), Some("higher_order.while_loop"));
    let runner = runner.with_limits(RunLimits { loop_steps: u64::MAX, milliseconds: Some(20), ..RunLimits::default() });
    let error = runner.run(&inputs).unwrap_err();
    assert!(error.message().contains("longer than 20 milliseconds, the limit `milliseconds`"), "{error}");
}

#[test]
fn who_watches_a_run_can_stop_it_within_a_loop() {
    let (runner, inputs) = endless();
    let mut told = 0;
    let error = runner.run_watched(&inputs, &mut |_, _| {
        told += 1;
        if told < 1000 { Ok(()) } else { Err(Diagnostic::new(Code::Stopped, "stopped")) }
    });
    assert_eq!((error.unwrap_err().code(), told), (Code::Stopped, 1000));
}

#[test]
fn limits_are_set_by_their_names() {
    let mut limits = RunLimits::default();
    limits.set("loop_steps", 5).unwrap();
    limits.set("milliseconds", 7).unwrap();
    limits.set("input_bytes", 9).unwrap();
    assert_eq!(limits, RunLimits { loop_steps: 5, milliseconds: Some(7), input_bytes: 9 });
    assert_eq!(limits.set("nodes", 1).unwrap_err().code(), Code::InvalidOption);
}
