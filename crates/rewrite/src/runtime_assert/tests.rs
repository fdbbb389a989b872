//! The checks that PyTorch inserts into the same graphs, and those of ours that it has not.

use super::*;
use serde_json::Value as Json;
use tracefx_core::DType;
use tracefx_ir::TensorMeta;
use tracefx_sym::{Parser, call};

const CASES: &str = include_str!("../../../../tests/fixtures/passes/runtime_asserts.jsonl");

fn text(it: &Json) -> &str {
    it.as_str().unwrap()
}

fn ints(parser: &mut Parser, it: &Json) -> Vec<SymInt> {
    it.as_array().unwrap().iter().map(|it| parser.parse_int(text(it)).unwrap()).collect()
}

fn val(parser: &mut Parser, it: &Json) -> Option<Val> {
    if let Some(int) = it.get("int") {
        return Some(Val::Int(parser.parse_int(text(int)).unwrap()));
    }
    if let Some(bool) = it.get("bool") {
        return Some(Val::Bool(parser.parse_bool(text(bool)).unwrap()));
    }
    let sizes = ints(parser, it.get("sizes")?);
    let strides = ints(parser, &it["strides"]);
    Some(Val::Tensor(TensorMeta { strides, ..TensorMeta::contiguous(DType::Float32, sizes) }))
}

fn arg(graph: &Graph, it: &Json) -> Arg {
    match it {
        Json::Null => Arg::None,
        Json::Bool(it) => Arg::Bool(*it),
        Json::Number(it) => it.as_i64().map_or_else(|| Arg::Float(it.as_f64().unwrap()), Arg::Int),
        Json::String(it) => Arg::str(it),
        Json::Array(items) => Arg::List(items.iter().map(|it| arg(graph, it)).collect()),
        Json::Object(it) => Arg::Node(graph.find(text(&it["node"])).unwrap()),
    }
}

fn read(nodes: &Json, parser: &mut Parser) -> GraphModule {
    let mut graph = Graph::new();
    for it in nodes.as_array().unwrap() {
        let op = Opcode::from_name(text(&it["op"])).unwrap();
        let Arg::List(args) = arg(&graph, &it["args"]) else { panic!("args are a list") };
        let kwargs = it["kwargs"].as_object().unwrap();
        let kwargs = kwargs.iter().map(|(key, value)| (key.as_str().into(), arg(&graph, value))).collect();
        let node = graph.create_named_node(op, text(&it["target"]), args, kwargs, text(&it["name"])).unwrap();
        graph.meta_mut(node).val = val(parser, &it["val"]);
    }
    GraphModule::new(graph)
}

/// The graph with a number in the place of each node's name, and each value: names depend on those that were given before.
fn shown(graph: &Graph) -> Vec<String> {
    let names: Vec<&str> = graph.nodes().map(|it| &**graph.node(it).name()).collect();
    let place = |name: &str| names.iter().position(|it| *it == name).unwrap();
    let line = |id| {
        let node = graph.node(id);
        let args = node.args().iter().map(|it| match it {
            Arg::Str(text) if text.ends_with('\'') => {
                let (start, name) = text.trim_end_matches('\'').rsplit_once('\'').unwrap();
                format!("{start}{}", place(name))
            }
            it => graph.format_arg(&it.map_nodes(&mut |node| Arg::Int(1000 + place(graph.node(node).name()) as i64))),
        });
        let is_number = matches!(node.meta.val, Some(Val::Int(_) | Val::Bool(_)));
        let val = is_number.then(|| match &node.meta.val {
            Some(Val::Bool(it)) => it.to_string(),
            Some(Val::Int(it)) => it.to_string(),
            _ => unreachable!(),
        });
        let args = args.collect::<Vec<_>>().join(", ");
        format!("{} {} ({args}) {}", node.op(), node.target(), val.unwrap_or_default())
    };
    graph.nodes().map(line).collect()
}

#[test]
fn the_same_checks_as_pytorch_and_no_more_in_a_second_run() {
    assert!(CASES.lines().count() > 10);
    for case in CASES.lines().map(|it| serde_json::from_str::<Json>(it).unwrap()) {
        let mut parser = Parser::default();
        let mut module = read(&case["before"], &mut parser);
        let expected = read(&case["after"], &mut parser);
        let asserts = case["asserts"].as_array().unwrap();
        let asserts = asserts.iter().map(|it| parser.parse_bool(text(it)).unwrap()).collect();
        let range = |(name, it): (&String, &Json)| {
            let range = ValueRange { min: it[0].as_i64(), max: it[1].as_i64() };
            (Symbol::from_name(name.as_str()), range)
        };
        let ranges = case["ranges"].as_object().unwrap().iter().map(range).collect();
        let known = DeferredAsserts { ranges, asserts };
        let answer = insert_deferred_runtime_asserts(&mut module, &known).unwrap();
        let name = text(&case["name"]);
        assert_eq!(shown(&module.graph), shown(&expected.graph), "{name}");
        assert_eq!(answer, InsertedAsserts { modified: case["before"] != case["after"], skipped: vec![] }, "{name}");
        assert_eq!(module.graph.lint(None).len(), 0, "{name}");
        let before = module.graph.to_string();
        let again = insert_deferred_runtime_asserts(&mut module, &known).unwrap();
        assert_eq!((again.modified, module.graph.to_string()), (false, before), "{name}");
    }
}

