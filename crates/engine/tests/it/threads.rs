//! Numbers do not depend on threads: on how many there are, on which of them a program runs, and on what runs beside it.

use crate::plans::{content, copies, fixtures, recorded};
use rayon::prelude::*;
use tracefx_core::{Tensor, with_default_generator};
use tracefx_cpu::with_num_threads;
use tracefx_engine::{Library, Mode, Precision, Runner};
use tracefx_export::ExportedProgram;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, TensorKind};
use tracefx_ops::Value;

const WAYS: [(Mode, Precision); 3] =
    [(Mode::Interpret, Precision::Strict), (Mode::Plan, Precision::Strict), (Mode::Plan, Precision::Fast)];

fn runner(program: &ExportedProgram, (mode, precision): (Mode, Precision)) -> Option<Runner> {
    Some(Runner::new(program).ok()?.with_mode(mode).with_precision(precision))
}

/// What a call gives, and leaves in its inputs; or why it is refused.
fn run(runner: &Runner, inputs: &[Value<Tensor>]) -> Vec<String> {
    with_default_generator(|it| it.manual_seed(7));
    let inputs = copies(inputs);
    match runner.run(&inputs) {
        Ok(outputs) => content(&[outputs, inputs].concat()),
        Err(problem) => vec![problem.to_string()],
    }
}

/// The recorded programs, and one whose tensors are large enough to be shared between threads.
fn programs() -> Vec<(ExportedProgram, Vec<Vec<Value<Tensor>>>)> {
    let folders = ["programs", "programs-compat"].into_iter().flat_map(fixtures);
    folders.filter_map(|it| recorded(&it)).chain([large()]).collect()
}

fn noise(seed: usize, sizes: &[usize]) -> Tensor {
    let number = |at: usize| ((at * 7919 + seed * 104_729) % 10_007) as f32 / 10_007.0 - 0.5;
    Tensor::from_slice(&(0..sizes.iter().product()).map(number).collect::<Vec<_>>(), sizes).unwrap()
}

fn large() -> (ExportedProgram, Vec<Vec<Value<Tensor>>>) {
    let (mut g, mut weights) = (Graph::new(), Vec::new());
    let x = g.placeholder("x");
    let ints = |it: &[i64]| Arg::List(it.iter().map(|it| Arg::Int(*it)).collect());
    let mut weight = |g: &mut Graph, sizes: &[usize]| {
        weights.push(noise(weights.len(), sizes));
        g.get_attr(&format!("w{}", weights.len() - 1))
    };
    let aten = |g: &mut Graph, op: &str, args: Vec<Arg>| g.call_function(&format!("torch.ops.aten.{op}"), args, vec![]);
    let mut convolved = |g: &mut Graph, x: NodeId, sizes: &[usize], groups: i64| {
        let weight = weight(g, sizes);
        let around = sizes[2] as i64 / 2;
        let args = [ints(&[1, 1]), ints(&[around, around]), ints(&[1, 1]), Arg::Int(groups)];
        aten(g, "conv2d.default", [x.into(), weight.into(), Arg::None].into_iter().chain(args).collect())
    };
    let x = convolved(&mut g, x, &[32, 3, 3, 3], 1);
    let winograd = convolved(&mut g, x, &[32, 32, 3, 3], 1);
    let depthwise = convolved(&mut g, winograd, &[32, 1, 3, 3], 32);
    let grouped = convolved(&mut g, depthwise, &[32, 8, 5, 5], 4);
    let pointwise = convolved(&mut g, grouped, &[48, 32, 1, 1], 1);
    let mut loops = pointwise;
    for op in ["sigmoid.default", "gelu.default", "tanh.default"] {
        loops = aten(&mut g, op, vec![loops.into()]);
    }
    let max = aten(&mut g, "max_pool2d.default", vec![loops.into(), ints(&[3, 3]), ints(&[2, 2])]);
    let average = aten(&mut g, "avg_pool2d.default", vec![max.into(), ints(&[2, 2])]);
    let mean = aten(&mut g, "mean.dim", vec![loops.into(), ints(&[2, 3])]);
    let whole = aten(&mut g, "sum.default", vec![loops.into()]);
    let variance = aten(&mut g, "var.dim", vec![loops.into(), ints(&[1])]);
    let softmax = aten(&mut g, "softmax.int", vec![loops.into(), Arg::Int(1)]);
    let summed = aten(&mut g, "cumsum.default", vec![loops.into(), Arg::Int(3)]);
    let columns = weight(&mut g, &[40, 40]);
    let product = aten(&mut g, "matmul.default", vec![softmax.into(), columns.into()]);
    let computed = aten(&mut g, "matmul.default", vec![product.into(), loops.into()]);
    let normed = aten(&mut g, "layer_norm.default", vec![computed.into(), ints(&[40])]);
    let rows = aten(&mut g, "linear.default", vec![normed.into(), columns.into()]);
    let turned = aten(&mut g, "transpose.int", vec![rows.into(), Arg::Int(1), Arg::Int(3)]);
    let copied = aten(&mut g, "contiguous.default", vec![turned.into()]);
    let sorted = aten(&mut g, "sort.default", vec![copied.into(), Arg::Int(-1)]);
    let sorted = g.call_function("operator.getitem", vec![sorted.into(), Arg::Int(0)], vec![]);
    let outputs = [winograd, depthwise, average, mean, whole, variance, summed, product, normed, sorted];
    g.output(Arg::Tuple(outputs.map(Arg::Node).to_vec()));
    let mut module = GraphModule::new(g);
    for (at, tensor) in weights.into_iter().enumerate() {
        let weight = Attribute::Tensor { tensor, kind: TensorKind::Parameter };
        module.attributes.insert(format!("w{at}").into(), weight);
    }
    let input = Value::Tensor(noise(99, &[2, 3, 40, 40]));
    let program = Library::default().export(&module, std::slice::from_ref(&input)).unwrap();
    (program, vec![vec![input]])
}

#[test]
fn as_many_threads_as_there_are_give_the_same() {
    for (program, calls) in programs() {
        for way in WAYS {
            let results = [1, 2, 4].map(|n_threads| {
                let Some(runner) = runner(&program, way) else { return Vec::new() };
                with_num_threads(n_threads, || {
                    calls.iter().flat_map(|it| [it; 2]).map(|it| run(&runner, it)).collect::<Vec<_>>()
                })
            });
            assert!(results[0] == results[1] && results[0] == results[2], "{way:?}: {}", program.module.graph);
        }
    }
}

/// Calls on threads of their own, and on those of a pool of the caller.
#[test]
fn calls_at_the_same_time_give_what_each_gives_alone() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    for (program, calls) in programs() {
        for way in WAYS {
            let Some(runner) = runner(&program, way).filter(|it| !it.changes_inputs()) else { continue };
            for inputs in &calls {
                let alone = run(&runner, inputs);
                let check = |_: usize| assert!(run(&runner, inputs) == alone, "{way:?}: {}", program.module.graph);
                std::thread::scope(|scope| {
                    (0..3).for_each(|at| drop(scope.spawn(move || (0..2).for_each(|_| check(at)))));
                });
                pool.install(|| (0..6).into_par_iter().with_max_len(1).for_each(check));
            }
        }
    }
}
