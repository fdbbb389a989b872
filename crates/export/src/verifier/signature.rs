//! What the signature and the call graph say of the graph and the state.

use super::violation;
use crate::{Argument, Constant, ConstantValue, ExportedProgram, GraphSignature, InputKind, InputSpec};
use indexmap::IndexMap;
use std::collections::{BTreeSet, HashSet};
use tracefx_core::Diagnostic;
use tracefx_ir::{Arg, Attribute, Graph, NodeId, Opcode, Str, python_string};

/// Everything that does not fit, in PyTorch's order.
pub(super) fn check(program: &ExportedProgram) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    check_calls(program, &mut problems);
    check_inputs(program, &mut problems);
    check_outputs(program, &mut problems);
    problems
}

fn check_calls(program: &ExportedProgram, problems: &mut Vec<Diagnostic>) {
    let graph = &program.module.graph;
    let names: HashSet<&str> = graph.nodes().map(|it| &**graph.node(it).name()).collect();
    for signature in program.module_call_graph.iter().filter_map(|it| it.signature.as_ref()) {
        for (what, args) in [("Input", &signature.inputs), ("Output", &signature.outputs)] {
            let missing = args.iter().map(Argument::name).filter(|it| !it.is_empty() && !names.contains(&***it));
            problems.extend(missing.map(|it| violation(format!("{what} {it} does not exist in the graph."))));
        }
    }
}

fn check_inputs(program: &ExportedProgram, problems: &mut Vec<Diagnostic>) {
    let (graph, specs) = (&program.module.graph, &program.signature.input_specs);
    let is_input = |it: &NodeId| graph.node(*it).op() == Opcode::Placeholder;
    let names: Vec<&Str> = graph.nodes().filter(is_input).map(|it| graph.node(it).name()).collect();
    if names.len() != specs.len() {
        let in_graph: BTreeSet<String> = names.iter().map(|it| python_string(it)).collect();
        let in_specs: BTreeSet<String> = specs.iter().map(|it| python_string(it.arg.name())).collect();
        problems.push(violation(format!(
            "Number of graph inputs ({}) does not match number of inputs in the graph signature ({})\n\
             Placeholders missing input_specs: {}\nInput_specs missing placeholders: {}",
            names.len(),
            specs.len(),
            set_text(&in_graph, &in_specs),
            set_text(&in_specs, &in_graph)
        )));
        return;
    }
    for (spec, name) in specs.iter().zip(names) {
        let named = matches!(
            spec.arg,
            Argument::Tensor(_) | Argument::SymInt(_) | Argument::SymFloat(_) | Argument::SymBool(_)
        );
        if named && spec.arg.name() != name {
            let what = format!("Input spec name {} does not match node name {name}", spec.arg.name());
            problems.push(violation(what).node(&**name));
        }
        problems.extend(check_input(program, spec).map(|it| violation(it).node(&**name)));
    }
}

