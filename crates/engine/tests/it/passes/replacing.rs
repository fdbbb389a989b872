//! Replacing patterns by what computes the same bits.

use super::random::{Writes, modules};
use super::{computed, known, lint};
use proptest::prelude::*;
use tracefx_core::Code;
use tracefx_engine::Library;
use tracefx_ir::{Arg, Graph, GraphModule};
use tracefx_ops::registry;
use tracefx_rewrite::{ReplaceOptions, Replacement, Rule, RuleSet, VerifyOptions, replace_pattern_with_filters};

type Build = fn(&mut Graph, &[Arg]) -> Vec<Arg>;

fn graph_of(n_inputs: usize, build: Build) -> GraphModule {
    let mut graph = Graph::new();
    let inputs: Vec<Arg> = (0..n_inputs).map(|at| graph.placeholder(&format!("x{at}")).into()).collect();
    let results = build(&mut graph, &inputs);
    graph.output(Arg::Tuple(results));
    GraphModule::new(graph)
}

fn call(graph: &mut Graph, op: &str, args: Vec<Arg>) -> Arg {
    graph.call_function(&format!("torch.ops.aten.{op}"), args, vec![]).into()
}

fn rule(name: &str, n_inputs: usize, pattern: Build, replacement: Build) -> Rule {
    let (pattern, replacement) = (graph_of(n_inputs, pattern), graph_of(n_inputs, replacement));
    Rule { name: name.into(), pattern, replacement, options: ReplaceOptions::default() }
}

fn turned(graph: &mut Graph, x: &Arg) -> Arg {
    call(graph, "transpose.int", vec![x.clone(), Arg::Int(0), Arg::Int(1)])
}

/// Rules whose sides compute the same bits and look at the same memory, and that make nothing on which they match again.
fn rules() -> Vec<Rule> {
    vec![
        rule(
            "relu_of_relu",
            1,
            |graph, x| {
                let relu = call(graph, "relu.default", x.to_vec());
                vec![call(graph, "relu.default", vec![relu])]
            },
            |graph, x| vec![call(graph, "relu.default", x.to_vec())],
        ),
        rule(
            "transpose_of_transpose",
            1,
            |graph, x| {
                let once = turned(graph, &x[0]);
                vec![turned(graph, &once)]
            },
            |_, x| vec![x[0].clone()],
        ),
        rule(
            "transpose_is_permute",
            1,
            |graph, x| vec![turned(graph, &x[0])],
            |graph, x| {
                let order = Arg::List(vec![Arg::Int(1), Arg::Int(0)]);
                vec![call(graph, "permute.default", vec![x[0].clone(), order])]
            },
        ),
        rule(
            "twice",
            1,
            |graph, x| {
                let sin = call(graph, "sin.default", x.to_vec());
                vec![call(graph, "add.Tensor", vec![sin.clone(), sin])]
            },
            |graph, x| {
                let sin = call(graph, "sin.default", x.to_vec());
                vec![call(graph, "mul.Scalar", vec![sin, Arg::Int(2)])]
            },
        ),
        rule(
            "split_is_two_slices",
            1,
            |graph, x| {
                let dim = vec![("dim".into(), Arg::Int(0))];
                let parts = graph.call_function("torch.ops.aten.split.Tensor", vec![x[0].clone(), Arg::Int(1)], dim);
                let item = |at: i64| vec![parts.into(), Arg::Int(at)];
                [0, 1].map(|at| graph.call_function("operator.getitem", item(at), vec![]).into()).to_vec()
            },
            |graph, x| {
                let slice = |at: i64| vec![x[0].clone(), Arg::Int(0), Arg::Int(at), Arg::Int(at + 1)];
                [0, 1].map(|at| call(graph, "slice.Tensor", slice(at))).to_vec()
            },
        ),
    ]
}

