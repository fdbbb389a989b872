use crate::build::{call, module};
use tracefx_core::{Code, DType, Result};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Opcode, TensorMeta, Val};
use tracefx_ops::registry;
use tracefx_rewrite::{
    ANY_OF, ConstantValue, Constraint, InternalMatch, MatcherOptions, OPTIONAL, SubgraphMatcher,
    SubgraphMatcherWithNameNodeMap,
};
use tracefx_sym::SymInt;

/// A chain of this many calls.
fn chain(target: &str, n_calls: usize) -> GraphModule {
    module(|graph| {
        let mut value = graph.placeholder("x");
        for _ in 0..n_calls {
            value = call(graph, target, &[value]);
        }
        value.into()
    })
}

fn matches(pattern: &GraphModule, target: &GraphModule, options: MatcherOptions) -> Result<Vec<InternalMatch>> {
    SubgraphMatcher::new(pattern, registry(), options)?.matches(target)
}

#[test]
fn a_chain_of_a_million_nodes_is_searched() {
    let target = chain("torch.neg", 1_000_000);
    let found = matches(&chain("torch.neg", 2), &target, MatcherOptions::default()).unwrap();
    assert_eq!(found.len(), 500_000);
}

/// Each call of the chain may be each of the pattern's; a match counts as a hundred steps.
#[test]
fn a_pattern_that_is_like_its_own_parts_takes_linear_time() {
    for n_calls in [1_000, 10_000, 100_000] {
        for (remove_overlapping_matches, steps_of_a_call) in [(true, 40), (false, 140)] {
            let max_steps = Some(n_calls as u64 * steps_of_a_call);
            let options = MatcherOptions { remove_overlapping_matches, max_steps, ..MatcherOptions::default() };
            let found = matches(&chain("torch.relu", 8), &chain("torch.relu", n_calls), options).unwrap();
            assert_eq!(found.len(), if remove_overlapping_matches { n_calls / 8 } else { n_calls - 7 });
        }
    }
}

#[test]
fn a_pattern_may_be_as_deep_as_a_graph() {
    let target = chain("torch.neg", 100_000);
    let options = MatcherOptions { match_output: true, match_placeholder: true, ..MatcherOptions::default() };
    assert_eq!(matches(&target, &target, options).unwrap().len(), 1);
}

#[test]
fn patterns_with_too_much_to_try_are_given_up() {
    let names = ["torch.neg", "torch.exp", "torch.sin", "torch.cos", "torch.abs"];
    let many = |n_each: usize| {
        module(|graph| {
            let x = graph.placeholder("x");
            let calls = (0..n_each).flat_map(|_| names.map(|name| call(graph, name, &[x]))).map(Arg::Node);
            Arg::Tuple(calls.collect())
        })
    };
    let options = MatcherOptions { remove_overlapping_matches: false, ..MatcherOptions::default() };
    assert_eq!(matches(&many(1), &many(3), options.clone()).unwrap().len(), 243);
    assert_eq!(matches(&many(1), &many(100), options).unwrap_err().code(), Code::LimitExceeded);
    // Of those that share a node only the first is asked for, so not all have to be tried.
    assert_eq!(matches(&many(1), &many(100), MatcherOptions::default()).unwrap().len(), 100);
    let few = MatcherOptions { max_steps: Some(10), ..MatcherOptions::default() };
    assert_eq!(matches(&chain("torch.neg", 2), &chain("torch.neg", 50), few).unwrap_err().code(), Code::LimitExceeded);
}

#[test]
fn what_hangs_together_is_found_in_linear_time() {
    let target = module(|graph| {
        let x = graph.placeholder("x");
        let mut value = x;
        for _ in 0..20_000 {
            let shared = call(graph, "torch.exp", &[value]);
            let (a, b) = (call(graph, "torch.sin", &[shared]), call(graph, "torch.cos", &[shared]));
            value = call(graph, "torch.add", &[a, b]);
        }
        value.into()
    });
    let pattern = module(|graph| {
        let x = graph.placeholder("x");
        let shared = call(graph, "torch.exp", &[x]);
        let (a, b) = (call(graph, "torch.sin", &[shared]), call(graph, "torch.cos", &[shared]));
        Arg::Tuple(vec![a.into(), b.into()])
    });
    let options = MatcherOptions { max_steps: Some(4_000_000), ..MatcherOptions::default() };
    assert_eq!(matches(&pattern, &target, options).unwrap().len(), 20_000);
}

