//! Folding constants, and layers fused, by their numbers.

use tracefx_core::{DType, Tensor};
use tracefx_exec::{Executor, Interpreter};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, InsertPoint, NodeId, Opcode, TensorKind, TensorMeta, Val};
use tracefx_ops::{Value, registry};
use tracefx_rewrite::{ConstantFoldOptions, constant_fold, fuse};

fn executor() -> Executor<'static> {
    Executor::new(registry(), tracefx_cpu::kernels())
}

fn lint(module: &GraphModule) {
    let problems = module.graph.lint(Some(module));
    assert!(problems.is_empty(), "{problems:?}\n{}", module.graph);
}

fn aten(graph: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    graph.call_function(&format!("torch.ops.aten.{name}"), args, vec![])
}

/// Numbers that differ, from 0.1 on.
fn tensor(sizes: &[usize]) -> Tensor {
    let data: Vec<f32> = (0..sizes.iter().product()).map(|it: usize| 0.1 + (it * 7 % 11) as f32 * 0.3).collect();
    Tensor::from_slice(&data, sizes).unwrap()
}

fn module_of(graph: Graph, tensors: &[(&str, &[usize])]) -> GraphModule {
    let mut module = GraphModule::new(graph);
    for (name, sizes) in tensors {
        module.set_attribute(name, Attribute::Tensor { tensor: tensor(sizes), kind: TensorKind::Parameter });
    }
    module
}

fn fold(module: &mut GraphModule, options: ConstantFoldOptions<'_>) -> bool {
    let res = constant_fold(module, executor(), options).unwrap().modified;
    lint(module);
    res
}

fn targets(module: &GraphModule) -> Vec<String> {
    let graph = &module.graph;
    graph.nodes().map(|it| graph.node(it).target().trim_start_matches("torch.ops.aten.").to_owned()).collect()
}

fn names(module: &GraphModule) -> Vec<&str> {
    module.attributes.keys().map(|it| &**it).collect()
}

/// `x + exp(weight + weight)`, `x * weight` where the weight has other users.
fn with_constants(is_shared: bool) -> GraphModule {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let weight = graph.get_attr("weight");
    let sum = aten(&mut graph, "add.Tensor", vec![weight.into(), weight.into()]);
    let exp = aten(&mut graph, "exp.default", vec![sum.into()]);
    let mut res = aten(&mut graph, "add.Tensor", vec![x.into(), exp.into()]);
    if is_shared {
        res = aten(&mut graph, "mul.Tensor", vec![res.into(), weight.into()]);
    }
    graph.output(res.into());
    module_of(graph, &[("weight", &[3])])
}

#[test]
fn what_depends_on_constants_alone_is_computed_once() {
    let mut module = with_constants(false);
    let before = run(&module, &[2, 3]);
    assert!(fold(&mut module, ConstantFoldOptions::default()));
    assert_eq!(targets(&module), ["x", "_frozen_param0", "add.Tensor", "output"]);
    assert_eq!(names(&module), ["_frozen_param0"]);
    assert_eq!(run(&module, &[2, 3]), before);
    assert!(!fold(&mut module, ConstantFoldOptions::default()));
}

#[test]
fn an_attribute_that_others_read_stays() {
    let mut module = with_constants(true);
    let before = run(&module, &[2, 3]);
    assert!(fold(&mut module, ConstantFoldOptions::default()));
    assert_eq!(names(&module), ["weight", "_frozen_param0"]);
    assert_eq!(run(&module, &[2, 3]), before);
}