fn check_input(program: &ExportedProgram, spec: &InputSpec) -> Option<String> {
    let name = spec.arg.name();
    let (what, fits) = match (spec.kind, &spec.arg) {
        (InputKind::UserInput, _) => return None,
        (InputKind::Parameter, arg) => ("Parameter {} is not a tensor argument", matches!(arg, Argument::Tensor(_))),
        (InputKind::Buffer, arg) => ("Buffer {} is not a tensor argument", matches!(arg, Argument::Tensor(_))),
        (InputKind::ConstantTensor, arg) => {
            ("Constant tensor {} is not a tensor argument", matches!(arg, Argument::Tensor(_)))
        }
        (InputKind::CustomObj, arg) => {
            ("Custom object {} is not a custom object argument", matches!(arg, Argument::CustomObj { .. }))
        }
        (InputKind::Token, arg) => ("Constant tensor {} is not a tensor argument", matches!(arg, Argument::Token(_))),
    };
    if !fits {
        return Some(format!("{}. Found {} instead.", what.replace("{}", name), spec.arg));
    }
    if spec.kind == InputKind::Token {
        return None;
    }
    let Some(target) = &spec.target else { return Some(format!("InputSpec for {name} has no target.")) };
    let state = program.state_dict.get(target);
    let is_opaque = program.opaque_state.contains_key(target);
    let constant = program.constants.get(target);
    match spec.kind {
        InputKind::UserInput | InputKind::Token => None,
        InputKind::Parameter => match state {
            Some(entry) if entry.is_parameter => None,
            Some(_) => {
                Some(format!("State dict entry for parameter {target} is not an instance of torch.nn.Parameter."))
            }
            // Whether a tensor subclass is a parameter only Python knows.
            None if is_opaque => None,
            None => Some(format!("Parameter {target} is not in the state dict.")),
        },
        InputKind::Buffer => match spec.persistent {
            None => Some(format!("Buffer {target} is missing a persistence flag")),
            Some(true) => {
                let is_held = state.is_some() || is_opaque || constant.is_some() || is_in_subgraph(program, target);
                (!is_held).then(|| format!("Buffer {target} is not in the state dict."))
            }
            Some(false) => (state.is_some() || is_opaque)
                .then(|| format!("Non-persistent buffer {target} is in the state dict, it should not be.")),
        },
        InputKind::ConstantTensor => match constant {
            Some(Constant::Tensor(_) | Constant::CustomObj(_)) => None,
            None => Some(format!("Constant tensor {target} is not in the constants dictionary.")),
        },
        InputKind::CustomObj => {
            constant.is_none().then(|| format!("Custom object {target} is not in the constants dictionary."))
        }
    }
}

/// A buffer may live in a graph that the graph calls.
fn is_in_subgraph(program: &ExportedProgram, target: &str) -> bool {
    matches!(program.module.attribute(target), Ok(Attribute::Tensor { .. } | Attribute::Fake { .. }))
}

fn check_outputs(program: &ExportedProgram, problems: &mut Vec<Diagnostic>) {
    let (graph, signature) = (&program.module.graph, &program.signature);
    let last = graph.last().filter(|it| graph.node(*it).op() == Opcode::Output);
    let Some(last) = last else {
        let got = graph.last().map_or("none", |it| graph.node(it).op().name());
        problems.push(violation(format!("last node must be output, got {got}")));
        return;
    };
    let outputs = match graph.node(last).args() {
        [Arg::Tuple(items) | Arg::List(items)] => items.as_slice(),
        _ => {
            problems.push(violation("the output must be a tuple of values").node(&**graph.node(last).name()));
            return;
        }
    };
    if outputs.len() != signature.output_specs.len() {
        problems.push(wrong_count(graph, outputs, signature));
        return;
    }
    let n_tokens = signature.output_tokens().len();
    let mutations = Mutations {
        buffers: signature.buffers_to_mutate(),
        parameters: signature.parameters_to_mutate(),
        user_inputs: signature.user_inputs_to_mutate(),
    };
    let end = outputs.len().min(n_tokens + mutations.len());
    for output in &outputs[n_tokens.min(end)..end] {
        problems.extend(mutations.check(output_text(graph, output), signature).map(violation));
    }
    let names: Vec<String> = signature.user_outputs().map(|it| argument_text(&it.arg)).collect();
    for (output, spec) in outputs[end..].iter().zip(signature.user_outputs()) {
        if !is_output(graph, output, &spec.arg) {
            problems.push(violation(format!(
                "User output {} is not in the correct order or is not found in the exported program's user_output \
                 list: {}. ",
                output_text(graph, output),
                tuple_text(&names)
            )));
        }
    }
}

fn wrong_count(graph: &Graph, outputs: &[Arg], signature: &GraphSignature) -> Diagnostic {
    let quoted = |arg: &Arg| match arg.as_node() {
        Some(_) => python_string(&output_text(graph, arg)),
        None => graph.format_arg(arg),
    };
    let in_graph: BTreeSet<String> = outputs.iter().map(quoted).collect();
    let in_specs: BTreeSet<String> = signature.output_specs.iter().map(|it| python_string(it.arg.name())).collect();
    violation(format!(
        "Number of output nodes {} is different Than the number of outputs specified by the graph signature: {}\n\
         Nodes missing output_specs: {}\nOutput_specs missing nodes: {}",
        outputs.len(),
        signature.output_specs.len(),
        set_text(&in_graph, &in_specs),
        set_text(&in_specs, &in_graph)
    ))
}

