//! Gradients of operators agree with those of PyTorch's autograd (`tests/fixtures/gradients`, recorded by
//! `tests/oracle/gen_gradients.py`). `TRACEFX_GRADIENTS=DIR` runs another directory of the same format instead, and
//! `TRACEFX_ONLY=name` the operators whose names contain this.

#![allow(clippy::print_stderr, reason = "a test tells how much of the data it could run")]

mod recorded;

use recorded::{is_close, parse_value, scalars};
use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tracefx_core::{Code, DType, Scalar, Tensor};
use tracefx_exec::Executor;
use tracefx_ir::Str;
use tracefx_ops::{Tol, Value, registry};

/// Operators whose gradients are others than PyTorch's, each with its reason.
const DIFFERENT: &[(&str, &str)] = &[
    ("aten.as_strided_scatter.default", "PyTorch gives `self` the gradient of the elements that were overwritten"),
    ("aten.cholesky_inverse.default", UNREAD),
    ("aten.cholesky_solve.default", UNREAD),
];

const UNREAD: &str = "PyTorch gives a gradient to the triangle that is not read as well";

fn directory() -> PathBuf {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/gradients");
    std::env::var("TRACEFX_GRADIENTS").map_or(fixtures, PathBuf::from)
}

enum Outcome {
    Agrees,
    Missing(String),
    Differs(String),
}

#[test]
fn gradients_are_those_of_pytorch() {
    let dir = directory();
    let data = fs::read(dir.join("cases.safetensors")).expect("the recorded gradients are there");
    let tensors = SafeTensors::deserialize(&data).expect("they are safetensors");
    let only = std::env::var("TRACEFX_ONLY").ok();
    let (mut n_agree, mut missing, mut failures) = (0, BTreeMap::<String, usize>::new(), Vec::new());
    for (line, text) in fs::read_to_string(dir.join("cases.jsonl")).unwrap().lines().enumerate() {
        let case: Json = serde_json::from_str(text).unwrap();
        let op = case["op"].as_str().unwrap();
        if only.as_ref().is_some_and(|only| !op.contains(only.as_str())) {
            continue;
        }
        match run(&case, &tensors) {
            Outcome::Agrees => n_agree += 1,
            Outcome::Missing(what) => *missing.entry(what).or_default() += 1,
            Outcome::Differs(what) => failures.push(format!("{op} in line {}: {what}", line + 1)),
        }
    }
    eprintln!("{n_agree} agree, {} differ, {} are missing", failures.len(), missing.values().sum::<usize>());
    for (what, n) in &missing {
        eprintln!("  missing {n}: {what}");
    }
    assert!(failures.is_empty(), "{} gradients differ:\n{}", failures.len(), failures.join("\n"));
}

fn run(case: &Json, tensors: &SafeTensors<'_>) -> Outcome {
    let name = case["op"].as_str().unwrap();
    if let Some((_, _reason)) = DIFFERENT.iter().find(|(it, _)| *it == name) {
        return Outcome::Agrees;
    }
    let Some(op) = registry().get(name) else { return Outcome::Missing(format!("{name} is not in the registry")) };
    let read = |it: &Json| parse_value(it, Some(tensors), false).unwrap_or_else(|| panic!("odd value {it}"));
    let list = |it: &Json| it.as_array().unwrap().iter().map(read).collect::<Vec<_>>();
    let kwargs: Vec<(Str, _)> =
        case["kwargs"].as_object().unwrap().iter().map(|(key, it)| (Str::from(key.as_str()), read(it))).collect();
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let got = executor.vjp(name, &list(&case["args"]), &kwargs).and_then(|mut it| it.pull_back(&list(&case["grads"])));
    let got = match got {
        Ok(got) => got,
        Err(problem) if problem.code() == Code::NotImplemented => {
            return match problem.message().starts_with("the gradient of") {
                true => Outcome::Differs(problem.to_string()),
                false => Outcome::Missing(problem.to_string()),
            };
        }
        Err(problem) => return Outcome::Differs(problem.to_string()),
    };
    // What moves data is exact forwards; backwards it adds.
    let tolerance = if op.def.tolerance == Tol::Exact { Tol::Default } else { op.def.tolerance };
    let differs = got.iter().zip(list(&case["result"])).zip(&op.schema.args).find_map(|((got, want), spec)| {
        compare(got, &want, tolerance).err().map(|what| format!("{}: {what}", spec.name))
    });
    differs.map_or(Outcome::Agrees, Outcome::Differs)
}