#[test]
fn what_is_too_large_or_refused_is_computed_from_folded_values() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let weight = graph.get_attr("weight");
    let exp = aten(&mut graph, "exp.default", vec![weight.into()]);
    let large = aten(&mut graph, "expand.default", vec![exp.into(), Arg::List(vec![Arg::Int(2), Arg::Int(3)])]);
    let sum = aten(&mut graph, "add.Tensor", vec![x.into(), large.into()]);
    graph.output(sum.into());
    let module = module_of(graph, &[("weight", &[3])]);
    let limited = ConstantFoldOptions { max_bytes: Some(12), ..ConstantFoldOptions::default() };
    let refuses_expand = |_: NodeId, it: &tracefx_ir::Node| !it.target().contains("expand");
    let refused = ConstantFoldOptions { constraint: Some(&refuses_expand), max_bytes: None };
    for options in [limited, refused] {
        let mut folded = module.clone();
        assert!(fold(&mut folded, options));
        assert_eq!(targets(&folded), ["x", "_frozen_param0", "expand.default", "add.Tensor", "output"]);
        assert_eq!(run(&folded, &[2, 3]), run(&module, &[2, 3]));
    }
}

#[test]
fn what_is_random_writes_or_is_written_to_stays() {
    for (name, rest) in [
        ("bernoulli.p", vec![Arg::Float(0.5)]),
        ("relu_.default", vec![]),
        ("dropout.default", vec![Arg::Float(0.5), Arg::Bool(true)]),
    ] {
        let mut graph = Graph::new();
        let reads = [0, 1].map(|_| graph.get_attr("weight"));
        let args = [Arg::Node(reads[0])].into_iter().chain(rest).collect();
        let call = aten(&mut graph, name, args);
        // A read of what the other one is written through.
        let other = aten(&mut graph, "exp.default", vec![reads[1].into()]);
        graph.output(Arg::Tuple(vec![call.into(), if name == "relu_.default" { other.into() } else { call.into() }]));
        let mut module = module_of(graph, &[("weight", &[3])]);
        assert!(!fold(&mut module, ConstantFoldOptions::default()), "{name}");
    }
    let mut graph = Graph::new();
    let zeros = aten(&mut graph, "zeros.default", vec![Arg::List(vec![Arg::Int(3)])]);
    graph.output(zeros.into());
    assert!(!fold(&mut GraphModule::new(graph), ConstantFoldOptions::default()));
}

#[test]
fn what_is_computed_after_a_switch_stays() {
    let folds = |is_switched: bool| {
        let mut graph = Graph::new();
        let weight = graph.get_attr("weight");
        if is_switched {
            let args = vec![Arg::str("cpu"), Arg::None, Arg::Bool(true), Arg::None];
            graph.call_function("torch.amp.autocast_mode._enter_autocast", args, vec![]);
        }
        let product = aten(&mut graph, "mm.default", vec![weight.into(), weight.into()]);
        graph.output(product.into());
        fold(&mut module_of(graph, &[("weight", &[2, 2])]), ConstantFoldOptions::default())
    };
    assert!(folds(false) && !folds(true));
}

#[test]
fn of_several_results_those_that_are_taken_are_kept() {
    let mut graph = Graph::new();
    let weight = graph.get_attr("weight");
    let split = aten(&mut graph, "split.Tensor", vec![weight.into(), Arg::Int(2)]);
    let item = graph.call_function("operator.getitem", vec![split.into(), Arg::Int(1)], vec![]);
    let size = aten(&mut graph, "sym_size.int", vec![weight.into(), Arg::Int(0)]);
    let x = graph.placeholder("x");
    let narrow = aten(&mut graph, "add.Tensor", vec![x.into(), item.into()]);
    let res = aten(&mut graph, "add.Scalar", vec![narrow.into(), size.into()]);
    graph.output(res.into());
    let mut module = module_of(graph, &[("weight", &[4])]);
    assert!(fold(&mut module, ConstantFoldOptions::default()));
    let left = ["weight", "_frozen_param0", "sym_size.int", "x", "add.Tensor", "add.Scalar", "output"];
    assert_eq!(targets(&module), left);
    let Attribute::Tensor { tensor, .. } = module.attribute("_frozen_param0").unwrap() else { panic!("a tensor") };
    assert_eq!(tensor.to_vec::<f32>().unwrap(), tensor_tail());
}