#[test]
fn a_match_that_would_need_its_own_result_is_none() {
    let pattern = module(|graph| {
        let (x, y) = (graph.placeholder("x"), graph.placeholder("y"));
        let (a, b) = (call(graph, "torch.relu", &[x]), call(graph, "torch.sigmoid", &[y]));
        Arg::Tuple(vec![a.into(), b.into()])
    });
    let target = |is_cyclic: bool| {
        module(|graph| {
            let x = graph.placeholder("x");
            let a = call(graph, "torch.relu", &[x]);
            let between = call(graph, "torch.cos", &[a]);
            let b = call(graph, "torch.sigmoid", &[if is_cyclic { between } else { x }]);
            Arg::Tuple(vec![a.into(), b.into(), between.into()])
        })
    };
    assert_eq!(matches(&pattern, &target(true), MatcherOptions::default()).unwrap(), []);
    // Two wildcards never stand for one node.
    assert_eq!(matches(&pattern, &target(false), MatcherOptions::default()).unwrap(), []);
}

#[test]
fn patterns_that_cannot_match_are_refused() {
    let refused = |pattern: &GraphModule| {
        let problem = matches(pattern, &chain("torch.neg", 1), MatcherOptions::default()).unwrap_err();
        assert_eq!(problem.code(), Code::PatternInvalid);
        problem.message().to_owned()
    };
    assert_eq!(refused(&GraphModule::new(Graph::new())), "SubgraphMatcher cannot be initialized with an empty pattern");
    let unused = module(|graph| {
        let (x, _) = (graph.placeholder("x"), graph.placeholder("y"));
        call(graph, "torch.neg", &[x]).into()
    });
    assert!(refused(&unused).contains("the parameter `y` of the pattern is not used"));
    let dead = module(|graph| {
        let x = graph.placeholder("x");
        call(graph, "torch.sin", &[x]);
        call(graph, "torch.neg", &[x]).into()
    });
    assert!(refused(&dead).contains("dead code"));
}

#[test]
fn operators_are_compared_with_their_defaults() {
    let dropout = |args: Vec<Arg>, kwargs: Vec<(&str, Arg)>| {
        module(|graph| {
            let x = graph.placeholder("x");
            let kwargs = kwargs.into_iter().map(|(key, it)| (key.into(), it)).collect();
            let args = std::iter::once(x.into()).chain(args).collect();
            graph.call_function("torch.ops.aten.softplus.default", args, kwargs).into()
        })
    };
    let finds = |target: GraphModule| {
        let found = matches(&dropout(vec![], vec![]), &target, MatcherOptions::default()).unwrap();
        found.len() == 1
    };
    assert!(finds(dropout(vec![Arg::Int(1)], vec![("threshold", Arg::Int(20))])));
    assert!(finds(dropout(vec![], vec![("threshold", Arg::Int(20)), ("beta", Arg::Int(1))])));
    assert!(!finds(dropout(vec![Arg::Int(2)], vec![])));
    assert!(!finds(dropout(vec![Arg::Float(1.0)], vec![])));
}

#[test]
fn names_of_a_pattern_stand_for_nodes() {
    let pattern = module(|graph| {
        let x = graph.placeholder("x");
        let inner = call(graph, "torch.exp", &[x]);
        let outer = call(graph, "torch.relu", &[inner]);
        let names = vec![("inner".into(), inner.into()), ("outer".into(), outer.into())];
        Arg::Tuple(vec![outer.into(), Arg::Dict(names)])
    });
    let target = module(|graph| {
        let x = graph.placeholder("x");
        let inner = call(graph, "torch.exp", &[x]);
        let outer = call(graph, "torch.relu", &[inner]);
        call(graph, "torch.neg", &[outer]).into()
    });
    let matcher = SubgraphMatcherWithNameNodeMap::new(&pattern, registry(), MatcherOptions::default()).unwrap();
    let found = matcher.matches(&target).unwrap();
    assert_eq!(found[0].name_node_map["inner"], Arg::Node(target.graph.find("exp").unwrap()));
    assert_eq!(found[0].name_node_map["outer"], Arg::Node(target.graph.find("relu").unwrap()));
    let problem = SubgraphMatcherWithNameNodeMap::new(&target, registry(), MatcherOptions::default()).err().unwrap();
    assert_eq!(problem.code(), Code::PatternInvalid);
}

