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
    /// Nothing where PyTorch refuses the call.
    result: Option<Json>,
}

#[test]
fn recorded_results_have_the_shapes_that_propagation_gives() {
    let (mut n_agreed, mut skipped, mut failures) = (0, BTreeMap::<String, usize>::new(), Vec::new());
    let exceptions: Json =
        serde_json::from_str(include_str!("../../../tests/conformance/ops.json")).expect("the exceptions are JSON");
    for case in cases() {
        let is_different = |it: &Json| it[0] == case.op && Some(&it[1]) == case.first.as_ref();
        if exceptions["different"].as_array().unwrap().iter().any(is_different) {
            continue;
        }
        let symbols = Symbols::default();
        let got = Propagation::new(registry(), &symbols).call(&case.op, &case.args, &case.kwargs);
        let difference = match (got, &case.result) {
            (Err(problem), _) if problem.code() == Code::NotImplemented => {
                *skipped.entry(format!("{}: {}", case.op, problem.message())).or_default() += 1;
                continue;
            }
            (Err(problem), Some(_)) => Some(problem.to_string()),
            // What PyTorch refuses may be in the data.
            (_, None) => None,
            (Ok(mut got), Some(want)) => {
                let got = if got.len() == 1 { got.remove(0) } else { Value::List(got) };
                let mut free = exceptions["freeStrides"].as_object().unwrap().values();
                let has_strides = !free.any(|ops| ops.as_array().unwrap().iter().any(|it| *it == case.op));
                Comparison { has_strides, found: HashMap::new() }.difference(&got, want)
            }
        };
        match difference {
            None => n_agreed += 1,
            Some(what) => failures.push(format!("{}: {what}", case.name)),
        }
    }
    eprintln!("{n_agreed} agree, {} differ, {} are skipped", failures.len(), skipped.values().sum::<usize>());
    skipped.iter().for_each(|(what, n)| eprintln!("  skipped {n}: {what}"));
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
    assert!(n_agreed > 0, "there are no cases");
}

/// Sizes in the place of which symbols stand give what the sizes give.
#[test]
fn symbols_give_what_the_sizes_give_for_which_they_stand() {
    let (mut n_agreed, mut skipped, mut failures) = (0, BTreeMap::<String, usize>::new(), Vec::new());
    for case in cases() {
        let plain = Symbols::default();
        let Ok(want) = Propagation::new(registry(), &plain).call(&case.op, &case.args, &case.kwargs) else { continue };
        let mut sizes = Sizes::default();
        let args: Vec<Known> = case.args.iter().map(|it| sizes.symbolic(it)).collect();
        let kwargs: Vec<_> = case.kwargs.iter().map(|(key, it)| (key.clone(), sizes.symbolic(it))).collect();
        let symbols = Symbols::default();
        match Propagation::new(registry(), &symbols).call(&case.op, &args, &kwargs) {
            Ok(got) => {
                let got: Vec<Known> = got.iter().map(|it| sizes.known(it)).collect();
                let agrees = got.iter().zip(&want).all(|(got, want)| is_alike(got, want));
                if agrees || want.iter().any(holds_symbols) {
                    n_agreed += 1;
                } else {
                    failures.push(format!("{}: {got:?} instead of {want:?}", case.name));
                }
            }
            Err(problem) if problem.code() == Code::NotImplemented => {
                *skipped.entry(format!("{}: {}", case.op, problem.message())).or_default() += 1;
            }
            Err(problem) => failures.push(format!("{}: {problem}", case.name)),
        }
    }
    eprintln!("{n_agreed} agree, {} differ, {} are skipped", failures.len(), skipped.values().sum::<usize>());
    skipped.iter().for_each(|(what, n)| eprintln!("  skipped {n}: {what}"));
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

/// While a program is exported each size has a symbol of its own, and what an operator needs of them is guarded: the call gives
/// what it gives for the example, and is taken. The guards hold for the example.
#[test]
fn symbols_with_hints_are_taken_wherever_sizes_are() {
    let (mut n_agreed, mut n_guards, mut failures) = (0, 0, Vec::new());
    for case in cases() {
        let plain = Symbols::default();
        let Ok(want) = Propagation::new(registry(), &plain).call(&case.op, &case.args, &case.kwargs) else { continue };
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
                let agrees = got.iter().zip(&want).all(|(got, want)| is_alike(got, want));
                if (agrees || want.iter().any(holds_symbols)) && symbols.guards().iter().all(holds) {
                    n_agreed += 1;
                } else {
                    failures.push(format!("{}: {got:?} instead of {want:?}", case.name));
                }
            }
            Err(problem) => failures.push(format!("{} {}: {problem}", case.op, case.name)),
        }
    }
    eprintln!("{n_agreed} agree with {n_guards} guards, {} differ", failures.len());
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