fn tensor_tail() -> Vec<f32> {
    tensor(&[4]).to_vec::<f32>().unwrap()[2..].to_vec()
}

/// A layer of an input, and the normalization of what it gives.
struct Layer {
    name: &'static str,
    input: &'static [usize],
    weight: &'static [usize],
    has_bias: bool,
    /// What is given after the bias.
    rest: Vec<Arg>,
    norm: &'static str,
}

fn build(layer: &Layer, is_training: bool, shares_weight: bool) -> GraphModule {
    let n = layer.weight[if layer.name == "addmm.default" { 1 } else { 0 }];
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let weight = graph.get_attr("weight");
    let bias = if layer.has_bias { graph.get_attr("bias").into() } else { Arg::None };
    let args = match layer.name {
        "addmm.default" => vec![bias, x.into(), weight.into()],
        _ => [x.into(), weight.into(), bias].into_iter().chain(layer.rest.clone()).collect(),
    };
    let call = aten(&mut graph, layer.name, args);
    let known =
        |it: &[usize]| TensorMeta::contiguous(DType::Float32, it.iter().map(|&it| (it as i64).into()).collect());
    graph.meta_mut(call).val = Some(Val::Tensor(known(layer.input)));
    let parameters: Vec<Arg> = ["scale", "shift", "mean", "variance"].map(|it| graph.get_attr(it).into()).into();
    let is_plain = layer.norm == "batch_norm.default";
    let mut args: Vec<Arg> = [Arg::Node(call)].into_iter().chain(parameters).collect();
    if !layer.norm.ends_with("no_training.default") {
        args.push(Arg::Bool(is_training));
    }
    args.extend([Arg::Float(0.1), Arg::Float(1e-5)]);
    args.extend(is_plain.then_some(Arg::Bool(false)));
    let mut norm = aten(&mut graph, layer.norm, args);
    if !is_plain {
        norm = graph.call_function("operator.getitem", vec![norm.into(), Arg::Int(0)], vec![]);
    }
    let other = if shares_weight { aten(&mut graph, "sum.default", vec![weight.into()]) } else { norm };
    graph.output(Arg::Tuple(vec![norm.into(), other.into()]));
    let channels: &[usize] = &[n];
    let mut tensors = vec![("weight", layer.weight)];
    tensors.extend(["bias", "scale", "shift", "mean", "variance"].map(|it| (it, channels)));
    module_of(graph, &tensors)
}

fn layers() -> Vec<Layer> {
    let ints = |it: &[i64]| Arg::List(it.iter().map(|it| Arg::Int(*it)).collect());
    let (input, weight): (&[usize], &[usize]) = (&[2, 4, 5, 5], &[6, 2, 3, 3]);
    let conv = vec![ints(&[1, 1]), ints(&[1, 1]), ints(&[1, 1]), Arg::Int(2)];
    let convolution = vec![ints(&[1, 1]), ints(&[1, 1]), ints(&[1, 1]), Arg::Bool(false), ints(&[0, 0]), Arg::Int(2)];
    let no_training = "_native_batch_norm_legit_no_training.default";
    let layer = |name, input, weight, has_bias, rest, norm| Layer { name, input, weight, has_bias, rest, norm };
    vec![
        layer("conv2d.default", input, weight, true, conv.clone(), "batch_norm.default"),
        layer("conv2d.default", input, weight, false, conv, no_training),
        layer("convolution.default", input, weight, true, convolution, no_training),
        layer("conv1d.default", &[2, 3, 7], &[4, 3, 3], false, vec![], "native_batch_norm.default"),
        layer("linear.default", &[5, 3], &[4, 3], true, vec![], "batch_norm.default"),
        layer("linear.default", &[5, 3], &[4, 3], false, vec![], no_training),
        layer("addmm.default", &[5, 3], &[3, 4], true, vec![], no_training),
    ]
}

