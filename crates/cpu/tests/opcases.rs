//! Runs the operator cases that PyTorch recorded (`tests/fixtures/opcases` from its own tests, `tests/fixtures/opcalls`
//! from direct calls) on the CPU kernels, and again on re-strided copies of the inputs. `TRACEFX_OPCASES=DIR` runs
//! another directory of the same format instead.

#![allow(clippy::print_stderr, reason = "a test tells how much of the data it could run")]

use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tracefx_core::{Code, DType, Diagnostic, Element, Layout, MemoryFormat, Scalar, Storage, Tensor};
use tracefx_exec::{Executor, Kernels};
use tracefx_ir::Str;
use tracefx_ops::{Op, Tol, Value, registry};

/// Cases that differ from PyTorch on purpose, each with its reason.
const DIFFERENT: &[(&str, &str)] = &[];

/// Operators that ask for strides, so that another layout of the same elements may have another result or none.
const BY_STRIDES: &[&str] = &[
    "aten._embedding_bag.default",
    "aten._embedding_bag_forward_only.default",
    "aten._linalg_det.default",
    "aten._linalg_slogdet.default",
    "aten._unsafe_view.default",
    "aten.as_strided.default",
    "aten.as_strided_.default",
    "aten.as_strided_copy.default",
    "aten.as_strided_scatter.default",
    "aten.embedding_bag.default",
    "aten.embedding_bag.padding_idx",
    "aten.view.default",
    "aten.view.dtype",
    "aten.view_as.default",
    "aten.view_as_complex.default",
];

#[test]
fn recorded_operator_cases_agree() {
    check(|_, _| Some(Cow::Borrowed(tracefx_cpu::kernels())));
}

/// An operator that has both a kernel and a decomposition computes the same either way. Half types are left out: a
/// decomposition rounds after each of its operators.
#[test]
fn decompositions_agree_where_a_kernel_is_left_out() {
    check(|op, case| {
        let kernels = tracefx_cpu::kernels();
        let has_both = op.def.decompose.is_some() && kernels.get(&op.name).is_some();
        (has_both && !case.contains("float16")).then(|| Cow::Owned(kernels.without(&op.name)))
    });
}

/// Runs the cases for which there are kernels.
fn check(kernels_for: impl Fn(&Op, &str) -> Option<Cow<'static, Kernels>>) {
    let given = std::env::var("TRACEFX_OPCASES").ok();
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let dirs = match given {
        Some(dir) => vec![PathBuf::from(dir)],
        None => vec![fixtures.join("opcases"), fixtures.join("opcalls")],
    };
    let mut files: Vec<PathBuf> = dirs
        .iter()
        .flat_map(|dir| fs::read_dir(dir).expect("the fixtures are there"))
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    files.sort();
    let only = std::env::var("TRACEFX_ONLY").ok();
    let (mut n_passed, mut skipped, mut failures) = (0, BTreeMap::<String, usize>::new(), Vec::new());
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().to_string();
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let data = fs::read(file.with_extension("safetensors")).unwrap_or_default();
        let tensors = SafeTensors::deserialize(&data).ok();
        for (line, text) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let case: Json = serde_json::from_str(text).unwrap();
            let Some(op) = registry().get(case["op"].as_str().unwrap()) else {
                *skipped.entry(format!("{name} is not in the registry")).or_default() += 1;
                continue;
            };
            let Some(kernels) = kernels_for(op, text) else { continue };
            // Numbers are drawn in the order of memory.
            let keeps_strides = case.get("seed").is_some() || BY_STRIDES.iter().any(|it| case["op"] == **it);
            for restride in [false, true].into_iter().take(if keeps_strides { 1 } else { 2 }) {
                match run_case(&case, &kernels, tensors.as_ref(), restride) {
                    Ok(()) => n_passed += 1,
                    Err(Refusal::Skip(what)) => *skipped.entry(what).or_default() += 1,
                    Err(Refusal::Fail(what)) => {
                        failures.push(format!(
                            "{name}:{}{}: {what}",
                            line + 1,
                            if restride { " re-strided" } else { "" }
                        ));
                    }
                }
            }
        }
    }
    eprintln!("{n_passed} passed, {} failed, {} skipped", failures.len(), skipped.values().sum::<usize>());
    for (what, n) in &skipped {
        eprintln!("  skipped {n}: {what}");
    }
    assert!(
        failures.is_empty(),
        "{} cases differ:\n{}",
        failures.len(),
        failures[..failures.len().min(200)].join("\n")
    );
    assert!(n_passed > 0, "no case ran in {dirs:?}");
}

