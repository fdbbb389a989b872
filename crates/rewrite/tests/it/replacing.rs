use crate::build::{call, module};
use tracefx_core::{Code, DType, Tensor};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, TensorKind};
use tracefx_ops::registry;
use tracefx_rewrite::{ReplaceOptions, Replacement, replace_pattern, replace_pattern_with_filters};

fn unary(target: &str) -> GraphModule {
    module(|graph| {
        let x = graph.placeholder("x");
        call(graph, target, &[x]).into()
    })
}

/// Two unary functions of two inputs, or of one and another.
fn pair(first: &str, second: &str) -> GraphModule {
    module(|graph| {
        let (x, y) = (graph.placeholder("x"), graph.placeholder("y"));
        let (a, b) = (call(graph, first, &[x]), call(graph, second, &[y]));
        Arg::Tuple(vec![a.into(), b.into()])
    })
}

fn targets(module: &GraphModule) -> Vec<&str> {
    module.graph.nodes().map(|it| &**module.graph.node(it).target()).collect()
}

#[track_caller]
fn assert_well_formed(module: &GraphModule) {
    assert_eq!(module.graph.lint(Some(module)), [], "{}", module.graph);
}

#[test]
fn a_user_before_an_input_is_moved_behind_it() {
    let mut target = module(|graph| {
        let x = graph.placeholder("x");
        let a = call(graph, "torch.relu", &[x]);
        let early = call(graph, "torch.cos", &[a]);
        let earlier = call(graph, "torch.tan", &[early]);
        let y = call(graph, "torch.exp", &[x]);
        let b = call(graph, "torch.sigmoid", &[y]);
        Arg::Tuple(vec![a.into(), b.into(), earlier.into()])
    });
    let replaced =
        replace_pattern(&mut target, &pair("torch.relu", "torch.sigmoid"), &pair("torch.neg", "torch.abs"), registry());
    assert_eq!(replaced.unwrap().len(), 1);
    assert_well_formed(&target);
    assert_eq!(targets(&target), ["x", "torch.exp", "torch.neg", "torch.abs", "torch.cos", "torch.tan", "output"]);
}

#[test]
fn chains_are_redirected_and_trivial_replacements_pass_through() {
    let mut target = module(|graph| {
        let mut value = graph.placeholder("x");
        for _ in 0..1000 {
            value = call(graph, "torch.neg", &[value]);
        }
        value.into()
    });
    let identity = module(|graph| graph.placeholder("x").into());
    let replaced = replace_pattern(&mut target, &unary("torch.neg"), &identity, registry()).unwrap();
    assert_eq!(replaced.len(), 1000);
    assert!(replaced.iter().all(|it| it.replacements.is_empty()));
    assert_well_formed(&target);
    assert_eq!(targets(&target), ["x", "output"]);
}

#[test]
fn an_input_in_a_list_is_redirected_too() {
    let cat = |build: &dyn Fn(&mut Graph, NodeId) -> Arg| {
        module(|graph| {
            let x = graph.placeholder("x");
            build(graph, x)
        })
    };
    let mut target = cat(&|graph, x| {
        let a = graph.call_function("torch.cat", vec![Arg::List(vec![x.into(), x.into()])], vec![]);
        graph.call_function("torch.cat", vec![Arg::List(vec![a.into(), x.into()])], vec![]).into()
    });
    let pattern = cat(&|graph, x| call(graph, "torch.cat", &[x]).into());
    let replacement = cat(&|graph, x| call(graph, "torch.hstack", &[x]).into());
    assert_eq!(replace_pattern(&mut target, &pattern, &replacement, registry()).unwrap().len(), 2);
    assert_well_formed(&target);
    assert_eq!(targets(&target), ["x", "torch.hstack", "torch.hstack", "output"]);
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let refused = |pattern: &GraphModule, replacement: &GraphModule| {
        let mut target = unary("torch.neg");
        let before = target.graph.to_string();
        let problem = replace_pattern(&mut target, pattern, replacement, registry()).unwrap_err();
        assert_eq!(target.graph.to_string(), before);
        (problem.code(), problem.message().to_owned())
    };
    let neg = unary("torch.neg");
    assert_eq!(
        refused(&neg, &pair("torch.abs", "torch.exp")),
        (Code::ReplacementInvalid, "Placeholder count mismatch: 1 vs 2".to_owned())
    );
    let missing = module(|graph| {
        let x = graph.placeholder("x");
        let weight = graph.get_attr("weight");
        call(graph, "torch.mul", &[x, weight]).into()
    });
    assert_eq!(refused(&neg, &missing).0, Code::ReplacementInvalid);
    let identity = module(|graph| graph.placeholder("x").into());
    assert_eq!(refused(&identity, &neg).0, Code::ReplacementInvalid);
}

