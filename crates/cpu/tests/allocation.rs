//! Memory that is refused is an error: every operator runs on recorded inputs, made longer, and again for each of its
//! allocations with that one refused. What comes is `OutOfMemory` or the right answer, never the end of the process.
//!
//! A test of its own binary, because its allocator refuses. An allocation that cannot be refused ends the process, so that
//! the operators run in a process that says where it is, and is started again behind the operator that ended it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a process tells where it is")]

#[allow(dead_code, reason = "numbers are not compared here")]
mod recorded;

use recorded::parse_value;
use safetensors::SafeTensors;
use serde_json::Value as Json;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tracefx_core::{Code, Diagnostic, Tensor};
use tracefx_exec::{Executor, Kernels};
use tracefx_ir::Str;
use tracefx_ops::{Value, registry};

/// Smaller allocations are not refused: lists with an entry for each dimension or result, names, messages, and blocks of a
/// fixed number of elements.
const SMALL: usize = 1 << 14;

/// The elements that the longest input has at least.
const LONG: usize = 1 << 13;

/// Inputs that take an operator longer than this are not taken: what it makes grows faster than they do.
const SLOW: Duration = Duration::from_millis(20);

/// The kernels of linear algebra make sure of their memory when they read their matrices, and then take it without asking:
/// where it is refused all the same, they end the process. They are left out here, with what is made of them.
const LINEAR_ALGEBRA: &[&str] = &[
    "aten._linalg_det.default",
    "aten._linalg_eigh.default",
    "aten._linalg_eigvals.default",
    "aten._linalg_slogdet.default",
    "aten._linalg_solve_ex.default",
    "aten._linalg_svd.default",
    "aten.geqrf.default",
    "aten.linalg_cholesky_ex.default",
    "aten.linalg_eig.default",
    "aten.linalg_householder_product.default",
    "aten.linalg_inv_ex.default",
    "aten.linalg_lstsq.default",
    "aten.linalg_lu_factor_ex.default",
    "aten.linalg_lu_solve.default",
    "aten.linalg_matrix_exp.default",
    "aten.linalg_qr.default",
    "aten.linalg_solve_triangular.default",
    "aten.lu_unpack.default",
    "aten.ormqr.default",
];

/// The kernels that are held to it.
fn kernels() -> &'static Kernels {
    static KERNELS: OnceLock<Kernels> = OnceLock::new();
    KERNELS.get_or_init(|| LINEAR_ALGEBRA.iter().fold(tracefx_cpu::kernels().clone(), |all, it| all.without(it)))
}

/// Allocations that are still granted before one is refused; none is while it is `usize::MAX`.
static GRANTED: AtomicUsize = AtomicUsize::new(usize::MAX);
static REFUSED: AtomicUsize = AtomicUsize::new(0);

struct Refusing;

fn is_refused(size: usize) -> bool {
    if size <= SMALL || GRANTED.load(Ordering::Relaxed) == usize::MAX {
        return false;
    }
    // One is refused, and those after it are granted.
    let is_refused = GRANTED.fetch_sub(1, Ordering::Relaxed) == 0;
    if is_refused {
        GRANTED.store(usize::MAX, Ordering::Relaxed);
        REFUSED.fetch_add(1, Ordering::Relaxed);
    }
    is_refused
}

// SAFETY: every call is passed on to the system's allocator as it came, or refused, which an allocator may do.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// A call of an operator.
struct Case {
    op: String,
    args: Vec<Value<Tensor>>,
    kwargs: Vec<(Str, Value<Tensor>)>,
}

