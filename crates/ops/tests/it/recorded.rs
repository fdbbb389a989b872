//! The operator cases that PyTorch recorded, without their data: propagation gives the dtypes, sizes and strides of the
//! recorded results, in sizes that are known and in symbols. `TRACEFX_OPCASES=DIR` takes another directory.

#![allow(clippy::print_stderr, reason = "a test tells how much of the data it could run")]

use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use tracefx_core::{Code, DType, Diagnostic, Layout, MemoryFormat};
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::{Propagation, ShapeGuard, Symbols, Value, registry};
use tracefx_sym::{ShapeEnv, SymInt, Symbol, ValueRange};

type Known = Value<TensorMeta>;

/// A call, and what PyTorch gave.
struct Case {
    name: String,
    op: String,
    /// Under which the first tensor is recorded.
    first: Option<Json>,
    args: Vec<Known>,
    kwargs: Vec<(Str, Known)>,
    /// The words of the refusal where PyTorch refuses the call.
    result: Result<Json, String>,
}

/// Calls that PyTorch refuses for what only the data or a run shows: the operator, words of PyTorch's refusal, and the
/// number of cases.
const REFUSED_BY_DATA: &[(&str, &str, usize)] = &[
    ("aten._pack_padded_sequence.default", "must be sorted in decreasing order", 1),
    ("aten._pack_padded_sequence.default", "Length of all samples has to be greater than 0", 1),
    ("aten._pad_packed_sequence.default", "Expected total_length to be at least", 1),
    ("aten.bernoulli.default", "Expected p_in >= 0 && p_in <= 1", 1),
    ("aten.histogram.bin_ct", "range [nan, nan] is not finite", 1),
    ("aten.istft.default", "window overlap add min: 1", 3),
    ("aten.linalg_cholesky.default", "is not positive-definite", 2),
    ("aten.linalg_eig.default", "should not contain infs or NaNs", 1),
    ("aten.linalg_inv.default", "is singular", 2),
    ("aten.linalg_solve.default", "is singular", 2),
    ("aten.multinomial.default", "invalid multinomial distribution", 1),
    ("aten.multinomial.default", "contains either `inf`, `nan` or element < 0", 1),
    ("aten.poisson.default", "invalid Poisson rate", 1),
    ("aten.scatter.src", "is out of bounds for dimension", 1),
    ("aten.scatter_add.default", "is out of bounds for dimension", 1),
    ("aten.segment_reduce.default", "Expected all rows of lengths along axis to sum to", 1),
    ("aten.segment_reduce.default", "lengths contains negative value", 1),
];

/// Calls that PyTorch refuses when it computes, for what their arguments tell without data. Its propagation of fake tensors
/// takes them or does not know the operator, and so does ours: here the kernels refuse.
const REFUSED_BY_KERNELS: &[(&str, &str, usize)] = &[
    ("aten._pack_padded_sequence.default", "Expected `len(lengths)` to be equal to batch_size", 1),
    ("aten.as_strided_scatter.default", "are out of bounds for storage of size", 1),
    ("aten.bernoulli_.float", "bernoulli_ expects p to be in [0, 1]", 1),
    ("aten.ctc_loss.IntList", "Expected input_lengths to have value at most 7", 1),
    ("aten.ctc_loss.IntList", "input_lengths must be of size batch_size", 1),
    ("aten.ctc_loss.IntList", "Expected tensor to have size at least 5 at dimension 1", 1),
    ("aten.randint.default", "to - 1 is out of bounds for", 1),
    ("aten.random_.from", "is out of bounds for", 2),
    ("aten.randperm.default", "value cannot be converted to type uint8_t without overflow", 1),
    ("aten.smooth_l1_loss.default", "\"smooth_l1_cpu\" not implemented for", 2),
];

const OF_DATA: &str = "the results depend on the data of the arguments";
const OF_LENGTHS: &str = "a recurrent layer over packed sequences whose lengths are not known";

/// Calls that PyTorch takes and propagation does not, in sizes that are known: the operator, why, and the number of cases.
const SKIPPED: &[(&str, &str, usize)] = &[
    ("aten.gru.data", OF_LENGTHS, 4),
    ("aten.linalg_lstsq.default", OF_DATA, 6),
    ("aten.lstm.data", OF_LENGTHS, 5),
    ("aten.narrow.Tensor", OF_DATA, 7),
    ("aten.rnn_relu.data", OF_LENGTHS, 1),
    ("aten.rnn_tanh.data", OF_LENGTHS, 4),
    ("aten.tensor_split.tensor_indices_or_sections", OF_DATA, 19),
];