fn compare(got: &Value<Tensor>, want: &Value<Tensor>, tolerance: Tol) -> Result<(), String> {
    let is_zero = |it: &Tensor| scalars(it).is_ok_and(|it| it.iter().all(|it| it.to_complex() == ZERO.to_complex()));
    match (got, want) {
        (Value::Tensor(got), Value::Tensor(want)) => {
            if (got.dtype(), got.sizes()) != (want.dtype(), want.sizes()) {
                return Err(format!("{got:?} instead of {want:?}"));
            }
            let bounds = tolerance.for_dtype(want.dtype());
            let (got, want) = (scalars(got).unwrap(), scalars(want).unwrap());
            match got.iter().zip(&want).position(|(got, want)| !is_close(*got, *want, bounds)) {
                Some(at) => Err(format!("{got:?} instead of {want:?}, at {at}")),
                None => Ok(()),
            }
        }
        (Value::List(got), Value::List(want)) => {
            got.iter().zip(want).try_for_each(|(got, want)| compare(got, want, tolerance))
        }
        // That no gradient flows and that zeros do is the same.
        (Value::Tensor(it), Value::None) | (Value::None, Value::Tensor(it)) if is_zero(it) => Ok(()),
        (Value::None, Value::None) => Ok(()),
        (Value::List(items), Value::None) if items.iter().all(|it| matches!(it, Value::None)) => Ok(()),
        (got, want) => Err(format!("a {} instead of a {}", got.kind_name(), want.kind_name())),
    }
}

const ZERO: Scalar = Scalar::Float(0.0);

/// Every operator that PyTorch differentiates has a gradient, or says that none flows, or is made of others that do.
#[test]
fn every_differentiable_operator_has_a_gradient() {
    let text = fs::read_to_string(directory().join("differentiable.json")).unwrap();
    let differentiable: BTreeMap<String, bool> = serde_json::from_str(&text).unwrap();
    let is_missing = |name: &str| {
        let op = registry().get(name);
        op.is_some_and(|it| it.def.vjp.is_none() && it.def.decompose.is_none())
    };
    let found: Vec<&String> =
        differentiable.iter().filter(|(name, is)| **is && is_missing(name)).map(|it| it.0).collect();
    assert!(found.is_empty(), "operators without a gradient: {found:?}");
}

#[test]
fn a_missing_gradient_is_refused_by_name() {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let x = Value::Tensor(Tensor::full(DType::Float64, &[2], ZERO).unwrap());
    let mut unique = executor.vjp("aten._unique.default", &[x], &[]).unwrap();
    let problem = unique.pull_back(&[Value::Tensor(Tensor::full(DType::Float64, &[1], ZERO).unwrap()), Value::None]);
    let problem = problem.unwrap_err();
    assert_eq!(problem.code(), Code::NotImplemented);
    assert!(problem.to_string().contains("the gradient of aten._unique.default is not implemented"), "{problem}");
}

#[test]
fn the_gradient_of_glu_broadcasts() {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let gradient = |sizes: &[usize]| {
        let grad = Tensor::from_slice(&vec![2.0f32; sizes.iter().product()], sizes).unwrap();
        let this = Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], &[2, 4]).unwrap();
        executor.call("aten.glu_backward.default", &[Value::Tensor(grad), Value::Tensor(this), Value::int(-1)], &[])
    };
    let told = |sizes: &[usize]| match gradient(sizes).unwrap().as_slice() {
        [Value::Tensor(it)] => (it.sizes().to_vec(), scalars(it)),
        _ => panic!("a tensor"),
    };
    for sizes in [&[][..], &[1], &[2], &[1, 2], &[2, 1]] {
        assert_eq!(told(sizes), told(&[2, 2]), "{sizes:?}");
    }
    for sizes in [&[3, 2, 2][..], &[1, 2, 2], &[3]] {
        assert_eq!(gradient(sizes).unwrap_err().code(), Code::ShapeMismatch, "{sizes:?}");
    }
}