#[test]
fn a_literal_may_stand_for_what_is_ignored() {
    let plus = |arg: Arg| {
        module(|graph| {
            let x = graph.placeholder("x");
            graph.create_node(Opcode::CallFunction, "operator.add", vec![x.into(), arg], vec![], None).unwrap().into()
        })
    };
    let ignoring = MatcherOptions { ignore_literals: true, ..MatcherOptions::default() };
    let (one, two) = (plus(Arg::Int(1)), plus(Arg::Float(2.0)));
    assert_eq!(matches(&one, &two, MatcherOptions::default()).unwrap().len(), 0);
    assert_eq!(matches(&one, &two, ignoring).unwrap().len(), 1);
}

fn sum(graph: &mut Graph, terms: &[NodeId]) -> NodeId {
    terms[1..].iter().fold(terms[0], |sum, &it| call(graph, "torch.ops.aten.add.Tensor", &[sum, it]))
}

#[test]
fn laws_of_operators_count_where_that_is_asked() {
    let three = |order: [usize; 3]| {
        module(|graph| {
            let x = graph.placeholder("x");
            let terms = ["torch.sin", "torch.cos", "torch.exp"].map(|it| call(graph, it, &[x]));
            sum(graph, &order.map(|it| terms[it])).into()
        })
    };
    let nested = module(|graph| {
        let x = graph.placeholder("x");
        let [a, b, c] = ["torch.sin", "torch.cos", "torch.exp"].map(|it| call(graph, it, &[x]));
        let inner = sum(graph, &[b, c]);
        sum(graph, &[a, inner]).into()
    });
    let finds = |target: &GraphModule, commutative: bool, associative: bool| {
        let options = MatcherOptions { commutative, associative, ..MatcherOptions::default() };
        matches(&three([0, 1, 2]), target, options).unwrap().len() == 1
    };
    assert!(finds(&three([1, 0, 2]), true, false));
    assert!(!finds(&three([2, 0, 1]), true, false));
    assert!(finds(&three([2, 0, 1]), true, true));
    assert!(finds(&nested, false, true));
    assert!(!finds(&nested, true, false));
    assert!(!finds(&three([1, 0, 2]), false, true));
}

#[test]
fn hostile_sums_are_given_up() {
    let many = |n: usize, last: &str| {
        module(|graph| {
            let mut terms: Vec<NodeId> = (0..n).map(|_| graph.placeholder("x")).collect();
            let end = terms[n - 1];
            terms[n - 1] = call(graph, last, &[end]);
            sum(graph, &terms).into()
        })
    };
    let options = MatcherOptions { commutative: true, associative: true, ..MatcherOptions::default() };
    assert_eq!(matches(&many(9, "torch.sin"), &many(9, "torch.sin"), options.clone()).unwrap().len(), 1);
    let problem = matches(&many(40, "torch.cos"), &many(40, "torch.sin"), options);
    assert_eq!(problem.map(|it| it.len()).map_err(|it| it.code()), Err(Code::LimitExceeded));
}

#[test]
fn alternatives_and_optional_calls() {
    let pattern = module(|graph| {
        let x = graph.placeholder("x");
        let (relu, gelu) = (call(graph, "torch.relu", &[x]), call(graph, "torch.gelu", &[x]));
        let either = call(graph, ANY_OF, &[relu, gelu]);
        let cast = call(graph, "torch.float", &[either]);
        let maybe = call(graph, OPTIONAL, &[cast]);
        call(graph, "torch.neg", &[maybe]).into()
    });
    let finds = |targets: &[&str]| {
        let target = module(|graph| {
            let x = graph.placeholder("x");
            targets.iter().fold(x, |value, it| call(graph, it, &[value])).into()
        });
        matches(&pattern, &target, MatcherOptions::default()).unwrap().len()
    };
    assert_eq!(finds(&["torch.relu", "torch.neg"]), 1);
    assert_eq!(finds(&["torch.gelu", "torch.float", "torch.neg"]), 1);
    assert_eq!(finds(&["torch.sin", "torch.neg"]), 0);
    assert_eq!(finds(&["torch.relu", "torch.float", "torch.float", "torch.neg"]), 0);
}

