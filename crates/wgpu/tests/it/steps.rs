//! Each step that has shaders, beside the kernels.

#![allow(clippy::print_stderr, reason = "a test tells why it does nothing")]

use crate::cases::{
    ASSERTIONS, Arg, Build, CALLS, Call, DIVISIONS, IMAGE_CALLS, LONG_SUMS, PRODUCT_CALLS, dequantized, fused, plan_of,
};
use std::sync::{Arc, OnceLock};
use tracefx_core::{Bool8, Code, DType, Diagnostic, Dims, Result, Storage, Tensor, bf16, f16};
use tracefx_exec::{Accelerator, BoundPlan, Executor, LOOP_STEPS};
use tracefx_ops::{Value, registry};
use tracefx_plan::{
    Action, Argument, Buffer, Epilogue, Fused, Gather, Instruction, Loop, Operand, Plan, Product, Register, TensorId,
    TensorView,
};
use tracefx_wgpu::Gpu;

/// The GPU of these tests.
pub(crate) fn gpu() -> Option<&'static Gpu> {
    static GPU: OnceLock<Option<Gpu>> = OnceLock::new();
    let gpu = GPU.get_or_init(|| match Gpu::open() {
        Ok(gpu) => Some(gpu),
        Err(problem) if std::env::var_os("TRACEFX_GPU").is_some() => panic!("{problem}"),
        Err(problem) => {
            assert_eq!(problem.code(), Code::DeviceMissing);
            eprintln!("the tests of the GPU do nothing: {problem}");
            None
        }
    });
    gpu.as_ref()
}

/// Numbers that differ, of both signs; positions where those are wanted.
fn input(plan: &Plan, at: usize, positions_below: Option<i64>) -> Tensor {
    let Operand::Tensor(id) = plan.inputs[at] else { panic!("an input is a tensor") };
    let view = plan.tensor(id);
    let extent = view.known().unwrap();
    let n = extent.span(view.dtype).unwrap() / view.dtype.size();
    let number = |it: usize| ((it * 7 + at * 13) as f32 * 0.37).sin() * 2.0;
    let whole = |it: usize| positions_below.map_or((number(it) * 4.0) as i64, |below| (it as i64 * 5 + 2) % below);
    let sizes = [n];
    let all = match view.dtype {
        DType::Float32 => Tensor::from_slice(&(0..n).map(number).collect::<Vec<_>>(), &sizes),
        DType::Float16 => Tensor::from_slice(&(0..n).map(|it| f16::from_f32(number(it))).collect::<Vec<_>>(), &sizes),
        DType::BFloat16 => Tensor::from_slice(&(0..n).map(|it| bf16::from_f32(number(it))).collect::<Vec<_>>(), &sizes),
        DType::Int64 => {
            // Some have a high word of their own.
            let wide =
                |it: usize| if positions_below.is_none() && it % 5 == 3 { whole(it) << 33 | 5 } else { whole(it) };
            Tensor::from_slice(&(0..n).map(wide).collect::<Vec<_>>(), &sizes)
        }
        DType::UInt8 => Tensor::from_slice(&(0..n).map(|it| (it * 37 % 251) as u8).collect::<Vec<_>>(), &sizes),
        DType::UInt16 => Tensor::from_slice(&(0..n).map(|it| (it * 9973) as u16).collect::<Vec<_>>(), &sizes),
        DType::UInt32 => {
            Tensor::from_slice(&(0..n).map(|it| (it as u32).wrapping_mul(999_999_937)).collect::<Vec<_>>(), &sizes)
        }
        DType::Int8 => Tensor::from_slice(&(0..n).map(|it| (it * 37 % 251) as i8).collect::<Vec<_>>(), &sizes),
        DType::Int32 => Tensor::from_slice(&(0..n).map(|it| whole(it) as i32).collect::<Vec<_>>(), &sizes),
        DType::Bool => Tensor::from_slice(&(0..n).map(|it| Bool8::from(it % 3 != 1)).collect::<Vec<_>>(), &sizes),
        DType::Complex64 => {
            Tensor::from_slice(&(0..n).map(|it| [number(2 * it), number(2 * it + 1)]).collect::<Vec<_>>(), &sizes)
        }
        other => panic!("no numbers of {}", other.name()),
    };
    all.unwrap().as_strided(&extent.sizes, &extent.strides, extent.offset).unwrap()
}