#[test]
fn callbacks_and_filters_choose_what_is_replaced() {
    let mut target = module(|graph| {
        let x = graph.placeholder("x");
        let scaled =
            [2, 3, 4].map(|it| graph.call_function("torch.mul", vec![x.into(), Arg::Int(it)], vec![])).map(Arg::Node);
        Arg::Tuple(scaled.to_vec())
    });
    let pattern = module(|graph| {
        let (x, by) = (graph.placeholder("x"), graph.placeholder("by"));
        call(graph, "torch.mul", &[x, by]).into()
    });
    let replaced = replace_pattern_with_filters(
        &mut target,
        &pattern,
        Replacement::Callback(&|found, _, _| {
            let name = if found.placeholder_nodes[1] == Arg::Int(2) { "torch.double" } else { "torch.times" };
            Ok(module(|graph| {
                let (x, by) = (graph.placeholder("x"), graph.placeholder("by"));
                let args: &[NodeId] = if name == "torch.double" { &[x] } else { &[x, by] };
                call(graph, name, args).into()
            }))
        }),
        &[&|found, _, _| found.placeholder_nodes[1] != Arg::Int(3)],
        registry(),
        &ReplaceOptions::default(),
    );
    assert_eq!(replaced.unwrap().len(), 2);
    assert_well_formed(&target);
    assert_eq!(targets(&target), ["x", "torch.mul", "torch.double", "torch.times", "output"]);
}

#[test]
fn attributes_come_along_and_unused_modules_go() {
    let with_module = |name: &str, class: &str, target: &str| {
        let mut res = module(|graph| {
            let x = graph.placeholder("x");
            graph.create_node(Opcode::CallModule, target, vec![x.into()], vec![], None).unwrap().into()
        });
        let mut leaf = GraphModule::new(Graph::new());
        leaf.class_name = class.into();
        let (parent, child) = name.split_once('.').expect("a nested name");
        let mut outer = GraphModule::new(Graph::new());
        outer.attributes.insert(child.into(), Attribute::Module(Box::new(leaf)));
        res.attributes.insert(parent.into(), Attribute::Module(Box::new(outer)));
        res
    };
    let mut target = with_module("old.act", "ReLU", "old.act");
    let pattern = with_module("old.act", "ReLU", "old.act");
    let mut replacement = with_module("new.deep", "GELU", "new.deep");
    let tensor = Tensor::zeros(DType::Float32, &[2]).unwrap();
    replacement.attributes.insert("unused".into(), Attribute::Tensor { tensor, kind: TensorKind::Parameter });
    replace_pattern(&mut target, &pattern, &replacement, registry()).unwrap();
    assert_well_formed(&target);
    let modules: Vec<(String, &str)> =
        target.modules().into_iter().skip(1).map(|(path, it)| (path, &*it.class_name)).collect();
    assert_eq!(modules, [("new".to_owned(), "Module"), ("new.deep".to_owned(), "GELU")]);
    assert!(!target.attributes.contains_key("unused"));
}

#[test]
fn a_literal_may_take_the_place_of_a_match() {
    let mut target = module(|graph| {
        let x = graph.placeholder("x");
        let ones = graph.call_function("torch.numel", vec![x.into()], vec![]);
        graph.call_function("torch.add", vec![x.into(), ones.into()], vec![]).into()
    });
    let seven = module(|graph| {
        graph.placeholder("x");
        Arg::Int(7)
    });
    replace_pattern(&mut target, &unary("torch.numel"), &seven, registry()).unwrap();
    let add = target.graph.find("add").unwrap();
    assert_eq!(target.graph.node(add).args()[1], Arg::Int(7));
}