enum Refusal {
    Skip(String),
    Fail(String),
}

fn run_case(case: &Json, kernels: &Kernels, tensors: Option<&SafeTensors<'_>>, restride: bool) -> Result<(), Refusal> {
    let op = case["op"].as_str().unwrap();
    if let Some((_, _reason)) = DIFFERENT.iter().find(|(it, _)| *it == op) {
        return Ok(());
    }
    let read =
        |it: &Json| parse_value(it, tensors, restride).ok_or_else(|| Refusal::Skip(format!("{op}: odd argument {it}")));
    let args = case["args"].as_array().unwrap().iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let kwargs = case["kwargs"].as_object().unwrap();
    let kwargs =
        kwargs.iter().map(|(key, it)| Ok((Str::from(key.as_str()), read(it)?))).collect::<Result<Vec<_>, Refusal>>()?;
    if let Some(seed) = case.get("seed").and_then(Json::as_u64) {
        tracefx_core::with_default_generator(|it| it.manual_seed(seed));
    }
    let got = Executor::new(registry(), kernels).call(op, &args, &kwargs);
    match (got, case.get("error").filter(|it| !it.is_null())) {
        (Err(problem), _) if problem.code() == Code::NotImplemented => {
            Err(Refusal::Skip(format!("{op}: {}", problem.message())))
        }
        (Err(problem), Some(_)) if problem.code() != Code::Internal => Ok(()),
        (Ok(_), Some(error)) => Err(Refusal::Fail(format!("PyTorch refuses this: {error}"))),
        (Err(problem), _) => Err(Refusal::Fail(problem.to_string())),
        (Ok(results), None) => {
            let got = if results.len() == 1 { results[0].clone() } else { Value::List(results) };
            let tolerance = registry().get(op).unwrap().def.tolerance;
            compare(&got, &case["result"], tensors, tolerance, "result").map_err(Refusal::Fail)
        }
    }
}

fn parse_value(json: &Json, tensors: Option<&SafeTensors<'_>>, restride: bool) -> Option<Value<Tensor>> {
    Some(match json {
        Json::Null => Value::None,
        Json::Bool(it) => Value::Bool(*it),
        Json::String(it) => Value::Str(it.as_str().into()),
        Json::Array(items) => {
            Value::List(items.iter().map(|it| parse_value(it, tensors, restride)).collect::<Option<_>>()?)
        }
        Json::Number(_) => return None,
        Json::Object(map) => {
            if map.contains_key("tensor") {
                let tensor = parse_tensor(json, tensors?)?;
                return Some(Value::Tensor(if restride { restrided(&tensor)? } else { tensor }));
            }
            let (key, it) = map.iter().next()?;
            match key.as_str() {
                "int" => Value::int(it.as_i64().or_else(|| it.as_str()?.parse().ok())?),
                "float" => Value::Float(parse_float(it)?),
                "dtype" => Value::DType(DType::from_name(it.as_str()?)?),
                "layout" => Value::Layout(Layout::from_name(it.as_str()?)?),
                "device" => Value::Device(it.as_str()?.parse().ok()?),
                "memory_format" => Value::MemoryFormat(MemoryFormat::from_name(it.as_str()?)?),
                _ => return None,
            }
        }
    })
}

fn parse_float(json: &Json) -> Option<f64> {
    json.as_f64().or_else(|| match json.as_str()? {
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        "nan" => Some(f64::NAN),
        other => other.parse().ok(),
    })
}

fn parse_tensor(json: &Json, tensors: &SafeTensors<'_>) -> Option<Tensor> {
    let dims =
        |it: &Json| it.as_array()?.iter().map(|it| it.as_u64().map(|it| it as usize)).collect::<Option<Vec<_>>>();
    let dtype = DType::from_name(json["dtype"].as_str()?)?;
    let view = tensors.tensor(json["tensor"].as_str()?).ok()?;
    let storage = Storage::from_bytes(view.data()).ok()?;
    let sizes = dims(&json["size"])?;
    let strides = match json.get("stride") {
        Some(strides) => dims(strides)?,
        None => tracefx_core::contiguous_strides(&sizes).to_vec(),
    };
    Tensor::view_of(storage, dtype, &sizes, &strides, 0).ok()
}

