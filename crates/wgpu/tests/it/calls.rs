//! Calls that PyTorch recorded, as programs of one operator: a plan gives on the GPU what it gives on the CPU, within the tolerance of the
//! operator. `TRACEFX_OPCASES=DIR` runs another directory of calls, `TRACEFX_ONLY=aten.add` only the operators with these letters in
//! their names.

use crate::programs::program;
use crate::recorded::{is_close, scalars};
use crate::steps::gpu;
use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracefx_compile::{Precision, compile};
use tracefx_core::{Code, Tensor};
use tracefx_exec::{Accelerator, BoundPlan, Executor, LOOP_STEPS, plan};
use tracefx_ir::TensorMeta;
use tracefx_ops::{Op, Value, registry};
use tracefx_plan::Plan;
use tracefx_wgpu::Gpu;

/// Of each file so many calls are run.
const CALLS: usize = 1;

#[test]
fn recorded_calls_give_the_same_on_the_gpu() {
    let Some(gpu) = gpu() else { return };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let (dir, n_calls) = match std::env::var_os("TRACEFX_OPCASES") {
        Some(dir) => (PathBuf::from(dir), usize::MAX),
        None => (fixtures.join("opcases"), CALLS),
    };
    let only = std::env::var("TRACEFX_ONLY").unwrap_or_default();
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|it| it.extension().is_some_and(|it| it == "jsonl") && it.to_string_lossy().contains(&only));
    files.sort();
    let (mut n_compared, mut failures) = (0, Vec::new());
    for file in files {
        let data = fs::read(file.with_extension("safetensors")).unwrap_or_default();
        let Ok(tensors) = SafeTensors::deserialize(&data) else { continue };
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let step = (lines.len() / n_calls).max(1);
        for (at, line) in lines.iter().enumerate().skip(step / 2).step_by(step) {
            let case: Json = serde_json::from_str(line).unwrap();
            match compared(gpu, &case, &tensors) {
                Ok(is_compared) => n_compared += usize::from(is_compared),
                Err(what) => {
                    let name = file.file_stem().unwrap_or_default().to_string_lossy();
                    failures.push(format!("{name}:{}: {what}", at + 1));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} of {n_compared} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(n_compared > 0, "nothing was compared");
}

/// Whether a call was compared, which it is where the GPU does something of it; or how what it gives differs.
fn compared(gpu: &Gpu, case: &Json, tensors: &SafeTensors<'_>) -> Result<bool, String> {
    let Some(op) = case["op"].as_str().and_then(|it| registry().get(it)) else { return Ok(false) };
    // Numbers that are drawn are drawn on the CPU.
    if case.get("seed").is_some() {
        return Ok(false);
    }
    let read = || program(op, case, tensors);
    let (Some((module, inputs)), Some((_, again))) = (read(), read()) else { return Ok(false) };
    let metas: Vec<_> = inputs.iter().map(|it| it.map(&mut TensorMeta::of)).collect();
    let kernels = tracefx_cpu::kernels();
    let Ok(traced) = plan(&module, &metas, registry(), kernels) else { return Ok(false) };
    let compiled = Arc::new(compile(traced, registry(), kernels, Precision::Fast));
    let Some(device) = gpu.prepare(&compiled, registry()).map_err(|it| it.to_string())? else { return Ok(false) };
    let bound = |plan: &Arc<Plan>| BoundPlan::new(Arc::clone(plan), registry(), kernels).map_err(|it| it.to_string());
    let (mut on_cpu, mut on_gpu) = (bound(&compiled)?, bound(&compiled)?.with_device(Some(device)));
    let executor = Executor::new(registry(), kernels);
    let run = |bound: &mut BoundPlan, inputs: &[Value<Tensor>]| {
        bound.run(executor, inputs, LOOP_STEPS, &mut |_, _| Ok(())).map(|it| [&[it], inputs].concat())
    };
    match (run(&mut on_gpu, &inputs), run(&mut on_cpu, &again)) {
        (Ok(got), Ok(wanted)) => {
            let (mut got, mut wanted) = (flat(&got), flat(&wanted));
            for (at, (got, wanted)) in got.drain(..).zip(wanted.drain(..)).enumerate() {
                same(op, &got, &wanted).map_err(|what| format!("{}, {at}: {what}\n{compiled}", op.name))?;
            }
            Ok(true)
        }
        (Err(_), Err(wanted)) if wanted.code() == Code::NotImplemented => Ok(false),
        (Err(got), Err(wanted)) if got.code() == wanted.code() => Ok(true),
        (got, wanted) => Err(format!("{}: {got:?} instead of {wanted:?}\n{compiled}", op.name)),
    }
}

/// The tensors in values.
fn flat(values: &[Value<Tensor>]) -> Vec<Tensor> {
    let mut tensors = Vec::new();
    values.iter().for_each(|it| it.for_each_tensor(&mut |it| tensors.push(it.clone())));
    tensors
}

fn same(op: &Op, got: &Tensor, wanted: &Tensor) -> Result<(), String> {
    if (got.dtype(), got.sizes()) != (wanted.dtype(), wanted.sizes()) {
        return Err(format!("{got:?} instead of {wanted:?}"));
    }
    let bounds = op.def.tolerance.for_dtype(wanted.dtype());
    let numbers = |it: &Tensor| scalars(it).map_err(|it| it.to_string());
    for (at, (got, wanted)) in numbers(got)?.into_iter().zip(numbers(wanted)?).enumerate() {
        if !is_close(got, wanted, bounds) {
            return Err(format!("element {at} is {got} instead of {wanted}"));
        }
    }
    Ok(())
}