fn run(bound: &mut BoundPlan, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let inputs: Vec<Value<Tensor>> = inputs.iter().cloned().map(Value::Tensor).collect();
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let Value::List(outputs) = bound.run(executor, &inputs, LOOP_STEPS, &mut |_, _| Ok(()))? else {
        panic!("a plan gives a list")
    };
    let tensor = |it| if let Value::Tensor(it) = it { it } else { panic!("a plan gives tensors") };
    Ok(outputs.into_iter().map(tensor).collect())
}

fn bound(plan: &Plan, gpu: Option<&Gpu>) -> BoundPlan {
    let bound = BoundPlan::new(Arc::new(plan.clone()), registry(), tracefx_cpu::kernels()).unwrap();
    bound.with_device(gpu.and_then(|it| it.prepare(plan, registry()).unwrap()))
}

/// Elements as numbers.
fn numbers(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DType::Float32 => tensor.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
        DType::Float16 => tensor.to_vec::<f16>().unwrap().into_iter().map(f64::from).collect(),
        DType::BFloat16 => tensor.to_vec::<bf16>().unwrap().into_iter().map(f64::from).collect(),
        DType::Int64 => tensor.to_vec::<i64>().unwrap().into_iter().map(|it| it as f64).collect(),
        DType::Int32 => tensor.to_vec::<i32>().unwrap().into_iter().map(f64::from).collect(),
        DType::Int16 => tensor.to_vec::<i16>().unwrap().into_iter().map(f64::from).collect(),
        DType::Int8 => tensor.to_vec::<i8>().unwrap().into_iter().map(f64::from).collect(),
        DType::UInt16 => tensor.to_vec::<u16>().unwrap().into_iter().map(f64::from).collect(),
        DType::UInt32 => tensor.to_vec::<u32>().unwrap().into_iter().map(f64::from).collect(),
        DType::UInt8 => tensor.to_vec::<u8>().unwrap().into_iter().map(f64::from).collect(),
        DType::Bool => tensor.to_vec::<Bool8>().unwrap().into_iter().map(|it| f64::from(u8::from(it.get()))).collect(),
        DType::Complex64 => tensor.to_vec::<[f32; 2]>().unwrap().into_iter().flat_map(|it| it.map(f64::from)).collect(),
        other => panic!("no numbers of {}", other.name()),
    }
}

/// How far numbers of a dtype may lie apart, of what they are and at all.
fn tolerance(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::Float32 | DType::Complex64 => (2e-5, 1e-5),
        DType::Float16 => (1e-3, 1e-3),
        DType::BFloat16 => (8e-3, 8e-3),
        _ => (0.0, 0.0),
    }
}

#[track_caller]
fn check(name: &str, plan: &Plan, positions_below: Option<i64>) {
    check_sums(name, plan, positions_below, 1.0);
}

/// As `check`, of sums whose terms are so many times those of others.
#[track_caller]
fn check_sums(name: &str, plan: &Plan, positions_below: Option<i64>, n_terms: f64) {
    let inputs: Vec<Tensor> = (0..plan.inputs.len()).map(|it| input(plan, it, positions_below)).collect();
    check_inputs(name, plan, &inputs, n_terms);
}

