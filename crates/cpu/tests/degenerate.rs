//! Calls every operator of the registry with arguments that nobody would give it: empty tensors, some without dimensions and
//! some with sixty-four, dimensions out of range, dtypes that do not fit, numbers at the ends of their ranges, and sizes for
//! which no memory is enough. A call may be refused; it must not panic, must come back, and must not ask for more memory
//! than it was given work for. A program of its own, because its allocator refuses what is too much.
//!
//! The calls are the same in every run. `TRACEFX_DEGENERATE=N` makes `N` calls of each operator instead of a slice, and
//! `TRACEFX_ONLY=aten.add` calls only the operators with these letters in their names.

#![allow(clippy::print_stderr, reason = "a call that does not come back can only be told while it runs")]

use serde_json::{Value as Json, json};
use std::alloc::{GlobalAlloc, Layout as MemoryLayout, System};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tracefx_core::{Complex64, DType, Layout, MemoryFormat, Tensor};
use tracefx_exec::Executor;
use tracefx_ir::Str;
use tracefx_ops::{ArgType, Op, Value, registry};

/// How many calls of each operator are made where nothing else is said, and in how long at most.
const SLICE: u64 = 24;
/// The most that one allocation may ask for and get.
const LIMIT: usize = 1 << 30;
/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Refuses allocations beyond the limit, as a host does that has no more memory: who can fail, fails; who cannot, ends the
/// process, after the call was told.
struct Limited;

static IS_REFUSED: AtomicBool = AtomicBool::new(false);

fn admits(len: usize) -> bool {
    if len > LIMIT {
        IS_REFUSED.store(true, Ordering::Relaxed);
    }
    len <= LIMIT
}