#[test]
fn constraints_ask_for_dtypes_sizes_and_values() {
    let mut target = module(|graph| {
        let x = graph.placeholder("x");
        graph.call_function("torch.mul", vec![x.into(), Arg::Int(2)], vec![]).into()
    });
    let x = target.graph.find("x").unwrap();
    let sizes = vec![SymInt::from(2), SymInt::from(3)];
    target.graph.meta_mut(x).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, sizes)));
    let pattern = module(|graph| {
        let (x, by) = (graph.placeholder("x"), graph.placeholder("by"));
        call(graph, "torch.mul", &[x, by]).into()
    });
    let finds = |name: &str, constraint: Constraint| {
        let constraints = [(name.to_owned(), constraint)].into_iter().collect();
        let options = MatcherOptions { constraints, ..MatcherOptions::default() };
        matches(&pattern, &target, options).map(|it| it.len())
    };
    let any = Constraint::default();
    let dtype = |it: &str| Constraint { dtype: Some(vec![it.to_owned()]), ..any.clone() };
    assert_eq!(finds("x", dtype("float32")).unwrap(), 1);
    assert_eq!(finds("x", dtype("int64")).unwrap(), 0);
    assert_eq!(finds("x", dtype("float3")).unwrap_err().code(), Code::InvalidOption);
    assert_eq!(finds("by", dtype("float32")).unwrap(), 0);
    assert_eq!(finds("z", any.clone()).unwrap_err().code(), Code::PatternInvalid);
    let shape = |it: &[Option<i64>]| Constraint { shape: Some(it.to_vec()), ..any.clone() };
    assert_eq!(finds("x", shape(&[None, Some(3)])).unwrap(), 1);
    assert_eq!(finds("x", shape(&[Some(3), None])).unwrap(), 0);
    let value = |it: ConstantValue| Constraint { value: Some(it), ..any.clone() };
    assert_eq!(finds("by", value(ConstantValue::Float(2.0))).unwrap(), 1);
    assert_eq!(finds("by", value(ConstantValue::Int(3))).unwrap(), 0);
}

#[test]
fn two_wildcards_may_stand_for_one_node_where_that_is_asked() {
    let add = |is_same: bool| {
        module(|graph| {
            let x = graph.placeholder("x");
            let y = if is_same { x } else { graph.placeholder("y") };
            call(graph, "torch.add", &[x, y]).into()
        })
    };
    let sharing = MatcherOptions { shared_wildcards: true, ..MatcherOptions::default() };
    assert_eq!(matches(&add(false), &add(true), MatcherOptions::default()).unwrap().len(), 0);
    assert_eq!(matches(&add(false), &add(true), sharing).unwrap().len(), 1);
}

#[test]
fn a_pattern_that_does_not_match_says_why() {
    let nested = |names: [&str; 3]| {
        module(|graph| {
            let x = graph.placeholder("x");
            names.iter().fold(x, |value, it| call(graph, it, &[value])).into()
        })
    };
    let pattern = nested(["torch.exp", "torch.sin", "torch.neg"]);
    let why = |target: &GraphModule| {
        let matcher = SubgraphMatcher::new(&pattern, registry(), MatcherOptions::default()).unwrap();
        let misses = matcher.explain(target, registry()).unwrap();
        let told = misses.into_iter().map(|it| {
            let found = it.found.map_or(String::new(), |it| target.graph.format_arg(&it));
            format!("{}: {} instead of {}", pattern.graph.node(it.node).name(), found, it.expected)
        });
        told.collect::<Vec<String>>()
    };
    let target = nested(["torch.abs", "torch.sin", "torch.neg"]);
    assert_eq!(why(&target), ["exp: %abs_1 instead of call_function torch.exp"]);
    assert_eq!(why(&nested(["torch.exp", "torch.sin", "torch.cos"])), ["neg:  instead of call_function torch.neg"]);
    let mut leaking = nested(["torch.exp", "torch.sin", "torch.neg"]);
    let (sin, neg) = (leaking.graph.find("sin").unwrap(), leaking.graph.find("neg").unwrap());
    let output = leaking.graph.output_node().unwrap();
    leaking.graph.set_args(output, vec![Arg::Tuple(vec![sin.into(), neg.into()])]).unwrap();
    assert_eq!(why(&leaking), ["sin: %sin instead of no use outside of the match, as that by %output"]);
}