/// As `check_sums`, of these inputs.
#[track_caller]
fn check_inputs(name: &str, plan: &Plan, inputs: &[Tensor], n_terms: f64) {
    let Some(gpu) = gpu() else { return };
    let expected = run(&mut bound(plan, None), inputs).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    let mut on_gpu = bound(plan, Some(gpu));
    for _ in 0..2 {
        let got = run(&mut on_gpu, inputs).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        for (at, (got, expected)) in got.iter().zip(&expected).enumerate() {
            assert_eq!((got.dtype(), got.sizes()), (expected.dtype(), expected.sizes()), "{name}");
            let (relative, absolute) = tolerance(got.dtype());
            for (place, (a, b)) in numbers(got).into_iter().zip(numbers(expected)).enumerate() {
                let is_close = b.is_finite() && (a - b).abs() <= n_terms * absolute + relative * b.abs();
                let is_near = a == b || (a.is_nan() && b.is_nan()) || is_close;
                assert!(is_near, "{name}, result {at}, element {place}: {a} instead of {b}");
            }
        }
    }
}

#[test]
fn calls_compute_what_the_kernels_compute() {
    for call in CALLS.iter().chain(IMAGE_CALLS).chain(PRODUCT_CALLS) {
        let reads_positions = ["index", "embedding", "gather", "scatter", "take", "unpool", "loss"].iter();
        let reads_positions = reads_positions.into_iter().any(|it| call.0.contains(it));
        let is_among_few = call.0 == "aten.scatter.value" || call.0.contains("loss");
        let below = if is_among_few { 7 } else { 37 };
        check(&format!("{} {:?}", call.0, call.1), &plan_of(*call), reads_positions.then_some(below));
    }
}

/// Special functions at their poles and far away, where most branches are.
#[test]
fn special_functions_end_as_those_of_the_kernels() {
    let edges = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, -2.5, 4.0, -7.25, 10.0, 80.0, -90.0, 1e9, -1e30, 3e38, f32::INFINITY];
    let edges: Vec<f32> = edges.into_iter().chain([f32::NEG_INFINITY, f32::NAN, 1e-20, 0.999_999_9]).collect();
    let x = Tensor::from_slice(&edges, &[20]).unwrap();
    for op in ["erfc", "erfinv", "lgamma", "digamma", "i0", "special_i0e", "special_i1", "special_i1e"] {
        let op = format!("aten.{op}.default");
        let plan = pointwise(&op, &[DType::Float32], DType::Float32);
        check_inputs(&op, &plan, std::slice::from_ref(&x), 1.0);
    }
    let turned = Tensor::from_slice(&edges.iter().rev().copied().collect::<Vec<_>>(), &[20]).unwrap();
    for op in ["heaviside", "nextafter", "logaddexp2"] {
        let op = format!("aten.{op}.default");
        let plan = pointwise(&op, &[DType::Float32; 2], DType::Float32);
        check_inputs(&op, &plan, &[x.clone(), turned.clone()], 1.0);
    }
    let parts = [0.0, -0.0, 1.0, -3.0, 0.25, f32::INFINITY];
    let pairs: Vec<[f32; 2]> = (0..20).map(|it| [parts[it % 6], parts[it * 7 / 6 % 5]]).collect();
    let z = Tensor::from_slice(&pairs, &[20]).unwrap();
    for op in ["reciprocal", "rsqrt", "sqrt", "log", "exp"] {
        let op = format!("aten.{op}.default");
        let plan = pointwise(&op, &[DType::Complex64], DType::Complex64);
        check_inputs(&op, &plan, std::slice::from_ref(&z), 1.0);
    }
}

/// A call with twenty elements of each of these dtypes.
fn pointwise(op: &str, inputs: &[DType], result: DType) -> Plan {
    let mut build = Build::default();
    let args = inputs.iter().map(|it| Operand::Tensor(build.input(*it, &[20]))).collect();
    let result = build.result(result, &[20]);
    build.plan.push("call", Action::call(op, args, vec![Operand::Tensor(result)]));
    build.finish()
}

#[test]
fn terms_that_workgroups_share_are_all_added() {
    for call in LONG_SUMS {
        check_sums(&format!("{} {:?}", call.0, call.1), &plan_of(*call), None, 4.0);
    }
}

