//! Replacements that are checked on random inputs before they are put in.

use tracefx_core::{Code, DType, Diagnostic, Result, Tensor, with_default_generator};
use tracefx_engine::Library;
use tracefx_ir::{Arg, Attribute, FakeTensor, Graph, GraphModule, NodeId, Opcode, TensorKind, TensorMeta, Val};
use tracefx_rewrite::{
    MatcherOptions, ReplaceOptions, Replacement, Rule, RuleSet, VerifyOptions, replace_pattern_with_filters,
};
use tracefx_sym::{SymInt, Symbol};

fn module(inputs: &[&str], build: impl FnOnce(&mut Graph, &[Arg]) -> Arg) -> GraphModule {
    let mut graph = Graph::new();
    let inputs: Vec<Arg> = inputs.iter().map(|it| graph.placeholder(it).into()).collect();
    let result = build(&mut graph, &inputs);
    graph.output(result);
    GraphModule::new(graph)
}

fn call(graph: &mut Graph, target: &str, args: &[Arg]) -> Arg {
    graph.call_function(target, args.to_vec(), vec![]).into()
}

fn chain(targets: &[&str]) -> GraphModule {
    module(&["x"], |graph, inputs| targets.iter().fold(inputs[0].clone(), |it, target| call(graph, target, &[it])))
}

/// Notes what is known of the inputs.
fn known(mut module: GraphModule, dtype: DType, sizes: &[SymInt]) -> GraphModule {
    let inputs: Vec<NodeId> =
        module.graph.nodes().filter(|&it| module.graph.node(it).op() == Opcode::Placeholder).collect();
    let val = Val::Tensor(TensorMeta::contiguous(dtype, sizes.to_vec()));
    inputs.into_iter().for_each(|it| module.graph.meta_mut(it).val = Some(val.clone()));
    module
}

fn floats(module: GraphModule) -> GraphModule {
    known(module, DType::Float32, &[2.into(), 3.into()])
}

fn verified(verify: VerifyOptions) -> ReplaceOptions {
    ReplaceOptions { verify: Some(verify), ..ReplaceOptions::default() }
}

fn replace_with(
    target: &mut GraphModule,
    pattern: &GraphModule,
    by: &GraphModule,
    options: &ReplaceOptions,
) -> Result<usize> {
    let before = target.graph.to_string();
    let res = Library::default()
        .rewriting(|cx| replace_pattern_with_filters(target, pattern, Replacement::Module(by), &[], cx, options));
    assert!(res.is_ok() || target.graph.to_string() == before, "a refusal leaves the graph as it was");
    assert_eq!(target.graph.lint(Some(target)), []);
    res.map(|it| it.len())
}

fn replace(target: &mut GraphModule, pattern: &GraphModule, by: &GraphModule) -> Result<usize> {
    replace_with(target, pattern, by, &verified(VerifyOptions::default()))
}

#[track_caller]
fn refused(result: Result<usize>) -> Diagnostic {
    let refusal = result.unwrap_err();
    assert_eq!(refusal.code(), Code::VerifyFailed, "{refusal}");
    refusal
}

#[test]
fn what_computes_the_same_is_put_in() {
    let mut target = floats(chain(&["torch.neg", "torch.neg", "torch.relu"]));
    assert_eq!(replace(&mut target, &chain(&["torch.neg", "torch.neg"]), &chain(&[])), Ok(1));
    assert_eq!(target.graph.len(), 3);
}

#[test]
fn a_difference_is_shown() {
    let mut target = floats(chain(&["torch.relu"]));
    let refusal = refused(replace(&mut target, &chain(&["torch.relu"]), &chain(&["torch.abs"])));
    assert_eq!(refusal.node_name(), Some("relu"));
    assert_eq!(
        refusal.message(),
        "the replacement computes something else: output 0[0, 2] is 2.1787893772125244 instead of 0.0"
    );
    let notes = [
        "the inputs are %x f32[2, 3], made with seed 0",
        "4 of 6 elements differ",
        "the greatest absolute difference is 2.1787893772125244 at [0, 2] (up to 1e-5 is allowed)",
        "the greatest relative difference is inf at [0, 1] (up to 1.3e-6 is allowed)",
        "it is run 0",
    ];
    assert_eq!(refusal.notes(), notes);
}