/// What propagation needs to know of sizes, in the words of its refusal of symbols, and the number of cases.
const SKIPPED_OF_SYMBOLS: &[(&str, usize)] = &[
    ("the number of pieces depends on the size", 151),
    ("whether this holds of the sizes of a run is not known", 191),
    ("a transform over sizes that are not known", 123),
    ("singular values of a matrix whose sizes are not known", 75),
    ("a histogram of points whose number of dimensions is not known", 56),
    (OF_DATA, 27),
    ("a size that is not known", 26),
    ("a covariance over a number of observations that is not known", 15),
    ("sequences of lengths that are not known", 4),
    ("a diagonal of sizes that are not known", 3),
    ("combinations of a number of elements that is not known", 2),
    ("as many powers as there are elements need a number of elements that is known", 2),
];

/// What became of cases, of which each is counted.
#[derive(Default)]
struct Counts {
    n_agreed: usize,
    /// By the row of a list and what it says.
    listed: BTreeMap<String, usize>,
    /// Cases that a test says nothing of, by the reason. New cases of any operator may be among them.
    left_out: BTreeMap<&'static str, usize>,
    failures: Vec<String>,
}

impl Counts {
    fn add(&mut self, what: impl Into<String>) {
        *self.listed.entry(what.into()).or_default() += 1;
    }

    fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    /// Fails where a case differs. Of all committed cases, as many agree as before or more, and those of each row of the
    /// lists are as many as it says.
    fn check(self, n_agreed: usize, listed: impl IntoIterator<Item = (String, usize)>) {
        let n_listed = self.listed.values().sum::<usize>();
        eprintln!("{} agree, {} differ, {n_listed} are listed", self.n_agreed, self.failures.len());
        self.listed.iter().for_each(|(what, n)| eprintln!("  listed {n}: {what}"));
        self.left_out.iter().for_each(|(what, n)| eprintln!("  left out {n}: {what}"));
        let n_failures = self.failures.len();
        assert!(self.failures.is_empty(), "{n_failures} cases differ:\n{}", self.failures.join("\n"));
        if !is_whole() {
            return;
        }
        assert_eq!(self.listed, listed.into_iter().collect(), "the lists are other cases than those that are met");
        assert!(self.n_agreed >= n_agreed, "{} agree where {n_agreed} did before", self.n_agreed);
    }
}

/// The row that an operator and these words are in.
fn row(list: &[(&str, &str, usize)], op: &str, words: &str) -> Option<String> {
    list.iter().find(|(it, part, _)| *it == op && words.contains(part)).map(|(op, part, _)| format!("{op}: {part}"))
}

fn rows(list: &[(&str, &str, usize)]) -> Vec<(String, usize)> {
    list.iter().map(|(op, part, n)| (format!("{op}: {part}"), *n)).collect()
}

/// The recorded cases that differ from PyTorch's on purpose, which the runner of whole folders leaves out too.
fn exceptions() -> Json {
    serde_json::from_str(include_str!("../../../../tests/conformance/ops.json")).expect("the exceptions are JSON")
}

fn is_different(exceptions: &Json, case: &Case) -> bool {
    let is_it = |it: &Json| it[0] == case.op && Some(&it[1]) == case.first.as_ref();
    exceptions["different"].as_array().unwrap().iter().any(is_it)
}