#[test]
fn fused_steps_compute_what_the_kernels_compute() {
    for (name, plan) in fused().into_iter().chain(dequantized()) {
        let positions_below = ["gather", "integers"].iter().any(|it| name.contains(it)).then_some(5);
        check_sums(name, &plan, positions_below, if name.contains("many terms") { 4.0 } else { 1.0 });
    }
}

/// A gather whose positions are the caller's.
fn gather(is_wrapped: bool) -> Plan {
    let mut build = Build::default();
    let (input, index) = (build.input(DType::Float32, &[4, 3]), build.input(DType::Int64, &[2]));
    let result = build.result(DType::Float32, &[2, 3]);
    let op = if is_wrapped { "aten.index.Tensor" } else { "aten.embedding.default" };
    build
        .plan
        .push("rows", Action::Fused(Fused::Gather(Gather { op: op.into(), input, dim: 0, index, is_wrapped, result })));
    build.finish()
}

#[test]
fn classes_and_bags_that_are_not_there_are_refused() {
    let Some(gpu) = gpu() else { return };
    use Arg::{Bool, Int, Known, None as Nothing};
    use DType::{Float32, Int64};
    let loss = |target| plan_of(("aten.nll_loss_forward.default", target, &[(Float32, &[]), (Float32, &[])]));
    let bags = |args| {
        let results: &[(DType, &[i64])] = &[(Float32, &[3, 2]), (Int64, &[4]), (Int64, &[3]), (Int64, &[3])];
        plan_of(("aten._embedding_bag_forward_only.default", args, results))
    };
    const TABLE: Arg = Arg::Tensor(Float32, &[5, 2]);
    const ROWS: Arg = Known(Int64, &[0, 4, 2, 1]);
    let plans = [
        loss(&[Arg::Tensor(Float32, &[2, 3]), Known(Int64, &[1, 3]), Nothing, Int(1), Int(-100)]),
        bags(&[TABLE, ROWS, Known(Int64, &[0, 3, 2]), Bool(false), Int(1), Bool(false), Nothing, Bool(false), Int(0)]),
        bags(&[TABLE, ROWS, Known(Int64, &[1, 2, 3]), Bool(false), Int(1), Bool(false), Nothing, Bool(false), Int(0)]),
        bags(&[
            TABLE,
            ROWS,
            Known(Int64, &[0, 1, 2, 5]),
            Bool(false),
            Int(1),
            Bool(false),
            Nothing,
            Bool(true),
            Int(0),
        ]),
    ];
    for plan in plans {
        let inputs: Vec<Tensor> = (0..plan.inputs.len()).map(|it| input(&plan, it, None)).collect();
        assert!(run(&mut bound(&plan, None), &inputs).is_err());
        assert_eq!(run(&mut bound(&plan, Some(gpu)), &inputs).unwrap_err().code(), Code::IndexOutOfRange);
    }
}

#[test]
fn positions_outside_are_refused_as_on_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let rows = Tensor::from_slice(&[1f32; 12], &[4, 3]).unwrap();
    for is_wrapped in [false, true] {
        let plan = gather(is_wrapped);
        let (mut on_cpu, mut on_gpu) = (bound(&plan, None), bound(&plan, Some(gpu)));
        for position in [0, 3, 4, -1, -4, -5, 1 << 32, i64::MIN] {
            let index = Tensor::from_slice(&[position, 1], &[2]).unwrap();
            let [expected, got] = [&mut on_cpu, &mut on_gpu].map(|it| run(it, &[rows.clone(), index.clone()]));
            let text = |it: Diagnostic| (it.code(), it.message().to_owned(), it.node_name().map(str::to_owned));
            assert_eq!(got.map_err(text).err(), expected.map_err(text).err(), "{position}");
        }
    }
}

