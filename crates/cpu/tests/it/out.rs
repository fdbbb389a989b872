//! Calls with `out=` of every dtype that PyTorch recorded (`tests/fixtures/out`): the dtype in which the numbers are computed,
//! and what is refused.

use crate::recorded::{is_close, parse_tensor, parse_value, scalars};
use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use tracefx_core::{DType, Tensor};
use tracefx_exec::Executor;
use tracefx_ir::Str;
use tracefx_ops::{Tol, Value, registry};

/// Operators that take what PyTorch refuses, why, and how many calls.
const TAKEN: &[(&str, &str, usize)] = &[
    ("aten.nansum", "floats are summed as integers where `dtype` asks for them, and so where `out` does", 12),
    ("aten.nanmean", "as `nansum`, which is a part of it", 2),
    ("aten.mean", "integers have a mean in the dtype of `out`, as they have in `dtype`", 5),
];

#[test]
fn out_is_computed_in_its_own_dtype() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/out");
    let data = std::fs::read(folder.join("out.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&data).unwrap();
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let (mut n_agreed, mut failures, mut met) = (0, Vec::new(), BTreeMap::<&str, usize>::new());
    for line in std::fs::read_to_string(folder.join("out.jsonl")).unwrap().lines() {
        let json: Json = serde_json::from_str(line).unwrap();
        let op = json["op"].as_str().unwrap();
        let value = |it: &Json| parse_value(it, Some(&tensors), false).unwrap();
        let args: Vec<_> = json["args"].as_array().unwrap().iter().map(value).collect();
        let kwargs = json["kwargs"].as_object().unwrap().iter();
        let kwargs = kwargs.map(|(key, it)| (Str::from(key.as_str()), value(it))).collect();
        let called = executor.call_python(op, &args, kwargs);
        let is_taken = called.is_ok() && json.get("result").is_none();
        if let Some((op, ..)) = TAKEN.iter().find(|(it, ..)| is_taken && *it == op) {
            *met.entry(op).or_default() += 1;
            continue;
        }
        let problem = match (called, json.get("result")) {
            (Ok(called), Some(wanted)) => difference(&called.results, &parse_tensor(wanted, &tensors).unwrap()),
            (Err(problem), Some(_)) => Some(format!("is refused: {problem}")),
            (Ok(called), None) => Some(format!("gives {:?} instead of refusing: {}", called.results, json["error"])),
            (Err(_), None) => None,
        };
        match problem {
            Some(problem) => failures.push(format!("{op}({}, {}): {problem}", json["args"], json["kwargs"])),
            None => n_agreed += 1,
        }
    }
    assert!(failures.is_empty(), "{} of {n_agreed} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(n_agreed > 600, "{n_agreed} agree");
    let listed = TAKEN.iter().map(|(op, _reason, n)| (*op, *n)).collect();
    assert_eq!(met, listed, "calls that PyTorch refuses are others than those that are listed");
}

fn difference(results: &[Value<Tensor>], wanted: &Tensor) -> Option<String> {
    let [Value::Tensor(got)] = results else { return Some(format!("gives {results:?}")) };
    if (got.dtype(), got.sizes()) != (wanted.dtype(), wanted.sizes()) {
        return Some(format!("gives {got:?} instead of {wanted:?}"));
    }
    let (numbers, expected) = (scalars(got).unwrap(), scalars(wanted).unwrap());
    let tolerance = Tol::Default.for_dtype(wanted.dtype());
    let is_same = numbers.iter().zip(&expected).all(|(a, b)| match wanted.dtype() {
        DType::Bool => a == b,
        _ => is_close(*a, *b, tolerance),
    });
    (!is_same).then(|| format!("gives {numbers:?} instead of {expected:?}"))
}
