//! Numbers beside tensors of half precision: each operator rounds them to the dtype of the tensors where PyTorch does
//! (`tests/fixtures/numbers`). Bits are compared, since the tolerances of half precision hide the difference.

use crate::recorded::{parse_value, scalars};
use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tracefx_core::{DType, Scalar};
use tracefx_exec::Executor;
use tracefx_ir::Str;
use tracefx_ops::{ArgType, Op, Value, registry};

/// Operators that differ all the same, with the argument that is a number, and the reason. Each of them does differ.
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("aten.addcmul.default", "value", FUSED),
    ("aten.addcmul_.default", "value", FUSED),
    ("aten.huber_loss.default", "self", OF_RANK_0),
    ("aten.huber_loss_backward.default", "delta", HALF_STEPS),
    ("aten.logit_backward.default", "eps", HALF_STEPS),
    ("aten.logit_backward.default", "grad_output", HALF_STEPS),
    ("aten.logit_backward.default", "self", HALF_STEPS),
    ("aten.mish_backward.default", "self", OF_RANK_0),
    ("aten.mse_loss_backward.default", "grad_output", HALF_STEPS),
    ("aten.mse_loss_backward.default", "self", HALF_STEPS),
    ("aten.mse_loss_backward.default", "target", HALF_STEPS),
    ("aten.sigmoid_backward.default", "grad_output", HALF_STEPS),
    ("aten.sigmoid_backward.default", "output", HALF_STEPS),
    ("aten.smooth_l1_loss.default", "beta", "PyTorch's mean in half precision overflows on the way"),
    ("aten.smooth_l1_loss.default", "target", HALF_STEPS),
    ("aten.smooth_l1_loss_backward.default", "self", HALF_STEPS),
    ("aten.soft_margin_loss_backward.default", "grad_output", HALF_STEPS),
    ("aten.soft_margin_loss_backward.default", "self", HALF_STEPS),
    ("aten.soft_margin_loss_backward.default", "target", HALF_STEPS),
    ("aten.softshrink.default", "lambd", "the sign of a zero at the bound"),
    ("aten.special_xlog1py.default", "other", HALF_STEPS),
    ("aten.special_xlog1py.default", "self", HALF_STEPS),
    ("aten.special_xlog1py.other_scalar", "other", HALF_STEPS),
    ("aten.special_xlog1py.self_scalar", "self", HALF_STEPS),
];

const FUSED: &str = "PyTorch's compiler joins a product and a sum, which then round once";
const HALF_STEPS: &str = "PyTorch rounds to half precision on the way";
const OF_RANK_0: &str = "of a float32 tensor without dimensions beside half precision, PyTorch's loops make float32";