/// Integers as a tensor that an input of a plan is.
fn integers(plan: &Plan, at: usize, values: &[i64]) -> Tensor {
    let Operand::Tensor(id) = plan.inputs[at] else { panic!("an input is a tensor") };
    let view = plan.tensor(id);
    let sizes = view.known().unwrap().sizes;
    let values = values.iter().cycle().take(sizes.iter().product());
    let tensor = match view.dtype {
        DType::Int64 => Tensor::from_slice(&values.copied().collect::<Vec<_>>(), &sizes),
        DType::Int32 => Tensor::from_slice(&values.map(|it| *it as i32).collect::<Vec<_>>(), &sizes),
        DType::Int8 => Tensor::from_slice(&values.map(|it| *it as i8).collect::<Vec<_>>(), &sizes),
        DType::UInt8 => Tensor::from_slice(&values.map(|it| *it as u8).collect::<Vec<_>>(), &sizes),
        DType::Float32 => Tensor::from_slice(&values.map(|it| *it as f32).collect::<Vec<_>>(), &sizes),
        DType::Bool => Tensor::from_slice(&values.map(|it| Bool8::from(*it != 0)).collect::<Vec<_>>(), &sizes),
        other => panic!("no integers of {}", other.name()),
    };
    tensor.unwrap()
}

/// The CPU and the GPU give the same numbers, or refuse with the same words; says whether they refuse.
#[track_caller]
fn is_refused(gpu: &Gpu, call: Call, inputs: &[Tensor]) -> bool {
    let plan = plan_of(call);
    let [expected, got] = [None, Some(gpu)].map(|gpu| run(&mut bound(&plan, gpu), inputs));
    let told = |it: Result<Vec<Tensor>>| {
        let it = it.map(|it| it.iter().map(numbers).collect::<Vec<_>>());
        it.map_err(|it| (it.code(), it.message().to_owned(), it.node_name().map(str::to_owned)))
    };
    let (expected, got) = (told(expected), told(got));
    assert_eq!(got, expected, "{call:?}");
    expected.is_err()
}

#[test]
fn divisors_of_zero_are_refused_as_on_the_cpu() {
    let Some(gpu) = gpu() else { return };
    for &call in DIVISIONS {
        let plan = plan_of(call);
        let dividend =
            integers(&plan, 0, &[7, -7, 0, i64::MIN, i64::MAX, -1, 1 << 40 | 5, -(1 << 35), i64::from(i32::MIN)]);
        for (divisors, is_zero) in [(&[3, -3, 1, -1, 100, -7], false), (&[3, -3, 1, -1, 0, -7], true)] {
            let inputs = [dividend.clone(), integers(&plan, 1, divisors)];
            assert_eq!(is_refused(gpu, call, &inputs), is_zero, "{call:?}");
        }
    }
}

#[test]
fn assertions_are_refused_as_on_the_cpu() {
    let Some(gpu) = gpu() else { return };
    for &call in ASSERTIONS {
        for value in [0, 1, 1 << 32] {
            let given = integers(&plan_of(call), 0, &[value]);
            assert_eq!(is_refused(gpu, call, &[given]), value == 0, "{call:?}");
        }
    }
}

/// Workgroups of one dimension are not enough for these.
#[test]
fn many_elements_are_all_computed() {
    check(
        "many",
        &plan_of(("aten.neg.default", &[Arg::Tensor(DType::Float32, &[4_300_001])], &[(DType::Float32, &[4_300_001])])),
        None,
    );
    check(
        "rows",
        &plan_of((
            "aten.amax.default",
            &[Arg::Tensor(DType::Float32, &[66_000, 33]), Arg::Ints(&[1]), Arg::Bool(false)],
            &[(DType::Float32, &[66_000])],
        )),
        None,
    );
}