#[test]
fn recorded_results_have_the_shapes_that_propagation_gives() {
    let exceptions = exceptions();
    let (mut counts, mut n_different) = (Counts::default(), 0);
    for case in cases() {
        if is_different(&exceptions, &case) {
            n_different += 1;
            continue;
        }
        let symbols = Symbols::default();
        let got = Propagation::new(registry(), &symbols).call(&case.op, &case.args, &case.kwargs);
        let difference = match (got, &case.result) {
            (Err(problem), Ok(_)) if problem.code() == Code::NotImplemented => {
                match row(SKIPPED, &case.op, problem.message()) {
                    Some(row) => {
                        counts.add(row);
                        continue;
                    }
                    None => Some(problem.to_string()),
                }
            }
            (Err(problem), Ok(_)) => Some(problem.to_string()),
            (Err(problem), Err(_)) if problem.code() == Code::Internal => Some(problem.to_string()),
            (Err(_), Err(_)) => None,
            (Ok(_), Err(refusal)) => {
                let lists = [REFUSED_BY_DATA, REFUSED_BY_KERNELS];
                match lists.iter().find_map(|list| row(list, &case.op, refusal)) {
                    Some(row) => {
                        counts.add(row);
                        continue;
                    }
                    None => Some(format!("PyTorch refuses this: {refusal}")),
                }
            }
            (Ok(mut got), Ok(want)) => {
                let got = if got.len() == 1 { got.remove(0) } else { Value::List(got) };
                let mut free = exceptions["freeStrides"].as_object().unwrap().values();
                let has_strides = !free.any(|ops| ops.as_array().unwrap().iter().any(|it| *it == case.op));
                Comparison { has_strides, found: HashMap::new() }.difference(&got, want)
            }
        };
        match difference {
            None => counts.n_agreed += 1,
            Some(what) => counts.failures.push(format!("{} {}: {what}", case.op, case.name)),
        }
    }
    counts.check(11_856, [SKIPPED, REFUSED_BY_DATA, REFUSED_BY_KERNELS].into_iter().flat_map(rows));
    if is_whole() {
        assert_eq!(n_different, 8, "the exceptions are other cases");
    }
}

/// What a call gives in sizes that are known; nothing where PyTorch refuses it too, or the test above skips it.
fn known(case: &Case) -> Option<Vec<Known>> {
    let plain = Symbols::default();
    match Propagation::new(registry(), &plain).call(&case.op, &case.args, &case.kwargs) {
        Ok(got) => Some(got),
        Err(problem) => {
            let is_known = case.result.is_err() || problem.code() == Code::NotImplemented;
            assert!(is_known || is_different(&exceptions(), case), "{} {}: {problem}", case.op, case.name);
            None
        }
    }
}

const REFUSED: &str = "refused in sizes that are known";

/// Sizes in the place of which symbols stand give what the sizes give.
#[test]
fn symbols_give_what_the_sizes_give_for_which_they_stand() {
    let mut counts = Counts::default();
    for case in cases() {
        let Some(want) = known(&case) else {
            counts.leave_out(REFUSED);
            continue;
        };
        let mut sizes = Sizes::default();
        let args: Vec<Known> = case.args.iter().map(|it| sizes.symbolic(it)).collect();
        let kwargs: Vec<_> = case.kwargs.iter().map(|(key, it)| (key.clone(), sizes.symbolic(it))).collect();
        let symbols = Symbols::default();
        match Propagation::new(registry(), &symbols).call(&case.op, &args, &kwargs) {
            Ok(got) => {
                let got: Vec<Known> = got.iter().map(|it| sizes.known(it)).collect();
                if are_alike(&got, &want) {
                    counts.n_agreed += 1;
                } else {
                    counts.failures.push(format!("{} {}: {got:?} instead of {want:?}", case.op, case.name));
                }
            }
            Err(problem) => {
                let mut rows = SKIPPED_OF_SYMBOLS.iter();
                let row = rows.find(|(words, _)| problem.message().contains(words));
                match row.filter(|_| problem.code() == Code::NotImplemented) {
                    Some((words, _)) => counts.add(*words),
                    None => counts.failures.push(format!("{} {}: {problem}", case.op, case.name)),
                }
            }
        }
    }
    let skipped = SKIPPED_OF_SYMBOLS.iter().map(|(words, n)| (words.to_string(), *n));
    counts.check(10_895, skipped);
}

