//! Where two programs differ: what `tracefx diff` shows. Nodes are matched as the explorer matches them (`ts/src/explorer/diff.ts`), and
//! `tests/golden/command` holds both commands to the same lines.

mod matching;
mod nodes;

use crate::tensors::with_elements;
use matching::{Matching, Renaming};
use nodes::Nodes;
use serde::Serialize;
use std::collections::HashMap;
use tracefx_core::{Result, Tensor};
use tracefx_export::{Argument, Constant, ExportedProgram, InputSpec, OutputSpec};

/// Something that one program has and the other has not, or has otherwise: a line of the first, and of the second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The line of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The line of the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Where two programs differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProgramDiff {
    /// Whether they differ nowhere.
    pub is_same: bool,
    /// Nodes, those of the graphs of branches and loops among them, in the order of the programs.
    pub graph: Vec<Difference>,
    /// Inputs and outputs by place. Outputs are told without the names of their nodes, which exports choose as they like.
    pub signature: Vec<Difference>,
    /// The ranges of symbols by place: exports name symbols as they like.
    pub constraints: Vec<Difference>,
    /// Parameters, buffers and constants by name.
    pub tensors: Vec<Difference>,
}

/// Compares two programs. Nodes of one operator are matched by their arguments, then by their inputs, then by name, so that other names of
/// nodes and symbols are no differences. The values of parameters, buffers and constants are compared, bit by bit.
///
/// ```
/// use tracefx_core::Tensor;
/// use tracefx_engine::{Library, diff_programs};
/// use tracefx_ir::{Graph, GraphModule};
/// use tracefx_ops::Value;
///
/// let exported = |target: &str| {
///     let mut graph = Graph::new();
///     let x = graph.placeholder("x");
///     let y = graph.call_function(target, vec![x.into()], vec![]);
///     graph.output(y.into());
///     let x = Value::Tensor(Tensor::from_slice(&[-1.0f32, 2.0], &[2])?);
///     Library::default().export(&GraphModule::new(graph), &[x])
/// };
/// let (before, after) = (exported("torch.relu")?, exported("torch.sigmoid")?);
/// assert!(diff_programs(&before, &before)?.is_same);
/// let diff = diff_programs(&before, &after)?;
/// assert!(diff.graph[0].before.as_ref().unwrap().contains("aten.relu.default"));
/// assert!(diff.graph[1].after.as_ref().unwrap().contains("aten.sigmoid.default"));
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `OutOfMemory` where tensors that are not row-major cannot be copied.
pub fn diff_programs(before: &ExportedProgram, after: &ExportedProgram) -> Result<ProgramDiff> {
    let graph = graph_diff(before, after);
    let specs = |it: &ExportedProgram| -> (Vec<String>, Vec<String>) {
        let signature = &it.signature;
        (
            signature.input_specs.iter().map(input).collect(),
            signature.output_specs.iter().enumerate().map(output).collect(),
        )
    };
    let ((inputs, outputs), (other_inputs, other_outputs)) = (specs(before), specs(after));
    let signature = [by_place(&inputs, &other_inputs), by_place(&outputs, &other_outputs)].concat();
    let constraints = by_place(&ranges(before), &ranges(after));
    let tensors = tensor_diff(before, after)?;
    let is_same = [&graph, &signature, &constraints, &tensors].iter().all(|it| it.is_empty());
    Ok(ProgramDiff { is_same, graph, signature, constraints, tensors })
}

fn graph_diff(before: &ExportedProgram, after: &ExportedProgram) -> Vec<Difference> {
    let (first, second) = (Nodes::of(before), Nodes::of(after));
    let matching = Matching::of(&first, &second);
    let (mut res, mut symbols, mut next) = (Vec::new(), Renaming::default(), 0);
    // What is added stands where the second program has it: before the match of what comes next in the first.
    let mut add_until = |end: usize, res: &mut Vec<Difference>| {
        for at in next..end {
            if !matching.is_taken(at) {
                res.push(Difference { before: None, after: Some(second.line(at)) });
            }
        }
        next = next.max(end);
    };
    for at in 0..first.items.len() {
        let Some(other) = matching.of_before(at) else {
            res.push(Difference { before: Some(first.line(at)), after: None });
            continue;
        };
        add_until(other, &mut res);
        if matching.differs(at, other, &mut symbols) {
            res.push(Difference { before: Some(first.line(at)), after: Some(second.line(other)) });
        }
    }
    add_until(second.items.len(), &mut res);
    res
}