/// The new values that the graph returns, and what they are of.
struct Mutations {
    buffers: IndexMap<Str, Str>,
    parameters: IndexMap<Str, Str>,
    user_inputs: IndexMap<Str, Str>,
}

impl Mutations {
    fn len(&self) -> usize {
        self.buffers.len() + self.parameters.len() + self.user_inputs.len()
    }

    fn check(&self, output: String, signature: &GraphSignature) -> Option<String> {
        let user_inputs = || signature.user_inputs().map(|it| argument_text(&it.arg)).collect::<Vec<_>>();
        let quoted = |names: Vec<Str>| names.iter().map(|it| python_string(it)).collect::<Vec<_>>();
        let (titles, mutated, held) = if self.buffers.contains_key(&*output) {
            (["Buffer", "a buffer", "buffers", "Buffer"], &self.buffers, quoted(signature.buffers()))
        } else if self.parameters.contains_key(&*output) {
            let titles = ["Parameter", "a parameter", "parameters", "Parameter"];
            (titles, &self.parameters, quoted(signature.parameters()))
        } else if self.user_inputs.contains_key(&*output) {
            (["User input", "a user input", "user inputs", "User input"], &self.user_inputs, user_inputs())
        } else {
            return Some(format!(
                "Mutation node {output} is neither a buffer nor a user input. Buffers to mutate: {}, User inputs to \
                 mutate: {}",
                dict_text(&self.buffers),
                dict_text(&self.user_inputs)
            ));
        };
        let [title, one, many, kind] = titles;
        (!held.contains(&python_string(&mutated[&*output]))).then(|| {
            format!(
                "{title} output {output} does not point to {one} that exists. \nDict of {many} that are mutated, in \
                 order: {} \n{kind} nodes available: {} \n",
                dict_text(mutated),
                tuple_text(&held)
            )
        })
    }
}

/// Whether an output is what the signature says stands there.
fn is_output(graph: &Graph, output: &Arg, spec: &Argument) -> bool {
    match (output, spec) {
        (Arg::Node(node), spec) => *graph.node(*node).name() == *spec.name(),
        (Arg::None, Argument::Constant { value: ConstantValue::None, .. }) => true,
        (Arg::Bool(it), Argument::Constant { value: ConstantValue::Bool(wanted), .. }) => it == wanted,
        (Arg::Int(it), Argument::Constant { value: ConstantValue::Int(wanted), .. }) => it == wanted,
        (Arg::Str(it), Argument::Constant { value: ConstantValue::Str(wanted), .. }) => it == wanted,
        (Arg::Float(it), Argument::Constant { value: ConstantValue::Float(wanted), .. }) => {
            it == wanted || it.is_nan() && wanted.is_nan()
        }
        (_, _) => false,
    }
}

/// What `str` gives for an output: the name of a node, or the value.
fn output_text(graph: &Graph, output: &Arg) -> String {
    match output.as_node() {
        Some(node) => graph.node(node).name().to_string(),
        None => graph.format_arg(output),
    }
}

/// An item of `user_inputs` or `user_outputs`: the name of a node, or the value.
fn argument_text(arg: &Argument) -> String {
    match arg {
        Argument::Constant { value, .. } => value.to_string(),
        Argument::Tensor(name)
        | Argument::SymInt(name)
        | Argument::SymFloat(name)
        | Argument::SymBool(name)
        | Argument::Token(name)
        | Argument::CustomObj { name, .. } => python_string(name),
    }
}

/// What is in one set and not in the other, sorted, where Python's order is any.
fn set_text(these: &BTreeSet<String>, without: &BTreeSet<String>) -> String {
    let rest: Vec<&str> = these.difference(without).map(String::as_str).collect();
    if rest.is_empty() { "set()".to_string() } else { format!("{{{}}}", rest.join(", ")) }
}

fn dict_text(map: &IndexMap<Str, Str>) -> String {
    let items = map.iter().map(|(key, value)| format!("{}: {}", python_string(key), python_string(value)));
    format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
}

fn tuple_text(items: &[String]) -> String {
    let comma = if items.len() == 1 { "," } else { "" };
    format!("({}{comma})", items.join(", "))
}
