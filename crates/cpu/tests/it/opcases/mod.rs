//! Runs the operator cases that PyTorch recorded (`tests/fixtures/opcases` from its own tests, `tests/fixtures/opcalls`
//! from direct calls, `tests/fixtures/dtypes` by dtype) on the CPU kernels, and again on re-strided copies of the inputs.
//! `TRACEFX_OPCASES=DIR` runs another directory of the same format instead, `TRACEFX_ONLY=aten.add` only the operators
//! with these letters in their names. As programs, all dtypes are run by
//! `TRACEFX_OPCASES=tests/fixtures/dtypes cargo test -p tracefx-cpu --test it plans_of_single_calls`.

#![allow(clippy::print_stderr, reason = "a test tells how much of the data it could run")]

mod counts;
mod exceptions;
mod planned;
use crate::recorded::{is_close, parse_tensor, parse_value, scalars};
use counts::may_only_rise;
use exceptions::{differing_dtypes, has_free_signs, has_free_strides, is_by_strides, is_made_otherwise, listed_as};
use planned::{Call, Planned};
use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::OnceLock;
use tracefx_core::{Code, DType, Scalar, Tensor};
use tracefx_exec::{Executor, Kernels};
use tracefx_ir::Str;
use tracefx_ops::{Op, Tol, Value, registry};

#[test]
fn recorded_operator_cases_agree() {
    let seen = check(&recorded(), |_, _| Some(Way::Called(Cow::Borrowed(tracefx_cpu::kernels()))));
    may_only_rise("kernels", seen.n_passed);
}

/// Calls are programs, too: by strict plans the interpreter's bits, by fast ones PyTorch's numbers.
#[test]
fn plans_of_single_calls_agree() {
    for planned in Planned::all() {
        check(&recorded(), |op, _| {
            // What is between other operators lies in memory as these give it.
            (!planned.is_surrounded || !is_by_strides(&op.name)).then_some(Way::Planned(planned))
        });
    }
}

/// An operator that has both a kernel and a decomposition computes the same either way. Half types are left out: a
/// decomposition rounds after each of its operators.
#[test]
fn decompositions_agree_where_a_kernel_is_left_out() {
    let seen = check(&recorded(), |op, case| {
        let kernels = tracefx_cpu::kernels();
        let has_both = op.def.decompose.is_some() && kernels.get(&op.name).is_some();
        (has_both && !case.contains("float16") && !is_made_otherwise(&op.name, case))
            .then(|| Way::Called(Cow::Owned(kernels.without(&op.name))))
    });
    may_only_rise("decompositions instead of kernels", seen.n_passed);
}

/// With the kernels alone of operators that PyTorch's table of decompositions leaves, all that it decomposes computes the
/// same: what a decomposition calls ends there.
#[test]
fn decompositions_end_in_operators_that_are_left() {
    static LEFT: OnceLock<Kernels> = OnceLock::new();
    let kernels = LEFT.get_or_init(|| {
        let all = tracefx_cpu::kernels();
        let is_decomposed = |name: &&str| registry().get(name).is_some_and(Op::is_decomposed);
        all.names().iter().filter(|it| is_decomposed(it)).fold(all.clone(), |kernels, name| kernels.without(name))
    });
    let seen = check(&recorded(), |op, case| {
        let is_compared = op.is_decomposed() && !case.contains("float16") && !is_made_otherwise(&op.name, case);
        is_compared.then_some(Way::Called(Cow::Borrowed(kernels)))
    });
    may_only_rise("decompositions", seen.n_passed);
}