/// While a program is exported each size has a symbol of its own, and what an operator needs of them is guarded: the call gives
/// what it gives for the example, and is taken. The guards hold for the example.
#[test]
fn symbols_with_hints_are_taken_wherever_sizes_are() {
    let (mut counts, mut n_guards) = (Counts::default(), 0);
    for case in cases() {
        let Some(want) = known(&case) else {
            counts.leave_out(REFUSED);
            continue;
        };
        let mut sizes = Hinted::default();
        let args: Vec<Known> = case.args.iter().map(|it| sizes.symbolic(it)).collect();
        let kwargs: Vec<_> = case.kwargs.iter().map(|(key, it)| (key.clone(), sizes.symbolic(it))).collect();
        let mut env = ShapeEnv::new();
        sizes.0.keys().for_each(|it| env.constrain(it, ValueRange::at_least(2)).unwrap());
        let symbols = Symbols::exporting(env, sizes.0.clone());
        match Propagation::new(registry(), &symbols).call(&case.op, &args, &kwargs) {
            Ok(got) => {
                let got: Vec<Known> = got.iter().map(|it| sizes.known(it)).collect();
                let holds =
                    |it: &ShapeGuard| symbols.hint(&it.expr.clone().into()) == Some(tracefx_sym::Value::Bool(true));
                n_guards += symbols.guards().len();
                if are_alike_up_to_names(&got, &want) && symbols.guards().iter().all(holds) {
                    counts.n_agreed += 1;
                } else {
                    counts.failures.push(format!("{} {}: {got:?} instead of {want:?}", case.op, case.name));
                }
            }
            Err(problem) => counts.failures.push(format!("{} {}: {problem}", case.op, case.name)),
        }
    }
    counts.check(11_540, []);
    assert!(!is_whole() || n_guards > 9_000, "only {n_guards} guards were made");
}

/// Operators that check sizes only where they are numbers: a run refuses what a guard could have said before. With the number
/// of calls that it refuses.
const UNGUARDED: &[(&str, usize)] = &[("aten._pdist_backward.default", 51)];

const NO_SYMBOLS: &str = "no size is one for which a symbol stands";
const NO_OTHERS: &str = "the guards allow no larger sizes of these steps";

/// What guards allow, operators take, and what they gave for symbols is what they give for the sizes.
#[test]
fn guards_say_all_that_operators_need() {
    let mut counts = Counts::default();
    for case in cases() {
        let mut sizes = Hinted::default();
        let args: Vec<Known> = case.args.iter().map(|it| sizes.symbolic(it)).collect();
        let kwargs: Vec<_> = case.kwargs.iter().map(|(key, it)| (key.clone(), sizes.symbolic(it))).collect();
        let mut env = ShapeEnv::new();
        sizes.0.keys().for_each(|it| env.constrain(it, ValueRange::at_least(2)).unwrap());
        let symbols = Symbols::exporting(env, sizes.0.clone());
        let Ok(got) = Propagation::new(registry(), &symbols).call(&case.op, &args, &kwargs) else {
            // The test above has shown that symbols are taken wherever sizes are.
            counts.leave_out(REFUSED);
            continue;
        };
        if sizes.0.is_empty() {
            counts.leave_out(NO_SYMBOLS);
            continue;
        }
        for step in 1..=3 {
            let Some(other) = sizes.other(&symbols, step) else {
                counts.leave_out(NO_OTHERS);
                continue;
            };
            let args: Vec<Known> = args.iter().map(|it| other.known(it)).collect();
            let kwargs: Vec<_> = kwargs.iter().map(|(key, it)| (key.clone(), other.known(it))).collect();
            let plain = Symbols::default();
            match Propagation::new(registry(), &plain).call(&case.op, &args, &kwargs) {
                Ok(want) => {
                    let got: Vec<Known> = got.iter().map(|it| other.known(it)).collect();
                    if are_alike_up_to_names(&got, &want) {
                        counts.n_agreed += 1;
                    } else {
                        let what = format!("{} {}: {got:?} instead of {want:?}", case.op, case.name);
                        counts.failures.push(format!("{what} for {:?}", other.0));
                    }
                }
                Err(_) if UNGUARDED.iter().any(|(op, _)| *op == case.op) => counts.add(case.op.as_str()),
                Err(problem) => counts.failures.push(format!("{} {}: {problem} for {:?}", case.op, case.name, other.0)),
            }
        }
    }
    counts.check(24_840, UNGUARDED.iter().map(|&(what, n)| (what.to_string(), n)));
}

/// Whether all committed cases are run.
fn is_whole() -> bool {
    ["TRACEFX_ONLY", "TRACEFX_OPCASES"].iter().all(|it| std::env::var_os(it).is_none())
}