#[test]
fn the_seed_decides_the_inputs_and_nothing_else_does() {
    let shown = |seed: u32| {
        let mut target = floats(chain(&["torch.relu"]));
        let options = verified(VerifyOptions { seed, ..VerifyOptions::default() });
        with_default_generator(|it| it.manual_seed(u64::from(seed) + 100));
        let state = with_default_generator(|it| it.state());
        let res = replace_with(&mut target, &chain(&["torch.relu"]), &chain(&["torch.abs"]), &options);
        assert!(with_default_generator(|it| it.state()) == state, "the generator of the program is its own");
        refused(res).to_string()
    };
    assert_eq!(shown(3), shown(3));
    assert_ne!(shown(3), shown(4));
}

#[test]
fn literals_are_those_of_the_match() {
    let times = |by: i64| module(&["x"], |graph, x| call(graph, "torch.mul", &[x[0].clone(), Arg::Int(by)]));
    let pattern = module(&["x", "by"], |graph, it| call(graph, "torch.mul", it));
    let doubled = module(&["x", "by"], |graph, it| call(graph, "torch.add", &[it[0].clone(), it[0].clone()]));
    let mut target = floats(times(2));
    assert_eq!(replace(&mut target, &pattern, &doubled), Ok(1));
    refused(replace(&mut floats(times(3)), &pattern, &doubled));
    // What an ignored literal stands for counts, and not what the pattern says.
    let mut options = verified(VerifyOptions::default());
    options.matching = MatcherOptions { ignore_literals: true, ..MatcherOptions::default() };
    let once = module(&["x"], |graph, it| call(graph, "torch.add", &[it[0].clone(), it[0].clone()]));
    assert_eq!(replace_with(&mut floats(times(2)), &times(7), &once, &options), Ok(1));
    refused(replace_with(&mut floats(times(3)), &times(7), &once, &options));
}

#[test]
fn a_number_may_stand_on_the_left() {
    let less = |target: &str, swap: bool| {
        module(&["x"], |graph, x| {
            let mut args = [Arg::Int(1), x[0].clone()];
            if swap {
                args.reverse();
            }
            call(graph, target, &args)
        })
    };
    let mut target = floats(less("operator.sub", false));
    assert_eq!(replace(&mut target, &less("operator.sub", false), &less("torch.rsub", true)), Ok(1));
    let mut target = floats(less("operator.sub", false));
    refused(replace(&mut target, &less("operator.sub", false), &less("operator.sub", true)));
    let mut target = floats(less("operator.lt", false));
    assert_eq!(replace(&mut target, &less("operator.lt", false), &less("operator.gt", true)), Ok(1));
}

#[test]
fn methods_are_run_too() {
    let method = |name: &str| {
        module(&["x"], |graph, x| {
            graph.create_node(Opcode::CallMethod, name, vec![x[0].clone()], vec![], None).unwrap().into()
        })
    };
    assert_eq!(replace(&mut floats(method("relu")), &method("relu"), &chain(&["torch.relu"])), Ok(1));
    refused(replace(&mut floats(method("double")), &method("double"), &chain(&[])));
}

#[test]
fn every_dtype_has_random_values() {
    let (pattern, twice) = (chain(&["torch.neg"]), chain(&["torch.neg", "torch.neg"]));
    for &dtype in &[DType::UInt8, DType::Int64, DType::Float16, DType::BFloat16, DType::Float64, DType::Complex64] {
        let target = || known(chain(&["torch.neg"]), dtype, &[5.into()]);
        assert_eq!(replace(&mut target(), &pattern, &pattern), Ok(1), "{dtype:?}");
        refused(replace(&mut target(), &pattern, &twice));
    }
    let not = chain(&["torch.logical_not"]);
    let target = || known(not.clone(), DType::Bool, &[5.into()]);
    assert_eq!(replace(&mut target(), &not, &chain(&["torch.bitwise_not"])), Ok(1));
    refused(replace(&mut target(), &not, &chain(&[])));
}

