use crate::corpus::{cases, encode, list, names, text};
use serde_json::{Value, json};
use tracefx_core::{Code, Result};
use tracefx_ir::{Arg, Graph, InsertPoint, NodeId, Opcode};
use tracefx_testing::{build, by_name, decode, decode_args, decode_kwargs};

#[test]
fn edits_do_what_pytorch_does() {
    for case in cases("edit_script") {
        let name = text(&case, "name");
        let mut graph = build(&case["before"]);
        assert_eq!(encode(&graph), case["before"], "{name} before the first edit");
        for (at, it) in list(&case, "steps").iter().enumerate() {
            let wanted = recorded(it.get("r"), &it["error"]);
            assert_eq!(outcome(run(&mut graph, &it["step"])), wanted, "{name} step {at}: {}", it["step"]);
        }
        assert_eq!(encode(&graph), case["after"], "{name}");
        assert_eq!(graph.len() as u64, case["n_nodes"], "{name}");
        let lint = outcome(run(&mut graph, &json!(["lint"])));
        assert_eq!(lint, recorded(Some(&Value::Null), &case["final_lint"]), "{name}");
        for (target, wanted) in case["find_nodes"].as_object().expect("an object") {
            let found = names(&graph, graph.find_nodes(Opcode::CallFunction, target));
            assert_eq!(json!(found), *wanted, "{name}: {target}");
        }
    }
}

/// What PyTorch recorded, with our code for its refusals.
fn recorded(result: Option<&Value>, error: &Value) -> Result<Value, Code> {
    let Some(message) = error["msg"].as_str() else { return Ok(result.expect("a result").clone()) };
    let codes = [
        ("Tried to erase Node", Code::NodeHasUsers),
        ("insert_args index", Code::GraphArgument),
        ("list assignment index out of range", Code::GraphArgument),
        ("Argument '", Code::GraphInvalid),
    ];
    let found = codes.iter().find(|(beginning, _)| message.starts_with(beginning));
    Err(found.unwrap_or_else(|| panic!("no code for {message}")).1)
}

fn outcome(result: Result<Value>) -> Result<Value, Code> {
    result.map_err(|it| it.code())
}

/// Does one step and returns what PyTorch recorded of it.
fn run(graph: &mut Graph, step: &Value) -> Result<Value> {
    let node = |graph: &Graph, at: usize| -> NodeId {
        let name = step[at].as_str().expect("a name");
        graph.find(name).unwrap_or_else(|| panic!("no node {name}"))
    };
    match step[0].as_str().expect("a verb") {
        "call_function" => {
            let args = decode_args(&by_name(graph), &step[2]);
            let point = match step[3].as_str().expect("a place") {
                "before" => InsertPoint::Before(node(graph, 4)),
                "after" => InsertPoint::After(node(graph, 4)),
                _ => InsertPoint::End,
            };
            let previous = graph.set_insert_point(point)?;
            let made = graph.call_function(step[1].as_str().expect("a target"), args, vec![]);
            graph.set_insert_point(previous)?;
            Ok(json!(&**graph.node(made).name()))
        }
        "replace_all_uses_with" => {
            let (old, new) = (node(graph, 1), node(graph, 2));
            let mut filter = |graph: &Graph, user: NodeId| {
                step[3].as_array().is_none_or(|it| it.contains(&json!(&**graph.node(user).name())))
            };
            let changed = graph.replace_all_uses_with(old, new, &mut filter)?;
            Ok(json!(names(graph, changed)))
        }
        "erase_node" => graph.erase_node(node(graph, 1)).map(|()| Value::Null),
        "set_args" => {
            let target = node(graph, 1);
            let args = decode_args(&by_name(graph), &step[2]);
            graph.set_args(target, args)?;
            Ok(json!(names(graph, graph.node(target).all_input_nodes())))
        }
        "set_kwargs" => {
            let target = node(graph, 1);
            let kwargs = decode_kwargs(&by_name(graph), &step[2]);
            graph.set_kwargs(target, kwargs)?;
            Ok(json!(names(graph, graph.node(target).all_input_nodes())))
        }
        "update_arg" => {
            let target = node(graph, 1);
            let index = python_index(step[2].as_i64().expect("an index"), graph.node(target).args().len());
            let arg = decode(&by_name(graph), &step[3]);
            graph.update_arg(target, index, arg).map(|()| Value::Null)
        }
        "insert_arg" => {
            let index = usize::try_from(step[2].as_i64().expect("an index")).expect("not negative");
            let arg = decode(&by_name(graph), &step[3]);
            graph.insert_arg(node(graph, 1), index, arg).map(|()| Value::Null)
        }
        "replace_input_with" => {
            let (user, old, new) = (node(graph, 1), node(graph, 2), node(graph, 3));
            graph.replace_input_with(user, old, new).map(|()| Value::Null)
        }
        "prepend" => graph.move_before(node(graph, 2), node(graph, 1)).map(|()| Value::Null),
        "append" => graph.move_after(node(graph, 2), node(graph, 1)).map(|()| Value::Null),
        "node_copy" => {
            let source = graph.node(node(graph, 1)).clone();
            let copy = graph.node_copy(&source, &mut Arg::Node)?;
            Ok(json!(&**graph.node(copy).name()))
        }
        "_rename" => {
            let renamed = node(graph, 1);
            Ok(json!(&*graph.rename(renamed, step[2].as_str().expect("a name"))))
        }
        "lint" => graph.lint(None).into_iter().next().map_or(Ok(Value::Null), Err),
        other => panic!("unknown verb {other}"),
    }
}

/// Python counts negative indices from the end; what lies outside stays outside.
fn python_index(index: i64, len: usize) -> usize {
    let from_end = if index < 0 { index + i64::try_from(len).expect("lengths are small") } else { index };
    usize::try_from(from_end).unwrap_or(len)
}
