use crate::case::{build, cases, with_windows};
use serde_json::Value;
use tracefx_core::{Code, Diagnostic};
use tracefx_ir::{Arg, Graph, GraphModule, Opcode};
use tracefx_sym::Symbol;
use tracefx_types::{Dim, GraphTypeChecker, ModuleSpec, Modules, Type, Window, annotate, infer_symbolic_types};

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
    for case in with_windows("check") {
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
            // What torch says otherwise, and wrongly, is not what is said here.
            (Ok(()), None, Some(_)) => {
                let theirs = types(&gm).iter().all(|(node, ty)| *ty == expected(&case["types"][node]));
                assert!(!theirs, "{name} does not differ");
            }
            (Ok(()), None, None) => {
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

fn is_comparable(case: &Value) -> bool {
    case["symbolic"].is_object() && case["differs"].is_null() && !ends_early(case)
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
    for case in cases("check.jsonl").iter().filter(|it| is_comparable(it)) {
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

/// The type of the only node between the input, which has this type, and the output; or the refusal.
fn through(input: &str, module: ModuleSpec) -> Result<String, Diagnostic> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    graph.set_type(x, Some(input.into())).unwrap();
    let y = graph.create_node(Opcode::CallModule, "m", vec![x.into()], vec![], Some("m")).unwrap();
    graph.output(y.into());
    let mut gm = GraphModule::new(graph);
    GraphTypeChecker::new(&Modules::from([("m".to_string(), module)])).type_check(&mut gm)?;
    Ok(gm.graph.node(y).ty().unwrap().to_string())
}

#[track_caller]
fn refused(input: &str, module: ModuleSpec, expected: &str) {
    let refusal = through(input, module).unwrap_err();
    assert_eq!((refusal.code(), refusal.node_name()), (Code::TypeInconsistent, Some("m")));
    assert!(refusal.to_string().contains(expected), "{refusal}");
}

fn window(kernel_size: i64, padding: i64) -> Window {
    Window { kernel_size: [kernel_size; 2], stride: [1, 2], padding: [padding; 2], dilation: [1, 2] }
}

#[test]
fn windows_fit_into_what_goes_in() {
    let conv = |window| ModuleSpec::Conv2d { in_channels: 3, out_channels: 4, window };
    assert_eq!(through("TensorType[(1, 3, 8, 9)]", conv(window(3, 0))).unwrap(), "TensorType[(1, 4, 6, 3)]");
    assert_eq!(through("TensorType[(Dyn, 3, Dyn, 9)]", conv(Window::SAME)).unwrap(), "TensorType[(Dyn, 4, Dyn, 9)]");
    refused("TensorType[(1, 3, 8, 4)]", conv(window(3, 0)), "the width 4: it is 5 long, and there is a padding of 0");
    refused("TensorType[(1, 3, 2, Dyn)]", ModuleSpec::MaxPool2d { window: window(3, 0) }, "the height 2");
    assert!(through("TensorType[(1, 3, 2, 4)]", conv(window(3, 1))).is_ok());
}

#[test]
fn a_size_that_an_adaptive_pool_leaves_open_is_the_one_that_goes_in() {
    let pool = |output_size| ModuleSpec::AdaptiveAvgPool2d { output_size };
    assert_eq!(through("TensorType[(2, 3, 8, 9)]", pool([Some(6), None])).unwrap(), "TensorType[(2, 3, 6, 9)]");
    assert_eq!(through("TensorType[(3, Dyn, 9)]", pool([None, Some(1)])).unwrap(), "TensorType[(3, Dyn, 1)]");
    assert_eq!(through("TensorType[(3, Dyn, 9)]", pool([None, None])).unwrap(), "TensorType[(3, Dyn, 9)]");
}

#[test]
fn channels_that_do_not_fit_are_told() {
    let conv = ModuleSpec::Conv2d { in_channels: 3, out_channels: 4, window: Window::SAME };
    refused("TensorType[(1, 5, 8, 8)]", conv, "it takes 3 channels, in the second dimension, and gets 5");
    let norm = ModuleSpec::BatchNorm2d { num_features: 4 };
    refused("TensorType[(1, 5, 8, 8)]", norm, "it takes 4 channels, in the second dimension, and gets 5");
}

/// The type that a function has, given `x` of a type and these arguments, the first of them by its name.
#[track_caller]
fn check_named(ty: &str, target: &str, args: impl FnOnce(&mut Graph) -> Vec<(&'static str, Arg)>, output: &str) {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    annotate(&mut graph, x, &ty.parse().unwrap()).unwrap();
    let mut kwargs = vec![("input".into(), x.into())];
    kwargs.extend(args(&mut graph).into_iter().map(|(name, it)| (name.into(), it)));
    let y = graph.call_function(target, vec![], kwargs);
    graph.output(y.into());
    let types = GraphTypeChecker::new(&Modules::new()).infer(&GraphModule::new(graph)).unwrap();
    assert_eq!(types.get(y).to_string(), output);
}

#[test]
fn arguments_are_found_by_their_names() {
    let ty = "TensorType[(2, 3, 4, 5)]";
    check_named(ty, "torch.flatten", |_| vec![("start_dim", Arg::Int(2))], "TensorType[(2, 3, 20)]");
    check_named(ty, "torch.flatten", |_| vec![("end_dim", Arg::Int(2))], "TensorType[(24, 5)]");
    check_named(ty, "torch.flatten", |_| vec![], "TensorType[(120,)]");
    let dims = |_: &mut Graph| vec![("dim0", Arg::Int(0)), ("dim1", Arg::Int(2))];
    check_named(ty, "torch.transpose", dims, "TensorType[(4, 3, 2, 5)]");
    check_named(ty, "torch.add", |_| vec![("other", Arg::Int(1))], ty);
    let shape = |_: &mut Graph| vec![("shape", Arg::List(vec![Arg::Int(6), Arg::Int(20)]))];
    check_named(ty, "torch.reshape", shape, "TensorType[(6, 20)]");
}

#[test]
fn a_reshape_to_what_are_no_sizes_is_refused() {
    for sizes in [[-2, -12], [-1, -1]] {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        annotate(&mut graph, x, &"TensorType[(2, 3, 4)]".parse().unwrap()).unwrap();
        let shape = Arg::List(sizes.map(Arg::Int).to_vec());
        let y = graph.call_function("torch.reshape", vec![x.into(), shape], vec![]);
        graph.output(y.into());
        let checked = GraphTypeChecker::new(&Modules::new()).type_check(&mut GraphModule::new(graph));
        assert_eq!(checked.unwrap_err().code(), Code::TypeInconsistent, "{sizes:?}");
    }
}

#[test]
fn a_size_that_a_node_computes_is_unknown_in_a_reshape() {
    let shape = |graph: &mut Graph| {
        let n = graph.placeholder("n");
        vec![("shape", Arg::List(vec![n.into(), Arg::Int(4)]))]
    };
    check_named("TensorType[(2, 3, 4)]", "torch.reshape", shape, "TensorType[(Dyn, 4)]");
}

#[test]
fn inference_knows_arguments_by_their_names() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    annotate(&mut graph, x, &"TensorType[(Dyn, Dyn, 3, 4)]".parse().unwrap()).unwrap();
    let y = graph.call_function("torch.flatten", vec![x.into()], vec![("start_dim".into(), Arg::Int(2))]);
    graph.output(y.into());
    let mut gm = GraphModule::new(graph);
    GraphTypeChecker::new(&Modules::new()).type_check(&mut gm).unwrap();
    infer_symbolic_types(&mut gm, &Modules::new()).unwrap();
    let ty = |id| gm.graph.node(id).ty().unwrap().to_string();
    assert_eq!(ty(y), ty(x).replace("3, 4", "12"));
}