#[test]
fn ints_may_be_indices() {
    let pattern = |target: &str| {
        module(&["x", "index"], |graph, it| call(graph, target, &[it[0].clone(), Arg::Int(0), it[1].clone()]))
    };
    let target = || {
        let mut res = floats(pattern("torch.gather"));
        let index = res.graph.find("index").unwrap();
        let meta = TensorMeta::contiguous(DType::Int64, vec![2.into(), 3.into()]);
        res.graph.meta_mut(index).val = Some(Val::Tensor(meta));
        res
    };
    assert_eq!(replace(&mut target(), &pattern("torch.gather"), &pattern("torch.gather")), Ok(1));
    let wrong = module(&["x", "index"], |_, it| it[0].clone());
    refused(replace(&mut target(), &pattern("torch.gather"), &wrong));
}

#[test]
fn sizes_are_chosen_for_symbols() {
    let s0 = SymInt::from(Symbol::size("s0"));
    let flat = |size: Arg| {
        module(&["x"], |graph, x| call(graph, "torch.reshape", &[x[0].clone(), Arg::List(vec![size, Arg::Int(2)])]))
    };
    let target = || known(flat(Arg::Int(-1)), DType::Float32, &[&s0 * 2i64]);
    let mut options = verified(VerifyOptions::default());
    // Right for one size alone.
    refused(replace_with(&mut target(), &flat(Arg::Int(-1)), &flat(Arg::Int(3)), &options));
    options.verify.as_mut().unwrap().ranges.insert("s0".to_owned(), (3, 3));
    assert_eq!(replace_with(&mut target(), &flat(Arg::Int(-1)), &flat(Arg::Int(3)), &options), Ok(1));
    options.verify.as_mut().unwrap().ranges.insert("s0".to_owned(), (-5, -3));
    let refusal = replace_with(&mut target(), &flat(Arg::Int(-1)), &flat(Arg::Int(3)), &options).unwrap_err();
    assert_eq!(refusal.code(), Code::InvalidOption);
}

#[test]
fn what_is_not_known_is_asked_for() {
    let mut target = chain(&["torch.relu"]);
    let refusal = replace(&mut target, &chain(&["torch.relu"]), &chain(&["torch.relu"])).unwrap_err();
    assert_eq!((refusal.code(), refusal.node_name()), (Code::PassFailed, Some("relu")));
    assert!(refusal.help_text().unwrap().contains("FakeTensorProp"), "{refusal}");
    // Nodes between are run with the match.
    let mut target = floats(chain(&["torch.abs", "torch.relu"]));
    assert_eq!(replace(&mut target, &chain(&["torch.relu"]), &chain(&[])), Ok(1));
}

#[test]
fn attributes_without_data_are_random_and_the_same_on_both_sides() {
    let scaled = |op: &str| {
        let mut res = module(&["x"], |graph, x| {
            let weight = graph.get_attr("weight");
            call(graph, op, &[x[0].clone(), weight.into()])
        });
        let tensor = FakeTensor { meta: TensorMeta::contiguous(DType::Float32, vec![3.into()]), id: 7 };
        res.attributes.insert("weight".into(), Attribute::Fake { tensor, kind: TensorKind::Parameter });
        res
    };
    assert_eq!(replace(&mut floats(scaled("torch.mul")), &scaled("torch.mul"), &scaled("operator.mul")), Ok(1));
    refused(replace(&mut floats(scaled("torch.mul")), &scaled("torch.mul"), &scaled("torch.add")));
}

