//! The operator cases that PyTorch recorded, called again under autocast: the dtypes that PyTorch gives
//! (`tests/fixtures/autocast/results.json`) are those that a run gives, and those that are told without data.

use crate::recorded::parse_value;
use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
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

/// Calls whose dtypes are not told without data, why, and how many.
const REFUSED: &[(&str, &str, usize)] = &[
    ("aten.gru.data", OF_LENGTHS, 4),
    ("aten.linalg_lstsq.default", OF_DATA, 2),
    ("aten.lstm.data", OF_LENGTHS, 5),
    ("aten.narrow.Tensor", OF_DATA, 4),
    ("aten.rnn_relu.data", OF_LENGTHS, 1),
    ("aten.rnn_tanh.data", OF_LENGTHS, 4),
    ("aten.tensor_split.tensor_indices_or_sections", OF_DATA, 7),
];

const OF_DATA: &str = "the results depend on the data of the arguments";
const OF_LENGTHS: &str = "a recurrent layer over packed sequences whose lengths are not known";

#[test]
fn a_run_under_autocast_gives_pytorchs_dtypes() {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    check(5_681, &[], |case| {
        let called = executor.call_under_autocast(DType::BFloat16, &case.op, &case.args, case.kwargs.clone())?;
        Ok(dtypes(&called.results, &|it: &Tensor| it.dtype()))
    });
}

#[test]
fn what_is_known_under_autocast_has_pytorchs_dtypes() {
    check(5_654, REFUSED, |case| {
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

/// Compares the dtypes of all cases. Those that are refused are as many as each row of the list says, and so are the operators
/// that differ, of which each does.
#[track_caller]
fn check(at_least: usize, refused: &[(&str, &str, usize)], gives: impl Fn(&Case) -> Result<Vec<Option<DType>>>) {
    let (mut n_agreed, mut failures) = (0, Vec::new());
    let (mut n_refused, mut different) = (BTreeMap::<(&str, &str), usize>::new(), BTreeSet::new());
    for case in cases() {
        let is_different = DIFFERENT.iter().find(|(op, _)| *op == case.op);
        match (gives(&case), is_different) {
            (Ok(got), _) if got == case.wanted => n_agreed += 1,
            (Ok(_), Some((op, _reason))) => {
                different.insert(*op);
            }
            (Ok(got), None) => {
                failures.push(format!("{} {}: {got:?} instead of {:?}", case.op, case.name, case.wanted));
            }
            (Err(problem), _) => {
                let words = problem.to_string();
                match refused.iter().find(|(op, part, _)| *op == case.op && words.contains(part)) {
                    Some((op, part, _)) => *n_refused.entry((op, part)).or_default() += 1,
                    None => failures.push(format!("{} {}: {problem}", case.op, case.name)),
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} of {n_agreed} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(n_agreed >= at_least, "{n_agreed} agree");
    assert_eq!(n_refused, refused.iter().map(|(op, part, n)| ((*op, *part), *n)).collect());
    assert_eq!(different, DIFFERENT.iter().map(|(op, _)| *op).collect(), "operators that differ are others");
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
            let value = |it: &Json| parse_value(it, Some(&tensors), false).unwrap_or_else(|| panic!("odd value {it}"));
            let args = json["args"].as_array().unwrap().iter().map(value).collect();
            let kwargs = json["kwargs"].as_object().unwrap().iter();
            let kwargs = kwargs.map(|(key, it)| (Str::from(key.as_str()), value(it))).collect();
            registry().require(op).unwrap();
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
