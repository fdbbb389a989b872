//! The calls of single operators that PyTorch recorded, each as a program: those with a translation become models, some for
//! each operator. `TRACEFX_ONNX_CALLS=DIR` takes all, and writes the models there, for `tests/oracle/check_onnx.py --calls DIR` to run.

use crate::programs::{Program, symbol, tensor};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};
use tracefx_core::{Code, DType, Layout, MemoryFormat};
use tracefx_export::ExportedProgram;
use tracefx_ir::{Arg, NodeId, Val};
use tracefx_onnx::{Options, to_onnx, translated};
use tracefx_ops::registry;
use tracefx_sym::{SymBool, SymFloat, SymInt, Symbol};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

fn noted(json: &Json) -> Option<Val> {
    if let Some(items) = json.as_array() {
        return Some(Val::Seq { items: items.iter().map(noted).collect::<Option<_>>()?, is_tuple: true });
    }
    if let Some(kind) = json.get("number") {
        return Some(match kind.as_str()? {
            "int" => Val::Int(symbol("s0")),
            "float" => Val::Float(SymFloat::from(Symbol::from_name("zuf0"))),
            _ => Val::Bool(SymBool::gt(&symbol("s0"), &2.into())),
        });
    }
    let dtype = DType::from_name(json.get("tensor").and(json["dtype"].as_str())?)?;
    let sizes: Vec<SymInt> = json["size"].as_array()?.iter().filter_map(|it| it.as_i64().map(SymInt::from)).collect();
    Some(tensor(dtype, &sizes))
}

/// An argument; each tensor is an input of the program, which is noted in `inputs`.
fn argument(json: &Json, program: &mut Program, inputs: &mut Vec<Json>) -> Option<Arg> {
    let object = match json {
        Json::Null => return Some(Arg::None),
        Json::Bool(it) => return Some(Arg::Bool(*it)),
        Json::String(it) => return Some(Arg::str(it)),
        Json::Array(items) => {
            return items.iter().map(|it| argument(it, program, inputs)).collect::<Option<_>>().map(Arg::List);
        }
        Json::Number(_) => return None,
        Json::Object(it) => it,
    };
    if object.contains_key("tensor") || object.contains_key("number") {
        let name = format!("x{}", inputs.len());
        inputs.push(json.clone());
        return Some(program.input(&name, noted(json)?).into());
    }
    let (kind, it) = object.iter().next()?;
    Some(match kind.as_str() {
        "int" => Arg::Int(it.as_i64().or_else(|| it.as_str()?.parse().ok())?),
        "float" => Arg::Float(it.as_f64().or_else(|| it.as_str()?.parse().ok())?),
        "dtype" => Arg::DType(DType::from_name(it.as_str()?)?),
        "layout" => Arg::Layout(Layout::from_name(it.as_str()?)?),
        "device" => Arg::Device(it.as_str()?.parse().ok()?),
        "memory_format" => Arg::MemoryFormat(MemoryFormat::from_name(it.as_str()?)?),
        _ => return None,
    })
}

/// The program of a call, and what its inputs are; `None` where it takes or gives what programs do not.
pub(crate) fn program_of(call: &Json) -> Option<(ExportedProgram, Vec<Json>)> {
    let (mut program, mut inputs) = (Program::new(), Vec::new());
    let op = call["op"].as_str()?;
    let args =
        call["args"].as_array()?.iter().map(|it| argument(it, &mut program, &mut inputs)).collect::<Option<_>>()?;
    let mut kwargs = Vec::new();
    for (name, it) in call["kwargs"].as_object().into_iter().flatten() {
        kwargs.push((name.as_str().into(), argument(it, &mut program, &mut inputs)?));
    }
    let val = noted(call.get("result")?)?;
    let id = program.call(op, args, kwargs, val.clone());
    let results: Vec<NodeId> = match val {
        Val::Seq { items, .. } => {
            items.into_iter().enumerate().map(|(at, it)| program.item(id, at as i64, it)).collect()
        }
        _ => vec![id],
    };
    Some((program.finish(&results), inputs))
}

/// The recorded calls of a folder, with the file that has their data.
pub(crate) fn recorded(folder: &str) -> Vec<(PathBuf, Json)> {
    let mut files: Vec<PathBuf> = fs::read_dir(fixtures().join(folder)).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
    files.sort();
    let calls = files.iter().flat_map(|file| {
        let text = fs::read_to_string(file).unwrap();
        let calls = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Json>>();
        calls.into_iter().map(|call| (file.with_extension("safetensors"), call))
    });
    calls.collect()
}