fn run(module: &GraphModule, input: &[usize]) -> Vec<f32> {
    let result = Interpreter::new(module, executor()).run(&[Value::Tensor(tensor(input))]).unwrap();
    let mut res = Vec::new();
    result.for_each_tensor(&mut |it: &Tensor| res.extend(it.to_vec::<f32>().unwrap()));
    res
}

#[track_caller]
fn assert_close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= 1e-5 + 1e-4 * b.abs(), "{a} and {b}");
    }
}

#[test]
fn layers_with_a_batch_normalization_taken_in_compute_the_same() {
    for layer in layers() {
        for shares_weight in [false, true] {
            let module = build(&layer, false, shares_weight);
            let mut fused = module.clone();
            assert!(fuse(&mut fused, executor()).unwrap().modified, "{}", module.graph);
            lint(&fused);
            let left = targets(&fused);
            assert!(!left.iter().any(|it| it.contains("norm")), "{left:?}");
            // The layer, its input, two folded parameters, the output; a sum, which is a constant.
            assert_eq!(left.len(), if shares_weight { 6 } else { 5 }, "{left:?}");
            assert_close(&run(&fused, layer.input), &run(&module, layer.input));
            assert!(!fuse(&mut fused, executor()).unwrap().modified);
        }
    }
}

#[test]
fn a_row_of_normalizations_is_taken_in_by_one_run() {
    for layer in layers().iter().filter(|it| it.norm == "batch_norm.default") {
        let mut module = build(layer, false, false);
        let graph = &mut module.graph;
        let output = graph.output_node().unwrap();
        let norm = graph.find("batch_norm_default").unwrap();
        graph.set_insert_point(InsertPoint::Before(output)).unwrap();
        let args = [Arg::Node(norm)].into_iter().chain(graph.node(norm).args()[1..].iter().cloned()).collect();
        let again = aten(graph, layer.norm, args);
        graph.set_args(output, vec![again.into()]).unwrap();
        let mut fused = module.clone();
        fuse(&mut fused, executor()).unwrap();
        lint(&fused);
        assert!(!targets(&fused).contains(&layer.norm.to_owned()), "{}", fused.graph);
        assert_close(&run(&fused, layer.input), &run(&module, layer.input));
    }
}

#[test]
fn layers_stay_in_training_and_where_their_result_has_other_users() {
    for layer in layers().iter().filter(|it| !it.norm.contains("no_training")) {
        assert!(!fuse(&mut build(layer, true, false), executor()).unwrap().modified);
    }
    for layer in &layers() {
        let mut module = build(layer, false, false);
        let call = module.graph.find_nodes(Opcode::CallFunction, &format!("torch.ops.aten.{}", layer.name)).next();
        let output = module.graph.output_node().unwrap();
        let (result, call) = (module.graph.node(output).args().to_vec(), call.unwrap());
        module.graph.set_args(output, vec![Arg::Tuple(vec![result[0].clone(), call.into()])]).unwrap();
        assert!(!fuse(&mut module, executor()).unwrap().modified);
    }
}

#[test]
fn a_linear_layer_whose_channels_are_not_normalized_stays() {
    let layer = Layer {
        name: "linear.default",
        input: &[2, 4, 3],
        weight: &[4, 3],
        has_bias: true,
        rest: vec![],
        norm: "batch_norm.default",
    };
    assert!(!fuse(&mut build(&layer, false, false), executor()).unwrap().modified);
}