impl Case {
    fn run(&self) -> Result<Vec<Value<Tensor>>, Diagnostic> {
        Executor::new(registry(), kernels()).call(&self.op, &self.args, &self.kwargs)
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
        for _ in 0..5 {
            if res.numel() >= LONG {
                break;
            }
            let next = res.repeated(along, LONG.div_ceil(res.numel().max(1)).min(8) as i64);
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
    let only = std::env::var("TRACEFX_ONLY").unwrap_or_default();
    let mut res: BTreeMap<String, Case> = BTreeMap::new();
    let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    for file in files.filter(|it| it.extension().is_some_and(|it| it == "jsonl")) {
        let data = std::fs::read(file.with_extension("safetensors")).unwrap_or_default();
        let tensors = SafeTensors::deserialize(&data).ok();
        for text in std::fs::read_to_string(&file).unwrap().lines() {
            let json: Json = serde_json::from_str(text).unwrap();
            let op = json["op"].as_str().unwrap();
            if registry().get(op).is_none() || json.get("seed").is_some() || !op.contains(&only) {
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

/// Runs a case with each of its allocations refused, and tells what is wrong.
fn refuse_each(case: &Case) -> Result<(), String> {
    // What is made once is there then.
    let (Ok(first), Ok(second)) = (case.own().run(), case.own().run()) else { return Ok(()) };
    let (first, second) = (bytes(&first), bytes(&second));
    for n in 0.. {
        REFUSED.store(0, Ordering::Relaxed);
        // A copy of what is written to may be refused as well.
        let own = case.own();
        GRANTED.store(n, Ordering::Relaxed);
        let res = catch_unwind(AssertUnwindSafe(|| own.run()));
        GRANTED.store(usize::MAX, Ordering::Relaxed);
        match res {
            Err(_) => return Err(format!("allocation {n} refused: it panics")),
            Ok(Err(problem)) if problem.code() != Code::OutOfMemory => {
                return Err(format!("allocation {n} refused: {problem}"));
            }
            // Random numbers are others in each run.
            Ok(Ok(results)) if first == second && bytes(&results) != first => {
                return Err(format!("allocation {n} refused: another answer"));
            }
            Ok(_) => {}
        }
        if REFUSED.load(Ordering::Relaxed) == 0 {
            break;
        }
    }
    Ok(())
}

/// The operators from one on, in a process of their own.
fn run_from(start: usize) {
    let mut out = std::io::stdout();
    for (at, (op, case)) in cases().into_iter().enumerate().skip(start) {
        // The name stands there before the process may end.
        writeln!(out, "\nat {at} {op}").unwrap();
        out.flush().unwrap();
        let variants = [case.longer(|_| 0), case.longer(|last| last)];
        let problem = variants.iter().find_map(|it| refuse_each(it).err());
        writeln!(out, "\n{}", problem.map_or("right".to_string(), |it| format!("wrong {it}"))).unwrap();
    }
    writeln!(out, "\nend").unwrap();
    out.flush().unwrap();
}

#[test]
fn an_allocation_that_is_refused_is_an_error_and_not_the_end() {
    const START: &str = "TRACEFX_ALLOCATION_START";
    if let Ok(start) = std::env::var(START) {
        run_from(start.parse().unwrap());
        return;
    }
    let (mut start, mut problems, mut n_calls, mut current) = (0, BTreeMap::new(), 0, String::new());
    loop {
        let own = Command::new(std::env::current_exe().unwrap())
            .args(["an_allocation_that_is_refused_is_an_error_and_not_the_end", "--exact", "--nocapture"])
            .env(START, start.to_string())
            // Parts of a kernel run one after the other, so that allocations are counted in the same order.
            .env("RAYON_NUM_THREADS", "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&own.stdout).to_string();
        for line in text.lines() {
            if let Some((at, op)) = line.strip_prefix("at ").and_then(|it| it.split_once(' ')) {
                start = at.parse::<usize>().unwrap() + 1;
                n_calls += 1;
                current = op.to_string();
                problems.insert(current.clone(), "it ends the process".to_string());
            } else if line == "right" {
                problems.remove(&current);
            } else if let Some(problem) = line.strip_prefix("wrong ") {
                problems.insert(current.clone(), problem.to_string());
            }
        }
        if text.lines().any(|it| it == "end") {
            break;
        }
        assert!(start > 0, "the process ended before its first operator:\n{text}");
    }
    let found: Vec<String> = problems.iter().map(|(op, problem)| format!("{op}: {problem}")).collect();
    assert!(found.is_empty(), "{} operators:\n{}", found.len(), found.join("\n"));
    if std::env::var_os("TRACEFX_ONLY").is_none() {
        assert!(n_calls > 650, "{n_calls} operators");
    }
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
