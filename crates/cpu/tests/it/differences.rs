//! Gradients of operators agree with differences: the recorded calls of `tests/fixtures/opcases`, in float64, are moved a
//! little along a direction, and what the result changes by is what the gradient says. `TRACEFX_OPCASES=DIR` takes the
//! calls of another directory.
//!
//! Where there is a kink or a jump, the differences to both sides do not come together as the step shrinks, or are others
//! for another step; these calls are left out, and counted.

#![allow(clippy::print_stderr, reason = "a test tells how much of the data it could run")]

use crate::recorded::{is_close, parse_value, scalars};
use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use tracefx_core::{DType, Result, Scalar, Tensor};
use tracefx_exec::Executor;
use tracefx_ir::Str;
use tracefx_ops::{Infer, Op, Tags, Value, Vjp, registry};

/// Numbers between -1 and 1 that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// The parts of all floats of a value, one after another.
fn parts(value: &Value<Tensor>, into: &mut Vec<f64>) {
    match value {
        Value::Tensor(it) if is_wide(it) => {
            for scalar in scalars(it).expect("float64 can be read") {
                into.push(scalar.to_complex().re);
                if it.dtype().is_complex() {
                    into.push(scalar.to_complex().im);
                }
            }
        }
        Value::List(items) => items.iter().for_each(|it| parts(it, into)),
        _ => {}
    }
}

fn is_wide(tensor: &Tensor) -> bool {
    matches!(tensor.dtype(), DType::Float64 | DType::Complex128)
}

/// The value with the parts of its floats taken from these.
fn with_parts(value: &Value<Tensor>, from: &mut impl Iterator<Item = f64>) -> Value<Tensor> {
    let mut make = |it: &Tensor| {
        let mut next = || from.next().expect("there is a number for each part");
        match it.dtype() {
            DType::Float64 => {
                let data: Vec<f64> = (0..it.numel()).map(|_| next()).collect();
                Tensor::from_slice(&data, it.sizes()).unwrap()
            }
            DType::Complex128 => {
                let data: Vec<[f64; 2]> = (0..it.numel()).map(|_| [next(), next()]).collect();
                Tensor::from_slice(&data, it.sizes()).unwrap()
            }
            _ => it.clone(),
        }
    };
    value.map(&mut make)
}

fn wide(value: Value<Tensor>) -> Value<Tensor> {
    let cast = |it: &Tensor| {
        let dtype = match it.dtype() {
            it if it.is_float() => DType::Float64,
            it if it.is_complex() => DType::Complex128,
            other => other,
        };
        let args = [Value::Tensor(it.clone())];
        let copy = executor().call("aten._to_copy.default", &args, &[("dtype".into(), Value::DType(dtype))])?;
        match copy.into_iter().next() {
            Some(Value::Tensor(it)) => Ok(it),
            _ => panic!("a copy is a tensor"),
        }
    };
    value.try_map(&mut { cast }).unwrap_or_else(|problem: tracefx_core::Diagnostic| panic!("{problem}"))
}

fn executor() -> Executor<'static> {
    Executor::new(registry(), tracefx_cpu::kernels())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

enum Outcome {
    Agrees,
    Kink,
    Skipped,
    Differs(String),
}