/// A number of the program that each run makes larger by one, and gives, copied or taken at a position.
fn counting(give: impl FnOnce(&mut Build, TensorId, TensorId)) -> (Plan, Storage) {
    let storage = Storage::from_bytes(&1f32.to_le_bytes()).unwrap();
    let mut build = Build::default();
    let buffer = build.plan.add_buffer(Buffer::Constant(storage.clone()));
    let count = build.plan.add_tensor(TensorView::row_major(buffer, DType::Float32, &[1.into()]));
    let one = build.input(DType::Float32, &[1]);
    let result = build.result(DType::Float32, &[1]);
    let args = [0, 1].map(|it| Argument::Register(Register(it))).into_iter();
    let args = args.chain([Argument::Value(Operand::Int(1))]).collect();
    let code = vec![Instruction { op: "aten.add.Tensor".into(), args, dtype: DType::Float32 }];
    let outputs = vec![(Register(2), count)];
    build.fused(Fused::Loop(Loop { sizes: Dims::from_slice(&[1]), inputs: vec![count, one], code, outputs }));
    give(&mut build, count, result);
    (build.finish(), storage)
}

fn counter() -> (Plan, Storage) {
    counting(|build, from, to| build.plan.push("copy", Action::Copy { from, to }))
}

#[test]
fn what_a_stopped_run_changed_is_forgotten() {
    let Some(gpu) = gpu() else { return };
    let (plan, storage) = counter();
    let mut on_gpu = bound(&plan, Some(gpu));
    let one = [Tensor::from_slice(&[1f32], &[1]).unwrap()];
    let state = || f32::from_le_bytes(storage.read().bytes()[..4].try_into().unwrap());
    assert_eq!((run(&mut on_gpu, &one).unwrap()[0].to_vec::<f32>().unwrap(), state()), (vec![2.0], 2.0));
    let inputs = [Value::Tensor(one[0].clone())];
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let stop = &mut |done, _| if done == 1 { Err(Diagnostic::new(Code::Stopped, "stopped")) } else { Ok(()) };
    assert_eq!(on_gpu.run(executor, &inputs, LOOP_STEPS, stop).unwrap_err().code(), Code::Stopped);
    assert_eq!((run(&mut on_gpu, &one).unwrap()[0].to_vec::<f32>().unwrap(), state()), (vec![3.0], 3.0));
    // Somebody else changes it.
    storage.write().unwrap().bytes_mut()[..4].copy_from_slice(&10f32.to_le_bytes());
    assert_eq!((run(&mut on_gpu, &one).unwrap()[0].to_vec::<f32>().unwrap(), state()), (vec![11.0], 11.0));
}

#[test]
fn what_a_device_keeps_comes_down_when_it_is_asked_for() {
    let Some(gpu) = gpu() else { return };
    let (plan, storage) = counter();
    let on_gpu = gpu.clone().keeping_state().prepare(&plan, registry()).unwrap();
    let mut on_gpu = bound(&plan, None).with_device(on_gpu);
    let one = [Tensor::from_slice(&[1f32], &[1]).unwrap()];
    let counted = |bound: &mut BoundPlan| run(bound, &one).map(|it| numbers(&it[0])[0]);
    let in_memory = || f32::from_le_bytes(storage.read().bytes().try_into().unwrap());
    assert_eq!([(); 3].map(|()| counted(&mut on_gpu).unwrap()), [2.0, 3.0, 4.0]);
    assert_eq!(in_memory(), 1.0);
    on_gpu.synchronize().unwrap();
    assert_eq!(in_memory(), 4.0);
    assert_eq!(counted(&mut on_gpu).unwrap(), 5.0);
    // What is written to memory meanwhile is what counts.
    on_gpu.synchronize().unwrap();
    storage.write().unwrap().bytes_mut().copy_from_slice(&10f32.to_le_bytes());
    assert_eq!(counted(&mut on_gpu).unwrap(), 11.0);
    // A run that is stopped before the device is told anything loses nothing.
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let input = [Value::Tensor(one[0].clone())];
    let stop = &mut |done, _| if done == 1 { Err(Diagnostic::new(Code::Stopped, "stopped")) } else { Ok(()) };
    assert_eq!(on_gpu.run(executor, &input, LOOP_STEPS, stop).unwrap_err().code(), Code::Stopped);
    assert_eq!(counted(&mut on_gpu).unwrap(), 12.0);
    // What is written to memory while the device is ahead stays there.
    storage.write().unwrap().bytes_mut().copy_from_slice(&20f32.to_le_bytes());
    on_gpu.synchronize().unwrap();
    assert_eq!((in_memory(), counted(&mut on_gpu).unwrap()), (20.0, 21.0));
}

