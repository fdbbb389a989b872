//! What a loop costs: chains of ten pointwise operators over 10,000 and 10,000,000 float32 elements, node by node, by a plan of calls and by a
//! plan with one loop, beside the time of copying the elements once. Prints milliseconds as JSON objects, of the shortest of
//! several runs. One thread: `TRACEFX_NUM_THREADS=1`.

use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use tracefx_compile::{Precision, compile};
use tracefx_core::Tensor;
use tracefx_cpu::kernels;
use tracefx_exec::{BoundPlan, Executor, Interpreter, LOOP_STEPS, plan};
use tracefx_ir::{Arg, Graph, GraphModule, TensorMeta};
use tracefx_ops::{Value, registry};
use tracefx_plan::Plan;

/// Operators of one instruction, and those of a network, some of which are many.
const CHEAP: [&str; 10] = ["add", "relu", "mul", "neg", "sub", "abs", "add", "relu", "mul", "sub"];
const MIXED: [&str; 10] = ["mul", "add", "sigmoid", "mul", "add", "tanh", "sub", "relu", "mul", "gelu"];

fn chain(ops: &[&str]) -> GraphModule {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let mut last = x;
    for (at, op) in ops.iter().enumerate() {
        let (name, args) = match *op {
            "add" | "sub" | "mul" => (format!("{op}.Tensor"), vec![last.into(), Arg::Float(0.5 + at as f64 / 16.0)]),
            unary => (format!("{unary}.default"), vec![last.into()]),
        };
        last = graph.call_function(&format!("torch.ops.aten.{name}"), args, vec![]);
    }
    // What is given away is a copy of one element, so that no time is that of getting memory.
    let one = graph.call_function(
        "torch.ops.aten.slice.Tensor",
        vec![last.into(), Arg::Int(0), Arg::Int(0), Arg::Int(1)],
        vec![],
    );
    let one = graph.call_function("torch.ops.aten.clone.default", vec![one.into()], vec![]);
    graph.output(Arg::Tuple(vec![one.into()]));
    GraphModule::new(graph)
}

fn shortest(n_runs: usize, mut act: impl FnMut()) -> f64 {
    let time = |act: &mut dyn FnMut()| {
        let start = Instant::now();
        act();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..n_runs).map(|_| time(&mut act)).fold(f64::INFINITY, f64::min)
}

fn main() {
    let executor = Executor::new(registry(), kernels());
    for (name, ops) in [("cheap", CHEAP), ("mixed", MIXED)] {
        for (n, n_runs) in [(10_000, 2000), (10_000_000, 7)] {
            let numbers: Vec<f32> = (0..n).map(|it| (it % 1000) as f32 / 250.0 - 2.0).collect();
            let inputs = [Value::Tensor(Tensor::from_slice(&numbers, &[n]).unwrap())];
            let module = chain(&ops);
            let metas: Vec<_> = inputs.iter().map(|it| it.map(&mut TensorMeta::of)).collect();
            let traced = plan(&module, &metas, registry(), kernels()).unwrap();
            let compiled = compile(traced.clone(), registry(), kernels(), Precision::Strict);
            assert_eq!(compiled.steps.len(), 2, "{compiled}");
            let run = |plan: Plan| {
                let mut bound = BoundPlan::new(Arc::new(plan), registry(), kernels()).unwrap();
                shortest(n_runs, || drop(black_box(bound.run(executor, &inputs, LOOP_STEPS, &mut |_, _| Ok(())))))
            };
            let interpreter = Interpreter::new(&module, executor);
            let mut target = vec![0f32; n];
            let copy = shortest(n_runs, || black_box(&mut target).copy_from_slice(black_box(&numbers)));
            let loops = run(compiled);
            let times = json!({
                "chain": name,
                "elements": n,
                "interpret": shortest(n_runs.min(200), || drop(black_box(interpreter.run(&inputs)))),
                "plan": run(traced),
                "loop": loops,
                "copy": copy,
                "GB/s": 8e-6 * n as f64 / loops,
                "GB/s of the copy": 8e-6 * n as f64 / copy,
            });
            #[allow(clippy::print_stdout, reason = "the times are what it is run for")]
            {
                println!("{times}");
            }
        }
    }
}
