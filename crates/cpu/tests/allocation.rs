//! Memory that is refused is an error: every operator runs on recorded inputs, made longer, and again for each of its
//! allocations with that one refused. What comes is `OutOfMemory` or the right answer, never the end of the process.
//!
//! A test of its own binary, because its allocator refuses. An allocation that cannot be refused ends the process, so that
//! the operators run in a process that says where it is, and is started again behind the operator that ended it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a process tells where it is")]

#[allow(dead_code, reason = "numbers are not compared here")]
mod recorded;
mod refusing;

use recorded::parse_value;
use refusing::{Work, check_all, refuse_each};
use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tracefx_core::{Code, Diagnostic, Tensor};
use tracefx_exec::Executor;
use tracefx_ir::Str;
use tracefx_ops::{Value, registry};

/// The elements that the longest input has at least.
const LONG: usize = 1 << 13;

/// Inputs that take an operator longer than this are not taken: what it makes grows faster than they do.
const SLOW: Duration = Duration::from_millis(20);

/// A call of an operator.
struct Case {
    op: String,
    args: Vec<Value<Tensor>>,
    kwargs: Vec<(Str, Value<Tensor>)>,
}

impl Case {
    fn run(&self) -> Result<Vec<Value<Tensor>>, Diagnostic> {
        Executor::new(registry(), tracefx_cpu::kernels()).call(&self.op, &self.args, &self.kwargs)
    }

    /// The same call on tensors of which each has its elements for itself, to be written to.
    fn own(&self) -> Case {
        let own = |it: &Tensor| {
            let storage = it.storage().lazy_clone();
            Value::Tensor(Tensor::view_of(storage, it.dtype(), it.sizes(), it.strides(), it.offset()).unwrap())
        };
        self.mapped(&own)
    }

    /// The same call with all tensors repeated along one dimension, the first or the last, until the longest is long.
    fn longer(&self, along: fn(usize) -> usize) -> Case {
        let mut res = self.own();
        // Doubled each time: what takes a cube of the length would take 512 times as long on eight times of it.
        for _ in 0..LONG.ilog2() {
            if res.numel() >= LONG {
                break;
            }
            let next = res.repeated(along, 2);
            let start = Instant::now();
            if next.own().run().is_err() || start.elapsed() > SLOW {
                break;
            }
            res = next;
        }
        res
    }

    fn repeated(&self, along: fn(usize) -> usize, times: i64) -> Case {
        let repeated = |it: &Tensor| {
            let mut repeats: Vec<Value<Tensor>> = vec![Value::int(1); it.rank()];
            if let Some(last) = it.rank().checked_sub(1) {
                repeats[along(last)] = Value::int(times);
            }
            let args = [Value::Tensor(it.clone()), Value::List(repeats)];
            let res = Executor::new(registry(), tracefx_cpu::kernels()).call("aten.repeat.default", &args, &[]);
            match res.map(|mut it| it.pop()) {
                Ok(Some(Value::Tensor(longer))) => Value::Tensor(longer),
                Ok(_) | Err(_) => Value::Tensor(it.clone()),
            }
        };
        self.mapped(&repeated)
    }

    fn mapped(&self, f: &dyn Fn(&Tensor) -> Value<Tensor>) -> Case {
        fn map(value: &Value<Tensor>, f: &dyn Fn(&Tensor) -> Value<Tensor>) -> Value<Tensor> {
            match value {
                Value::Tensor(it) => f(it),
                Value::List(items) => Value::List(items.iter().map(|it| map(it, f)).collect()),
                other => other.clone(),
            }
        }
        let args = self.args.iter().map(|it| map(it, f)).collect();
        let kwargs = self.kwargs.iter().map(|(key, it)| (key.clone(), map(it, f))).collect();
        Case { op: self.op.clone(), args, kwargs }
    }

    fn numel(&self) -> usize {
        let mut most = 0;
        let mut longest = |it: &Value<Tensor>| it.for_each_tensor(&mut |it| most = most.max(it.numel()));
        self.args.iter().for_each(&mut longest);
        self.kwargs.iter().for_each(|(_, it)| longest(it));
        most
    }
}