#[test]
fn a_run_that_fails_says_that_what_was_kept_is_lost() {
    let Some(gpu) = gpu() else { return };
    let (plan, storage) = counting(|build, input, result| {
        let index = build.input(DType::Int64, &[1]);
        let op = "aten.embedding.default".into();
        build.fused(Fused::Gather(Gather { op, input, dim: 0, index, is_wrapped: false, result }));
    });
    let on_gpu = gpu.clone().keeping_state().prepare(&plan, registry()).unwrap();
    let mut on_gpu = bound(&plan, None).with_device(on_gpu);
    let one = Tensor::from_slice(&[1f32], &[1]).unwrap();
    let mut counted = |position: i64| {
        let inputs = [one.clone(), Tensor::from_slice(&[position], &[1]).unwrap()];
        run(&mut on_gpu, &inputs).map(|it| numbers(&it[0])[0])
    };
    assert_eq!([counted(0).unwrap(), counted(0).unwrap()], [2.0, 3.0]);
    let problem = counted(7).unwrap_err();
    assert_eq!(problem.code(), Code::IndexOutOfRange);
    assert!(problem.notes().iter().any(|it| it.contains("as they were when they came down last")), "{problem}");
    assert_eq!(*storage.read().bytes(), 1f32.to_le_bytes());
    assert_eq!(counted(0).unwrap(), 2.0);
}

#[test]
fn a_device_does_not_keep_what_a_run_gives() {
    let Some(gpu) = gpu() else { return };
    let (mut plan, storage) = counter();
    plan.output = Operand::List(vec![Operand::Tensor(TensorId(0))]);
    let on_gpu = gpu.clone().keeping_state().prepare(&plan, registry()).unwrap();
    let mut on_gpu = bound(&plan, None).with_device(on_gpu);
    let one = [Tensor::from_slice(&[1f32], &[1]).unwrap()];
    assert_eq!([(); 2].map(|()| numbers(&run(&mut on_gpu, &one).unwrap()[0])[0]), [2.0, 3.0]);
    assert_eq!(*storage.read().bytes(), 3f32.to_le_bytes());
}

#[test]
fn results_are_written_to_tensors_that_there_are() {
    let Some(gpu) = gpu() else { return };
    let plan = plan_of(CALLS[0]);
    let given = [input(&plan, 0, None)];
    let expected = run(&mut bound(&plan, None), &given).unwrap();
    let output = [Tensor::zeros(DType::Float32, expected[0].sizes()).unwrap()];
    let inputs = [Value::Tensor(given[0].clone())];
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let mut on_gpu = bound(&plan, Some(gpu));
    on_gpu.run_into(executor, &inputs, Some(&output), LOOP_STEPS, &mut |_, _| Ok(())).unwrap();
    for (a, b) in numbers(&output[0]).into_iter().zip(numbers(&expected[0])) {
        assert!((a - b).abs() <= 1e-5 * b.abs(), "{a} instead of {b}");
    }
}

/// All patterns of bits of a dtype of one byte or two, and one element more.
fn all_patterns(dtype: DType) -> Tensor {
    let n = if dtype.size() == 1 { 256 } else { 65536 };
    let bytes: Vec<u8> = (0..=n as u32)
        .flat_map(|it| {
            let bits = if dtype == DType::Bool { it % 2 } else { it };
            bits.to_le_bytes()[..dtype.size()].to_vec()
        })
        .collect();
    Tensor::view_of(Storage::from_bytes(&bytes).unwrap(), dtype, &[n + 1], &[1], 0).unwrap()
}