fn cases() -> impl Iterator<Item = Case> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let dirs = match std::env::var_os("TRACEFX_OPCASES") {
        Some(dir) => vec![PathBuf::from(dir)],
        None => vec![fixtures.join("opcases"), fixtures.join("opcalls")],
    };
    let only = std::env::var("TRACEFX_ONLY").unwrap_or_default();
    let files = dirs.into_iter().flat_map(|dir| std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()));
    let mut files: Vec<PathBuf> = files.filter(|it| it.extension().is_some_and(|it| it == "jsonl")).collect();
    files.retain(|it| it.to_string_lossy().contains(&only));
    files.sort();
    files.into_iter().flat_map(|file| {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_stem().unwrap().to_string_lossy().to_string();
        let cases: Vec<Case> =
            text.lines().enumerate().map(|(at, line)| read_case(format!("{name}:{}", at + 1), line)).collect();
        cases
    })
}

fn read_case(name: String, line: &str) -> Case {
    let json: Json = serde_json::from_str(line).unwrap();
    let op = json["op"].as_str().expect("a case names its operator").to_string();
    assert!(registry().get(&op).is_some(), "{name}: {op} is not in the registry");
    let read = |it: &Json| read(it).unwrap_or_else(|| panic!("{name}: odd argument {it}"));
    let args = json["args"].as_array().unwrap().iter().map(read).collect();
    let kwargs = json["kwargs"].as_object().unwrap().iter();
    let kwargs = kwargs.map(|(key, it)| (Str::from(key.as_str()), read(it))).collect();
    let first = json["args"][0].get("tensor").cloned();
    let result = match json.get("error").filter(|it| !it.is_null()) {
        Some(error) => Err(error["message"].as_str().or(error.as_str()).expect("a refusal has words").to_string()),
        None => Ok(json["result"].clone()),
    };
    Case { first, op, args, kwargs, result, name }
}

fn read(json: &Json) -> Option<Known> {
    Some(match json {
        Json::Null => Value::None,
        Json::Bool(it) => Value::Bool(*it),
        Json::String(it) => Value::Str(it.as_str().into()),
        Json::Array(items) => Value::List(items.iter().map(read).collect::<Option<_>>()?),
        Json::Number(_) => return None,
        Json::Object(map) if map.contains_key("tensor") => Value::Tensor(read_tensor(json)?),
        Json::Object(map) => {
            let (key, it) = map.iter().next()?;
            match key.as_str() {
                "int" => Value::int(it.as_i64().or_else(|| it.as_str()?.parse().ok())?),
                "float" => Value::Float(it.as_f64().or_else(|| it.as_str()?.parse().ok())?),
                "dtype" => Value::DType(DType::from_name(it.as_str()?)?),
                "layout" => Value::Layout(Layout::from_name(it.as_str()?)?),
                "device" => Value::Device(it.as_str()?.parse().ok()?),
                "memory_format" => Value::MemoryFormat(MemoryFormat::from_name(it.as_str()?)?),
                _ => return None,
            }
        }
    })
}

fn read_tensor(json: &Json) -> Option<TensorMeta> {
    let dims = |it: &Json| it.as_array()?.iter().map(|it| it.as_i64().map(SymInt::from)).collect::<Option<Vec<_>>>();
    let meta = TensorMeta::contiguous(DType::from_name(json["dtype"].as_str()?)?, dims(&json["size"])?);
    match json.get("stride") {
        Some(strides) => Some(TensorMeta { strides: dims(strides)?, ..meta }),
        None => Some(meta),
    }
}

/// A symbol stands for whatever was recorded in its place, everywhere the same.
struct Comparison {
    has_strides: bool,
    found: HashMap<String, SymInt>,
}

impl Comparison {
    /// The first difference.
    fn difference(&mut self, got: &Known, want: &Json) -> Option<String> {
        if let (Value::List(got), Json::Array(want)) = (got, want) {
            if got.len() != want.len() {
                return Some(format!("{} values instead of {}", got.len(), want.len()));
            }
            return got.iter().zip(want).find_map(|(got, want)| self.difference(got, want));
        }
        let agrees = match (got, read(want)?) {
            (Value::Tensor(got), Value::Tensor(recorded)) => self.is_same_tensor(got, &recorded, want),
            (Value::Int(got), Value::Int(want)) => self.is_same(got, &want),
            (Value::SymFloat(_), Value::Float(_)) | (Value::SymBool(_), Value::Bool(_)) => true,
            (Value::Float(got), Value::Float(want)) => *got == want || (got.is_nan() && want.is_nan()),
            (got, want) => *got == want,
        };
        (!agrees).then(|| format!("{got:?} instead of {want}"))
    }

