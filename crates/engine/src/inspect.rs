//! What a program shows of itself: nodes, signature, sizes of its state. How it is printed is left to the surfaces.

use crate::{Library, OpUse, Support};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::{self, Write};
use tracefx_export::{Constant, ExportedProgram};
use tracefx_ir::{Opcode, TensorMeta, Val};

/// What there is to know of a program without running it: what `tracefx inspect` shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The PyTorch that wrote the program.
    pub torch_version: String,
    /// The schema that it was written in.
    pub schema_version: String,
    /// The dialects that the graph was checked against.
    pub dialect: Vec<String>,
    /// The nodes of the graph, as PyTorch's `print_tabular` has them, and the value of each.
    pub nodes: Vec<NodeRow>,
    /// The inputs of the graph.
    pub inputs: Vec<SignatureRow>,
    /// The outputs of the graph.
    pub outputs: Vec<SignatureRow>,
    /// The symbols of the sizes with the values that they may have.
    pub range_constraints: Vec<RangeRow>,
    /// How many tensors there are, and how large.
    pub sizes: Vec<SizeRow>,
    /// The operators, and how the engine runs them.
    pub ops: Vec<OpUse>,
    /// Whether the program runs: the engine has all its operators, and can make all its inputs.
    pub is_supported: bool,
    /// Why it does not run whatever its operators are.
    pub obstacle: Option<String>,
}

/// A node of the graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeRow {
    /// The opcode.
    pub op: String,
    /// The name.
    pub name: String,
    /// The target.
    pub target: String,
    /// The positional arguments.
    pub args: String,
    /// The keyword arguments.
    pub kwargs: String,
    /// The value, such as `f32[s0, 10]`; empty where the file does not say.
    pub value: String,
}

/// An input or output of the graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SignatureRow {
    /// The name of the node.
    pub name: String,
    /// What it is, such as `PARAMETER`.
    pub kind: String,
    /// What it belongs to, such as `conv.weight`.
    pub target: String,
    /// The value, such as `f32[s0, 10]`.
    pub value: String,
}

/// The values that a symbol may have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RangeRow {
    /// The symbol.
    pub symbol: String,
    /// The smallest value.
    pub min: Option<i64>,
    /// The largest value.
    pub max: Option<i64>,
}

/// The size of a group of tensors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeRow {
    /// `parameters`, `buffers` or `constants`.
    pub group: &'static str,
    /// How many tensors.
    pub tensors: usize,
    /// How many elements.
    pub elements: usize,
    /// How many bytes the elements take.
    pub bytes: usize,
}

/// Looks at a program.
pub fn inspect(program: &ExportedProgram) -> Report {
    Library::default().inspect(program)
}

pub(crate) fn report(program: &ExportedProgram, library: &Library) -> Report {
    let graph = &program.module.graph;
    let nodes: Vec<NodeRow> = graph
        .nodes()
        .zip(graph.tabular())
        .map(|(id, [op, name, target, args, kwargs])| {
            let value = graph.node(id).meta.val.as_ref().map(describe_val).unwrap_or_default();
            NodeRow { op, name, target, args, kwargs, value }
        })
        .collect();
    let values: HashMap<&str, &str> = nodes.iter().map(|it| (&*it.name, &*it.value)).collect();
    let row = |name: &str, kind: &str, target: Option<&str>| SignatureRow {
        name: name.to_string(),
        kind: kind.to_string(),
        target: target.unwrap_or_default().to_string(),
        value: values.get(name).copied().unwrap_or_default().to_string(),
    };
    let ops = library.coverage(&program.module);
    let obstacle = program.unsupported_input().map(|it| it.message().to_string());
    let inputs = (program.signature.input_specs.iter())
        .map(|it| row(it.arg.name(), it.kind.name(), it.target.as_deref()))
        .collect();
    let outputs = (program.signature.output_specs.iter())
        .map(|it| row(it.arg.name(), it.kind.name(), it.target.as_deref()))
        .collect();
    Report {
        torch_version: program.torch_version.to_string(),
        schema_version: format!("{}.{}", program.schema_version.0, program.schema_version.1),
        dialect: program.verifiers.iter().map(|it| it.to_string()).collect(),
        nodes,
        inputs,
        outputs,
        range_constraints: (program.range_constraints.iter())
            .map(|(symbol, range)| RangeRow { symbol: symbol.name().to_string(), min: range.min, max: range.max })
            .collect(),
        sizes: sizes(program),
        is_supported: obstacle.is_none() && ops.iter().all(|it| it.support != Support::Missing),
        obstacle,
        ops,
    }
}