/// What the engine does with each dtype is at least what the table says that `docs/ops.md` is made of.
/// `TRACEFX_RECORD=1` writes the table, after which `cargo xtask codegen` prints the document again. An operator that is
/// new joins by that.
#[test]
fn dtypes_are_supported_as_the_table_says() {
    let file = fixtures().join("dtypes/support.txt");
    let is_recording = std::env::var_os("TRACEFX_RECORD").is_some();
    let known = fs::read_to_string(&file).unwrap();
    let is_new = |op: &Op| known.lines().any(|it| it.ends_with(ABSENT) && it.starts_with(&format!("{} ", op.name)));
    let seen = check(&[fixtures().join("dtypes")], |op, _| {
        (is_recording || !is_new(op)).then_some(Way::Called(Cow::Borrowed(tracefx_cpu::kernels())))
    });
    all_differ(&seen, differing_dtypes());
    let letter = |op: &str, dtype: &str| seen.by_op.get(op).and_then(|it| it.get(dtype)).map_or('.', |it| it.letter);
    if is_recording {
        let mut table = String::new();
        for (op, dtypes) in &seen.by_op {
            let letters: String = DTYPES.iter().map(|it| letter(op, it)).collect();
            let reason = dtypes.values().find_map(|it| it.reason.as_deref()).map(|it| format!(" {it}"));
            table += &format!("{op} {letters}{}\n", reason.unwrap_or_default());
        }
        fs::write(&file, &table).unwrap();
        return;
    }
    let only = std::env::var("TRACEFX_ONLY").unwrap_or_default();
    for line in known.lines().filter(|it| it.contains(&only)) {
        let (op, rest) = line.split_once(' ').unwrap();
        for (known, dtype) in rest.chars().zip(DTYPES) {
            assert!(known != '+' || letter(op, dtype) == '+', "{op} no longer runs with {dtype}");
        }
    }
}

/// A case of each row of the exceptions differs.
fn all_differ(seen: &Seen, rows: impl Iterator<Item = String>) {
    if ["TRACEFX_ONLY", "TRACEFX_OPCASES"].iter().any(|it| std::env::var_os(it).is_some()) {
        return;
    }
    let stale: Vec<String> = rows.filter(|it| !seen.different.contains(it)).collect();
    assert!(stale.is_empty(), "{} exceptions agree with PyTorch: {stale:?}", stale.len());
}

/// What the table says of operators that PyTorch has and the registry lacks.
const ABSENT: &str = "it is not in the registry";

/// The dtypes in the order of the letters of the table.
const DTYPES: [&str; 12] = [
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
    "complex64",
    "complex128",
];

/// What became of the cases of all operators.
struct Seen {
    n_passed: usize,
    /// The rows of the lists of exceptions of which a case differs.
    different: BTreeSet<String>,
    /// By operator and file.
    by_op: BTreeMap<String, BTreeMap<String, OfFile>>,
}

/// What became of the cases of an operator in one file.
struct OfFile {
    /// `+` they run, `-` PyTorch refuses them, `!` they are not implemented here.
    letter: char,
    /// Why they are not implemented.
    reason: Option<String>,
}

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

fn recorded() -> Vec<PathBuf> {
    match std::env::var("TRACEFX_OPCASES") {
        Ok(dir) => vec![PathBuf::from(dir)],
        Err(_) => vec![fixtures().join("opcases"), fixtures().join("opcalls")],
    }
}

