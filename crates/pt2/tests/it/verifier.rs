//! Programs that were broken in one place, and what PyTorch's verifiers say of them: `tests/oracle/gen_verifier.py`.

use serde_json::Value as Json;
use std::path::Path;
use tracefx_core::Code;
use tracefx_export::{Argument, ConstantValue, ExportedProgram, InputKind, OutputKind};
use tracefx_ir::{Arg, NodeId, Opcode};
use tracefx_pt2::{LoadOptions, load};

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

fn find(program: &ExportedProgram, name: &Json) -> NodeId {
    program.module.graph.find(name.as_str().unwrap()).unwrap()
}

fn results(program: &ExportedProgram) -> (NodeId, Vec<Arg>) {
    let output = program.module.graph.output_node().unwrap();
    let [Arg::Tuple(items)] = program.module.graph.node(output).args() else { panic!("a tuple is returned") };
    (output, items.clone())
}

fn call(program: &mut ExportedProgram, op: Opcode, target: &Json, arg: NodeId) -> NodeId {
    let output = program.module.graph.output_node().unwrap();
    let graph = &mut program.module.graph;
    let call = graph.create_node(op, target.as_str().unwrap(), vec![arg.into()], vec![], None).unwrap();
    graph.move_before(call, output).unwrap();
    call
}

fn edit(program: &mut ExportedProgram, edit: &[Json]) {
    let [name, args @ ..] = edit else { panic!("an edit has a name") };
    let at = args.first().and_then(Json::as_u64).unwrap_or(0) as usize;
    let text = |at: usize| args[at].as_str().unwrap();
    let (inputs, outputs) = (&mut program.signature.input_specs, &mut program.signature.output_specs);
    match name.as_str().unwrap() {
        "drop_input" => drop(inputs.remove(at)),
        "rename_input" => inputs[at].arg = inputs[at].arg.renamed(text(1).into()),
        "input_kind" => inputs[at].kind = InputKind::from_name(text(1)).unwrap(),
        "input_target" => inputs[at].target = args[1].as_str().map(Into::into),
        "input_sym_int" => inputs[at].arg = Argument::SymInt(inputs[at].arg.name().clone()),
        "persistent" => inputs[at].persistent = args[1].as_bool(),
        "drop_state" => drop(program.state_dict.shift_remove(text(0))),
        "not_parameter" => program.state_dict[text(0)].is_parameter = false,
        "drop_output" => drop(outputs.remove(at)),
        "rename_output" => outputs[at].arg = outputs[at].arg.renamed(text(1).into()),
        "output_kind" => outputs[at].kind = OutputKind::from_name(text(1)).unwrap(),
        "output_target" => outputs[at].target = args[1].as_str().map(Into::into),
        "constant_output" => {
            outputs[at].arg = Argument::Constant { name: "".into(), value: ConstantValue::None };
        }
        "swap_results" => {
            let (output, mut items) = results(program);
            items.swap(at, args[1].as_u64().unwrap() as usize);
            program.module.graph.set_args(output, vec![Arg::Tuple(items)]).unwrap();
        }
        "constant_result" => {
            let (output, mut items) = results(program);
            items[at] = Arg::Int(args[1].as_i64().unwrap());
            program.module.graph.set_args(output, vec![Arg::Tuple(items)]).unwrap();
        }
        "dialect" => program.verifiers = vec![text(0).into()],
        "call" => {
            let arg = find(program, &args[1]);
            let call = call(program, Opcode::CallFunction, &args[0], arg);
            program.module.graph.meta_mut(call).val = program.module.graph.node(arg).meta.val.clone();
        }
        "call_without_val" => {
            let arg = find(program, &args[1]);
            call(program, Opcode::CallFunction, &args[0], arg);
        }
        "call_method" => {
            let arg = find(program, &args[1]);
            call(program, Opcode::CallMethod, &args[0], arg);
        }
        "drop_val" => {
            let node = find(program, &args[0]);
            program.module.graph.meta_mut(node).val = None;
        }
        "call_entry" => {
            let signature = program.module_call_graph[0].signature.as_mut().unwrap();
            let side = if text(0) == "inputs" { &mut signature.inputs } else { &mut signature.outputs };
            side.push(Argument::Tensor(text(1).into()));
        }
        other => panic!("there is no edit {other}"),
    }
}

/// Whether what we say is what PyTorch says. It stumbles over some of its own messages, and shows functions by their addresses.
fn is_said(error: &Json, said: &str) -> bool {
    let message = error["message"].as_str().unwrap();
    match error["type"].as_str().unwrap() {
        "SpecViolationError" => {
            let function = "<built-in function concat>";
            let wanted = message.replace(function, "operator.concat");
            wanted == said || message.contains(function) && said.lines().next() == wanted.lines().next()
        }
        _ => message.contains("'InputSpec' object has no attribute 'name'"),
    }
}

#[test]
fn what_a_program_breaks_is_said_as_pytorch_says_it() {
    let cases = std::fs::read_to_string(fixtures().join("exported/verifier.json")).unwrap();
    let cases: Vec<Json> = serde_json::from_str(&cases).unwrap();
    assert!(cases.len() >= 36, "{} cases are recorded", cases.len());
    for case in cases {
        let file = fixtures().join("programs").join(case["program"].as_str().unwrap()).join("model.pt2");
        let mut program = load(&std::fs::read(file).unwrap(), &LoadOptions::default()).unwrap();
        for it in case["edits"].as_array().unwrap() {
            edit(&mut program, it.as_array().unwrap());
        }
        match (program.validate(), &case["error"]) {
            (Ok(()), Json::Null) => {}
            (Err(problem), error) if !error.is_null() => {
                assert_eq!(problem.code(), Code::SpecViolation, "{problem}");
                assert!(is_said(error, problem.message()), "{case}\nwe say {problem}");
            }
            (found, _) => panic!("{case}\nwe find {found:?}"),
        }
    }
}

#[test]
fn a_dialect_that_nobody_knows_is_refused() {
    let file = fixtures().join("programs/cond_simple/model.pt2");
    let mut program = load(&std::fs::read(file).unwrap(), &LoadOptions::default()).unwrap();
    assert_eq!(program.dialect().unwrap().name(), "TRAINING");
    program.verifiers = vec!["EDGE".into()];
    let problem = program.validate().unwrap_err();
    assert_eq!(problem.to_string().lines().next().unwrap(), "FX0702: there is no verifier of the dialect 'EDGE'");
}

#[test]
fn reads_of_one_item_become_one() {
    let file = fixtures().join("programs/cond_simple/model.pt2");
    let mut program = load(&std::fs::read(file).unwrap(), &LoadOptions::default()).unwrap();
    let before = program.to_string();
    let read = program.module.graph.find("getitem_1").unwrap();
    let (output, _) = results(&program);
    let graph = &mut program.module.graph;
    let source = graph.node(read).clone();
    let again = graph.node_copy(&source, &mut Arg::Node).unwrap();
    graph.move_before(again, output).unwrap();
    let name = graph.node(again).name().clone();
    graph.replace_input_with(output, read, again).unwrap();
    program.signature.output_specs[1].arg = Argument::Tensor(name);
    assert_eq!(program.checked().unwrap().to_string(), before);
}