#[test]
fn numbers_are_rounded_where_pytorch_rounds_them() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/numbers/numbers.jsonl");
    let data = fs::read(file.with_extension("safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&data).unwrap();
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let mut failures = BTreeMap::<String, Vec<String>>::new();
    let mut n_same = 0;
    for (line, text) in fs::read_to_string(&file).unwrap().lines().enumerate() {
        let case: Json = serde_json::from_str(text).unwrap();
        let op = case["op"].as_str().unwrap();
        let read = |it: &Json| parse_value(it, Some(&tensors), false).unwrap();
        let args: Vec<_> = case["args"].as_array().unwrap().iter().map(read).collect();
        let kwargs: Vec<_> =
            case["kwargs"].as_object().unwrap().iter().map(|(key, it)| (Str::from(key.as_str()), read(it))).collect();
        let problem = match executor.call(op, &args, &kwargs).as_deref() {
            Ok([Value::Tensor(got)]) => {
                let Value::Tensor(want) = read(&case["result"]) else {
                    panic!("line {line} has no tensor as its result")
                };
                let pairs = scalars(got).unwrap().into_iter().zip(scalars(&want).unwrap());
                let differing: Vec<_> = pairs.filter(|&(a, b)| !is_same(a, b)).collect();
                match differing.as_slice() {
                    _ if (got.dtype(), got.sizes()) != (want.dtype(), want.sizes()) => {
                        format!("{got:?} instead of {want:?}")
                    }
                    [(a, b), ..] => {
                        format!("{} of {} differ, {a:?} instead of {b:?}", differing.len(), got.numel())
                    }
                    [] => {
                        n_same += 1;
                        continue;
                    }
                }
            }
            Ok(other) => format!("{} results", other.len()),
            Err(problem) => problem.to_string(),
        };
        let key = format!("{op} {}", case["number"].as_str().unwrap());
        failures.entry(key).or_default().push(format!("line {}: {problem}", line + 1));
    }
    for (op, number, _reason) in DIFFERENT {
        assert!(failures.remove(&format!("{op} {number}")).is_some(), "{op} no longer differs by its {number}");
    }
    let told: Vec<_> = failures.iter().map(|(op, it)| format!("{op} ({}): {}", it.len(), it[0])).collect();
    assert!(told.is_empty(), "{n_same} calls agree, these differ:\n{}", told.join("\n"));
    assert!(n_same > 1_500, "{n_same}");
}

fn is_same(a: Scalar, b: Scalar) -> bool {
    let bits = |it: Scalar| if it.to_f64().is_nan() { u64::MAX } else { it.to_f64().to_bits() };
    bits(a) == bits(b)
}

/// Operators that take other numbers than the recorded PyTorch, with the argument, and the reason. Each of them does.
const OTHER_LIMITS: &[(&str, &str, &str)] =
    &[("aten.hardtanh.default", "min_val", "since PyTorch 2.15, limits of unsigned elements may be negative")];

#[test]
fn numbers_that_do_not_fit_are_refused_where_pytorch_refuses_them() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/number-limits/limits.jsonl");
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let mut failures = BTreeMap::<String, Vec<String>>::new();
    let mut n_same = 0;
    for text in fs::read_to_string(&file).unwrap().lines() {
        let case: Json = serde_json::from_str(text).unwrap();
        let (op, number) = (case["op"].as_str().unwrap(), case["number"].as_str().unwrap());
        let op = registry().require(op).unwrap();
        let dtype = DType::from_name(case["dtype"].as_str().unwrap()).unwrap();
        let values = LIMITS.iter().filter(|it| is_refused(&executor, op, number, dtype, read_number(**it, dtype)));
        let refused: Vec<f64> = values.copied().collect();
        let expected: Vec<f64> = case["refused"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
        if refused == expected {
            n_same += 1;
            continue;
        }
        let key = format!("{} {number}", op.name);
        let problem = format!("of {} it refuses {refused:?} instead of {expected:?}", dtype.name());
        failures.entry(key).or_default().push(problem);
    }
    for (op, number, _reason) in OTHER_LIMITS {
        assert!(failures.remove(&format!("{op} {number}")).is_some(), "{op} takes the numbers that PyTorch takes");
    }
    let told: Vec<_> = failures.iter().map(|(op, it)| format!("{op}: {}", it.join("; "))).collect();
    assert!(told.is_empty(), "{n_same} agree, these differ:\n{}", told.join("\n"));
    assert!(n_same > 800, "{n_same}");
}

/// The numbers that are tried, as in `tests/oracle/gen_number_limits.py`.
const LIMITS: [f64; 11] =
    [1.0, 300.0, -3.0, -130.0, -300.0, 70000.0, -70000.0, 1_500_000_000.0, 1_099_511_627_776.0, 1e39, -1e39];

/// The ranks of the tensors of operators that take no others than these.
const RANKS: &[(&str, [usize; 3])] = &[
    ("aten.addbmm.default", [2, 3, 3]),
    ("aten.addmm.default", [2, 2, 2]),
    ("aten.addmv.default", [1, 2, 1]),
    ("aten.baddbmm.default", [3, 3, 3]),
];

fn read_number(it: f64, dtype: DType) -> Scalar {
    if dtype.is_float() || it.abs() > 1e18 { Scalar::Float(it) } else { Scalar::Int(it as i64) }
}

/// Whether an operator refuses a number beside tensors of ones, and for the rest what stands in the schema or is plain.
fn is_refused(executor: &Executor, op: &Op, number: &str, dtype: DType, value: Scalar) -> bool {
    let ranks = RANKS.iter().find(|(it, _)| op.name == *it).map_or(&[][..], |(_, ranks)| &ranks[..]);
    let ones = |at: usize, dtype: DType| {
        let kwargs = [("dtype".into(), Value::DType(dtype))];
        let sizes = vec![Value::int(2); ranks.get(at).copied().unwrap_or(1)];
        executor.call("aten.ones.default", &[Value::List(sizes)], &kwargs).unwrap().swap_remove(0)
    };
    let (mut args, mut kwargs) = (Vec::new(), Vec::new());
    for (at, arg) in op.schema.args.iter().enumerate() {
        let given = match (arg.name.as_str(), &arg.ty) {
            (name, _) if name == number => value.into(),
            ("mask" | "condition", ArgType::Tensor) => ones(at, DType::Bool),
            ("index", ArgType::Tensor) => ones(at, DType::Int64),
            (_, ArgType::Tensor) => ones(at, dtype),
            _ if arg.default.is_some() => continue,
            (_, ArgType::Scalar) => Value::int(1),
            (_, ArgType::Float) => Value::Float(1.0),
            (_, ArgType::Int) => Value::int(0),
            (_, ArgType::Bool) => Value::Bool(false),
            (_, ArgType::List(..)) => Value::List(vec![Value::int(2)]),
            _ => Value::None,
        };
        if arg.is_kwarg_only || args.len() < at {
            kwargs.push((arg.name.as_str().into(), given));
        } else {
            args.push(given);
        }
    }
    executor.call(&op.name, &args, &kwargs).is_err()
}
