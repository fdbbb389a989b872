//! The operator cases that PyTorch recorded, called again under autocast: the dtypes that PyTorch gives
//! (`tests/fixtures/autocast/results.json`) are those that a run gives, and those that are told without data.

#[path = "recorded/mod.rs"]
#[allow(dead_code, reason = "other tests compare numbers, too")]
mod recorded;

use recorded::parse_value;
use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use tracefx_core::{DType, Result, Tensor};
use tracefx_exec::Executor;
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::{Propagation, Symbols, Value, registry};

/// A call, and the dtypes that PyTorch gives, one for each value.
struct Case {
    name: String,
    op: String,
    args: Vec<Value<Tensor>>,
    kwargs: Vec<(Str, Value<Tensor>)>,
    wanted: Vec<Option<DType>>,
}

/// The operators that give other dtypes, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("aten.combinations.default", "the parts of float16 are stacked under autocast to bfloat16"),
    ("aten.linalg_pinv.atol_rtol_tensor", "of no elements, PyTorch gives a product of empty matrices"),
];

#[test]
fn a_run_under_autocast_gives_pytorchs_dtypes() {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    check(4000, |case| {
        let called = executor.call_under_autocast(DType::BFloat16, &case.op, &case.args, case.kwargs.clone())?;
        Ok(dtypes(&called.results, &|it: &Tensor| it.dtype()))
    });
}

#[test]
fn what_is_known_under_autocast_has_pytorchs_dtypes() {
    check(4000, |case| {
        let known =
            |value: &Value<Tensor>| value.try_map(&mut |it| Ok::<_, tracefx_core::Diagnostic>(TensorMeta::of(it)));
        let args: Vec<Value<TensorMeta>> = case.args.iter().map(known).collect::<Result<_>>()?;
        let kwargs = case.kwargs.iter().map(|(key, it)| Ok((key.clone(), known(it)?)));
        let symbols = Symbols::default();
        let shapes = Propagation::new(registry(), &symbols);
        let bound = shapes.bind(&case.op, &args, &kwargs.collect::<Result<Vec<_>>>()?)?;
        let results = tracefx_exec::infer(&bound, shapes, Some(DType::BFloat16))?;
        Ok(dtypes(&results, &|it: &TensorMeta| it.dtype))
    });
}

/// Compares the dtypes of all cases; those that are refused are left out, so that many should be compared.
#[track_caller]
fn check(at_least: usize, gives: impl Fn(&Case) -> Result<Vec<Option<DType>>>) {
    let (mut n_agreed, mut n_refused, mut failures) = (0, 0, Vec::new());
    for case in cases() {
        if DIFFERENT.iter().any(|(op, _)| *op == case.op) {
            continue;
        }
        match gives(&case) {
            Ok(got) if got == case.wanted => n_agreed += 1,
            Ok(got) => failures.push(format!("{} {}: {got:?} instead of {:?}", case.op, case.name, case.wanted)),
            Err(_) => n_refused += 1,
        }
    }
    assert!(failures.is_empty(), "{} of {n_agreed} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(n_agreed >= at_least, "{n_agreed} agree, {n_refused} are refused");
}

fn cases() -> Vec<Case> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let results: Json = serde_json::from_str(&read(&fixtures.join("autocast/results.json"))).unwrap();
    let mut cases = Vec::new();
    for (name, dtypes) in results.as_object().unwrap() {
        let folders = ["opcases", "opcalls"].map(|it| fixtures.join(it).join(format!("{name}.jsonl")));
        let file: &PathBuf = folders.iter().find(|it| it.exists()).unwrap();
        let data = std::fs::read(file.with_extension("safetensors")).unwrap();
        let tensors = SafeTensors::deserialize(&data).unwrap();
        for (at, line) in read(file).lines().enumerate() {
            let json: Json = serde_json::from_str(line).unwrap();
            let Some(wanted) = dtypes[at].as_array() else { continue };
            let op = json["op"].as_str().unwrap();
            let value = |it: &Json| parse_value(it, Some(&tensors), false);
            let args: Option<Vec<_>> = json["args"].as_array().unwrap().iter().map(value).collect();
            let kwargs = json["kwargs"].as_object().unwrap().iter();
            let kwargs: Option<Vec<_>> = kwargs.map(|(key, it)| Some((Str::from(key.as_str()), value(it)?))).collect();
            let (Some(args), Some(kwargs), Some(_)) = (args, kwargs, registry().get(op)) else { continue };
            let wanted = wanted.iter().map(|it| DType::from_name(it.as_str()?)).collect();
            cases.push(Case { name: format!("{name}:{}", at + 1), op: op.to_string(), args, kwargs, wanted });
        }
    }
    cases
}

fn dtypes<T>(values: &[Value<T>], of: &impl Fn(&T) -> DType) -> Vec<Option<DType>> {
    let of_one = |value: &Value<T>| match value {
        Value::Tensor(it) => vec![Some(of(it))],
        Value::List(items) => dtypes(items, of),
        _ => vec![None],
    };
    values.iter().flat_map(of_one).collect()
}