fn check(op: &Op, args: &[Value<Tensor>]) -> Result<Outcome> {
    let n_positional = op.schema.n_positional();
    let kwargs = |args: &[Value<Tensor>]| -> Vec<(Str, Value<Tensor>)> {
        let named = op.schema.args.iter().zip(args).skip(n_positional);
        named.map(|(spec, it)| (Str::from(&*spec.name), it.clone())).collect()
    };
    let all = Value::List(args.to_vec());
    let (mut x, mut y) = (Vec::new(), Vec::new());
    parts(&all, &mut x);
    let mut pullback = executor().vjp(&op.name, &args[..n_positional], &kwargs(args))?;
    let results = Value::List(pullback.results().to_vec());
    parts(&results, &mut y);
    if x.is_empty() || y.is_empty() || x.iter().chain(&y).any(|it| !it.is_finite()) {
        return Ok(Outcome::Skipped);
    }
    let mut numbers = Numbers(op.name.len() as u64 + 1);
    let mut weights: Vec<f64> = y.iter().map(|_| numbers.next()).collect();
    if let Some(Vjp::OfFirst(n, _)) = op.def.vjp {
        let mut first = Vec::new();
        pullback.results()[..n].iter().for_each(|it| parts(it, &mut first));
        weights[first.len()..].fill(0.0);
    }
    let mut direction: Vec<f64> = x.iter().map(|_| numbers.next()).collect();
    let Value::List(grads) = only_wide(&with_parts(&results, &mut weights.iter().copied())) else { unreachable!() };
    let found = Value::List(pullback.pull_back(&grads)?);
    let mut gradient = Vec::new();
    matched(&all, &found, &mut gradient);
    // What gets no gradient, such as the weights of a loss, stays where it is: that none flows is PyTorch's choice, to which
    // the recorded gradients hold ours.
    for (step, gradient) in direction.iter_mut().zip(&gradient) {
        if gradient.is_none() {
            *step = 0.0;
        }
    }
    let gradient: Vec<f64> = gradient.into_iter().map(Option::unwrap_or_default).collect();
    let expected = dot(&gradient, &direction);

    let at = |step: f64| -> Result<f64> {
        let mut moved = x.iter().zip(&direction).map(|(x, d)| x + step * d);
        let Value::List(args) = with_parts(&all, &mut moved) else { unreachable!() };
        let results = executor().call(&op.name, &args[..n_positional], &kwargs(&args))?;
        let mut y = Vec::new();
        parts(&Value::List(results), &mut y);
        Ok(dot(&weights, &y))
    };
    // The differences to both sides, and what lies between them.
    let here = at(0.0)?;
    let sides = |step: f64| -> Result<(f64, f64)> {
        let (after, before) = (at(step)?, at(-step)?);
        Ok(((after - before) / (2.0 * step), ((after - here) - (here - before)) / step))
    };
    let ((slope, bend), (finer_slope, finer)) = (sides(1e-5)?, sides(1e-6)?);
    let size = gradient.iter().zip(&direction).map(|(a, b)| (a * b).abs()).sum::<f64>();
    let scale = 1.0 + here.abs() + size;
    let is_straighter = finer.abs() <= 0.3 * bend.abs() + 1e-8 * scale;
    let is_smooth = is_straighter && (slope - finer_slope).abs() <= 1e-4 * scale;
    let bound = 1e-6 * scale + bend.abs();
    Ok(match is_close(Scalar::Float(expected), Scalar::Float(slope), (0.0, bound)) {
        _ if !is_smooth || !slope.is_finite() => Outcome::Kink,
        true => Outcome::Agrees,
        false => Outcome::Differs(format!("the differences are {slope} and the gradient is {expected}")),
    })
}

/// Gradients for results that are floats.
fn only_wide(value: &Value<Tensor>) -> Value<Tensor> {
    match value {
        Value::Tensor(it) if is_wide(it) => value.clone(),
        Value::List(items) => Value::List(items.iter().map(only_wide).collect()),
        _ => Value::None,
    }
}

/// The parts of the gradients of all floats, where there is one.
fn matched(value: &Value<Tensor>, grad: &Value<Tensor>, into: &mut Vec<Option<f64>>) {
    match (value, grad) {
        (Value::List(values), Value::List(grads)) => {
            values.iter().zip(grads).for_each(|(value, grad)| matched(value, grad, into));
        }
        (_, Value::Tensor(_)) => {
            let mut found = Vec::new();
            parts(grad, &mut found);
            into.extend(found.into_iter().map(Some));
        }
        (_, _) => {
            let mut own = Vec::new();
            parts(value, &mut own);
            into.extend(own.iter().map(|_| None));
        }
    }
}