/// A graph that reads `u0`, and after it calls these.
fn reads_u0(calls: &[(&str, Vec<Arg>)]) -> (GraphModule, SymInt) {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let item = graph.call_function("torch.ops.aten.item.default", vec![x.into()], vec![]);
    let u0 = SymInt::from(Symbol::integer("u0"));
    graph.meta_mut(item).val = Some(Val::Int(u0.clone()));
    for (target, args) in calls {
        let args = [Arg::Node(item)].into_iter().chain(args.clone()).collect();
        graph.call_function(target, args, vec![]);
    }
    graph.output(item.into());
    (GraphModule::new(graph), u0)
}

fn targets(module: &GraphModule) -> Vec<&str> {
    module.graph.nodes().map(|it| &**module.graph.node(it).target()).collect()
}

#[test]
fn what_no_node_gives_is_told() {
    let (mut module, u0) = reads_u0(&[]);
    let u7 = SymInt::from(Symbol::integer("u7"));
    let known = DeferredAsserts { asserts: vec![SymBool::lt(&u0, &u7)], ..DeferredAsserts::default() };
    let answer = insert_deferred_runtime_asserts(&mut module, &known).unwrap();
    assert_eq!(answer, InsertedAsserts { modified: false, skipped: vec!["u0 < u7".into()] });
}

#[test]
fn what_never_holds_is_refused_once() {
    let s0 = SymInt::from(Symbol::size("s0"));
    let Ok(Expr::Bool(is_empty)) = call(Func::Eq, vec![Expr::Int(0.into()), Expr::Int(s0.clone())]) else {
        panic!("a relation is a condition");
    };
    for assert in [SymBool::Const(false), is_empty] {
        let (mut module, _) = reads_u0(&[]);
        let x = module.graph.find("x").unwrap();
        module.graph.meta_mut(x).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, vec![s0.clone()])));
        let known = DeferredAsserts { asserts: vec![assert], ..DeferredAsserts::default() };
        for is_modified in [true, false] {
            assert_eq!(insert_deferred_runtime_asserts(&mut module, &known).unwrap().modified, is_modified);
            assert_eq!(module.graph.find_nodes(Opcode::CallFunction, ASSERT).count(), 1, "{}", module.graph);
        }
    }
}

#[test]
fn a_part_of_a_sum_that_is_there_is_not_computed_again() {
    let (mut module, u0) = reads_u0(&[("operator.add", vec![Arg::Int(3)])]);
    let add = module.graph.find("add").unwrap();
    module.graph.meta_mut(add).val = Some(Val::Int(&u0 + &3.into()));
    let output = module.graph.output_node().unwrap();
    module.graph.set_insert_point(InsertPoint::Before(output)).unwrap();
    let other = module.graph.call_function("torch.ops.aten.item.default", vec![add.into()], vec![]);
    let u1 = SymInt::from(Symbol::integer("u1"));
    module.graph.meta_mut(other).val = Some(Val::Int(u1.clone()));
    let known = DeferredAsserts {
        asserts: vec![SymBool::le(&(&(&u0 + &3.into()) + &u1), &9.into())],
        ..DeferredAsserts::default()
    };
    insert_deferred_runtime_asserts(&mut module, &known).unwrap();
    assert_eq!(module.graph.find_nodes(Opcode::CallFunction, "operator.add").count(), 2, "{}", module.graph);
    assert!(!insert_deferred_runtime_asserts(&mut module, &known).unwrap().modified);
}

#[test]
fn a_part_of_a_minimum_that_is_there_is_not_computed_again() {
    let (mut module, u0) = reads_u0(&[("torch.sym_min", vec![Arg::Int(3)])]);
    let least = module.graph.find("sym_min").unwrap();
    let Ok(Expr::Int(known)) = call(Func::Min, vec![Expr::Int(u0.clone()), Expr::Int(3.into())]) else {
        panic!("an int")
    };
    module.graph.meta_mut(least).val = Some(Val::Int(known));
    let output = module.graph.output_node().unwrap();
    module.graph.set_insert_point(InsertPoint::Before(output)).unwrap();
    let other = module.graph.call_function("torch.ops.aten.item.default", vec![least.into()], vec![]);
    let u1 = SymInt::from(Symbol::integer("u1"));
    module.graph.meta_mut(other).val = Some(Val::Int(u1.clone()));
    let all = [Expr::Int(3.into()), Expr::Int(u0.clone()), Expr::Int(u1)];
    let Ok(Expr::Int(of_all)) = call(Func::Min, all.to_vec()) else { panic!("an int") };
    let known = DeferredAsserts { asserts: vec![SymBool::le(&of_all, &1.into())], ..DeferredAsserts::default() };
    insert_deferred_runtime_asserts(&mut module, &known).unwrap();
    assert_eq!(module.graph.find_nodes(Opcode::CallFunction, "torch.sym_min").count(), 2, "{}", module.graph);
    assert!(!insert_deferred_runtime_asserts(&mut module, &known).unwrap().modified);
}

