//! Programs that PyTorch exported, as modules, exported again: the graphs are PyTorch's, of dynamic sizes and control flow too.

use crate::corpus::folders;
use std::collections::HashMap;
use tracefx_core::Result;
use tracefx_engine::{Library, Limits, open};
use tracefx_export::{Argument, Dim, DimSpec, DynamicShapes, ExportedProgram, ShapeSpec};
use tracefx_ir::{Arg, Attribute, GraphModule, NodeId, Opcode, Val};
use tracefx_sym::{SymInt, ValueRange};

/// What the program says of a size of its inputs, as its user said it.
fn spec(program: &ExportedProgram, size: &SymInt) -> DimSpec {
    let Some(symbol) = size.symbols().into_iter().next() else { return DimSpec::Static };
    let range = program.range_constraints.get(&symbol).copied().unwrap_or(ValueRange::UNBOUNDED);
    let at = |it: i64| size.eval(&|_| Some(it)).unwrap();
    let (offset, factor) = (at(0), at(1) - at(0));
    DimSpec::Named(Dim { name: format!("_{}", symbol.name()), range, factor, offset })
}

fn specs(program: &ExportedProgram) -> DynamicShapes {
    let graph = &program.module.graph;
    let of = |arg: &Argument| {
        let val = graph.find(arg.name()).and_then(|it| graph.node(it).meta.val.as_ref());
        match val {
            Some(Val::Tensor(meta)) => ShapeSpec::Dims(meta.sizes.iter().map(|it| spec(program, it)).collect()),
            Some(Val::Int(it)) if it.is_symbolic() => ShapeSpec::Value(DimSpec::AUTO),
            _ => ShapeSpec::None,
        }
    };
    DynamicShapes::Positional(program.signature.user_inputs().map(|it| of(&it.arg)).collect())
}

fn exported(program: &ExportedProgram) -> Result<ExportedProgram> {
    let inputs = program.example_inputs.clone().expect("recorded programs have inputs");
    Library::default().export_dynamic(&program.module()?, &inputs, &specs(program))
}

/// The graph and those that it calls, in a form that does not depend on what PyTorch's files lose: operands of control flow
/// are tuples in PyTorch and lists once they are read, results that nothing uses are read all the same. Assertions of
/// metadata and names of calls are left out, which have other numbers when a program was exported once.
fn text(module: &GraphModule) -> String {
    let graph = &module.graph;
    let is_shown = |id: NodeId| {
        let node = graph.node(id);
        let is_unused = graph.users(id).is_empty() && &**node.target() == "operator.getitem";
        !is_unused && !node.target().contains("_assert_tensor_metadata")
    };
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut lines = Vec::new();
    for id in graph.nodes().filter(|&it| is_shown(it)) {
        let node = graph.node(id);
        let number = names.len();
        let is_input = matches!(node.op(), Opcode::Placeholder);
        names.insert(node.name(), if is_input { node.name().to_string() } else { format!("v{number}") });
        let shown = |it: &Arg| match it {
            Arg::Str(text) => format!("{:?}", text.split(" on node").next()),
            Arg::Node(it) => names.get(&**graph.node(*it).name()).cloned().unwrap_or_default(),
            other => {
                let mut res = graph.format_arg(other);
                for (name, short) in &names {
                    for end in [",", "]", ")"] {
                        res = res.replace(&format!("%{name}{end}"), &format!("{short}{end}"));
                    }
                }
                res
            }
        };
        let args: Vec<String> = node.args().iter().map(shown).collect();
        let kwargs: Vec<String> = node.kwargs().iter().map(|(key, it)| format!("{key}={}", shown(it))).collect();
        let target = if node.op() == Opcode::GetAttr { "" } else { node.target() };
        lines.push(format!("{target} {} {}", args.join(" "), kwargs.join(" ")));
    }
    for attribute in module.attributes.values() {
        if let Attribute::Module(inner) = attribute {
            lines.push(text(inner));
        }
    }
    lines.join("\n").replace('(', "[").replace(",)", "]").replace(')', "]")
}

/// The programs of which another one comes, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("associative_scan_hop", "vmap is written slice by slice"),
    ("autocast_hop", "what autocast casts is cast in the graph"),
    ("counter_buffer", "a buffer that was written to in place is copied into itself"),
    ("custom_op", "an operator of somebody's own"),
    ("custom_op_mutating", "an operator of somebody's own"),
    ("dropout_train_shapes", "a dropout of nothing gives its argument itself"),
    ("gpt_tiny", "modules of graphs hold no buffers that are not saved"),
    ("llama_tiny_dynamic", "modules of graphs hold no buffers that are not saved"),
    ("no_user_tensors", "modules of graphs hold no constants before parameters"),
    ("nonpersistent_buffer", "modules of graphs hold no buffers that are not saved"),
    ("torchao_weight_only", "an operator of torchao"),
    ("type_promotion", "a dtype that nothing uses is no value of a node"),
    ("vmap_program", "vmap is written slice by slice"),
];

/// The programs whose user said a range that their files do not tell.
const OTHER_RANGES: &[&str] = &["runtime_asserts", "symint_inputs", "unet_tiny"];

#[test]
fn programs_are_exported_as_they_were() {
    let (mut n_same, mut differ) = (0, Vec::new());
    for folder in folders() {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(program) = open(&std::fs::read(folder.join("model.pt2")).unwrap(), &Limits::default()) else { continue };
        let is_training = program.verifiers == ["TRAINING".into()];
        if !is_training || program.example_inputs.is_none() || program.module().is_err() {
            continue;
        }
        match exported(&program) {
            Err(problem) => differ.push((name, problem.to_string())),
            Ok(again) if text(&again.module) != text(&program.module) => {
                let (wanted, found) = (text(&program.module), text(&again.module));
                differ.push((name, format!("{:?}", wanted.lines().zip(found.lines()).find(|(a, b)| a != b))));
            }
            Ok(again) => {
                if !OTHER_RANGES.contains(&&*name) {
                    assert_eq!(again.range_constraints, program.range_constraints, "{name}");
                }
                n_same += 1;
            }
        }
    }
    differ.retain(|(name, _)| DIFFERENT.iter().all(|(it, _)| it != name));
    assert!(differ.is_empty(), "{differ:#?}");
    assert!(n_same >= 12, "only {n_same} programs were compared");
}
