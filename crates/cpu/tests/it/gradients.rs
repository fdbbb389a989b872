//! Gradients of operators agree with those of PyTorch's autograd (`tests/fixtures/gradients`, recorded by
//! `tests/oracle/gen_gradients.py`). `TRACEFX_GRADIENTS=DIR` runs another directory of the same format instead, and
//! `TRACEFX_ONLY=name` the operators whose names contain this.

#![allow(clippy::print_stderr, reason = "a test tells how much of the data it could run")]

use crate::recorded::{is_close, parse_value, scalars};
use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use tracefx_core::{Code, DType, Diagnostic, Scalar, Tensor};
use tracefx_exec::Executor;
use tracefx_ir::Str;
use tracefx_ops::{Op, Tol, Value, Vjp, registry};

/// Operators whose gradients are others than PyTorch's in some of the cases, each with how the numbers differ, and why.
const DIFFERENT: &[(&str, Differs, &str)] = &[
    ("aten._linalg_eigh.default", |_, _| true, SIGNS),
    (
        "aten._prelu_kernel_backward.default",
        |got, want| got.is_nan() || want == 0.0 || (got * want > 0.0 && got.abs() < want.abs()),
        AT_ENDS,
    ),
    (
        "aten.as_strided_scatter.default",
        |got, want| (got == 0.0) != (want == 0.0),
        "PyTorch gives `self` the gradient of the elements that were overwritten, and none to the others",
    ),
    ("aten.cholesky_inverse.default", |got, _| got == 0.0, UNREAD),
    ("aten.cholesky_solve.default", |got, _| got == 0.0, UNREAD),
    (
        "aten.embedding_dense_backward.default",
        |got, want| got * want > 0.0 && got.abs() < want.abs(),
        "PyTorch differentiates as if rows had not been divided by how often they are read",
    ),
    ("aten.linalg_eigh.default", |_, _| true, SIGNS),
    ("aten.smooth_l1_loss_backward.default", |got, want| got.is_nan() && want.is_finite(), OF_INFINITY),
];

const SIGNS: &str =
    "vectors may point either way, and the recorded gradients are for PyTorch's: finite differences compare these";
const AT_ENDS: &str =
    "at zero PyTorch takes another slope than its gradient does; and a known defect: an infinity gives NaN";
const UNREAD: &str = "PyTorch gives a gradient to the triangle that is not read as well";
const OF_INFINITY: &str =
    "a known defect: through a choice between formulas, an infinity of the one not taken gives NaN";

const DRAWN: &str = "its numbers are drawn";
const STATISTICS: &str =
    "PyTorch differentiates it where the running statistics are no leaves, which all floats of a case are";
const ALONE: &str = "PyTorch has no gradient of it by itself";
const ITSELF: &str = "the gradient is the incoming one, and no recorded call is of it";
const PARTLY: &str = "PyTorch has no gradient of the first of two tensors, which are both leaves of a case";
const OTHER_OVERLOAD: &str = "`aten._ctc_loss.default` is recorded, which has the same formula";
const SAMPLES: &str = "the samples have no gradient, and all floats of a case are leaves";
const TOLERANCES: &str = "the tolerances have no gradient, and all floats of a case are leaves";
const SAME_FORMULA: &str = "another overload is recorded, which has the same formula";

/// Operators without a gradient that PyTorch differentiates, and the operator whose gradient is not implemented: those of
/// backward operators are second derivatives.
const REFUSED: &[(&str, &str)] = &[
    ("aten.grid_sampler_2d_backward.default", "aten.grid_sampler_2d_backward.default"),
    ("aten.grid_sampler_3d_backward.default", "aten.grid_sampler_3d_backward.default"),
    ("aten.linalg_eigvals.default", "aten._linalg_eigvals.default"),
    ("aten.linalg_householder_product.default", "aten.linalg_householder_product.default"),
    ("aten.linalg_lstsq.default", "aten.linalg_lstsq.default"),
    ("aten.orgqr.default", "aten.linalg_householder_product.default"),
    ("aten.ormqr.default", "aten.ormqr.default"),
];

/// Operators with a gradient of their own that has no recorded case, and why.
const UNRECORDED: &[(&str, &str)] = &[
    ("aten._batch_norm_no_update.default", STATISTICS),
    ("aten._batch_norm_with_update.default", STATISTICS),
    ("aten._ctc_loss.Tensor", OTHER_OVERLOAD),
    ("aten._embedding_bag_forward_only.default", ALONE),
    ("aten._native_batch_norm_legit.default", STATISTICS),
    ("aten._native_batch_norm_legit_functional.default", STATISTICS),
    ("aten._native_batch_norm_legit_no_training.default", STATISTICS),
    ("aten.bernoulli.default", DRAWN),
    ("aten.bernoulli.p", DRAWN),
    ("aten.copy.default", ALONE),
    ("aten.cpu.default", ITSELF),
    ("aten.fractional_max_pool2d.default", SAMPLES),
    ("aten.fractional_max_pool3d.default", SAMPLES),
    ("aten.igamma.default", PARTLY),
    ("aten.igammac.default", PARTLY),
    ("aten.lift.default", ITSELF),
    ("aten.lift_fresh.default", ITSELF),
    ("aten.lift_fresh_copy.default", ITSELF),
    ("aten.linalg_pinv.atol_rtol_tensor", TOLERANCES),
    ("aten.linalg_pinv.rcond_tensor", TOLERANCES),
    ("aten.native_dropout.default", DRAWN),
    ("aten.poisson.default", DRAWN),
    ("aten.remainder.Scalar_Tensor", ALONE),
    ("aten.rrelu_with_noise_functional.default", DRAWN),
    ("aten.special_zeta.default", PARTLY),
    ("aten.special_zeta.other_scalar", PARTLY),
    ("aten.to.dtype_layout", SAME_FORMULA),
];