    fn is_same_tensor(&mut self, got: &TensorMeta, want: &TensorMeta, json: &Json) -> bool {
        if got.dtype != want.dtype || got.sizes.len() != want.sizes.len() {
            return false;
        }
        if !got.sizes.iter().zip(&want.sizes).all(|(got, want)| self.is_same(got, want)) {
            return false;
        }
        let count: i64 = want.sizes.iter().filter_map(SymInt::as_int).product();
        let steps = want.sizes.iter().zip(&got.strides);
        let last: i64 = steps.filter_map(|(size, stride)| Some((size.as_int()? - 1) * stride.as_int()?)).sum();
        // Without strides the result was contiguous, or too sparse to be recorded with its gaps.
        if !self.has_strides || count == 0 || (json.get("stride").is_none() && last + 1 > 4 * count) {
            return true;
        }
        let mut dims = want.sizes.iter().zip(got.strides.iter().zip(&want.strides));
        dims.all(|(size, (got, want))| *size == 1 || self.is_same(got, want))
    }

    fn is_same(&mut self, got: &SymInt, want: &SymInt) -> bool {
        if let Some(symbol) = got.as_symbol() {
            return self.found.entry(symbol.name().to_string()).or_insert_with(|| want.clone()) == want;
        }
        got.substitute(&|it| self.found.get(it.name()).cloned()) == *want
    }
}

/// Symbols, one for each size.
#[derive(Default)]
struct Sizes(BTreeMap<i64, Symbol>);

impl Sizes {
    /// The value with a symbol for each size of a row-major tensor that is not 0 or 1.
    fn symbolic(&mut self, value: &Known) -> Known {
        let map = &mut |meta: &TensorMeta| {
            if *meta != TensorMeta::contiguous(meta.dtype, meta.sizes.clone()) {
                return Ok::<_, Diagnostic>(meta.clone());
            }
            let symbol = |size: &SymInt| match size.as_int() {
                Some(known @ 2..) => {
                    let number = self.0.len();
                    SymInt::from(self.0.entry(known).or_insert_with(|| Symbol::size(format!("s{number}"))).clone())
                }
                _ => size.clone(),
            };
            let sizes = meta.sizes.iter().map(symbol).collect();
            Ok(TensorMeta::contiguous(meta.dtype, sizes))
        };
        value.try_map(map).unwrap()
    }

    fn size_of(&self, dim: &SymInt) -> SymInt {
        let size = |symbol: &Symbol| self.0.iter().find(|(_, it)| *it == symbol).map(|(size, _)| SymInt::from(*size));
        dim.substitute(&size)
    }

    fn known(&self, value: &Known) -> Known {
        let dims = |dims: &[SymInt]| dims.iter().map(|it| self.size_of(it)).collect::<Vec<_>>();
        let map = &mut |meta: &TensorMeta| {
            let storage_offset = self.size_of(&meta.storage_offset);
            let (sizes, strides) = (dims(&meta.sizes), dims(&meta.strides));
            Ok::<_, Diagnostic>(TensorMeta { sizes, strides, storage_offset, ..meta.clone() })
        };
        match value {
            Value::Int(it) => Value::Int(self.size_of(it)),
            Value::List(items) => Value::List(items.iter().map(|it| self.known(it)).collect()),
            other => match other.as_expr() {
                Some(expr) => expr
                    .substitute(&|it| self.0.iter().find(|(_, own)| *own == it).map(|(size, _)| SymInt::from(*size)))
                    .into(),
                None => other.try_map(map).unwrap(),
            },
        }
    }
}

/// Whether these are as many, and the same but for strides that no element is told by.
fn are_alike(got: &[Known], want: &[Known]) -> bool {
    got.len() == want.len() && got.iter().zip(want).all(|(got, want)| is_alike(got, want))
}

/// Whether these are alike, or the same but for the numbers of the symbols that the data decides: guards make a rule run again,
/// which takes further numbers.
fn are_alike_up_to_names(got: &[Known], want: &[Known]) -> bool {
    are_alike(got, want) || renumbered(got) == renumbered(want)
}