/// How a case is run.
enum Way {
    /// By calling the operator, with these kernels.
    Called(Cow<'static, Kernels>),
    /// By a plan of the call.
    Planned(Planned),
}

/// Runs the cases for which there is a way, and tells what became of them.
fn check(dirs: &[PathBuf], way_for: impl Fn(&Op, &str) -> Option<Way>) -> Seen {
    let mut files: Vec<PathBuf> = dirs
        .iter()
        .flat_map(|dir| fs::read_dir(dir).expect("the fixtures are there"))
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    files.sort();
    let only = std::env::var("TRACEFX_ONLY").ok();
    let (mut n_passed, mut skipped, mut failures) = (0, BTreeMap::<String, usize>::new(), Vec::new());
    let mut by_op = BTreeMap::<String, BTreeMap<String, OfFile>>::new();
    let mut different = BTreeSet::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().to_string();
        let data = fs::read(file.with_extension("safetensors")).unwrap_or_default();
        let tensors = SafeTensors::deserialize(&data).ok();
        for (line, text) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let case: Json = serde_json::from_str(text).unwrap();
            let op_name = case["op"].as_str().unwrap();
            if only.as_ref().is_some_and(|only| !op_name.contains(only.as_str())) {
                continue;
            }
            let letter = if case.get("error").is_some_and(|it| !it.is_null()) { '-' } else { '+' };
            let seen = by_op.entry(op_name.to_string()).or_default().entry(name.clone());
            let seen = seen.or_insert(OfFile { letter, reason: None });
            let Some(op) = registry().get(op_name) else {
                *skipped.entry(format!("{op_name}: {ABSENT}")).or_default() += 1;
                *seen = OfFile { letter: if seen.letter == '-' { '-' } else { '!' }, reason: Some(ABSENT.to_string()) };
                continue;
            };
            let Some(way) = way_for(op, text) else { continue };
            // Numbers are drawn in the order of memory.
            let keeps_strides = case.get("seed").is_some() || is_by_strides(op_name);
            for restride in [false, true].into_iter().take(if keeps_strides { 1 } else { 2 }) {
                let run = || run_case(&case, &name, &way, tensors.as_ref(), restride);
                let outcome = catch_unwind(AssertUnwindSafe(run));
                if let Some(row) = listed_as(op_name, case["args"][0]["tensor"].as_str(), &name)
                    && let Ok(Ok(()) | Err(Refusal::Fail(_))) = &outcome
                {
                    // A row may hold for some of the cases alone.
                    n_passed += 1;
                    if let Ok(Err(_)) = outcome {
                        different.insert(row);
                    }
                    continue;
                }
                match outcome.unwrap_or_else(|_| Err(Refusal::Fail("it panicked".to_string()))) {
                    Ok(()) => n_passed += 1,
                    Err(Refusal::Skip(what)) => {
                        *skipped.entry(format!("{op_name}: {what}")).or_default() += 1;
                        if letter == '+' {
                            *seen = OfFile { letter: '!', reason: Some(what) };
                        }
                    }
                    Err(Refusal::Fail(what)) => {
                        let restrided = if restride { " re-strided" } else { "" };
                        failures.push(format!("{name}:{}{restrided}: {op_name}: {what}", line + 1));
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
    Seen { n_passed, by_op, different }
}

/// What is compared of the elements, and how near they must be.
#[derive(Clone, Copy)]
struct How {
    compared: Compared,
    has_strides: bool,
    tolerance: Tol,
}

#[derive(Clone, Copy)]
enum Compared {
    Values,
    Magnitudes,
    Shapes,
}

enum Refusal {
    Skip(String),
    Fail(String),
}

fn run_case(
    case: &Json,
    file: &str,
    way: &Way,
    tensors: Option<&SafeTensors<'_>>,
    restride: bool,
) -> Result<(), Refusal> {
    let op = case["op"].as_str().unwrap();
    let read =
        |it: &Json| parse_value(it, tensors, restride).ok_or_else(|| Refusal::Skip(format!("odd argument {it}")));
    let read_call = || -> Result<Call, Refusal> {
        let args = case["args"].as_array().unwrap().iter().map(read).collect::<Result<_, _>>()?;
        let kwargs = case["kwargs"].as_object().unwrap().iter();
        let kwargs = kwargs.map(|(key, it)| Ok((Str::from(key.as_str()), read(it)?))).collect::<Result<_, _>>()?;
        Ok((args, kwargs))
    };
    let (args, kwargs) = read_call()?;
    let seed = case.get("seed").and_then(Json::as_u64);
    if let Some(seed) = seed {
        tracefx_core::with_default_generator(|it| it.manual_seed(seed));
    }
    let state = || tracefx_core::with_default_generator(|it| it.state());
    let state_before = state();
    let got = match way {
        Way::Called(kernels) => Executor::new(registry(), kernels).call(op, &args, &kwargs),
        Way::Planned(planned) => {
            let again = || read_call().unwrap_or_else(|_| unreachable!("what was read can be read again"));
            let given = planned.run(registry().get(op).unwrap(), &again);
            given.map_err(|it| Refusal::Fail(format!("{planned:?}: {it}")))?
        }
    };
    // Numbers that were drawn without a seed are no one else's: their dtypes and sizes alone are compared.
    let compared = match (seed, has_free_signs(op)) {
        (None, _) if state() != state_before => Compared::Shapes,
        (_, true) => Compared::Magnitudes,
        (_, false) => Compared::Values,
    };
    match (got, case.get("error").filter(|it| !it.is_null())) {
        (Err(problem), _) if problem.code() == Code::NotImplemented => {
            Err(Refusal::Skip(problem.message().to_string()))
        }
        (Err(problem), Some(_)) if problem.code() != Code::Internal => Ok(()),
        (Ok(_), Some(error)) => Err(Refusal::Fail(format!("PyTorch refuses this: {error}"))),
        (Err(problem), _) => Err(Refusal::Fail(problem.to_string())),
        (Ok(results), None) => {
            let got = if results.len() == 1 { results[0].clone() } else { Value::List(results) };
            let tolerance = registry().get(op).unwrap().def.tolerance;
            // Those by dtype were recorded from copies of their inputs, which lay without gaps.
            let is_between = matches!(way, Way::Planned(it) if it.is_surrounded);
            let has_strides = !restride && !is_between && !has_free_strides(op) && !DTYPES.contains(&file);
            let how = How { compared, has_strides, tolerance };
            compare(&got, &case["result"], tensors, how, "result").map_err(Refusal::Fail)
        }
    }
}

fn compare(
    got: &Value<Tensor>,
    want: &Json,
    tensors: Option<&SafeTensors<'_>>,
    how: How,
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
            .try_for_each(|(i, (got, want))| compare(got, want, tensors, how, &format!("{at}[{i}]")));
    }
    if want.get("tensor").is_some() {
        let may_be_sparse = want.get("stride").is_none();
        let want = parse_tensor(want, tensors.ok_or("no data")?).ok_or("odd tensor")?;
        let Value::Tensor(got) = got else { return Err(format!("{at}: a {} instead of a tensor", got.kind_name())) };
        if how.has_strides && !have_same_strides(got, &want, may_be_sparse) {
            return Err(format!("{at}: strides {:?} instead of {:?}", got.strides(), want.strides()));
        }
        return compare_tensors(got, &want, how, at);
    }
    let want = parse_value(want, tensors, false).ok_or_else(|| format!("{at}: odd result {want}"))?;
    if let (Value::DType(got), Value::DType(want)) = (got, &want) {
        return if got == want { Ok(()) } else { Err(format!("{at}: {got} instead of {want}")) };
    }
    match (got.as_scalar(), want.as_scalar()) {
        (Some(got), Some(want))
            if got.kind() == want.kind() && is_close(got, want, how.tolerance.for_dtype(DType::Float64)) =>
        {
            Ok(())
        }
        (None, None) if got.kind_name() == want.kind_name() => Ok(()),
        _ => Err(format!("{at}: {got:?} instead of {want:?}")),
    }
}

/// Whether the strides agree, where there is more than one element to step over. What is recorded without strides was
/// contiguous, or `may_be_sparse`: it had too many gaps to be recorded with them.
fn have_same_strides(got: &Tensor, want: &Tensor, may_be_sparse: bool) -> bool {
    let span: usize = got.sizes().iter().zip(got.strides()).map(|(size, stride)| (size.max(&1) - 1) * stride).sum();
    if got.numel() == 0 || (may_be_sparse && span + 1 > 4 * got.numel()) {
        return true;
    }
    let pairs = got.strides().iter().zip(want.strides());
    got.sizes().iter().zip(pairs).all(|(size, (got, want))| *size == 1 || got == want)
}

fn compare_tensors(got: &Tensor, want: &Tensor, how: How, at: &str) -> Result<(), String> {
    if (got.dtype(), got.sizes()) != (want.dtype(), want.sizes()) {
        return Err(format!("{at}: {got:?} instead of {want:?}"));
    }
    let bounds = how.tolerance.for_dtype(want.dtype());
    let (got, want) = (scalars(got).map_err(|it| it.to_string())?, scalars(want).map_err(|it| it.to_string())?);
    for (i, (&got, &want)) in got.iter().zip(&want).enumerate() {
        let is_same = match how.compared {
            Compared::Values => is_close(got, want, bounds),
            Compared::Magnitudes => is_close(magnitude(got), magnitude(want), bounds),
            Compared::Shapes => true,
        };
        if !is_same {
            return Err(format!("{at}: element {i} is {got} instead of {want}"));
        }
    }
    Ok(())
}

fn magnitude(it: Scalar) -> Scalar {
    let it = it.to_complex();
    Scalar::Float(it.re.hypot(it.im))
}

#[test]
fn every_kernel_is_of_a_registered_operator() {
    let unknown: Vec<_> =
        tracefx_cpu::kernels().names().into_iter().filter(|it| registry().get(it).is_none()).collect();
    assert!(unknown.is_empty(), "kernels of unknown operators: {unknown:?}");
}
