use crate::case::{build, cases};
use serde_json::Value;
use tracefx_core::Code;
use tracefx_ir::GraphModule;
use tracefx_sym::Symbol;
use tracefx_types::{Dim, GraphTypeChecker, Type, infer_symbolic_types};

fn types(gm: &GraphModule) -> Vec<(String, String)> {
    let node = |id| gm.graph.node(id);
    gm.graph.nodes().map(|id| (node(id).name().to_string(), node(id).ty().unwrap().to_string())).collect()
}

fn expected(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<Type> = items.iter().map(|it| Type::Other(expected(it))).collect();
            Type::Seq(items).to_string()
        }
        other => other.as_str().unwrap().to_string(),
    }
}

#[test]
fn the_checker_says_what_torch_says() {
    let mut n_refused = 0;
    for case in cases("check.jsonl") {
        let name = case["name"].as_str().unwrap();
        let (mut gm, modules) = build(&case);
        let res = GraphTypeChecker::new(&modules).type_check(&mut gm);
        match (res, case["error"].as_str(), case["differs"].as_str()) {
            (Err(it), None, Some(_)) => assert_eq!(it.code(), Code::TypeInconsistent, "{name}"),
            (Err(it), Some(error), _) => {
                let words = |it: &str| it.split_whitespace().take(2).map(str::to_string).collect::<Vec<_>>();
                assert_eq!(words(it.message()), words(error), "{name}: {it}");
                n_refused += 1;
            }
            (Ok(()), None, _) => {
                for (node, ty) in types(&gm) {
                    assert_eq!(ty, expected(&case["types"][&node]), "{name}: {node}");
                }
                let before = types(&gm);
                GraphTypeChecker::new(&modules).type_check(&mut gm).unwrap();
                assert_eq!(types(&gm), before, "{name}: checked again");
            }
            (res, error, _) => panic!("{name}: {res:?}, torch: {error:?}"),
        }
    }
    assert!(n_refused > 60, "only {n_refused} cases are refused");
}

/// Whether a flattening ends before the last dimension: torch.fx compares dimensions that are not the same then.
fn ends_early(case: &Value) -> bool {
    let mut nodes = case["nodes"].as_array().unwrap().iter();
    nodes.any(|it| it["target"] == "torch.flatten" && it["args"].get(2).is_some_and(|it| *it != -1))
}

/// Variables by another numbering: what matters is which of them are the same.
#[derive(Default)]
struct Renaming(Vec<(String, String)>);

impl Renaming {
    #[track_caller]
    fn check(&mut self, ours: &str, theirs: &str, at: &str) {
        let known = self.0.iter().find(|(a, b)| a == ours || b == theirs);
        match known {
            Some((a, b)) => assert_eq!((a.as_str(), b.as_str()), (ours, theirs), "{at}"),
            None => self.0.push((ours.into(), theirs.into())),
        }
    }
}

#[test]
fn inference_finds_the_same_variables_and_expressions() {
    let mut n_expressions = 0;
    for case in cases("check.jsonl").iter().filter(|it| it["symbolic"].is_object() && !ends_early(it)) {
        let name = case["name"].as_str().unwrap();
        let (mut gm, modules) = build(case);
        if GraphTypeChecker::new(&modules).type_check(&mut gm).is_err() {
            continue;
        }
        infer_symbolic_types(&mut gm, &modules).unwrap();
        let mut renaming = Renaming::default();
        for (node, ty) in types(&gm) {
            let at = format!("{name}: {node}: {ty}");
            let want = &case["symbolic"][&node];
            let (Value::Array(want), Type::Tensor(dims)) = (want, ty.parse::<Type>().unwrap()) else { continue };
            assert_eq!(want.len(), dims.len(), "{at}");
            for (ours, theirs) in dims.iter().zip(want) {
                // An expression that is a variable is printed as one.
                let ours = match (ours, theirs) {
                    (Dim::Var(var), Value::Object(_)) => &Dim::Expr(Symbol::integer(format!("~{var}")).into()),
                    (ours, _) => ours,
                };
                match (ours, theirs) {
                    (Dim::Expr(it), Value::Object(_)) => {
                        n_expressions += 1;
                        let value = it.eval(&|symbol| {
                            let (_, torch) = renaming.0.iter().find(|(a, _)| a == symbol.name())?;
                            theirs["at"][torch].as_i64()
                        });
                        assert_eq!(value.ok(), theirs["is"].as_i64(), "{at} {theirs}");
                    }
                    (ours, Value::String(theirs)) => renaming.check(&ours.to_string(), theirs, &at),
                    (ours, theirs) => panic!("{at}: {ours} is not {theirs}"),
                }
            }
        }
    }
    assert!(n_expressions > 20, "only {n_expressions} expressions");
}