/// How values are printed, with new symbols numbered in the order in which they stand there.
fn renumbered(values: &[Known]) -> String {
    let text = format!("{values:?}");
    let (mut res, mut seen) = (String::new(), Vec::new());
    for word in text.split_inclusive(|it: char| !it.is_alphanumeric()) {
        let (name, end) = match word.char_indices().next_back() {
            Some((at, it)) if !it.is_alphanumeric() => word.split_at(at),
            _ => (word, ""),
        };
        let is_new = name.strip_prefix('u').is_some_and(|it| it.parse::<u32>().is_ok());
        if !is_new {
            res += word;
            continue;
        }
        let at = seen.iter().position(|it| *it == name).unwrap_or_else(|| {
            seen.push(name);
            seen.len() - 1
        });
        res += &format!("u{at}{end}");
    }
    res
}

/// Whether these are the same but for strides that no element is told by.
fn is_alike(got: &Known, want: &Known) -> bool {
    match (got, want) {
        (Value::Tensor(got), Value::Tensor(want)) if want.sizes.contains(&SymInt::ZERO) => {
            (got.dtype, &got.sizes) == (want.dtype, &want.sizes)
        }
        (Value::List(got), Value::List(want)) => are_alike(got, want),
        _ => got == want,
    }
}

/// A symbol for each size that is not 0 or 1, with its value.
#[derive(Default)]
struct Hinted(BTreeMap<Symbol, i64>);

impl Hinted {
    fn symbolic(&mut self, value: &Known) -> Known {
        let map = &mut |meta: &TensorMeta| {
            if *meta != TensorMeta::contiguous(meta.dtype, meta.sizes.clone()) {
                return Ok::<_, Diagnostic>(meta.clone());
            }
            let symbol = |size: &SymInt| match size.as_int() {
                Some(known @ 2..) => {
                    let symbol = Symbol::size(format!("s{}", self.0.len()));
                    self.0.insert(symbol.clone(), known);
                    symbol.into()
                }
                _ => size.clone(),
            };
            Ok(TensorMeta::contiguous(meta.dtype, meta.sizes.iter().map(symbol).collect()))
        };
        value.try_map(map).unwrap()
    }

    /// Other sizes that the guards allow: each symbol that is left is larger by some steps.
    fn other(&self, symbols: &Symbols, step: i64) -> Option<Hinted> {
        let left = |symbol: &Symbol| symbols.replace(&SymInt::from(symbol.clone()).into());
        let mut larger = BTreeMap::new();
        for (at, (symbol, value)) in self.0.iter().enumerate() {
            if left(symbol).as_int().is_some_and(|it| it.as_symbol() == Some(symbol)) {
                larger.insert(symbol.clone(), value + step * (1 + at as i64 % 3));
            }
        }
        let int = |it: &Symbol| larger.get(it).map(|it| tracefx_sym::Value::Int(*it));
        let mut all = BTreeMap::new();
        for symbol in self.0.keys() {
            let tracefx_sym::Value::Int(value) = left(symbol).eval(&int).ok()? else { return None };
            all.insert(symbol.clone(), value);
        }
        let env = symbols.env();
        let in_range =
            all.iter().all(|(symbol, value)| env.declared_range(symbol).is_none_or(|it| it.contains(*value)));
        let int = |it: &Symbol| all.get(it).map(|it| tracefx_sym::Value::Int(*it));
        let holds = |it: &ShapeGuard| it.expr.eval(&int) == Ok(true);
        (!larger.is_empty() && in_range && symbols.guards().iter().all(holds)).then_some(Hinted(all))
    }

    fn known(&self, value: &Known) -> Known {
        let size = |symbol: &Symbol| self.0.get(symbol).map(|it| SymInt::from(*it));
        let dims = |dims: &[SymInt]| dims.iter().map(|it| it.substitute(&size)).collect::<Vec<_>>();
        let map = &mut |meta: &TensorMeta| {
            let storage_offset = meta.storage_offset.substitute(&size);
            let (sizes, strides) = (dims(&meta.sizes), dims(&meta.strides));
            Ok::<_, Diagnostic>(TensorMeta { sizes, strides, storage_offset, ..meta.clone() })
        };
        match value {
            Value::Int(it) => Value::Int(it.substitute(&size)),
            Value::List(items) => Value::List(items.iter().map(|it| self.known(it)).collect()),
            other => match other.as_expr() {
                Some(expr) => expr.substitute(&size).into(),
                None => other.try_map(map).unwrap(),
            },
        }
    }
}