/// Rules that write, as often on both sides. They match on what they made, so they run once.
fn writing_rules() -> Vec<Rule> {
    let product: Build = |graph, x| vec![call(graph, "mul_.Tensor", x.to_vec())];
    let relu_of_product: Build = |graph, x| {
        let product = call(graph, "mul_.Tensor", x.to_vec());
        vec![call(graph, "relu.default", vec![product])]
    };
    let sines: Build = |graph, x| {
        let sin = call(graph, "sin.default", vec![x[0].clone()]);
        let product = call(graph, "mul_.Tensor", x.to_vec());
        vec![sin, product]
    };
    let late_sines: Build = |graph, x| {
        let product = call(graph, "mul_.Tensor", x.to_vec());
        vec![call(graph, "sin.default", vec![x[0].clone()]), product]
    };
    [("product", product), ("relu_of_product", relu_of_product), ("sines", sines), ("late_sines", late_sines)]
        .map(|(name, build)| rule(name, 2, build, build))
        .to_vec()
}

proptest! {
    #![proptest_config(super::config())]

    #[test]
    fn replacing_one_pattern(module in modules(Writes::Allowed), at in 0usize..9) {
        let Rule { pattern, replacement, options, name } = &[rules(), writing_rules()].concat()[at];
        let before = computed(&module);
        let mut changed = module.clone();
        let by = Replacement::Module(replacement);
        replace_pattern_with_filters(&mut changed, pattern, by, &[], registry(), options).unwrap();
        lint(&changed);
        prop_assert_eq!(computed(&changed), before, "{} made\n{}\nof\n{}", name, changed.graph, module.graph);
    }

    #[test]
    fn rules_to_a_fixpoint(module in modules(Writes::Allowed)) {
        let (before, set) = (computed(&module), RuleSet { rules: rules() });
        let mut changed = module.clone();
        let trace = set.run_to_fixpoint(&mut changed, registry(), None).unwrap();
        lint(&changed);
        prop_assert!(trace.is_fixpoint);
        prop_assert_eq!(computed(&changed), before, "{:?} made\n{}\nof\n{}", trace, changed.graph, module.graph);
        // The same as looking for each rule everywhere, from the first one on whenever one has fired.
        let (mut slow, mut fired, mut at) = (module.clone(), Vec::new(), 0);
        while let Some(rule) = set.rules.get(at) {
            let once = RuleSet { rules: vec![rule.clone()] }.run_once(&mut slow, registry()).unwrap();
            at = if once.fired.is_empty() { at + 1 } else { 0 };
            fired.extend(once.fired);
        }
        prop_assert_eq!((&trace.fired, changed.graph.to_string()), (&fired, slow.graph.to_string()));
        let printed = changed.graph.to_string();
        let again = set.run_to_fixpoint(&mut changed, registry(), None).unwrap();
        prop_assert_eq!((again.fired, changed.graph.to_string()), (vec![], printed));
    }

    #[test]
    fn what_is_the_same_is_verified(module in modules(Writes::Allowed)) {
        let verify = Some(VerifyOptions::default());
        let verified = |rule| Rule { options: ReplaceOptions { verify: verify.clone(), ..ReplaceOptions::default() }, ..rule };
        let set = RuleSet { rules: rules().into_iter().map(verified).collect() };
        let (mut plain, mut checked) = (known(&module), known(&module));
        RuleSet { rules: rules() }.run_to_fixpoint(&mut plain, registry(), None).unwrap();
        Library::default().rewriting(|cx| set.run_to_fixpoint(&mut checked, cx, None)).unwrap();
        prop_assert_eq!(checked.graph.to_string(), plain.graph.to_string());
    }

    #[test]
    fn what_differs_is_refused(module in modules(Writes::Allowed)) {
        let options = ReplaceOptions { verify: Some(VerifyOptions::default()), ..ReplaceOptions::default() };
        let [sin, cos] = ["sin.default", "cos.default"].map(|op| {
            let mut graph = Graph::new();
            let x = graph.placeholder("x");
            let result = call(&mut graph, op, vec![x.into()]);
            graph.output(result);
            GraphModule::new(graph)
        });
        let mut changed = known(&module);
        let before = changed.graph.to_string();
        let result = Library::default().rewriting(|cx| {
            replace_pattern_with_filters(&mut changed, &sin, Replacement::Module(&cos), &[], cx, &options)
        });
        match result {
            Ok(replaced) => prop_assert!(replaced.is_empty()),
            Err(refusal) => prop_assert_eq!(refusal.code(), Code::VerifyFailed),
        }
        prop_assert_eq!(changed.graph.to_string(), before);
    }
}