/// Operators whose results change by something else than their gradients, each with its reason.
const APART: &[(&str, &str)] = &[
    ("aten._embedding_bag_forward_only.default", CONVENTION),
    ("aten.embedding.default", CONVENTION),
    ("aten.max_unpool2d.default", "of two elements that go to one place both get the gradient"),
    ("aten.max_unpool3d.default", "of two elements that go to one place both get the gradient"),
];

const CONVENTION: &str = "rows get no gradient as padding, or one that is scaled by how often they are read";

#[test]
fn gradients_are_what_results_change_by() {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/opcases");
    let dir = std::env::var("TRACEFX_OPCASES").map_or(fixtures, PathBuf::from);
    let only = std::env::var("TRACEFX_ONLY").ok();
    let (mut n_agree, mut n_kinks, mut n_skipped, mut failures) = (0, 0, 0, Vec::new());
    let mut met = BTreeSet::new();
    let mut files: Vec<PathBuf> = fs::read_dir(&dir).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|it| it.extension().is_some_and(|it| it == "jsonl")) {
        let data = fs::read(file.with_extension("safetensors")).unwrap_or_default();
        let tensors = SafeTensors::deserialize(&data).ok();
        for (line, text) in fs::read_to_string(file).unwrap().lines().enumerate() {
            let case: Json = serde_json::from_str(text).unwrap();
            let name = case["op"].as_str().unwrap();
            let op = registry().require(name).unwrap();
            let is_chosen = only.as_ref().is_none_or(|only| name.contains(only.as_str()));
            let apart = APART.iter().find(|(it, _reason)| *it == name);
            let is_open = !op.def.tags.has(Tags::RANDOM) && !op.may_write();
            let has_gradient = matches!(op.def.vjp, Some(Vjp::Of(_) | Vjp::OfFirst(..)))
                && !matches!(op.def.infer, Infer::InPlaceOf(_));
            if !is_chosen || !is_open || !has_gradient || case.get("error").is_some_and(|it| !it.is_null()) {
                continue;
            }
            let read =
                |it: &Json| wide(parse_value(it, tensors.as_ref(), false).unwrap_or_else(|| panic!("odd value {it}")));
            let list: Vec<_> = case["args"].as_array().unwrap().iter().map(read).collect();
            let named = case["kwargs"].as_object().unwrap().iter();
            let named: Vec<_> = named.map(|(key, it)| (Str::from(key.as_str()), read(it))).collect();
            let args = tracefx_ops::bind(op, &list, &named).unwrap();
            match check(op, &args) {
                Ok(Outcome::Agrees) => n_agree += 1,
                Ok(Outcome::Kink) => n_kinks += 1,
                Ok(Outcome::Skipped) => n_skipped += 1,
                Ok(Outcome::Differs(_)) if apart.is_some() => {
                    met.insert(name.to_string());
                }
                Ok(Outcome::Differs(what)) => failures.push(format!("{name} in line {}: {what}", line + 1)),
                Err(problem) => failures.push(format!("{name} in line {}: {problem}", line + 1)),
            }
        }
    }
    eprintln!("{n_agree} agree, {} differ, {n_kinks} are at kinks, {n_skipped} have no finite floats", failures.len());
    assert!(failures.is_empty(), "{} gradients differ:\n{}", failures.len(), failures.join("\n"));
    if only.is_none() && std::env::var_os("TRACEFX_OPCASES").is_none() {
        let apart: BTreeSet<String> = APART.iter().map(|(op, _reason)| op.to_string()).collect();
        assert_eq!(
            met, apart,
            "operators whose results change by something else are others than those that are listed"
        );
        assert!(n_agree >= 2_633, "{n_agree} agree, {n_skipped} have no finite floats");
    }
    assert!(n_agree > 0 && n_kinks * 10 < n_agree, "{n_agree} calls agree and {n_kinks} are at kinks");
}