/// The tolerance of a result, or of each of several.
fn tolerance(op: &str, result: &Json) -> Json {
    if let Some(items) = result.as_array() {
        return items.iter().map(|it| tolerance(op, it)).collect();
    }
    let dtype = result["dtype"].as_str().and_then(DType::from_name).unwrap_or(DType::Float32);
    let (relative, absolute) = registry().get(op).map_or((0.0, 0.0), |it| it.def.tolerance.for_dtype(dtype));
    json!([relative, absolute])
}

#[test]
fn recorded_calls_of_translated_operators_become_models() {
    let known: BTreeSet<&str> = translated().collect();
    let target = env::var_os("TRACEFX_ONNX_CALLS").map(PathBuf::from);
    let (mut seen, mut refused) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    let (mut n, mut manifest, mut counts) = (0, String::new(), BTreeMap::<String, usize>::new());
    let mut calls = recorded("opcases");
    calls.extend(recorded("opcalls"));
    if target.is_some() {
        calls.extend(recorded("dtypes"));
    }
    for (data, call) in calls {
        let Some(op) = call["op"].as_str().filter(|it| known.contains(it)) else { continue };
        let of_op = counts.entry(op.to_string()).or_default();
        *of_op += 1;
        if target.is_none() && *of_op > MOST_CALLS {
            continue;
        }
        let Some((program, inputs)) = program_of(&call) else { continue };
        match to_onnx(&program, &Options { metadata: false }) {
            Ok(model) => {
                seen.insert(op.to_string());
                if let Some(target) = &target {
                    fs::write(target.join(format!("{n}.onnx")), model).unwrap();
                    let result = &call["result"];
                    let line = json!({ "op": op, "file": format!("{n}.onnx"), "data": data, "inputs": inputs,
                        "result": result, "tolerance": tolerance(op, result), "call": call });
                    manifest += &format!("{line}\n");
                }
                n += 1;
            }
            Err(problem) => {
                assert_eq!(problem.code(), Code::NotImplemented, "{call}: {problem}");
                assert!(problem.help_text().is_some(), "{problem} says what to do");
                *refused.entry(format!("{op}: {}", problem.message())).or_default() += 1;
            }
        }
    }
    if let Some(target) = &target {
        fs::write(target.join("calls.jsonl"), manifest).unwrap();
        fs::write(target.join("refused.txt"), format!("{refused:#?}")).unwrap();
    }
    for line in include_str!("others.jsonl").lines() {
        let call: Json = serde_json::from_str(line).unwrap();
        let (program, _) = program_of(&call).unwrap_or_else(|| panic!("{line}"));
        to_onnx(&program, &Options { metadata: false }).unwrap_or_else(|it| panic!("{line}: {it}"));
        seen.insert(call["op"].as_str().unwrap().to_string());
    }
    let unseen: Vec<&str> = known.iter().filter(|it| !seen.contains(**it)).copied().collect();
    assert_eq!(unseen, OTHERWISE, "no call of these becomes a model: add one to others.jsonl");
    assert!(n >= 1000, "{n} recorded calls became models");
}

/// How many calls of an operator become models, where they are not written.
const MOST_CALLS: usize = 8;

/// Those that no call alone becomes a model of: `control` and `models` have programs with them.
const OTHERWISE: &[&str] = &[
    "aten._assert_async.msg",
    "aten._assert_scalar.default",
    "aten._assert_tensor_metadata.default",
    "aten._conj.default",
    "aten._fft_c2c.default",
    "aten._fft_c2r.default",
    "aten._fft_r2c.default",
    "aten._linalg_det.default",
    "aten.complex.default",
    "aten.polar.default",
    "aten.rrelu_with_noise_functional.default",
    "aten.sym_constrain_range_for_size.default",
    "aten.view_as_complex.default",
    "aten.view_as_real.default",
    "higher_order.cond",
    "higher_order.invoke_subgraph",
    "higher_order.map_impl",
    "higher_order.scan",
    "higher_order.while_loop",
    "higher_order.wrap_with_set_grad_enabled",
    "operator.getitem",
];