/// The longest recorded case of each operator, by name.
fn cases() -> BTreeMap<String, Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/opcases");
    let mut res: BTreeMap<String, Case> = BTreeMap::new();
    let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    for file in files.filter(|it| it.extension().is_some_and(|it| it == "jsonl")) {
        let data = std::fs::read(file.with_extension("safetensors")).unwrap_or_default();
        let tensors = SafeTensors::deserialize(&data).ok();
        for text in std::fs::read_to_string(&file).unwrap().lines() {
            let json: Json = serde_json::from_str(text).unwrap();
            let op = json["op"].as_str().unwrap();
            if registry().get(op).is_none() || json.get("seed").is_some() {
                continue;
            }
            let read = |it: &Json| parse_value(it, tensors.as_ref(), false);
            let args: Option<Vec<_>> = json["args"].as_array().unwrap().iter().map(read).collect();
            let kwargs = json["kwargs"].as_object().unwrap().iter();
            let kwargs: Option<Vec<_>> = kwargs.map(|(key, it)| Some((Str::from(key.as_str()), read(it)?))).collect();
            if let (Some(args), Some(kwargs)) = (args, kwargs) {
                let case = Case { op: op.to_string(), args, kwargs };
                if res.get(op).is_none_or(|it| it.numel() < case.numel()) {
                    res.insert(op.to_string(), case);
                }
            }
        }
    }
    res
}

/// The elements of all results, as bytes.
fn bytes(results: &[Value<Tensor>]) -> Vec<u8> {
    let mut res = Vec::new();
    results.iter().for_each(|it| it.for_each_tensor(&mut |it| res.extend(it.to_bytes().unwrap())));
    res
}

/// A case, made longer, with each of its allocations refused.
fn check(case: &Case) -> Result<(), String> {
    // A copy of what is written to may be refused as well.
    let refused = |it: &Case| refuse_each(&|| it.own(), &|own| own.run(), &|results| bytes(results));
    [case.longer(|_| 0), case.longer(|last| last)].iter().try_for_each(refused)
}

#[test]
fn an_allocation_that_is_refused_is_an_error_and_not_the_end() {
    let works = || {
        let work = |(name, case)| Work { name, lists: 0, check: Box::new(move || check(&case)) };
        cases().into_iter().map(work).collect()
    };
    let (n_operators, n_refused) = check_all("an_allocation_that_is_refused_is_an_error_and_not_the_end", &works);
    assert!(n_operators > 650 && n_refused > 900, "{n_operators} operators, {n_refused} allocations refused");
}

#[test]
fn linear_algebra_asks_for_what_it_needs_and_no_more() {
    let call = |op: &str, args: &[Value<Tensor>]| Executor::new(registry(), tracefx_cpu::kernels()).call(op, args, &[]);
    let ones = |sizes: &[usize]| {
        let n = sizes.iter().product();
        Value::Tensor(Tensor::from_slice(&vec![1.0f32; n], sizes).unwrap())
    };
    // A square of the longer side would be 32 TB.
    let tall = ones(&[2_000_000, 1]);
    let first = |results: Vec<Value<Tensor>>, at: usize| match results.into_iter().nth(at) {
        Some(Value::Tensor(it)) => it.to_vec::<f32>().unwrap()[0],
        _ => panic!("it is a tensor"),
    };
    let norm = 2e6f32.sqrt();
    let r = first(call("aten.linalg_qr.default", std::slice::from_ref(&tall)).unwrap(), 1);
    assert!((r.abs() - norm).abs() < 1e-3 * norm, "{r}");
    let values = call("aten._linalg_svd.default", &[tall.clone(), Value::Bool(false), Value::Bool(true)]);
    assert!((first(values.unwrap(), 1) - norm).abs() < 1e-3 * norm);
    let solution = call("aten.linalg_lstsq.default", &[tall.clone(), tall.clone()]).unwrap();
    assert!((first(solution, 0) - 1.0).abs() < 1e-3);
    // Results of that size cannot be had.
    let code = |res: Result<Vec<Value<Tensor>>, Diagnostic>| res.expect_err("it cannot be had").code();
    let complete = Value::Str("complete".into());
    assert_eq!(code(call("aten.linalg_qr.default", &[tall.clone(), complete])), Code::OutOfMemory);
    assert_eq!(
        code(call("aten._linalg_svd.default", &[tall, Value::Bool(true), Value::Bool(true)])),
        Code::OutOfMemory
    );
    let wide = ones(&[1, 2_000_000]);
    assert_eq!(code(call("aten.linalg_lstsq.default", &[wide.clone(), wide])), Code::OutOfMemory);
}