#[test]
fn writes_are_compared_and_do_not_reach_the_module() {
    let mut target = floats(chain(&["torch.ops.aten.relu_.default"]));
    let weight = Tensor::from_slice(&[-1.0f32, 2.0], &[2]).unwrap();
    target.attributes.insert("weight".into(), Attribute::Tensor { tensor: weight.clone(), kind: TensorKind::Buffer });
    let pattern = chain(&["torch.ops.aten.relu_.default"]);
    let refusal = refused(replace(&mut target, &pattern, &chain(&["torch.ops.aten.relu.default"])));
    assert!(refusal.message().contains("what is left in input %x[0, "), "{refusal}");

    let of_weight = |op: &str| {
        let mut res = module(&["x"], |graph, x| {
            let attribute = graph.get_attr("weight").into();
            let written = call(graph, op, &[attribute]);
            call(graph, "torch.sum", &[written]);
            call(graph, "torch.add", &[x[0].clone(), graph_last(graph)])
        });
        res.attributes.insert("weight".into(), Attribute::Tensor { tensor: weight.clone(), kind: TensorKind::Buffer });
        res
    };
    let in_place = of_weight("torch.ops.aten.relu_.default");
    let refusal = refused(replace(&mut floats(in_place.clone()), &in_place, &of_weight("torch.ops.aten.relu.default")));
    assert!(refusal.message().contains("what is left in attribute weight[0] is -1.0 instead of 0.0"), "{refusal}");
    // Neither side has to use what the other writes to.
    let mut pure = chain(&["torch.ops.aten.relu.default"]);
    pure.attributes = in_place.attributes.clone();
    let add = |op: &'static str| {
        let mut res = module(&["x"], |graph, x| {
            let attribute = graph.get_attr("weight").into();
            let args = [call(graph, op, &[attribute]), Arg::Int(0)];
            let zero = call(graph, "torch.mul", &args);
            let sum = call(graph, "torch.sum", &[zero]);
            let relu = call(graph, "torch.ops.aten.relu.default", &x[..1]);
            call(graph, "torch.add", &[relu, sum])
        });
        res.attributes = in_place.attributes.clone();
        res
    };
    refused(replace(&mut floats(pure.clone()), &pure, &add("torch.ops.aten.neg_.default")));
    assert_eq!(replace(&mut floats(pure.clone()), &pure, &add("torch.ops.aten.neg.default")), Ok(1));
    assert_eq!(replace(&mut floats(in_place.clone()), &in_place, &of_weight("torch.relu_")), Ok(1));
    assert_eq!(weight.to_vec::<f32>().unwrap(), [-1.0, 2.0]);
}

fn graph_last(graph: &Graph) -> Arg {
    Arg::Node(graph.last().unwrap())
}

#[test]
fn random_operators_draw_the_same() {
    let dropout = |p: f64| {
        module(&["x"], |graph, x| {
            call(graph, "torch.ops.aten.native_dropout.default", &[x[0].clone(), Arg::Float(p), Arg::Bool(true)])
        })
    };
    let first = |p: f64| {
        let mut res = dropout(p);
        let output = res.graph.output_node().unwrap();
        let call = res.graph.node(output).args()[0].clone();
        res.graph.set_insert_point(tracefx_ir::InsertPoint::Before(output)).unwrap();
        let item = res.graph.call_function("operator.getitem", vec![call, Arg::Int(0)], vec![]);
        res.graph.set_args(output, vec![item.into()]).unwrap();
        res
    };
    assert_eq!(replace(&mut floats(first(0.5)), &first(0.5), &first(0.5)), Ok(1));
    refused(replace(&mut floats(first(0.5)), &first(0.5), &first(0.25)));
}

#[test]
fn results_of_other_sizes_and_dtypes_are_refused() {
    let target = || floats(chain(&["torch.relu"]));
    let refusal = refused(replace(&mut target(), &chain(&["torch.relu"]), &chain(&["torch.relu", "torch.sum"])));
    assert!(refusal.message().ends_with("output 0 has the sizes [] instead of [2, 3]"), "{refusal}");
    let refusal = refused(replace(&mut target(), &chain(&["torch.relu"]), &chain(&["torch.isnan"])));
    assert!(refusal.message().ends_with("output 0 is of bool instead of float32"), "{refusal}");
    let refusal = refused(replace(&mut target(), &chain(&["torch.relu"]), &chain(&["torch.trace", "torch.trace"])));
    assert!(refusal.message().contains("refuses inputs"), "{refusal}");
}

#[test]
fn rules_are_verified_and_say_so_in_files() {
    let (pattern, replacement) = (chain(&["torch.neg", "torch.neg"]), chain(&["torch.abs"]));
    let options = verified(VerifyOptions { seed: 5, ..VerifyOptions::default() });
    let rule = Rule { name: "wrong".into(), pattern, replacement, options };
    let rule = Rule::from_module(&rule.to_module().unwrap()).unwrap();
    let mut target = floats(chain(&["torch.neg"; 4]));
    let rules = RuleSet { rules: vec![rule] };
    let refusal = Library::default().rewriting(|cx| rules.run_to_fixpoint(&mut target, cx, None)).unwrap_err();
    assert_eq!(refusal.code(), Code::VerifyFailed);
    assert!(refusal.notes().contains(&"the rule is `wrong`".to_owned()), "{refusal}");
    let refusal = rules.run_once(&mut target, tracefx_ops::registry()).unwrap_err();
    assert_eq!(refusal.code(), Code::InvalidOption);
}
