//! What a run of whole programs costs, by each way of running them:
//! `cargo bench -p tracefx-engine --bench models -- DIR NAME...`, where `benches/models.py` has made the models. Prints for each way
//! milliseconds, of the shortest of the runs of two seconds, and the largest difference from what PyTorch gives; with `--plan`,
//! the plan.

use std::hint::black_box;
use std::time::{Duration, Instant};
use tracefx_core::Tensor;
use tracefx_engine::{Limits, Mode, Precision, Runner, open, read_inputs, read_tensors};
use tracefx_ops::Value;

/// Times a way of running after it has run once.
fn shortest(mut act: impl FnMut()) -> f64 {
    let (begin, mut res) = (Instant::now(), f64::INFINITY);
    while begin.elapsed() < Duration::from_secs(2) {
        let start = Instant::now();
        act();
        res = res.min(start.elapsed().as_secs_f64() * 1e3);
    }
    res
}

fn numbers(it: &Tensor) -> Vec<f32> {
    it.to_bytes().unwrap().chunks_exact(4).map(|it| f32::from_le_bytes(it.try_into().unwrap())).collect()
}

#[allow(clippy::print_stdout, reason = "the times are what it is run for")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let prints_plan = args.iter().any(|it| it == "--plan");
    let [folder, names @ ..] = &args[..] else { panic!("the folder of the models comes first") };
    for name in names.iter().filter(|it| *it != "--plan") {
        let read = |suffix: &str| std::fs::read(format!("{folder}/{name}.{suffix}")).unwrap();
        let program = open(&read("pt2"), &Limits::default()).unwrap();
        let inputs = read_inputs(&program, &read("inputs.safetensors")).unwrap();
        let expected = read_tensors(&read("expected.safetensors")).unwrap();
        let ways = [
            (Mode::Interpret, Precision::Strict, "interpret"),
            (Mode::Plan, Precision::Strict, "plan, strict"),
            (Mode::Plan, Precision::Fast, "plan, fast"),
        ];
        for (mode, precision, way) in ways {
            let runner = Runner::new(&program).unwrap().with_mode(mode).with_precision(precision);
            let Value::Tensor(output) = &runner.run(&inputs).unwrap()[0] else { panic!("a program gives a tensor") };
            let (got, want) = (numbers(output), numbers(&expected[0].1));
            let apart = got.iter().zip(&want).map(|(got, want)| (got - want).abs()).fold(0.0, f32::max);
            println!("{name} {way}: {:.3} ms, {apart:.1e} apart", shortest(|| drop(black_box(runner.run(&inputs)))));
            if prints_plan && mode == Mode::Plan {
                println!("{}", runner.plan(&inputs).unwrap());
            }
        }
    }
}
