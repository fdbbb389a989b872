//! Every module that plans are lowered to is valid, without a GPU.

use crate::cases::{
    ASSERTIONS, Build, CALLS, DIVISIONS, IMAGE_CALLS, LONG_SUMS, PRODUCT_CALLS, dequantized, fused, plan_of,
};
use crate::programs::program;
use naga::valid::{Capabilities, ValidationFlags, Validator};
use safetensors::SafeTensors;
use std::fs;
use std::path::Path;
use tracefx_compile::{Precision, compile};
use tracefx_core::DType;
use tracefx_exec::plan;
use tracefx_gpu::{ENABLE_SUBGROUPS, Limits, Program, Work, lower};
use tracefx_ir::TensorMeta;
use tracefx_ops::{Op, registry};
use tracefx_plan::{Action, Operand};

/// Checks the modules of a program.
#[track_caller]
pub(crate) fn check(program: &Program) {
    for text in &program.modules {
        let known = text.replacen(ENABLE_SUBGROUPS, "", 1);
        let module = match naga::front::wgsl::parse_str(&known) {
            Ok(module) => module,
            Err(problem) => panic!("{}\n{text}", problem.emit_to_string(&known)),
        };
        // A module says what it needs of a device.
        let mut capabilities = Capabilities::empty();
        capabilities.set(Capabilities::SHADER_FLOAT16, text.contains("enable f16;"));
        capabilities.set(Capabilities::SUBGROUP, text.contains(ENABLE_SUBGROUPS));
        let validity = Validator::new(ValidationFlags::all(), capabilities).validate(&module);
        if let Err(problem) = validity {
            panic!("{}\n{text}", problem.emit_to_string(&known));
        }
        // NVIDIA's driver reads others from the memory of a workgroup than were written.
        assert!(!text.contains("array<bool"), "{text}");
    }
}

/// Devices with so many buffers of a module, without and with numbers of 16 bits and subgroups.
fn devices(bindings: usize) -> impl Iterator<Item = Limits> {
    [false, true].into_iter().map(move |it| Limits { bindings, has_f16: it, has_subgroups: it, ..Limits::default() })
}

#[test]
fn calls_have_valid_modules() {
    // Batch normalisation reads and writes ten tensors.
    devices(10).for_each(|limits| check_calls(&limits));
}

fn check_calls(limits: &Limits) {
    for call in CALLS.iter().chain(IMAGE_CALLS).chain(PRODUCT_CALLS).chain(LONG_SUMS).chain(DIVISIONS).chain(ASSERTIONS)
    {
        let program = lower(&plan_of(*call), limits, &|_| false);
        match &program.steps[0].work {
            Work::Device(dispatches) => assert!(!dispatches.is_empty(), "{} does nothing", call.0),
            Work::Cpu(reason) => panic!("{}: {reason}", call.0),
        }
        check(&program);
    }
}

#[test]
fn fused_steps_have_valid_modules() {
    // A convolution with all that may follow it reads and writes nine tensors.
    devices(9).for_each(|limits| check_fused(&limits));
}

fn check_fused(limits: &Limits) {
    for (name, plan) in fused().into_iter().chain(dequantized()) {
        let program = lower(&plan, limits, &|_| false);
        for step in &program.steps {
            match &step.work {
                Work::Device(dispatches) => assert!(!dispatches.is_empty(), "{name} does nothing"),
                Work::Cpu(reason) => {
                    assert!(["airy", "igamma"].iter().any(|it| reason.contains(it)), "{name}: {reason}")
                }
            }
        }
        check(&program);
    }
}

#[test]
fn what_crosses_is_told() {
    let (_, plan) = fused().into_iter().find(|(name, _)| *name == "copies between steps").unwrap();
    let program = lower(&plan, &Limits::default(), &|_| false);
    assert_eq!(
        program.to_string(),
        "up buffer 0
step 0
    module 0 on 1 0! in [1, 1, 1]
down buffer 1
step 1 on the CPU: aten.special_airy_ai.default has no shader
up buffer 2
step 2
    module 1 on 0 2! in [1, 1, 1]
down buffer 3
"
    );
}

#[test]
fn memory_of_the_plan_in_float16_takes_half_where_the_device_has_such_numbers() {
    let mut build = Build::default();
    let x = build.input(DType::Float16, &[6, 5]);
    let a = build.scratch(DType::Float16, &[6, 5]);
    let y = build.result(DType::Float16, &[6, 5]);
    for (op, from, to) in [("aten.exp.default", x, a), ("aten.neg.default", a, y)] {
        build.plan.push("call", Action::call(op, vec![Operand::Tensor(from)], vec![Operand::Tensor(to)]));
    }
    let plan = build.finish();
    let bytes = |has_f16| {
        let program = lower(&plan, &Limits { has_f16, ..Limits::default() }, &|_| false);
        check(&program);
        let of = |id| program.places[plan.tensor(id).buffer.0 as usize].unwrap().n_bytes();
        [of(x), of(a), of(y)]
    };
    assert_eq!((bytes(false), bytes(true)), ([120; 3], [120, 60, 120]));
}

#[test]
fn tensors_beyond_a_limit_stay_on_the_cpu() {
    let plan = plan_of(CALLS[0]);
    let limits = [Limits { bindings: 1, ..Limits::default() }, Limits { buffer_bytes: 100, ..Limits::default() }];
    for limits in limits {
        assert_eq!(lower(&plan, &limits, &|_| false).count(), (0, 1), "{limits:?}");
    }
    let few = Limits { workgroups: 6, ..Limits::default() };
    let program = lower(&plan, &few, &|_| false);
    let Work::Device(dispatches) = &program.steps[0].work else { panic!("{program}") };
    assert_eq!(dispatches[0].workgroups, [6, 6, 1]);
    check(&program);
}

/// Of each file of recorded calls so many are lowered.
const CALLS_OF_A_FILE: usize = 3;

#[test]
fn recorded_calls_have_valid_modules() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/opcases");
    let limits: Vec<Limits> = devices(24).collect();
    let kernels = tracefx_cpu::kernels();
    let (mut n_device, mut n_cpu) = (0, 0);
    for file in fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()) {
        if file.extension().is_none_or(|it| it != "jsonl") {
            continue;
        }
        let data = fs::read(file.with_extension("safetensors")).unwrap_or_default();
        let Ok(tensors) = SafeTensors::deserialize(&data) else { continue };
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for line in lines.iter().step_by((lines.len() / CALLS_OF_A_FILE).max(1)) {
            let case: serde_json::Value = serde_json::from_str(line).unwrap();
            let Some(op) = case["op"].as_str().and_then(|it| registry().get(it)) else { continue };
            let Some((module, inputs)) = program(op, &case, &tensors) else { continue };
            let metas: Vec<_> = inputs.iter().map(|it| it.map(&mut TensorMeta::of)).collect();
            let Ok(traced) = plan(&module, &metas, registry(), kernels) else { continue };
            let compiled = compile(traced, registry(), kernels, Precision::Fast);
            for limits in &limits {
                let program = lower(&compiled, limits, &|op| registry().get(op).is_none_or(Op::may_write));
                check(&program);
                let (on_device, on_cpu) = program.count();
                (n_device, n_cpu) = (n_device + on_device, n_cpu + on_cpu);
            }
        }
    }
    assert!(n_device > 1_000, "{n_device} steps on the device, {n_cpu} on the CPU");
}