/// Operators that check sizes only where they are numbers: a run refuses what a guard could have said before.
const UNGUARDED: &[&str] = &["aten._pdist_backward.default"];

/// What guards allow, operators take, and what they gave for symbols is what they give for the sizes.
#[test]
fn guards_say_all_that_operators_need() {
    let (mut n_agreed, mut failures) = (0, Vec::new());
    for case in cases() {
        let mut sizes = Hinted::default();
        let args: Vec<Known> = case.args.iter().map(|it| sizes.symbolic(it)).collect();
        let kwargs: Vec<_> = case.kwargs.iter().map(|(key, it)| (key.clone(), sizes.symbolic(it))).collect();
        let mut env = ShapeEnv::new();
        sizes.0.keys().for_each(|it| env.constrain(it, ValueRange::at_least(2)).unwrap());
        let symbols = Symbols::exporting(env, sizes.0.clone());
        let Ok(got) = Propagation::new(registry(), &symbols).call(&case.op, &args, &kwargs) else { continue };
        for step in 1..=3 {
            let Some(other) = sizes.other(&symbols, step) else { continue };
            let args: Vec<Known> = args.iter().map(|it| other.known(it)).collect();
            let kwargs: Vec<_> = kwargs.iter().map(|(key, it)| (key.clone(), other.known(it))).collect();
            let plain = Symbols::default();
            match Propagation::new(registry(), &plain).call(&case.op, &args, &kwargs) {
                Ok(want) => {
                    let got: Vec<Known> = got.iter().map(|it| other.known(it)).collect();
                    let agrees = got.iter().zip(&want).all(|(got, want)| is_alike(got, want));
                    if agrees || want.iter().any(holds_symbols) {
                        n_agreed += 1;
                    } else {
                        failures
                            .push(format!("{} {}: {got:?} instead of {want:?} for {:?}", case.op, case.name, other.0));
                    }
                }
                Err(_) if UNGUARDED.contains(&case.op.as_str()) => {}
                Err(problem) => failures.push(format!("{} {}: {problem} for {:?}", case.op, case.name, other.0)),
            }
        }
    }
    eprintln!("{n_agreed} agree, {} differ", failures.len());
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
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
            text.lines().enumerate().filter_map(|(at, line)| read_case(format!("{name}:{}", at + 1), line)).collect();
        cases
    })
}

/// Nothing for an operator that is not registered, or an argument that propagation does not know.
fn read_case(name: String, line: &str) -> Option<Case> {
    let json: Json = serde_json::from_str(line).unwrap();
    let op = json["op"].as_str()?.to_string();
    registry().get(&op)?;
    let args = json["args"].as_array()?.iter().map(read).collect::<Option<_>>()?;
    let kwargs = json["kwargs"].as_object()?.iter();
    let kwargs = kwargs.map(|(key, it)| Some((Str::from(key.as_str()), read(it)?))).collect::<Option<_>>()?;
    let is_refused = json.get("error").is_some_and(|it| !it.is_null());
    let first = json["args"][0].get("tensor").cloned();
    Some(Case { name, op, first, args, kwargs, result: (!is_refused).then(|| json["result"].clone()) })
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

/// Whether these are the same but for strides that no element is told by.
fn is_alike(got: &Known, want: &Known) -> bool {
    match (got, want) {
        (Value::Tensor(got), Value::Tensor(want)) if want.sizes.contains(&SymInt::ZERO) => {
            (got.dtype, &got.sizes) == (want.dtype, &want.sizes)
        }
        (Value::List(got), Value::List(want)) => {
            got.len() == want.len() && got.iter().zip(want).all(|(got, want)| is_alike(got, want))
        }
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

fn holds_symbols(value: &Known) -> bool {
    match value {
        Value::Tensor(meta) => meta.sizes.iter().chain(&meta.strides).any(SymInt::is_symbolic),
        Value::Int(it) => it.is_symbolic(),
        Value::SymBool(_) | Value::SymFloat(_) => true,
        Value::List(items) => items.iter().any(holds_symbols),
        _ => false,
    }
}