/// Constants that nothing writes to lie on the device as they lie in memory, several elements to a word.
#[test]
fn packed_constants_are_read_as_they_are() {
    let Some(gpu) = gpu() else { return };
    let dtypes = [DType::Float16, DType::BFloat16, DType::Int8, DType::UInt8, DType::Int16, DType::UInt16, DType::Bool];
    for dtype in dtypes {
        let all = all_patterns(dtype);
        let mut build = Build::default();
        let from = build.constant(&all);
        let to = build.result(dtype, &[all.numel() as i64]);
        build.plan.push("copy", Action::Copy { from, to });
        // A copy moves words, and a loop reads elements into registers.
        let result = build.result(dtype, &[all.numel() as i64]);
        let args = [Argument::Register(Register(0))].into_iter().collect();
        let code = vec![Instruction { op: "aten.clone.default".into(), args, dtype }];
        let outputs = vec![(Register(1), result)];
        build.fused(Fused::Loop(Loop { sizes: Dims::from_slice(&[all.numel()]), inputs: vec![from], code, outputs }));
        let plan = build.finish();
        let program = tracefx_gpu::lower(&plan, &Default::default(), &|_| false);
        let place = program.places[0].expect("the constant is on the device");
        assert!(place.is_packed && place.n_bytes() == (all.numel() * dtype.size()).next_multiple_of(4) as u64);
        let got = run(&mut bound(&plan, Some(gpu)), &[]).unwrap();
        for it in &got {
            for (at, (a, b)) in numbers(it).into_iter().zip(numbers(&all)).enumerate() {
                assert!(a == b || a.is_nan() && b.is_nan(), "{}, element {at}: {a} instead of {b}", dtype.name());
            }
        }
    }
}

/// Products whose right side the program has in half precision, of odd and even sizes, few rows and many.
#[test]
fn products_read_packed_weights() {
    for dtype in [DType::Float16, DType::BFloat16] {
        for [m, k, n] in [[1, 65, 131], [1, 200, 33], [3, 50, 70], [70, 33, 67], [130, 64, 129]] {
            for is_turned in [false, true] {
                let mut build = Build::default();
                let number = |it: i64| ((it * 7) as f32 * 0.37).sin();
                let (all, sizes) = (0..k * n, [(k * n) as usize]);
                let narrow = match dtype {
                    DType::Float16 => {
                        Tensor::from_slice(&all.map(|it| f16::from_f32(number(it))).collect::<Vec<_>>(), &sizes)
                    }
                    _ => Tensor::from_slice(&all.map(|it| bf16::from_f32(number(it))).collect::<Vec<_>>(), &sizes),
                };
                let narrow = narrow.unwrap();
                let buffer = build.plan.add_buffer(Buffer::Constant(narrow.storage().clone()));
                let strides = if is_turned { [1, k] } else { [n, 1] };
                let view = TensorView {
                    buffer,
                    dtype,
                    sizes: vec![k.into(), n.into()],
                    strides: strides.map(Into::into).to_vec(),
                    offset: 0.into(),
                };
                let rhs = build.plan.add_tensor(view);
                let lhs = build.input(dtype, &[m, k]);
                let result = build.result(dtype, &[m, n]);
                build.fused(Fused::Product(Product { lhs, rhs, epilogue: Epilogue::none(), result }));
                let name = format!("{} {m} {k} {n} {is_turned}", dtype.name());
                check_sums(&name, &build.finish(), None, 4.0);
            }
        }
    }
}

/// Of constants that a plan writes to, each element has a word of its own.
#[test]
fn constants_that_change_are_not_packed() {
    let mut build = Build::default();
    let to = build.constant(&all_patterns(DType::UInt8));
    let from = build.input(DType::UInt8, &[257]);
    build.plan.push("copy", Action::Copy { from, to });
    let program = tracefx_gpu::lower(&build.finish(), &Default::default(), &|_| false);
    assert!(program.places.iter().flatten().all(|it| !it.is_packed));
}
