use crate::build::{call, module};
use tracefx_core::{Code, DType, Tensor};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, TensorKind};
use tracefx_ops::registry;
use tracefx_rewrite::{
    InternalMatch, MatcherOptions, ReplaceOptions, Replacement, Rule, RuleSet, SubgraphMatcher, replace_pattern,
    replace_pattern_with_filters,
};

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

/// `x` and a constant of this value, as a trace of a function records it.
fn with_constant(target: &str, value: f32) -> GraphModule {
    let mut res = module(|graph| {
        let (x, constant) = (graph.placeholder("x"), graph.get_attr("_tensor_constant0"));
        call(graph, target, &[x, constant]).into()
    });
    let tensor = Tensor::from_slice(&[value], &[1]).unwrap();
    res.set_attribute("_tensor_constant0", Attribute::Tensor { tensor, kind: TensorKind::Constant });
    res
}

#[test]
fn constants_that_traces_named_stay_apart() {
    let mut target = with_constant("torch.add", 1.0);
    let replacement = with_constant("torch.mul", 5.0);
    // The second time the replacement takes its own place, and its constant is there already.
    for replaced in ["torch.add", "torch.mul"] {
        replace_pattern(&mut target, &with_constant(replaced, 2.0), &replacement, registry()).unwrap();
        assert_well_formed(&target);
        assert_eq!(targets(&target), ["x", "_tensor_constant1", "torch.mul", "output"]);
        assert_eq!(target.attributes.len(), 2);
    }
    let Attribute::Tensor { tensor, .. } = target.attribute("_tensor_constant1").unwrap() else { panic!("no tensor") };
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [5.0]);
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

#[test]
fn a_literal_that_doubles_with_every_match_is_refused_and_nothing_changes() {
    let mut target = module(|graph| {
        let mut value = graph.placeholder("x");
        for _ in 0..64 {
            value = call(graph, "torch.relu", &[value]);
        }
        value.into()
    });
    let before = target.graph.to_string();
    let twice = module(|graph| {
        let x = graph.placeholder("x");
        Arg::Tuple(vec![Arg::List(vec![x.into(), x.into()])])
    });
    let problem = replace_pattern(&mut target, &unary("torch.relu"), &twice, registry()).unwrap_err();
    assert_eq!(problem.code(), Code::LimitExceeded);
    assert_eq!(target.graph.to_string(), before);
    let mut short = unary("torch.relu");
    replace_pattern(&mut short, &unary("torch.relu"), &twice, registry()).unwrap();
    assert_eq!(short.graph.to_string(), "graph():\n    %x : [num_users=1] = placeholder[target=x]\n    return [x, x]");
}

#[test]
fn a_match_whose_input_is_one_of_its_own_nodes_stays() {
    // The second input of the pattern can only be the node that the first one made.
    let both = |first: &str, second: &str| {
        module(|graph| {
            let (x, y) = (graph.placeholder("x"), graph.placeholder("y"));
            let made = [call(graph, first, &[x]), call(graph, second, &[y])];
            Arg::Tuple(made.map(Arg::from).to_vec())
        })
    };
    let mut target = calls(&[("torch.relu", &[0]), ("torch.neg", &[1])], &[1, 2]);
    let before = target.graph.to_string();
    let replaced =
        replace_pattern(&mut target, &both("torch.relu", "torch.neg"), &both("torch.sin", "torch.cos"), registry());
    assert_eq!(replaced.unwrap().len(), 0);
    assert_eq!(target.graph.to_string(), before);
}

/// A module of one input that calls these functions, the first argument being a value by its place: 0 is the input.
fn calls(calls: &[(&str, &[usize])], returned: &[usize]) -> GraphModule {
    module(|graph| {
        let mut values = vec![graph.placeholder("x")];
        for (target, args) in calls {
            let args: Vec<NodeId> = args.iter().map(|&it| values[it]).collect();
            values.push(call(graph, target, &args));
        }
        Arg::Tuple(returned.iter().map(|&it| values[it].into()).collect())
    })
}