/// The same elements with a gap after each and with the dimensions the other way round in memory.
fn restrided(tensor: &Tensor) -> Option<Tensor> {
    let mut strides = vec![0; tensor.rank()];
    let mut stride = 2;
    for (dim, &size) in tensor.sizes().iter().enumerate() {
        strides[dim] = stride;
        stride *= size.max(1);
    }
    let storage = Storage::zeroed((stride + 3) * tensor.dtype().size()).ok()?;
    let res = Tensor::view_of(storage, tensor.dtype(), tensor.sizes(), &strides, 3).ok()?;
    let size = tensor.dtype().size();
    let from = tensor.storage().read();
    let mut to = res.storage().write();
    for (at, to_at) in tensor.offsets().zip(res.offsets()) {
        to.bytes_mut()[to_at * size..(to_at + 1) * size].copy_from_slice(&from.bytes()[at * size..(at + 1) * size]);
    }
    drop(to);
    Some(res)
}

fn compare(
    got: &Value<Tensor>,
    want: &Json,
    tensors: Option<&SafeTensors<'_>>,
    tolerance: Tol,
    at: &str,
) -> Result<(), String> {
    if let (Value::List(got), Json::Array(want)) = (got, want) {
        if got.len() != want.len() {
            return Err(format!("{at}: {} values instead of {}", got.len(), want.len()));
        }
        return got
            .iter()
            .zip(want)
            .enumerate()
            .try_for_each(|(i, (got, want))| compare(got, want, tensors, tolerance, &format!("{at}[{i}]")));
    }
    if want.get("tensor").is_some() {
        let want = parse_tensor(want, tensors.ok_or("no data")?).ok_or("odd tensor")?;
        let Value::Tensor(got) = got else { return Err(format!("{at}: a {} instead of a tensor", got.kind_name())) };
        return compare_tensors(got, &want, tolerance, at);
    }
    let want = parse_value(want, tensors, false).ok_or_else(|| format!("{at}: odd result {want}"))?;
    match (got.as_scalar(), want.as_scalar()) {
        (Some(got), Some(want))
            if got.kind() == want.kind() && is_close(got, want, tolerance.for_dtype(DType::Float64)) =>
        {
            Ok(())
        }
        (None, None) if got.kind_name() == want.kind_name() => Ok(()),
        _ => Err(format!("{at}: {got:?} instead of {want:?}")),
    }
}

fn compare_tensors(got: &Tensor, want: &Tensor, tolerance: Tol, at: &str) -> Result<(), String> {
    if (got.dtype(), got.sizes()) != (want.dtype(), want.sizes()) {
        return Err(format!("{at}: {got:?} instead of {want:?}"));
    }
    let bounds = tolerance.for_dtype(want.dtype());
    let (got, want) = (scalars(got).map_err(|it| it.to_string())?, scalars(want).map_err(|it| it.to_string())?);
    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
        if !is_close(*got, *want, bounds) {
            return Err(format!("{at}: element {i} is {got} instead of {want}"));
        }
    }
    Ok(())
}

fn scalars(tensor: &Tensor) -> Result<Vec<Scalar>, Diagnostic> {
    tracefx_core::with_element!(tensor.dtype(), T => Ok(tensor.to_vec::<T>()?.into_iter().map(T::to_scalar).collect()),
        else Err(Diagnostic::unsupported_dtype(tensor.dtype(), "comparing")))
}

fn is_close(got: Scalar, want: Scalar, (rtol, atol): (f64, f64)) -> bool {
    let close = |got: f64, want: f64| {
        (got.is_nan() && want.is_nan())
            || got == want
            || ((got - want).abs() <= atol + rtol * want.abs() && got.is_finite())
    };
    match (got, want) {
        (Scalar::Int(got), Scalar::Int(want)) => got == want,
        (Scalar::Bool(got), Scalar::Bool(want)) => got == want,
        _ => close(got.to_complex().re, want.to_complex().re) && close(got.to_complex().im, want.to_complex().im),
    }
}

#[test]
fn every_kernel_is_of_a_registered_operator() {
    let unknown: Vec<_> =
        tracefx_cpu::kernels().names().into_iter().filter(|it| registry().get(it).is_none()).collect();
    assert!(unknown.is_empty(), "kernels of unknown operators: {unknown:?}");
}
