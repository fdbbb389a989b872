//! What a step costs: a chain of 1,000 dependent additions of four elements, node by node and by a plan, and what it costs to
//! make the plan and to give it memory. Prints nanoseconds for each node as a JSON object, of the shortest of many runs.

use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use tracefx_core::Tensor;
use tracefx_engine::Library;
use tracefx_exec::{BoundPlan, Interpreter, LOOP_STEPS, plan};
use tracefx_ir::{Arg, Graph, GraphModule, TensorMeta};
use tracefx_ops::Value;

const N: usize = 1000;

fn shortest(mut act: impl FnMut()) -> f64 {
    let time = |act: &mut dyn FnMut()| {
        let start = Instant::now();
        act();
        start.elapsed().as_nanos() as f64 / N as f64
    };
    (0..500).map(|_| time(&mut act)).fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let mut last = x;
    for _ in 0..N {
        last = graph.call_function("torch.ops.aten.add.Tensor", vec![last.into(), x.into()], vec![]);
    }
    graph.output(Arg::Tuple(vec![last.into()]));
    let module = GraphModule::new(graph);
    let inputs = [Value::Tensor(Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[4]).unwrap())];
    let metas: Vec<_> = inputs.iter().map(|it| it.map(&mut TensorMeta::of)).collect();
    let library = Library::default();
    let executor = library.executor();
    let made = || plan(&module, &metas, executor.registry(), executor.kernels()).unwrap();
    let bind = |it: &Arc<_>| BoundPlan::new(Arc::clone(it), executor.registry(), executor.kernels()).unwrap();
    let shared = Arc::new(made());
    let mut bound = bind(&shared);
    let interpreter = Interpreter::new(&module, executor);
    let times = json!({
        "interpret": shortest(|| drop(black_box(interpreter.run(&inputs)))),
        "plan": shortest(|| drop(black_box(bound.run(executor, &inputs, LOOP_STEPS, &mut |_, _| Ok(()))))),
        "make": shortest(|| drop(black_box(made()))),
        "bind": shortest(|| drop(black_box(bind(&shared)))),
    });
    #[allow(clippy::print_stdout, reason = "the times are what it is run for")]
    {
        println!("{times}");
    }
}