fn directory() -> PathBuf {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/gradients");
    std::env::var("TRACEFX_GRADIENTS").map_or(fixtures, PathBuf::from)
}

/// Whether all committed cases are run.
fn is_whole() -> bool {
    ["TRACEFX_ONLY", "TRACEFX_GRADIENTS"].iter().all(|it| std::env::var_os(it).is_none())
}

/// The cases with the tensors of their file.
fn each_case(mut body: impl FnMut(&str, &Json, &SafeTensors<'_>)) {
    let only = std::env::var("TRACEFX_ONLY").unwrap_or_default();
    let files = fs::read_dir(directory()).expect("the recorded gradients are there").map(|it| it.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|it| it.extension().is_some_and(|it| it == "jsonl")).collect();
    files.sort();
    for file in files {
        let data = fs::read(file.with_extension("safetensors")).expect("the tensors lie beside the cases");
        let tensors = SafeTensors::deserialize(&data).expect("they are safetensors");
        let name = file.file_stem().unwrap().to_string_lossy();
        for (line, text) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let case: Json = serde_json::from_str(text).unwrap();
            if case["op"].as_str().unwrap().contains(&only) {
                body(&format!("{name}:{}", line + 1), &case, &tensors);
            }
        }
    }
}

#[test]
fn gradients_are_those_of_pytorch() {
    let (mut n_agree, mut failures) = (0, Vec::new());
    let (mut different, mut refused) = (BTreeMap::<&str, usize>::new(), BTreeMap::<&str, usize>::new());
    each_case(|name, case, tensors| {
        let op = case["op"].as_str().unwrap();
        let is_different = DIFFERENT.iter().find(|it| it.0 == op);
        let lacks = REFUSED.iter().find(|(it, _lacks)| *it == op);
        let failure = match (run(case, tensors), lacks) {
            (Err(problem), Some((op, lacks))) => {
                *refused.entry(op).or_default() += 1;
                let words = format!("the gradient of {lacks} is not implemented");
                let is_told = problem.code() == Code::NotImplemented && problem.message().contains(&words);
                (!is_told).then(|| format!("{problem} instead of a refusal: {words}"))
            }
            (Err(problem), None) => Some(problem.to_string()),
            (Ok(_), Some((op, _))) => {
                *refused.entry(op).or_default() += 1;
                Some("it has a gradient, and is listed as one that has none".to_string())
            }
            (Ok(gradients), None) => match (compare_all(&gradients, &|_, _| false), is_different) {
                (Ok(()), _) => {
                    n_agree += 1;
                    None
                }
                (Err(_), Some((op, may_differ, _reason))) => {
                    *different.entry(op).or_default() += 1;
                    compare_all(&gradients, may_differ).err()
                }
                (Err(what), None) => Some(what),
            },
        };
        failures.extend(failure.map(|it| format!("{op} in {name}: {it}")));
    });
    eprintln!("{n_agree} agree, {} differ", failures.len());
    eprintln!("listed: {different:?} are different, {refused:?} are refused");
    assert!(failures.is_empty(), "{} gradients differ:\n{}", failures.len(), failures.join("\n"));
    if is_whole() {
        let stale = DIFFERENT.iter().map(|it| it.0).filter(|it| !different.contains_key(it));
        let stale: Vec<&str> =
            stale.chain(REFUSED.iter().map(|it| it.0).filter(|it| !refused.contains_key(it))).collect();
        assert!(stale.is_empty(), "listed, and not met: {stale:?}");
        assert!(n_agree >= N_AGREE, "{n_agree} agree where {N_AGREE} did before");
    }
}

/// How many of the committed cases agree, which may only rise.
const N_AGREE: usize = 1_985;

/// The gradients of a call.
struct Gradients {
    got: Vec<Value<Tensor>>,
    want: Vec<Value<Tensor>>,
    /// The names of the arguments that they are of.
    names: Vec<String>,
    tolerance: Tol,
}