// SAFETY: every call goes to the system's allocator, or gives null, which the trait allows.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: MemoryLayout) -> *mut u8 {
        // SAFETY: the caller promises what the system's allocator asks for.
        if admits(layout.size()) { unsafe { System.alloc(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn alloc_zeroed(&self, layout: MemoryLayout) -> *mut u8 {
        // SAFETY: as above.
        if admits(layout.size()) { unsafe { System.alloc_zeroed(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: MemoryLayout, len: usize) -> *mut u8 {
        // SAFETY: as above.
        if admits(len) { unsafe { System.realloc(pointer, layout, len) } } else { std::ptr::null_mut() }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: MemoryLayout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// The call that runs.
static CURRENT: Mutex<Option<(String, Instant)>> = Mutex::new(None);
static N_CALLS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn no_call_panics() {
    let per_op = std::env::var("TRACEFX_DEGENERATE").map_or(SLICE, |it| it.parse().unwrap());
    let only = std::env::var("TRACEFX_ONLY").unwrap_or_default();
    watch();
    std::panic::set_hook(Box::new(|_| {}));
    let mut written = std::env::var_os("TRACEFX_WRITE_CALLS").map(|it| std::fs::File::create(it).unwrap());
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let mut ops: Vec<&Op> = registry().ops().into_iter().filter(|it| it.name.contains(&only)).collect();
    ops.sort_by(|a, b| a.name.cmp(&b.name));
    let mut panics = BTreeMap::<String, (usize, String)>::new();
    let mut n_answered = 0;
    for op in ops {
        for turn in 0..per_op {
            let mut dice = Dice::new(&op.name, turn);
            let call = dice.call(op);
            let text = call.to_string();
            *CURRENT.lock().unwrap() = Some((text.clone(), Instant::now()));
            if let Some(file) = &mut written {
                writeln!(file, "{text}").unwrap();
            }
            let (args, kwargs) = (read_all(&call["args"]), read_named(&call["kwargs"]));
            tracefx_core::with_default_generator(|it| it.manual_seed(turn));
            let outcome = catch_unwind(AssertUnwindSafe(|| executor.call(&op.name, &args, &kwargs)));
            N_CALLS.fetch_add(1, Ordering::Relaxed);
            match outcome {
                Ok(Ok(_)) => n_answered += 1,
                Ok(Err(_)) => {}
                Err(payload) => {
                    let message = payload
                        .downcast_ref::<String>()
                        .map(String::as_str)
                        .or(payload.downcast_ref::<&str>().copied());
                    let what = format!("{}: {text}", message.unwrap_or("?"));
                    panics.entry(op.name.clone()).or_insert((0, what)).0 += 1;
                }
            }
        }
    }
    *CURRENT.lock().unwrap() = None;
    let _ = std::panic::take_hook();
    let n_calls = N_CALLS.load(Ordering::Relaxed);
    eprintln!("{n_calls} calls, {n_answered} answered");
    let told: Vec<_> = panics.iter().map(|(op, (n, what))| format!("{op} ({n}): {what}")).collect();
    assert!(told.is_empty(), "{} operators panic:\n{}", told.len(), told.join("\n"));
    // Were everything refused, nothing would have been tried.
    assert!(n_answered * 5 > n_calls, "{n_answered} of {n_calls} calls have an answer");
}

/// The dtypes, sizes and strides are those that PyTorch recorded, and what it refuses is refused (`tests/fixtures/degenerate`).
/// `differences.txt` beside them counts, by operator, what still differs, and says why; a count may only fall.
/// `TRACEFX_RECORD=1` writes those that fell, `TRACEFX_TELL=1` tells every call that differs and its answer here, and
/// `TRACEFX_CALLS=FILE` takes the calls of another file.
#[test]
fn results_are_as_pytorch_recorded() {
    compare("degenerate", 12_659);
}

/// The results of tensors that are turned around in memory, expanded, with gaps and channels last lie as PyTorch's do
/// (`tests/fixtures/strides`): whether a `view` of them is possible depends on it.
#[test]
fn results_lie_in_memory_as_pytorch_recorded() {
    compare("strides", 4_675);
}

fn compare(fixtures: &str, n_agree: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(fixtures);
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let mut counts = BTreeMap::<(String, &str), (usize, String)>::new();
    let mut n_same = 0;
    let tells = std::env::var_os("TRACEFX_TELL").is_some();
    let file = std::env::var_os("TRACEFX_CALLS").map_or(folder.join("calls.jsonl"), Into::into);
    for text in fs::read_to_string(file).unwrap().lines() {
        let call: Json = serde_json::from_str(text).unwrap();
        let op = call["op"].as_str().unwrap();
        registry().require(op).unwrap();
        tracefx_core::with_default_generator(|it| it.manual_seed(0));
        let (args, kwargs) = (read_all(&call["args"]), read_named(&call["kwargs"]));
        let answer = executor.call(op, &args, &kwargs);
        let kind = match (&answer, call.get("result")) {
            (Err(_), None) => None,
            (Ok(_), None) => Some("accepts"),
            (Err(_), Some(_)) => Some("refuses"),
            (Ok(got), Some(want)) => match got.as_slice() {
                [only] => difference(only, want),
                _ => difference(&Value::List(got.clone()), want),
            },
        };
        if let Some(kind) = kind
            && tells
        {
            eprintln!("{kind}: {text}\n  {}", answer.map_or_else(|it| it.to_string(), |it| format!("{it:?}")));
        }
        match kind {
            None => n_same += 1,
            Some(kind) => counts.entry((op.to_string(), kind)).or_insert((0, text.to_string())).0 += 1,
        }
    }
    let file = folder.join("differences.txt");
    let known = fs::read_to_string(&file).unwrap_or_default();
    let (head, rows): (Vec<&str>, Vec<&str>) = known.lines().partition(|it| it.starts_with('#') || it.is_empty());
    let known: BTreeMap<(String, &str), usize> = rows
        .into_iter()
        .map(|row| {
            let [op, kind, n] = row.split(' ').collect::<Vec<_>>()[..] else { panic!("`{row}` is no row") };
            ((op.to_string(), kind), n.parse().unwrap())
        })
        .collect();
    eprintln!("{n_same} calls agree, {} differ", counts.values().map(|it| it.0).sum::<usize>());
    if std::env::var_os("TRACEFX_RECORD").is_some() {
        let rows = counts.iter().map(|((op, kind), (n, _))| format!("{op} {kind} {n}\n"));
        let head = head.iter().map(|it| format!("{it}\n"));
        fs::write(&file, head.chain(rows).collect::<String>()).unwrap();
        return;
    }
    let told: Vec<_> = counts
        .iter()
        .filter(|(key, (n, _))| known.get(key).is_none_or(|known| n > known))
        .map(|((op, kind), (n, text))| format!("{op} {kind} {n}: {text}"))
        .collect();
    assert!(told.is_empty(), "{} counts rose:\n{}", told.len(), told.join("\n"));
    if std::env::var_os("TRACEFX_CALLS").is_some() {
        return;
    }
    let fallen: Vec<_> = known
        .iter()
        .map(|(key, known)| (key, known, counts.get(key).map_or(0, |it| it.0)))
        .filter(|(_, known, n)| n < known)
        .map(|((op, kind), known, n)| format!("{op} {kind}: {n} instead of {known}"))
        .collect();
    assert!(fallen.is_empty(), "{} counts fell, which TRACEFX_RECORD=1 writes:\n{}", fallen.len(), fallen.join("\n"));
    assert!(n_same >= n_agree, "{n_same} calls agree where {n_agree} did before");
}

/// In what a result differs from the one that was recorded.
fn difference(got: &Value<Tensor>, want: &Json) -> Option<&'static str> {
    match (got, want) {
        (Value::List(got), Json::Object(want)) => {
            let want = want["list"].as_array().unwrap();
            let items = got.iter().zip(want).find_map(|(got, want)| difference(got, want));
            if got.len() == want.len() { items } else { Some("results") }
        }
        (Value::Tensor(got), Json::Array(want)) => {
            let dims = |it: &[usize]| json!(it);
            if want[0] != got.dtype().name() {
                Some("dtype")
            } else if want[1] != dims(got.sizes()) {
                Some("sizes")
            } else {
                // Of one element, and of none, no stride is ever taken.
                let steps = got.sizes().iter().zip(got.strides()).zip(want[2].as_array().unwrap());
                let is_same = |((&size, &stride), want): ((&usize, &usize), &Json)| size == 1 || *want == json!(stride);
                if got.numel() <= 1 || steps.into_iter().all(is_same) { None } else { Some("strides") }
            }
        }
        (Value::List(got), Json::String(want)) if got.is_empty() && want == "NoneType" => None,
        (Value::Tensor(_) | Value::List(_), _) | (_, Json::Array(_) | Json::Object(_)) => Some("results"),
        (_, _) => None,
    }
}

/// Ends the process, and says why, where a call does not come back.
fn watch() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_millis(500));
            if let Some((text, since)) = &*CURRENT.lock().unwrap()
                && since.elapsed() > PATIENCE
            {
                eprintln!("no answer in {PATIENCE:?}: {text}");
                std::process::abort();
            }
        }
    });
}

/// The arguments of a call as they are written: tensors by dtype, sizes, strides where they are not row-major, and the number
/// that all their elements are.
fn read(json: &Json) -> Value<Tensor> {
    match json {
        Json::Null => Value::None,
        Json::Bool(it) => Value::Bool(*it),
        Json::Number(it) => Value::int(it.as_i64().unwrap()),
        Json::String(it) => Value::Str(it.as_str().into()),
        Json::Array(items) => Value::List(items.iter().map(read).collect()),
        Json::Object(fields) => {
            let (key, it) = fields.iter().next().unwrap();
            let name = || it.as_str().unwrap();
            match key.as_str() {
                "float" => Value::Float(name().parse().unwrap()),
                "complex" => {
                    let part = |at: usize| it[at].as_str().unwrap().parse().unwrap();
                    Value::Complex(Complex64 { re: part(0), im: part(1) })
                }
                "dtype" => Value::DType(DType::from_name(name()).unwrap()),
                "layout" => Value::Layout(Layout::from_name(name()).unwrap()),
                "memory_format" => Value::MemoryFormat(MemoryFormat::from_name(name()).unwrap()),
                "tensor" => Value::Tensor(read_tensor(json)),
                other => panic!("{other} is not written"),
            }
        }
    }
}

fn read_all(json: &Json) -> Vec<Value<Tensor>> {
    json.as_array().unwrap().iter().map(read).collect()
}

fn read_named(json: &Json) -> Vec<(Str, Value<Tensor>)> {
    json.as_object().unwrap().iter().map(|(key, it)| (Str::from(key.as_str()), read(it))).collect()
}

fn read_tensor(json: &Json) -> Tensor {
    let dims = |it: &Json| it.as_array().unwrap().iter().map(|it| it.as_u64().unwrap() as usize).collect::<Vec<_>>();
    let dtype = DType::from_name(json["tensor"].as_str().unwrap()).unwrap();
    let sizes = dims(&json["size"]);
    let fill = read(&json["fill"]).as_scalar().unwrap();
    match json.get("stride") {
        Some(strides) => {
            let strides = dims(strides);
            let span = tracefx_core::storage_span(&sizes, &strides, 0).unwrap() as usize;
            Tensor::full(dtype, &[span], fill).unwrap().as_strided(&sizes, &strides, 0).unwrap()
        }
        None => Tensor::full(dtype, &sizes, fill).unwrap(),
    }
}

/// Random numbers that are the same in every run: SplitMix64.
struct Dice {
    state: u64,
    /// The sizes that most tensors of the call have, so that some calls get far.
    sizes: Vec<usize>,
    dtype: DType,
}

const DTYPES: [DType; 12] = [
    DType::Float32,
    DType::Float64,
    DType::Float16,
    DType::BFloat16,
    DType::Int64,
    DType::Int32,
    DType::Int8,
    DType::UInt8,
    DType::Bool,
    DType::Complex64,
    DType::Complex128,
    DType::Int16,
];

const INTS: [i64; 22] = [
    0,
    1,
    2,
    3,
    -1,
    -2,
    4,
    5,
    7,
    -3,
    -7,
    63,
    64,
    65,
    -64,
    -65,
    1 << 20,
    1 << 31,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    -(1 << 33),
];

const FLOATS: [f64; 12] =
    [0.0, 1.0, 0.5, -1.0, 2.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e-308, 65504.5];

const WORDS: [&str; 12] =
    ["", "mean", "sum", "max", "amax", "prod", "constant", "reflect", "floor", "tanh", "ij,jk->ik", "left"];

impl Dice {
    fn new(name: &str, turn: u64) -> Self {
        // FNV-1a, which is the same on every machine.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let mut dice =
            Dice { state: hash ^ turn.wrapping_mul(0x9e37_79b9_7f4a_7c15), sizes: Vec::new(), dtype: DType::Float32 };
        dice.sizes = dice.any_sizes();
        dice.dtype = if dice.one_in(2) { DType::Float32 } else { dice.of(&DTYPES) };
        dice
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.state;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn any_sizes(&mut self) -> Vec<usize> {
        match self.below(14) {
            0 => Vec::new(),
            1 => vec![0],
            2 => vec![1],
            3 => vec![3],
            4 => vec![2, 0],
            5 => vec![0, 3, 0],
            6 => vec![2, 3],
            7 => vec![3, 3],
            8 => vec![2, 3, 4],
            9 => vec![1, 2, 4, 4],
            10 => vec![2, 1, 3, 2, 3],
            11 => vec![1; 64],
            12 => vec![0, 1 << 40],
            _ => vec![1, 0, 2, 2],
        }
    }

    fn tensor(&mut self) -> Json {
        let sizes = if self.one_in(4) { self.any_sizes() } else { self.sizes.clone() };
        let dtype = if self.one_in(5) { self.of(&DTYPES) } else { self.dtype };
        let fill = match self.below(6) {
            0 => self.float(),
            1 => json!(self.of(&INTS)),
            2 => json!(0),
            _ => json!(1),
        };
        let mut res = json!({ "tensor": dtype.name(), "size": sizes, "fill": fill });
        match self.below(6) {
            // Turned around in memory.
            0 if sizes.len() > 1 => {
                let mut strides = vec![1; sizes.len()];
                for dim in 1..sizes.len() {
                    strides[dim] = strides[dim - 1] * sizes[dim - 1].max(1);
                }
                res["stride"] = json!(strides);
            }
            // All elements in one place.
            1 if !sizes.contains(&0) => res["stride"] = json!(vec![0; sizes.len()]),
            _ => {}
        }
        res
    }

    fn int(&mut self) -> i64 {
        if self.one_in(3) { self.of(&INTS) } else { self.of(&INTS[..8]) }
    }

    fn float(&mut self) -> Json {
        json!({ "float": format!("{:?}", self.of(&FLOATS)) })
    }

    fn complex(&mut self) -> Json {
        let parts = [0, 1].map(|_| format!("{:?}", self.of(&FLOATS)));
        json!({ "complex": parts })
    }

    fn value(&mut self, ty: &ArgType) -> Json {
        match ty {
            ArgType::Tensor => self.tensor(),
            ArgType::Int => json!(self.int()),
            ArgType::Float => self.float(),
            ArgType::Bool => json!(self.one_in(2)),
            ArgType::Scalar | ArgType::Any => match self.below(4) {
                0 => self.float(),
                1 => json!(self.one_in(2)),
                2 if self.one_in(3) => self.complex(),
                _ => json!(self.int()),
            },
            ArgType::Complex => self.complex(),
            ArgType::Str => json!(self.of(&WORDS)),
            ArgType::DType => json!({ "dtype": self.of(&DTYPES).name() }),
            ArgType::Layout => json!({ "layout": "strided" }),
            ArgType::MemoryFormat => {
                let formats = ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"];
                json!({ "memory_format": self.of(&formats) })
            }
            ArgType::Device | ArgType::Generator => Json::Null,
            ArgType::Optional(inner) => {
                if self.one_in(2) {
                    Json::Null
                } else {
                    self.value(inner)
                }
            }
            ArgType::List(inner, n) => {
                let n = match n {
                    Some(n) if !self.one_in(4) => *n,
                    _ if self.one_in(2) => self.sizes.len().min(5),
                    _ => self.below(5),
                };
                (0..n).map(|_| self.value(inner)).collect()
            }
        }
    }

    fn call(&mut self, op: &Op) -> Json {
        let (mut args, mut kwargs) = (Vec::new(), serde_json::Map::new());
        let mut is_short = false;
        for spec in &op.schema.args {
            // What has a default is left at that in half of the calls, and all that follows with it.
            is_short = is_short || (spec.default.is_some() && self.one_in(2));
            if spec.default.is_some() && (is_short || (spec.is_kwarg_only && self.one_in(2))) {
                continue;
            }
            let value = self.value(&spec.ty);
            if spec.is_kwarg_only {
                kwargs.insert(spec.name.clone(), value);
            } else {
                args.push(value);
            }
        }
        json!({ "op": op.name, "args": args, "kwargs": kwargs })
    }
}