#[test]
fn a_bound_that_follows_from_the_range_is_not_checked_again() {
    for (value, n_checks) in [(9, 2), (5, 3)] {
        let (mut module, u0) = reads_u0(&[]);
        let ranges = [(Symbol::integer("u0"), ValueRange::between(2, 7))].into_iter().collect();
        let known = DeferredAsserts { ranges, asserts: vec![SymBool::le(&u0, &value.into())] };
        insert_deferred_runtime_asserts(&mut module, &known).unwrap();
        assert_eq!(targets(&module).iter().filter(|it| **it == ASSERT).count(), n_checks);
    }
}

#[test]
fn checks_of_the_user_become_operators_with_their_words() {
    let (mut module, u0) = reads_u0(&[("operator.ge", vec![Arg::Int(2)])]);
    let ge = module.graph.find("ge").unwrap();
    module.graph.meta_mut(ge).val = Some(Val::Bool(SymBool::ge(&u0, &2.into())));
    let output = module.graph.output_node().unwrap();
    module.graph.set_insert_point(InsertPoint::Before(output)).unwrap();
    module.graph.call_function("torch._check", vec![ge.into(), Arg::str("too few")], vec![]);
    module.graph.call_function("torch._check", vec![ge.into()], vec![]);
    module.graph.call_function(ASSERT, vec![Arg::Bool(true), Arg::str("")], vec![]);
    let ranges = [(Symbol::integer("u0"), ValueRange::at_least(2))].into_iter().collect();
    let known = DeferredAsserts { ranges, asserts: vec![SymBool::le(&2.into(), &u0)] };
    insert_deferred_runtime_asserts(&mut module, &known).unwrap();
    assert_eq!(targets(&module), ["x", "torch.ops.aten.item.default", "operator.ge", ASSERT, "output"]);
    let check = module.graph.find_nodes(Opcode::CallFunction, ASSERT).next().unwrap();
    assert_eq!(module.graph.node(check).args()[1], Arg::str("too few"));
}

#[test]
fn ranges_that_were_told_to_the_compiler_are_checked_instead() {
    let (mut module, _) = reads_u0(&[(CONSTRAIN[0], vec![]), (CONSTRAIN[1], vec![])]);
    let ranges = [(Symbol::integer("u0"), ValueRange::between(0, i64::MAX))].into_iter().collect();
    let known = DeferredAsserts { ranges, ..DeferredAsserts::default() };
    insert_deferred_runtime_asserts(&mut module, &known).unwrap();
    assert_eq!(targets(&module), ["x", "torch.ops.aten.item.default", "operator.ge", ASSERT, "output"]);
}

#[test]
fn symbols_in_one_of_several_results_are_read_out_of_it() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let unique = graph.call_function("torch.ops.aten._unique2.default", vec![x.into()], vec![]);
    let sizes = vec![SymInt::from(Symbol::integer("u0"))];
    let found = Val::Tensor(TensorMeta::contiguous(DType::Float32, sizes));
    graph.meta_mut(unique).val = Some(Val::Seq { items: vec![Val::None, found], is_tuple: true });
    graph.output(unique.into());
    let mut module = GraphModule::new(graph);
    let ranges = [(Symbol::integer("u0"), ValueRange::at_least(1))].into_iter().collect();
    let known = DeferredAsserts { ranges, ..DeferredAsserts::default() };
    insert_deferred_runtime_asserts(&mut module, &known).unwrap();
    let read = ["operator.getitem", "torch.ops.aten.sym_size.int", "operator.ge", ASSERT];
    assert_eq!(targets(&module)[2..6], read);
    assert!(!insert_deferred_runtime_asserts(&mut module, &known).unwrap().modified);
}

#[test]
fn sizes_of_inputs_that_are_derived_or_unbacked_are_checked() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let (s0, u0) = (SymInt::from(Symbol::size("s0")), SymInt::from(Symbol::integer("u0")));
    let sizes = vec![&s0 * 2 + 1, u0.clone()];
    graph.meta_mut(x).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, sizes)));
    let relu = graph.call_function("torch.ops.aten.relu.default", vec![x.into()], vec![]);
    graph.output(relu.into());
    let mut module = GraphModule::new(graph);
    let asserts = vec![SymBool::lt(&s0, &7.into()), SymBool::lt(&u0, &s0)];
    let known = DeferredAsserts { asserts, ..DeferredAsserts::default() };
    let answer = insert_deferred_runtime_asserts(&mut module, &known).unwrap();
    assert_eq!(answer, InsertedAsserts { modified: true, skipped: vec![] }, "{}", module.graph);
    assert_eq!(module.graph.find_nodes(Opcode::CallFunction, ASSERT).count(), 2, "{}", module.graph);
    assert_eq!(module.graph.find_nodes(Opcode::CallFunction, "operator.floordiv").count(), 1, "{}", module.graph);
    let before = module.graph.to_string();
    let again = insert_deferred_runtime_asserts(&mut module, &known).unwrap();
    assert_eq!((again.modified, module.graph.to_string()), (false, before));
}
