//! Programs whose calls and notes contradict each other, as a file may state them, are translated or refused: nothing panics,
//! and nothing is allocated on their word.

use crate::calls::{program_of, recorded};
use crate::programs::tensor;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracefx_core::DType;
use tracefx_export::ExportedProgram;
use tracefx_ir::{Arg, NodeId, Opcode, Str, Val};
use tracefx_onnx::{Options, to_onnx, translated};

/// A change of a program, and what it is called where it makes the translation panic.
type Change = (String, Box<dyn Fn(&mut ExportedProgram)>);

/// Arguments that no schema, or no rule of shapes, expects.
fn wrong_arguments() -> Vec<Arg> {
    let ints = |it: &[i64]| Arg::List(it.iter().copied().map(Arg::Int).collect());
    vec![
        Arg::None,
        Arg::Bool(true),
        Arg::Int(-7),
        Arg::Int(7),
        Arg::Int(i64::MIN),
        Arg::Int(i64::MAX),
        Arg::Float(f64::NAN),
        Arg::str("x"),
        ints(&[]),
        ints(&[-3]),
        ints(&[0, 0]),
        ints(&[9, 9, 9, 9, 9, 9, 9, 9, 9]),
        ints(&[i64::MAX, 1 << 40]),
    ]
}

/// Notes of values that the operator does not give.
fn wrong_notes() -> Vec<Option<Val>> {
    let sized = |dtype, sizes: &[i64]| tensor(dtype, &sizes.iter().map(|&it| it.into()).collect::<Vec<_>>());
    vec![
        None,
        Some(sized(DType::Float32, &[])),
        Some(sized(DType::Float32, &[0])),
        Some(sized(DType::Int64, &[2, 3, 4, 5, 6, 7])),
        Some(sized(DType::Bool, &[1 << 40, 1 << 40])),
        Some(sized(DType::Complex64, &[2, 2])),
        Some(Val::Int(3.into())),
        Some(Val::Seq { items: Vec::new(), is_tuple: true }),
    ]
}

fn changes(program: &ExportedProgram) -> Vec<Change> {
    let graph = &program.module.graph;
    let mut res: Vec<Change> = Vec::new();
    for id in graph.nodes() {
        let node = graph.node(id);
        if node.op() == Opcode::Output {
            continue;
        }
        for (at, note) in wrong_notes().into_iter().enumerate() {
            res.push((
                format!("note {at} of {}", node.name()),
                Box::new(move |it| it.module.graph.meta_mut(id).val.clone_from(&note)),
            ));
        }
        for place in 0..node.args().len() {
            for wrong in wrong_arguments() {
                let name = format!("{wrong:?} as argument {place} of {}", node.name());
                res.push((name, Box::new(move |it| with_arguments(it, id, |args, _| args[place] = wrong.clone()))));
            }
            let name = format!("{place} arguments of {}", node.name());
            res.push((name, Box::new(move |it| with_arguments(it, id, |args, _| args.truncate(place)))));
        }
        for place in 0..node.kwargs().len() {
            for wrong in wrong_arguments() {
                let name = format!("{wrong:?} as `{}` of {}", node.kwargs()[place].0, node.name());
                res.push((
                    name,
                    Box::new(move |it| with_arguments(it, id, |_, kwargs| kwargs[place].1 = wrong.clone())),
                ));
            }
        }
    }
    res
}

/// Changes the arguments of a node, and keeps what is noted of it.
fn with_arguments(program: &mut ExportedProgram, id: NodeId, change: impl FnOnce(&mut Vec<Arg>, &mut Vec<(Str, Arg)>)) {
    let graph = &mut program.module.graph;
    let node = graph.node(id);
    let (mut args, mut kwargs, val) = (node.args().to_vec(), node.kwargs().to_vec(), node.meta.val.clone());
    change(&mut args, &mut kwargs);
    graph.set_args(id, args).unwrap();
    graph.set_kwargs(id, kwargs).unwrap();
    graph.meta_mut(id).val = val;
}

#[test]
fn contradictory_programs_are_refused() {
    let known: BTreeSet<&str> = translated().collect();
    let mut counts = BTreeMap::<String, usize>::new();
    let mut calls: Vec<Json> = recorded("opcases").into_iter().chain(recorded("opcalls")).map(|(_, it)| it).collect();
    calls.extend(include_str!("others.jsonl").lines().map(|it| serde_json::from_str(it).unwrap()));
    let (mut n, mut panics) = (0, BTreeMap::<String, String>::new());
    for call in calls {
        let Some(op) = call["op"].as_str().filter(|it| known.contains(it)) else { continue };
        let of_op = counts.entry(op.to_string()).or_default();
        *of_op += 1;
        if *of_op > 1 {
            continue;
        }
        let Some((program, _)) = program_of(&call) else { continue };
        for (name, change) in changes(&program) {
            let mut changed = program.clone();
            change(&mut changed);
            n += 1;
            let options = Options { metadata: false };
            if catch_unwind(AssertUnwindSafe(|| drop(to_onnx(&changed, &options)))).is_err() {
                panics.entry(op.to_string()).or_insert(name);
            }
        }
    }
    assert!(panics.is_empty(), "the translation panics for {} operators: {panics:#?}", panics.len());
    assert!(n > 10_000, "{n} programs were tried");
}
