use crate::case::{build, cases, with_windows};
use serde_json::Value;
use tracefx_core::Code;
use tracefx_types::{ConstraintGenerator, Dim, Symbol, Type, Verdict, evaluate_conditional_with_constraints};

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Sat(_) => "sat",
        Verdict::Unsat => "unsat",
        Verdict::Unknown(_) => "unknown",
    }
}

/// What this project says differently: a dimension of the tensor that torch.fx forgets.
fn reads_differently(case: &Value) -> bool {
    let text = case["generated"].as_str().unwrap();
    text.contains("can-reshape")
        && text.split("can-reshape").skip(1).any(|it| it[..it.find(']').unwrap()].contains("Dyn"))
}

#[test]
fn constraints_print_as_those_of_torch() {
    let mut n_same = 0;
    for case in with_windows("constraints") {
        let name = case["name"].as_str().unwrap();
        let (gm, modules) = build(&case);
        let generated = ConstraintGenerator::new(&gm, &modules).generate();
        if case["error"].is_string() {
            assert_eq!(generated.unwrap_err().code(), Code::NotImplemented, "{name}");
            continue;
        }
        let generated = generated.unwrap_or_else(|it| panic!("{name}: {it}"));
        assert_eq!(generated.constraint.to_string(), case["generated"].as_str().unwrap(), "{name}");
        assert_eq!(u64::from(generated.n_vars()), case["n_generated"].as_u64().unwrap(), "{name}");
        let transformed = generated.transformed().unwrap();
        assert_eq!(u64::from(transformed.n_vars()), case["n_transformed"].as_u64().unwrap(), "{name}");
        if let Some(text) = case["transformed_text"].as_str().filter(|_| !reads_differently(&case)) {
            assert_eq!(transformed.constraint.to_string(), text, "{name}");
            n_same += 1;
        }
    }
    assert!(n_same > 50, "only {n_same} texts were compared");
}

#[test]
fn the_solver_says_what_z3_says() {
    let (mut n_known, mut n_unknown) = (0, 0);
    let mut check = |name: &str, ours: &Verdict, z3: &Value| {
        if word(ours) == "unknown" {
            n_unknown += 1;
        } else if z3 != "unknown" {
            assert_eq!(word(ours), z3.as_str().unwrap(), "{name}");
            n_known += 1;
        }
    };
    for case in with_windows("constraints").iter().filter(|it| it["error"].is_null()) {
        let name = case["name"].as_str().unwrap();
        let (gm, modules) = build(case);
        let constraints = ConstraintGenerator::new(&gm, &modules).generate().unwrap().transformed().unwrap();
        check(name, &constraints.problem().unwrap().solve(), &case["result"]);
        let output = gm.graph.node(gm.graph.output_node().unwrap()).args()[0].as_node().unwrap();
        for query in case["queries"].as_array().unwrap() {
            let ty = match &query["dims"] {
                Value::Array(dims) => Type::Tensor(dims.iter().map(|it| Dim::Size(it.as_i64().unwrap())).collect()),
                _ => Type::Dyn,
            };
            assert!(matches!(constraints.symbol(output), Some(Symbol::Type(_))), "{name}");
            let mut constraints = constraints.clone();
            constraints.require(output, &ty).unwrap();
            check(&format!("{name} as {ty}"), &constraints.problem().unwrap().solve(), &query["result"]);
        }
    }
    assert!(n_known > 1000 && n_unknown == 0, "{n_known} are known, {n_unknown} are not");
}

#[test]
fn conditions_hold_and_fail_where_z3_says_so() {
    for case in cases("conditions.jsonl") {
        let name = case["name"].as_str().unwrap();
        let (gm, modules) = build(&case);
        let node = gm.graph.find(case["node"].as_str().unwrap()).unwrap();
        let problems = evaluate_conditional_with_constraints(&gm, &modules, node).unwrap();
        let verdicts = problems.map(|it| it.solve());
        let ours = verdicts.each_ref().map(word);
        let z3 = ["condition", "negation"].map(|it| case[it].as_str().unwrap());
        assert_eq!(ours, z3, "{name}");
    }
}
