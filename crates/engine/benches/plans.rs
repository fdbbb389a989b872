//! What a step costs: a chain of 1,000 dependent additions of four elements, node by node, by a plan of calls and by one of loops of one
//! operator each, and what it costs to make a plan, to compile it and to run it for the first time. Prints nanoseconds for each node as a JSON object, of the
//! shortest of many runs. Names behind `--` choose what is timed.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use tracefx_compile::{Precision, compile};
use tracefx_core::Tensor;
use tracefx_engine::Library;
use tracefx_exec::{BoundPlan, Interpreter, LOOP_STEPS, plan};
use tracefx_ir::{Arg, Graph, GraphModule, TensorMeta};
use tracefx_ops::Value;
use tracefx_plan::{Action, Argument, Fused, Instruction, Loop, Operand, Plan, Register};

const N: usize = 1000;

fn shortest(mut act: impl FnMut()) -> f64 {
    let time = |act: &mut dyn FnMut()| {
        let start = Instant::now();
        act();
        start.elapsed().as_nanos() as f64 / N as f64
    };
    (0..500).map(|_| time(&mut act)).fold(f64::INFINITY, f64::min)
}

/// The plan with each call as a loop of its own.
fn loops(mut plan: Plan) -> Plan {
    let views = plan.tensors.clone();
    let view = |id: tracefx_plan::TensorId| &views[id.0 as usize];
    for step in &mut plan.steps {
        let Action::Call { op, args, results } = &step.action else { continue };
        let [Operand::Tensor(result)] = results[..] else { continue };
        let mut inputs = Vec::new();
        let args = args.iter().map(|it| match it {
            Operand::Tensor(id) => {
                inputs.push(*id);
                Argument::Register(Register(inputs.len() as u32 - 1))
            }
            other => Argument::Value(other.clone()),
        });
        let code = vec![Instruction { op: op.clone(), args: args.collect(), dtype: view(result).dtype }];
        let outputs = vec![(Register(inputs.len() as u32), result)];
        let sizes = view(result).known().unwrap().sizes;
        step.action = Action::Fused(Fused::Loop(Loop { sizes, inputs, code, outputs }));
    }
    plan
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
    let mut bound = bind(&Arc::new(made()));
    let interpreter = Interpreter::new(&module, executor);
    let mut apart = bind(&Arc::new(loops(made())));
    let compiled = || compile(made(), executor.registry(), executor.kernels(), Precision::Fast);
    let fused = Arc::new(compiled());
    let first = || bind(&fused).run(executor, &inputs, LOOP_STEPS, &mut |_, _| Ok(()));
    let mut times = serde_json::Map::new();
    let mut time = |name: &str, act: &mut dyn FnMut()| {
        if std::env::args().len() < 3 || std::env::args().any(|it| it == name) {
            times.insert(name.to_owned(), shortest(act).into());
        }
    };
    time("interpret", &mut || drop(black_box(interpreter.run(&inputs))));
    time("calls", &mut || drop(black_box(bound.run(executor, &inputs, LOOP_STEPS, &mut |_, _| Ok(())))));
    time("loops", &mut || drop(black_box(apart.run(executor, &inputs, LOOP_STEPS, &mut |_, _| Ok(())))));
    time("make", &mut || drop(black_box(made())));
    time("make_and_compile", &mut || drop(black_box(compiled())));
    time("first_run", &mut || drop(black_box(first())));
    #[allow(clippy::print_stdout, reason = "the times are what it is run for")]
    {
        println!("{}", serde_json::Value::from(times));
    }
}