fn input(it: &InputSpec) -> String {
    let target = it.target.as_ref().map(|it| format!(" {it}")).unwrap_or_default();
    let saved = if it.persistent == Some(false) { ", not saved" } else { "" };
    format!("input {}: {}{target}{saved}{}", it.arg.name(), it.kind.name(), constant(&it.arg))
}

fn output((place, it): (usize, &OutputSpec)) -> String {
    let target = it.target.as_ref().map(|it| format!(" {it}")).unwrap_or_default();
    format!("output {place}: {}{target}{}", it.kind.name(), constant(&it.arg))
}

fn constant(arg: &Argument) -> String {
    if let Argument::Constant { value, .. } = arg { format!(" = {value}") } else { String::new() }
}

fn ranges(program: &ExportedProgram) -> Vec<String> {
    let bound = |it: Option<i64>, none: &str| it.map_or(none.to_string(), |it| it.to_string());
    let range = |it: &tracefx_sym::ValueRange| format!("[{}, {}]", bound(it.min, "-oo"), bound(it.max, "oo"));
    program.range_constraints.values().map(range).collect()
}

/// What stands in the same place, where it differs.
fn by_place(before: &[String], after: &[String]) -> Vec<Difference> {
    let places = (0..before.len().max(after.len())).map(|at| (before.get(at), after.get(at)));
    let differences = places.filter(|(before, after)| before != after);
    differences.map(|(before, after)| Difference { before: before.cloned(), after: after.cloned() }).collect()
}

/// The parameters, buffers and constants by name, in order; an object has no tensor.
fn tensors(program: &ExportedProgram) -> Vec<(&str, Option<&Tensor>)> {
    let state = program.state_dict.iter().map(|(name, it)| (&**name, Some(&it.tensor)));
    let constants = program.constants.iter().map(|(name, it)| match it {
        Constant::Tensor(tensor) => (&**name, Some(tensor)),
        Constant::CustomObj(_) => (&**name, None),
    });
    state.chain(constants).collect()
}

fn tensor_diff(before: &ExportedProgram, after: &ExportedProgram) -> Result<Vec<Difference>> {
    let (first, second) = (tensors(before), tensors(after));
    let others: HashMap<&str, Option<&Tensor>> = second.iter().copied().collect();
    let mut res = Vec::new();
    for &(name, a) in &first {
        let line = tensor_line(name, a);
        let Some(&b) = others.get(name) else {
            res.push(Difference { before: Some(line), after: None });
            continue;
        };
        let other = tensor_line(name, b);
        if line != other {
            res.push(Difference { before: Some(line), after: Some(other) });
        } else if let (Some(a), Some(b)) = (a, b)
            && !with_elements(a, |a| with_elements(b, |b| a == b))??
        {
            res.push(Difference { before: Some(line), after: Some(format!("{other}, of other values")) });
        }
    }
    let known: HashMap<&str, Option<&Tensor>> = first.into_iter().collect();
    let added = second.into_iter().filter(|(name, _)| !known.contains_key(name));
    res.extend(added.map(|(name, it)| Difference { before: None, after: Some(tensor_line(name, it)) }));
    Ok(res)
}

fn tensor_line(name: &str, tensor: Option<&Tensor>) -> String {
    let Some(tensor) = tensor else { return format!("{name}: an object") };
    let sizes: Vec<String> = tensor.sizes().iter().map(ToString::to_string).collect();
    format!("{name}: {}[{}]", tensor.dtype().name(), sizes.join(", "))
}