fn sizes(program: &ExportedProgram) -> Vec<SizeRow> {
    let row = |group, tensors: Vec<&tracefx_core::Tensor>| SizeRow {
        group,
        tensors: tensors.len(),
        elements: tensors.iter().map(|it| it.numel()).sum(),
        bytes: tensors.iter().map(|it| it.numel() * it.dtype().size()).sum(),
    };
    let state = |is_parameter| {
        program.state_dict.values().filter(|it| it.is_parameter == is_parameter).map(|it| &it.tensor).collect()
    };
    let constants = program.constants.values().filter_map(|it| match it {
        Constant::Tensor(tensor) => Some(tensor),
        Constant::CustomObj(_) => None,
    });
    vec![row("parameters", state(true)), row("buffers", state(false)), row("constants", constants.collect())]
}

/// The value of a node as PyTorch annotates it, such as `f32[s0, 10]`.
fn describe_val(val: &Val) -> String {
    match val {
        Val::None => "None".to_string(),
        Val::Tensor(meta) => describe_tensor(meta),
        Val::Int(it) => format!("Sym({it})"),
        Val::Float(it) => format!("Sym({it})"),
        Val::Bool(it) => format!("Sym({it})"),
        Val::Seq { items, .. } => items.iter().map(describe_val).collect::<Vec<_>>().join(", "),
    }
}

pub(crate) fn describe_tensor(meta: &TensorMeta) -> String {
    let sizes: Vec<String> = meta.sizes.iter().map(|it| it.to_string()).collect();
    format!("{}[{}]", meta.dtype.short_name(), sizes.join(", "))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dialect = if self.dialect.is_empty() { "ATEN".to_string() } else { self.dialect.join(", ") };
        writeln!(f, "torch {}, schema {}, dialect {dialect}\n", self.torch_version, self.schema_version)?;
        let nodes = self.nodes.iter().map(|it| {
            let arguments = if it.op == Opcode::Placeholder.name() {
                String::new()
            } else if it.kwargs == "{}" {
                it.args.clone()
            } else {
                format!("{} {}", it.args, it.kwargs)
            };
            [it.op.clone(), it.name.clone(), it.target.clone(), arguments, it.value.clone()]
        });
        section(f, "graph", &["opcode", "name", "target", "arguments", "value"], nodes, &[])?;
        let signature = |it: &SignatureRow| [it.name.clone(), it.kind.clone(), it.target.clone(), it.value.clone()];
        section(f, "inputs", &["name", "kind", "target", "value"], self.inputs.iter().map(signature), &[])?;
        section(f, "outputs", &["name", "kind", "target", "value"], self.outputs.iter().map(signature), &[])?;
        let bound = |it: Option<i64>, none: &str| it.map_or(none.to_string(), |it| it.to_string());
        let ranges = self
            .range_constraints
            .iter()
            .map(|it| [it.symbol.clone(), bound(it.min, "-int_oo"), bound(it.max, "int_oo")]);
        section(f, "range constraints", &["symbol", "min", "max"], ranges, &[1, 2])?;
        let sizes =
            self.sizes.iter().filter(|it| it.tensors > 0).map(|it| {
                [it.group.to_string(), it.tensors.to_string(), it.elements.to_string(), it.bytes.to_string()]
            });
        section(f, "sizes", &["tensors", "count", "elements", "bytes"], sizes, &[1, 2, 3])?;
        let ops = self.ops.iter().map(|it| [it.target.clone(), it.count.to_string(), it.support.name().to_string()]);
        section(f, "operators", &["target", "nodes", "runs by"], ops, &[1])?;
        if let Some(obstacle) = &self.obstacle {
            writeln!(f, "The program opens but does not run: {}.", printable(obstacle))?;
        }
        match self.ops.iter().filter(|it| it.support == Support::Missing).count() {
            0 => f.write_str("All operators are supported."),
            1 => f.write_str("1 operator is missing: the program opens but does not run."),
            n => write!(f, "{n} operators are missing: the program opens but does not run."),
        }
    }
}

/// A line under the header and nothing else, as PyTorch's `print_tabular` has it.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

pub(crate) fn section(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    header: &[&str],
    rows: impl Iterator<Item = impl AsRef<[String]>>,
    numeric: &[usize],
) -> fmt::Result {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header.iter().copied());
    for row in rows {
        table.add_row(row.as_ref().iter().map(|it| printable(it)));
    }
    for &column in numeric {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    if table.is_empty() { Ok(()) } else { writeln!(f, "{title}\n{table}\n") }
}

/// The text with control characters escaped: names come out of files, and a terminal obeys what it prints.
///
/// ```
/// assert_eq!(tracefx_engine::printable("conv\u{1b}[2J"), "conv\\u{1b}[2J");
/// ```
pub fn printable(text: &str) -> String {
    let mut res = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { write!(res, "\\u{{{:x}}}", c as u32).unwrap_or_default() } else { res.push(c) }
    }
    res
}
