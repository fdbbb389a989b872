//! Regions without gradients and under autocast, at random places of random modules: their graphs compute the same, and each
//! call of an operator is where the same holds for it as before.

use super::layers::layered;
use super::random::{Writes, modules};
use super::{computed, lint, run};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use tracefx_core::DType;
use tracefx_ir::{Arg, Attribute, GraphModule, InsertPoint, Node, NodeId, Opcode};

const SET_GRAD: &str = "torch._C._set_grad_enabled";
const ENTER: &str = "torch.amp.autocast_mode._enter_autocast";
const EXIT: &str = "torch.amp.autocast_mode._exit_autocast";
const HIGHER_ORDER: &str = "torch.ops.higher_order.";

/// What is switched before a node: gradients on or off, autocast of some kind entered, or left.
#[derive(Clone, Copy, Debug)]
enum Switch {
    Grad(bool),
    Enter(u8),
    Exit,
}

fn grad() -> BoxedStrategy<Switch> {
    any::<bool>().prop_map(Switch::Grad).boxed()
}

fn autocast() -> BoxedStrategy<Switch> {
    prop_oneof![(0..4u8).prop_map(Switch::Enter), Just(Switch::Exit)].boxed()
}

/// A module as it is, and with switches.
fn switched(switch: impl Strategy<Value = Switch>) -> impl Strategy<Value = (GraphModule, GraphModule)> {
    let module = prop_oneof![modules(Writes::Allowed), layered(Writes::Allowed)];
    let switches = prop::collection::vec((any::<Index>(), switch), 1..8);
    (module, switches).prop_map(|(module, switches)| {
        let with = with_switches(&module, &switches);
        (module, with)
    })
}

/// What is entered is left, at the latest before the output. Autocast is off in all of its kinds, so that the numbers stay.
fn with_switches(module: &GraphModule, switches: &[(Index, Switch)]) -> GraphModule {
    let mut res = module.clone();
    let graph = &mut res.graph;
    let nodes: Vec<NodeId> =
        graph.nodes().filter(|it| !matches!(graph.node(*it).op(), Opcode::Placeholder | Opcode::GetAttr)).collect();
    let mut switches: Vec<(usize, Switch)> = switches.iter().map(|(at, it)| (at.index(nodes.len()), *it)).collect();
    switches.sort_by_key(|(at, _)| *at);
    let mut open = Vec::new();
    for (at, switch) in switches {
        graph.set_insert_point(InsertPoint::Before(nodes[at])).unwrap();
        match switch {
            Switch::Grad(is_enabled) => drop(graph.call_function(SET_GRAD, vec![Arg::Bool(is_enabled)], vec![])),
            Switch::Enter(kind) => {
                let dtype = if kind % 2 == 0 { DType::BFloat16 } else { DType::Float16 };
                let device = if kind < 2 { "cpu" } else { "cuda" };
                let args = vec![Arg::str(device), Arg::DType(dtype), Arg::Bool(false), Arg::Bool(false)];
                open.push(graph.call_function(ENTER, args, vec![]));
            }
            Switch::Exit => {
                if let Some(entered) = open.pop() {
                    graph.call_function(EXIT, vec![entered.into()], vec![]);
                }
            }
        }
    }
    graph.set_insert_point(InsertPoint::Before(nodes[nodes.len() - 1])).unwrap();
    while let Some(entered) = open.pop() {
        graph.call_function(EXIT, vec![entered.into()], vec![]);
    }
    graph.set_insert_point(InsertPoint::End).unwrap();
    res
}

/// What holds for a call: whether gradients are on, and which autocast was entered last.
#[derive(Clone, Debug, PartialEq)]
struct Holds {
    grad: bool,
    autocast: Vec<String>,
}

/// The targets of all calls, each with what holds for it, in the order of a run.
fn calls(module: &GraphModule, mut holds: Holds, res: &mut Vec<(String, Holds)>) {
    for id in module.graph.nodes() {
        let node = module.graph.node(id);
        let body = |at: usize| match &node.args()[at] {
            Arg::Node(read) => match module.attribute(module.graph.node(*read).target()).unwrap() {
                Attribute::Module(body) => body,
                other => panic!("{other:?} is no graph"),
            },
            other => panic!("{other:?} is no graph"),
        };
        match (node.op(), &**node.target()) {
            (Opcode::CallFunction, SET_GRAD) => holds.grad = node.args()[0] == Arg::Bool(true),
            (Opcode::CallFunction, ENTER) => holds.autocast.push(kind(node)),
            (Opcode::CallFunction, EXIT) => drop(holds.autocast.pop()),
            (Opcode::CallFunction, target) => match target.strip_prefix(HIGHER_ORDER) {
                Some("wrap_with_set_grad_enabled") => {
                    let holds = Holds { grad: node.args()[0] == Arg::Bool(true), ..holds.clone() };
                    calls(body(1), holds, res);
                }
                Some("wrap_with_autocast") => {
                    let mut holds = holds.clone();
                    holds.autocast.push(kind(node));
                    calls(body(4), holds, res);
                }
                Some(other) => panic!("{other} is not among these modules"),
                None if target == "operator.getitem" => {}
                None => res.push((target.to_string(), holds.clone())),
            },
            (Opcode::CallModule, target) => res.push((target.to_string(), holds.clone())),
            (Opcode::Placeholder | Opcode::GetAttr | Opcode::CallMethod | Opcode::Output, _) => {}
        }
    }
}

fn kind(node: &Node) -> String {
    format!("{:?}", &node.args()[..4])
}

fn calls_of(module: &GraphModule) -> Vec<(String, Holds)> {
    let mut res = Vec::new();
    calls(module, Holds { grad: true, autocast: Vec::new() }, &mut res);
    res
}

/// Runs the passes in order and checks what they make of the module with the switches; `plain` is the one without.
fn check((plain, switched): &(GraphModule, GraphModule), passes: &[&str]) -> Result<(), TestCaseError> {
    let mut changed = switched.clone();
    for name in passes {
        run(&mut changed, name, json!({})).unwrap_or_else(|problem| panic!("{name}: {problem}\n{}", switched.graph));
    }
    lint(&changed);
    let texts: Vec<String> = changed.modules().iter().map(|(path, it)| format!("{path}: {}", it.graph)).collect();
    let (text, before) = (texts.join("\n"), &switched.graph);
    prop_assert_eq!(calls_of(&changed), calls_of(switched), "{}\nof\n{}", text, before);
    prop_assert_eq!(computed(&changed), computed(plain), "{}\nof\n{}", text, before);
    for name in passes {
        let answer = run(&mut changed, name, json!({})).unwrap();
        prop_assert_eq!(&answer["modified"], false, "{} changed its own result, of\n{}", name, before);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: super::config().cases * 5 / 4, ..super::config() })]

    #[test]
    fn regions_without_gradients(modules in switched(grad())) {
        check(&modules, &["replace_set_grad_with_hop"])?;
    }

    #[test]
    fn regions_under_autocast(modules in switched(autocast())) {
        check(&modules, &["replace_autocast_with_hop"])?;
    }

    #[test]
    fn regions_that_cross(modules in switched(prop_oneof![grad(), autocast()])) {
        check(&modules, &["replace_set_grad_with_hop", "replace_autocast_with_hop"])?;
    }
}