fn run(case: &Json, tensors: &SafeTensors<'_>) -> Result<Gradients, Diagnostic> {
    let name = case["op"].as_str().unwrap();
    let op = registry().require(name)?;
    let read = |it: &Json| parse_value(it, Some(tensors), false).unwrap_or_else(|| panic!("odd value {it}"));
    let list = |it: &Json| it.as_array().unwrap().iter().map(read).collect::<Vec<_>>();
    let kwargs: Vec<(Str, _)> =
        case["kwargs"].as_object().unwrap().iter().map(|(key, it)| (Str::from(key.as_str()), read(it))).collect();
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let got = executor.vjp(name, &list(&case["args"]), &kwargs)?.pull_back(&list(&case["grads"]))?;
    // What moves data is exact forwards; backwards it adds.
    let tolerance = if op.def.tolerance == Tol::Exact { Tol::Default } else { op.def.tolerance };
    let names = op.schema.args.iter().map(|it| it.name.to_string()).collect();
    Ok(Gradients { got, want: list(&case["result"]), names, tolerance })
}

/// Whether two numbers, ours and PyTorch's, differ as they may.
type Differs = fn(f64, f64) -> bool;

/// Whether all gradients are PyTorch's, or differ from them as they may.
fn compare_all(gradients: &Gradients, may_differ: &dyn Fn(f64, f64) -> bool) -> Result<(), String> {
    let Gradients { got, want, names, tolerance } = gradients;
    if (got.len(), names.len()) != (want.len(), want.len()) {
        return Err(format!("{} gradients instead of {}, of {} arguments", got.len(), want.len(), names.len()));
    }
    got.iter().zip(want).zip(names).try_for_each(|((got, want), name)| {
        compare(got, want, *tolerance, may_differ).map_err(|it| format!("{name}: {it}"))
    })
}

fn compare(
    got: &Value<Tensor>,
    want: &Value<Tensor>,
    tolerance: Tol,
    may_differ: &dyn Fn(f64, f64) -> bool,
) -> Result<(), String> {
    let are_zero = |it: &Tensor| scalars(it).is_ok_and(|it| it.iter().all(|it| it.to_complex() == ZERO.to_complex()));
    let number = |it: Scalar| it.to_complex().re;
    match (got, want) {
        (Value::Tensor(got), Value::Tensor(want)) => {
            if (got.dtype(), got.sizes()) != (want.dtype(), want.sizes()) {
                return Err(format!("{got:?} instead of {want:?}"));
            }
            let bounds = tolerance.for_dtype(want.dtype());
            let (got, want) = (scalars(got).unwrap(), scalars(want).unwrap());
            let agrees = |got, want| is_close(got, want, bounds) || may_differ(number(got), number(want));
            match got.iter().zip(&want).position(|(got, want)| !agrees(*got, *want)) {
                Some(at) => Err(format!("{got:?} instead of {want:?}, at {at}")),
                None => Ok(()),
            }
        }
        (Value::List(got), Value::List(want)) if got.len() == want.len() => {
            got.iter().zip(want).try_for_each(|(got, want)| compare(got, want, tolerance, may_differ))
        }
        // That no gradient flows and that zeros do is the same.
        (Value::Tensor(it), Value::None) | (Value::None, Value::Tensor(it)) if are_zero(it) => Ok(()),
        (Value::None, Value::None) => Ok(()),
        (Value::List(items), Value::None) if items.iter().all(|it| matches!(it, Value::None)) => Ok(()),
        (got, want) => Err(format!("a {} instead of a {}", got.kind_name(), want.kind_name())),
    }
}

const ZERO: Scalar = Scalar::Float(0.0);

/// Every operator that PyTorch differentiates has a gradient, or says that none flows, or is made of others that do, or is
/// listed as one that refuses.
#[test]
fn every_differentiable_operator_has_a_gradient() {
    let text = fs::read_to_string(directory().join("differentiable.json")).unwrap();
    let differentiable: BTreeMap<String, bool> = serde_json::from_str(&text).unwrap();
    let is_missing = |name: &str| {
        let has_gradient = |it: &Op| it.def.vjp.is_some() || it.def.decompose.is_some();
        !registry().get(name).is_some_and(has_gradient) && !REFUSED.iter().any(|(it, _)| *it == name)
    };
    let found: Vec<&String> =
        differentiable.iter().filter(|(name, is)| **is && is_missing(name)).map(|it| it.0).collect();
    assert!(found.is_empty(), "operators without a gradient: {found:?}");
}

/// Every operator with a formula of its own is compared with PyTorch, but for those that are listed.
#[test]
fn every_gradient_has_a_recorded_case() {
    if !is_whole() {
        return;
    }
    let mut recorded = BTreeSet::new();
    each_case(|_, case, _| {
        recorded.insert(case["op"].as_str().unwrap().to_string());
    });
    let has_formula = |it: &&Op| matches!(it.def.vjp, Some(Vjp::Of(_) | Vjp::OfFirst(..)));
    let ops = registry().ops();
    let formulas: BTreeSet<&str> = ops.iter().copied().filter(|it| has_formula(it)).map(|it| &*it.name).collect();
    let unrecorded: BTreeSet<&str> = formulas.into_iter().filter(|it| !recorded.contains(*it)).collect();
    let listed: BTreeSet<&str> = UNRECORDED.iter().map(|(op, _reason)| *op).collect();
    assert_eq!(unrecorded, listed, "gradients without a recorded case are others than those that are listed");
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