/// What keeps the pattern from being replaced, as it is told.
fn why(target: &GraphModule, pattern: &GraphModule) -> Vec<String> {
    let matcher = SubgraphMatcher::new(pattern, registry(), MatcherOptions::default()).unwrap();
    let misses = matcher.explain(target, registry()).unwrap();
    let found = |it: Option<Arg>| it.map_or(String::new(), |it| target.graph.format_arg(&it));
    misses.into_iter().map(|it| format!("{} instead of {}", found(it.found), it.expected)).collect()
}

#[test]
fn a_write_stays_behind_what_read_before_it() {
    let mut target =
        calls(&[("torch.sin", &[0]), ("torch.exp", &[0]), ("torch.relu_", &[0]), ("torch.add", &[1, 3])], &[4]);
    replace_pattern(&mut target, &unary("torch.sin"), &unary("torch.cos"), registry()).unwrap();
    assert_well_formed(&target);
    assert_eq!(targets(&target), ["x", "torch.exp", "torch.cos", "torch.relu_", "torch.add", "output"]);
}

#[test]
fn a_match_that_a_write_keeps_apart_stays_and_says_so() {
    let build = |write: &'static str| {
        calls(&[("torch.sin", &[0]), (write, &[0]), ("torch.cos", &[0]), ("torch.mul", &[1, 3])], &[4])
    };
    let pattern = calls(&[("torch.sin", &[0]), ("torch.cos", &[0]), ("torch.mul", &[1, 2])], &[3]);
    let mut target = build("torch.relu_");
    let replaced = replace_pattern(&mut target, &pattern, &unary("torch.exp"), registry()).unwrap();
    assert_eq!((replaced.len(), targets(&target)), (0, targets(&build("torch.relu_"))));
    assert_eq!(
        why(&target, &pattern),
        ["%sin instead of what may pass %relu_, though one writes to what the other uses"]
    );
    let mut target = build("torch.relu");
    assert_eq!(replace_pattern(&mut target, &pattern, &unary("torch.exp"), registry()).unwrap().len(), 1);
}

#[test]
fn a_match_writes_in_the_order_of_the_pattern() {
    let both = |first: &'static str, second: &'static str| calls(&[(first, &[0]), (second, &[0])], &[1, 2]);
    let (early, late) = (both("torch.sin", "torch.relu_"), both("torch.relu_", "torch.sin"));
    let turned = module(|graph| {
        let x = graph.placeholder("x");
        let (write, read) = (call(graph, "torch.relu_", &[x]), call(graph, "torch.sin", &[x]));
        Arg::Tuple(vec![read.into(), write.into()])
    });
    for (target, n_replaced) in [(&early, 1), (&late, 0), (&turned, 0)] {
        let mut target = target.clone();
        let replaced = replace_pattern(&mut target, &early, &pair_of_one(), registry()).unwrap();
        assert_eq!(replaced.len(), n_replaced, "{}", target.graph);
    }
    assert_eq!(why(&late, &early), ["%sin instead of what may pass %relu_, though one writes to what the other uses"]);
}

fn pair_of_one() -> GraphModule {
    calls(&[("torch.abs", &[0]), ("torch.neg", &[0])], &[1, 2])
}

#[test]
fn a_replacement_that_writes_stays_behind_earlier_reads() {
    // The second call is the last that reads `x`, so it may be done in place, if the first is done before it.
    let mut target =
        calls(&[("torch.relu", &[0]), ("torch.relu", &[0]), ("torch.sin", &[2]), ("torch.add", &[1, 3])], &[4]);
    let pattern = unary("torch.relu");
    let make = |found: &InternalMatch, graph: &Graph, _: &Graph| {
        let is_first = found.returning_nodes[0].as_node() == graph.find("relu");
        Ok(unary(if is_first { "torch.abs" } else { "torch.relu_" }))
    };
    let options = ReplaceOptions::default();
    let by = Replacement::Callback(&make);
    replace_pattern_with_filters(&mut target, &pattern, by, &[], registry(), &options).unwrap();
    assert_well_formed(&target);
    assert_eq!(targets(&target), ["x", "torch.abs", "torch.relu_", "torch.sin", "torch.add", "output"]);
}