#[test]
fn a_swapped_result_of_a_linear_layer_is_computed_as_it_is_used() {
    let order = Arg::List([0, 2, 1].map(Arg::Int).into());
    for (swap, rest) in [("permute.default", vec![order]), ("transpose.int", vec![Arg::Int(-1), Arg::Int(1)])] {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let [weight, bias] = ["weight", "bias"].map(|it| graph.get_attr(it));
        let linear = aten(&mut graph, "linear.default", vec![x.into(), weight.into(), bias.into()]);
        let sizes = [2, 5, 4].map(|it: i64| it.into()).into();
        graph.meta_mut(linear).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, sizes)));
        let args = [Arg::Node(linear)].into_iter().chain(rest).collect();
        let swapped = aten(&mut graph, swap, args);
        graph.output(swapped.into());
        let module = module_of(graph, &[("weight", &[4, 3]), ("bias", &[4])]);
        let mut fused = module.clone();
        assert!(fuse(&mut fused, executor()).unwrap().modified);
        lint(&fused);
        assert!(!targets(&fused).contains(&"linear.default".to_owned()));
        assert_close(&run(&fused, &[2, 5, 3]), &run(&module, &[2, 5, 3]));
    }
}

/// Linear layers, two in a row, of which the last or each is swapped.
fn swapped_row(is_each: bool) -> Graph {
    let mut graph = Graph::new();
    let mut last = graph.placeholder("x");
    for is_last in [false, true] {
        let weight = graph.get_attr("weight");
        last = aten(&mut graph, "linear.default", vec![last.into(), weight.into()]);
        let sizes = vec![4.into(), 4.into()];
        graph.meta_mut(last).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, sizes)));
        if is_each || is_last {
            last = aten(&mut graph, "t.default", vec![last.into()]);
        }
    }
    let bias = graph.get_attr("bias");
    let sum = aten(&mut graph, "add.Tensor", vec![last.into(), bias.into()]);
    graph.output(sum.into());
    graph
}

#[track_caller]
fn check_row(graph: Graph) {
    let module = module_of(graph, &[("weight", &[4, 4]), ("bias", &[4])]);
    let mut fused = module.clone();
    assert!(fuse(&mut fused, executor()).unwrap().modified);
    lint(&fused);
    assert!(!targets(&fused).contains(&"linear.default".to_owned()), "{}", fused.graph);
    assert_close(&run(&fused, &[4, 4]), &run(&module, &[4, 4]));
}

#[test]
fn layers_in_a_row_are_swapped_by_one_run() {
    check_row(swapped_row(false));
}

#[test]
fn a_layer_of_a_swapped_one_is_swapped_beside_a_write() {
    let mut graph = swapped_row(true);
    let bias = graph.find("bias").unwrap();
    graph.set_insert_point(InsertPoint::After(bias)).unwrap();
    aten(&mut graph, "add_.Scalar", vec![bias.into(), Arg::Int(0)]);
    check_row(graph);
}

#[test]
fn a_result_whose_copies_and_views_would_change_places_is_not_swapped() {
    let mut graph = swapped_row(false);
    let sum = graph.find("add_tensor").unwrap();
    graph.set_insert_point(InsertPoint::After(sum)).unwrap();
    // A copy now, and a view where the order of memory is another.
    let flat = aten(&mut graph, "reshape.default", vec![sum.into(), Arg::List(vec![Arg::Int(16)])]);
    aten(&mut graph, "add_.Scalar", vec![sum.into(), Arg::Int(1)]);
    let output = graph.output_node().unwrap();
    graph.set_args(output, vec![flat.into()]).unwrap();
    let module = module_of(graph, &[("weight", &[4, 4]), ("bias", &[4])]);
    let mut fused = module.clone();
    assert!(!fuse(&mut fused, executor()).unwrap().modified);
    assert_eq!(run(&fused, &[4, 4]), run(&module, &[4, 4]));
}

#[test]
fn a_dead_user_keeps_no_normalization_out_of_its_layer() {
    let layer = layers().swap_remove(0);
    let mut module = build(&layer, false, false);
    let call = module.graph.find("conv2d_default").unwrap();
    module.graph.set_insert_point(InsertPoint::After(call)).unwrap();
    aten(&mut module.graph, "relu.default", vec![call.into()]);
    assert!(fuse(&mut module, executor()).unwrap().modified);
    assert!(!targets(&module).contains(&layer.norm.to_owned()), "{}", module.graph);
}