#[test]
fn a_pattern_that_does_not_return_its_write_is_refused() {
    let pattern = module(|graph| {
        let x = graph.placeholder("x");
        graph.call_function("operator.setitem", vec![x.into(), Arg::Int(0), Arg::Int(1)], vec![]);
        call(graph, "torch.sin", &[x]).into()
    });
    let mut target = unary("torch.sin");
    let refusal = replace_pattern(&mut target, &pattern, &unary("torch.cos"), registry()).unwrap_err();
    assert_eq!(refusal.code(), Code::PatternInvalid);
    assert!(refusal.to_string().contains("setitem"), "{refusal}");
}

#[test]
fn a_pattern_may_record_what_it_does_not_return() {
    let pattern = module(|graph| {
        let x = graph.placeholder("x");
        call(graph, "torch.ops.profiler._record_function_enter_new.default", &[]);
        call(graph, "torch.sin", &[x]).into()
    });
    let mut target = unary("torch.sin");
    assert_eq!(replace_pattern(&mut target, &pattern, &unary("torch.cos"), registry()).unwrap().len(), 1);
}

#[test]
fn late_users_of_written_memory_take_no_long_search() {
    let n_late = 1000;
    let mut target = module(|graph| {
        let x = graph.placeholder("x");
        let written = call(graph, "torch.relu_", &[x]);
        let sin = call(graph, "torch.sin", &[written]);
        let last = (0..n_late).fold(written, |it, _| call(graph, "torch.exp", &[it]));
        call(graph, "torch.add", &[sin, last]).into()
    });
    assert_eq!(replace_pattern(&mut target, &unary("torch.sin"), &unary("torch.cos"), registry()).unwrap().len(), 1);
    assert_well_formed(&target);
    let at = targets(&target).iter().position(|it| *it == "torch.cos").unwrap();
    assert!((2..n_late).contains(&at), "it is at {at}");
}

/// The search counts its steps; a match counts as a hundred.
#[test]
fn a_pattern_that_overlaps_itself_is_replaced_in_linear_time() {
    let chain = |target: &str, n_calls: usize| {
        module(|graph| {
            let x = graph.placeholder("x");
            (0..n_calls).fold(x, |it, _| call(graph, target, &[it])).into()
        })
    };
    for n_calls in [4_000, 8_000, 16_000, 32_000] {
        let mut target = chain("torch.relu", n_calls);
        let matching = MatcherOptions { max_steps: Some(n_calls as u64 * 100), ..MatcherOptions::default() };
        let options = ReplaceOptions { matching, ..ReplaceOptions::default() };
        let (pattern, by) = (chain("torch.relu", 2), unary("torch.relu"));
        let by = Replacement::Module(&by);
        let replaced = replace_pattern_with_filters(&mut target, &pattern, by, &[], registry(), &options).unwrap();
        assert_eq!((replaced.len(), target.graph.len()), (n_calls / 2, n_calls / 2 + 2));
    }
}

#[test]
fn a_match_that_nothing_keeps_apart_any_more_is_replaced_at_last() {
    // `relu_` goes away by the second rule, which matches after the first was looked for.
    let target =
        calls(&[("torch.sin", &[0]), ("torch.relu_", &[0]), ("torch.cos", &[0]), ("torch.mul", &[1, 3])], &[2, 4]);
    let pattern = calls(&[("torch.sin", &[0]), ("torch.cos", &[0]), ("torch.mul", &[1, 2])], &[3]);
    let options = ReplaceOptions::default();
    let rule =
        |name: &str, pattern, replacement| Rule { name: name.into(), pattern, replacement, options: options.clone() };
    let rules =
        vec![rule("product", pattern, unary("torch.exp")), rule("pure", unary("torch.relu_"), unary("torch.relu"))];
    let mut changed = target.clone();
    let trace = RuleSet { rules }.run_to_fixpoint(&mut changed, registry(), None).unwrap();
    assert_well_formed(&changed);
    assert_eq!(trace.fired.iter().map(|it| &*it.rule).collect::<Vec<_>>(), ["pure", "product"]);
    assert!(trace.is_fixpoint);
}
